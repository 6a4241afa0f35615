"""The last weeks as a calendar: how many sessions each day has, as values for a template's SVG."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any

WEEKS = 12
CELL, GAP = 22, 3
LEFT, TOP = 34, 18  # for the names of days and months
LEVELS = 4  # of colour; the number is in the cell, too


def calendar(counts: Mapping[str, int], chosen: str, today: date) -> dict[str, Any]:
    """Return the days of the last weeks in columns of a week each, Monday first.

    The weeks end with that of the `chosen` day where it is older than they are.
    """
    end = today
    if chosen and date.fromisoformat(chosen) < today - timedelta(weeks=WEEKS - 1):
        end = max(date.fromisoformat(chosen), date.min + timedelta(weeks=WEEKS - 1))
    monday = end - timedelta(days=end.weekday(), weeks=WEEKS - 1)
    shown = [monday + timedelta(days=number) for number in range(7 * WEEKS)]
    most = max((counts.get(day.isoformat(), 0) for day in shown), default=0)
    cells = [
        _cell(day, number, counts.get(day.isoformat(), 0), most)
        for number, day in enumerate(shown)
        if day <= today
    ]
    months = [
        {"x": LEFT + number // 7 * (CELL + GAP), "name": f"{day:%b}"}
        for number, day in enumerate(shown)
        if day.weekday() == 0 and day.day <= 7
    ]
    return {
        "width": LEFT + WEEKS * (CELL + GAP),
        "height": TOP + 7 * (CELL + GAP),
        "size": CELL,
        "cells": cells,
        "months": months,
        "names": [
            {"y": TOP + number * (CELL + GAP) + 15, "name": name}
            for number, name in ((0, "Mon"), (2, "Wed"), (4, "Fri"), (6, "Sun"))
        ],
        "sessions": sum(cell["count"] for cell in cells),
        "days": sum(bool(cell["count"]) for cell in cells),
        "weeks": WEEKS,
    }


def beside(counts: Mapping[str, int], day: str) -> tuple[str, str]:
    """Return the days with sessions before and after a day, "" where there is none."""
    before = max((each for each in counts if each < day), default="")
    return before, min((each for each in counts if each > day), default="")


def named(day: str) -> str:
    """Return a day for people: `Sunday 22 November 2026`; what is no day as it is."""
    try:
        moment = date.fromisoformat(day)
    except ValueError:
        return day
    return f"{moment:%A} {moment.day} {moment:%B %Y}"


def _cell(day: date, number: int, count: int, most: int) -> dict[str, Any]:
    return {
        "day": day.isoformat(),
        "name": named(day.isoformat()),
        "count": count,
        "level": -(-LEVELS * count // most) if most else 0,
        "x": LEFT + number // 7 * (CELL + GAP),
        "y": TOP + number % 7 * (CELL + GAP),
    }
