"""Change the text of a lesson in its file, or remove it, and leave every other byte as it was."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from vault_index.errors import LessonError
from vault_index.lesson.category import has_text, heading_of
from vault_index.lesson.file import LessonFile, Section, lines_of
from vault_index.lesson.frontmatter import handler_of, metadata_of, own_of
from vault_index.lesson.parse import parse_file, slugs_of
from vault_index.text.blocks import composed


class _LessonLines(NamedTuple):
    """The lines of a lesson in its file: its heading, if it has one, and its text."""

    heading: int | None
    text: range


def set_text(data: bytes, slug: str, text: str | None, title: str | None, path: str) -> bytes:
    """Return a file's bytes with another text, or title, of a lesson; None leaves either as it is.

    `slug` names the section, "" the lesson above the first one. The title of that is changed where
    it is a heading; `set_keys` changes one in the frontmatter. Raises LessonError for text
    that would not read back as the lesson's: it begins another lesson, or swallows the next one.
    """
    if text is None and title is None:
        return data
    file = _ended(LessonFile.of(data, path))
    span, newline, lines = _span_of(file, slug), file.newline, list(file.lines)
    if title is not None and span.heading is not None:
        old = lines[span.heading]
        mark = "## Lesson: " if slug else f"{old[: len(old) - len(old.lstrip('#'))]} "
        closing = " #" if title.endswith("#") else ""  # else its own last # would be one
        lines[span.heading] = f"{mark}{title}{closing}{newline}"
    if text is not None:
        body = text.replace("\r\n", "\n").strip("\n").split("\n")
        above = [newline] if span.heading is not None else []
        below = [newline] if span.text.stop < len(lines) else []
        lines[span.text.start : span.text.stop] = [
            *above, *(line + newline for line in body), *below
        ]  # fmt: skip
    after = LessonFile.of_lines(lines, path, file.bom).to_bytes()
    _check(data, after, slug, text, path)
    return after


def id_after(id: str, before: bytes, after: bytes) -> str:
    """Return the id that a section has after an edit, by its place."""
    path, _, slug = id.partition("#")
    old, new = (
        [name for name, _ in slugs_of(LessonFile.of(data, path))] for data in (before, after)
    )
    return f"{path}#{new[old.index(slug)]}" if slug in old and len(old) == len(new) else id


def without(data: bytes, slug: str, path: str) -> bytes | None:
    """Return a file's bytes without a lesson; None if no lesson remains. Raises LessonError.

    Above the first section, a heading and the line below it stay: it is the title of the file.
    """
    file = _ended(LessonFile.of(data, path))
    span, lines = _span_of(file, slug), list(file.lines)
    start = span.text.start
    if span.heading is not None:
        start = span.heading if slug else start + 1
    del lines[start : span.text.stop]
    after = LessonFile.of_lines(lines, path, file.bom)
    parse_file(after.to_bytes(), path)
    return after.to_bytes() if after.sections or has_text(after.text(after.body)) else None


def _check(before: bytes, after: bytes, slug: str, text: str | None, path: str) -> None:
    old, new = parse_file(before, path), parse_file(after, path)
    edited = [number for number, lesson in enumerate(old) if lesson.id.partition("#")[2] == slug]
    others = [
        [(lesson.title, lesson.text) for number, lesson in enumerate(side) if number not in edited]
        for side in (old, new)
    ]
    wanted = None if text is None else composed(text.replace("\r\n", "\n").strip())
    if others[0] != others[1] or (wanted is not None and new[edited[0]].text != wanted):
        hint = "close its code fences and comments, and begin no line with `## Lesson:` or ---"
        raise LessonError(f"{path}: this text would not stay one lesson", 0, hint)


def _ended(file: LessonFile) -> LessonFile:
    if not file.lines or file.lines[-1].endswith(("\n", "\r")):
        return file
    lines = [*file.lines[:-1], file.lines[-1] + file.newline]
    return LessonFile.of_lines(lines, file.path, file.bom)


def _span_of(file: LessonFile, slug: str) -> _LessonLines:
    """Find a section, or with "" the lesson above the first one. Raises LessonError."""
    if slug:
        section = _section(file, slug)
        return _LessonLines(section.heading, range(file.own_keys(section).stop, section.end))
    span = file.preamble
    heading = next((number for number in span if file.lines[number].strip()), None)
    lessons = parse_file(file.to_bytes(), file.path)
    title = next((lesson.document or lesson.title for lesson in lessons), "")
    if heading is None or composed(heading_of(file.lines[heading].rstrip("\r\n"))) != title:
        return _LessonLines(None, span)  # a heading of the text: the title is the frontmatter's
    return _LessonLines(heading, range(heading + 1, span.stop))


def _section(file: LessonFile, slug: str) -> Section:
    for name, section in slugs_of(file):
        if name == slug:
            return section
    raise LessonError(f"{file.path}: no section {slug!r}", 0, "see the ids with `lessons list`")


# Change frontmatter keys of a lesson file and leave every other byte as the author wrote it.
#
# Key order, comments, quotes, unknown keys, line ends, a byte-order mark and the body stay. PyYAML's
# parser says where a key's value begins and ends; only that span is replaced. (ruamel.yaml would
# write the whole block again.)
_BY_HAND = "edit the file by hand"
COMMENT = re.compile(r"(^|\s)#")


def set_keys(data: bytes, changes: Mapping[str, Any], path: str = "lesson.md") -> bytes:
    """Set frontmatter keys of a file's bytes; a value of None removes the key.

    A new key goes below the others. A file without frontmatter gets one. Values are written on one
    line, as YAML flow style. Raises LessonError if the file does not parse, or keeps its whole
    frontmatter in `{...}`.
    """
    file = LessonFile.of(data, path)
    metadata_of(file)  # never edit what cannot be read back
    newline, lines = file.newline, file.lines
    span = range(0) if file.closing is None else file.frontmatter
    parts = (lines[: span.start], lines[span.start : span.stop], lines[span.stop :])
    above, block, below = ("".join(part) for part in parts)
    if file.closing is None:
        above, below = f"---{newline}", f"---{newline}{below}"
    for key, value in changes.items():
        block = _edit(block, key, value, newline, path)
    if file.closing is None and not block:
        return data
    edited = LessonFile.of_text(above + block + below, path, file.bom)
    try:
        metadata = metadata_of(edited)
    except LessonError:
        raise LessonError(f"{path}: cannot edit this frontmatter", 1, _BY_HAND) from None
    _check_keys(metadata, changes, path)
    return edited.to_bytes()


def set_own_keys(
    data: bytes, slug: str, changes: Mapping[str, Any], path: str = "lesson.md"
) -> bytes:
    """Set keys below the heading of a section; a value of None removes the key of its own.

    Raises LessonError as `set_keys` does, and where a value would not read back.
    """
    file = _ended(LessonFile.of(data, path))
    span, newline, lines = file.own_keys(_section(file, slug)), file.newline, list(file.lines)
    before = block = "".join(lines[span.start : span.stop])
    for key, value in changes.items():
        block = _edit(block, key, value, newline, path)
    if block == before:
        return data
    below = lines[span.stop : span.stop + 1]
    gap = [newline] if block and not before and below and below[0].strip() else []
    lines[span.start : span.stop] = [*lines_of(block), *gap]
    edited = LessonFile.of_lines(lines, path, file.bom)
    _check_keys(own_of(edited, _section(edited, slug)), changes, path)
    _check(data, edited.to_bytes(), slug, None, path)
    return edited.to_bytes()


def keys_of(data: bytes, path: str = "lesson.md") -> dict[Any, Any]:
    """Return the frontmatter of a file's bytes. Raises LessonError if it does not parse."""
    return metadata_of(LessonFile.of(data, path))


def new_file(text: str, keys: Mapping[str, Any]) -> bytes:
    """Return a new lesson file: the keys, each on a line, then the text and one line end.

    Raises LessonError for keys that would not read back.
    """
    import frontmatter

    post = frontmatter.Post(text, handler_of())
    post.metadata.update(keys)
    data = frontmatter.dumps(post).encode()
    _check_keys(keys_of(data), keys, "lesson.md")
    return data


def _check_keys(metadata: Mapping[Any, Any], changes: Mapping[str, Any], path: str) -> None:
    import yaml

    for key, value in changes.items():
        wanted = None if value is None else yaml.safe_load(handler_of().flow(value))
        if repr(metadata.get(key)) != repr(wanted):  # by repr: nan is not equal to itself
            raise LessonError(f"{path}: cannot edit the key {key!r}", 1, _BY_HAND)


def _edit(block: str, key: str, value: Any, newline: str, path: str) -> str:
    import yaml

    try:
        root = yaml.compose(block, Loader=yaml.SafeLoader)
    except yaml.YAMLError:  # stricter with tabs than libyaml, which reads the files
        raise LessonError(f"{path}: cannot edit this frontmatter", 1, _BY_HAND) from None
    if root is None:
        return block if value is None else _append(block, key, value, newline)
    if not isinstance(root, yaml.MappingNode) or root.flow_style:
        raise LessonError(
            f"{path}: cannot edit frontmatter written as {{...}}", 2, "put each key on its own line"
        )
    # of duplicate keys the last counts, as in PyYAML
    pairs = [pair for pair in root.value if pair[0].value == key and pair[0].tag.endswith(":str")]
    if not pairs:
        indent = " " * root.start_mark.column
        return block if value is None else _append(block, key, value, newline, indent)
    events = yaml.parse(block, yaml.SafeLoader) if "*" in block else ()
    if any(isinstance(e, yaml.AliasEvent) for e in events):  # the value may be of one, or be one
        raise LessonError(f"{path}: cannot edit frontmatter with *aliases", 1, _BY_HAND)
    name, old = pairs[-1]
    start = block.index(":", name.end_mark.index) + 1
    end = max(start, _end_of(block, old))
    if value is None:
        begin = name.start_mark.index - name.start_mark.column
        rest = block[:begin] + "".join(lines_of(block[end:])[1:])
        return _edit(rest, key, None, newline, path) if len(pairs) > 1 else rest
    return f"{block[:start]} {handler_of().flow(value)}{block[end:]}"


def _end_of(block: str, node: Any) -> int:
    end: int = node.end_mark.index
    start: int = node.start_mark.index
    lines = lines_of(block[start:end])
    literal = getattr(node, "style", None) in ("|", ">")
    while len(lines) > 1 and (
        not lines[-1].strip() or (not literal and lines[-1].lstrip().startswith("#"))
    ):
        lines.pop()
    return start + len("".join(lines).rstrip())


def _append(block: str, key: str, value: Any, newline: str, indent: str = "") -> str:
    if block and not block.endswith(("\n", "\r")):
        block += newline
    return f"{block}{indent}{handler_of().line_of(key, value)}{newline}"
