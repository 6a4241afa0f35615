"""The marks that an unfinished merge leaves in a file: `<<<<<<<`, `=======`, `>>>>>>>`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from vault_index.check.finding import ERROR, WARNING, Finding
from vault_index.lesson.file import LessonFile

RULE = "conflict-markers"
MESSAGE = "a merge conflict that was not resolved"

# `=======` also underlines headings: that mark counts only inside a conflict
_BEGIN = re.compile(r"<{7,}(?: .*)?")
_MIDDLE = re.compile(r"={7,}(?: .*)?")
_END = re.compile(r">{7,}(?: .*)?")
_LABELLED = re.compile(r"[<>]{7,} \S.*")


def findings(path: str, text: str) -> Iterator[Finding]:
    """Find conflict markers at the beginning of lines, once for each conflict.

    A whole conflict inside one code fence is an example in a lesson about merges: a warning.
    """
    file = LessonFile.of_text(text, path)
    begin = middle = 0  # line numbers; 0: not seen
    for number, line in enumerate(file.text(range(len(file.lines))).split("\n"), start=1):
        if _BEGIN.fullmatch(line):
            if begin:
                yield Finding(path, begin, RULE, MESSAGE)
            begin, middle = number, 0
        elif begin and _MIDDLE.fullmatch(line):
            middle = number
        elif _END.fullmatch(line) and (begin or _LABELLED.fullmatch(line)):
            shown = begin and middle and _in_fence(file, begin, number)
            yield Finding(path, begin or number, RULE, MESSAGE, WARNING if shown else ERROR)
            begin = 0
    if begin and (middle or _LABELLED.fullmatch(file.text(range(begin - 1, begin)).rstrip("\n"))):
        yield Finding(path, begin, RULE, MESSAGE)


def _in_fence(file: LessonFile, begin: int, end: int) -> bool:
    """Whether one code fence contains all these lines, which count from 1."""
    start = file.fence_starts[begin - 1]
    return start is not None and start < begin - 1 and start == file.fence_starts[end - 1]
