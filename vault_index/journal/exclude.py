"""Files that the journal does not name: git ignores them, or the user's settings list their paths.

A name is replaced wherever a record has it. Excluded files are dropped from file lists. A command or
error that names one keeps no output, which could be the file's content.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import replace
from itertools import chain
from pathlib import Path

from vault_index import git
from vault_index.check.redact import glob_matcher
from vault_index.journal.record import Record, Session

MARK = "[left out]"
_MAX_PATH = 400  # characters
_PATH = re.compile(rf"(?<![\w/.~@+-])(?:[\w.~@+-]*/|\.?[\w@+-]+\.|\.)[\w./~@+-]{{0,{_MAX_PATH}}}")
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*:$")
_END = ".,:"  # of a sentence, not of a path


class Exclude:
    """Knows which paths are excluded: `globs` of the settings, and what git ignores, asked once."""

    def __init__(self, globs: Iterable[str] = ()) -> None:
        self._globs = [*globs]
        self._is_listed = glob_matcher(self._globs)
        self._ignored: dict[tuple[Path, str], bool] = {}

    def apply(self, session: Session) -> Session:
        """Return a session whose records name nothing that is excluded."""
        here = Path(session.folder)
        top = git.top_of(here) if session.folder.startswith("/") and here.is_dir() else None
        if not self._globs and top is None:
            return session
        names = {name for record in session.records for name in _names_in(record)}
        out = set[str]()
        for name in names if self._globs else ():  # from the root, too, if it is not so written
            if self._is_listed(name, os.path.normpath(os.path.join(session.folder, name))):  # noqa: PTH118  # as below
                out.add(name)
        out |= self._ignored_by(top, session.folder, names - out) if top else set()
        if not out:
            return session
        return replace(session, records=tuple(_without(record, out) for record in session.records))

    def _ignored_by(self, top: Path, folder: str, names: set[str]) -> set[str]:
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
    texts = replace(record, branch="", files_read=(), files_modified=()).texts()
    matches = (_PATH.finditer(text) for text in texts if "/" in text or "." in text)
    names = map(_name, chain.from_iterable(matches))
    return {*record.files_read, *record.files_modified, *filter(None, names)}


def _name(match: re.Match[str]) -> str:
    if _ADDRESS.search(match.string, max(0, match.start() - 12), match.start()):
        return ""  # of the web
    return match[0].rstrip(_END)


def _without(record: Record, out: set[str]) -> Record:
    if not out & _names_in(record):
        return record

    def masked(match: re.Match[str]) -> str:
        name = _name(match)
        return MARK + match[0][len(name) :] if name and name in out else match[0]

    def shown(text: str) -> str:
        for path in out:
            text = text.replace(path, MARK) if " " in path else text
        return _PATH.sub(masked, text)

    changed = record.map_texts(shown)
    commands = zip(record.commands, changed.commands, strict=True)
    return replace(
        changed,
        branch=record.branch,
        files_read=tuple(path for path in record.files_read if path not in out),
        files_modified=tuple(path for path in record.files_modified if path not in out),
        commands=tuple(new if new == old else replace(new, output="") for old, new in commands),
        errors=tuple(error for error in record.errors if error in changed.errors),
    )
