"""Rollouts of the Codex CLI: `~/.codex/sessions/**/rollout-*.jsonl` (0.139 to 0.171 seen).

Each line is `{timestamp, type, payload}`. `event_msg` has the conversation, since 0.171 as items;
`response_item` repeats it with the calls of tools, and also has the agent's instructions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from vault_index.transcripts import events
from vault_index.transcripts.events import TranscriptEvent

_MESSAGES = {
    **dict.fromkeys(("user_message", "UserMessage"), events.PROMPT),
    **dict.fromkeys(("agent_message", "AgentMessage"), events.TEXT),
}
_SILENT_TYPES = frozenset(
    "turn_context compacted session_meta event_msg response_item world_state token_usage_record".split()
)
_OF_SESSION = ("session", "folder", "branch", "version")  # what each event repeats
_CALLS = ("function_call", "custom_tool_call", "local_shell_call")
_EXITED = re.compile(r"(?:Process exited with code|Exit code:) (\d{1,9})")
_HEADER = re.compile(
    r"\A(?:(?:Chunk ID|Wall time|Process exited|Exit code|Original token).*\n)*Output:\n"
)


class CodexReader(events.TranscriptReader):
    """Reads a rollout line by line. A record has no id of its own: it is `<session>:<number>`."""

    def begin(self, state: Mapping[str, Any]) -> None:
        self._number = int(state.get("number", 0))
        self._is_of_program = bool(state.get("of_program"))
        session: dict[str, Any] = {name: str(state.get(name, "")) for name in _OF_SESSION}
        self._base = TranscriptEvent("", "", "", **session)
        self.parent = str(state.get("parent", ""))  # the session that started this one

    def state(self) -> dict[str, Any]:
        return {
            "number": self._number,
            "of_program": self._is_of_program,
            "parent": self.parent,
            **{name: getattr(self._base, name) for name in _OF_SESSION},
        }

    def events(self, line: bytes) -> Iterator[TranscriptEvent]:
        for record in self.records(line):
            self._number += 1
            payload = record.get("payload")
            kind = str(record.get("type"))
            if not isinstance(payload, dict):
                self.unread += 1
                continue
            if kind == "session_meta" and not self._base.session:
                self._begin_session(payload)
            base = replace(
                self._base,
                uuid=f"{self._base.session}:{self._number}",
                at=str(record.get("timestamp") or ""),
            )
            if kind == "event_msg":
                yield from _message(base, payload, self._is_of_program)
            elif kind == "response_item":
                yield from _item(base, payload)
            elif kind not in _SILENT_TYPES:
                self.unread += 1

    def _begin_session(self, meta: dict[str, Any]) -> None:
        git = meta.get("git")
        self._base = replace(
            self._base,
            session=str(meta.get("id") or ""),
            folder=str(meta.get("cwd") or ""),
            branch=str(git.get("branch") or "") if isinstance(git, dict) else "",
            version=str(meta.get("cli_version") or ""),
        )
        self.parent = str(meta.get("parent_thread_id") or "")
        self._is_of_program = meta.get("originator") == "codex_exec" or (
            meta.get("thread_source") == "subagent"
        )


def _message(
    base: TranscriptEvent, payload: dict[str, Any], of_program: bool
) -> Iterator[TranscriptEvent]:
    item = payload.get("item")
    message = item if isinstance(item, dict) else payload
    kind = _MESSAGES.get(str(message.get("type")))
    if kind == events.PROMPT and of_program:
        kind = events.AUTOMATED
    lists = [message.get(name) for name in ("content", "images")]
    content, images = (each if isinstance(each, list) else [] for each in lists)
    blocks = [each for each in content if isinstance(each, dict)]
    texts = [message.get("message"), *(each.get("text") for each in blocks)]
    text = "\n".join(each for each in texts if each and isinstance(each, str))
    if kind and text:
        count = len(images) + sum("image" in str(each.get("type")) for each in blocks)
        yield replace(base, kind=kind, text=text, images=count)


def _item(base: TranscriptEvent, payload: dict[str, Any]) -> Iterator[TranscriptEvent]:
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
        text = output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)
        exited = _EXITED.search(text[:500])
        status = int(exited[1]) if exited else None
        yield replace(
            base,
            kind=events.TOOL_RESULT,
            text=_HEADER.sub("", text, count=1),
            call=call,
            is_error=bool(status),
            status=status,
        )


def _input(payload: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call; a single unnamed one under `input`."""
    arguments = payload.get("arguments") or payload.get("input") or payload.get("action")
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except (json.JSONDecodeError, RecursionError):
            return {"input": arguments}
    return arguments if isinstance(arguments, dict) else {"input": arguments}
