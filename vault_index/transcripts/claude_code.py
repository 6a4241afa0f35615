"""Transcripts of Claude Code: JSON lines, one record per line and content block.

The format is internal and changes (2.1.x here; 1.0.x and 2.0.x in the tests): unknown records are
counted, never fatal. Records keep the file's order: timestamps go backwards in most files. Half of the
bytes hold no event; where a line begins with its type, it is not parsed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from vault_index.transcripts import events, vocabulary
from vault_index.transcripts.events import TranscriptEvent

# Record types that hold no event: snapshots, titles, settings.
SILENT = frozenset(
    "progress file-history-snapshot file-history-delta last-prompt permission-mode ai-title mode"
    " pr-link summary atis-latch custom-title agent-name tag api-request api-request-blob tools-used"
    " cost-state system".split()
)
FORGOTTEN_RECORDS = 1000  # a queued prompt that was not taken in so many was lost with its process
TRACE_RECORDS = 10  # after its removal from the queue a prompt has its record within so many
_SLASH_COMMAND = re.compile(r"<command-name>\s*(/?[^<]*?)\s*</command-name>")
_ARGUMENTS = re.compile(r"<command-args>(.*?)</command-args>", re.DOTALL)
_SHELL_COMMAND = re.compile(r"<bash-input>(.*?)</bash-input>", re.DOTALL)
_BARE_COMMAND = re.compile(r"/[a-z][\w:-]*\s*\Z")
_WRAPPED = re.compile(r"<(?:local-command|command-message)[\w-]*[> ]")
_PRINTED = re.compile(r"<(bash-std(?:out|err))>(.*?)(?:</\1>|\Z)", re.DOTALL)
_INJECTED = re.compile(r"<[a-z]+(?:-[a-z]+)+[ >]")
_INTERRUPT = "[Request interrupted"
_PEER = ("Another Claude session sent a message:", "<teammate-message", "<agent-message")
_OF_HOOKS = ("Operation stopped by hook:", "Stop hook feedback:")
_OF_SKILL = "Base directory for this skill"
_PLAN = "Implement the following plan:"
_REASON = re.compile(r"the user said:\s*(.*)\Z", re.DOTALL)
_QUESTIONS = "The user wants to clarify these questions."
_ANSWERS = re.compile(
    r"(?s)(?:User has answered your questions|Your questions have been answered):(.*?)"
    r"(?:\. You can now continue.*)?\Z"
)
_ANSWER = re.compile(r'"([^"]*)"="([^"]*)"')
_EXITED = re.compile(r"Exit code (\d{1,9})\b")


class ClaudeReader(events.TranscriptReader):
    """Reads a transcript line by line."""

    def begin(self, state: Mapping[str, Any]) -> None:
        del state  # it is quiet only where it has none
        self._queue = _Queue()
        self._calls: set[str] = set()  # since the last prompt: a message is written as it grows

    @property
    def is_quiet(self) -> bool:
        return self._queue.is_empty

    def events(self, line: bytes) -> Iterator[TranscriptEvent]:
        for record in self.records(line):
            kind = str(record.get("type"))
            if kind in SILENT:
                continue
            if self.of_subagent:  # as if it were of a session
                record |= {"isSidechain": False, "entrypoint": "sdk"}
            yield from self._queue.untraced()
            if kind in ("user", "attachment"):
                of_record = list((_user if kind == "user" else _attachment)(record))
                self._queue.typed(of_record)
                if of_record and of_record[0].kind in events.OPENING:
                    self._calls.clear()
                yield from of_record
            elif kind == "assistant":
                for event in _assistant(record):
                    if event.kind != events.TOOL_CALL or event.call not in self._calls:
                        self._calls.add(event.call)
                        yield event
            elif kind == "queue-operation":
                self._queue.operation(record)
            else:
                self.unread += 1

    def end(self) -> Iterator[TranscriptEvent]:
        yield from self._queue.untraced(at_end=True)


@dataclass(slots=True)
class _Queued:
    record: dict[str, Any]
    is_traced: bool = False  # a record of its own was there
    age: int = 0  # in records

    @property
    def text(self) -> str:
        return str(self.record.get("content") or "")


class _Queue:
    """Prompts typed while the agent works: a queue, which some versions record nowhere else."""

    def __init__(self) -> None:
        self._waiting: list[_Queued] = []
        self._taken: list[_Queued] = []

    @property
    def is_empty(self) -> bool:
        return not self._waiting and not self._taken

    def typed(self, recorded: Iterable[TranscriptEvent]) -> None:
        if self.is_empty:
            return
        texts = {event.text.strip() for event in recorded if event.kind in events.TYPED}
        for queued in (*self._waiting, *self._taken):
            queued.is_traced = queued.is_traced or queued.text.strip() in texts

    def operation(self, record: dict[str, Any]) -> None:
        """Take one operation: `enqueue`, then `remove` (taken in the turn) or `dequeue` (sent)."""
        operation = record.get("operation")
        if operation == "enqueue":
            self._waiting.append(_Queued(record))
        elif operation == "dequeue":
            self._waiting = self._waiting[1:]
        elif operation == "popAll":
            self._waiting = []
        elif operation == "remove" and self._waiting:
            self._taken.append(replace(self._waiting.pop(0), age=0))

    def untraced(self, *, at_end: bool = False) -> Iterator[TranscriptEvent]:
        """Yield the prompts that were taken and have no record of their own."""
        if self.is_empty:
            return
        for queued in (*self._waiting, *self._taken):
            queued.age += 1
        self._waiting = [queued for queued in self._waiting if queued.age <= FORGOTTEN_RECORDS]
        taken, self._taken = self._taken, []
        for queued in taken:
            if queued.is_traced or _class_of(queued.text) != events.PROMPT:
                continue
            if at_end or queued.age > TRACE_RECORDS:
                yield _event(queued.record, events.QUEUED, queued.text)
            else:
                self._taken.append(queued)


def _blocks(record: dict[str, Any]) -> list[dict[str, Any]]:
    message = record.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    blocks = content if isinstance(content, list) else [{"type": "text", "text": content or ""}]
    return [block for block in blocks if isinstance(block, dict)]


def _text_of(parts: Any) -> str:
    if not isinstance(parts, list):
        return str(parts or "")
    return "\n".join(
        str(part["text"]) for part in parts if isinstance(part, dict) and part.get("text")
    )


def _user(record: dict[str, Any]) -> Iterator[TranscriptEvent]:
    """Yield the events of a record with the role of the user: typed, injected, or results of tools."""
    blocks = _blocks(record)
    results = [block for block in blocks if block.get("type") == "tool_result"]
    texts = [str(block.get("text") or "") for block in blocks if block.get("type") == "text"]
    images = sum(block.get("type") == "image" for block in blocks)
    for block in results:
        yield from _result(record, block)
    whole = "\n".join(texts)
    if whole.startswith(_OF_HOOKS) and not record.get("isSidechain"):
        yield _event(record, events.STOPPED, whole)
    if record.get("isMeta") or record.get("isSidechain"):
        return
    if printed := _PRINTED.findall(whole) if whole.lstrip().startswith("<bash-std") else ():
        yield _event(record, events.PRINTED, "\n".join(text for _, text in printed).strip())
    if record.get("isCompactSummary") or whole.lstrip().startswith(_PEER):
        yield _event(record, events.TOLD, whole)
        return
    if results:
        for text in texts:
            kind = _class_of(text)
            if kind == events.PROMPT:
                yield _event(record, events.BESIDE_RESULT, text)
            elif kind == events.INTERRUPT:
                yield _event(record, kind, text)
        return
    kind = _class_of(whole, of_program=str(record.get("entrypoint") or "").startswith("sdk"))
    if kind and (whole.strip() or images):
        yield _event(record, kind, _typed_text(kind, whole), images=images)


def _class_of(text: str, *, of_program: bool = False) -> str:
    """Return the kind of a text with the role of the user; "" for what a program injected."""
    text = text.lstrip()
    if text.startswith(_INTERRUPT):
        return events.INTERRUPT
    if _SLASH_COMMAND.search(text[:2000]) and text.startswith("<command-"):
        return events.SLASH_COMMAND
    if _SHELL_COMMAND.match(text):
        return events.SHELL_COMMAND
    if text.startswith((*_PEER, *_OF_HOOKS, _OF_SKILL, "<bash-std")) or _WRAPPED.match(text):
        return ""
    if _INJECTED.match(text):
        return ""
    if text.startswith(_PLAN):
        return events.PLAN
    if of_program:
        return events.AUTOMATED
    return events.SLASH_COMMAND if _BARE_COMMAND.match(text) else events.PROMPT


def _typed_text(kind: str, text: str) -> str:
    if kind == events.SHELL_COMMAND and (command := _SHELL_COMMAND.search(text)):
        return command[1]
    if kind == events.SLASH_COMMAND and (name := _SLASH_COMMAND.search(text)):
        arguments = _ARGUMENTS.search(text)
        return f"{name[1]} {arguments[1] if arguments else ''}".strip()
    return text


def _result(record: dict[str, Any], block: dict[str, Any]) -> Iterator[TranscriptEvent]:
    text = _text_of(block.get("content"))
    is_error = block.get("is_error") is True
    is_refused = is_error and vocabulary.is_refusal(text)
    exited = _EXITED.match(text) if is_error else None
    yield _event(
        record,
        events.TOOL_RESULT,
        text,
        call=str(block.get("tool_use_id") or ""),
        is_error=is_error,
        status=int(exited[1]) if exited else None,
    )
    if not is_error and (answers := _ANSWERS.match(text)):
        pairs = _ANSWER.findall(answers[1])
        typed = "\n".join(" ".join(pair) for pair in pairs) or answers[1].strip()
        yield _event(record, events.ANSWER, typed)
    if is_refused and (reason := _REASON.search(text)):
        typed = reason[1].strip()
        if typed and not typed.startswith(_QUESTIONS):
            yield _event(record, events.REFUSAL, typed)


def _assistant(record: dict[str, Any]) -> Iterator[TranscriptEvent]:
    message = record.get("message")
    if record.get("isApiErrorMessage"):
        return
    if isinstance(message, dict) and message.get("model") == "<synthetic>":
        return  # "No response requested."
    for block in _blocks(record):
        if block.get("type") == "text" and block.get("text"):
            yield _event(record, events.TEXT, str(block["text"]))
        elif block.get("type") == "tool_use":
            values = block.get("input")
            yield _event(
                record,
                events.TOOL_CALL,
                text="",
                tool=str(block.get("name") or ""),
                call=str(block.get("id") or ""),
                input=values if isinstance(values, dict) else {},
            )


def _attachment(record: dict[str, Any]) -> Iterator[TranscriptEvent]:
    attachment = record.get("attachment")
    if not isinstance(attachment, dict) or attachment.get("type") != "queued_command":
        return
    prompt = _text_of(attachment.get("prompt"))
    if prompt and _class_of(prompt) == events.PROMPT:
        yield _event(record, events.QUEUED, prompt)


def _event(record: dict[str, Any], kind: str, text: str, **more: Any) -> TranscriptEvent:
    return TranscriptEvent(
        kind=kind,
        uuid=str(record.get("uuid") or ""),
        at=str(record.get("timestamp") or ""),
        text=text,
        session=str(record.get("sessionId") or ""),
        folder=str(record.get("cwd") or ""),
        branch=str(record.get("gitBranch") or ""),
        version=str(record.get("version") or ""),
        in_subagent=record.get("isSidechain") is True,
        **more,
    )
