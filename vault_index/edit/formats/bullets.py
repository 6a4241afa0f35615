"""Instruction files of coding agents (CLAUDE.md, AGENTS.md, .cursorrules): a bullet is a lesson."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from vault_index.edit.formats.instructions import (
    MIN_WORDS,
    WORD,
    is_overview,
    is_telling,
    subject_of,
    titled,
    why_none,
)
from vault_index.edit.formats.lesson_file import (
    Draft,
    cut,
    file_of,
    first_sentence,
    has_body,
    left_out,
    name_of,
    numbered,
    one_lesson,
    text_of,
)
from vault_index.lesson.category import heading_of, slugify
from vault_index.lesson.file import LessonFile
from vault_index.lesson.frontmatter import metadata_of

MAX_DEPTH = 2  # of the headings that become a category

_BULLET = re.compile(
    r"(?P<mark>(?:[-*+]|[0-9]{1,9}[.)])(?:[ ]{1,4}|$))(?:\[[ xX]\][ ])?(?P<text>.*)"
)
_RULE = re.compile(r"[ ]{0,3}([-*_])[ \t]*(?:\1[ \t]*){2,}")
_BOLD = re.compile(r"(\*\*|__)(?P<lead>[^*\n]+?)(?P<in>[:.])?\1(?P<out>[ ]*(?::|-|–|—)(?=\s|$)|$)?")  # noqa: RUF001
_UNDERLINE = re.compile(r"(?:={2,}|-{2,})[ \t]*")


@dataclass(slots=True)
class _Item:
    """A top-level bullet: the columns of its mark and of its text, and its lines, dedented."""

    line: int
    mark: int
    column: int
    lines: list[str]
    nested: bool = False  # has bullets or code of its own


@dataclass(slots=True)
class _HeadedLines:
    """The lines between two headings: bullets, and the lines outside them, with their numbers."""

    heading: str = ""  # "" above the first one and below the document's own
    category: str = ""  # made of the headings above it
    subject: str = ""  # the nearest of them that names one
    items: list[_Item] = field(default_factory=list)
    loose: list[tuple[int, str]] = field(default_factory=list)


def read_bullets(data: bytes, path: str) -> list[Draft]:
    """Read an instruction file: a draft for each top-level bullet.

    The text below a heading without bullets is one draft; what says nothing by itself is left out.
    So is frontmatter, without a word. Raises
    LessonError, with the line, for text that is not UTF-8 and frontmatter that is not YAML.
    """
    file = LessonFile.of_text(text_of(data, path), path)
    metadata_of(file)  # raises for frontmatter that is not YAML
    drafts: list[Draft] = []
    parts = list(_parts(file))
    for part in parts:
        loose = _without_comments("\n".join(line for _, line in part.loose))
        first = next((number for number, line in part.loose if line.strip()), 0)
        if has_body(loose):
            has_more = part is not parts[-1]
            why = _why_left_out(part, loose.strip(), has_more=has_more)
            drafts.append(
                left_out(why, loose, first)
                if why
                else _draft(
                    (part.heading if part.heading == part.subject else "", loose), part, first, path
                )
            )
        for item in part.items:
            why = _why_no_lesson(item)
            drafts.append(
                left_out(why, "\n".join(item.lines), item.line)
                if why
                else _draft(_of_item(item), part, item.line, path)
            )
    return sorted(numbered(drafts), key=lambda draft: draft.line)


def _why_left_out(part: _HeadedLines, text: str, *, has_more: bool) -> str:
    """Return the reason for which the text outside a part's bullets is no lesson; "" if it is one."""
    is_above_all = not part.heading and has_more
    if (is_above_all or is_overview(part.heading)) and not is_telling(text):
        return "an introduction"
    return why_none(text) or ("beside bullets" if part.items else "")


def _without_comments(text: str) -> str:
    parts: list[str] = []
    end = 0
    while (start := text.find("<!--", end)) >= 0 and (close := text.find("-->", start)) >= 0:
        parts.append(text[end:start])
        end = close + len("-->")
    return "".join(parts) + text[end:]


def _draft(named: tuple[str, str], part: _HeadedLines, line: int, path: str) -> Draft:
    title, text = named
    title = cut(title) or first_sentence(text) or "Lesson"
    keys: dict[str, Any] = {"title": titled(part.subject, title)}
    if path != "-":
        keys["source"] = path
    categories = (part.category,) if part.category else ()
    return Draft(name_of(title), categories, file_of(keys, one_lesson(_after(title, text))), line)


def _after(title: str, text: str) -> str:
    """Return a text without the sentence or the bold words at its begin that are its title."""
    for mark in (f"{title}. ", f"**{title}**: ", f"**{title}:** ", f"**{title}.** "):
        rest = text.removeprefix(mark)
        if rest != text and len(WORD.findall(rest.split("\n")[0])) >= MIN_WORDS - 1:
            return rest[:1].upper() + rest[1:]
    return text


def _of_item(item: _Item) -> tuple[str, str]:
    bold = _BOLD.match(item.lines[0])
    lead = bold["lead"].strip() if bold and (bold["in"] or bold["out"] is not None) else ""
    return " ".join(lead.split()), "\n".join(item.lines)


def _why_no_lesson(item: _Item) -> str:
    text = "\n".join(item.lines).strip()
    short = not has_body(text) or not (item.nested or len(WORD.findall(text)) >= MIN_WORDS)
    return ("no statement" if short else "") or ("" if item.nested else why_none(text))


def _parts(file: LessonFile) -> Iterator[_HeadedLines]:
    """Cut the lines of a file's body at their headings."""
    part, item = _HeadedLines(), None
    seen_heading = False
    above: list[tuple[int, str]] = []  # the headings that this one is below: (level, heading)
    before, was_code = "", False  # the line before this one
    for number in file.body:
        line, code = file.lines[number].removesuffix("\n"), file.code_lines[number]
        heading, top = ("", False) if code else (heading_of(line), not line.startswith("##"))
        if not heading and not code and item is None and _UNDERLINE.fullmatch(line):
            heading, top = _underlined(part, before), line.startswith("=")
        if heading:
            yield part
            is_title = top and not seen_heading
            level = len(line) - len(line.lstrip("#")) or (1 if top else 2)
            above = [] if is_title else [each for each in above if each[0] < level]
            above += [] if is_title else [(level, heading)]
            names = [name for _, name in above]
            category = "/".join(filter(None, map(slugify, names[-MAX_DEPTH:])))
            part = (
                _HeadedLines() if is_title else _HeadedLines(heading, category, subject_of(names))
            )
            item, seen_heading = None, True
        elif not code and _RULE.fullmatch(line):
            item = None
        else:
            item = _next_item(line, (was_code, code), before, item, number + 1)
            if item is None:
                part.loose.append((number + 1, line))
            elif not part.items or part.items[-1] is not item:
                part.items.append(item)
        before, was_code = line, code
    yield part


def _underlined(part: _HeadedLines, before: str) -> str:
    """Remove the last line from a part's text if === or --- underlines it: it was a heading."""
    if not before.strip() or not part.loose or part.loose[-1][1] != before:
        return ""
    if len(part.loose) > 1 and part.loose[-2][1].strip():
        return ""  # a paragraph, and a rule below it
    return part.loose.pop()[1].strip()


def _next_item(
    line: str, codes: tuple[bool, bool], before: str, item: _Item | None, number: int
) -> _Item | None:
    """Return the bullet that a line belongs to: the bullet above, a new one, or None.

    `codes`: whether the line before this one, and this one, are code.
    """
    code = codes[1]
    bare = line.lstrip(" \t")
    column = len(line[: len(line) - len(bare)].expandtabs(4))
    spread = " " * column + bare
    bullet = None if all(codes) else _BULLET.fullmatch(spread[column:])
    if bullet and (item is None or column < item.mark + 2):
        if column > 3 and item is None:  # indented code, not a list
            return None
        return _Item(number, column, column + len(bullet["mark"]), [bullet["text"]])
    if item is None:
        return None
    inside = column >= item.mark + 2
    if not line.strip() or inside or bullet:
        pass
    elif code:
        # a fence at the margin belongs to "run this:", and goes on once it has begun
        if not (before.strip() or item.lines[-1].rstrip().endswith(":") or item.nested):
            return None
    elif not before.strip() or codes[0]:
        return None  # a paragraph of its own
    item.nested = item.nested or bool(bullet) or code
    item.lines.append(spread[min(column, item.column) :])
    return item
