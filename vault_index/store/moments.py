"""Moments as people type them, and moments and durations as they read them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

from vault_index.errors import VaultError

MAX_DAYS = 200_000  # the calendar begins 740,000 days ago
TO_MINUTES, TO_SECONDS = "%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S"


def since(text: str) -> str:
    """Return the beginning of a time, such as 2026-03-31 or 30d, as ISO 8601. Raises VaultError."""
    return _moment(text, 0)


def until(text: str) -> str:
    """Return the end of a time as ISO 8601: a day is in it to its end. Raises VaultError."""
    return _moment(text, 1)


def _moment(text: str, days_more: int) -> str:
    text = text.strip()
    ago = re.fullmatch(r"(\d{1,5})([dw])", text)
    if ago:
        days = int(ago[1]) * (7 if ago[2] == "w" else 1)
        return (datetime.now(UTC) - timedelta(days=min(days, MAX_DAYS))).isoformat()
    try:
        moment = datetime.fromisoformat(text)
        if len(text) <= len("2026-03-31"):  # a day without a time
            moment += timedelta(days=days_more)
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return moment.astimezone(UTC).isoformat()
    except (ValueError, OverflowError):
        raise VaultError(f"no date {text!r}", "write it like 2026-03-31, 30d or 8w") from None


def window(began: str | None, ended: str | None = None) -> dict[str, Any]:
    """Return the `since` and `until` of a question to the journal. Raises VaultError.

    Without a beginning it is the usual window; "all" has no beginning.
    """
    first = None if began is None else "" if began == "all" else since(began)
    return {"since": first, "until": until(ended) if ended else ""}


def ago(seconds: float) -> str:
    """Return how long ago something was, such as "5 minutes ago"."""
    for unit, size in (("days", 86_400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size:.0f} {unit} ago"
    return f"{max(0, seconds):.0f} seconds ago"


def local(at: str, form: str = TO_MINUTES) -> str:
    """Return a moment of ISO 8601 as a local time; any other text as it is."""
    try:
        return datetime.fromisoformat(at).astimezone().strftime(form)
    except (ValueError, OverflowError, OSError):
        return at


def lasted(began: str, ended: str) -> str:
    """Return how long something took, in words; "" where a moment is not one."""
    try:
        length = datetime.fromisoformat(ended) - datetime.fromisoformat(began)
    except (ValueError, TypeError):
        return ""
    if length < timedelta(minutes=2):
        return f"{max(0, round(length.total_seconds()))} s"
    minutes = round(length.total_seconds() / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes / 60:.0f} h"


def milliseconds(ms: float) -> str:
    """Return a short time for people: tenths only below ten."""
    return f"{ms:.1f} ms" if ms < 10 else f"{ms:,.0f} ms"
