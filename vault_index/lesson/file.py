"""A lesson file taken apart by lines: bytes <-> `LessonFile`. All readers and editors start here.

    bom                       at most one byte-order mark
    blank lines
    ---                       `opening`
    title: Heap               `frontmatter`: for YAML, see frontmatter.py
    ---                       `closing`
    Text, or a heading.       `body`, from here on: `preamble`
    ## Lesson: Raise it       `sections`, each up to the next one
    tags: [heap]              keys of its `own`, in the place of the file's
                              a blank line ends them
    Text.

Neither YAML nor markdown-it is loaded to do so, unless a line that would begin a section may be code.
"""

from __future__ import annotations

import hashlib
import io
import itertools
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from vault_index.errors import LessonError
from vault_index.lesson.category import SECTION, section_of
from vault_index.text import blocks
from vault_index.text.blocks import Block

MAX_BYTES = 2_200_000  # of a lesson file: 500 pages; a rule reads that in seconds
BOM = "\ufeff"
# of Git LFS, before and after its first name, and of git-annex
_POINTERS = (b"version https://git-lfs", b"version https://hawser", b"/annex/objects/")
_FETCH = (
    "run `git lfs pull` (`git annex get`), and keep lessons out of it: git must have their text"
)
# the look-behind keeps a megabyte of \r from taking hours
_LINE_END = re.compile(r"(?<!\r)\r++(?:\n|\Z)")
_BOUNDARY = re.compile(r"-{3,}\s*")
OWN_KEYS = (  # that a section may have of its own
    *("categories", "category", "tags", "aliases", "type"),
    *("prompts", "fires_on", "silent_on", "fires_on_error", "silent_on_error"),
)
KEYS = frozenset(  # of frontmatter, and `name` and `description` of a skill
    (*OWN_KEYS, *"id title confidence created confirmed source applies_to anchors harmless".split())
    + tuple("description link author date name".split())
)
_KEY = re.compile(r"[\s{]*(?P<quote>['\"]?)(?P<key>[^\s:'\"#{][^:]*?)(?P=quote)\s*:(?:\s|$)")
_OWN = re.compile(rf"(?:{'|'.join(OWN_KEYS)})[ \t]*:(?:\s|$)")
_GOES_ON = re.compile(r"[ \t]+\S|-[ \t]")  # the lines of a value below its key


class Section(NamedTuple):
    """A lesson within a file: the number of its heading's line, and of the line after its last."""

    title: str
    heading: int
    end: int


@dataclass(frozen=True)
class LessonFile:
    """The lines of a lesson file, with their ends, and where its parts are. Lines count from 0.

    `opening` and `closing` are the lines of dashes around the frontmatter. None: the file has no such
    line. An `opening` without a `closing` is a rule, or frontmatter that its author did not close.
    """

    path: str  # relative to the vault's folder
    bom: str
    lines: tuple[str, ...]
    opening: int | None
    closing: int | None

    @classmethod
    def of(cls, data: bytes, path: str) -> LessonFile:
        """Take a file's bytes apart. Raises LessonError, with the line, for bytes that are not UTF-8."""
        bom = BOM if data.startswith(BOM.encode()) else ""
        return cls.of_text(decode(data, path), path, bom)

    @classmethod
    def of_text(cls, text: str, path: str, bom: str = "") -> LessonFile:
        return cls.of_lines(lines_of(text), path, bom)

    @classmethod
    def of_lines(cls, lines: Iterable[str], path: str, bom: str = "") -> LessonFile:
        """Find the frontmatter in a file's lines: from dashes in the first line that is not blank.

        Text between two rules is no head: it has no key that a lesson knows, and a blank line or
        no key of one word.
        """
        all_lines = tuple(lines)
        first = next((number for number, line in enumerate(all_lines) if line.strip()), None)
        if first is None or not _is_boundary(all_lines[first].lstrip()):
            return cls(path, bom, all_lines, None, None)
        below = range(first + 1, len(all_lines))
        closing = next((number for number in below if _is_boundary(all_lines[number])), None)
        if closing is not None and _is_text(all_lines[first + 1 : closing]):
            return cls(path, bom, all_lines, None, None)
        return cls(path, bom, all_lines, first, closing)

    @cached_property
    def newline(self) -> str:
        """The end of most lines: a pasted line with another end does not count."""
        ends = Counter(line[len(line.rstrip("\r\n")) :][-2:] for line in self.lines)
        return max(("\n", "\r\n", "\r"), key=ends.__getitem__)

    @property
    def frontmatter(self) -> range:
        if self.opening is None or self.closing is None:
            return range(0)
        return range(self.opening + 1, self.closing)

    @property
    def body(self) -> range:
        return range(0 if self.closing is None else self.closing + 1, len(self.lines))

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        start = self.body.start
        of_body = blocks.of_text(self.text(self.body))
        return tuple(block.moved(start) for block in of_body) if start else tuple(of_body)

    @cached_property
    def code_lines(self) -> tuple[bool, ...]:
        """Whether each line of the file is code; the marks of a fence are."""
        return tuple(blocks.flags(self.blocks, len(self.lines), blocks.CODE))

    @cached_property
    def fence_starts(self) -> tuple[int | None, ...]:
        """The line in which the code fence around each line of the file begins; None outside fences."""
        starts: list[int | None] = [None] * len(self.lines)
        for block in self.blocks:
            if block.kind == blocks.FENCE:
                starts[block.start : block.end] = [block.start] * (block.end - block.start)
        return tuple(starts)

    def headings(self, mark: re.Pattern[str]) -> list[int]:
        """Return which lines of the body match `mark` at their beginning, and are prose.

        `mark` matches headings (`#`), which no code or HTML contains as headings.
        """
        numbers = [number for number in self.body if mark.match(self.lines[number])]
        if not numbers:
            return []
        raw = blocks.flags(self.blocks, len(self.lines))
        return [number for number in numbers if not raw[number]]

    @cached_property
    def sections(self) -> tuple[Section, ...]:
        """The `## Lesson: title` sections."""
        headings = self.headings(SECTION)
        bounds = itertools.pairwise([*headings, len(self.lines)])
        return tuple(
            Section(section_of(self.lines[heading].rstrip("\r\n")) or "", heading, end)
            for heading, end in bounds
        )

    def own_keys(self, section: Section) -> range:
        """The lines below a section's heading that are keys of its own: the first block, if all are."""
        below = range(section.heading + 1, section.end)
        start = next((index for index in below if self.lines[index].strip()), section.end)
        lines = list(itertools.takewhile(str.strip, self.lines[start : section.end]))
        are_keys = (
            _OWN.match(line) or (index and _GOES_ON.match(line)) for index, line in enumerate(lines)
        )
        return range(start, start + len(lines)) if lines and all(are_keys) else below[:0]

    @property
    def preamble(self) -> range:
        first = self.sections[0].heading if self.sections else len(self.lines)
        return range(self.body.start, first)

    def text(self, span: range) -> str:
        text = "".join(self.lines[span.start : span.stop]).replace("\r\n", "\n")
        return text.replace("\r", "\n") if self.newline == "\r" else text

    def to_bytes(self) -> bytes:
        return (self.bom + "".join(self.lines)).encode()


def decode(data: bytes, path: str) -> str:
    """Decode a lesson file; a byte-order mark is dropped. Raises LessonError when it is not text."""
    if len(data) > MAX_BYTES:
        raise LessonError(
            f"{path}: larger than {MAX_BYTES // 1024**2} MB", 1, "split it into lessons"
        )
    if data.startswith(_POINTERS):
        raise LessonError(f"{path}: a pointer to the text, which is not here", 1, _FETCH)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise LessonError(
            f"{path}: not UTF-8 text", line, "save it as UTF-8, or rename it if it is not markdown"
        ) from None
    if "\0" in text:
        line = text[: text.index("\0")].count("\n") + 1
        raise LessonError(f"{path}: a binary file", line, "rename it: only markdown ends in .md")
    return text


def lines_of(text: str) -> list[str]:
    """Split at line feeds, which stay: `splitlines()` also splits at form feeds and the like.

    In a text of an old Mac, where more lines end with CR alone, at all three ends.
    """
    return io.StringIO(text, newline="" if _is_of_old_mac(text) else "\n").readlines()


def unix_lines(text: str) -> str:
    """Write line ends as line feeds."""
    text = _LINE_END.sub("\n", text)
    return text.replace("\r", "\n") if _is_of_old_mac(text) else text


def _is_of_old_mac(text: str) -> bool:
    return text.count("\r") - text.count("\r\n") > text.count("\n")


def _is_text(lines: Sequence[str]) -> bool:
    """Whether lines between two lines of dashes are text between rules, and no frontmatter."""
    keys = [match["key"] for match in map(_KEY.match, lines) if match]
    gaps = (
        not above.strip() and not below[:1].isspace()
        for above, below in zip(lines, [*lines, ""][1:], strict=True)
    )
    has_blank = any(map(str.strip, lines)) and any(gaps)
    is_prose = bool(keys) and all(len(key.split()) > 1 for key in keys)
    return (has_blank or is_prose) and not names_keys(lines)


def names_keys(lines: Iterable[str]) -> bool:
    """Whether lines have a key that a lesson knows."""
    return any(match["key"].casefold() in KEYS for match in map(_KEY.match, lines) if match)


def _is_boundary(line: str) -> bool:
    return line.startswith("---") and bool(_BOUNDARY.fullmatch(line))


def hash_of_file(data: bytes) -> str:
    """Hash the content of a file, whatever its encoding: see `hash_of`."""
    return hash_of(data.decode("latin-1"))


def hash_of(*texts: str) -> str:
    """Hash texts into 32 hexadecimal digits (SHA-256, first half): the identity of content."""
    return hashlib.sha256("\0".join(texts).encode("utf-8", "surrogatepass")).hexdigest()[:32]
