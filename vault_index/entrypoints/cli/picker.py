"""Picking a lesson at a terminal, where a command was not told which: type to search, then a number."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import click

from vault_index.entrypoints.cli import output, ready
from vault_index.errors import VaultError

MOST_SHOWN = 20
LINES_BESIDE = 3  # of the screen: what was typed, how many there are, the question


def pick(named: str | None) -> str:
    """Ask for a lesson and return its id. Raises UsageError where nobody is there to be asked."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise click.UsageError("name a lesson by its ID; `lessons list` shows the ids")
    known = ready.ask(named, "list", names_only=True, category=None)["entries"]
    if not known:
        raise VaultError("no lessons yet", "lessons add --title ... --text ...")
    words = ""
    while True:
        found = _search(named, known, words) if words else known
        if len(found) == 1 and words:
            return str(found[0]["id"])
        shown = found[: _room()]
        _show(shown, len(found), words)
        typed = output.ask("a number, words to search for, or nothing to stop:").strip()
        if not typed:
            raise click.Abort
        if typed.isdecimal() and 1 <= int(typed) <= len(shown):
            return str(shown[int(typed) - 1]["id"])
        words = typed


def _search(named: str | None, known: Sequence[Any], words: str) -> Sequence[Any]:
    """Return the lessons whose id or title holds all words; where there are none, what a search finds."""
    wanted = words.lower().split()
    found = [
        one for one in known if all(w in f"{one['id']} {one['title']}".lower() for w in wanted)
    ]
    if found:
        return found
    hits = ready.ask(named, "search", query=words, k=MOST_SHOWN)["hits"]
    by_id = {one["id"]: one for one in known}
    return [by_id[hit["lesson_id"]] for hit in hits if hit["lesson_id"] in by_id]


def _show(shown: Sequence[Any], count: int, words: str) -> None:
    for number, one in enumerate(shown, start=1):
        output.say(
            f"{number:>3}  ", one["title"], output.styled(f"  {one['id']}", dim=True), err=True
        )
    if count > len(shown):
        ready.note(f"     and {count - len(shown)} more")
    if not count:
        ready.note(f"no lesson matches {words!r}")


def _room() -> int:
    import shutil

    return max(3, min(MOST_SHOWN, shutil.get_terminal_size().lines - LINES_BESIDE))
