"""The contents of a vault: its lessons, listed or looked up by name, and its categories.

Functions that ask the index raise IndexStateError without one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, get_origin, get_type_hints

from vault_index import files, git
from vault_index.errors import VaultError
from vault_index.lesson import file, parse, passages
from vault_index.lesson.category import (
    UNCATEGORIZED,
    CategoryPath,
    checked,
    counts,
    normalise,
    own_counts,
)
from vault_index.retrieval import unchecked
from vault_index.retrieval.hit import Entry, ListOptions, Named, Relation, WholeEntry
from vault_index.store import filters
from vault_index.text.blocks import composed, one_line
from vault_index.text.words import meant, searched_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vault_index.lesson.parse import Lesson
    from vault_index.vault import Vault

MIN_CHARS = 3  # of a beginning: fewer are more often a slip than a name
LIKE_PERCENT = 70  # ids that are less like a name are not offered
SHOWN = 3


def matches(name: str, paths: Mapping[str, str], *, beginnings: bool = False) -> list[str]:
    """Return the ids of all lessons that a name may mean. `paths` are from the vault's root, by id.

    With `beginnings` the beginning of one is enough, as people type it; programs name things in full.
    """
    if composed(name) in paths:
        return [composed(name)]
    wanted = _plain(name)
    # an id, its path without `.md`, that with its section
    names: dict[str, tuple[str, str, str]] = {}
    for id, path in paths.items():
        stem = composed(path.removesuffix(".md"))
        names[id] = id, stem, stem + "".join(id.partition("#")[1:])
    whole = [id for id in names if wanted in names[id]]
    ends = (f"/{wanted}", f"#{wanted}")
    matching = whole or [id for id in names if any(f"/{each}".endswith(ends) for each in names[id])]
    if beginnings and not matching:
        matching = [id for id in names if any(_begins(each, wanted) for each in names[id])]
    return matching


def near(name: str, ids: Iterable[str]) -> list[str]:
    """Return the ids that are written most like a name, best first; their last parts count as well."""
    from rapidfuzz import fuzz

    wanted = _plain(name).lower()
    likeness: dict[str, float] = {}
    for id in ids:
        whole, last = id.lower(), id.lower().rpartition("/")[2]
        likeness[id] = max(fuzz.ratio(wanted, whole), fuzz.ratio(wanted, last))
        if len(wanted) <= len(last):
            likeness[id] = max(likeness[id], 0.95 * fuzz.partial_ratio(wanted, last))
    ranked = sorted(likeness, key=lambda id: (-likeness[id], id))
    return [id for id in ranked[:SHOWN] if likeness[id] >= LIKE_PERCENT]


def _plain(name: str) -> str:
    path, mark, section = composed(name).strip().partition("#")
    return path.removesuffix(".md").strip("/") + mark + section


def _begins(name: str, wanted: str) -> bool:
    """Whether an end of a name begins so; a folder's name does not name the lessons in it."""
    if len(wanted) < MIN_CHARS:
        return False
    whole = f"/{name}"
    ends = (whole[index + 1 :] for index, char in enumerate(whole) if char in "/#")
    return any(end.startswith(wanted) and "/" not in end[len(wanted) :] for end in ends)


def entries(vault: Vault, **chosen: Unpack[ListOptions]) -> list[Entry]:
    """List the lessons without their texts.

    Times and confidence are sorted latest and highest first. Raises VaultError for an unknown order.
    """
    category, tag, since = chosen.get("category"), chosen.get("tag"), chosen.get("since")
    order, related_to = chosen.get("order", "id"), chosen.get("related_to")
    if order not in ORDERS:
        raise VaultError(f"cannot sort by {order!r}", f"choose one of {', '.join(ORDERS)}")
    only = filters.Filter(
        tags=[tag] if tag else (),
        type=chosen.get("type") or "",
        since=datetime.fromisoformat(since) if since else None,
    )
    where = filters.all_of(
        filters.below([checked(category)]) if category else None,
        filters.any_of("lesson_id", around(vault, related_to)) if related_to else None,
        *only.where(partial(is_in_repository, vault)),
    )
    found = sorted(_lessons(vault, Entry, where), key=_ORDERS[order])
    if order == "updated" and is_in_repository(vault):  # what is not committed is new
        found.sort(key=lambda each: each.updated_at is not None)
    return found[: chosen.get("limit")]


def is_in_repository(vault: Vault) -> bool:
    """Whether the lessons can be committed."""
    return git.top_of(vault.lessons_dir) is not None


def _last(entry: Entry) -> datetime:
    times = [time for time in (entry.created_at, entry.updated_at) if time]
    return max(times, default=datetime.now(UTC))


_ORDERS: dict[str, Callable[[Entry], Any]] = {
    "id": lambda lesson: lesson.id,
    "title": lambda lesson: (lesson.title.lower(), lesson.id),
    "created": lambda lesson: -(lesson.created_at.timestamp() if lesson.created_at else 0.0),
    "updated": lambda lesson: -_last(lesson).timestamp(),
    "confidence": lambda lesson: -lesson.confidence,
}
ORDERS = tuple(_ORDERS)


def entry(vault: Vault, name: str, *, beginnings: bool = False) -> WholeEntry:
    """Return one lesson with its text, by id, by path, or by the end of either.

    With `beginnings` the beginning of an end is enough. Raises VaultError unless exactly one matches.
    """
    lesson = named(name, _lessons(vault, Entry), beginnings=beginnings)
    return _wholes(vault, lesson.id)[0]


def entry_or_near(vault: Vault, name: str) -> tuple[WholeEntry | None, tuple[Named, ...]]:
    """Return one lesson with its text as `entry` does; for no lesson or several None and the nearest.

    These are the lessons that are called so, else those that are written most like it, without
    withheld ones.
    """
    whole = _wholes(vault, name)
    if whole:  # the whole id: no need to read the others
        return whole[0], ()
    listed = {row["lesson_id"]: row for row in _rows(vault, ("path", "title"), filters.FOR_AGENTS)}
    matching = matches(name, {id: row["path"] for id, row in listed.items()}, beginnings=True)
    if len(matching) == 1:
        return _wholes(vault, matching[0])[0], ()
    ids = matching[:SHOWN] or near(name, listed)
    return None, tuple(Named(id, listed[id]["title"]) for id in ids)


def named(name: str, lessons: Sequence[Entry], *, beginnings: bool = False) -> Entry:
    """Return the lesson of a name: its id, its path, the end of either, or its whole title or alias.

    With `beginnings` the beginning of an end is enough, as people type it. Raises VaultError unless
    exactly one matches: it lists the nearest ids, or some of several.
    """
    by_id = {lesson.id: lesson for lesson in lessons}
    titled = [
        lesson
        for lesson in lessons
        if name.casefold() in map(str.casefold, (lesson.title, *lesson.aliases))
    ]
    if name not in by_id and len(titled) == 1:
        return titled[0]
    paths = {id: lesson.path for id, lesson in by_id.items()}
    matching = matches(name, paths, beginnings=beginnings)
    if len(matching) == 1:
        return by_id[matching[0]]
    if matching:
        message = f"{len(matching)} lessons are called {name!r}: {', '.join(matching[:4])}"
        raise VaultError(message, "give the whole id")
    nearest = ", ".join(near(name, paths))
    suggestion = f"; did you mean {nearest}?" if nearest else ""
    raise VaultError(f"no lesson {name!r}{suggestion}", "see their ids with `lessons list`")


def content(vault: Vault, entry: WholeEntry, *, unchanged: bool = False) -> bytes:
    """Read the file of a lesson that is to be changed or deleted: still the lesson of this entry.

    Raises VaultError if the file now has another lesson in its place: of another title and text or,
    where it must be `unchanged`, either. LessonError if it does not parse.
    """
    files.refuse_links(vault.root / entry.path, vault.root)
    data = files.read_file(vault.root / entry.path)
    if file.hash_of_file(data) == entry.file_hash:
        return data
    below = entry.path.partition("/")[2]
    now = _in_file(entry, data, below)
    if now is None and "#" in entry.id:
        return data  # the caller looks for the section and reports that it is gone
    same = (now.title == entry.title, now.text == entry.text) if now else (False,)
    if not (all(same) if unchanged else any(same)):
        hint = f"look at it again: `lessons show {entry.id}`"
        raise VaultError(f"{entry.path} changed; {entry.id} is not what it was", hint)
    return data


def _in_file(entry: Entry, data: bytes, path: str) -> Lesson | None:
    """Return the lesson in a file that has an entry's id; one that another file took is a path there.

    Raises LessonError.
    """
    for lesson in parse.parse_file(data, path):
        by_path = parse.id_of(path) + "".join(lesson.id.partition("#")[1:])
        if entry.id in (lesson.id, by_path):
            return lesson
    return None


def categories(vault: Vault, *, alone: bool = False) -> dict[CategoryPath, int]:
    """Count the lessons in and below each category, by path: `{"devops": 3, "devops/docker": 1}`.

    `alone` counts the category itself only. A lesson counts once in each of its categories,
    also in proposed ones.
    """
    per_lesson = [row["categories"] for row in _rows(vault, ("categories",))]
    return own_counts(per_lesson) if alone else counts(per_lesson)


MAX_EXAMPLE = 45  # characters of a title that says what a category is about


def examples(vault: Vault) -> dict[CategoryPath, str]:
    """Return the categories that lessons are filed under, each with the title of one of them.

    Those with most lessons come first. The title is the one that has most words of the others'.
    """
    titles: dict[CategoryPath, list[str]] = {}
    for row in _rows(vault, ("categories", "title")):
        for path in row["categories"]:
            titles.setdefault(path, []).append(row["title"])
    titles.pop(UNCATEGORIZED, None)
    by_size = sorted(titles, key=lambda path: (-len(titles[path]), path))
    return {path: one_line(_typical(titles[path]), MAX_EXAMPLE) for path in by_size}


def _typical(titles: Sequence[str]) -> str:
    """Return the title whose words are most common among all."""
    words = [set(searched_words(title)) for title in titles]
    common = Counter(word for title_words in words for word in title_words)
    weights = [
        sum(common[word] for word in title_words) / max(1, len(title_words))
        for title_words in words
    ]
    return titles[weights.index(max(weights))]


def refuse_unknown(vault: Vault, names: Iterable[str]) -> None:
    """Raise VaultError for a category that no lesson has, with the nearest; for a search without hits."""
    if not (wanted := [normalise(name) for name in names]):
        return
    existing = categories(vault)
    for name in wanted:
        if name not in existing:
            near = meant(name, existing)
            hint = f"run it again with {near}" if near else "see `lessons categories`"
            raise VaultError(f"no lesson has the category {name!r}", hint)


def filed(vault: Vault, ids: Sequence[str]) -> dict[str, list[CategoryPath]]:
    """Return the categories of those lessons among `ids` that there are, also proposed ones."""
    if not ids:
        return {}
    rows = _rows(vault, ("categories",), filters.wholes_of(ids))
    return {row["lesson_id"]: list(row["categories"] or ()) for row in rows}


def withheld(vault: Vault) -> dict[str, str]:
    """Return the files that hooks leave out, lessons and skills, with the error in each."""
    opened = vault.open_index()
    tables = [opened.store, *([opened.skills] if opened.skills.exists() else [])]
    rows = [row for table in tables for row in table.rows(("path", "withheld"), filters.WITHHELD)]
    found = {str(row["path"]): str(row["withheld"]) for row in rows}
    return {path: why for path, why in found.items() if why != filters.UNCHECKED}


_Kind = TypeVar("_Kind", bound=Entry)


def _wholes(vault: Vault, id: str) -> list[WholeEntry]:
    """Return the lesson of an id with its text, checked; [] without one."""
    return unchecked.checked(vault, _lessons(vault, WholeEntry, filters.wholes_of([id])))


def _lessons(vault: Vault, kind: type[_Kind], where: str | None = None) -> list[_Kind]:
    """Return the lessons as entries of a kind, by id."""
    columns = [each.name for each in fields(kind)][1:]
    lists = [name for name, each in get_type_hints(kind).items() if get_origin(each) is tuple]
    entries = []
    for row in _rows(vault, columns, where):
        for name in lists:
            row[name] = tuple(row[name] or ())
        entries.append(kind(id=row.pop("lesson_id"), **row))
    return entries


def _rows(vault: Vault, columns: Iterable[str], where: str | None = None) -> list[dict[str, Any]]:
    wholes = filters.all_of(filters.WHOLE, where)
    rows = vault.open_index().store.rows(("lesson_id", *columns), wholes)
    return sorted(rows, key=lambda row: str(row["lesson_id"]))


_INVERSE = {passages.SUPERSEDES: "superseded by", "prerequisite": "prerequisite of"}


def related(vault: Vault, entry: WholeEntry, *, both: bool = False) -> list[Relation]:
    """Return the lessons and subjects that a lesson is related to.

    A name is the id, the end of the id or the whole title of a lesson; else it is a subject. With
    `both`, the lessons follow that name this one, but for withheld ones: with its kind from here.
    """
    links = passages.related_of(entry.text)
    if not (links or both):
        return []
    lessons = entries(vault)
    named_here = [Relation(kind, name, _id_of(name, lessons)) for kind, name in links]
    return [*named_here, *(_naming(vault, entry, lessons) if both else ())]


def around(vault: Vault, name: str) -> list[str]:
    """Return the ids of the lessons that one names, and of those that name it. Raises as `entry` does."""
    links = related(vault, entry(vault, name, beginnings=True), both=True)
    return sorted({link.id for link in links if link.id})


def _naming(vault: Vault, entry: Entry, lessons: Sequence[Entry]) -> Iterator[Relation]:
    where = filters.all_of(filters.WHOLE, filters.FOR_AGENTS, filters.RELATED)
    title, path = entry.title.casefold(), {entry.id: entry.path}
    for row in vault.open_index().store.rows(("lesson_id", "text"), where):
        for kind, name in passages.related_of(row["text"]):
            may_mean = name.casefold() == title or matches(name, path)
            if may_mean and _id_of(name, lessons) == entry.id:
                id = str(row["lesson_id"])
                yield Relation(_INVERSE.get(kind, kind), id, id)


def _id_of(name: str, lessons: Sequence[Entry]) -> str:
    try:
        return named(name, lessons).id
    except VaultError:
        return ""
