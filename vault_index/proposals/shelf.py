"""Where the proposals of a vault wait, and what is kept of a rejected one to recognise it.

    ~/.lessons/proposals/                  0700, like all below it; files are 0600
      <project>/
        project.toml                       which repository it is: see journal.projects
        <vault>/                           the vault's place in the repository; `vault` at its top
          <id>.md                          a proposal that waits
          rejected.jsonl                   words and vectors of those that a person rejected

All work trees and clones of one repository share the folder, also after a move.
"""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

from vault_index import files
from vault_index.journal import shelves

if TYPE_CHECKING:
    import numpy as np

    from vault_index.vault import Vault

FOLDER, REJECTED = "proposals", "rejected.jsonl"
MAX_REJECTED = 2000  # the oldest go first; some 2 kB each
SAME_WORDS = 0.8  # of the words of both texts together: one in ten was changed
SKETCH = 256  # hashes kept of a text: the smallest, a fair sample of its words
_ID = re.compile(r"[0-9a-f]{8}")


@dataclass(frozen=True, slots=True)
class Rejected:
    """What recognises a rejected proposal: no text can be read from it.

    `words` are hashes of its distinct words, `vector` the embedder's, as float16 in base 64.
    """

    id: str
    at: str  # ISO 8601
    words: tuple[int, ...]
    embedder: str = ""
    vector: str = ""


def folder_of(vault: Vault) -> Path | None:
    """Return where the proposals of a vault are; None before the first. Writes nothing."""
    return shelves.folder_of(vault, FOLDER)


def opened(vault: Vault) -> AbstractContextManager[Path]:
    """Hold the proposals of a vault, whose folder is made if it is missing. Raises WriteError."""
    return shelves.opened(vault, FOLDER)


def ids(folder: Path | None) -> list[str]:
    """Return the ids of what waits, oldest first."""
    try:
        names = os.listdir(folder) if folder else []  # noqa: PTH208  # names are all it needs
    except OSError:
        return []
    written: dict[str, int] = {}
    for name in names:
        id = name.removesuffix(".md")
        if folder and id != name and _ID.fullmatch(id):
            with suppress(FileNotFoundError):  # accepted since it was listed
                written[id] = file_of(folder, id).lstat().st_mtime_ns
    return sorted(written, key=lambda id: (written[id], id))


def file_of(folder: Path, id: str) -> Path:
    """Return the file of a proposal."""
    return folder / f"{id}.md"


def read(folder: Path, id: str) -> bytes | None:
    """Return the content of a proposal's file; None if it is gone. Raises WriteError for a link."""
    return files.read_if_any(file_of(folder, id))


def write(folder: Path, id: str, data: bytes) -> Path:
    """Write the file of a proposal and return its path. Raises WriteError."""
    file = file_of(folder, id)
    with files.writing(file):
        files.replace_file(file, data)
    return file


def remove(folder: Path, id: str) -> None:
    """Remove the file of a proposal. Raises WriteError."""
    file = file_of(folder, id)
    with files.writing(file):
        file.unlink(missing_ok=True)


def rejected(folder: Path | None) -> list[Rejected]:
    """Return what recognises the rejected ones, oldest first; lines that are damaged are left out."""
    data = files.read_if_any(folder / REJECTED) if folder else None
    kept = []
    for line in (data or b"").splitlines():
        try:
            values = json.loads(line)
            kept.append(Rejected(**{**values, "words": tuple(values["words"])}))
        except (ValueError, TypeError, KeyError):
            continue
    return kept


def reject(
    folder: Path, id: str, at: str, words: Sequence[str], embedder: str, vector: str
) -> None:
    """Keep what recognises a proposal. Raises WriteError."""
    others = [one for one in rejected(folder) if one.id != id][1 - MAX_REJECTED :]
    lines = [*others, Rejected(id, at, hashed(words), embedder, vector)]
    text = "".join(f"{json.dumps(asdict(line))}\n" for line in lines)
    with files.writing(folder / REJECTED):
        files.replace_file(folder / REJECTED, text.encode())


def hashed(words: Sequence[str]) -> tuple[int, ...]:
    """Return up to `SKETCH` numbers of 32 bits that stand for the distinct words of a text."""
    digests = {blake2b(word.encode(), digest_size=4).digest() for word in words}
    return tuple(sorted(int.from_bytes(digest) for digest in digests)[:SKETCH])


def words_in_common(own: Sequence[int], other: Sequence[int]) -> float:
    """Return how much two sketches of words have in common, 0..1."""
    sample = sorted({*own, *other})[:SKETCH]
    both = {*own} & {*other}
    return sum(word in both for word in sample) / len(sample) if sample else 0.0


def has_words_of(words: Sequence[int], others: Iterable[Rejected]) -> bool:
    """Whether a text has nearly the words of one that was rejected."""
    return any(words_in_common(words, other.words) >= SAME_WORDS for other in others)


def packed(vector: np.ndarray) -> str:
    """Return a vector as float16 in base 64."""
    import numpy as np

    return base64.b64encode(np.asarray(vector, "<f2").tobytes()).decode()
