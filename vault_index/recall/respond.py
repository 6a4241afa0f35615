"""An agent event -> a context block: a prompt is searched for, a session start looks at the project.

A hook has no time to index much. It indexes a few changed files itself; more files, and their
authors, are left to the watcher or, without one, to a `lessons index` in the background.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vault_index import features
from vault_index.recall import block, calls, select, sessions
from vault_index.recall.event import Event
from vault_index.recall.select import Injection
from vault_index.store import injections
from vault_index.vault import Vault

COMPACT = "compact"  # the source of a start after which the agent has lost what it was given
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
    name, session, source = event.hook_event_name, event.session_id, event.source
    if name == "SessionStart" and source not in vault.config.session_sources:
        if source == COMPACT:
            sessions.forget_given(vault, session)
        return None
    if name == injections.SUBAGENT:
        is_ours = session and sessions.claim(sessions.file_of(vault, session), event)
        if is_ours and event.is_fork:
            sessions.inherit(vault, session, event.agent_id)
        left = sessions.take_note(vault, event) if is_ours else None
        return (_tell(vault, event, left, by) or None) if left else None
    with vault.opened_once():
        injection = _injection(vault, event, text_only, from_files)
    if time.monotonic() > until or (name == injections.EDIT and not injection.text):
        return None
    if session and not sessions.claim(sessions.file_of(vault, session), event):
        return None
    shown = [*injection.hits, *injection.skills]
    ids = [hit.lesson_id for hit in shown if not hit.as_line]
    lines = [hit.lesson_id for hit in shown if hit.as_line]
    record = _record(event, injection, ms + 1000 * (time.monotonic() - began))
    told = {"text": injection.text, "ids": ids, "lines": lines, "record": record}
    if name == sessions.ASKED:
        sessions.leave_note(vault, event, told)
        return None
    if source == COMPACT:
        sessions.forget_given(vault, session)
    answer = _tell(vault, event, told, by)
    if name in _WITH_RECEIPT and vault.config.receipt and shown and injection.text:
        answer["systemMessage"] = block.receipt(shown)  # for the person alone
    return answer or None


def _tell(vault: Vault, event: Event, told: Mapping[str, Any], by: str) -> dict[str, Any]:
    """Record what an event got, note it for its agent, and return it as Claude Code wants it."""
    name, session, record = event.hook_event_name, event.session_id, told["record"]
    injections.record(vault.index_dir, name, session, **record, by=by)
    for note in features.adding("at_project"):
        note(vault, Path(event.cwd))
    if name == injections.EDIT or (name == injections.FAILURE and told["text"]):
        sessions.note_told(vault, event, record["key"])
    if not told["text"]:
        return {}
    sessions.note(vault, session, event.agent_id, told["ids"])
    sessions.note(vault, session, event.agent_id, told["lines"], sessions.LINES)
    name = sessions.ASKED if name == injections.EDIT else name
    return {"hookSpecificOutput": {"hookEventName": name, "additionalContext": told["text"]}}


def _record(event: Event, injection: Injection, ms: float) -> dict[str, Any]:
    """Return the record of what an event got, or why it got nothing."""
    near = None if injection.text else injection.near
    return {
        "prompt": "",
        "key": injections.key_of(injection.about or event.prompt),
        "hits": [(hit.lesson_id, hit.reason) for hit in injection.hits],
        "lines": [hit.lesson_id for hit in injection.hits if hit.as_line],
        "skills": [(hit.title, hit.score) for hit in injection.skills],
        "floor": injection.floor,
        "ms": ms,
        "silent": "" if injection.text else injection.silent,
        "near": (near.lesson_id, near.reason) if near else None,
        "taught": [hit.lesson_id for hit in injection.hits if hit.taught],
        "said": injection.said,
    }


def _injection(vault: Vault, event: Event, text_only: bool, from_files: bool) -> Injection:
    name, session = event.hook_event_name, event.session_id
    if name == injections.FAILURE:
        return calls.at_failure(vault, event, text_only)
    if name == injections.EDIT:
        return calls.at_edit(vault, event)
    is_new = name == sessions.ASKED and not event.is_fork  # it was given nothing yet
    given = () if is_new else sessions.given(vault, session)
    pointed = () if is_new else sessions.lines_of(vault, session, ending=sessions.LINES)
    if from_files:
        return select.from_files(vault, event.prompt, given)
    project = Path(event.cwd)
    if name == "SessionStart":
        sessions.forget_old(vault)
        if event.source == COMPACT:
            return select.after_compaction(vault, given)
        return select.for_session(vault, project, session, text_only=text_only, given=given)
    return select.for_prompt(
        vault, event.prompt, project=project, text_only=text_only, given=given, pointed=pointed
    )
