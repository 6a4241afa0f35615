"""Which lesson a name means: an id, a path, the end of either, or the beginning of such an end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from vault_index.errors import VaultError

MIN_CHARS = 3  # of a beginning: fewer are more often a slip than a name
LIKE_PERCENT = 70  # ids that are less like a name are not offered
SHOWN = 3


def names_of(id: str, path: str) -> tuple[str, str, str]:
    """Return the names of a lesson: its id, its path without `.md`, that with its section."""
    stem = path.removesuffix(".md")
    return id, stem, stem + "".join(id.partition("#")[1:])


def find(name: str, known: Mapping[str, str], *, beginnings: bool = False) -> str:
    """Return the id of the lesson that is meant. `known` are paths from the vault's root, by id.

    With `beginnings` the beginning of one is enough, as people type it; programs name things in full.
    Raises VaultError, which lists the nearest ids for no match, and some for several.
    """
    matching = matches(name, known, beginnings=beginnings)
    if len(matching) == 1:
        return matching[0]
    if matching:
        some = ", ".join(matching[:4])
        raise VaultError(
            f"{len(matching)} lessons are called {name!r}: {some}", "give the whole id"
        )
    nearest = ", ".join(near(name, known))
    meant = f"; did you mean {nearest}?" if nearest else ""
    raise VaultError(f"no lesson {name!r}{meant}", "see their ids with `lessons list`")


def matches(name: str, known: Mapping[str, str], *, beginnings: bool = False) -> list[str]:
    """Return the ids of all lessons that a name may mean; see `find`."""
    wanted = _plain(name)
    if name in known:
        return [name]
    names = {id: names_of(id, path) for id, path in known.items()}
    whole = [id for id in names if wanted in names[id]]
    ends = (f"/{wanted}", f"#{wanted}")
    matching = whole or [id for id in names if any(f"/{own}".endswith(ends) for own in names[id])]
    if beginnings and not matching:
        matching = [id for id in names if any(_begins(own, wanted) for own in names[id])]
    return matching


def is_beginning(name: str, id: str, path: str) -> bool:
    """Whether a name is only the beginning of what a lesson is called."""
    ends = (f"/{_plain(name)}", f"#{_plain(name)}")
    return not any(f"/{one}".endswith(ends) for one in names_of(id, path))


def near(name: str, known: Iterable[str]) -> list[str]:
    """Return the ids that are written most like a name, best first."""
    from rapidfuzz import fuzz, process

    wanted = _plain(name).lower()
    ids = list(known)
    whole = [id.lower() for id in ids]
    last = [id.rpartition("/")[2] for id in whole]
    longer = [end if len(wanted) <= len(end) else "" for end in last]
    likeness: dict[str, float] = {}
    for scorer, names, weight in (
        (fuzz.ratio, whole, 1.0),
        (fuzz.ratio, last, 1.0),
        (fuzz.partial_ratio, longer, 0.95),
    ):
        for _, score, at in process.extract(
            wanted, names, scorer=scorer, score_cutoff=LIKE_PERCENT, limit=None
        ):
            likeness[ids[at]] = max(likeness.get(ids[at], 0), weight * score)
    ranked = sorted(likeness, key=lambda id: (-likeness[id], id))
    return [id for id in ranked[:SHOWN] if likeness[id] >= LIKE_PERCENT]


def _plain(name: str) -> str:
    path, mark, section = name.strip().partition("#")
    return path.removesuffix(".md").strip("/") + mark + section


def _begins(name: str, wanted: str) -> bool:
    """Whether an end of a name begins so; a folder's name does not name the lessons in it."""
    if len(wanted) < MIN_CHARS:
        return False
    return any(
        end.startswith(wanted) and "/" not in end[len(wanted) :] for end in _ends_of(f"/{name}")
    )


def _ends_of(name: str) -> Iterator[str]:
    return (name[at + 1 :] for at, char in enumerate(name) if char in "/#")
