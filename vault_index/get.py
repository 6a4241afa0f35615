"""What is in a vault: its lessons, listed or looked up by name, and its categories."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypedDict, cast

from vault_index import categories as tree
from vault_index import difference, files, lesson, lesson_body, listing, names
from vault_index.categories import CategoryPath
from vault_index.errors import VaultError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from vault_index.listing import Listing
    from vault_index.vault import Vault

ORDERS = ("id", "title", "created", "updated", "confidence")


class Entry(TypedDict, total=False):
    """What the index knows of a lesson; `text`, `fires_on` and `silent_on` only from `entry`."""

    id: str
    path: str  # from the vault's root
    title: str
    document: str  # the title of the file that it is a section of; its own if of none
    categories: list[CategoryPath]
    filed_by: str  # who says so: author | folder | classifier | nobody
    tags: list[str]
    type: str
    confidence: int  # 1..5
    created_at: datetime | None
    updated_at: datetime | None  # of the last commit
    author: str
    link: str
    withheld: str  # why hooks leave it out: an error in its file; "" otherwise
    text: str
    file_hash: str  # of the file that all this was read from; only from `entry`
    fires_on: list[str]
    silent_on: list[str]


def entries(
    vault: Vault,
    category: str | None = None,
    *,
    tag: str | None = None,
    type: str | None = None,
    since: datetime | None = None,
    order: str = "id",
    reverse: bool = False,
    limit: int | None = None,
    offset: int = 0,
    known: Sequence[Entry] | None = None,
) -> list[Entry]:
    """List the lessons: what the index knows of each but its text. `known` are all of them, if read.

    `category` narrows to those in or below it, `since` to those created or committed then or later.
    Times and confidence are sorted latest and highest first. Raises IndexStateError without an
    index, VaultError for an order that there is not.
    """
    if order not in ORDERS:
        raise VaultError(f"cannot sort by {order!r}", f"one of: {', '.join(ORDERS)}")
    path = tree.normalise(category) if category else ""
    if category and not path:
        raise VaultError(f"not a category: {category!r}", "for example: devops/ci-cd")
    found = _of_table(vault, path) if known is None else [one for one in known if _is_in(one, path)]
    if tag:
        found = [one for one in found if tag.lower() in (known.lower() for known in one["tags"])]
    if type:
        found = [one for one in found if one["type"] == type]
    if since:
        found = [one for one in found if _last(one) >= since]
    keys: dict[str, Any] = {
        "title": lambda one: (one["title"].lower(), one["id"]),
        "created": lambda one: -_seconds(one["created_at"]),
        "updated": lambda one: -_last(one).timestamp(),
        "confidence": lambda one: -one["confidence"],
    }
    if order in keys:
        found.sort(key=keys[order])
    if reverse:
        found.reverse()
    return found[offset : None if limit is None else offset + limit]


def from_files(
    vault: Vault, *, names_only: bool = False, dates: bool = False
) -> tuple[list[Entry], Listing] | None:
    """Return the lessons as `entries` does, read without a table; None where only a sync can tell.

    With `names_only` what git, the classifier and `check` say may be of before, with `dates` not
    what git says.
    """
    found = listing.now(vault, ask_git=dates or not names_only, withheld=not names_only)
    if found is None or not (names_only or found.is_filed(found.lessons)):
        return None
    return [cast("Entry", one) for one in found.lessons], found


def entry_from_file(
    vault: Vault, name: str, *, names_only: bool = False, prompts: bool = True
) -> tuple[Entry, Listing] | None:
    """Return one lesson as `entry` with `beginnings` does; None where only a sync can tell.

    No table is opened. Without `prompts` it has no `fires_on` and `silent_on`. Raises VaultError as
    `entry` does.
    """
    now = listing.now(vault, ask_git=not names_only, withheld=False)
    if now is None:
        return None
    found = named(name, [cast("Entry", one) for one in now.lessons], beginnings=True)
    below = found["path"].partition("/")[2]
    if not names_only and not now.is_filed([found]):
        return None
    try:
        data = files.read_file(vault.root / found["path"])
        if lesson.hash_of_file(data) != now.hashes.get(below):  # saved since it was listed
            return None
        text = None
        if not prompts and below not in now.broken:
            slug = found["id"].partition("#")[2]
            text = lesson_body.text_of(data, below, slug, found["title"])
        more = _parsed(found, data, below) if text is None else Entry(text=text)
    except (VaultError, ValueError):  # the table has what it said when it parsed
        return None
    found |= Entry(text=more.pop("text"), file_hash=now.hashes[below])
    found |= more
    if not names_only and below in now.unchecked:
        found["withheld"] = difference.withheld_by(below, data)
    return found, now


def _parsed(entry: Entry, data: bytes, path: str) -> Entry:
    """Return what the index has of a lesson besides its listing. Raises LessonError, ValueError."""
    whole, *_ = [one for one in lesson.parse_file(data, path) if _is_of(entry, one.id, path)]
    return Entry(text=whole.text, fires_on=list(whole.fires_on), silent_on=list(whole.silent_on))


def entry(vault: Vault, name: str, *, beginnings: bool = False) -> Entry:
    """Return one lesson with its text, by id, by path, or by the end of either.

    With `beginnings` the beginning of an end is enough. Raises VaultError if there is none, or more
    than one.
    """
    from vault_index import store

    found = named(name, _lessons(vault, listing.COLUMNS), beginnings=beginnings)
    where = store.only_ids([f"{found['id']}@0"])
    return _lessons(vault, (*listing.COLUMNS, "text", "file_hash", "fires_on", "silent_on"), where)[
        0
    ]


def named(name: str, known: Sequence[Entry], *, beginnings: bool = False) -> Entry:
    """Return the lesson of a name: its id, its path, or the end of either.

    With `beginnings` the beginning of an end is enough, as people type it. Raises VaultError if there
    is none, or more than one.
    """
    by_id = {one["id"]: one for one in known}
    paths = {id: one["path"] for id, one in by_id.items()}
    return by_id[names.find(name, paths, beginnings=beginnings)]


def content(vault: Vault, entry: Entry, *, unchanged: bool = False) -> bytes:
    """Read the file of a lesson that is to be changed or deleted: still the lesson of this entry.

    Raises VaultError if the file now has another lesson in its place: of another title and text or,
    where it must be `unchanged`, either. LessonError if it does not parse.
    """
    data = files.read_file(vault.root / entry["path"])
    if lesson.hash_of_file(data) == entry.get("file_hash"):
        return data
    below = entry["path"].partition("/")[2]
    now = next(
        (one for one in lesson.parse_file(data, below) if _is_of(entry, one.id, below)), None
    )
    if now is None and "#" in entry["id"]:
        return data  # whoever looks for the section says that it is gone
    same = [now is not None and getattr(now, key) == entry[key] for key in ("title", "text")]
    if not (all(same) if unchanged else any(same)):
        hint = f"look at it again: `lessons show {entry['id']}`"
        raise VaultError(f"{entry['path']} changed; {entry['id']} is not what it was", hint)
    return data


def _is_of(entry: Entry, id: str, path: str) -> bool:
    """Whether a lesson in a file has an entry's id; an id that another file took is a path there."""
    slug = id.partition("#")[2]
    return entry["id"] in (id, lesson.id_of(path) + (f"#{slug}" if slug else ""))


def categories(
    vault: Vault, *, own: bool = False, known: Iterable[Entry] | None = None
) -> dict[CategoryPath, int]:
    """Count the lessons in and below each category, by path: `{"devops": 3, "devops/docker": 1}`.

    `own` counts those of the category itself only. A lesson counts once in each of its categories.
    Proposed categories count, too. `known` are all lessons, if read. Raises IndexStateError without
    an index.
    """
    if known is None:
        known = _lessons(vault, ("id", "lesson_id", "categories"))
    filed = [one["categories"] for one in known]
    return tree.own_counts(filed) if own else tree.counts(filed)


def withheld(vault: Vault) -> dict[str, str]:
    """Return the files that hooks leave out, lessons and skills, with the error in each.

    Raises IndexStateError without an index.
    """
    opened = vault.open_index()
    tables = [opened.store, *([opened.skills] if opened.skills.exists() else [])]
    found = [row for table in tables for row in table.rows(("path", "withheld"), "withheld != ''")]
    return {str(row["path"]): str(row["withheld"]) for row in found}


def _of_table(vault: Vault, category: CategoryPath) -> list[Entry]:
    from vault_index import store

    return _lessons(vault, listing.COLUMNS, store.below([category]) if category else None)


def _is_in(entry: Entry, category: CategoryPath) -> bool:
    """Whether a lesson is in a category or below it; in any for ""."""
    return not category or any(f"{one}/".startswith(f"{category}/") for one in entry["categories"])


def _lessons(vault: Vault, columns: tuple[str, ...], where: str | None = None) -> list[Entry]:
    rows = vault.open_index().store.rows(columns, where)
    found: list[Any] = [row for row in rows if row["id"].endswith("@0")]  # the whole of a lesson
    for row in found:
        row["id"] = row.pop("lesson_id")
    return sorted(found, key=lambda one: str(one["id"]))


def _last(entry: Entry) -> datetime:
    """Give when a lesson was last heard of; one that is not committed and has no date, now."""
    times = [time for time in (entry["created_at"], entry["updated_at"]) if time]
    return max(times, default=datetime.now(UTC))


def _seconds(time: datetime | None) -> float:
    return time.timestamp() if time else 0.0
