"""The lesson of a document that a number means: "lesson 3 of the course"."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vault_index.search import contents

if TYPE_CHECKING:
    from vault_index.vault import Vault


def lesson_numbered(vault: Vault, path: str, wanted: int) -> tuple[str, str] | None:
    """Return id and title of a document's lesson of that number; None if it has none, or one lesson,
    or withholds that one.

    A lesson says its number at the beginning of its text or of its title. Those that say none count
    on from the one before; a document where none does begins with 1.
    """
    lessons = contents.parts(vault, [path])[path]
    if len(lessons) < 2:
        return None
    at = place_of([lesson.number for lesson in lessons], wanted)
    if at is None or lessons[at].is_withheld:
        return None
    return lessons[at].id, lessons[at].title


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
