"""Globs of files as people and their tools write them: `src/**/*.{ts,tsx}`, several with commas."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterable

MAX_ALTERNATIVES = 64  # that the braces of one glob stand for; those beyond are left out

_COMMA = re.compile(r",(?![^{]*\})")  # outside braces
_BRACES = re.compile(r"\{([^{}]*,[^{}]*)\}")


def split(text: str) -> list[str]:
    """Return the globs of a list with commas: `a/**, *.{ts,tsx}` has two."""
    globs = (each.strip().strip("\"'") for each in _COMMA.split(text))
    return [glob for glob in globs if glob]


def matcher(globs: Iterable[str]) -> Callable[..., bool]:
    """Return a predicate: whether a glob matches a path, a part or the name of it, or another text."""
    expressions = (_expression(each) for glob in globs for each in _alternatives(glob))
    match = re.compile("|".join(expressions) or "(?!)").match

    def is_listed(path: str, *others: str) -> bool:
        parts = path.split("/")
        tails = ("/".join(parts[start:]) for start in range(len(parts)))
        heads = ("/".join(parts[:end]) + "/" for end in range(1, len(parts)))
        return any(map(match, (*others, *tails, *heads)))

    return is_listed


def _alternatives(glob: str) -> list[str]:
    """Expand the braces of a glob: `*.{ts,tsx}` is `*.ts` and `*.tsx`."""
    expanded: list[str] = []
    waiting = [glob]
    while waiting and len(expanded) + len(waiting) <= MAX_ALTERNATIVES:
        each = waiting.pop(0)
        braces = _BRACES.search(each)
        if braces is None:
            expanded.append(each)
            continue
        before, after = each[: braces.start()], each[braces.end() :]
        waiting += [f"{before}{part.strip()}{after}" for part in braces[1].split(",")]
    return [*expanded, *(each for each in waiting if not _BRACES.search(each))][:MAX_ALTERNATIVES]


def _expression(glob: str) -> str:
    """Return a glob as a regular expression; `**/` stands for any number of folders, also none."""
    pieces = (fnmatch.translate(piece) for piece in glob.split("**/"))
    return "(?s:" + "(?:.*/)?".join(piece[len("(?s:") : -len(r")\Z")] for piece in pieces) + r")\Z"
