"""What the disk has and the manifest has not: the one place where a difference is made out.

By stat first (size, mtime, ctime, inode), then by content; files whose lessons have to be written
anew are read and made into rows here, with what git says of them and with ids that are unique in
the vault. Whatever is wrong with one of them is that file's problem, and the others are indexed.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from vault_index import files, git, lesson
from vault_index.errors import LessonError
from vault_index.lesson import Lesson
from vault_index.manifest import FileEntry, Manifest
from vault_index.stats import Problem
from vault_index.vault import SourceFile, shown

if TYPE_CHECKING:
    from vault_index.store import Row
    from vault_index.vault import Skipped, Vault


@dataclass(frozen=True, slots=True)
class Difference:
    """What the disk has and the manifest has not."""

    touched: list[SourceFile]  # new, or of another stamp
    removed: list[str]
    unchanged: int
    skipped: list[Skipped]
    head: str  # the commit now checked out

    def __len__(self) -> int:
        return len(self.touched) + len(self.removed)


@dataclass(slots=True)
class ReadFile:
    """A file as it was just read. `lessons` is None when its rows stay as they are."""

    path: str
    entry: FileEntry
    lessons: list[Lesson] | None = None
    rows: list[Row] = field(default_factory=list)


def between(vault: Vault, known: Manifest, ask_git: bool, *, read_all: bool = False) -> Difference:
    """Compare the disk with a manifest, by stat; with `read_all` by content, too."""
    listed, skipped = vault.files()
    touched = [
        file
        for file in listed
        if (entry := known.files.get(file.path)) is None
        or tuple(entry.stamp) != file.stamp
        or (read_all and _hash_now(vault, file.path) != entry.hash)
    ]
    # what stands below a folder that cannot be listed is not known to be gone
    closed = [skip.path.rstrip("/") for skip in skipped if skip.hides_lessons]
    hidden = tuple("" if path == "." else f"{path}/" for path in closed)
    there = {file.path for file in listed} | set(closed)
    removed = [path for path in known.files if path not in there and not path.startswith(hidden)]
    head = (git.head(vault.root) or "") if ask_git else known.head
    return Difference(touched, removed, len(listed) - len(touched), skipped, head)


def _stamp_of(entry: FileEntry) -> files.Stamp:
    size, mtime, ctime, inode = entry.stamp or (0, 0, 0, 0)
    return size, mtime, ctime, inode


def _content(vault: Vault, path: str) -> bytes:
    """Return what a file holds; of one that is too large for a lesson no more than shows that."""
    with (vault.folder / path).open("rb") as file:
        return file.read(lesson.MOST_BYTES + 1)


def _hash_now(vault: Vault, path: str) -> str:
    try:
        return lesson.hash_of_file(_content(vault, path))
    except OSError:
        return ""


def read(
    vault: Vault,
    known: Manifest,
    difference: Difference,
    ask_git: bool,
    *,
    withheld: bool = True,
) -> list[ReadFile]:
    """Read every file whose rows may have to change; without `withheld` they may lack that."""
    authored = _authored(vault, known, difference) if ask_git else {}
    stats = {file.path: file for file in vault.files()[0]} if authored else {}
    pending = {file.path: file for file in difference.touched}
    for gone in difference.removed:  # and may be back since it was listed: the next look finds it
        stats.pop(gone, None)
    pending |= {path: stats[path] for path in authored if path in stats}
    read = {
        path: _read_file(vault, pending[path], known, authored.get(path), withheld=withheld)
        for path in pending
    }
    owners = _owners(known, list(read.values()), difference.removed)
    for path, entry in known.files.items():  # those whose id another file took or set free
        taken_or_freed = entry.declared and (owners.get(entry.declared) == path) != entry.owns_id
        same = path not in read or read[path].lessons is None
        if taken_or_freed and same and path not in difference.removed:
            source = pending.get(path) or SourceFile(path, _stamp_of(entry))
            read[path] = _read_file(
                vault, source, known, authored.get(path), even_if_same=True, withheld=withheld
            )
    own = [_with_own_ids(read[path], owners) for path in sorted(read)]
    return [_with_rows(file, known.files.get(file.path)) for file in own]


def _read_file(
    vault: Vault,
    source: SourceFile,
    known: Manifest,
    provenance: git.Provenance | None,
    *,
    even_if_same: bool = False,
    withheld: bool = True,
) -> ReadFile:
    """Read and parse one file; what is wrong with it goes into its manifest entry."""
    before = known.files.get(source.path)
    entry = replace(before) if before else FileEntry("", [])
    entry.stamp = [] if files.is_racy(source.stamp) else list(source.stamp)
    if provenance:
        entry.author, entry.last = provenance.author, provenance.last
        entry.first = provenance.first
    try:
        data = _content(vault, source.path)
        content = lesson.hash_of_file(data)
        if before and before.hash == content and not even_if_same and not before.differs(entry):
            return ReadFile(source.path, entry)
        entry.hash = content
        parsed = lesson.parse_file(data, source.path)
        if withheld and (before is None or before.hash != content or before.problem):
            entry.withheld = withheld_by(source.path, data)  # 9 ms for a page
    except LessonError as error:
        entry.problem, entry.line = error.message, error.line
        return ReadFile(source.path, entry)
    except FileNotFoundError:  # deleted since it was listed: the next look takes it out
        return ReadFile(source.path, before or entry)
    except OSError as error:
        entry.problem, entry.line = f"{source.path}: cannot be read: {error.strerror}", 0
        entry.hash, entry.stamp = "?", []  # another user may read it, and no stat says so
        return ReadFile(source.path, entry)
    except Exception as error:  # noqa: BLE001  # a bug of ours, and one file is not the vault
        entry.problem, entry.line = _unexpected(source.path, error), 0
        return ReadFile(source.path, entry)
    entry.problem, entry.line = "", 0
    entry.declared = parsed[0].declared if parsed else ""
    entry.lessons = len(parsed)
    return ReadFile(source.path, entry, parsed)


def withheld_by(path: str, data: bytes) -> str:
    """Return why hooks leave out what is in a file: the first error in it; "" without one."""
    from vault_index import check  # compiles its patterns: only where a file has to be read

    return check.withheld(path, data)


def _with_rows(file: ReadFile, before: FileEntry | None) -> ReadFile:
    """Make a file's rows; where that fails those of before stay."""
    if file.lessons is None:
        return file
    from vault_index import rows  # a listing of files that did not change needs none

    entry = file.entry
    provenance = git.Provenance(entry.author, entry.first, entry.last)
    try:
        path = shown(file.path)
        file.rows = rows.of_file(file.lessons, path, provenance, entry.hash, entry.withheld)
    except Exception as error:  # noqa: BLE001  # as above
        file.lessons, entry.lessons = None, before.lessons if before else 0
        entry.withheld = before.withheld if before else ""
        entry.problem, entry.line = _unexpected(file.path, error), 0
    return file


def _unexpected(path: str, error: Exception) -> str:
    return f"{path}: {type(error).__name__}: {' '.join(str(error).split())}"


def problems(known: Manifest, skipped: list[Skipped]) -> list[Problem]:
    """List what is not in the index as it stands on disk, by path."""
    found = [
        Problem(shown(path), entry.line, entry.problem.removeprefix(f"{path}: "))
        for path, entry in known.files.items()
        if entry.problem
    ]
    found += [Problem(shown(skip.path), 0, skip.reason) for skip in skipped]
    return sorted(found, key=lambda problem: (problem.path, problem.line))


def _owners(known: Manifest, read: list[ReadFile], removed: list[str]) -> dict[str, str]:
    """Tell which file owns each declared id: the first by path, and never an id that is a path."""
    entries = {path: entry for path, entry in known.files.items() if path not in removed}
    entries |= {file.path: file.entry for file in read}
    taken = {lesson.id_of(path) for path in entries}
    owners: dict[str, str] = {}
    for path in sorted(entries):
        declared = entries[path].declared
        if declared and (declared not in taken or declared == lesson.id_of(path)):
            owners.setdefault(declared, path)
    return owners


def _with_own_ids(file: ReadFile, owners: dict[str, str]) -> ReadFile:
    """Give a file that declares another's id its path as id, and note it as a problem."""
    declared = file.entry.declared
    if not declared or file.lessons is None:
        return file
    file.entry.owns_id = owners.get(declared) == file.path
    if not file.entry.owns_id:
        other = owners.get(declared, f"{declared}.md")
        file.entry.problem = f"{file.path}: the id {declared!r} is taken by {other}"
        base = lesson.id_of(file.path)
        file.lessons = [replace(one, id=base + one.id[len(declared) :]) for one in file.lessons]
    return file


def _authored(vault: Vault, known: Manifest, difference: Difference) -> dict[str, git.Provenance]:
    """Ask git who wrote what since the manifest's commit; all of it when that is not enough.

    Gives the files of which git says something else than the manifest.
    """
    came = any(file.path not in known.files for file in difference.touched)  # perhaps back
    if not came and difference.head == known.head:
        return {}
    since = "" if came else known.head
    found = git.history(vault.folder, since) if since else None
    if found is not None and all(path in known.files for path in found):
        firsts = {path: known.files[path].first for path in found}
        if all(firsts.values()):
            return {path: replace(new, first=firsts[path]) for path, new in found.items()}
    nobody = git.Provenance("", "", "")  # of a file whose commits were taken back
    told = dict.fromkeys(known.files, nobody) | (git.history(vault.folder) or {})
    return {
        path: new
        for path, new in told.items()
        if (entry := known.files.get(path)) is None
        or (entry.author, entry.first, entry.last) != (new.author, new.first, new.last)
    }
