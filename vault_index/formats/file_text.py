"""Text that comes in and files that go out: decoding, code told from prose, frontmatter written."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from vault_index.frontmatter_edit import one_line_dumper
from vault_index.lesson import BOM, decode, fenced, heading_of

if TYPE_CHECKING:
    import yaml

_LINE_END = re.compile(
    r"(?<!\r)\r++(?:\n|\Z)"
)  # the look-behind keeps a megabyte of \r from taking hours
_SECTION = re.compile(r"##[ \t]+Lesson:")
_NESTING = re.compile(r"(?:[\s>]|(?:[-*+]|[0-9]{1,9}[.)])[ \t])*")
_FLAT = 1_000_000_000  # a width at which YAML breaks no line; libyaml knows no infinity


class _Root(dict[str, Any]):
    """The frontmatter itself: a key a line, where what is nested in it is written on one line."""


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
    r"""Escape what would begin a further lesson: `## Lesson: x` outside code becomes `\## Lesson: x`."""
    if not _SECTION.search(body):
        return body
    lines = body.split("\n")
    return "\n".join(
        "\\" + line if _SECTION.match(line) and not inside else line
        for line, inside in zip(lines, fenced(lines), strict=True)
    )


def says_something(body: str) -> bool:
    """Tell whether there is text, and more than a heading with nothing below it."""
    first, _, rest = body.strip().partition("\n")
    return bool(rest.strip() or (first and not heading_of(first)))


def in_code(lines: list[str]) -> Iterator[bool]:
    """Tell of each line whether it belongs to a code fence, its first and last line included.

    Unlike `lesson.fenced` it also sees fences in quotes and in bullets, however deep.
    """
    before = False
    for after in fenced(_NESTING.sub("", line, count=1) for line in lines):
        yield before or after
        before = after


def pieces(text: str) -> Iterator[tuple[bool, str]]:
    """Cut text into runs of prose and of code fences; joined they are the text again."""
    lines = text.split("\n")
    run: list[str] = []
    kind = False
    for line, code in zip(lines, in_code(lines), strict=True):
        if code != kind and run:
            yield kind, "\n".join(run) + "\n"
            run = []
        kind = code
        run.append(line)
    yield kind, "\n".join(run)


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
    """Give a dumper that writes each key and its value on one line, so that no line can be ---."""

    class Keys(one_line_dumper(base)):  # type: ignore[misc]  # a base that is only known here
        """The dumper of values, and of the mapping they stand in."""

    def root(dumper: yaml.SafeDumper, value: _Root) -> yaml.MappingNode:
        return dumper.represent_mapping("tag:yaml.org,2002:map", value.items(), flow_style=False)

    Keys.add_representer(_Root, root)
    return Keys
