"""Moments as people type them, and moments and durations as they read them."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from typing import Any

from vault_index.errors import VaultError

MAX_DAYS = 200_000  # the calendar begins 740,000 days ago
TO_MINUTES, TO_SECONDS = "%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S"
HINT = "write it like 2026-03-31, 30d, 8w, yesterday, last tuesday or 2 days ago"
_WEEKDAYS = "monday tuesday wednesday thursday friday saturday sunday".split()
_DAY = re.compile(
    rf"(?:(?P<day>today|yesterday)|(?:last\s+)?(?P<weekday>{'|'.join(_WEEKDAYS)})"
    r"|(?P<unit>(?:this|last)\s+(?:week|month)))(?:\s+(?:at\s+)?(?P<hour>\d{1,2}):(?P<minute>\d\d))?"
)
_AGO = re.compile(r"(\d{1,5})\s*(?:(?P<unit>minute|hour|day|week)s?\s+ago|(?P<short>[dw]))")
_TIMES = frozenset(
    "minute minutes hour hours day days week weeks weekend month months year years today yesterday"
    " tomorrow tonight noon midnight morning afternoon evening night mon tue tues wed thu thurs fri sat"
    " sun jan feb mar apr jun jul aug sep sept oct nov dec january february march april june july august"
    " september october november december".split()
).union(_WEEKDAYS)
_BESIDE_TIMES = frozenset("last next this the in on at of ago since until a an few".split())


def since(text: str) -> str:
    """Return the beginning of a time, such as yesterday or 30d, as ISO 8601. Raises VaultError."""
    return _span_or_raise(text)[0].astimezone(UTC).isoformat()


def until(text: str) -> str:
    """Return the end of a time as ISO 8601: a day is in it to its end. Raises VaultError."""
    return _span_or_raise(text)[1].astimezone(UTC).isoformat()


def days_before(days: int, last: datetime) -> datetime | None:
    """Return the time so many days before the last, before which things may go; None for 0: nothing."""
    try:
        return last - timedelta(days=days) if days else None
    except OverflowError:  # before the year 1
        return None


def _span_or_raise(text: str) -> tuple[datetime, datetime]:
    span = span_of(text, datetime.now(UTC))
    if span is None:
        raise VaultError(f"no date {text.strip()!r}", HINT)
    return span


def span_of(text: str, now: datetime) -> tuple[datetime, datetime] | None:
    """Return the beginning and the end of the time that a text names; None where it names none.

    It is ISO 8601, `30d`, `2 days ago`, `today`, `yesterday 14:00`, `last tuesday` or `this week`.
    Without a zone it is local. A time of a day begins and ends at once.
    """
    text = " ".join(text.lower().split())
    with suppress(ValueError, OverflowError):  # no calendar has the time
        if ago := _AGO.fullmatch(text):
            unit = ago["unit"] or ("day" if ago["short"] == "d" else "week")
            moment = now - min(timedelta(**{f"{unit}s": int(ago[1])}), timedelta(days=MAX_DAYS))
            return moment, moment
        if match := _DAY.fullmatch(text):
            return _days(match, now.astimezone())
        moment = datetime.fromisoformat(text.upper())
        moment = moment if moment.tzinfo else moment.astimezone()
        is_day = len(text) <= len("2026-03-31")
        return moment, moment + timedelta(days=1) if is_day else moment
    return None


def _days(match: re.Match[str], now: datetime) -> tuple[datetime, datetime]:
    """Return the days, or the time of a day, that a text names. Raises ValueError."""
    day = datetime(now.year, now.month, now.day)  # of the clock on the wall
    days = 1
    if match["day"] == "yesterday":
        day -= timedelta(days=1)
    elif match["weekday"]:  # the last one before today
        day -= timedelta(days=(day.weekday() - _WEEKDAYS.index(match["weekday"]) - 1) % 7 + 1)
    elif match["unit"]:
        which, unit = match["unit"].split()
        day -= timedelta(days=day.weekday() if unit == "week" else day.day - 1)
        if which == "last":
            day -= timedelta(days=7) if unit == "week" else timedelta(days=1)
            day = day if unit == "week" else day.replace(day=1)
        days = 7 if unit == "week" else ((day + timedelta(days=31)).replace(day=1) - day).days
    if match["hour"]:
        days, day = 0, day.replace(hour=int(match["hour"]), minute=int(match["minute"]))
    return day.astimezone(), (day + timedelta(days=days)).astimezone()


def is_time(text: str) -> bool:
    """Whether all words of a text speak of a time, also one that `span_of` does not know."""
    words = text.lower().replace(",", " ").split()
    return any(word in _TIMES for word in words) and all(
        word in _TIMES or word in _BESIDE_TIMES or word[0].isdigit() for word in words
    )


def window(began: str | None, ended: str | None = None) -> dict[str, Any]:
    """Return the `since` and `until` of a question to the journal. Raises VaultError.

    Without a beginning it is the usual window; "all" has no beginning.
    """
    first = None if began is None else "" if began == "all" else since(began)
    return {"since": first, "until": until(ended) if ended else ""}


def local(text: str, form: str = TO_MINUTES) -> str:
    """Return a moment of ISO 8601 as a local time; any other text as it is."""
    try:
        return datetime.fromisoformat(text).astimezone().strftime(form)
    except (ValueError, OverflowError, OSError):
        return text


def day_named(day: str) -> str:
    """Return a day for people: `Today`, `Sunday 22 November 2026`; any other text as it is."""
    try:
        moment = date.fromisoformat(day)
    except ValueError:
        return day
    near = {0: "Today", 1: "Yesterday"}.get((date.today() - moment).days)
    return near or f"{moment:%A} {moment.day} {moment:%B %Y}"


def lasted(began: str, ended: str) -> str:
    """Return the time between two moments in words; "" where one is no moment."""
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
