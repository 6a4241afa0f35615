"""What a merge that was not finished leaves in a file: `<<<<<<<`, `=======`, `>>>>>>>`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from vault_index.check.finding import ERROR, WARNING, Finding
from vault_index.lesson import fenced

RULE = "conflict-markers"
MESSAGE = "a merge conflict that was not resolved"

# an underline of a heading is `=======`, too: that mark counts only inside a conflict
_BEGIN = re.compile(r"<{7,}(?: .*)?")
_MIDDLE = re.compile(r"={7,}(?: .*)?")
_END = re.compile(r">{7,}(?: .*)?")
_LABELLED = re.compile(r"[<>]{7,} \S.*")


def findings(path: str, text: str) -> Iterator[Finding]:
    """Find conflict markers at the beginning of lines, once for each conflict.

    A whole conflict inside one block of code is what a lesson about merges shows: a warning.
    """
    lines = text.split("\n")
    in_code = list(fenced(lines))
    begin = middle = 0  # line numbers; 0: not seen
    for number, line in enumerate(lines, start=1):
        if _BEGIN.fullmatch(line):
            if begin:
                yield Finding(path, begin, RULE, MESSAGE)
            begin, middle = number, 0
        elif begin and _MIDDLE.fullmatch(line):
            middle = number
        elif _END.fullmatch(line) and (begin or _LABELLED.fullmatch(line)):
            shown = bool(begin and middle and all(in_code[begin - 2 : number]) and begin > 1)
            yield Finding(path, begin or number, RULE, MESSAGE, WARNING if shown else ERROR)
            begin = 0
    if begin and (middle or _LABELLED.fullmatch(lines[begin - 1])):
        yield Finding(path, begin, RULE, MESSAGE)
