"""Files that the journal does not name: git ignores them, or the user's settings list their paths.

A name is replaced wherever a record has it. Excluded files are dropped from file lists. A command or
error that names one keeps no output, which could be the file's content.
"""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

from vault_index import git
from vault_index.journal.record import Command, Record, Session

MARK = "[left out]"
_MAX_PATH = 400  # characters
_PATH = re.compile(rf"(?<![\w/.~@+-])(?:[\w.~@+-]*/|\.?[\w@+-]+\.|\.)[\w./~@+-]{{0,{_MAX_PATH}}}")
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*:$")
_END = ".,:"  # of a sentence, not of a path


class LeftOut:
    """Knows which paths are left out: `globs` of the settings, and what git ignores, asked once."""

    def __init__(self, globs: Iterable[str] = ()) -> None:
        globs = list(globs)
        self._globs = re.compile("|".join(map(fnmatch.translate, globs))) if globs else None
        self._ignored: dict[tuple[Path, str], bool] = {}

    def apply(self, session: Session) -> Session:
        """Return a session whose records name nothing that is left out."""
        here = Path(session.folder)
        top = git.top_of(here) if session.folder.startswith("/") and here.is_dir() else None
        if self._globs is None and top is None:
            return session
        names = {name for record in session.records for name in _names_in(record)}
        out = self._of(session.folder, top, names)
        if not out:
            return session
        return replace(session, records=tuple(_without(record, out) for record in session.records))

    def _of(self, folder: str, top: Path | None, names: set[str]) -> set[str]:
        out = {name for name in names if self._globs and self._is_listed(folder, name)}
        return out if top is None else out | self._ignored_of(top, folder, names - out)

    def _is_listed(self, folder: str, name: str) -> bool:
        """Whether a glob matches a path as written, from the root, a part of it, or its name."""
        assert self._globs
        parts = name.split("/")
        tails = {"/".join(parts[start:]) for start in range(len(parts))}
        heads = {"/".join(parts[:end]) + "/" for end in range(1, len(parts))}
        whole = os.path.normpath(os.path.join(folder, name))  # noqa: PTH118  # as below
        return any(map(self._globs.match, {whole, name, *tails, *heads}))

    def _ignored_of(self, top: Path, folder: str, names: set[str]) -> set[str]:
        places: dict[str, str] = {}  # name -> path below the top
        for name in names:
            # as text: pathlib takes several times as long, and a session names thousands
            path = os.path.normpath(os.path.join(folder, os.path.expanduser(name)))  # noqa: PTH111, PTH118
            above, last = os.path.split(path)
            real = f"{os.path.realpath(above).rstrip('/')}/{last}"
            if real.startswith(f"{top}/") and "/.git/" not in f"{real}/":
                places[name] = real.removeprefix(f"{top}/")
        new = {path for path in places.values() if (top, path) not in self._ignored}
        if new:
            ignored = git.ignored(top, new)
            self._ignored |= {(top, path): path in ignored for path in new}
        return {name for name, path in places.items() if self._ignored[top, path]}


def _names_in(record: Record) -> set[str]:
    names = {*record.files_read, *record.files_modified}
    for text in replace(record, branch="", files_read=(), files_modified=()).texts():
        if "/" in text or "." in text:
            for match in _PATH.finditer(text):
                if name := _name(match):
                    names.add(name)
    return names


def _name(match: re.Match[str]) -> str:
    if _ADDRESS.search(match.string, max(0, match.start() - 12), match.start()):
        return ""  # of the web
    return match[0].rstrip(_END)


def _without(record: Record, out: set[str]) -> Record:
    if not out & _names_in(record):
        return record

    def shown(text: str) -> str:
        for path in out:
            text = text.replace(path, MARK) if " " in path else text
        return _PATH.sub(lambda match: _shown(match, out), text)

    return replace(
        record.map_texts(shown),
        branch=record.branch,
        files_read=tuple(path for path in record.files_read if path not in out),
        files_modified=tuple(path for path in record.files_modified if path not in out),
        commands=tuple(_command(command, shown) for command in record.commands),
        errors=tuple(error for error in record.errors if shown(error) == error),
    )


def _command(command: Command, shown: Callable[[str], str]) -> Command:
    text, output = shown(command.text), shown(command.output)
    if text == command.text and output == command.output:
        return command
    return replace(command, text=text, output="")


def _shown(match: re.Match[str], out: set[str]) -> str:
    name = _name(match)
    return MARK + match[0][len(name) :] if name and name in out else match[0]
