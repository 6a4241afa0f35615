"""Moments as people type them: a date, or a number of days or weeks ago."""

from __future__ import annotations

from vault_index.errors import VaultError

_MOST_DAYS = 200_000  # the calendar begins 740,000 days ago


def since(text: str) -> str:
    """Return the beginning of a time as ISO 8601. Raises VaultError."""
    return _moment(text, 0)


def until(text: str) -> str:
    """Return the end of a time as ISO 8601: a day is in it to its end. Raises VaultError."""
    return _moment(text, 1)


def _moment(text: str, days_more: int) -> str:
    import re
    from datetime import UTC, datetime, timedelta

    text = text.strip()
    ago = re.fullmatch(r"(\d{1,5})([dw])", text)
    if ago:
        days = int(ago[1]) * (7 if ago[2] == "w" else 1)
        return (datetime.now(UTC) - timedelta(days=min(days, _MOST_DAYS))).isoformat()
    try:
        moment = datetime.fromisoformat(text)
        if len(text) <= len("2026-03-31"):  # a day and no time of it
            moment += timedelta(days=days_more)
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return moment.astimezone(UTC).isoformat()
    except (ValueError, OverflowError):
        raise VaultError(f"no date {text!r}", "write it like 2026-03-31, 30d or 8w") from None


def ago(seconds: float) -> str:
    """Return how long ago something was, such as "5 minutes ago"."""
    for unit, size in (("days", 86_400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size:.0f} {unit} ago"
    return f"{max(0, seconds):.0f} seconds ago"
