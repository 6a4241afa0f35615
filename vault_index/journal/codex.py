"""Rollouts of the Codex CLI: `~/.codex/sessions/**/rollout-*.jsonl` (0.139 and 0.142 seen).

Each line is `{timestamp, type, payload}`. `event_msg` has the conversation, `response_item` the same
once more with the calls of tools; prompts come from the former, since the latter also holds the
instructions that the agent puts in front.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from vault_index.journal import events
from vault_index.journal.events import Event
from vault_index.journal.records import Unread, records

_MESSAGES = {"user_message": events.PROMPT, "agent_message": events.TEXT}
_SILENT = frozenset("task_started task_complete token_count agent_reasoning turn_aborted".split())
_SILENT_TYPES = frozenset("turn_context compacted session_meta event_msg response_item".split())
_CALLS = ("function_call", "custom_tool_call", "local_shell_call")
_EXITED = re.compile(r"(?:Process exited with code|Exit code:) (\d+)")


def read(lines: Iterable[bytes], unread: Unread | None = None) -> Iterator[Event]:
    """Yield the events of a rollout, in the order of the file."""
    unread = unread if unread is not None else Unread()
    base = Event(kind="", uuid="", at="")
    of_program = False
    for number, record in enumerate(records(lines, unread), start=1):
        payload = record.get("payload")
        if not isinstance(payload, dict):
            unread.types[str(record.get("type"))] += 1
            continue
        base = replace(base, uuid=f"{base.session}:{number}", at=str(record.get("timestamp") or ""))
        kind = str(record.get("type"))
        if kind == "session_meta":
            git = payload.get("git")
            base = replace(
                base,
                session=str(payload.get("id") or ""),
                folder=str(payload.get("cwd") or ""),
                branch=str(git.get("branch") or "") if isinstance(git, dict) else "",
            )
            of_program = payload.get("originator") == "codex_exec" or (
                payload.get("thread_source") == "subagent"
            )
        elif kind == "event_msg":
            yield from _message(base, payload, of_program)
        elif kind == "response_item":
            yield from _item(base, payload)
        elif kind not in _SILENT_TYPES:
            unread.types[kind] += 1


def _message(base: Event, payload: dict[str, Any], of_program: bool) -> Iterator[Event]:
    kind = _MESSAGES.get(str(payload.get("type")))
    text = str(payload.get("message") or "")
    if kind == events.PROMPT and of_program:
        kind = events.AUTOMATED
    if kind and text:
        yield replace(base, kind=kind, text=text, images=len(payload.get("images") or []))


def _item(base: Event, payload: dict[str, Any]) -> Iterator[Event]:
    kind = str(payload.get("type"))
    call = str(payload.get("call_id") or "")
    if kind in _CALLS:
        yield replace(
            base,
            kind=events.TOOL_CALL,
            tool=str(payload.get("name") or kind),
            call=call,
            input=_input(payload),
        )
    elif kind in ("function_call_output", "custom_tool_call_output"):
        output = payload.get("output")
        text = output if isinstance(output, str) else json.dumps(output)
        exited = _EXITED.search(text[:500])
        is_error = exited is not None and exited[1] != "0"
        yield replace(base, kind=events.TOOL_RESULT, text=text, call=call, is_error=is_error)


def _input(payload: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call; those of a tool without named arguments under `input`."""
    arguments = payload.get("arguments") or payload.get("input") or payload.get("action")
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except (json.JSONDecodeError, RecursionError):
            return {"input": arguments}
    return arguments if isinstance(arguments, dict) else {"input": arguments}
