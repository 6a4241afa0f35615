"""An agent event -> a context block: a prompt is searched for, a session start looks at the project.

A hook has no time to index much. It indexes a few changed files itself; more files, and their
authors, are left to the watcher or, without one, to a `lessons index` in the background.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from vault_index.index import skills
from vault_index.recall import block, failed, select, sessions
from vault_index.recall.select import Injection
from vault_index.recall.sessions import file_of, forget_given, forget_old, given, remember
from vault_index.search import failures
from vault_index.store import injections
from vault_index.vault import Vault

COMPACT = "compact"  # the source of a start after which the agent has lost what it was given


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
        return None
    session = str(event.get("session_id") or "")
    injection = _injection(vault, event, session, text_only, from_files)
    if time.monotonic() > until:
        return None
    if session and not sessions.claim(file_of(vault, session), event, since):
        return None
    _record(vault, event, injection, ms + 1000 * (time.monotonic() - began), by)
    if source == COMPACT:
        forget_given(vault, session)
    if not injection.text:
        return None
    if name == failed.EVENT:
        failed.remember(vault, event, failed.of_event(event))
    if not event.get("agent_id"):  # a subagent has a context of its own
        remember(vault, session, injection)
    output = {"hookEventName": name, "additionalContext": injection.text}
    shown = [*injection.hits, *injection.skills]
    is_shown = name in (injections.PROMPT, failed.EVENT) and vault.config.receipt and shown
    seen = {"systemMessage": block.receipt(shown)} if is_shown else {}
    return {"hookSpecificOutput": output, **seen}


def _record(vault: Vault, event: dict[str, Any], injection: Injection, ms: float, by: str) -> None:
    """Record what an event got, or why it got nothing."""
    near = None if injection.text else injection.near
    injections.record(
        vault.index_dir,
        str(event["hook_event_name"]),
        str(event.get("session_id") or ""),
        _asked(event),
        [(hit.lesson_id, hit.score) for hit in injection.hits],
        [(hit.title, hit.score) for hit in injection.skills],
        injection.floor,
        ms,
        by,
        "" if injection.text else injection.silent,
        (near.lesson_id, near.reason) if near else None,
        [hit.lesson_id for hit in injection.hits if hit.taught],
        failed.said(failed.of_event(event)) if event["hook_event_name"] == failed.EVENT else "",
    )


def _asked(event: dict[str, Any]) -> str:
    """Return what a record knows an event by: its prompt, or the signature of its failure."""
    if event["hook_event_name"] == failed.EVENT:
        return failed.of_event(event).signature
    return str(event.get("prompt") or "")


def _injection(
    vault: Vault, event: dict[str, Any], session: str, text_only: bool, from_files: bool
) -> Injection:
    if event["hook_event_name"] == failed.EVENT:
        failures.want(vault)
        what = failed.of_event(event)
        times = failed.times_told(vault, event, what)
        return failed.select_lesson(vault, what, times=times, text_only=text_only)
    already = given(vault, session)
    if from_files:
        return select.from_files(vault, str(event.get("prompt") or ""), already)
    project = Path(str(event.get("cwd") or "."))
    skills.register(vault, project)
    if event["hook_event_name"] == "SessionStart":
        forget_old(vault)
        failures.want(vault)
        if event.get("source") == COMPACT:
            return select.after_compaction(vault, already)
        return select.for_session(vault, project, already, session=session, text_only=text_only)
    prompt = str(event.get("prompt") or "")
    return select.for_prompt(vault, prompt, already, project=project, text_only=text_only)
