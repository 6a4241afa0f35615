"""Records that a search of the journal finds, each with its score."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import UTC
from typing import Any

from vault_index.journal.record import KeptRecord


@dataclass(frozen=True, slots=True)
class JournalHit:
    """A record and why it was found. `score` is `cosine + full_text`, in absolute units.

    `text` is the best of its pieces. `uuids` are those of the transcript's records that it was made
    from, and those of the other records of its turn that were found.
    """

    id: str
    kind: str  # prompt | observation | summary
    session: str
    project: str
    branch: str
    at: str  # ISO 8601, UTC; "" where the transcript has no time
    number: int
    title: str
    text: str
    type: str
    concepts: tuple[str, ...]
    files: tuple[str, ...]
    uuids: tuple[str, ...]
    score: float = 0.0
    cosine: float = 0.0
    full_text: float = 0.0
    path: str = ""  # of the session's file, from the journal's folder; not in the JSON
    whole: KeptRecord | None = None  # all that the session's file says of it, if asked for

    def as_json(self, *, explain: bool = False) -> dict[str, Any]:
        """Return the hit as JSON values; with `explain` also `cosine` and `full_text`."""
        values = {name: getattr(self, name) for name in _OF_RECORD}
        evidence = ("score", "cosine", "full_text") if explain else ("score",)
        values |= {name: round(getattr(self, name), 4) for name in evidence}
        return values | {name: getattr(self.whole, name) for name in _OF_WHOLE if self.whole}

    @classmethod
    def of_row(
        cls, row: Mapping[str, Any], cosine: float = 0.0, full_text: float = 0.0
    ) -> JournalHit:
        """Return the hit of a row of the journal's table."""
        same: dict[str, Any] = {name: row[name] for name in _AS_IN_ROW}
        return cls(
            **same,
            id=row["record"],
            at=row["at"].astimezone(UTC).isoformat() if row["at"] else "",
            concepts=tuple(row["concepts"] or ()),
            files=tuple(row["files"] or ()),
            uuids=tuple(row["uuids"] or ()),
            score=cosine + full_text,
            cosine=cosine,
            full_text=full_text,
        )


_AS_IN_ROW = "kind session project branch number title text type path".split()
_OF_RECORD = [field.name for field in fields(JournalHit)][:13]  # to `uuids`
_OF_WHOLE = [field.name for field in fields(KeptRecord)]


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
    """Records in the order of time, those of a session together in it.

    `anchor` is the id of one; "" for a time, which lies before the record at `before`.
    """

    records: tuple[JournalHit, ...]
    anchor: str = ""
    before: int = 0  # records that come before the anchor
    missing: str = ""  # sessions | project
