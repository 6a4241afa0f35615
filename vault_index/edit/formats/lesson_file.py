"""Text that comes in and files that go out: decoded, cut at code, written with frontmatter."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from vault_index.lesson.edit_frontmatter import one_line_dumper
from vault_index.lesson.file import BOM, LessonFile, decode, lines_of
from vault_index.lesson.markdown import SECTION, heading_of
from vault_index.text import blocks

if TYPE_CHECKING:
    import yaml

# the look-behind keeps a megabyte of \r from taking hours
_LINE_END = re.compile(r"(?<!\r)\r++(?:\n|\Z)")
_FLAT = 1_000_000_000  # a width at which YAML breaks no line; libyaml knows no infinity


class _Root(dict[str, Any]):
    """The frontmatter itself: a key a line, with its whole value on that line."""


def text_of(data: bytes, path: str) -> str:
    """Decode a file; a byte-order mark is dropped and line ends become line feeds.

    Raises LessonError, with the line, when it is not UTF-8 text.
    """
    return unix_lines(decode(data, path)).lstrip(BOM)


def unix_lines(text: str) -> str:
    """Write line ends as line feeds."""
    return _LINE_END.sub("\n", text)


def file_of(keys: Mapping[str, Any], body: str) -> bytes:
    """Write a lesson file: frontmatter, then the text."""
    return f"---\n{_frontmatter(keys)}---\n{body.strip()}\n".encode()


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


def _frontmatter(keys: Mapping[str, Any]) -> str:
    import yaml

    root = _Root(keys)
    written = _dump(root, _dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)))
    if "\\U000" in written:  # libyaml escapes emoji, PyYAML is slower and does not
        written = _dump(root, _dumper(yaml.SafeDumper))
    return written


def _dump(root: _Root, dumper: type[yaml.SafeDumper]) -> str:
    import yaml

    written: str = yaml.dump(
        root,
        Dumper=dumper,
        sort_keys=False,
        allow_unicode=True,
        default_flow_style=True,
        width=_FLAT,
    )
    return written


@functools.cache
def _dumper(base: type[yaml.SafeDumper]) -> type[yaml.SafeDumper]:
    """Return a dumper that writes each key and its value on one line, so that no line can be ---."""

    class Keys(one_line_dumper(base)):  # type: ignore[misc]  # a base that is only known here
        """The dumper of values, and of the mapping they stand in."""

    def root(dumper: yaml.SafeDumper, value: _Root) -> yaml.MappingNode:
        return dumper.represent_mapping("tag:yaml.org,2002:map", value.items(), flow_style=False)

    Keys.add_representer(_Root, root)
    return Keys
