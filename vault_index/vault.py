"""A vault: the folder `lessons/`, its settings, and its doors, each opened on first use."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vault_index import embed, files, git
from vault_index.config import Config, load
from vault_index.errors import IndexStateError, NoVaultError, unreadable
from vault_index.files import Stamp
from vault_index.hotpath import index_files, protocol
from vault_index.lesson import portable
from vault_index.store import manifest, ownership, schema
from vault_index.store.filters import UNCHECKED
from vault_index.store.reader import Reader

if TYPE_CHECKING:
    import numpy as np

    from vault_index.embed import Embedder

FOLDER, SETTINGS = index_files.FOLDER, index_files.SETTINGS
INDEX = ".vault_index"
BREAK, NOT_UTF8 = "has a line break or a control character", "is not UTF-8"
OTHER_ENDINGS = (
    ".mdc",
    ".markdown",
    ".mdown",
    ".mkd",
    ".md",
)  # in any case, for which a lesson has .md
_BREAKS = re.compile(r"[\x00-\x1f\x7f\x85\u2028\u2029]")


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A lesson file in the file system. `path` is relative to the vault's folder."""

    path: str
    stamp: Stamp


LINK = "a link: links are not followed"


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file or folder that cannot be a lesson, and why.

    `hides_lessons`: earlier lessons may still be there, where they cannot be read.
    """

    path: str
    reason: str
    hides_lessons: bool = False


@dataclass(frozen=True, slots=True)
class OpenIndex:
    """An index opened for reading. `embedder` is the name it was built with."""

    store: Reader
    embedder: str
    lessons: int
    files: int
    version: object  # see `manifest.in_force`
    skills: Reader
    documents: Reader
    known_skills: Mapping[str, list[int]]  # SKILL.md -> its stamp
    withheld: int = 0  # lessons that hooks leave out
    lacking: int = 0  # files whose rows wait for vectors
    unchecked: int = 0  # files that are still to be checked: hooks check what they give

    @property
    def unmade(self) -> str:
        """Return the reason for a search by words alone, while many vectors are still to be made."""
        return manifest.unmade(self.lacking, self.files, "files")


class Vault:
    """The first argument of every verb. `root` is the folder that holds `lessons/`."""

    def __init__(self, root: Path, config: Config) -> None:
        self.root = root
        self.config = config
        self.query_vectors: Mapping[tuple[str, str], np.ndarray] = {}  # the last
        self._opened: OpenIndex | None = None

    def __repr__(self) -> str:
        return f"Vault({str(self.root)!r})"

    @property
    def lessons_dir(self) -> Path:
        return self.root / FOLDER

    def place(self, path: str) -> Path:
        """Return the place of a path from the folder with the lessons, as its names are on disk.

        Also in other letters, upper or lower: on other disks that is the same file.
        """
        return Path(files.as_on_disk(f"{self.lessons_dir}/{path}", portable.key))

    def place_for(self, folder: str, stem: str) -> Path:
        """Return the path for a new lesson's file, by a name that any disk can hold.

        Raises VaultError for a folder that some cannot.
        """
        portable.refuse_folder(folder)
        return self.place("/".join(filter(None, (folder, f"{portable.file_name(stem)}.md"))))

    @property
    def index_dir(self) -> Path:
        """The folder of the index, the lock, the hooks' log: a cache, never committed.

        It is below the user's own folder where the vault can be read only. Raises ForeignIndexError if
        what is there came with a clone or is somebody else's.
        """
        folder = self.root / INDEX
        is_closed = self.root.is_dir() and not os.access(self.root, os.W_OK)
        if is_closed and (not folder.exists() or ownership.is_anothers(folder)):
            name = f"{protocol.fnv64(os.path.realpath(self.root)):x}"
            folder = self.config.home / ownership.ELSEWHERE / name / INDEX
        ownership.check(folder)
        return folder

    @cached_property
    def embedder(self) -> Embedder | None:
        """The embedder, which turns text into vectors; None when there is only full text.

        Raises EmbedderError if the embedder of the user's choice is not one.
        """
        return embed.open_embedder(self.config)

    def open_index(self) -> OpenIndex:
        """Open the index in force; reopen it, and look whose it is, when it was swapped or written since.

        Raises IndexStateError without an index that this version can read.
        """
        last = self._opened
        if last is not None and last.version == manifest.in_force(last.store.index):
            return last
        index = manifest.current(self.index_dir)
        if index is None:
            raise IndexStateError(f"{self.root} has no index yet", "run `lessons index`")
        version = manifest.in_force(index)
        recorded = manifest.load(index)
        if recorded.schema != manifest.SCHEMA:
            raise IndexStateError("the index is of an older version", "run `lessons index`")
        entries = recorded.files.values()
        self._opened = OpenIndex(
            Reader(index, recorded.dimension),
            recorded.embedder,
            sum(entry.lessons for entry in entries),
            len(recorded.files),
            version,
            skills=Reader(index, recorded.dimension, schema.SKILLS),
            documents=Reader(index, recorded.dimension, schema.DOCUMENTS),
            known_skills=recorded.skills,
            withheld=sum(
                entry.lessons for entry in entries if entry.withheld not in ("", UNCHECKED)
            ),
            lacking=len(manifest.waiting(recorded)),
            unchecked=len(manifest.unchecked(recorded)),
        )
        return self._opened

    def files(self) -> tuple[list[SourceFile], list[Skipped]]:
        """List the lesson files, sorted by path, and what was passed over.

        Hidden files and folders are not the vault's; one that a killed writer of ours left is removed.
        Links are not followed: they may lead in a circle, or out of the vault. A name that is not
        UTF-8 can stand in no index and no JSON, one with a line break in no list of lessons.
        """
        sources: list[SourceFile] = []
        skipped: list[Skipped] = []
        if self.lessons_dir.is_symlink():  # a pull may have put it there
            return [], [Skipped(".", LINK, hides_lessons=True)]
        pending = [(self.lessons_dir, "")]
        while pending:
            folder, prefix = pending.pop()
            try:
                with os.scandir(folder) as entries:
                    listing = list(entries)
            except OSError as error:
                skipped.append(Skipped(prefix or ".", f"cannot be listed: {error.strerror}", True))
                continue
            for entry in listing:
                name = entry.name
                if name.startswith("."):
                    if name.endswith(files.TEMPORARY):
                        files.remove_left_over(folder / name)
                    continue
                path = prefix + printable(name)
                is_folder = entry.is_dir(follow_symlinks=False)
                if entry.is_symlink():
                    skipped.append(Skipped(path, LINK))
                elif path != prefix + name and (is_folder or name.endswith(".md")):
                    odd = BREAK if _BREAKS.search(name) else NOT_UTF8
                    skipped.append(Skipped(path, f"the name {odd}"))
                elif is_folder:
                    pending.append((folder / name, f"{path}/"))
                elif name.endswith(".md") and entry.is_file():  # a pipe would be waited for
                    try:
                        stat = entry.stat(follow_symlinks=False)
                    except FileNotFoundError:  # deleted since it was listed
                        continue
                    except OSError as error:  # a folder that may be listed and not entered
                        reason = f"cannot be read: {error.strerror}"
                        skipped.append(Skipped(path, reason, hides_lessons=True))
                        continue
                    sources.append(SourceFile(path, files.stamp_of(stat)))
                elif name.lower().endswith(OTHER_ENDINGS):
                    ending = name[name.rindex(".") :]
                    skipped.append(Skipped(path, f"no lesson: it ends in {ending}, not in .md"))
        return sorted(sources, key=lambda file: file.path), skipped


def stamp_settings(root: Path) -> object:
    """Return a stamp, new after a change of a settings file: a vault's, or the user's."""
    home = index_files.home_folder(os.environ)
    places = root / index_files.FOLDER / index_files.SETTINGS, Path(home) / "config.toml"
    return [files.stamp(path) for path in places]


def printable(name: str) -> str:
    """Return a name as it is if it is UTF-8 on disk and one line, else with escapes: `lat\\xe9.md`."""
    if name.isascii() and name.isprintable():
        return name
    text = os.fsencode(name).decode("utf-8", "backslashreplace")
    return _BREAKS.sub(lambda found: repr(found[0])[1:-1], text)


def refuse_odd(folder: Path) -> None:
    """Raise NoVaultError for a path that is not UTF-8, or has a line break: no index can be there."""
    refuse_breaks(folder)
    if (as_shown := printable(str(folder))) != str(folder):
        raise NoVaultError(f"the path {as_shown} {NOT_UTF8}", "rename the folder")


def refuse_submodules(folder: Path) -> None:
    """Raise NoVaultError if a folder, or the `lessons/` there or above, is a submodule not fetched.

    A file that is written into one keeps git from fetching it. Raises GitError.
    """
    top = git.top_of(folder)
    above = [
        each for each in (folder, *folder.absolute().parents) if top and each.is_relative_to(top)
    ]
    for each in (folder, *(each / FOLDER for each in above)):
        if git.is_submodule_away(each):
            update = f"git submodule update --init {shlex.quote(str(each))}"
            raise NoVaultError(f"{each} is a submodule that was not fetched", update)


def refuse_breaks(folder: Path) -> None:
    """Raise NoVaultError for a path with a line break or a control character."""
    if _BREAKS.search(str(folder)):
        raise NoVaultError(f"{printable(str(folder))} {BREAK} in its path", "rename the folder")


def shown(path: str) -> str:
    """Return a file's path as people see it, from the vault's root: `lessons/devops/heap.md`."""
    return f"{FOLDER}/{path}"


def open_vault(
    path: Path | str | None = None, *, environ: Mapping[str, str] | None = None, **flags: Any
) -> Vault:
    """Open the vault at a path, or find one.

    `path` is the folder that holds `lessons/`, or any folder below it. Without it: the environment
    variable `LESSONS_VAULT`, else the nearest one from the current folder upwards, else the `vault` of
    the user's settings. `flags` override settings by name (see `Config`).

    Raises NoVaultError, SettingsError, and UnreadableError if a disk does not answer.
    """
    environ = os.environ if environ is None else environ
    try:
        root = index_files.find(str(path) if path else None, ".", environ)
    except ValueError:  # of the user's settings, which `load` explains
        root = None
    except OSError as error:
        load(environ=environ)
        if error.filename is None:  # the current folder is gone
            raise
        raise unreadable(error.filename, error) from None
    if root is not None:
        config = load(Path(root) / FOLDER / SETTINGS, environ, flags)
        refuse_odd(Path(root))
        refuse_odd(config.home)
        return Vault(Path(root), config)
    named = path or environ.get("LESSONS_VAULT")
    refuse_submodules(Path(named or Path.cwd()))
    if named:
        make = f"make one: lessons init {shlex.quote(str(named))}"
        raise NoVaultError(f"no vault at {named}", make)
    chosen = load(environ=environ).vault
    where = f" (and none at {chosen}, the default)" if chosen else ""
    raise NoVaultError(
        f"no vault found from {Path.cwd()} upwards{where}",
        "make one with `lessons init`, or name one with --vault or LESSONS_VAULT",
    )
