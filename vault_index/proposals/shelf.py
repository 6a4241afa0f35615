"""The folder in which the proposals of a vault wait, and what is kept of a rejected one to recognise it.

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
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vault_index import files
from vault_index.errors import WriteError
from vault_index.journal import projects
from vault_index.proposals import draft

if TYPE_CHECKING:
    import numpy as np

    from vault_index.proposals.draft import Proposal
    from vault_index.vault import Vault

# What recognises a draft that was seen before, also in other words: no text can be read from it.
#
# Two drafts are the same by their words, by the model, or by the same evidence and some likeness.
# Over
# 30 lessons, each with an honest rewording and with another lesson on its subject
# (`revocabulary.jsonl`
# among the tests): by the model alone 12 rewordings are recognised and no other lesson, and 1.2% of
# 1,870
# notes are taken for one of 100 others; with a quote or prompt in common 29 are (and 5 others),
# of one session 22 (and 2). A lower `SAME_COSINE` does not pay: .7 recognises 18, and 2.3% of the
# notes.

SAME_WORDS = 0.8  # of the words of both texts together: one in ten was changed
SAME_COSINE = 0.75
EVIDENCE_WORDS, EVIDENCE_COSINE = 0.2, 0.6  # with a quote or a prompt in common
SESSION_WORDS, SESSION_COSINE = 0.25, 0.7  # of one session
SIZE = 256  # hashes kept of a text: the smallest, a fair sample of its words
MIN_EVIDENCE_WORDS = 4  # of a quote or prompt: a shorter one is evidence of anything


@dataclass(frozen=True, slots=True)
class Sketch:
    """A draft without its text.

    `words` are hashes of its distinct words, `evidence` one of each quote and each prompt that should
    find it, `session` the private id of one, and `vector` is the embedder's, as float16 in base 64.
    """

    id: str
    at: str  # ISO 8601
    words: tuple[int, ...]
    embedder: str = ""
    vector: str = ""
    evidence: tuple[int, ...] = ()
    session: str = ""


def sketch_of(proposal: Proposal, compared: Mapping[str, Any], at: str = "") -> Sketch:
    """Return the sketch of a proposal. `compared` is what `likeness.of` returned of it, if anything."""
    embedder, vector = (str(compared.get(key) or "") for key in ("embedder", "vector"))
    spoken = map(draft.words, (*proposal.quotes, *proposal.fires_on))
    evidence = [" ".join(words) for words in spoken if len(words) >= MIN_EVIDENCE_WORDS]
    return Sketch(
        id=proposal.id,
        at=at,
        words=hashed(draft.words(f"{proposal.title} {proposal.text}")),
        embedder=embedder,
        vector=vector,
        evidence=hashed(evidence),
        session=proposal.session,
    )


def hashed(words: Sequence[str]) -> tuple[int, ...]:
    """Return up to `SIZE` numbers of 32 bits that stand for the distinct words of a text."""
    digests = {blake2b(word.encode(), digest_size=4).digest() for word in words}
    return tuple(sorted(int.from_bytes(digest) for digest in digests)[:SIZE])


def words_in_common(own: Sequence[int], other: Sequence[int]) -> float:
    """Return how much two samples of words have in common, 0..1."""
    sample = sorted({*own, *other})[:SIZE]
    both = {*own} & {*other}
    return sum(word in both for word in sample) / len(sample) if sample else 0.0


def alike_enough(own: frozenset[int], other: Sequence[int], least: float) -> bool:
    """Whether two samples of words have a share in common; most are told apart by a quick count."""
    most = max(len(own), len(other), 1)
    if len(own.intersection(other)) < least * most:
        return False
    return words_in_common(sorted(own), other) >= least


def same_sketch(own: Sketch, others: Iterable[Sketch]) -> Sketch | None:
    """Return the first of some sketches that is of the same draft, in whatever words; None for none."""
    mine, mine_words = unpacked(own.vector), frozenset(own.words)
    for other in others:
        cosine = _cosine(mine, other) if own.embedder == other.embedder else 0.0
        words, model = SAME_WORDS, SAME_COSINE
        if own.session and own.session == other.session:
            words, model = SESSION_WORDS, SESSION_COSINE
        if {*own.evidence} & {*other.evidence}:
            words, model = EVIDENCE_WORDS, EVIDENCE_COSINE
        if cosine >= model or alike_enough(mine_words, other.words, words):
            return other
    return None


def packed(vector: np.ndarray) -> str:
    """Return a vector as float16 in base 64."""
    import numpy as np

    return base64.b64encode(np.asarray(vector, "<f2").tobytes()).decode()


def unpacked(vector: str) -> np.ndarray | None:
    """Return a vector that was packed, float32[dimension]; None for ""."""
    if not vector:
        return None
    import numpy as np

    return np.frombuffer(base64.b64decode(vector), "<f2").astype(np.float32)


def _cosine(mine: np.ndarray | None, other: Sketch) -> float:
    vector = unpacked(other.vector)
    if mine is None or vector is None or len(vector) != len(mine):
        return 0.0
    return float(vector @ mine)


FOLDER, REJECTED = "proposals", "rejected.jsonl"
MAX_REJECTED = 2000  # the oldest go first; some 2 kB each
_ID = re.compile(r"[0-9a-f]{8}")
_CREATED = re.compile(rb"^created:[ \t]*['\"]?([0-9][0-9T:.+\- Z]+)", re.MULTILINE)


def folder_of(vault: Vault) -> Path | None:
    """Return where the proposals of a vault are; None before the first. Writes nothing."""
    return projects.private_folder(vault, FOLDER)


def opened(vault: Vault) -> AbstractContextManager[Path]:
    """Hold the proposals of a vault, whose folder is made if it is missing. Raises WriteError."""
    return projects.hold_private_folder(vault, FOLDER)


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


def created(folder: Path, id: str) -> datetime | None:
    """Return when a proposal was made, or its file was written if it does not say; None if it is gone."""
    try:
        data = read(folder, id)
        written = file_of(folder, id).lstat().st_mtime
    except (OSError, WriteError):
        return None
    match = _CREATED.search(data or b"")
    with suppress(ValueError):
        if match:
            moment = datetime.fromisoformat(match[1].decode().strip())
            return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return datetime.fromtimestamp(written, UTC)


def rejected(folder: Path | None) -> Sequence[Sketch]:
    """Return what recognises the rejected ones, oldest first; lines that are damaged are left out."""
    if folder is None:
        return ()
    file = folder / REJECTED
    try:
        stamp = files.stamp_of(file.lstat())
    except OSError:
        return ()
    return _sketches(file, str(stamp))


@lru_cache(maxsize=4)  # a watcher is asked for each proposal, and a person rejects few
def _sketches(file: Path, _stamp: str) -> Sequence[Sketch]:
    data = files.read_if_any(file)
    kept = []
    for line in (data or b"").splitlines():
        try:
            values = json.loads(line)
            numbers = {name: tuple(values.get(name, ())) for name in ("words", "evidence")}
            kept.append(Sketch(**{**values, **numbers}))
        except (ValueError, TypeError, KeyError):
            continue
    return kept


def reject(folder: Path, sketch: Sketch) -> None:
    """Keep what recognises a proposal. Raises WriteError."""
    others = [other for other in rejected(folder) if other.id != sketch.id][1 - MAX_REJECTED :]
    text = "".join(f"{json.dumps(asdict(line))}\n" for line in [*others, sketch])
    with files.writing(folder / REJECTED):
        files.replace_file(folder / REJECTED, text.encode())
