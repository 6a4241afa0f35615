"""Compare the files on disk with the manifest. Nothing else does.

By stat first (size, mtime, ctime, inode), then by content. `read` then reads the files whose lessons
have to be written again and makes them into rows, with what git says of them and with ids that are
unique in the vault. Whatever is wrong with one file is that file's problem; the others are indexed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from vault_index import files, git
from vault_index.errors import GitError, LessonError
from vault_index.hotpath import index_files
from vault_index.lesson import file, parse
from vault_index.lesson.file import MAX_BYTES
from vault_index.lesson.parse import Lesson
from vault_index.store import released
from vault_index.store.filters import UNCHECKED
from vault_index.store.manifest import FileEntry, Manifest, Problem, ReadFile
from vault_index.text.blocks import composed
from vault_index.vault import SourceFile, shown

if TYPE_CHECKING:
    from vault_index import check
    from vault_index.vault import Skipped, Vault

    Withhold = Callable[[str, bytes], check.Withheld]


# Who wrote each file and when, as git says: what differs from what the manifest says.
#
# The manifest's `head` is the commit whose authors and dates its entries have. Where another one is
# checked out, or a file is new to the manifest, the history is read again: 0.2 s for 1,500 commits.
@dataclass(frozen=True, slots=True)
class GitChanges:
    """The answer of git where it differs from a manifest, by path below the vault's folder.

    `head` is what the manifest says after that: "" where git is still to be asked about all files.
    `error` says why git did not answer.
    """

    head: str
    changed: Mapping[str, git.Provenance] = field(default_factory=dict)
    error: str = ""


def ask_git(vault: Vault, manifest: Manifest, diff: Diff) -> GitChanges:
    """Ask git about the commits up to the one that was checked out when the files were listed.

    If git is not to be asked, authors of new files are filled in by the next sync that asks. If it does
    not answer, they are UNKNOWN_AUTHOR until then.
    """
    head, error = diff.head, diff.git_error
    if head is None and not error:
        return GitChanges("" if diff.has_new else manifest.head)
    if head is not None:
        try:
            return _answer(vault, manifest, diff, head)
        except GitError as failure:
            error = _in_a_line(failure)
    unknown = git.Provenance(git.UNKNOWN_AUTHOR, "", "")
    return GitChanges("", dict.fromkeys(diff.unsigned(manifest), unknown), error)


def _answer(vault: Vault, manifest: Manifest, diff: Diff, head: str) -> GitChanges:
    if not diff.has_new and head == manifest.head:  # a new file may be an old one that is back
        return GitChanges(head)
    history = git.provenance(vault.lessons_dir, head) if head else {}
    now = dict.fromkeys(manifest.files, _NOBODY) | history
    changed = {
        path: new
        for path, new in now.items()
        if (entry := manifest.files.get(path)) is None or of_entry(entry) != new
    }
    return GitChanges(head, changed)


def _in_a_line(error: GitError) -> str:
    return "; ".join(filter(None, (error.message, error.hint)))


CHECKED_AT_ONCE = 64  # files: half a second
_NOBODY = git.Provenance("", "", "")


def of_entry(entry: FileEntry) -> git.Provenance:
    """Return the provenance in a manifest's entry."""
    return git.Provenance(entry.author, entry.first, entry.last)


_UNREADABLE = "?"  # as the hash of a file: another user may read it, and no stat says so


@dataclass(frozen=True, slots=True)
class Diff:
    """The files on disk that a manifest does not have as they are."""

    listed: Mapping[str, SourceFile]  # all lesson files, by path below the vault's folder
    touched: frozenset[str]  # new, or of another stamp
    removed: frozenset[str]
    skipped: list[Skipped]
    head: str | None  # the commit now checked out, "" without one; None if git did not say
    has_new: bool  # whether the manifest never had a file as it was read
    git_error: str = ""  # why git did not answer

    def __len__(self) -> int:
        return len(self.touched) + len(self.removed)

    @property
    def unchanged(self) -> int:
        return len(self.listed) - len(self.touched)

    def is_empty(self, manifest: Manifest) -> bool:
        """Whether nothing is to be done: of the commit only as far as git was asked."""
        if self.git_error and self.unsigned(manifest):
            return False
        return not len(self) and self.head in (None, manifest.head)

    def unsigned(self, manifest: Manifest) -> list[str]:
        """Return the files of which the manifest has no commit."""
        files = ((path, manifest.files.get(path)) for path in self.listed)
        return [path for path, entry in files if entry is None or of_entry(entry) == _NOBODY]


def scan(
    vault: Vault,
    manifest: Manifest,
    ask_git: bool,
    *,
    read_all: bool = False,
) -> Diff:
    """Compare the disk with a manifest, by stat; with `read_all` by content, too.

    A text that the user released since is to be read again, too.

    With `ask_git=False` authors stay as the manifest has them; the next sync that asks fills in
    new files'.
    """
    sources, skipped = vault.files()
    listed = {source.path: source for source in sources}
    touched = frozenset(
        path
        for path, source in listed.items()
        if (entry := manifest.files.get(path)) is None
        or tuple(entry.stamp) != source.stamp
        or released.has(vault.config.home, entry.held)
        or (read_all and _hash_now(vault, path) != entry.hash)
    )
    # a file below a folder that cannot be listed is not known to be gone
    closed = {skip.path.rstrip("/") for skip in skipped if skip.hides_lessons}
    hidden = tuple("" if path == "." else f"{path}/" for path in closed)
    removed = frozenset(
        path
        for path in manifest.files
        if path not in listed and path not in closed and not path.startswith(hidden)
    )
    has_new = any((entry := manifest.files.get(path)) is None or not entry.hash for path in touched)
    head, git_error = None, ""
    try:
        head = git.resolve(vault.root, "HEAD") if ask_git else None
    except GitError as error:
        git_error = _in_a_line(error)
    return Diff(listed, touched, removed, skipped, head, has_new, git_error)


@dataclass(frozen=True, slots=True)
class PendingFiles:
    """The files whose rows may have to change, by path, each read when its turn comes.

    So the rows of all of them are never in memory at once, and what was written is not lost with the
    rest. `entries` come from a first look, which tells who owns an id.
    """

    entries: Mapping[str, FileEntry]
    changed: Collection[str]  # the files whose rows are made
    reading: Callable[[], AbstractContextManager[Callable[[str], ReadFile]]]

    def __iter__(self) -> Iterator[ReadFile]:
        with self.reading() as read:
            yield from map(read, self.entries)


def read(
    vault: Vault,
    manifest: Manifest,
    diff: Diff,
    authors: GitChanges,
    check_at_most: float = CHECKED_AT_ONCE,
) -> PendingFiles:
    """Read every file whose rows may have to change, by path.

    If there are more than `check_at_most`, those that were not checked before are left `UNCHECKED`, as
    that takes longer than all else: `checking` does it later.
    """
    sources = {path: diff.listed[path] for path in diff.touched}
    sources |= {path: diff.listed[path] for path in authors.changed if path in diff.listed}
    first = _Reader(vault, manifest, authors.changed, None)
    looked = {path: first.read(source) for path, source in sources.items()}
    owners = _owners(manifest, {path: entry for path, (entry, _) in looked.items()}, diff.removed)
    for path, entry in manifest.files.items():
        # the files that lost their declared id to another one, or got it back
        is_other = (_owner(owners, path, entry.declared) == path) != entry.owns_id
        is_unread = path not in diff.removed and looked.get(path, (entry, None))[1] is None
        if is_other and is_unread:
            size, mtime, ctime, inode = entry.stamp or (0, 0, 0, 0)
            sources.setdefault(path, SourceFile(path, (size, mtime, ctime, inode)))
            looked[path] = first.read(sources[path], even_if_same=True)
    entries = {path: entry for path, (entry, _) in looked.items()}
    changed = {path for path, (_, lessons) in looked.items() if lessons is not None}

    # to find why hooks leave it out takes milliseconds for a page
    @contextmanager
    def reading() -> Iterator[Callable[[str], ReadFile]]:
        later = len(changed) > check_at_most
        with withholding(vault, only_kept=later) if changed else nullcontext() as withheld:
            yield partial(read_rows, replace(first, withheld=withheld))

    def read_rows(reader: _Reader, path: str) -> ReadFile:
        entry, lessons = entries[path], None
        if path in changed:
            entry, lessons = reader.read(sources[path], even_if_same=True)
        if lessons is None:
            return ReadFile(path, entry)
        entry, lessons = _with_own_ids(path, entry, lessons, owners)
        return _with_rows(path, entry, lessons, manifest.files.get(path))

    return PendingFiles({path: entries[path] for path in sorted(entries)}, changed, reading)


def problems(manifest: Manifest, skipped: Iterable[Skipped]) -> list[Problem]:
    """List the files that are not in the index as they are on disk, by path."""
    broken = [
        Problem(shown(path), entry.line, entry.problem.removeprefix(f"{path}: "))
        for path, entry in manifest.files.items()
        if entry.problem
    ]
    passed_over = [Problem(shown(skip.path), 0, skip.reason) for skip in skipped]
    return sorted(broken + passed_over, key=lambda problem: (problem.path, problem.line))


def withheld_by(vault: Vault, path: str, data: bytes) -> check.Withheld:
    """Return the reason for which hooks leave out a file: see `check.withheld`."""
    with withholding(vault) as withheld:
        return withheld(path, data)


def withheld_as_indexed(
    vault: Vault, withheld: Withhold, path: str, hashed: str
) -> check.Withheld | None:
    """Return the same for a file that still is as it was indexed, None for others."""
    try:
        data = content(vault, path)
    except OSError:
        return None
    return withheld(path, data) if file.hash_of_file(data) == hashed else None


@contextmanager
def withholding(vault: Vault, *, only_kept: bool = False) -> Iterator[Withhold]:
    """Yield the same function, for many files of a vault; `only_kept` as `check.withheld_if_kept`."""
    from vault_index import check  # compiles its patterns: only where a file has to be read

    of_file = check.withheld_if_kept if only_kept else check.withheld
    with check.KeptFindings(vault.config.home) as kept:
        yield partial(of_file, home=vault.config.home, kept=kept)


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads and parses one file after another; an error in one goes into its manifest entry."""

    vault: Vault
    manifest: Manifest
    authors: Mapping[str, git.Provenance]
    withheld: Withhold | None  # None: nobody asks

    def read(
        self, source: SourceFile, *, even_if_same: bool = False
    ) -> tuple[FileEntry, Sequence[Lesson] | None]:
        """Read a file. Its lessons are None if nothing of them changed, or it cannot be parsed."""
        path = source.path
        before = self.manifest.files.get(path)
        entry = self._entry(source, before)
        try:
            data = content(self.vault, path)
            hashed = file.hash_of_file(data)
            is_same = before is not None and before.hash == hashed
            is_same = is_same and not released.has(self.vault.config.home, entry.held)
            if before and is_same and not even_if_same and of_entry(before) == of_entry(entry):
                return entry, None
            entry = replace(entry, hash=hashed)
            lessons = parse.parse_file(data, path)
            is_checked = is_same and before and not before.problem
            if self.withheld and not (is_checked and entry.withheld != UNCHECKED):
                why, until = self.withheld(path, data)
                entry = replace(entry, withheld=why, held=until)
        except LessonError as error:
            problem = ": ".join(filter(None, (error.message, error.hint)))
            return replace(entry, problem=problem, line=error.line), None
        except FileNotFoundError:  # deleted since it was listed: the next look takes it out
            return before or entry, None
        except OSError as error:
            problem = f"{path}: cannot be read: {error.strerror}"
            return replace(entry, problem=problem, line=0, hash=_UNREADABLE, stamp=[]), None
        except Exception as error:  # noqa: BLE001  # a bug of ours, and one file is not the vault
            return replace(entry, problem=_unexpected(path, error), line=0), None
        declared = lessons[0].declared if lessons else ""
        entry = replace(
            entry, problem="", line=0, declared=declared, owns_id=True, lessons=len(lessons)
        )
        return entry, lessons

    def _entry(self, source: SourceFile, before: FileEntry | None) -> FileEntry:
        stamp = [] if files.is_racy(source.stamp) else list(source.stamp)
        entry = replace(before, stamp=stamp) if before else FileEntry("", stamp)
        author = self.authors.get(source.path)
        if author is None:
            return entry
        return replace(entry, author=author.author, first=author.first, last=author.last)


def content(vault: Vault, path: str) -> bytes:
    """Return the content of a file; of one that is too large for a lesson just enough to tell."""
    return index_files.read(vault.lessons_dir / path, MAX_BYTES + 1)


def _hash_now(vault: Vault, path: str) -> str:
    try:
        return file.hash_of_file(content(vault, path))
    except OSError:
        return ""


def _unexpected(path: str, error: Exception) -> str:
    return f"{path}: {type(error).__name__}: {' '.join(str(error).split())}"


def _with_rows(
    path: str, entry: FileEntry, lessons: Sequence[Lesson], before: FileEntry | None
) -> ReadFile:
    """Return a file with its rows; where they cannot be made, the last ones stay."""
    from vault_index.index import rows

    try:
        lesson_rows = rows.of_file(
            lessons, shown(path), of_entry(entry), entry.hash, entry.withheld
        )
    except Exception as error:  # noqa: BLE001  # as in `_Reader.read`
        last = before or FileEntry("", [])
        entry = replace(entry, lessons=last.lessons, withheld=last.withheld, held=last.held)
        return ReadFile(path, replace(entry, problem=_unexpected(path, error), line=0))
    return ReadFile(path, entry, lesson_rows, {row["content_hash"]: row for row in lesson_rows})


def _owners(
    manifest: Manifest, looked: Mapping[str, FileEntry], removed: Iterable[str]
) -> dict[str, str]:
    """Return the file that owns each declared id: the first by path. An id that is a path is taken."""
    declared = {path: entry.declared for path, entry in manifest.files.items()}
    declared |= {path: entry.declared for path, entry in looked.items()}
    for path in removed:
        del declared[path]
    path_ids = {parse.id_of(path) for path in declared}
    owners: dict[str, str] = {}
    # of two forms of one name that which keyboards type
    for path in sorted(declared, key=lambda each: (composed(each) != each, each)):
        id = declared[path]
        if not id or id not in path_ids or id == parse.id_of(path):
            owners.setdefault(id or f"\0{parse.id_of(path)}", path)
    return owners


def _owner(owners: Mapping[str, str], path: str, declared: str) -> str:
    """Return the file that has the id which a file declares, or else its path makes."""
    if not declared:
        return owners.get(f"\0{parse.id_of(path)}", path)
    return owners.get(declared, f"{declared}.md")


def _with_own_ids(
    path: str, entry: FileEntry, lessons: Sequence[Lesson], owners: Mapping[str, str]
) -> tuple[FileEntry, Sequence[Lesson]]:
    """Return a file with its path as id if it declares the id of another, which is its problem."""
    declared = entry.declared
    owner = _owner(owners, path, declared)
    if owner == path:
        return entry, lessons
    old, base = (
        declared or parse.id_of(path),
        parse.id_of(path) if declared else path[: -len(".md")],
    )
    problem = f"{path}: the id {declared!r} is taken by {owner}"
    if not declared:
        problem = f"{path}: the same name as {owner} in another form of Unicode: keep one of them"
    lessons = [replace(lesson, id=base + lesson.id[len(old) :]) for lesson in lessons]
    return replace(entry, owns_id=False, problem=problem), lessons
