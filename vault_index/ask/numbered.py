"""The lesson of a document that a number means: "lesson 3 of the course"."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from vault_index.lesson import number
from vault_index.store import filters

if TYPE_CHECKING:
    from vault_index.vault import Vault

# as people number their headings
_TITLE = re.compile(r"(?i)(?:lesson|chapter|part|unit)?\s*(?P<number>\d{1,9})\s*(?:[.:)]|$)")


def lesson_numbered(vault: Vault, path: str, wanted: int) -> tuple[str, str] | None:
    """Return id and title of a document's lesson of that number; None if it has none, or one lesson,
    or withholds that one.

    A lesson says its number at the beginning of its text or of its title. Those that say none count
    on from the one before; a document where none does begins with 1.
    """
    columns = ("lesson_id", "title", "text", "position", "is_whole", "withheld")
    rows = vault.open_index().store.rows(columns, filters.of_paths([path]))
    place: dict[str, int] = {}
    for row in rows:
        if row["position"] >= 0:
            place[row["lesson_id"]] = min(row["position"], place.get(row["lesson_id"], 10**9))
    wholes = [row for row in rows if row["is_whole"]]
    wholes.sort(key=lambda row: place.get(row["lesson_id"], 0))
    if len(wholes) < 2:
        return None
    at = place_of([label(row["title"], row["text"] or "") for row in wholes], wanted)
    if at is None or wholes[at]["withheld"]:
        return None
    return wholes[at]["lesson_id"], wholes[at]["title"]


def place_of(labels: list[int | None], wanted: int) -> int | None:
    """Return the place of a number among the labels of lessons in their order."""
    if wanted in labels:
        return labels.index(wanted)
    if not any(label is not None for label in labels):
        return wanted - 1 if 1 <= wanted <= len(labels) else None
    before, start = 0, 0  # the label before a run without labels, and where that begins
    for at, label in enumerate([*labels, None]):
        if at < len(labels) and label is None:
            continue
        run = at - start
        if run and before < wanted and (label is None or wanted < label):
            # a course may skip a number, and then has one lesson fewer than numbers
            return start + min(wanted - before, run) - 1 if wanted <= before + run + 1 else None
        before, start = label or 0, at + 1
    return None


def label(title: str, text: str) -> int | None:
    """Return the number that a lesson says it has; None if it says none."""
    own = number.number_of(text)
    if own is not None:
        return own.number
    match = _TITLE.match(title)
    return int(match["number"]) if match else None
