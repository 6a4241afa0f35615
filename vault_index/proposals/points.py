"""Points to look at: hints that something was taught, without a draft, beside the proposals of a vault.

    points.jsonl      a point a line, the latest last; of one that a person dismissed its id alone

A person dismisses them, or they go like proposals after `learn.expire_days`. Nothing else reads them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

from vault_index import files
from vault_index.features import LearnTable
from vault_index.journal import expiry
from vault_index.proposals import draft, store
from vault_index.text import failure

if TYPE_CHECKING:
    from vault_index.vault import Vault

FILE, PREFIX = "points.jsonl", "p"  # no id of a proposal begins with it
MAX_POINTS = 50  # of a vault; the oldest go first


@dataclass(frozen=True, slots=True)
class Point:
    """A hint: `about` says what it is, the `quote` stands in the session. Dismissed, it has no quote."""

    about: str
    quote: str
    speaker: str = ""  # one of `draft.SPEAKERS`
    project: str = ""
    day: str = ""  # ISO 8601
    session: str = ""  # its private id
    id: str = ""
    created: str = ""  # ISO 8601


def waiting(vault: Vault, session: str = "") -> list[Point]:
    """Return the points that nobody dismissed, oldest first; of a session by its id's beginning."""
    there = _read(store.folder_of(vault))
    return [each for each in there if each.quote and each.session.startswith(session)]


def keep(vault: Vault, points: Iterable[Point]) -> list[Point]:
    """Keep the points that were not there before, also not dismissed, and return them."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    made = [replace(each, id=_id_of(each), created=now) for each in points]
    if not made:
        return []
    oldest = expiry.oldest(vault.config.home, vault.config[LearnTable].expire_days)
    with store.hold(vault) as folder:
        there = [each for each in _read(folder) if not oldest or each.created >= oldest.isoformat()]
        ids = {each.id for each in there}
        new = [each for each in made if each.id not in ids]
        files.write_json_lines(folder / FILE, [*there, *new][-MAX_POINTS:])
    return new


def dismiss(vault: Vault, name: str) -> Point | None:
    """Take a point away for good, by its id or its beginning; None if none has that alone."""
    with store.hold(vault) as folder:
        there = _read(folder)
        named = [each for each in there if each.quote and each.id.startswith(name.strip().lower())]
        if len(named) != 1:
            return None
        gone = replace(named[0], quote="")
        left = (gone if each.id == gone.id else each for each in there)
        files.write_json_lines(folder / FILE, left)
    return named[0]


def is_id(name: str) -> bool:
    """Whether a name can be that of a point, and of no proposal."""
    return name.strip().lower().startswith(PREFIX)


def _id_of(point: Point) -> str:
    said = " ".join(draft.words(failure.normalise(point.quote)))
    return PREFIX + blake2b(said.encode(), digest_size=4).hexdigest()[1:]


def _read(folder: Path | None) -> list[Point]:
    return files.read_json_lines(folder and folder / FILE, lambda values: Point(**values))
