"""An agent event -> a context block: a prompt is searched for, a session start looks at the project.

A hook has no time to index much. It indexes a few changed files itself; more files, and their
authors, are left to the watcher or, without one, to a `lessons index` in the background.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from vault_index.index import skills
from vault_index.recall import block, edited, failed, holdout, select, sessions, subagents
from vault_index.recall.select import Injection
from vault_index.recall.sessions import file_of, forget_given, forget_old, given, remember
from vault_index.search import failures
from vault_index.store import injections
from vault_index.vault import Vault

COMPACT = "compact"  # the source of a start after which the agent has lost what it was given
_WITH_RECEIPT = (injections.PROMPT, failed.EVENT, edited.EVENT)


def respond(
    vault: Vault,
    event: dict[str, Any],
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
    since = float(event.get("began") or time.time() - ms / 1000)
    name = str(event["hook_event_name"])
    source = event.get("source", "startup")
    if name == "SessionStart" and source not in vault.config.session_sources:
        if source == COMPACT:
            forget_given(vault, str(event.get("session_id") or ""))
        return _message(holdout.notice(vault))
    session = str(event.get("session_id") or "")
    if name == subagents.START:
        return _start_subagent(vault, event, since, by)
    with vault.opened_once():
        injection = _injection(vault, event, session, text_only, from_files)
    is_nothing = not (injection.text or injection.held)
    if time.monotonic() > until or (name == edited.EVENT and is_nothing):
        return None
    if session and not sessions.claim(file_of(vault, session), event, since):
        return None
    record = _record(event, injection, ms + 1000 * (time.monotonic() - began))
    if name == subagents.ASKED:
        ids = [hit.lesson_id for hit in (*injection.hits, *injection.skills)]
        subagents.leave(vault, event, {"text": injection.text, "ids": ids, "record": record})
        return None
    injections.record(vault.index_dir, name, session, **record, by=by)
    if source == COMPACT:
        forget_given(vault, session)
    notice = _message(holdout.notice(vault) if name == "SessionStart" else "")
    told = _told(vault, event, injection, record["key"])
    return (told or {}) | (notice or {}) or None


def _told(
    vault: Vault, event: dict[str, Any], injection: Injection, key: str
) -> dict[str, Any] | None:
    """Return an injection as the hook's answer, and note what the session is told and what not."""
    name, session = str(event["hook_event_name"]), str(event.get("session_id") or "")
    held = [hit.lesson_id for hit in injection.held]
    at = [key] if held and name == failed.EVENT else []
    agent = str(event.get("agent_id") or "")
    sessions.note_held(vault, session, "" if name == failed.EVENT else agent, [*held, *at])
    if name == edited.EVENT or (name == failed.EVENT and injection.text):
        sessions.note_told(vault, event, key)
    if not injection.text:
        return None
    shown = [*injection.hits, *injection.skills]
    ids = (hit.lesson_id for hit in shown)
    remember(vault, session, agent, ids)
    is_shown = name in _WITH_RECEIPT and vault.config.receipt and shown
    seen = {"systemMessage": block.receipt(shown)} if is_shown else {}
    return _output(name, injection.text) | seen


def _start_subagent(
    vault: Vault, event: dict[str, Any], since: float, by: str
) -> dict[str, Any] | None:
    """Hand over what was found for the prompt of a subagent, and record it."""
    session = str(event.get("session_id") or "")
    if not session or not sessions.claim(file_of(vault, session), event, since):
        return None
    told = subagents.take(vault, event)
    if told is None:
        return None
    agent = str(event.get("agent_id") or "")
    sessions.note_held(vault, session, agent, (told["record"]["arms"] or {}).get("held", ()))
    injections.record(vault.index_dir, subagents.START, session, **told["record"], by=by)
    if not told["text"]:
        return None
    remember(vault, session, agent, told["ids"])
    return _output(subagents.START, told["text"])


def _message(line: str) -> dict[str, Any] | None:
    """Return a line for the person alone as the hook's answer; None for ""."""
    return {"systemMessage": line} if line else None


def _output(event: str, text: str) -> dict[str, Any]:
    """Return a text as Claude Code wants it from the hook of an event."""
    name = subagents.ASKED if event == edited.EVENT else event
    return {"hookSpecificOutput": {"hookEventName": name, "additionalContext": text}}


def _record(event: dict[str, Any], injection: Injection, ms: float) -> dict[str, Any]:
    """Return the record of what an event got, or why it got nothing."""
    near = None if injection.text else injection.near
    return {
        "prompt": "",
        "key": injections.key_of(injection.about or str(event.get("prompt") or "")),
        "hits": [(hit.lesson_id, hit.score) for hit in injection.hits],
        "skills": [(hit.title, hit.score) for hit in injection.skills],
        "floor": injection.floor,
        "ms": ms,
        "silent": "" if injection.text else injection.silent,
        "near": (near.lesson_id, near.reason) if near else None,
        "taught": [hit.lesson_id for hit in injection.hits if hit.taught],
        "said": injection.said,
        "arms": injection.plan.arms(injection.hits, injection.held),
    }


def _injection(
    vault: Vault, event: dict[str, Any], session: str, text_only: bool, from_files: bool
) -> Injection:
    if event["hook_event_name"] == failed.EVENT:
        failures.want(vault)
        return failed.answer(vault, event, text_only)
    if event["hook_event_name"] == edited.EVENT:
        return edited.select_lesson(vault, event)
    is_subagent = event["hook_event_name"] == subagents.ASKED  # a new one was told nothing yet
    already = given(vault, session) if not is_subagent else {}
    plan = holdout.plan(vault, session, is_new=is_subagent)
    if from_files:
        return select.from_files(vault, str(event.get("prompt") or ""), already, plan)
    project = Path(str(event.get("cwd") or "."))
    skills.register(vault, project)
    if event["hook_event_name"] == "SessionStart":
        forget_old(vault)
        failures.want(vault)
        if event.get("source") == COMPACT:
            return select.after_compaction(vault, already)
        return select.for_session(
            vault, project, already, session=session, text_only=text_only, plan=plan
        )
    prompt = str(event.get("prompt") or "")
    return select.for_prompt(
        vault, prompt, already, project=project, text_only=text_only, plan=plan
    )
