"""A plot of how long prompts waited for their lessons: a dot each, as values for a template's SVG."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from vault_index.entrypoints.hook.client import DEFAULT_DEADLINE_MS

WIDTH, HEIGHT = 480, 170
LEFT, RIGHT, TOP, BOTTOM = 56, 8, 14, 20  # around the dots
LEAST_MS = 1.0
STEPS = {1: "1 ms", 10: "10 ms", 100: "100 ms", 1000: "1 s", 10_000: "10 s"}


def plot(times: Sequence[Sequence[Any]], totals: Mapping[str, Any]) -> dict[str, Any]:
    """Return a plot of [time, milliseconds, whether something came], oldest first.

    The milliseconds are on a logarithmic scale. `said` is all of it in words.
    """
    slowest = max(ms for _, ms, _ in times)
    most = 1.6 * max(DEFAULT_DEADLINE_MS, slowest)
    lines = [
        {"name": "p50", "text": f"p50 {milliseconds(totals['p50_ms'])}", "below": True},
        {"name": "p90", "text": f"p90 {milliseconds(totals['p90_ms'])}", "below": False},
        {"name": "deadline", "text": f"deadline {DEFAULT_DEADLINE_MS:,} ms", "below": True},
    ]
    of_lines = (totals["p50_ms"], totals["p90_ms"], DEFAULT_DEADLINE_MS)
    dots = [
        (LEFT + (WIDTH - LEFT - RIGHT) * (at + 0.5) / len(times), _y(ms, most), came)
        for at, (_, ms, came) in enumerate(times)
    ]
    return {
        "width": WIDTH,
        "height": HEIGHT,
        "left": LEFT,
        "right": WIDTH - RIGHT,
        "answered": _path((x, y) for x, y, came in dots if came),
        "silent": _path((x, y) for x, y, came in dots if not came),
        "lines": [{**line, "y": _y(ms, most)} for line, ms in zip(lines, of_lines, strict=True)],
        "steps": [{"text": text, "y": _y(ms, most)} for ms, text in STEPS.items() if ms < most],
        "first": times[0][0],
        "last": times[-1][0],
        "said": _said(times, totals, slowest),
    }


def milliseconds(ms: float) -> str:
    """Return a time for people: tenths only below ten."""
    return f"{ms:.1f} ms" if ms < 10 else f"{ms:,.0f} ms"


def _said(times: Sequence[Sequence[Any]], totals: Mapping[str, Any], slowest: float) -> str:
    over = sum(ms > DEFAULT_DEADLINE_MS for _, ms, _ in times)
    passed = f"{over} passed" if over else "none passed"
    return (
        f"The last {len(times)} prompts, from the start of the hook to its answer: half within "
        f"{milliseconds(totals['p50_ms'])} (p50), nine of ten within "
        f"{milliseconds(totals['p90_ms'])} (p90), the slowest {milliseconds(slowest)}; {passed} the "
        f"hook's deadline, {DEFAULT_DEADLINE_MS:,} ms by default."
    )


def _y(ms: float, most: float) -> float:
    share = math.log(max(ms, LEAST_MS) / LEAST_MS) / math.log(most / LEAST_MS)
    return round(HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM), 1)


def _path(places: Iterable[tuple[float, float]]) -> str:
    """Return dots as a path: strokes of no length, which round ends make visible."""
    return "".join(f"M{x:.1f} {y}h0" for x, y in places)
