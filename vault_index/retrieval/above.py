"""The vaults above a project's: a team's, an organisation's. The user's settings name their folders."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from vault_index.errors import IndexStateError, VaultError
from vault_index.features import VaultsTable
from vault_index.retrieval.duplicates import DUPLICATE_COSINE
from vault_index.retrieval.hit import ContextBlock, Hit
from vault_index.vault import FOLDER, SETTINGS, Vault, open_vault, stamp_settings

if TYPE_CHECKING:
    import numpy as np

MAX_ABOVE = 8  # vaults above one


@dataclass(frozen=True, slots=True)
class Above:
    """A vault above, by its entry. `name` marks its lessons."""

    name: str
    entry: str
    root: Path

    @property
    def is_there(self) -> bool:
        return (self.root / FOLDER / SETTINGS).is_file()

    def marked(self, id: str, path: str) -> tuple[str, str]:
        """Return the id and the path of one of its lessons, as they say where it is from."""
        return f"{self.name}:{id}", f"{self.name}: {path}"

    def own_ids(self, ids: Iterable[str]) -> list[str]:
        """Return the ids of its lessons among marked ones, as it has them."""
        mark = f"{self.name}:"
        return [id.removeprefix(mark) for id in ids if id.startswith(mark)]


def of(vault: Vault) -> list[Above]:
    """Return the vaults above one, nearest first, each once, with names that differ."""
    vaults: dict[Path, Above] = {}
    names: set[str] = set()
    for entry in vault.config[VaultsTable].above:
        folder = Path(entry).expanduser()
        name = base = re.sub(r"[^\w.-]+", "-", folder.name) or "vault"
        number = 1
        while name in names:
            number += 1
            name = f"{base}-{number}"
        root = Path(os.path.realpath(folder))  # `resolve` raises for links in a circle
        if root not in vaults and root != vault.root:
            names.add(name)
            vaults[root] = Above(name, entry, root)
    return [*vaults.values()][:MAX_ABOVE]


@dataclass(frozen=True, slots=True)
class Listed:
    """A vault that a prompt searches, its state in words, and its size, None where there is no index."""

    name: str
    entry: str
    state: str
    lessons: int | None = None
    bytes: int | None = None


def listed(vault: Vault) -> list[Listed]:
    """Return the vaults that a prompt searches, nearest first."""
    rows = [_listed(vault.root.name, str(vault.root), vault)]
    for each in of(vault):
        row = Listed(each.name, each.entry, "no vault there")
        if each.is_there:
            try:
                row = _listed(each.name, each.entry, open_vault(each.root))
            except VaultError as error:
                row = replace(row, state=error.message)
        rows.append(row)
    return rows


def _listed(name: str, entry: str, vault: Vault) -> Listed:
    try:
        opened = vault.open_index()
    except IndexStateError:
        return Listed(name, entry, "no index: run `lessons sync`")
    size = sum(
        file.lstat().st_size
        for folder in (vault.lessons_dir, opened.store.index)
        for file in folder.rglob("*")
        if file.is_file() and not file.is_symlink()
    )
    return Listed(name, entry, "ready", opened.lessons, size)


Opened = list[tuple[Above, Vault]]
_opened: WeakKeyDictionary[Vault, tuple[object, Opened]] = WeakKeyDictionary()


def opened(vault: Vault) -> Opened:
    """Return the vaults above that are on this machine, opened once, with the embedder of this one.

    A change of their settings counts at once; an index that is open stays open.
    """
    wanted = [(each, stamp_settings(each.root)) for each in of(vault) if each.is_there]
    settings, pairs = _opened.get(vault, ([], []))
    if settings != wanted:
        before = {other.root: other for _, other in pairs}
        pairs = [(above, other) for above, _ in wanted for other in _open(vault, above, before)]
        _opened[vault] = wanted, pairs
    return pairs


def named(vault: Vault, name: str) -> tuple[Above, Vault, str] | None:
    """Return the vault above that a name of a lesson begins with, and the rest: `team:deploys`."""
    mark, _, rest = (part.strip() for part in name.partition(":"))
    vaults = opened(vault) if rest else []
    return next(((above, other, rest) for above, other in vaults if above.name == mark), None)


def _open(vault: Vault, above: Above, before: Mapping[Path, Vault]) -> Iterator[Vault]:
    try:
        other = open_vault(above.root)
        opened_before = before.get(other.root)
        if opened_before is not None and opened_before.config.embedder == other.config.embedder:
            opened_before.config = other.config
            other = opened_before
        if other.root.resolve() != above.root.resolve():  # a vault around the folder that was named
            return
        if other.config.embedder == vault.config.embedder:
            other.__dict__["embedder"] = vault.embedder
        yield other
    except VaultError:  # `lessons vaults` says what is wrong with it
        yield from filter(None, [before.get(above.root)])


def joined(
    vault: Vault, nearest: ContextBlock, search: Callable[[Above, Vault], ContextBlock]
) -> list[Hit]:
    """Return the hits of a vault and of the vaults above, without lessons that a nearer vault has.

    A lesson that a nearer vault gave before, or keeps silent, does not come from a farther one either:
    those are the `others` of an injection.
    """
    hits = list(nearest.hits)
    pairs = opened(vault)
    if not pairs:
        return hits

    def ask(pair: tuple[Above, Vault]) -> tuple[ContextBlock, dict[str, np.ndarray]]:
        other = pair[1]
        other.query_vectors = vault.query_vectors  # each is embedded once
        try:
            answer = search(*pair)
            return answer, _vectors(other, answer)
        except VaultError:  # it has no index yet, or none any more: `lessons vaults` says so
            return ContextBlock(""), {}

    with ThreadPoolExecutor(len(pairs)) as pool:  # most of a search is waiting for LanceDB
        answers = list(pool.map(ask, pairs))
    nearer, texts = [*_vectors(vault, nearest).values()], _texts([*nearest.hits, *nearest.others])
    for (above, _), (answer, vectors) in zip(pairs, answers, strict=True):
        for hit in answer.hits:
            if _texts([hit]) & texts or _is_near(vectors.get(hit.lesson_id), nearer):
                continue
            id, path = above.marked(hit.lesson_id, hit.path)
            hits.append(replace(hit, lesson_id=id, path=path))
        nearer += vectors.values()
        texts |= _texts([*answer.hits, *answer.others])
    return hits


def _is_near(vector: np.ndarray | None, others: Sequence[np.ndarray]) -> bool:
    return vector is not None and any(
        len(each) == len(vector) and float(each @ vector) >= DUPLICATE_COSINE for each in others
    )


def _texts(hits: Iterable[Hit]) -> set[str]:
    return {" ".join(f"{hit.title} {hit.text}".casefold().split()) for hit in hits}


def _vectors(vault: Vault, answer: ContextBlock) -> dict[str, np.ndarray]:
    ids = [hit.lesson_id for hit in [*answer.hits, *answer.others]]
    return vault.open_index().store.of_lessons(ids) if ids else {}
