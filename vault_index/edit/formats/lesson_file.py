"""Text that comes in and files that go out: decoded, cut at code, written with frontmatter."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, time
from typing import Any

from vault_index.errors import LessonError
from vault_index.lesson import category
from vault_index.lesson.category import SECTION, heading_of, slugify
from vault_index.lesson.edits import new_file, set_keys
from vault_index.lesson.file import BOM, LessonFile, decode, lines_of, unix_lines
from vault_index.lesson.frontmatter import metadata_of
from vault_index.lesson.parse import parse_file, parse_time
from vault_index.text import blocks

TITLE_LENGTH = 80  # characters
NAME_BYTES = 200  # a file name may have 255; room for "-2.md", and for what git puts beside it

_SENTENCE_END = re.compile(r"(?<!\be\.g)(?<!\bi\.e)(?<!\bvs)[.!?](?=\s+[^\sa-z]|\s*$)|[。！？]")  # noqa: RUF001
_LEAD = re.compile(r"^(?:[\s>#*+-]+|[0-9]+[.)])\s")  # marks of quotes, headings and bullets
_WORD = re.compile(r"\w")
_EXTENSION = re.compile(r"\.(?:md|mdc|markdown|mdown|txt)$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Draft:
    """A lesson file that an import would write.

    `name` is the file name without folder and `.md`: a slug, or the name of a record. `categories` are
    normalised; () when the source names none. `data` is the whole file: frontmatter and markdown,
    with line feeds, also at its end. `line` is where it begins in the source, from 1. One without
    data is left out, and `why` says so.
    """

    name: str
    categories: tuple[str, ...]
    data: bytes
    line: int
    why: str = ""


def left_out(why: str, text: str, line: int) -> Draft:
    """Return the draft for a text that becomes no lesson."""
    return Draft("", (), b"", line, f"{why}: {blocks.one_line(text)}")


def numbered(drafts: Iterable[Draft]) -> list[Draft]:
    """Return drafts in which no two have the same file name: `heap`, `heap-2`, `heap-3`."""
    used: set[tuple[str, str]] = set()
    last: dict[tuple[str, str], int] = {}  # keeps ten thousand of the same name linear
    free: list[Draft] = []
    for draft in drafts:
        folder = draft.categories[0] if draft.categories else ""
        name = draft.name
        while (folder, name) in used:
            last[folder, draft.name] = number = last.get((folder, draft.name), 1) + 1
            name = f"{draft.name}-{number}"
        used.add((folder, name))
        free.append(draft if name == draft.name else replace(draft, name=name))
    return free


def name_of(*titles: str) -> str:
    """Make a file name of the first title that has letters or digits; else it is `lesson`."""
    slugs = (slugify(title) for title in titles)
    slug = next(filter(None, slugs), "lesson")
    return slug.encode()[:NAME_BYTES].decode(errors="ignore").rstrip("-_")


def stem_of(path: str) -> str:
    """Return the name of a file without its folder and extension; "" for standard input."""
    return "" if path == "-" else _EXTENSION.sub("", path.rpartition("/")[2]).strip()


def first_sentence(text: str) -> str:
    """Make a title of markdown: its first sentence on one line, cut after a word at 80 characters.

    "" for text without a letter or digit.
    """
    lines = text.split("\n")
    fences = blocks.fences(text)
    marks = {fence.start for fence in fences} | {f.end - 1 for f in fences if f.is_closed}
    code = {n for fence in fences for n in range(fence.start, fence.end)}
    numbers = [n for n in sorted(range(len(lines)), key=code.__contains__) if n not in marks]
    first = next(filter(_WORD.search, (lines[n] for n in numbers)), "")
    sentence = " ".join(_LEAD.sub("", f" {first[:1000]}").replace("**", "").split())
    end = _SENTENCE_END.search(_ATOM.sub(_masked, sentence))
    if end:
        mark = end.group() if end.group() in "!?！？" else ""  # noqa: RUF001
        sentence = sentence[: end.start()] + mark
    return cut(sentence.rstrip(" :"))


_CLAUSE = re.compile(r"(.{1,78}[^\s:;,(])(?:[:;,](?=\s)| [-–—(])")  # noqa: RUF001  # dashes of prose; the longest
_CLAUSE_WORDS = 4
MAX_CUT = 1000  # of a title, what is looked at
_ATOM = re.compile(r"(?<!`)(`+)(?!`)[^\n]*?(?<!`)\1(?!`)|\[[^\[\]\n]*\]\([^()\n]*\)")


def cut(title: str) -> str:
    """Cut a title at 80 characters or before: after a clause of four words, else after a word.

    Code and links are not cut: the title ends before them, or after one that comes early.
    """
    if len(title) <= TITLE_LENGTH:
        return title
    title = title[:MAX_CUT]
    masked = _ATOM.sub(_masked, title)
    clause = _CLAUSE.match(masked)
    if clause and len(clause[1].split()) >= _CLAUSE_WORDS:
        return title[: clause.end(1)]
    end = masked.rfind(" ", 0, TITLE_LENGTH + 1)
    for atom in _ATOM.finditer(title):
        is_early = len(title[: atom.start()].split()) < _CLAUSE_WORDS
        if is_early and atom.start() < TITLE_LENGTH < atom.end() <= 2 * TITLE_LENGTH:
            end = atom.end()
    return title[: end if end > 0 else TITLE_LENGTH].rstrip(" ,;:-(")


def _masked(atom: re.Match[str]) -> str:
    return "x" * len(atom[0])


def text_of(data: bytes, path: str) -> str:
    """Decode a file; a byte-order mark is dropped and line ends become line feeds.

    Raises LessonError, with the line, when it is not UTF-8 text.
    """
    return unix_lines(decode(data, path)).lstrip(BOM)


def file_of(keys: Mapping[str, Any], body: str) -> bytes:
    """Write a lesson file: frontmatter, then the text."""
    return new_file(body.strip(), keys)


def one_lesson(body: str) -> str:
    r"""Escape each heading that would begin a further lesson: `## Lesson: x` becomes `\## Lesson: x`."""
    file = LessonFile("", "", tuple(lines_of(body)), opening=None, closing=None)
    if not file.sections:
        return body
    # in HTML, too: as text, a heading above it may keep it from being HTML
    return "".join(
        f"\\{line}" if fence is None and SECTION.match(line) else line
        for line, fence in zip(file.lines, file.fence_starts, strict=True)
    )


def has_body(body: str) -> bool:
    """Whether there is text, and more than a heading with nothing below it."""
    first, _, rest = body.strip().partition("\n")
    return bool(rest.strip() or (first and not heading_of(first)))


def pieces(text: str) -> Iterator[tuple[bool, str]]:
    """Cut text into runs of lines, each with whether it is code; joined they are the text again."""
    lines = text.split("\n")
    start = 0
    for is_code, run in itertools.groupby(blocks.code_lines(lines)):
        end = start + len(list(run))
        yield is_code, "\n".join(lines[start:end]) + "\n" * (end < len(lines))
        start = end


def read_markdown(data: bytes, path: str) -> list[Draft]:
    """Read a markdown file: one draft, or none when it has no text.

    Raises LessonError, with the line, for what no vault could read.
    """
    words = stem_of(path).replace("_", " ").replace("-", " ").split()
    return draft_of(text_of(data, path), path, " ".join(words))


def draft_of(text: str, path: str, file_title: str) -> list[Draft]:
    """Make a draft of a whole file's text. `file_title` is its title where the text has none."""
    lessons = parse_file(text.encode(), path)
    if not any(has_body(lesson.text) for lesson in lessons):
        return []
    data = text.encode() if text.endswith("\n") else f"{text}\n".encode()
    titles = [stem_of(path)]
    if all("#" not in lesson.id for lesson in lessons):  # sections have titles of their own
        elsewhere, title = parse_file(text.encode(), f"{path}-other.md"), lessons[0].title
        if elsewhere[0].title != title:  # it was made of the path
            title = ""
        titles.insert(0, title or file_title)
        if not title:
            new_title = file_title or first_sentence(lessons[0].text)
            with suppress(LessonError):  # of frontmatter that cannot be edited: the file name is it
                data = set_keys(data, {"title": new_title}, path)
    named, title = stem_of(path), lessons[0].document or lessons[0].title
    if _DATE.fullmatch(named) and (not title or title == file_title or _DATE.fullmatch(title)):
        why = "a note of a day: give it a title to import it"
        return [left_out(why, lessons[0].text, 1)]
    declared = category.of_file([each.categories for each in lessons])
    filed = dict.fromkeys(filter(None, declared or [category.from_folder(path) or ""]))
    if lessons[0].created is None and (day := _day_of(text, path)):
        with suppress(LessonError):
            data = set_keys(data, {"created": day}, path)
    name = named if _RECORD.fullmatch(named) else ""
    name = name or name_of(*titles, first_sentence(lessons[0].text))
    return [Draft(name, tuple(filed), data, 1)]


_RECORD = re.compile(
    r"(?!\d{4}[-_.]?\d\d[-_.]?\d\d(?!\d))(?:\d{3,6}|(?:adr|rfc|pep|kep|mdr|dr)[-_]?\d{1,6})[-_.][\w.-]{1,150}",
    re.IGNORECASE,
)
_FIRST_LINES = 15
_DAY_LINE = re.compile(
    r"[\s>*+|-]*(?:date|decided(?: on)?)[*_]*\s*[:|][\s*_|]*(\d{4})[-/.](\d\d)[-/.](\d\d)(?!\d)",
    re.IGNORECASE,
)


def _day_of(text: str, path: str) -> date | None:
    """Return the day that a text names in its frontmatter as `date`, or in its first lines; else None."""
    file = LessonFile.of_text(text, path)
    if named := parse_time(metadata_of(file).get("date")):
        return named if named.time() != time() else named.date()
    lines = file.text(file.body).split("\n")[:_FIRST_LINES]
    for line, is_code in zip(lines, blocks.code_lines(lines), strict=True):
        found = None if is_code else _DAY_LINE.match(line)
        with suppress(ValueError):  # a month 13
            if found:
                return date(int(found[1]), int(found[2]), int(found[3]))
    return None


_DAY = r"(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?"
_MONTH = r"(?:jan|feb|m[aä]r|apr|ma[iy]|jun|jul|aug|sep|o[ck]t|nov|de[cz])[a-zé]*\.?"
_ORDINAL = r"\d{1,2}(?:st|nd|rd|th|\.)?"
_NUMBERS = r"\d{4}[-_. ]?(?:\d\d[-_. ]?\d\d|\d\d|w\d\d)|\d{1,2}[-_./]\d{1,2}[-_./]\d{4}"
_NAMES = rf"{_ORDINAL} +{_MONTH},? +\d{{4}}|{_MONTH} +(?:{_ORDINAL},? +)?\d{{4}}"
# the name of a day, week or month
_DATE = re.compile(rf"(?:{_DAY},? +)?(?:{_NUMBERS}|{_NAMES})(?:,? +{_DAY})?", re.IGNORECASE)
