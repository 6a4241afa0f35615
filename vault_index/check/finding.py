"""The findings of a check, and the lines that they are about."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass

ERROR, WARNING = "error", "warning"


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """One thing that is wrong. `path` is relative to the vault's root; lines count from 1.

    `pattern` is the id of the pattern that matched, for rules that have patterns. A warning that
    `holds` keeps a lesson from agents until a person has looked at it.
    """

    path: str
    line: int
    rule: str
    message: str
    severity: str = ERROR
    pattern: str = ""
    holds: bool = False

    def __str__(self) -> str:
        word = "" if self.severity == ERROR else f"{self.severity}: "
        name = self.pattern and f" [{self.pattern}]"
        return f"{self.path}:{self.line}: {self.rule}: {word}{self.message}{name}"


def line_counter(text: str) -> Callable[[int], int]:
    """Return a function from an index to its line (from 1), fast for a million findings."""
    ends = [match.start() for match in re.finditer("\n", text)]
    return lambda index: bisect_left(ends, index) + 1


def line_of_key(text: str, key: str) -> int:
    """Return the line of a frontmatter key; 1 if it is not there."""
    match = re.search(rf"(?m)^[\"']?{re.escape(key)}[\"']?\s*:", text)
    return text.count("\n", 0, match.start()) + 1 if match else 1
