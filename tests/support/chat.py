"""A model that converses by a script, and passages for it, for tests of answers with sources."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from vault_index.ask import respond
from vault_index.ask.answer import Answer, Passage
from vault_index.ask.conversations import Exchange
from vault_index.ask.passages import NAME, SearchResult, Wanted
from vault_index.llm.backend import Question, Reply, Take, ToolCall

TOKEN = "tk-not-for-models-0123456789"


def search_for(query: str, **more: Any) -> Reply:
    """Return a model's wish to search."""
    return calls(ToolCall("call-1", NAME, {"query": query, **more}))


def calls(*wanted: ToolCall, text: str = "") -> Reply:
    """Return a model's wish to have tools called."""
    return Reply(text, calls=wanted)


class ScriptedChat:
    """A model that says its lines in their order, in small pieces; `asked` are the questions to it.

    A line is a text, a reply, or an error: it is raised after half of the text before it in `cut`.
    """

    name = "scripted:chat"

    def __init__(
        self, *lines: str | Reply | Exception, can_call_tools: bool = True, cut: str = ""
    ) -> None:
        self.can_call_tools = can_call_tools
        self.asked: list[Question] = []
        self._lines = list(lines)
        self._cut = cut

    def converse(self, question: Question, take: Take | None = None) -> Reply:
        """Return the next line."""
        self.asked.append(question)
        line = self._lines.pop(0)
        if isinstance(line, Exception):
            if take is not None:
                _say(self._cut, take)
            raise line
        reply = Reply(line) if isinstance(line, str) else line
        if take is not None:
            _say(reply.text, take)
        return reply

    @property
    def seen(self) -> str:
        """All that it was ever sent."""
        return "\n".join(
            f"{question.system}\n{question.turns}\n{question.tools}" for question in self.asked
        )


def _say(text: str, take: Take) -> None:
    for start in range(0, len(text), 5):
        take(text[start : start + 5])


def passage(number: int, text: str = "Raise the heap.", **more: Any) -> Passage:
    """Return a passage of a lesson."""
    values: dict[str, Any] = {
        "number": number,
        "kind": "lessons",
        "id": f"devops/lesson-{number}",
        "title": f"Lesson {number}",
        "path": f"lessons/devops/lesson-{number}.md",
        "section": "",
        "line": 9,
        "link": "",
        "author": "Ada Lovelace",
        "date": "2026-11-20T10:00:00+00:00",
        "score": 0.8,
        "text": text,
    }
    return Passage(**{**values, **more})


class Vaultlike:
    """A search that returns the same passages each time; `searches` are those that were asked for.

    `then` are what it returns after the first.
    """

    def __init__(self, *passages: Passage, nearest: Sequence[Passage] = ()) -> None:
        weak = tuple(replace(each, is_weak=True) for each in nearest)
        self.result = SearchResult(passages or weak)
        self.then: list[SearchResult] = []
        self.searches: list[Wanted] = []

    def find(self, wanted: Wanted) -> SearchResult:
        """Return the passages."""
        self.searches.append(wanted)
        return self.then.pop(0) if self.then and len(self.searches) > 1 else self.result


def ask(
    model: Any,
    vault: Vaultlike,
    query: str = "how do we raise the heap in the build?",
    before: Iterable[Exchange] = (),
    max_searches: int = 1,
) -> tuple[Answer, str]:
    """Ask a model; return the answer and the text that was streamed."""
    pieces: list[str] = []

    def event(values: Any) -> None:
        if values["event"] == "piece":
            pieces.append(values["text"])

    answer = respond.answer(query, model, vault.find, event, tuple(before), max_searches)
    return answer, "".join(pieces)
