"""Troubles of a vault on this machine, each with the command that puts it right."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from pathlib import Path

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
