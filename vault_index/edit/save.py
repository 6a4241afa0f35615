"""A lesson file as a text that somebody edits in a page: read, checked, written back.

A page has line feeds only. The text that it sends back gets the author's line ends and byte-order mark,
and goes into the file only if the file still says what the page showed.
"""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Collection
from pathlib import Path

from vault_index import check, files
from vault_index.check import Candidate, Finding
from vault_index.edit import update
from vault_index.errors import ChangedError, LessonError, VaultError
from vault_index.hotpath import index_files
from vault_index.lesson.file import BOM, MAX_BYTES, LessonFile, decode, lines_of
from vault_index.vault import Vault

MAX_PATH = 1000  # characters
MAX_COMPARED = 3_000  # lines of a file whose change is shown: to compare takes up to n * n steps


def read(vault: Vault, path: str) -> str:
    """Return the text of a lesson file, named from the vault's root, with line feeds only.

    Raises VaultError for any other file, LessonError for one that is no text, LinkError.
    """
    file = _file(vault, path)
    return _shown(_content(file, path), path)


def findings(path: str, text: str, categories: Collection[str]) -> list[Finding]:
    """Check a text as what a lesson file would say; `categories` are those of the lessons."""
    return check.of_text(Candidate(_below(path), _encoded(text, path)), categories)


def write(vault: Vault, path: str, text: str, seen: str) -> Path:
    """Put a text into a lesson file that still says what was `seen`, and return its path.

    Raises ChangedError if it says something else, VaultError for an error that a commit would refuse,
    LinkError, LessonError, WriteError.
    """
    before = refuse_changed(vault, path, seen)
    if not text.strip():
        raise VaultError("a lesson needs some text", "delete the file instead: `lessons rm ID`")
    data = _encoded(with_ends_of(LessonFile.of(before, path), text), path)
    return update.put(vault, path, data, before)


def refuse_changed(vault: Vault, path: str, seen: str) -> bytes:
    """Return the bytes of a lesson file. Raises ChangedError if it no longer says what was `seen`."""
    before = _content(_file(vault, path), path)
    if _shown(before, path) != seen:
        raise ChangedError(f"{path} was saved since it was opened here", "compare the two")
    return before


def restore(vault: Vault, path: str, before: bytes, after: bytes | None) -> Path:
    """Write a lesson file back as it was before a deletion, which left `after`, or no file.

    Raises ChangedError if somebody wrote it since, LinkError, WriteError.
    """
    file = _file(vault, path)
    if after is not None:
        files.change_file(file, before, expected=after, within=vault.root)
    elif not files.create_file(file, before, within=vault.root):
        raise ChangedError(f"{path} is there again", "compare it with what git has")
    return file


def changes(vault: Vault, path: str, seen: str) -> tuple[str, list[str]]:
    """Return the text of a lesson file, and the lines of a patch from what was `seen` to it.

    Raises as `read` does.
    """
    now = read(vault, path)
    before, after = seen.splitlines(), now.splitlines()
    if max(len(before), len(after)) > MAX_COMPARED:
        return now, [] if now == seen else ["@@ the file is too long to compare here @@"]
    patch = difflib.unified_diff(before, after, lineterm="", n=2)
    return now, list(itertools.islice(patch, 2, None))  # without the two lines that name files


def _below(path: str) -> str:
    """Return a lesson file's path below the vault's folder. Raises VaultError for any other path."""
    folder, _, below = path.partition("/")
    parts = below.split("/")
    is_plain = path.isprintable() and "\\" not in path and len(path) <= MAX_PATH
    if folder != index_files.FOLDER or not is_plain or not below.endswith(".md"):
        raise VaultError("this is no lesson file", "name one below lessons/ that ends in .md")
    if any(not part or part.startswith(".") for part in parts):
        raise VaultError("this is no lesson file", "name one below lessons/, without hidden parts")
    return below


def _file(vault: Vault, path: str) -> Path:
    """Return the place of a lesson file; no link leads there, and the repository is the vault's."""
    file = vault.lessons_dir / _below(path)
    files.refuse_links(file, vault.root)
    files.refuse_other_repository(file.parent, vault.lessons_dir)
    return file


def _content(file: Path, path: str) -> bytes:
    """Read an ordinary file of the size of a lesson. Raises VaultError for any other."""
    data = files.read_if_any(file, MAX_BYTES + 1)
    if data is None:
        raise ChangedError(f"{path} is gone", "see `lessons log`")
    if len(data) > MAX_BYTES:
        raise LessonError(f"{path} is larger than a lesson may be", 1, "edit it in your editor")
    return data


def _shown(data: bytes, path: str) -> str:
    """Return a file's text as a page has it. Raises LessonError for a text that it cannot hold."""
    text = decode(data, path).replace("\r\n", "\n")
    if "\r" in text:
        line = text.count("\n", 0, text.index("\r")) + 1
        raise LessonError(f"{path}: a carriage return alone", line, "edit it in your editor")
    return text


def _encoded(text: str, path: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise LessonError(f"{path}: half of a surrogate pair is no text", 1) from None


def with_ends_of(file: LessonFile, text: str) -> str:
    """Return a text with the byte-order mark of a file, and with its line ends.

    The first and last lines that are as before keep theirs; those between get what most lines have.
    """
    old = list(file.lines)
    new = lines_of(text.removeprefix(BOM).replace("\r\n", "\n").replace("\r", "\n"))
    bare = [line.replace("\r\n", "\n") for line in old]
    first = _same(bare, new)
    last = _same(bare[first:][::-1], new[first:][::-1])
    middle = new[first : len(new) - last]
    if file.newline == "\r\n":
        middle = [line.removesuffix("\n") + "\r\n" * line.endswith("\n") for line in middle]
    return file.bom + "".join([*old[:first], *middle, *old[len(old) - last :]])


def _same(some: list[str], others: list[str]) -> int:
    """Return how many lines at the beginning are the same."""
    pairs = zip(some, others, strict=False)
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
