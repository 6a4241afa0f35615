"""Merge two versions of a lesson file: frontmatter by key, the body by section.

A three-way merge in which both sides are alike: the result does not depend on which of them is
"ours", and several branches give the same keys and sections in any order. Ordinary conflict markers,
with both texts between them, remain only where both sides changed the same key or section in different
ways. A heading identifies a section, or its text where the heading was renamed; text that both sides
moved, to different places, is a conflict rather than kept twice.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

from vault_index.errors import LessonError
from vault_index.lesson import edits
from vault_index.lesson.file import LessonFile, lines_of
from vault_index.lesson.frontmatter import metadata_of

# Which sections of a file got another heading: seen from their text, as git finds renamed files.
#
# Without it a section that both sides rename differently, or one renames and the other edits, would
# look deleted and new, and a merge would keep its text twice.

MIN_LIKENESS = 0.6  # of the characters of both texts, in lines that are the same

Sections = Mapping[str, str]  # heading -> text with the heading; "" for the text above the first


def undone(base: Sections, sides: Sequence[Sections]) -> list[dict[str, str]]:
    """Return for each of two sides the headings of the base that its renamed sections had.

    A rename to a heading that the other side gave to another section does not count: the two texts
    under one heading are a conflict, and both are kept.
    """
    ours, theirs = (_pairs(base, side) for side in sides)
    return [
        {new: old for new, old in mine.items() if new not in other or others.get(new) == old}
        for mine, other, others in ((ours, sides[1], theirs), (theirs, sides[0], ours))
    ]


def _pairs(base: Sections, side: Sections) -> dict[str, str]:
    """Pair new headings with those that disappeared, the most alike texts first."""
    gone = {name: _below_heading(base[name]) for name in base if name not in side}
    new = {name: _below_heading(side[name]) for name in side if name not in base}
    scores = sorted(
        (-2 * _size(before & after) / max(1, _size(before) + _size(after)), old, name)
        for old, before in gone.items()
        for name, after in new.items()
    )
    pairs: dict[str, str] = {}
    for score, old, name in scores:
        if -score >= MIN_LIKENESS and name not in pairs and old not in pairs.values():
            pairs[name] = old
    return pairs


def _below_heading(text: str) -> Counter[str]:
    """Count the lines with a letter or digit, without the heading."""
    lines = [line.strip() for line in lines_of(text)]
    return _counted(lines[1:] if lines and lines[0].startswith("## ") else lines)


def _counted(lines: Iterable[str]) -> Counter[str]:
    """Count the lines with a letter or digit."""
    return Counter(line for line in lines if any(map(str.isalnum, line)))


def _size(lines: Counter[str]) -> int:
    return sum(len(line) * count for line, count in lines.items())


OURS, BETWEEN, THEIRS = "<<<<<<< ours\n", "=======\n", ">>>>>>> theirs\n"
# keys of which the later value is right when both changed it
_LATEST = frozenset({"updated", "confirmed"})
_KEY = re.compile(r"""^(?P<name>"[^"]*"|'[^']*'|[^\s#'"\[\]{},&*!|>%@`:-][^:#]*?)\s*:(\s|$)""")
_COMMENT = re.compile(r"(?m)(^|\s)#")
_HEADING = re.compile(r"^##[ \t]+\S")

Parts = dict[str, str]  # name -> text, in order
Sides = Sequence[Any]  # of the base, ours, theirs


@dataclass(frozen=True, slots=True)
class MergeResult:
    """The merged file, and the keys and headings between conflict markers."""

    data: bytes
    conflicts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Side:
    """A version of the file in parts. `gaps` are the blank lines below each section but the last."""

    file: LessonFile
    keys: Parts
    values: Mapping[str, Any]  # of the keys, by YAML
    sections: Parts
    gaps: Mapping[str, int]
    lead: int  # blank lines above the first section


def files(base: bytes, ours: bytes, theirs: bytes) -> MergeResult | None:
    """Merge two versions of a file that come from `base` (empty where both are new).

    None if one of them cannot be taken apart: text that is not UTF-8, frontmatter that is not one
    key a line.
    """
    if ours == theirs or theirs == base:
        return MergeResult(ours, ())
    if ours == base:
        return MergeResult(theirs, ())
    try:
        old, *new = (_take_apart(data) for data in (base, ours, theirs))
    except (LessonError, ValueError):
        return None
    conflicts: list[str] = []
    sides = [old, *new]
    text = _merge_keys([side.keys for side in sides], [side.values for side in sides], conflicts)
    renamed = undone(old.sections, [side.sections for side in new])
    new = [  # renamed sections under the names that they have in the base
        replace(
            side,
            sections={names.get(name, name): text for name, text in side.sections.items()},
            gaps={names.get(name, name): gap for name, gap in side.gaps.items()},
        )
        for side, names in zip(new, renamed, strict=True)
    ]
    parts = [side.sections for side in (old, *new)]
    sections = _merge_parts(parts, lambda name, texts: _merge_section(name, texts, conflicts))
    _refuse_repeated(sections, parts, conflicts)
    text = f"---\n{text}---\n" if text else ""
    text += "\n" * max(side.lead for side in new) + _body(sections, new)
    newline = min(side.file.newline for side in new)  # of Windows if both are: "\n" < "\r\n"
    bom = min(side.file.bom for side in new)  # if both have one: "" < BOM
    return MergeResult((bom + text.replace("\n", newline)).encode(), tuple(conflicts))


def _body(sections: Parts, sides: Sequence[_Side]) -> str:
    written = [(name, text) for name, text in sections.items() if text]
    body = ""
    for number, (name, text) in enumerate(written, start=1):
        gap = max((side.gaps[name] for side in sides if name in side.gaps), default=1)
        body += text + ("\n" * gap if number < len(written) else "")
    return body


# a file in parts


def _take_apart(data: bytes) -> _Side:
    """Cut a file into parts. Raises LessonError or ValueError if that is not possible."""
    file = LessonFile.of(data, "lesson.md")
    values = {str(key): value for key, value in metadata_of(file).items()}
    keys = _keys(lines_of(file.text(file.frontmatter)))
    if {name for name in keys if name} != set(values):
        raise ValueError("frontmatter that is not one key a line")
    sections, gaps = _sections(file)
    # lines with spaces in them belong to the section
    written = (lead for lead, number in enumerate(file.body) if file.lines[number].rstrip("\r\n"))
    return _Side(file, keys, values, sections, gaps, next(written, 0))


def _keys(lines: Iterable[str]) -> Parts:
    """Return the text of each key: its lines, with the comments and blank lines above them."""
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


def _sections(file: LessonFile) -> tuple[Parts, dict[str, int]]:
    """Return the text of each `##` section by its heading, and the blank lines below all but the last.

    The text above the first heading has the name "".
    """
    starts = file.headings(_HEADING)
    names = ["", *_unique(" ".join(file.lines[number].split()) for number in starts)]
    bounds = [file.body.start, *starts, len(file.lines)]
    spans = map(range, bounds, bounds[1:])
    texts = {
        name: file.text(span).removesuffix("\n") for name, span in zip(names, spans, strict=True)
    }
    texts = {name: text for name, text in texts.items() if text.strip("\n")}
    gaps = {name: len(text) - len(text.rstrip("\n")) for name, text in texts.items()}
    for last in list(texts)[-1:]:
        del gaps[last]
    return {name: text.strip("\n") + "\n" for name, text in texts.items()}, gaps


def _unique(headings: Iterable[str]) -> list[str]:
    """Return headings with a number at each that repeats one: `## A`, `## A (2)`."""
    names: dict[str, None] = {}
    for heading in headings:
        number, name = 1, heading
        while name in names:
            number += 1
            name = f"{heading} ({number})"
        names[name] = None
    return list(names)


# the merge


def _merge_parts(sides: Sequence[Parts], both: Callable[[str, Sides], str]) -> Parts:
    """Merge the parts of three sides; `both` merges those that both changed. A removed part is ""."""
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
    """Order the names of three sides, in the same way whichever of two is "ours".

    The names that all three have are the spine. Each side hangs runs of other names on it:

        base     a   b   c           spine:  |     a       c
        ours     a x b   c           ours:   | []  a [x b] c []
        theirs   a y     c z         theirs: | []  a [y]   c [z]

        new names after the name of the spine on their own side, by name where both sides have some
        (x, y), then what a side removed, in the order of the base (b): a x y b c z

    The spine is the base's order, or that of the only side which changed it, or of both alike.
    """
    shared = set(base) & set(ours) & set(theirs)
    spine = [name for name in base if name in shared]
    orders = [[name for name in side if name in shared] for side in (ours, theirs)]
    changed = [order for order in orders if order != spine]
    if changed and (len(changed) == 1 or changed[0] == changed[1]):
        spine = changed[0]
    runs = [_runs(side, shared) for side in (ours, theirs)]
    ordered: list[str] = []
    for place in [None, *spine]:
        ordered += [] if place is None else [place]
        after = [side.get(place, []) for side in runs]
        new = [[name for name in run if name not in base] for run in after]
        new = [run for run in new if run]
        alike = all(run == new[0] for run in new)
        ordered += new[0] if new and alike else sorted({name for run in new for name in run})
        ordered += [name for name in base if any(name in run for run in after)]
    return list(dict.fromkeys(ordered))


def _runs(side: list[str], shared: Set[str]) -> dict[str | None, list[str]]:
    """Return the names of a side that not all have, by the shared name above them, None at the top."""
    runs: dict[str | None, list[str]] = {}
    above: str | None = None
    for name in side:
        if name in shared:
            above = name
        else:
            runs.setdefault(above, []).append(name)
    return runs


def _merge_keys(keys: Sequence[Parts], values: Sides, conflicts: list[str]) -> str:
    merged = _merge_parts(
        keys,
        lambda name, texts: _merge_key(name, texts, [side.get(name) for side in values], conflicts),
    )
    return "".join(merged.values())


def _merge_key(name: str, texts: Sides, values: Sides, conflicts: list[str]) -> str:
    """Merge a key that both sides changed: lists as sets, the later date; else with markers.

    Comments above it are merged apart. Comments within a list have a place only in its lines.
    """
    _, ours, theirs = values
    parts = [_apart_from_comments(text or "") for text in texts]
    above, keys = _merge_comments([part[0] for part in parts]), [part[1] for part in parts]
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
    return _conflict(name or "a comment", texts[1] or "", texts[2] or "", conflicts)


def _conflict(name: str, ours: str, theirs: str, conflicts: list[str]) -> str:
    conflicts.append(name)
    return f"{OURS}{ours}{BETWEEN}{theirs}{THEIRS}"


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
    first, second = sorted(sides[1:])
    return "".join(dict.fromkeys(lines_of(first) + lines_of(second)))


def _merge_lists(name: str, values: Sides) -> str:
    lists = [value if isinstance(value, list) else [] for value in values]
    by_text = {repr(item): item for members in lists for item in members}
    base, ours, theirs = ([repr(item) for item in members] for members in lists)
    items = [
        by_text[text]
        for text in _order(base, ours, theirs)
        if text not in base or (text in ours and text in theirs)
    ]
    return f"{edits.line_of(name, items)}\n"


def _merge_section(name: str, texts: Sides, conflicts: list[str]) -> str:
    """Merge a section that both sides changed, heading and lines, where that is possible."""
    base, ours, theirs = (text or "" for text in texts)
    if base and ours and theirs:
        headings, owns, bodies = zip(*map(_taken_apart, (base, ours, theirs)), strict=True)
        heading, own, body = _merge_lines(*headings), _merge_own(owns), _merge_lines(*bodies)
        if heading is not None and own is not None and body is not None:
            return heading + own + body
    return _conflict(name or "the text", ours, theirs, conflicts)


def _taken_apart(section: str) -> tuple[str, str, str]:
    """Cut a section into its heading, the keys of its own below it, and the rest."""
    if not _HEADING.match(section.partition("\n")[0]):
        return "", "", section
    file = LessonFile.of_text(section, "lesson.md")
    own = file.own(file.sections[0]) if file.sections else range(1, 1)
    every = range(len(file.lines))
    return file.text(every[: own.start]), file.text(own), file.text(every[own.stop :])


def _merge_own(sides: Sequence[str]) -> str | None:
    """Merge the keys of a section's own as those of a file; None where both sides changed one."""
    if not any(sides):
        return ""
    conflicts: list[str] = []
    try:
        keys = [_keys(lines_of(side)) for side in sides]
        blocks = [(f"---\n{''.join(side.values())}---\n").encode() for side in keys]
        values = [edits.keys_of(block) for block in blocks]
    except (LessonError, ValueError):
        return _merge_lines(*sides)
    merged = _merge_keys(keys, values, conflicts)
    return None if conflicts else merged


def _refuse_repeated(sections: Parts, sides: Sequence[Parts], conflicts: list[str]) -> None:
    """Put markers around sections with a line that every side has once, and the merged text twice.

    Both sides moved it, to different places.
    """
    clean = {name: text for name, text in sections.items() if not text.startswith(OURS)}
    merged, *counts = (
        _counted(line for text in parts.values() for line in lines_of(text))
        for parts in (clean, *sides)
    )
    twice = {line for line, count in merged.items() if count > 1}
    twice = {line for line in twice if all(count[line] == 1 for count in counts)}
    for name, text in clean.items():
        ours, theirs = (side.get(name, "") for side in sides[1:])
        if ours != theirs and twice.intersection(lines_of(text)):
            sections[name] = _conflict(name or "the text", ours, theirs, conflicts)


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
