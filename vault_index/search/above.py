"""The vaults above a project's: a team's, an organisation's. The user names them, nearest first.

An entry is a folder with a vault, or the address of a git repository with an optional tag, branch or
commit after "@", of which `share.clones` keeps a clone in the user's folder. A vault may propose
entries in its own settings; they count once the user has accepted the list as it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from vault_index import files
from vault_index.errors import VaultError
from vault_index.features import VaultsTable
from vault_index.lesson.file import hash_of
from vault_index.search.hit import Hit
from vault_index.search.taught import DUPLICATE_COSINE
from vault_index.vault import FOLDER, SETTINGS, Vault, open_vault

if TYPE_CHECKING:
    import numpy as np

    from vault_index.config import Config

CLONES, ACCEPTED = "vaults", "vaults.json"  # in the user's folder
PROPOSED = "vaults.above"  # the setting that a vault may propose
MAX_ABOVE = 8  # vaults above one
_GIT = re.compile(r"(?P<url>(?:[a-z+]+://[^/]*/|[\w.-]+@[\w.-]+:)[^@\s]+)(?:@(?P<ref>[\w./+-]+))?")


@dataclass(frozen=True, slots=True)
class Above:
    """A vault above, by its entry. `name` marks what comes from it; `url` is "" for a folder."""

    name: str
    entry: str
    root: Path
    url: str = ""
    ref: str = ""

    @property
    def is_there(self) -> bool:
        """Whether its files are on this machine."""
        return (self.root / FOLDER / SETTINGS).is_file()

    def marked(self, id: str, path: str) -> tuple[str, str]:
        """Return the id and the path of one of its lessons, as they say where it is from."""
        return f"{self.name}:{id}", f"{self.name}: {path}"

    def own(self, ids: Iterable[str]) -> list[str]:
        """Return the ids of its lessons among marked ones, as it has them."""
        mark = f"{self.name}:"
        return [id.removeprefix(mark) for id in ids if id.startswith(mark)]


def proposals(vault: Vault) -> list[str]:
    """Return the vaults above that the vault proposes."""
    return list(vault.config.proposed.get(PROPOSED, ()))


def of(vault: Vault) -> list[Above]:
    """Return the vaults above one, nearest first: those of the user, then those accepted for it."""
    entries = [*vault.config[VaultsTable].above]
    proposed = proposals(vault)
    if proposed and accepted(vault.config).get(str(vault.root)) == proposed:
        entries += proposed
    return [each for each in parsed(vault.config, entries) if each.root != vault.root][:MAX_ABOVE]


def parsed(config: Config, entries: Iterable[str]) -> list[Above]:
    """Return the vaults that entries name, each once, with names that differ."""
    vaults: dict[Path, Above] = {}
    names: set[str] = set()
    for entry in entries:
        match = None if Path(entry).is_absolute() else _GIT.fullmatch(entry)
        url, ref = (match["url"], match["ref"] or "") if match else ("", "")
        plain = re.split(r"[/:]", url.rstrip("/"))[-1].removesuffix(".git")
        folder = Path(entry).expanduser()
        name = re.sub(r"[^\w.-]+", "-", plain if url else folder.name) or "vault"
        root = config.home / CLONES / f"{name}-{hash_of(entry)[:8]}" if url else folder.resolve()
        base, number = name, 1
        while name in names:
            number += 1
            name = f"{base}-{number}"
        if root not in vaults:
            names.add(name)
            vaults[root] = Above(name, entry, root, url, ref)
    return [*vaults.values()]


def accepted(config: Config) -> dict[str, list[str]]:
    """Return the entries that the user accepted, by the vault that proposed them."""
    return files.read_json(config.home / ACCEPTED)


def accept(vault: Vault) -> None:
    """Note that the user accepts what a vault proposes now; another list is asked about again."""
    noted = {**accepted(vault.config), str(vault.root): proposals(vault)}
    files.replace_file(vault.config.home / ACCEPTED, json.dumps(noted, indent=1).encode())


_opened: WeakKeyDictionary[Vault, list[tuple[Above, Vault]]] = WeakKeyDictionary()


def opened(vault: Vault) -> list[tuple[Above, Vault]]:
    """Return the vaults above that are on this machine, opened once, with the embedder of this one."""
    if not vault.config[VaultsTable].above and not proposals(vault):
        return []
    wanted = [each for each in of(vault) if each.is_there]
    known = _opened.get(vault, [])
    if [above for above, _ in known] != wanted:
        known = [(above, other) for above in wanted for other in _open(vault, above)]
        _opened[vault] = known
    return known


def named(vault: Vault, name: str) -> tuple[Above, Vault, str] | None:
    """Return the vault above that a name of a lesson begins with, and the rest: `team:deploys`."""
    place, _, rest = (part.strip() for part in name.partition(":"))
    there = opened(vault) if rest else []
    return next(((above, other, rest) for above, other in there if above.name == place), None)


def _open(vault: Vault, above: Above) -> Iterator[Vault]:
    try:
        other = open_vault(above.root)
        if other.root.resolve() != above.root.resolve():  # a vault around the folder that was named
            return
        if other.config.embedder == vault.config.embedder:
            other.__dict__["embedder"] = vault.embedder
        yield other
    except VaultError:  # `lessons vaults` says what is wrong with it
        return


@dataclass(frozen=True, slots=True)
class Answer:
    """The lessons of one vault for a prompt, each above that vault's floor.

    `hits` are new to the session, `others` were told before or kept silent by `silent_on`.
    """

    hits: Sequence[Hit] = ()
    others: Sequence[Hit] = ()


def joined(vault: Vault, own: Answer, search: Callable[[Above, Vault], Answer]) -> list[Hit]:
    """Return the hits of a vault, and those of the vaults above that no nearer one has as well.

    A lesson that a nearer vault told before, or keeps silent, stays out of a farther one, too.
    """
    hits = list(own.hits)
    places = opened(vault)
    if not places:
        return hits

    def ask(place: tuple[Above, Vault]) -> tuple[Answer, dict[str, np.ndarray]]:
        other = place[1]
        other.query_vectors = vault.query_vectors  # each is embedded once
        try:
            with other.opened_once():
                answer = search(*place)
                return answer, _vectors(other, answer)
        except VaultError:  # it has no index yet, or none any more: `lessons vaults` says so
            return Answer(), {}

    with ThreadPoolExecutor(len(places)) as pool:  # most of a search is waiting for LanceDB
        answers = list(pool.map(ask, places))
    nearer, texts = [*_vectors(vault, own).values()], _texts(own)
    for (above, _), (answer, vectors) in zip(places, answers, strict=True):
        for hit in answer.hits:
            if _texts(Answer([hit])) & texts or _is_near(vectors.get(hit.lesson_id), nearer):
                continue
            id, path = above.marked(hit.lesson_id, hit.path)
            hits.append(replace(hit, lesson_id=id, path=path))
        nearer += vectors.values()
        texts |= _texts(answer)
    return hits


def _is_near(vector: np.ndarray | None, others: Sequence[np.ndarray]) -> bool:
    return vector is not None and any(
        len(each) == len(vector) and float(each @ vector) >= DUPLICATE_COSINE for each in others
    )


def _texts(answer: Answer) -> set[str]:
    every = [*answer.hits, *answer.others]
    return {" ".join(f"{hit.title} {hit.text}".casefold().split()) for hit in every}


def _vectors(vault: Vault, answer: Answer) -> dict[str, np.ndarray]:
    ids = [hit.lesson_id for hit in [*answer.hits, *answer.others]]
    return vault.open_index().store.of_lessons(ids) if ids else {}
