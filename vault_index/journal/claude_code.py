"""Transcripts of Claude Code: JSON lines, one record per line and content block.

The format is internal and changes (2.1.x here; 1.0.x and 2.0.x in the tests): unknown records are
counted, never fatal. Order is that of the file; timestamps go backwards in most files.
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

# Record types that hold no event: snapshots, titles, settings, and attachments other than a prompt.
SILENT = frozenset(
    "progress file-history-snapshot file-history-delta last-prompt permission-mode ai-title mode"
    " pr-link summary atis-latch custom-title agent-name tag api-request api-request-blob tools-used"
    " cost-state queue-operation attachment system user assistant".split()
)
TRACE_RECORDS = 10  # after its removal from the queue a prompt has its record within so many
_SLASH_COMMAND = re.compile(r"<command-name>\s*(/?[^<]*?)\s*</command-name>")
_ARGUMENTS = re.compile(r"<command-args>(.*?)</command-args>", re.DOTALL)
_SHELL_COMMAND = re.compile(r"<bash-input>(.*?)</bash-input>", re.DOTALL)
_BARE_COMMAND = re.compile(r"/[a-z][\w:-]*\s*\Z")
_WRAPPED = re.compile(r"<(?:local-command|bash-std|command-message)[\w-]*[> ]")
_INJECTED = re.compile(r"<[a-z]+(?:-[a-z]+)+[ >]")
_INTERRUPT = "[Request interrupted"
_PEER = ("Another Claude session sent a message:", "<teammate-message", "<agent-message")
_OF_PROGRAMS = (
    "Operation stopped by hook:",
    "Stop hook feedback:",
    "Base directory for this skill",
)
_PLAN = "Implement the following plan:"
_REASON = re.compile(r"the user said:\s*(.*)\Z", re.DOTALL)
_QUESTIONS = "The user wants to clarify these questions."
_NOT_DONE = "The user doesn't want to proceed with this tool use"


def read(lines: Iterable[bytes], unread: Unread | None = None) -> Iterator[Event]:
    """Yield the events of a transcript, in the order of the file."""
    unread = unread if unread is not None else Unread()
    queue = _Queue()
    calls: set[str] = set()
    for record in records(lines, unread):
        kind = str(record.get("type"))
        yield from queue.untraced()
        if kind == "user":
            typed = list(_user(record))
            queue.typed(typed)
            yield from typed
        elif kind == "assistant":
            for event in _assistant(record):
                if event.kind != events.TOOL_CALL or event.call not in calls:
                    calls.add(event.call)
                    yield event
        elif kind == "attachment":
            typed = list(_attachment(record))
            queue.typed(typed)
            yield from typed
        elif kind == "queue-operation":
            queue.operation(record)
        elif kind == "system":
            if record.get("subtype") == "api_error":
                yield _event(record, events.API_ERROR, str(record.get("error") or ""))
        elif kind not in SILENT:
            unread.types[kind] += 1
    yield from queue.untraced(at_end=True)


class _Queue:
    """Prompts typed while the agent works: a queue, which some versions record nowhere else."""

    def __init__(self) -> None:
        self._waiting: list[dict[str, Any]] = []
        self._taken: list[tuple[dict[str, Any], int]] = []  # and how many records ago
        self._typed: set[str] = set()

    def typed(self, recorded: Iterable[Event]) -> None:
        """Note prompts that have a record, so that they do not count twice."""
        self._typed |= {event.text.strip() for event in recorded if event.kind in events.TYPED}

    def operation(self, record: dict[str, Any]) -> None:
        """Take one operation: `enqueue`, then `remove` (taken in the turn) or `dequeue` (sent)."""
        operation, text = record.get("operation"), str(record.get("content") or "")
        if operation == "enqueue":
            self._waiting.append(record)
            self._typed.discard(text.strip())
        elif operation == "dequeue":
            self._waiting = self._waiting[1:]
        elif operation == "popAll":
            self._waiting = []
        elif operation == "remove" and self._waiting:
            self._taken.append((self._waiting.pop(0), 0))

    def untraced(self, *, at_end: bool = False) -> Iterator[Event]:
        """Yield the prompts that were taken and have no record of their own."""
        if not self._taken:
            return
        waiting = [(record, count + 1) for record, count in self._taken]
        self._taken = []
        for record, count in waiting:
            text = str(record.get("content") or "")
            if text.strip() in self._typed or _class_of(text) != events.PROMPT:
                continue
            if at_end or count > TRACE_RECORDS:
                yield _event(record, events.QUEUED, text)
            else:
                self._taken.append((record, count))


def _user(record: dict[str, Any]) -> Iterator[Event]:
    """Yield the events of a record with the role of the user: typed, injected, or results of tools."""
    message = record.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    blocks = content if isinstance(content, list) else [{"type": "text", "text": content or ""}]
    blocks = [block for block in blocks if isinstance(block, dict)]
    results = [block for block in blocks if block.get("type") == "tool_result"]
    texts = [str(block.get("text") or "") for block in blocks if block.get("type") == "text"]
    images = sum(block.get("type") == "image" for block in blocks)
    for block in results:
        yield from _result(record, block)
    if record.get("isMeta") or record.get("isSidechain"):
        return
    if record.get("isCompactSummary"):
        yield _event(record, events.COMPACTED, "\n".join(texts))
        return
    if results:
        for text in texts:
            kind = _class_of(text)
            if kind == events.PROMPT:
                yield _event(record, events.BESIDE_RESULT, text)
            elif kind == events.INTERRUPT:
                yield _event(record, kind, text)
        return
    text = "\n".join(texts)
    kind = _class_of(text, of_program=str(record.get("entrypoint") or "").startswith("sdk"))
    if kind and (text.strip() or images):
        yield replace(_event(record, kind, _typed_text(kind, text)), images=images)


def _class_of(text: str, *, of_program: bool = False) -> str:
    """Return the kind of a text with the role of the user; "" for what a program injected."""
    text = text.lstrip()
    if text.startswith(_INTERRUPT):
        return events.INTERRUPT
    if _SLASH_COMMAND.search(text[:2000]) and text.startswith("<command-"):
        return events.SLASH_COMMAND
    if _SHELL_COMMAND.match(text):
        return events.SHELL_COMMAND
    if text.startswith((*_PEER, *_OF_PROGRAMS)) or _WRAPPED.match(text) or _INJECTED.match(text):
        return ""
    if text.startswith(_PLAN):
        return events.PLAN
    if of_program:
        return events.AUTOMATED
    return events.SLASH_COMMAND if _BARE_COMMAND.match(text) else events.PROMPT


def _typed_text(kind: str, text: str) -> str:
    """Return what the person typed, without the tags that wrap it."""
    if kind == events.SHELL_COMMAND:
        match = _SHELL_COMMAND.search(text)
        return match[1] if match else text
    if kind == events.SLASH_COMMAND and (name := _SLASH_COMMAND.search(text)):
        arguments = _ARGUMENTS.search(text)
        return f"{name[1]} {arguments[1] if arguments else ''}".strip()
    return text


def _result(record: dict[str, Any], block: dict[str, Any]) -> Iterator[Event]:
    content = block.get("content")
    if isinstance(content, list):
        parts = (str(part.get("text") or "") for part in content if isinstance(part, dict))
        text = "\n".join(part for part in parts if part)
    else:
        text = str(content or "")
    is_error = block.get("is_error") is True
    result = _event(record, events.TOOL_RESULT, text)
    yield replace(result, call=str(block.get("tool_use_id") or ""), is_error=is_error)
    if is_error and text.startswith(_NOT_DONE) and (reason := _REASON.search(text)):
        typed = reason[1].strip()
        if typed and not typed.startswith(_QUESTIONS):
            yield _event(record, events.REFUSAL, typed)


def _assistant(record: dict[str, Any]) -> Iterator[Event]:
    message = record.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    if record.get("isApiErrorMessage"):
        yield _event(record, events.API_ERROR, json.dumps(content)[:500])
        return
    for block in content if isinstance(content, list) else []:
        if not isinstance(block, dict):
            continue
        if block.get("type") == "text" and block.get("text"):
            yield _event(record, events.TEXT, str(block["text"]))
        elif block.get("type") == "tool_use":
            values = block.get("input")
            yield replace(
                _event(record, events.TOOL_CALL, ""),
                tool=str(block.get("name") or ""),
                call=str(block.get("id") or ""),
                input=values if isinstance(values, dict) else {},
            )


def _attachment(record: dict[str, Any]) -> Iterator[Event]:
    attachment = record.get("attachment")
    if not isinstance(attachment, dict) or attachment.get("type") != "queued_command":
        return
    prompt = attachment.get("prompt")
    if isinstance(prompt, list):
        prompt = "\n".join(str(part.get("text") or "") for part in prompt if isinstance(part, dict))
    if prompt and _class_of(str(prompt)) == events.PROMPT:
        yield _event(record, events.QUEUED, str(prompt))


def _event(record: dict[str, Any], kind: str, text: str) -> Event:
    return Event(
        kind=kind,
        uuid=str(record.get("uuid") or ""),
        at=str(record.get("timestamp") or ""),
        text=text,
        parent=str(record.get("parentUuid") or ""),
        session=str(record.get("sessionId") or ""),
        folder=str(record.get("cwd") or ""),
        branch=str(record.get("gitBranch") or ""),
        in_subagent=record.get("isSidechain") is True,
    )
