"""The records that the journal has of a session: its prompts, its observations and a summary.

They are a view over its moments, see `observe`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC
from typing import Any

PROMPT, OBSERVATION, SUMMARY = "prompt", "observation", "summary"
KINDS = (PROMPT, OBSERVATION, SUMMARY)
# of observations; the nouns of the field
TYPES = ("bugfix", "feature", "refactor", "change", "discovery", "decision")
CONCEPTS = (
    *("how-it-works", "why-it-exists", "what-changed", "problem-solution", "gotcha"),
    *("pattern", "trade-off"),
)
# of a summary, in this order
FIELDS = ("request", "investigated", "learned", "completed", "next_steps", "notes")
SHORT = 8  # characters of a session's id that begin the ids of its records


@dataclass(frozen=True, slots=True)
class Command:
    """A shell command that the agent ran. `status` is its exit status; None if nobody knows it.

    `output` has the lines of a failed one that say why, and its ends; "" for the others.
    """

    text: str
    status: int | None = None
    failed: bool = False
    output: str = ""


@dataclass(frozen=True, slots=True)
class Record:
    """A prompt, an observation or the summary of a session.

    `id` is `<short_id of the session>-<kind letter><number>` such as `3f2a91c0-p3`, the second
    observation of prompt 3 `3f2a91c0-o3.2`, the summary `3f2a91c0-s`. `number` counts the prompts of
    a session from 1; an observation has the number of its prompt, 0 before the first; the summary
    the last. `at` is ISO 8601 in UTC, "" where the transcript has none. `uuids` name the
    transcript's records it was made from, and for an observation its prompt's record, too.
    """

    id: str
    kind: str
    number: int
    at: str
    title: str  # one line
    text: str  # the prompt as typed; the narrative; "" for a summary, which has `fields`
    uuids: tuple[str, ...] = ()
    branch: str = ""
    origin: str = ""  # of a prompt: the kind of its event (`events.PROMPT`, `QUEUED`, `PLAN`...)
    context: str = ""  # of a prompt: the end of what the agent had said, which it answers
    type: str = ""  # of an observation: one of TYPES
    facts: tuple[str, ...] = ()
    concepts: tuple[str, ...] = ()
    files_read: tuple[str, ...] = ()  # relative to the project's folder; absolute outside of it
    files_modified: tuple[str, ...] = ()
    commands: tuple[Command, ...] = ()
    errors: tuple[str, ...] = ()  # of tools other than the shell: the lines that say why
    fields: Mapping[str, str] = field(default_factory=dict)  # of a summary: FIELDS -> text


@dataclass(frozen=True, slots=True)
class ReadTo:
    """The part of a transcript that was read for good: `bytes` from its beginning, and their `hash`.

    Moments before `place` were made of them and stay; what follows is read again when the transcript
    grows, since its last turn may have gone on.
    """

    bytes: int = 0
    hash: str = ""  # SHA-256 of those bytes, 16 hexadecimal digits
    place: int = 0
    size: int = 0  # of the transcript when it was read last
    state: Mapping[str, Any] = field(default_factory=dict)  # what a reader needs to go on: JSON


@dataclass(frozen=True, slots=True)
class SessionHead:
    """A conversation with an agent, without its records."""

    id: str  # the agent's own
    agent: str  # claude | codex
    transcript: str  # the path of the agent's file
    short: str = ""  # begins the ids of its records; no other session has it
    project: str = ""
    folder: str = ""  # where the agent was started
    branch: str = ""  # the first
    began: str = ""
    ended: str = ""  # of the last event
    parent: str = ""  # of a subagent's transcript: the session that started it
    prompts: int = 0  # typed by a person, in any way
    tool_calls: int = 0
    errors: int = 0  # results of tools that are errors, refusals too


@dataclass(frozen=True, slots=True)
class Session(SessionHead):
    """A conversation with an agent, and its records in their order, where they were asked for."""

    version: str = ""  # of the agent
    unread: int = 0  # lines and record types that nobody described yet
    written: int = 0  # when it was taken in last, in nanoseconds since 1970
    read: ReadTo = field(default_factory=ReadTo)
    records: tuple[Record, ...] = ()


@dataclass(frozen=True, slots=True)
class ListedSession(SessionHead):
    """A session in a list: what it was about, and the files it modified.

    `prompts` are what people, or the program that asked, said; `typed` has slash commands, too.
    """

    title: str = ""
    typed: int = 0
    request: str = ""
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class KeptRecord(Record):
    """A record with its session and project; without a branch it has the session's."""

    session: str = ""
    project: str = ""


@dataclass(frozen=True, slots=True)
class SessionRecords:
    """A session and some of its records."""

    session: ListedSession
    records: tuple[KeptRecord, ...]


@dataclass(frozen=True, slots=True)
class JournalHit(KeptRecord):
    """A record and why it was found. `score` is `cosine + full_text`, in absolute units.

    `text` is the best of its pieces. `uuids` name the transcript's records that it was made
    from, and the other records of its turn that were found. Only one that `is_whole` has the
    rest of a record, and all of its text.
    """

    files: tuple[str, ...] = ()
    score: float = 0.0
    cosine: float = 0.0
    full_text: float = 0.0
    is_whole: bool = False

    @property
    def by_words(self) -> bool:
        """Whether words alone found it: no vector took part."""
        return bool(self.full_text) and not self.cosine

    def as_json(self, *, explain: bool = False) -> dict[str, Any]:
        """Return the hit as JSON values; with `explain` also `cosine` and `full_text`."""
        values = {name: getattr(self, name) for name in IN_JSON}
        evidence = ("score", "cosine", "full_text") if explain else ("score",)
        values |= {name: round(getattr(self, name), 4) for name in evidence}
        values |= {"by_words": self.by_words}
        whole = fields(KeptRecord) if self.is_whole else ()
        return values | {each.name: getattr(self, each.name) for each in whole}

    @classmethod
    def of_row(
        cls, row: Mapping[str, Any], cosine: float = 0.0, full_text: float = 0.0
    ) -> JournalHit:
        """Return the hit of a row of the journal's table."""
        when = row["at"].astimezone(UTC).isoformat() if row["at"] else ""
        same: dict[str, Any] = {**row, "id": row["record"], "at": when}
        same = {name: same[name] for name in _AS_IN_ROW}
        same |= {name: tuple(row[name] or ()) for name in _LISTS}
        score = cosine + full_text
        return cls(**same, score=score, cosine=cosine, full_text=full_text)


_AS_IN_ROW = "id kind session project branch at number title text type".split()
_LISTS = "concepts files uuids".split()
IN_JSON = (*_AS_IN_ROW, *_LISTS)  # of each hit; one that is whole has more


@dataclass(frozen=True, slots=True)
class JournalHits:
    """The hits of a search of the journal. `missing` is what there is nothing of: see `words.journal`."""

    hits: tuple[JournalHit, ...] = ()
    older: int = 0  # of the first without a window, how many are before it
    text_only: str = ""  # why only full text was searched, if so
    project: str = ""  # that was searched
    embedder: str = ""
    missing: str = ""  # sessions | project


@dataclass(frozen=True, slots=True)
class Around:
    """Records in the order of time, each session's together.

    `anchor` is the id of one; "" for a time, which lies before the record at `before`.
    """

    records: tuple[JournalHit, ...]
    anchor: str = ""
    before: int = 0  # records that come before the anchor
    missing: str = ""  # sessions | project


def private_id(session: str) -> str:
    """Return the name of a session in files that are shared: only its owner can look it up."""
    return hashlib.blake2b(session.encode(), digest_size=4).hexdigest() if session else ""


def short_id(session: str) -> str:
    """Return the 8 characters of a session's id that begin the ids of its records.

    The first ones; of an id that begins with the time (UUID 7: Codex) the last, since all sessions of
    a minute share the first.
    """
    if len(session) == 36 and session[14] == "7":
        return session[-SHORT:]
    return session[:SHORT]
