"""What narrows a search of lessons down besides categories: tags, type, when they were last changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class Filter:
    """Only lessons with one of these tags, of this type, new or changed in this time.

    What is neither committed nor dated is of now.
    """

    tags: Sequence[str] = ()
    type: str = ""
    since: datetime | None = None
    until: datetime | None = None  # up to, and not at, this moment

    def where(self) -> list[str]:
        """Return the conditions on the rows' columns, all of which hold."""
        tests = []
        if self.tags:
            own = "concat('|', lower(array_to_string(tags, '|')), '|')"
            named = (f"contains({own}, {_quoted(f'|{tag.strip().lower()}|')})" for tag in self.tags)
            tests.append(" OR ".join(named))
        if self.type:
            tests.append(f"type = {_quoted(self.type)}")
        undated = "(created_at IS NULL AND updated_at IS NULL)"
        now = datetime.now(UTC)
        if self.since:
            later = [
                f"{column} >= {_moment(self.since)}" for column in ("created_at", "updated_at")
            ]
            tests.append(" OR ".join([*later, undated] if self.since <= now else later))
        if self.until:
            before = [
                f"({column} IS NULL OR {column} < {_moment(self.until)})"
                for column in ("created_at", "updated_at")
            ]
            tests.append(" AND ".join(before))
            tests += [f"NOT {undated}"] if self.until <= now else []
        return tests


EVERYTHING = Filter()


def from_json(values: Mapping[str, Any]) -> Filter:
    """Make a filter of JSON values: moments are ISO 8601, "" for none."""
    since, until = (values.get(key) or "" for key in ("since", "until"))
    return Filter(
        tuple(values.get("tags") or ()),
        values.get("type") or "",
        datetime.fromisoformat(since) if since else None,
        datetime.fromisoformat(until) if until else None,
    )


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _moment(time: datetime) -> str:
    return f"timestamp '{time.astimezone(UTC).isoformat()}'"
