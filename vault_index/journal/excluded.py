"""Files that the journal does not name: git ignores them, or the user's settings list their paths.

A name is replaced wherever a moment has it, and a change of such a file is left out. A call that names
one keeps no output, which could be the file's content.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import replace
from itertools import chain
from pathlib import Path

from vault_index import git
from vault_index.errors import GitError
from vault_index.text.globs import matcher
from vault_index.transcripts.moments import CHANGES, Moment

MARK = "[left out]"
_MAX_PATH = 400  # characters
_PATH = re.compile(rf"(?<![\w/.~@+-])(?:[\w.~@+-]*/|\.?[\w@+-]+\.|\.)[\w./~@+-]{{0,{_MAX_PATH}}}")
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*:$")
_END = ".,:"  # of a sentence, not of a path


class Exclude:
    """Knows which paths are excluded: `globs` of the settings, and what git ignores."""

    def __init__(self, globs: Iterable[str] = ()) -> None:
        self._globs = [*globs]
        self._is_listed = matcher(self._globs)

    def apply(
        self, all_moments: Iterable[Moment], folder: str, *, outputs: bool = False
    ) -> tuple[Moment, ...]:
        """Return moments of a session in a folder that tell nothing of excluded files.

        A call that names such a file itself keeps no result. With `outputs` one whose result alone names
        it keeps the rest.
        """
        moments, here = tuple(all_moments), Path(folder)
        top = git.top_of(here) if folder.startswith("/") and here.is_dir() else None
        if not self._globs and top is None:
            return moments
        names = {name for each in moments for name in _names_in(each)}
        out = set[str]()
        for name in names if self._globs else ():  # from the root, too, if it is not so written
            whole = os.path.join(folder, name)  # noqa: PTH118  # text, as pathlib is several times slower
            if self._is_listed(name, os.path.normpath(whole)):
                out.add(name)
        out |= _ignored_by(top, folder, names - out) if top else set()
        kept = (_without(each, out, outputs) for each in moments)
        return tuple(filter(None, kept)) if out else moments


def _ignored_by(top: Path, folder: str, names: set[str]) -> set[str]:
    places: dict[str, str] = {}  # name -> path below the top
    for name in names:
        # Path raises for ~nobody and is several times slower: a session names thousands
        whole = os.path.join(folder, os.path.expanduser(name))  # noqa: PTH111, PTH118  # speed
        above, last = os.path.split(os.path.normpath(whole))
        real = f"{os.path.realpath(above).rstrip('/')}/{last}"
        if real.startswith(f"{top}/") and "/.git/" not in f"{real}/":
            places[name] = real.removeprefix(f"{top}/")
    try:
        ignored = git.ignored(top, {*places.values()})
    except GitError as error:
        what = "so what git ignores there is not known, and the session is not recorded"
        hint = "; ".join(filter(None, (error.hint, "lessons journal import")))
        raise GitError(f"{error.message}, {what}", hint) from None
    return {name for name, path in places.items() if path in ignored}


def _names_in(moment: Moment) -> set[str]:
    paths = (moment.about,) if moment.kind in CHANGES else ()
    matches = (
        _PATH.finditer(text)
        for text in (moment.text, "" if paths else moment.about)
        if "/" in text or "." in text
    )
    names = map(_name, chain.from_iterable(matches))
    return {*paths, *moment.files, *filter(None, names)}


def _name(match: re.Match[str]) -> str:
    if _ADDRESS.search(match.string, max(0, match.start() - 12), match.start()):
        return ""  # of the web
    return match[0].rstrip(_END)


def _without(moment: Moment, out: set[str], outputs: bool) -> Moment | None:
    """Return a moment without the excluded names; None for a change of such a file."""
    if not out & _names_in(moment):
        return moment
    if moment.kind in CHANGES and moment.about in out:
        return None

    def masked(match: re.Match[str]) -> str:
        name = _name(match)
        return MARK + match[0][len(name) :] if name and name in out else match[0]

    def shown(text: str) -> str:
        for path in out:
            text = text.replace(path, MARK) if " " in path else text
        return _PATH.sub(masked, text)

    text, about = (
        shown(moment.text),
        moment.about if moment.kind in CHANGES else shown(moment.about),
    )
    files = tuple(path for path in moment.files if path not in out)
    names_it = about != moment.about or files != moment.files
    names_it = names_it or (text != moment.text and not outputs)
    if moment.is_call and moment.kind not in CHANGES and names_it:
        text = ""  # which could be the file's content
    return replace(moment, text=text, about=about, files=files)
