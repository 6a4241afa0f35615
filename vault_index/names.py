"""Which lesson a name means: an id, a path, the end of either, or the beginning of such an end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from vault_index.errors import VaultError

LEAST_CHARS = 3  # of a beginning: fewer are more often a slip than a name
LIKE_PERCENT = 70  # what is less like a name was not meant
SHOWN = 3


def names_of(id: str, path: str) -> tuple[str, str, str]:
    """Return what a lesson may be called by: its id, its path without `.md`, that with its section."""
    stem = path.removesuffix(".md")
    return id, stem, stem + "".join(id.partition("#")[1:])


def find(name: str, known: Mapping[str, str], *, beginnings: bool = False) -> str:
    """Return the id of the lesson that is meant. `known` are paths from the vault's root, by id.

    With `beginnings` the beginning of one is enough, as people type it; programs name things in full.
    Raises VaultError, which names the nearest, if there is none, and some if there are several.
    """
    wanted = _plain(name)
    if name in known:
        return name
    names = {id: names_of(id, path) for id, path in known.items()}
    whole = [id for id in names if wanted in names[id]]
    ends = (f"/{wanted}", f"#{wanted}")
    found = whole or [id for id in names if any(f"/{one}".endswith(ends) for one in names[id])]
    if beginnings and not found:
        found = [id for id in names if any(_begins(one, wanted) for one in names[id])]
    if len(found) == 1:
        return found[0]
    if found:
        some = ", ".join(found[:4])
        raise VaultError(f"{len(found)} lessons are called {name!r}: {some}", "give the whole id")
    nearest = ", ".join(near(name, known))
    meant = f"; did you mean {nearest}?" if nearest else ""
    raise VaultError(f"no lesson {name!r}{meant}", "`lessons list` shows their ids")


def is_beginning(name: str, id: str, path: str) -> bool:
    """Whether a name is only the beginning of what a lesson is called."""
    ends = (f"/{_plain(name)}", f"#{_plain(name)}")
    return not any(f"/{one}".endswith(ends) for one in names_of(id, path))


def near(name: str, known: Iterable[str]) -> list[str]:
    """Return the ids that are written most like a name, best first."""
    from rapidfuzz import fuzz

    wanted = _plain(name).lower()
    likeness: dict[str, float] = {}
    for id in known:
        own, last = id.lower(), id.lower().rpartition("/")[2]
        whole = max(fuzz.ratio(wanted, own), fuzz.ratio(wanted, last))
        part = fuzz.partial_ratio(wanted, last) if len(wanted) <= len(last) else 0
        likeness[id] = max(whole, 0.95 * part)
    ranked = sorted(likeness, key=lambda id: (-likeness[id], id))
    return [id for id in ranked[:SHOWN] if likeness[id] >= LIKE_PERCENT]


def _plain(name: str) -> str:
    path, mark, section = name.strip().partition("#")
    return path.removesuffix(".md").strip("/") + mark + section


def _begins(name: str, wanted: str) -> bool:
    """Whether an end of a name begins so; the name of a folder is no beginning of all that is in it."""
    if len(wanted) < LEAST_CHARS:
        return False
    return any(
        end.startswith(wanted) and "/" not in end[len(wanted) :] for end in _ends_of(f"/{name}")
    )


def _ends_of(name: str) -> Iterator[str]:
    return (name[at + 1 :] for at, char in enumerate(name) if char in "/#")
