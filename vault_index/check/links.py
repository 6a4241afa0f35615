"""Links of a lesson that lead nowhere: to a file that is gone, to a prerequisite that nobody wrote."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from vault_index.check.finding import WARNING, Finding
from vault_index.lesson import passages
from vault_index.text.blocks import code_lines

if TYPE_CHECKING:
    from vault_index.check import Candidate

RULE = "dead-link"
PREREQUISITE = "prerequisite"
_LINK = re.compile(r"\]\(<?([^)>#\s]+\.(?:md|markdown))(?:#[^)>\s]*)?>?(?:\s+\"[^\"]*\")?\)")
_CODE = re.compile(r"`[^`]*`")
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*:|/", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Prerequisite:
    """The name of a lesson to read first, as a lesson at `path` has it in a `line`."""

    path: str
    line: int
    name: str


def dead(folder: Path, candidate: Candidate) -> Iterator[Finding]:
    """Yield a warning for each link of a lesson to a markdown file that is not there.

    `folder` is the vault's root.
    """
    lines = _lines(candidate)
    here = Path(folder, candidate.shown).parent
    for number, (line, is_code) in enumerate(zip(lines, code_lines(lines), strict=True), 1):
        for match in () if is_code else _LINK.finditer(_CODE.sub("", line)):
            target = unquote(match[1])
            if not _ADDRESS.match(target) and not (here / target).exists():
                message = f"no file is at this link: {target}"
                yield Finding(candidate.shown, number, RULE, message, WARNING)


def prerequisites(candidate: Candidate) -> Iterator[Prerequisite]:
    """Yield the lessons that a lesson says to read first."""
    lines = _lines(candidate)
    for kind, name in passages.related_of("\n".join(lines)):
        if kind == PREREQUISITE:
            line = next((number for number, each in enumerate(lines, 1) if name in each), 1)
            yield Prerequisite(candidate.shown, line, name)


def missing(each: Prerequisite) -> Finding:
    """Return the finding that a prerequisite names no lesson."""
    message = f"no lesson is this prerequisite: {each.name}"
    return Finding(each.path, each.line, RULE, message, WARNING)


def _lines(candidate: Candidate) -> list[str]:
    return candidate.data.decode("utf-8", "replace").splitlines() if candidate.is_lesson else []
