"""Merge two versions of a lesson file: frontmatter by key, the body by section.

A three-way merge in which both sides are alike: what is merged does not depend on which of them is
"ours", and of several branches the same keys and sections come together in any order. Only where
both changed the same key or section in different ways are ordinary conflict markers left, with both
texts between them. A section is known by its heading, or by its text where that was renamed; text that
both sides moved, to different places, is a conflict rather than kept twice.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from vault_index import frontmatter_edit, renames
from vault_index.errors import LessonError
from vault_index.lesson import BOM, fenced, is_boundary, lines_of, split_frontmatter

OURS, BETWEEN, THEIRS = "<<<<<<< ours\n", "=======\n", ">>>>>>> theirs\n"
_LATEST = frozenset({"updated"})  # keys of which the later value is right when both changed it
_KEY = re.compile(r"""^(?P<name>"[^"]*"|'[^']*'|[^\s#'"\[\]{},&*!|>%@`:-][^:#]*?)\s*:(\s|$)""")
_COMMENT = re.compile(r"(?m)(^|\s)#")
_HEADING = re.compile(r"^##[ \t]+\S")

Parts = dict[str, str]  # name -> text, in order
Sides = Sequence[Any]  # of the base, ours, theirs


@dataclass(frozen=True, slots=True)
class Merged:
    """The merged file, and the keys and headings between conflict markers."""

    data: bytes
    conflicts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _File:
    """A lesson file in parts. `gaps` are the blank lines below each section but the last."""

    keys: Parts
    values: Mapping[str, Any]  # what YAML makes of the keys
    sections: Parts
    gaps: Mapping[str, int]
    lead: int  # blank lines above the first section


def files(base: bytes, ours: bytes, theirs: bytes) -> Merged | None:
    """Merge two versions of a file that come from `base` (empty where both are new).

    None if one of them cannot be taken apart: text that is not UTF-8, frontmatter that is not one
    key a line.
    """
    if ours == theirs or theirs == base:
        return Merged(ours, ())
    if ours == base:
        return Merged(theirs, ())
    try:
        sides = [_take_apart(one) for one in (base, ours, theirs)]
    except (LessonError, ValueError):
        return None
    conflicts: list[str] = []
    keys = _merge_parts(
        [one.keys for one in sides],
        lambda name, texts: _merge_key(name, texts, [s.values.get(name) for s in sides], conflicts),
    )
    sides[1:] = [
        _under_old_headings(side, names)
        for side, names in zip(
            sides[1:],
            renames.undone(sides[0].sections, [side.sections for side in sides[1:]]),
            strict=True,
        )
    ]
    parts = [side.sections for side in sides]
    sections = _merge_parts(parts, lambda name, texts: _merge_section(name, texts, conflicts))
    _refuse_repeated(sections, parts, conflicts)
    text = "".join(keys.values())
    text = f"---\n{text}---\n" if text else ""
    text += "\n" * max(one.lead for one in sides[1:]) + _body(sections, sides[1:])
    newline = "\r\n" if _has_windows_ends(ours) and _has_windows_ends(theirs) else "\n"
    bom = BOM if ours.startswith(BOM.encode()) and theirs.startswith(BOM.encode()) else ""
    return Merged((bom + text.replace("\n", newline)).encode(), tuple(conflicts))


def _under_old_headings(side: _File, names: Mapping[str, str]) -> _File:
    """Return a side with its renamed sections under the names that they have in the base."""
    sections = {names.get(name, name): text for name, text in side.sections.items()}
    gaps = {names.get(name, name): gap for name, gap in side.gaps.items()}
    return replace(side, sections=sections, gaps=gaps)


def _has_windows_ends(data: bytes) -> bool:
    """Tell whether most lines end as on Windows: one that was pasted does not count."""
    return 2 * data.count(b"\r\n") > data.count(b"\n")


def _body(sections: Parts, sides: Sequence[_File]) -> str:
    written = [(name, text) for name, text in sections.items() if text]
    body = ""
    for number, (name, text) in enumerate(written, start=1):
        gap = max((side.gaps[name] for side in sides if name in side.gaps), default=1)
        body += text + ("\n" * gap if number < len(written) else "")
    return body


# a file in parts


def _take_apart(data: bytes) -> _File:
    """Cut a file into parts. Raises LessonError, ValueError if that cannot be."""
    text = data.decode("utf-8-sig").replace("\r\n", "\n")
    metadata, _ = split_frontmatter(text, "lesson.md")
    values = {str(key): value for key, value in metadata.items()}
    lines = lines_of(text)
    first = next((n for n, line in enumerate(lines) if line.strip()), 0)
    closing = None
    if lines and is_boundary(lines[first]):
        closing = next((n for n in range(first + 1, len(lines)) if is_boundary(lines[n])), None)
    keys = _keys(lines[first + 1 : closing]) if closing is not None else {}
    if {name for name in keys if name} != set(values):
        raise ValueError("frontmatter that is not one key a line")
    body = lines[closing + 1 :] if closing is not None else lines
    sections, gaps = _sections(body)
    # lines with spaces in them belong to the section
    lead = next((n for n, line in enumerate(body) if line.strip("\n")), 0)
    return _File(keys, values, sections, gaps, lead)


def _keys(lines: list[str]) -> Parts:
    """Give the text of each key: its lines, with the comments and blank lines above them."""
    parts: Parts = {}
    pending = last = ""
    for line in lines:
        match = _KEY.match(line)
        if match:
            last = match["name"].strip().strip("\"'")
            if last in parts:
                raise ValueError(f"the key {last} twice")
            parts[last], pending = pending + line, ""
        elif not line.strip() or line.startswith("#"):
            pending += line
        elif last:
            parts[last] += pending + line
            pending = ""
        else:
            raise ValueError("a line before the first key")
    if pending:
        parts[""] = pending  # comments below the last key
    return parts


def _sections(lines: Iterable[str]) -> tuple[Parts, dict[str, int]]:
    """Give the text of each `##` section by its heading, and the blank lines below each but the last.

    What stands before the first heading has the name "".
    """
    whole = [line if line.endswith("\n") else f"{line}\n" for line in lines]
    parts: dict[str, list[str]] = {"": []}
    name = ""
    for line, inside in zip(whole, fenced(line[:-1] for line in whole), strict=True):
        if not inside and _HEADING.match(line):
            heading = " ".join(line.split())
            number, name = 1, heading
            while name in parts:
                number += 1
                name = f"{heading} ({number})"
            parts[name] = []
        parts[name].append(line)
    texts = {name: "".join(lines) for name, lines in parts.items()}
    texts = {name: text for name, text in texts.items() if text.strip("\n")}
    gaps = {name: len(text) - len(text.rstrip("\n")) - 1 for name, text in texts.items()}
    for last in list(texts)[-1:]:
        del gaps[last]
    return {name: text.strip("\n") + "\n" for name, text in texts.items()}, gaps


# the merge


def _merge_parts(sides: Sequence[Parts], both: Callable[[str, Sides], str]) -> Parts:
    """Merge the parts of three sides; `both` merges what both changed. What went away is ""."""
    merged: Parts = {}
    for name in _order(*map(list, sides)):
        base, ours, theirs = versions = [side.get(name) for side in sides]
        if theirs in (base, ours):
            merged[name] = ours or ""
        elif ours == base:
            merged[name] = theirs or ""
        else:
            merged[name] = both(name, versions)
    return merged


def _order(base: list[str], ours: list[str], theirs: list[str]) -> list[str]:
    """Order the names of three sides, so that it does not matter which of two is "ours".

    What is new stands after the same name of the base as on its own side; where both sides put
    something, it is sorted by name.
    """
    spine = [name for name in base if name in ours and name in theirs]
    orders = [[name for name in side if name in spine] for side in (ours, theirs)]
    changed = [order for order in orders if order != spine]
    if changed and (len(changed) == 1 or changed[0] == changed[1]):
        spine = changed[0]  # else both moved things about: as it was
    runs: dict[str | None, list[list[str]]] = {}
    for side in (ours, theirs):
        after: str | None = None
        runs.setdefault(after, []).append([])
        for name in side:
            if name in spine:
                after = name
                runs.setdefault(after, []).append([])
            else:  # new, or taken out by the other side
                runs[after][-1].append(name)
    ordered: list[str] = []
    for place in [None, *spine]:
        ordered += [] if place is None else [place]
        given = runs.get(place, [])
        new = [[name for name in run if name not in base] for run in given]
        new = [run for run in new if run]
        alike = all(run == new[0] for run in new)
        ordered += new[0] if new and alike else sorted({name for run in new for name in run})
        ordered += [name for name in base if any(name in run for run in given)]
    return list(dict.fromkeys(ordered))


def _merge_key(name: str, texts: Sides, values: Sides, conflicts: list[str]) -> str:
    """Merge a key that both sides changed: lists as sets, the later date; else with markers.

    Comments above it are merged by themselves. Those in a list have a place only in its lines.
    """
    _, ours, theirs = values
    parts = [_apart_from_comments(text or "") for text in texts]
    above, keys = _merge_comments([one[0] for one in parts]), [one[1] for one in parts]
    merged: str | None = None
    if isinstance(ours, list) and isinstance(theirs, list):
        commented = any(map(_COMMENT.search, keys))
        merged = _merge_lines(*keys) if commented else _merge_lists(name, values)
    elif name in _LATEST and ours is not None and type(ours) is type(theirs):
        merged = max((ours, keys[1]), (theirs, keys[2]))[1]
    elif name and ours == theirs and None not in texts[1:]:  # the same, written in two ways
        merged = min(keys[1:])
    if merged is not None:
        return above + merged
    conflicts.append(name or "a comment")
    return f"{OURS}{texts[1] or ''}{BETWEEN}{texts[2] or ''}{THEIRS}"


def _apart_from_comments(text: str) -> tuple[str, str]:
    """Cut a key's text into the comments and blank lines above it, and the rest."""
    lines = lines_of(text)
    start = next((n for n, line in enumerate(lines) if _KEY.match(line)), len(lines))
    return "".join(lines[:start]), "".join(lines[start:])


def _merge_comments(sides: Sequence[str]) -> str:
    """Merge comments line by line; of those that both changed, all are kept."""
    merged = _merge_lines(*sides)
    if merged is not None:
        return merged
    one, other = sorted(sides[1:])
    return "".join(dict.fromkeys(lines_of(one) + lines_of(other)))


def _merge_lists(name: str, values: Sides) -> str:
    lists = [value if isinstance(value, list) else [] for value in values]
    by_text = {repr(one): one for members in lists for one in members}
    base, ours, theirs = ([repr(one) for one in members] for members in lists)
    kept = [
        by_text[one]
        for one in _order(base, ours, theirs)
        if one not in base or (one in ours and one in theirs)
    ]
    return f"{frontmatter_edit.line_of(name, kept)}\n"


def _merge_section(name: str, texts: Sides, conflicts: list[str]) -> str:
    """Merge a section that both sides changed, heading and lines, where that is possible."""
    base, ours, theirs = (text or "" for text in texts)
    if base and ours and theirs:
        headings, bodies = zip(*map(_apart_from_heading, (base, ours, theirs)), strict=True)
        heading, body = _merge_headings(*headings), _merge_lines(*bodies)
        if heading is not None and body is not None:
            return heading + body
    conflicts.append(name or "the text")
    return f"{OURS}{ours}{BETWEEN}{theirs}{THEIRS}"


def _apart_from_heading(section: str) -> tuple[str, str]:
    first, end, rest = section.partition("\n")
    return (first + end, rest) if _HEADING.match(first) else ("", section)


def _merge_headings(base: str, ours: str, theirs: str) -> str | None:
    if theirs in (base, ours):
        return ours
    return theirs if ours == base else None


def _refuse_repeated(sections: Parts, sides: Sequence[Parts], conflicts: list[str]) -> None:
    """Put markers around sections with a line that was there once on every side and now is twice.

    Both sides moved it, to different places.
    """
    clean = {name: text for name, text in sections.items() if not text.startswith(OURS)}
    merged = _counted(clean)
    counts = [_counted(side) for side in sides]
    twice = {line for line, count in merged.items() if count > 1}
    twice = {line for line in twice if all(count[line] == 1 for count in counts)}
    for name, text in clean.items():
        ours, theirs = (side.get(name, "") for side in sides[1:])
        if ours != theirs and twice.intersection(lines_of(text)):
            conflicts.append(name or "the text")
            sections[name] = f"{OURS}{ours}{BETWEEN}{theirs}{THEIRS}"


def _counted(sections: Parts) -> Counter[str]:
    """Count the lines that say something."""
    lines = (line for text in sections.values() for line in lines_of(text))
    return Counter(line for line in lines if any(map(str.isalnum, line)))


def _merge_lines(base: str, ours: str, theirs: str) -> str | None:
    """Merge as diff3 does; None where both sides changed the same lines, or lines that touch."""
    lines = [lines_of(text) for text in (base, ours, theirs)]
    changes = {
        (start, end, tuple(side[low:high]))
        for side in lines[1:]
        for tag, start, end, low, high in difflib.SequenceMatcher(
            None, lines[0], side, autojunk=False
        ).get_opcodes()
        if tag != "equal"
    }
    merged: list[str] = []
    done = -1  # a change that begins at or before this line of the base touches the one above
    for start, end, text in sorted(changes):
        if start <= done:
            return None
        merged += [*lines[0][max(done, 0) : start], *text]
        done = end
    return "".join([*merged, *lines[0][max(done, 0) :]])
