"""The answer to a question: its text, and the passages that it rests on."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

LESSONS, JOURNAL = "lessons", "journal"  # kinds of passages

# how a question ended
ANSWERED = "answered"  # a model wrote the answer
PASSAGES = "passages"  # no model is set: the passages are the answer
UNKNOWN = "unknown"  # nothing reaches the floor, or nothing answers; `passages` has the nearest
FAILED = "failed"  # the model did not answer; `trouble` says why, the passages are there


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage of the vault, or a record of the journal. `number` is how an answer cites it: [1]."""

    number: int  # 0 before it is part of an answer
    kind: str  # lessons | journal
    id: str  # of the lesson or record
    title: str
    path: str  # of the file from the vault's root; "" for a record
    section: str  # lesson of a document, and heading of what matched, or ""
    line: int  # of the file at which what matched begins; 0 where it has none
    link: str
    author: str
    date: str  # ISO 8601, of the last change
    score: float
    text: str  # what a model is shown
    span: tuple[int, int] = (0, 0)  # characters of the lesson's text that it has; (0, 0): all
    is_weak: bool = False  # whether it is below the floor
    best: tuple[str, ...] = ()  # the sentences of it that answer the question, best first

    def as_json(self) -> dict[str, Any]:
        """Return the passage as JSON values."""
        values = {**asdict(self), "best": list(self.best)}
        del values["span"]  # of interest to the next search alone
        return values


@dataclass(frozen=True, slots=True)
class Search:
    """The search that was made for a question. `place` is the document or category it was made in."""

    query: str
    kind: str = "lessons"
    category: str = ""
    place: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer. `text` cites numbers of `sources` alone, which are in the order of citing."""

    status: str
    text: str
    sources: tuple[Passage, ...]
    passages: tuple[Passage, ...]  # all that were returned, best first
    session_id: str
    model: str = ""  # name of the model, "" without one
    search: Search | None = None  # None: answered without a search
    trouble: str = ""  # why the model did not answer, or not to its end
    hint: str = ""  # what to do about it, or how to get a written answer

    def as_json(self) -> dict[str, Any]:
        """Return the answer as JSON values; its text is `answer`."""
        values = asdict(self)
        for name in ("sources", "passages"):
            values[name] = [each.as_json() for each in getattr(self, name)]
        return {"answer": values.pop("text"), **values}
