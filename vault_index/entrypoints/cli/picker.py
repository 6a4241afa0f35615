"""Picking a lesson at a terminal for a command without an ID: type to search, then a number."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import click

from vault_index.entrypoints.cli import asking, output
from vault_index.errors import VaultError

MAX_SHOWN = 20
LINES_BESIDE = 3  # of the screen: what was typed, how many there are, the question


def pick(named: str | None, near: str = "") -> str:
    """Ask for a lesson and return its id, beginning with those nearest to a text.

    Raises UsageError where nobody can answer.
    """
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise click.UsageError("name a lesson by its ID; `lessons list` shows the ids")
    lessons = asking.ask(named, "list", names_only=True)["entries"]
    if not lessons:
        raise VaultError("no lessons yet", "add one: lessons add --title ... --text ...")
    words = near
    while True:
        matching = _search(named, lessons, words) if words else lessons
        if len(matching) == 1 and words and words is not near:
            return str(matching[0]["id"])
        shown = matching[: _room()]
        _show(shown, len(matching), words)
        typed = output.ask("a number, words to search for, or nothing to stop:").strip()
        if not typed:
            raise click.Abort
        if typed.isdecimal() and 1 <= int(typed) <= len(shown):
            return str(shown[int(typed) - 1]["id"])
        words = typed


def _search(named: str | None, lessons: Sequence[Any], words: str) -> Sequence[Any]:
    """Return the lessons whose id or title holds all words or, without any, the hits of a search."""
    wanted = words.lower().split()
    matching = [
        lesson
        for lesson in lessons
        if all(w in f"{lesson['id']} {lesson['title']}".lower() for w in wanted)
    ]
    if matching:
        return matching
    hits = asking.ask(named, "search", {"text": words, "k": MAX_SHOWN})["hits"]
    by_id = {lesson["id"]: lesson for lesson in lessons}
    return [by_id[hit["lesson_id"]] for hit in hits if hit["lesson_id"] in by_id]


def _show(shown: Sequence[Any], count: int, words: str) -> None:
    for number, lesson in enumerate(shown, start=1):
        output.say(
            f"{number:>3}  ",
            lesson["title"],
            output.styled(f"  {lesson['id']}", dim=True),
            err=True,
        )
    if count > len(shown):
        asking.note(f"     and {count - len(shown)} more")
    if not count:
        asking.note(f"no lesson matches {words!r}")


def _room() -> int:
    import shutil

    return max(3, min(MAX_SHOWN, shutil.get_terminal_size().lines - LINES_BESIDE))
