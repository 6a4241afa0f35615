"""An agent event -> a context block: a prompt is searched for, a session start looks at the project.

A hook has no time to index much. It indexes a few changed files itself; more files, and their
authors, are left to the watcher or, without one, to a `lessons index` in the background.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from vault_index import features, state
from vault_index.errors import WriteError
from vault_index.hotpath import log
from vault_index.recall import block, calls, select
from vault_index.search.hit import Injection
from vault_index.store import injections
from vault_index.store.injections import LINE, NEAR, SKILL, WHOLE, Event, Given, Record, Told
from vault_index.vault import Vault

COMPACT = "compact"  # a session that restarts after compaction
_WITH_RECEIPT = (injections.PROMPT, injections.FAILURE, injections.EDIT)


def respond(
    vault: Vault,
    event: Event,
    *,
    by: str,
    ms: float,
    text_only: bool = False,
    from_files: bool = False,
    until: float = float("inf"),
) -> dict[str, Any] | None:
    """Search for an event and record the injection; None for silence.

    `ms` is how long the hook has taken so far; `from_files` asks no index. After `until`, by the
    monotonic clock, the hook has gone on without this answer, so nothing is recorded. The second of two
    hooks of one event is silent. Raises VaultError.
    """
    began = time.monotonic()
    name, source = event.hook_event_name, event.source
    told, receipt = None, ""
    if name == injections.START and source not in vault.config.session_sources:
        if source == COMPACT:
            with suppress(WriteError):
                injections.forget_given(vault.config.home, vault.root, event.session_id)
        return None
    if name != injections.SUBAGENT:
        injection = _injection(vault, event, text_only, from_files)
        if time.monotonic() > until or (name == injections.EDIT and not injection.text):
            return None
        record = _record(event, injection, ms + 1000 * (time.monotonic() - began), by)
        told, given = Told(injection.text, record), [*injection.hits, *injection.skills]
        if name in _WITH_RECEIPT and vault.config.receipt and given and injection.text:
            receipt = block.receipt(given)
    try:
        with state.writing(vault.config.home, injections.HOOK_SECONDS):
            told = _noted(vault, event, told)
    except WriteError as error:  # the agent gets it all the same, and perhaps twice
        log.log({"hook_event_name": name, "vault": str(vault.root)}, error.message, began)
        told = None if name == injections.ASKED else told
    return _answer(vault, event, told, receipt) if told else None


def _noted(vault: Vault, event: Event, told: Told | None) -> Told | None:
    """Record what an event gets, and return it; None if another hook answers, or another event."""
    name, home, root = event.hook_event_name, vault.config.home, vault.root
    if event.session_id and not injections.claim(home, root, event):
        return None
    if name == injections.SUBAGENT and event.session_id:
        if event.is_fork:
            injections.inherit(home, root, event)
        told = injections.take_note(home, root, event)
    if told and name == injections.ASKED:
        injections.leave_note(home, root, event, told)
        return None
    if told:
        if event.source == COMPACT:
            injections.forget_given(home, root, event.session_id)
        new = replace(told.record, event=name, session=event.session_id, agent=event.agent_id)
        injections.record(home, root, new)
        for note in features.adding("at_project"):
            note(vault, Path(event.cwd))
    return told


def _answer(vault: Vault, event: Event, told: Told, receipt: str) -> dict[str, Any] | None:
    """Return what an agent gets, as Claude Code wants it; the receipt is for the person alone."""
    if event.hook_event_name == injections.START and event.shows_lines:
        said = (say(vault, Path(event.cwd), event.session_id) for say in features.adding("nudge"))
        with suppress(WriteError):  # the next session has it
            receipt = next(filter(None, said), "")
    if not told.text:
        return {"systemMessage": receipt} if receipt else None
    name = injections.ASKED if event.hook_event_name == injections.EDIT else event.hook_event_name
    output = {"hookEventName": name, "additionalContext": told.text}
    return {"hookSpecificOutput": output} | ({"systemMessage": receipt} if receipt else {})


def _record(event: Event, injection: Injection, ms: float, by: str) -> Record:
    given = [
        Given(hit.lesson_id, round(hit.reason, 4), LINE if hit.as_line else WHOLE, bool(hit.taught))
        for hit in injection.hits
    ]
    given += [Given(hit.lesson_id, round(hit.score, 4), SKILL) for hit in injection.skills]
    if injection.near and not injection.text:
        given.append(Given(injection.near.lesson_id, round(injection.near.reason, 4), NEAR))
    return Record(
        event=event.hook_event_name,
        prompt=injections.key_of(injection.about or event.prompt),
        said=injection.said,
        floor=None if injection.floor is None else round(injection.floor, 4),
        ms=round(ms, 1),
        by=by,
        silent="" if injection.text else injection.silent,
        given=tuple(given),
    )


def _injection(vault: Vault, event: Event, text_only: bool, from_files: bool) -> Injection:
    name, home, session = event.hook_event_name, vault.config.home, event.session_id
    if name == injections.FAILURE:
        return calls.at_failure(vault, event, text_only)
    if name == injections.EDIT:
        return calls.at_edit(vault, event)
    is_new = name == injections.ASKED and not event.is_fork  # it was given nothing yet
    given, pointed = ([], []) if is_new else injections.received(home, vault.root, session)
    if from_files:
        return select.from_files(vault, event.prompt, given)
    project = Path(event.cwd)
    if name == injections.START:
        if event.source == COMPACT:
            return select.after_compaction(vault, given)
        return select.for_session(vault, project, session, text_only=text_only, given=given)
    return select.for_prompt(
        vault, event.prompt, project=project, text_only=text_only, given=given, pointed=pointed
    )
