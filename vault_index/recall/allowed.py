"""Which lessons an agent may get unasked; of several that say the same, only the newest.

The author must be trusted by the user's settings: a vault's settings do not count. No person may have
called the lesson wrong, and the code it is about must still be there. An older lesson never comes while
a newer one with the same content is allowed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from vault_index import git
from vault_index.lesson import file
from vault_index.recall import anchors, ratings
from vault_index.retrieval.duplicates import DUPLICATE_COSINE
from vault_index.retrieval.hit import Hit
from vault_index.store import filters, schema
from vault_index.store.reader import Reader, once

if TYPE_CHECKING:
    from vault_index.vault import Vault

_NEARLY_EQUAL = 0.95  # cosine; titles and texts in which a word differs have 0.97
MAX_STEPS = 8  # from a lesson to what supersedes it, and on


def load(store: Reader) -> None:
    """Compute what a version of the table needs only once: no prompt waits for it then."""
    store.mask(filters.all_of(filters.FOR_AGENTS))
    _by_words(store)
    _superseded(store)


def only(vault: Vault, hits: Iterable[Hit]) -> list[Hit]:
    """Return the hits that an agent may get."""
    return only_right(vault, only_trusted(vault, hits))


def lessons(vault: Vault, *conditions: str) -> list[Hit]:
    """Return the lessons that meet all conditions and that an agent may get."""
    where = filters.all_of(filters.FOR_AGENTS, *conditions)
    rows = vault.open_index().store.rows(schema.LESSONS.shown, where)
    return only(vault, map(Hit.of_lesson, rows))


def only_right(vault: Vault, hits: Iterable[Hit]) -> list[Hit]:
    """Return the hits that no person calls wrong, and whose code is there."""
    all_hits = list(hits)
    wrong = ratings.wrong(vault, {hit.lesson_id for hit in all_hits}) if all_hits else {}
    is_out = {id for id, word in wrong.items() if word.withholds}
    right = [hit for hit in all_hits if hit.lesson_id not in is_out]
    return anchors.only_there(vault, right) if any(hit.anchors for hit in right) else right


def is_restricted(vault: Vault) -> bool:
    """Whether the user trusts less than everything."""
    config = vault.config
    return bool(config.trust != "all" or config.trusted_authors)


def only_trusted(vault: Vault, hits: Iterable[Hit]) -> list[Hit]:
    """Keep the hits whose text the user trusts.

    With `committed-only` the text must be in HEAD. With authors, one of them must have written and
    committed the last change; outside a repository no author is known. The row is compared, not the
    file on disk: the row is what is injected.
    """

    def is_shared(hit: Hit) -> bool:  # skills of the user and of a project are the agent's own
        return hit.kind == "lessons" or hit.type == "vault"

    all_hits = list(hits)
    trusted = trusted_files(
        vault, {(hit.path, hit.file_hash) for hit in filter(is_shared, all_hits)}
    )
    return [hit for hit in all_hits if not is_shared(hit) or (hit.path, hit.file_hash) in trusted]


def trusted_files(vault: Vault, files: Set[tuple[str, str]]) -> Set[tuple[str, str]]:
    """Return the files, as (path, hash of the text), whose text may go to an agent."""
    if not is_restricted(vault) or not files:
        return files
    paths = sorted({path for path, _ in files})
    if vault.config.trusted_authors:
        places = {}
        # the commit that a text is from, if we trust all that renamed the file since
        for path in paths:
            vouchers = git.vouchers(vault.root, path)
            if vouchers and all(_is_trusted(vault, voucher) for voucher in vouchers):
                places[path] = vouchers[-1].commit, vouchers[-1].path
        root = git.top(vault.root) if places else vault.root
    else:
        places, root = {path: ("HEAD", path) for path in paths}, vault.root
    hashes = {
        path: {file.hash_of_file(data) for data in (blob, blob.replace(b"\n", b"\r\n"))}
        for path, blob in git.contents(root, places).items()
    }  # git may have checked a file out with other line ends
    return {(path, hash) for path, hash in files if hash in hashes.get(path, ())}


def _is_trusted(vault: Vault, voucher: git.Voucher) -> bool:
    trusted = {author.casefold() for author in vault.config.trusted_authors}
    people = (voucher.author, voucher.committer)
    return all(trusted & {name.casefold(), email.casefold()} for name, email in people)


def newest(vault: Vault, hits: Iterable[Hit]) -> list[Hit]:
    """Return hits in their order, each once and as the newest that says the same and is allowed.

    They say the same if `lessons check` reports them as near-duplicates and title or text is equal, if
    both were found and are nearly equal, or if one says to supersede the other or a copy of it.
    """
    all_hits = list(hits)
    if not all_hits:
        return []
    store = vault.open_index().store
    newer = _superseding(store) | _superseding_copies(store, all_hits)
    chosen: dict[str, Hit] = {}
    for hit in all_hits:
        best = hit if hit.lesson_id.casefold() in newer else _newest_like(vault, store, hit)
        best = _replaced(vault, best, newer)
        chosen.setdefault(best.lesson_id, best)
    return _one_of_each(vault, store, [*chosen.values()])


def _one_of_each(vault: Vault, store: Reader, hits: list[Hit]) -> list[Hit]:
    """Drop hits that are nearly equal to a better one, and put the newest in its place."""
    if len(hits) < 2:
        return hits
    vectors = store.of_lessons([hit.lesson_id for hit in hits])
    kept: list[Hit] = []
    for hit in hits:
        like = next(
            (index for index, each in enumerate(kept) if _are_alike(vectors, each, hit)), None
        )
        if like is None:
            kept.append(hit)
        else:
            latest = min(kept[like], hit, key=lambda each: _order(vault, each))
            kept[like] = replace(latest, **_evidence(kept[like]))
    return kept


def _are_alike(vectors: Mapping[str, Any], one: Hit, other: Hit) -> bool:
    first, second = vectors.get(one.lesson_id), vectors.get(other.lesson_id)
    return first is not None and second is not None and bool(first @ second >= _NEARLY_EQUAL)


def _newest_like(vault: Vault, store: Reader, hit: Hit) -> Hit:
    """Return the newest of the lessons that say the same as a hit, in its place."""
    keys, ids = _by_words(store)
    named = {id for key in keys.get(hit.lesson_id, ()) for id in ids[key]} - {hit.lesson_id}
    if not named:
        return hit
    vectors = store.of_lessons([hit.lesson_id, *named])
    here = vectors.get(hit.lesson_id)
    compared = vectors if here is not None else {}
    same = [id for id in named if id not in compared or compared[id] @ here >= DUPLICATE_COSINE]
    if not same:
        return hit
    return min([hit, *_in_place_of(vault, hit, same)], key=lambda each: _order(vault, each))


@once
def _by_words(store: Reader) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Return the keys of each lesson, its title and its text, folded; and the lessons of each key."""
    keys: dict[str, list[str]] = {}
    ids: dict[str, list[str]] = {}
    for row in store.wholes("lesson_id", "title", "text"):
        title = " ".join(row["title"].casefold().split())
        keys[row["lesson_id"]] = [title, file.hash_of(row["text"])]
        for key in keys[row["lesson_id"]]:
            ids.setdefault(key, []).append(row["lesson_id"])
    return keys, ids


def _replaced(vault: Vault, hit: Hit, newer: Mapping[str, str]) -> Hit:
    seen: set[str] = set()
    for _ in range(MAX_STEPS):
        id = newer.get(hit.lesson_id.casefold()) or newer.get(hit.title.casefold())
        if id is None or id in seen or id == hit.lesson_id:
            break
        seen.add(id)
        newer_hits = _in_place_of(vault, hit, [id])
        if not newer_hits:
            break
        hit = newer_hits[0]
    return hit


def _in_place_of(vault: Vault, hit: Hit, ids: Sequence[str]) -> list[Hit]:
    """Return lessons that an agent may get, with the evidence of the hit that they replace."""
    rows = vault.open_index().store.shown_of(ids)
    allowed = only(vault, (Hit.of_lesson(row) for row in rows if not row["withheld"]))
    return [replace(each, **_evidence(hit)) for each in allowed]


def _evidence(hit: Hit) -> dict[str, Any]:
    return {name: getattr(hit, name) for name in _SCORES}


_SCORES = (
    *("score", "cosine", "full_text", "exact", "passing", "is_named", "no_reason", "taught"),
    *("taught_prompt", "prompt", "prompted", "lead", "common", "as_line"),
)


def _order(vault: Vault, hit: Hit) -> tuple[float, int, str]:
    """Return the sort key of lessons that say the same: newest first, then the shortest path."""
    changed = hit.updated_at or hit.created_at
    when = changed.timestamp() if changed else 0.0
    if not changed:  # not committed yet
        with suppress(OSError):
            when = (vault.root / hit.path).stat().st_mtime
    return -when, len(hit.path), hit.path


def _superseding_copies(store: Reader, hits: Sequence[Hit]) -> dict[str, str]:
    """Return the superseding lessons of hits that copy a superseded one, by their ids, folded."""
    newer = _superseding(store)
    named = _superseded(store)
    if not named:
        return {}
    keys, _ = _by_words(store)
    vectors = store.of_lessons(list(dict.fromkeys([*named, *(hit.lesson_id for hit in hits)])))

    def is_copy(id: str, old: str) -> bool:
        least = DUPLICATE_COSINE if {*keys.get(id, ())} & {*keys[old]} else _NEARLY_EQUAL
        if id not in vectors or old not in vectors:
            return not vectors and least == DUPLICATE_COSINE
        return bool(vectors[id] @ vectors[old] >= least)

    found = {}
    for hit in hits:
        if {hit.lesson_id.casefold(), hit.title.casefold()} & newer.keys():
            continue
        others = (new for old, new in named.items() if is_copy(hit.lesson_id, old))
        new = next((id for id in others if id != hit.lesson_id), None)
        if new is not None:
            found[hit.lesson_id.casefold()] = new
    return found


@once
def _superseded(store: Reader) -> dict[str, str]:
    """Return the ids of the superseded lessons, each with its successor."""
    newer = _superseding(store)
    named = {}
    for row in store.wholes("lesson_id", "title") if newer else ():
        id = newer.get(row["lesson_id"].casefold()) or newer.get(row["title"].casefold())
        if id is not None and id != row["lesson_id"]:
            named[row["lesson_id"]] = id
    return named


@once
def _superseding(store: Reader) -> dict[str, str]:
    where = filters.all_of(filters.WHOLE, filters.FOR_AGENTS, filters.SUPERSEDES)
    rows = store.rows(("lesson_id", "supersedes"), where)
    return {name.casefold(): row["lesson_id"] for row in rows for name in row["supersedes"]}
