"""The findings of a check in lessons, and the troubles of a vault on this machine."""

from __future__ import annotations

import os
import re
import shlex
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ERROR, WARNING = "error", "warning"


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """One thing that is wrong. `path` is relative to the vault's root; lines count from 1.

    `pattern` is the id of the pattern that matched, for rules that have patterns. A warning that
    `holds` keeps a lesson from agents until a person has looked at it. `fingerprints` are hashes of what
    looks like a secret, by which a person can call it harmless.
    """

    path: str
    line: int
    rule: str
    message: str
    severity: str = ERROR
    pattern: str = ""
    holds: bool = False
    fingerprints: tuple[str, ...] = ()

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


MAX_SHOWN = 5  # troubles of one kind


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something that is wrong. `fix` is a command or, where none would help, what to do."""

    about: str  # a part of the product, such as vault, hooks or git
    what: str
    fix: str


def to_edit(file: Path) -> str:
    """Return the command that opens a file in the user's editor."""
    return f"${{EDITOR:-vi}} {shlex.quote(from_here(file))}"


def from_here(file: Path) -> str:
    """Return a path below the current folder from there, any other in full."""
    try:
        here = Path.cwd()
    except OSError:  # it was deleted
        return str(file)
    return os.path.relpath(file, here) if file.is_relative_to(here) else str(file)
