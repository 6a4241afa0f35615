"""Make the journal's table equal to its session files, which are the truth.

The index is a cache, laid out as that of a vault (see `store.manifest`): a folder that `current` names,
one writer at a time, a mark on the files whose rows may be newer than the manifest. After a kill at any
moment the next sync reads these once more. A rebuild is made in a folder beside the one in force.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from vault_index import files
from vault_index.embed.cache import VectorCache
from vault_index.errors import EmbedderError, IndexStateError, VaultError, WriteError
from vault_index.journal import archive, session_file
from vault_index.journal.journal import SCHEMA, Journal, OpenJournal
from vault_index.journal.record import FIELDS, OBSERVATION, PROMPT, SUMMARY, Record, Session
from vault_index.lesson.file import hash_of, hash_of_file
from vault_index.store import filters, manifest, ownership
from vault_index.store.manifest import FileEntry, Manifest
from vault_index.store.reader import Reader
from vault_index.store.schema import JOURNAL, VECTOR, JournalRow
from vault_index.store.sync import ASKED_FOR, DAMAGED, Source, batches
from vault_index.store.table import Table

if TYPE_CHECKING:
    from vault_index.embed import Embedder

# A session as rows of the journal's table: a row for each text that is embedded by itself.
#
# Short prompts say little alone ("yes, the second one"), so a prompt has a second row, with the end
# of what
# it answers. Each piece of a narrative, and each fact, has the beginning of its prompt in front.

# Measured on 60 labelled questions over 37 real sessions, right answers among the first five: .85; with
# facts without the beginning of their prompt .80, with 800 characters of what a prompt answers in place
# of 300 .83. Pieces of 600 to 1,200 are the same within one question.
CONTEXT_TAIL = 300  # characters, of what a prompt answers
PROMPT_HEAD = 300  # characters, of the prompt that a narrative belongs to
FACT_HEAD = 100  # characters, of the prompt that a fact belongs to
PIECE = 1200  # characters, about what an embedder reads
LONGEST = 24_000  # characters of a record's text that are searched: a paste has a beginning
MAX_FILES = 200  # of a record, in the filter


def of_session(session: Session, path: str) -> list[tuple[JournalRow, str]]:
    """Make a session's rows, without vectors, each with the text that is embedded.

    `path` is its file's, from the journal's folder.
    """
    prompts = {record.number: record for record in session.records if record.kind == PROMPT}
    rows: list[tuple[JournalRow, str]] = []
    at = session.began
    for place, record in enumerate(session.records):
        at = record.at or at
        shared = JournalRow(
            path=path,
            record=record.id,
            turn=_turn(path, record),
            kind=record.kind,
            session=session.id,
            project=session.project,
            branch=record.branch or session.branch,
            at=_moment(at),
            place=place,
            number=record.number,
            title=record.title,
            type=record.type,
            origin=record.origin,
            concepts=list(record.concepts),
            files=(files := _files(record)),
            touched=[comparable(file) for file in files],
        )
        prompt = prompts.get(record.number) if record.kind == OBSERVATION else None
        for number, (part, text, words, meant) in enumerate(_texts(record, prompt)):
            row = JournalRow(
                id=f"{path}:{record.id}@{number}",
                position=number,
                field=part,
                text=text,
                fulltext=words,
                content_hash=hash_of(meant),
                uuids=list(record.uuids) if number == 0 else [],  # once is enough
            )
            rows.append((shared | row, meant))
    return rows


def _texts(record: Record, prompt: Record | None) -> Iterator[tuple[str, str, str, str]]:
    """Yield (field, text, what full text searches, what is embedded) for each row; at least one."""
    if record.kind == PROMPT:
        pieces = cut(record.text[:LONGEST]) or [record.title]
        for piece in pieces:
            yield record.kind, piece, piece, piece
        if record.context:
            both = f"{record.context[-CONTEXT_TAIL:]}\n\n{record.text[:PROMPT_HEAD]}"
            yield "context", pieces[0], "", both
    elif record.kind == OBSERVATION:
        asked = prompt.text if prompt else record.title
        for piece in cut(record.text[:LONGEST]) or [record.title]:
            both = f"{asked[:PROMPT_HEAD]}\n\n{piece}"
            yield "narrative", piece, both, both
        for fact in record.facts:
            both = f"{asked[:FACT_HEAD]}\n{fact}"
            yield "fact", fact, both, both
    else:
        texts = {name: record.fields[name] for name in FIELDS if record.fields.get(name)}
        for name, text in (texts or {"request": record.title}).items():
            for piece in cut(text[:LONGEST]) or [record.title]:
                yield name, piece, piece, piece


def cut(text: str, size: int = PIECE) -> list[str]:
    """Cut a text at its paragraphs, then lines, then anywhere, into pieces of about a size."""
    pieces: list[str] = []
    piece = ""
    for part in _parts(text.strip(), size):
        if piece and len(piece) + len(part) > size:
            pieces.append(piece.strip())
            piece = ""
        piece += part
    return [*pieces, piece.strip()] if piece.strip() else pieces


def _parts(text: str, size: int) -> Iterator[str]:
    for paragraph in re.split(r"(?<=\n)(?=\s*\n)", text) if "\n" in text else (text,):
        if len(paragraph) <= size:
            yield paragraph
            continue
        for line in paragraph.splitlines(keepends=True):
            for start in range(0, len(line), size):
                yield line[start : start + size]


def _turn(path: str, record: Record) -> int:
    """Return what a prompt and the observations of its turn share, and no other record: 60 bits."""
    is_of_turn = record.kind != SUMMARY and record.number
    return int(hash_of(path, str(record.number) if is_of_turn else record.id)[:15], 16)


def _files(record: Record) -> list[str]:
    return list(dict.fromkeys((*record.files_modified, *record.files_read)))[:MAX_FILES]


def comparable(path: str) -> str:
    """Return a path as the filter compares it: lower-case, and each tail of it begins with a slash."""
    return "/" + path.replace("\\", "/").strip("/").lower()


def _moment(iso: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(iso)
    except ValueError:
        return None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


RECIPE = "text"  # part of the name under which vectors are kept
BATCH_ROWS = 1024  # about eight seconds of embedding between two commits
WORDS_ROWS = 4096  # without an embedder: a commit costs more than its rows
FOLDED_ROWS = 500  # full text looks through the rows that are newer than its index: 40 ms per 1,000
SMALL_ROWS = 20_000  # up to there it takes a tenth of a second
_WAITING = "waiting"  # rows that the table's indexes do not have yet, in the manifest
_FORGOTTEN = "something was forgotten"

Progress = Callable[[int, int], None]  # (files done, files to do)


@dataclass(frozen=True, slots=True)
class Stats:
    """The work of a sync, in session files; `embedded` counts texts."""

    added: int = 0
    changed: int = 0
    removed: int = 0
    unchanged: int = 0
    rows: int = 0  # written
    embedded: int = 0
    busy: bool = False  # another process is writing
    rebuilt: str = ""  # why the whole index was rebuilt, if it was
    seconds: float = 0.0
    problems: Mapping[str, str] = field(default_factory=dict)  # path -> why it is not as on disk

    @property
    def wrote(self) -> bool:
        """Whether the index is not what it was."""
        return bool(self.added or self.changed or self.removed or self.rebuilt)


@dataclass(frozen=True, slots=True)
class _Work:
    """An index, what it was built from, and how the session files differ from that."""

    index: Path
    manifest: Manifest
    version: files.Stamp  # of the manifest
    stamps: Mapping[str, files.Stamp]  # of the files that are other or new
    removed: Sequence[str]
    unchanged: int


def sync(
    journal: Journal,
    *,
    rebuild: bool = False,
    wait: bool = True,
    progress: Progress | None = None,
) -> Stats:
    """Bring the index up to date with the session files, and return what was done.

    `rebuild` builds a new index beside the old one, embeds all of it, and swaps. Without `wait`, if
    another process is writing, nothing is done. Raises WriteError, EmbedderError, and
    IndexStateError for an index of a newer version.
    """
    started = time.monotonic()
    if not journal.folder.is_dir():
        return Stats()
    reason, work = (ASKED_FOR, None) if rebuild else _look(journal)
    if work and not work.stamps and not work.removed and not manifest.is_dirty(work.index):
        return Stats(unchanged=work.unchanged, problems=_problems(work.manifest))
    with ownership.held(journal.index_dir, wait=wait) as is_free:
        if not is_free:
            return Stats(busy=True)
        if not rebuild and (work is None or _source(journal).is_outdated(work.index, work.version)):
            reason, work = _look(journal)  # somebody wrote meanwhile
        tell = progress or (lambda _done, _all: None)
        try:
            if work:
                return replace(_update(journal, work, tell), seconds=time.monotonic() - started)
        except IndexStateError:
            reason = DAMAGED
        stats = _rebuild(journal, reason, tell)
    return replace(stats, seconds=time.monotonic() - started)


def remove(journal: Journal, sessions: Collection[str]) -> None:
    """Take sessions, whose files are gone already, out of the index: their texts and vectors.

    The index is built once more without them, and those before it are deleted at once, with their old
    versions: no byte of them remains. Vectors of the others are not embedded again. If the new one cannot
    be written, on a full disk, the journal has no index until the next sync.
    """
    if not journal.folder.is_dir():
        return
    with ownership.held(journal.index_dir, wait=True):
        index = manifest.current(journal.index_dir)
        if index is not None:
            try:
                known = manifest.load(index, SCHEMA)
                table = Table(index, known.dimension, JOURNAL)
                gone = table.rows(["content_hash"], filters.of_sessions(sessions))
                _cache(journal).remove({row["content_hash"] for row in gone})
            except IndexStateError:
                index = None
        try:
            _rebuild(journal, _FORGOTTEN, lambda _done, _all: None, vectors_of=index)
        except (WriteError, IndexStateError, EmbedderError):
            manifest.remove_all(journal.index_dir)
    journal.opened = None


def tidy(journal: Journal) -> bool:
    """Remove old versions of the table. False if some are too young for it, or somebody is writing.

    Raises WriteError, IndexStateError.
    """
    with ownership.held(journal.index_dir, wait=False) as is_free:
        index = manifest.current(journal.index_dir)
        if not is_free or index is None:
            return False
        known = manifest.load(index, SCHEMA)
        is_tidy = Table(index, known.dimension, JOURNAL).tidy()
        if manifest.is_dirty(index):
            manifest.touch(index)
        else:
            _save_folded(journal, index, known)
        return is_tidy


def _save_folded(journal: Journal, index: Path, known: Manifest) -> None:
    """Note that no rows wait, which makes readers leave the version that they have open.

    It is read into memory before that: all rows may be in other places, which takes two seconds.
    """
    last, table = journal.opened, None
    if last and last.store.index == index:
        table = Reader(index, known.dimension, JOURNAL)
        table.follow(last.store)
        table.load()
    manifest.save(index, replace(known, derived={_WAITING: "0"}))
    if table is not None:
        version = manifest.version(index)
        journal.opened = OpenJournal(table, known.embedder, len(known.files), version)


# what is to be done


def _look(journal: Journal, index: Path | None = None) -> tuple[str, _Work | None]:
    """Return how the files differ from an index, that in force, or why it has to be rebuilt."""
    index = index or manifest.current(journal.index_dir)
    version = manifest.version(index) if index else None
    reason, recorded = _source(journal).why_rebuild(index)
    if index is None or version is None or recorded is None:
        return reason, None
    stamps = dict(archive.stamps(journal.folder))
    other = {path: stamp for path, stamp in stamps.items() if not _is_same(recorded, path, stamp)}
    removed = sorted(recorded.files.keys() - stamps.keys())
    return "", _Work(index, recorded, version, other, removed, len(stamps) - len(other))


def _source(journal: Journal) -> Source:
    return Source(journal, JOURNAL, SCHEMA)


def _is_same(known: Manifest, path: str, stamp: files.Stamp) -> bool:
    entry = known.files.get(path)
    return entry is not None and entry.stamp == list(stamp)


def _problems(known: Manifest) -> dict[str, str]:
    return {path: entry.problem for path, entry in known.files.items() if entry.problem}


# doing it


def _rebuild(
    journal: Journal, reason: str, progress: Progress, vectors_of: Path | None = None
) -> Stats:
    """Build a new index beside the one in force, then swap. An interrupted build is resumed."""
    forgets = reason == _FORGOTTEN
    source = _source(journal)
    building = source.start_building(resume=reason != ASKED_FOR and not forgets)
    _, work = _look(journal, building)
    if work is None:
        raise IndexStateError(DAMAGED, "run `lessons journal import`")
    kept_in = None
    if vectors_of is not None:
        recorded = manifest.load(vectors_of, SCHEMA)
        if (recorded.embedder, recorded.dimension) == (
            work.manifest.embedder,
            work.manifest.dimension,
        ):
            kept_in = Table(vectors_of, recorded.dimension, JOURNAL)
    stats = _update(journal, work, progress, use_cache=reason != ASKED_FOR, kept_in=kept_in)
    manifest.put_in_force(building, keep_seconds=-1 if forgets else manifest.KEEP_OLD_SECONDS)
    return replace(stats, rebuilt=reason)


def _update(
    journal: Journal,
    work: _Work,
    progress: Progress,
    *,
    use_cache: bool = True,
    kept_in: Table | None = None,
) -> Stats:
    """Write the rows of files that differ, a commit a batch; the caller holds the lock."""
    table = Table(work.index, work.manifest.dimension, JOURNAL)
    cache, embedded = _cache(journal, trusted=use_cache), 0
    after, written, done = work.manifest, 0, 0
    stats = Stats(removed=len(work.removed), unchanged=work.unchanged)
    pending = set(work.stamps) | set(work.removed)
    manifest.mark_dirty(work.index, pending)
    if work.removed:
        table.delete(filters.of_paths(work.removed))
        after = manifest.with_files(after, {}, work.removed)
    size = BATCH_ROWS if journal.embedder else WORDS_ROWS
    read = _read(journal, after, work.stamps)
    for batch in batches(read, lambda made: len(made.rows or ()), size):
        changed = [made for made in batch if made.rows is not None]
        pairs, stale = _differing(table, work.manifest, changed)
        if pairs:
            of_batch, made_now = _with_vectors(pairs, journal.embedder, kept_in or table, cache)
            table.replace(of_batch, [])
            embedded += made_now
        if stale:
            table.delete(filters.any_of("id", stale))
        after = manifest.with_files(after, {made.path: made.entry for made in batch})
        waiting = len(pairs) + int(after.derived.get(_WAITING, 0))
        after = replace(after, derived={_WAITING: str(waiting)})
        manifest.save(work.index, after)  # readers see it from now on
        pending -= {made.path for made in batch} | set(work.removed)
        if pending:
            manifest.mark_dirty(work.index, pending)
        new = sum(made.path not in work.manifest.files for made in changed)
        stats = replace(
            stats,
            added=stats.added + new,
            changed=stats.changed + len(changed) - new,
            unchanged=stats.unchanged + len(batch) - len(changed),
        )
        written, done = written + len(pairs), done + len(batch)
        progress(done, len(work.stamps))
    if pending:
        manifest.save(work.index, after)
    if _fold(table, after):
        _save_folded(journal, work.index, after)
    return replace(stats, rows=written, embedded=embedded, problems=_problems(after))


def _with_vectors(
    pairs: Sequence[tuple[JournalRow, str]],
    embedder: Embedder | None,
    table: Table,
    cache: VectorCache,
) -> tuple[list[JournalRow], int]:
    """Return rows with their vectors, and how many were made. Raises EmbedderError."""
    if embedder is None:
        return [row for row, _ in pairs], 0
    texts = {row["content_hash"]: text for row, text in pairs}
    vectors = table.vectors(sorted(texts))
    vectors |= cache.get(texts.keys() - vectors.keys())
    new = cache.make_missing(texts, vectors, lambda some: list(embedder.embed_documents(some)))
    vectors |= new
    return [row | JournalRow(vector=vectors[row["content_hash"]]) for row, _ in pairs], len(new)


def _cache(journal: Journal, *, trusted: bool = True) -> VectorCache:
    """Return the vectors that are kept for the user; see `VectorCache` for `trusted`."""
    dimension = journal.embedder.dimension if journal.embedder else 0
    name = f"{_source(journal).embedder} {RECIPE}"
    return VectorCache(journal.config.home, name, dimension, trusted=trusted)


def _fold(table: Table, after: Manifest) -> bool:
    """Fold new rows into the table's indexes: at once in a small table, in a large one when many wait.

    Whether that was done. In a large one it takes a second or two, and readers have the rows before.
    """
    waiting = int(after.derived.get(_WAITING, 0))
    is_due = waiting >= FOLDED_ROWS or (waiting > 0 and table.count() <= SMALL_ROWS)
    if is_due:
        table.fold()
    return is_due


def _differing(
    table: Table, known: Manifest, changed: Sequence[_Read]
) -> tuple[list[tuple[JournalRow, str]], list[str]]:
    """Return the rows of these files that are not in the table as they are, and the ids of stale ones.

    A session that goes on keeps the rows of its earlier turns. To replace all rows of a file in one
    commit LanceDB goes through the whole table: 15 times what it takes to write those that differ.
    """
    pairs = [pair for made in changed for pair in made.rows or ()]
    paths = [made.path for made in changed if made.path in known.files]
    if not paths:
        return pairs, []
    columns = [name for name in JOURNAL.columns() if name != VECTOR]
    there = {row["id"]: row for row in table.rows(columns, filters.of_paths(paths))}
    ids = {row["id"] for row, _ in pairs}
    other = [(row, text) for row, text in pairs if there.get(row["id"]) != row]
    return other, sorted(there.keys() - ids)


@dataclass(frozen=True, slots=True)
class _Read:
    """A session file that was read. `rows` are None where those in the table stay."""

    path: str
    entry: FileEntry
    rows: list[tuple[JournalRow, str]] | None


def _read(journal: Journal, known: Manifest, stamps: Mapping[str, files.Stamp]) -> Iterator[_Read]:
    """Read session files one after another; one that cannot be read keeps the rows it has."""
    for path, stamp in stamps.items():
        before = known.files.get(path)
        trusted = [] if files.is_racy(stamp) else list(stamp)
        try:
            data = files.read_file(journal.folder / path)
            content = hash_of_file(data)
            if before and before.hash == content and not before.problem:
                yield _Read(path, replace(before, stamp=trusted), None)
                continue
            session = session_file.parse(data, path)
        except VaultError as error:
            entry = replace(before or FileEntry("", []), stamp=trusted, problem=error.message)
            yield _Read(path, entry, None)
            continue
        entry = FileEntry(content, trusted, len(session.records))
        yield _Read(path, entry, of_session(session, path))
