"""Make the journal's table equal to the sessions of the user's database, which are the truth.

The index is a cache, made and repaired as a vault's is: see `store.sync`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from vault_index import state
from vault_index.embed.cache import VectorCache
from vault_index.errors import EmbedderError, IndexStateError, WriteError
from vault_index.files import make_folder
from vault_index.hotpath import start
from vault_index.journal import archive
from vault_index.journal.journal import SCHEMA, Journal, OpenJournal, load_manifest
from vault_index.journal.record import FIELDS, OBSERVATION, PROMPT, SUMMARY, Record, Session
from vault_index.lesson.file import hash_of
from vault_index.lesson.parse import parse_time
from vault_index.store import completing, filters, manifest, ownership
from vault_index.store.lance import Table
from vault_index.store.manifest import FileEntry, Manifest, ReadFile
from vault_index.store.reader import Reader
from vault_index.store.schema import JOURNAL, JournalRow
from vault_index.store.sync import (
    ASKED_FOR,
    MANY,
    Away,
    Progress,
    Source,
    Stats,
    Work,
    Writer,
    vectors_from,
)
from vault_index.text.words import split_unspaced

if TYPE_CHECKING:
    import numpy as np

    from vault_index.embed import Embedder

# A session as rows of the journal's table: a row for each text that is embedded by itself.
#
# Short prompts say little alone ("yes, the second one"), so a prompt has a second row, with the end of
# what it answers. Each piece of a narrative, and each fact, has the beginning of its prompt in front.
# Measured on 60 labelled questions over 37 real sessions, right answers among the first five: .85; with
# facts without the beginning of their prompt .80, with 800 characters of what a prompt answers in place
# of 300 .83. Pieces of 600 to 1,200 are the same within one question.
CONTEXT_TAIL = 300  # characters, of what a prompt answers
PROMPT_HEAD = 300  # characters, of the prompt that a narrative belongs to
FACT_HEAD = 100  # characters, of the prompt that a fact belongs to
PIECE = 1200  # characters, about what an embedder reads
LONGEST = 24_000  # characters of a record's text that are searched: a paste has a beginning
MAX_FILES = 200  # of a record, in the filter


def of_session(session: Session) -> list[tuple[JournalRow, str]]:
    """Make a session's rows, without vectors, each with the text that is embedded."""
    prompts = {record.number: record for record in session.records if record.kind == PROMPT}
    rows: list[tuple[JournalRow, str]] = []
    when = session.began
    for ordinal, record in enumerate(session.records):
        when = record.at or when
        paths = list(dict.fromkeys((*record.files_modified, *record.files_read)))[:MAX_FILES]
        shared = JournalRow(
            path=session.short,
            record=record.id,
            turn=_turn(record),
            kind=record.kind,
            session=session.id,
            project=session.project,
            branch=record.branch or session.branch,
            at=parse_time(when),
            place=ordinal,
            number=record.number,
            title=record.title,
            type=record.type,
            origin=record.origin,
            concepts=list(record.concepts),
            files=paths,
            touched=list(map(comparable, paths)),
        )
        prompt = prompts.get(record.number) if record.kind == OBSERVATION else None
        for number, (part, text, words, meant) in enumerate(_texts(record, prompt)):
            row = JournalRow(
                id=f"{record.id}@{number}",
                position=number,
                field=part,
                text=text,
                fulltext=split_unspaced(words),
                content_hash=hash_of(meant),
                uuids=list(record.uuids) if number == 0 else [],  # once is enough
            )
            rows.append((shared | row, meant))
    return rows


def _texts(record: Record, prompt: Record | None) -> Iterator[tuple[str, str, str, str]]:
    """Yield at least one row: (field, text, text to search, text to embed)."""
    if record.kind == PROMPT:
        pieces = cut(record.text[:LONGEST]) or [record.title]
        for piece in pieces:
            yield record.kind, piece, piece, piece
        if record.context:
            both = f"{record.context[-CONTEXT_TAIL:]}\n\n{record.text[:PROMPT_HEAD]}"
            yield "context", pieces[0], "", both
    elif record.kind == OBSERVATION:
        question = prompt.text if prompt else record.title
        for piece in cut(record.text[:LONGEST]) or [record.title]:
            both = f"{question[:PROMPT_HEAD]}\n\n{piece}"
            yield "narrative", piece, both, both
        for fact in record.facts:
            both = f"{question[:FACT_HEAD]}\n{fact}"
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
            for begin in range(0, len(line), size):
                yield line[begin : begin + size]


def _turn(record: Record) -> int:
    """Return an id that a prompt and the observations of its turn share, and no other record: 60 bits."""
    is_of_turn = record.kind != SUMMARY and record.number
    session, _, suffix = record.id.rpartition("-")
    return int(hash_of(session, str(record.number) if is_of_turn else suffix)[:15], 16)


def comparable(path: str) -> str:
    """Return a path as the filter compares it: lower-case, and each tail of it begins with a slash."""
    return "/" + path.replace("\\", "/").strip("/").lower()


RECIPE = "text"  # part of the name under which vectors are kept
BATCH_ROWS = 1024  # about eight seconds of embedding between two commits
WORDS_ROWS = 4096  # without an embedder: a commit costs more than its rows
FOLDED_ROWS = 500  # full text looks through the rows that are newer than its index: 40 ms per 1,000
SMALL_ROWS = 20_000  # up to there it takes a tenth of a second
MAX_VERSIONS = (
    200  # of a larger table, where no watcher is there to tidy it: a turn makes one or two
)
_FORGOTTEN = "something was forgotten"
_NOT_ASKED = EmbedderError("the embedder is not asked where something is forgotten")


@dataclass(frozen=True, slots=True)
class JournalStats(Stats):
    """The result of a sync, in sessions."""

    rows: int = 0  # written


@dataclass(frozen=True, slots=True)
class SessionDiff:
    """The difference between the sessions and a manifest."""

    written: Mapping[str, int]  # those that are other or new: by name, when they were written
    removed: Sequence[str]
    unchanged: int

    def __len__(self) -> int:
        return len(self.written) + len(self.removed)


def sync(
    journal: Journal,
    *,
    rebuild: bool = False,
    wait: bool = True,
    completes: bool = True,
    progress: Progress = lambda _done, _all: None,
) -> JournalStats:
    """Bring the index up to date with the sessions, and return its statistics.

    `rebuild` builds a new index beside the old one, embeds all of it, and swaps. Without `wait`, if
    another process is writing, nothing is done. Many new texts are found by words first, and get their
    vectors after that, unless the caller has somebody else that `completes` them. Raises WriteError,
    EmbedderError, and IndexStateError for an index of a newer version.
    """
    if not journal.folder.is_dir() and archive.is_empty(journal):
        return JournalStats()
    make_folder(journal.folder)
    source = Sessions(journal, progress)
    source.waits = completes
    stats = source.sync_or_by_words(rebuild=rebuild, wait=wait)
    if not completes or stats.busy or not stats.lacking:
        return stats
    completed = complete(journal)
    return replace(
        stats,
        embedded=stats.embedded + completed.embedded,
        lacking=stats.lacking if completed.busy else completed.lacking,
        no_vectors=completed.why or stats.no_vectors,
    )


def complete(journal: Journal) -> completing.Completed:
    """Make the vectors that sessions lack; where another process does, nothing.

    Raises WriteError, IndexStateError.
    """
    return completing.complete(Sessions(journal), lambda _done, _all: None)


def complete_later(journal: Journal, stats: JournalStats) -> int:
    """Have a process of its own make the vectors that sessions lack; return the number of these sessions.

    None is started where the embedder has just failed. Raises OSError.
    """
    if stats.lacking and not stats.no_vectors:
        start.start_capture(str(journal.folder))
    return stats.lacking


def lacks_vectors(journal: Journal) -> bool:
    """Whether sessions wait for vectors. Raises IndexStateError, ForeignIndexError."""
    index = manifest.current(journal.index_dir)
    return index is not None and bool(manifest.waiting(load_manifest(journal, index)))


def remove(journal: Journal, sessions: Collection[str]) -> None:
    """Take sessions, which are gone already, out of the index: their texts and vectors.

    The index is built once more without them, and those before it are deleted at once, with their old
    versions: no byte of them remains. Vectors of the others are not embedded again. If the new one cannot
    be written, on a full disk, the journal has no index until the next sync.
    """
    if not journal.folder.is_dir():
        return
    with ownership.held(journal.index_dir, wait=True):
        index = manifest.current(journal.index_dir)
        source = Sessions(journal)
        if index is not None:
            try:
                known = load_manifest(journal, index)
                table = Table(index, known.dimension, JOURNAL)
                removed = table.rows(["content_hash"], filters.any_of("session", sessions))
                table_of = known.embedder != manifest.NO_EMBEDDER
                away = Away(known.embedder, known.dimension, _NOT_ASKED) if table_of else None
                source = source.with_embedder(away)  # all vectors that stay are in the table
                source.cache().remove({row["content_hash"] for row in removed})
                source.vectors_in = table if table_of else None
            except IndexStateError:
                pass
        try:
            source.rebuild(_FORGOTTEN, resume=False, keep_seconds=-1)
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
        known = load_manifest(journal, index)
        is_tidy = Table(index, known.dimension, JOURNAL).tidy()
        _reopen(journal, index, known)
        return is_tidy


def _reopen(journal: Journal, index: Path, known: Manifest) -> None:
    """Make readers leave the version that they have open, once ours has read the one after it.

    All rows may be in other places, which takes two seconds.
    """
    last, table = journal.opened, None
    if last and last.store.index == index:
        table = Reader(index, known.dimension, JOURNAL)
        table.load()
    manifest.touch(index)
    if table is not None:
        version = manifest.version(index)
        lacking = len(manifest.waiting(known))
        journal.opened = OpenJournal(table, known.embedder, len(known.files), version, lacking)


class Sessions(Source[SessionDiff, JournalStats]):
    """The sessions of the journal."""

    columns = JOURNAL
    schema = SCHEMA
    to_change = "run `lessons config set embedder NAME` to change the index"
    starts_by_words = False

    def __init__(self, journal: Journal, progress: Progress = lambda _done, _all: None) -> None:
        super().__init__(journal)
        self.journal = journal
        self.progress = progress
        self.waits = True  # whether the caller waits for a server
        self.vectors_in: Table | None = None  # an index before this one, whose vectors still hold

    @property
    def _at_most(self) -> int:
        """Return the most vectors to make while rows are written: none by a server in a hurry."""
        return MANY if self.waits or self.journal.config.is_built_in else 0

    def cache(self, *, trusted: bool = True, at_most: int | None = None) -> VectorCache:
        dimension = self.journal.embedder.dimension if self.journal.embedder else 0
        home, name = self.journal.config.home, f"{self.embedder} {RECIPE}"
        return VectorCache(home, name, dimension, trusted=trusted, at_most=at_most)

    def cache_of(self, index: Path, known: Manifest) -> VectorCache:
        """Return the vectors that are kept."""
        del index, known
        return self.cache()

    def make(self, embedder: Embedder, contents: list[str]) -> Iterable[np.ndarray]:
        """Embed texts."""
        return embedder.embed_documents(contents)

    def contents_of(self, table: Table, known: Manifest, paths: Sequence[str]) -> dict[str, str]:
        """Return the texts of sessions that are embedded."""
        del table
        read = _read(self.journal, known, paths)
        return {key: text for session in read for key, text in session.contents.items()}

    def finish(self, table: Table, after: Manifest, written: int) -> None:
        """Save the manifest, and take the rows into the text index as after a sync."""
        manifest.save(table.index, after)  # readers see it from now on
        # a small table takes in new rows at once; in a large one that takes a second or two
        is_due = written >= FOLDED_ROWS or table.count_versions() > MAX_VERSIONS
        if is_due or (written and table.count() <= SMALL_ROWS):
            table.fold()
            _reopen(self.journal, table.index, after)

    def load(self, index: Path) -> Manifest:
        return load_manifest(self.journal, index)

    def compare(self, known: Manifest, *, rebuild: bool = False) -> SessionDiff:
        """Compare the sessions with a manifest, by the times at which they were written."""
        del rebuild
        with state.reading(self.journal.home) as db:
            sessions: dict[str, int] = dict(db.execute("SELECT short, written FROM session"))
        other = {
            short: written
            for short, written in sessions.items()
            if (entry := known.files.get(short)) is None or entry.stamp != [written]
        }
        removed = sorted(known.files.keys() - sessions.keys())
        return SessionDiff(other, removed, len(sessions) - len(other))

    def with_embedder(self, embedder: Away | None) -> Sessions:
        """Return the same with another embedder; the journal of the caller keeps its own."""
        journal = Journal(self.journal.config)
        journal.embedder = embedder
        other = Sessions(journal, self.progress)
        other.vectors_in, other.waits = self.vectors_in, self.waits
        return other

    def is_current(self, work: Work[SessionDiff]) -> bool:
        return not len(work.changes) and not manifest.is_dirty(work.index)

    def nothing(self, work: Work[SessionDiff] | None) -> JournalStats:
        if work is None:
            return JournalStats()
        return JournalStats(
            unchanged=work.changes.unchanged, lacking=len(manifest.waiting(work.manifest))
        )

    def update(self, work: Work[SessionDiff]) -> JournalStats:
        """Write the rows of sessions that differ, a commit a batch; the caller holds the lock."""
        table = Table(work.index, work.manifest.dimension, JOURNAL)
        trusted, embedder = work.reason != ASKED_FOR, self.journal.embedder
        cache = self.cache(trusted=trusted, at_most=self._at_most if trusted else None)
        vectors = vectors_from(cache, embedder, self.make)
        size = BATCH_ROWS if embedder else WORDS_ROWS
        writer = Writer(table, vectors, size, vectors_in=self.vectors_in)
        known, due = work.manifest.files, work.changes.written
        counts, written = Counter[str](), 0

        def tell(batch: Sequence[ReadFile], differing: int) -> None:
            nonlocal written
            written += differing
            for file in batch:
                entry = known.get(file.path)
                is_new = entry is None or not entry.hash
                counts["same" if file.rows is None else "added" if is_new else "changed"] += 1
            self.progress(counts.total(), len(due))

        read = _read(self.journal, work.manifest, due)
        after = writer.write(work.manifest, read, due, work.changes.removed, tell)
        self.finish(table, after, written)
        return JournalStats(
            added=counts["added"],
            changed=counts["changed"],
            removed=len(work.changes.removed),
            unchanged=work.changes.unchanged + counts["same"],
            embedded=cache.embedded,
            lacking=len(manifest.waiting(after)),
            rows=written,
        )


def _read(journal: Journal, known: Manifest, due: Iterable[str]) -> Iterator[ReadFile]:
    """Read sessions one after another; one that says what it said keeps the rows it has."""
    for short in due:
        with state.reading(journal.home) as db:
            found = archive.sessions(db, "WHERE short = ?", [short])
            session = archive.with_records(db, found[0]) if found else None
        if session is None:  # forgotten meanwhile
            continue
        pairs = of_session(session)
        before, content = known.files.get(short), hash_of(*(repr(pair) for pair in pairs))
        entry = FileEntry(content, [session.written], len(session.records))
        if before and before.hash == content and not before.lacks:
            yield ReadFile(short, entry)
            continue
        contents = {row["content_hash"]: text for row, text in pairs}
        yield ReadFile(short, entry, [row for row, _ in pairs], contents)
