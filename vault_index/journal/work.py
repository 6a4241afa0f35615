"""A session as it is read: its turns become records, and what outlasts a turn is remembered."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from vault_index.journal import observe
from vault_index.journal.record import SUMMARY, Session, short_id
from vault_index.journal.summary import summary
from vault_index.transcripts import events, tools
from vault_index.transcripts.events import Event
from vault_index.transcripts.turns import Call, Turn, Turns

MOST_SEARCHES = 12  # the last ones
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\Z")
_CREATED = re.compile(r"Task #(\w+) created")
_SUBAGENT = "agent-"
_FIRST = ("session", "folder", "branch", "version")  # of which the first counts


class Work:
    """Takes the events of a session. `state` and `before` are those of the place where it goes on."""

    def __init__(
        self,
        stem: str,
        redact: Callable[[str], str],
        state: Mapping[str, Any],
        before: Session | None,
    ) -> None:
        self._stem = stem  # of the transcript's name
        self._meta = {
            name: str(state.get(name, ""))
            for name in ("session", "folder", "branch", "began", "ended", "version")
        }
        self._prompts = int(state.get("prompts", 0))
        self._tool_calls = int(state.get("tool_calls", 0))
        self._errors = int(state.get("errors", 0))
        self.number = int(state.get("number", 0))  # of the last prompt
        todos = state.get("todos") or {}
        self._todos = {str(key): (str(text), str(status)) for key, (text, status) in todos.items()}
        self._searches = list(map(str, state.get("searches") or []))
        is_interrupted = state.get("interrupted") is True
        self._turns = Turns(redact, str(state.get("said", "")), is_interrupted=is_interrupted)
        self._records = [
            record
            for record in (before.records if before else ())
            if before and record.kind != SUMMARY and record.number < before.read.number
        ]

    def state(self) -> dict[str, Any]:
        """Return what another needs to go on from here, where a turn ends: JSON, redacted."""
        return {
            **self._meta,
            "prompts": self._prompts,
            "tool_calls": self._tool_calls,
            "errors": self._errors,
            "number": self.number,
            "todos": {key: list(value) for key, value in self._todos.items()},
            "searches": list(self._searches),
            "said": self._turns.said,
            "interrupted": self._turns.is_interrupted,
        }

    def take(self, event: Event) -> None:
        """Add an event."""
        meta = self._meta
        for name in _FIRST:
            if not meta[name]:
                meta[name] = getattr(event, name)
        if at := observe.utc(event.at):
            meta["began"] = min(meta["began"] or at, at)
            meta["ended"] = max(meta["ended"], at)
        if not event.in_subagent:
            self._tool_calls += event.kind == events.TOOL_CALL
            self._errors += event.kind == events.TOOL_RESULT and event.is_error
        if turn := self._turns.take(event):
            self._finish(turn)

    def finish_turn(self) -> None:
        """End the turn: its records are made."""
        if turn := self._turns.end():
            self._finish(turn)

    def session(self) -> Session:
        """Return the session so far, with its summary."""
        session_id, parent = self._ids()
        records = list(self._records)
        ended = self._meta["ended"]
        made = summary(records, self._todos, self._searches, short_id(session_id), ended)
        return Session(
            id=session_id,
            agent="",
            transcript="",
            folder=self._meta["folder"],
            branch=self._meta["branch"],
            began=self._meta["began"],
            ended=ended,
            parent=parent,
            version=self._meta["version"],
            prompts=self._prompts,
            tool_calls=self._tool_calls,
            errors=self._errors,
            records=(*records, made) if made else tuple(records),
        )

    def _ids(self) -> tuple[str, str]:
        """Return the id of the session and that of its parent.

        The name of a transcript is its session's id; an export may have another name. A subagent's
        records have the id of the session that started it.
        """
        if self._stem.startswith(_SUBAGENT):
            return self._stem.removeprefix(_SUBAGENT), self._meta["session"]
        return (self._stem if _UUID.match(self._stem) else self._meta["session"] or self._stem), ""

    def _finish(self, turn: Turn) -> None:
        prompt = turn.prompt
        if prompt and events.is_internal(prompt.text):
            return
        for call in turn.calls:
            self._remember(call)
        short = short_id(self._ids()[0])
        if prompt and observe.is_kept(turn):
            self.number += 1
            self._prompts += prompt.kind in events.TYPED
            self._records.append(observe.prompt_record(turn, prompt, self.number, short))
        number = self.number
        records = observe.observations(turn, number, short, self._meta["folder"])
        self._records += records

    def _remember(self, call: Call) -> None:
        """Note todos and searches: the summary has those of the whole session."""
        if call.kind == tools.SEARCH and not call.in_subagent:
            if text := str(call.input.get("pattern") or call.input.get("query") or ""):
                text = text[:80]
                self._searches = [other for other in self._searches if other != text]
                self._searches = [*self._searches, text][-MOST_SEARCHES:]
        elif call.kind == tools.TODO and call.is_done and not call.is_error:
            self._todo(call)

    def _todo(self, call: Call) -> None:
        if todos := call.input.get("todos"):
            self._todos = {str(place): todo for place, todo in enumerate(todos)}
        elif subject := call.input.get("subject"):
            created = _CREATED.search(call.text)
            key = (
                f"#{created[1]}"
                if created
                else f"#{call.input.get('taskId') or len(self._todos) + 1}"
            )
            status = str(call.input.get("status") or "pending")
            self._todos[key] = (str(subject), status)
        key = f"#{call.input.get('taskId', '')}"
        if key in self._todos and (status := str(call.input.get("status") or "")):
            self._todos[key] = (self._todos[key][0], status)
