"""Change frontmatter keys of a lesson file and leave every other byte as the author wrote it.

Key order, comments, quotes, unknown keys, line ends, a byte-order mark and the body stay. PyYAML's
parser says where a key's value begins and ends; only that span is replaced. (ruamel.yaml would write
the whole block again.)
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from vault_index.errors import LessonError
from vault_index.lesson.file import LessonFile, lines_of
from vault_index.lesson.frontmatter import metadata_of

if TYPE_CHECKING:
    import yaml

_BY_HAND = "edit the file by hand"


def set_keys(data: bytes, changes: Mapping[str, Any], path: str = "lesson.md") -> bytes:
    """Set frontmatter keys of a file's bytes; a value of None removes the key.

    A new key goes below the others. A file without frontmatter gets one. Values are written on one
    line, as YAML flow style. Raises LessonError if the file does not parse, or keeps its whole
    frontmatter in `{...}`.
    """
    file = LessonFile.of(data, path)
    metadata_of(file)  # never edit what cannot be read back
    newline, lines = file.newline, file.lines
    if file.closing is None:
        above, block, below = f"---{newline}", "", "".join([f"---{newline}", *lines])
    else:
        start, end = file.frontmatter.start, file.frontmatter.stop
        parts = (lines[:start], lines[start:end], lines[end:])
        above, block, below = ("".join(part) for part in parts)
    for key, value in changes.items():
        block = _edit(block, key, value, newline, path)
    if file.closing is None and not block:
        return data
    edited = LessonFile.of_text(above + block + below, path, file.bom)
    if changes:
        _check(edited, changes)
    return edited.to_bytes()


def keys_of(data: bytes, path: str = "lesson.md") -> dict[Any, Any]:
    """Return the frontmatter of a file's bytes. Raises LessonError if it does not parse."""
    return metadata_of(LessonFile.of(data, path))


def line_of(key: str, value: Any) -> str:
    """Write a key and its value as one line of frontmatter, without its end."""
    return f"{_flow(key)}: {_flow(value)}"


@functools.cache
def one_line_dumper(base: type[yaml.SafeDumper]) -> type[yaml.SafeDumper]:
    """Return a dumper that writes a text on one line, its line ends as escapes."""

    class OneLine(base):  # type: ignore[valid-type, misc]  # a base that is only known here
        """A base's dumper with another way to write texts."""

    def text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
        style = '"' if len(value.splitlines()) > 1 or value != value.strip() else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style)

    OneLine.add_representer(str, text)
    return OneLine


def _check(edited: LessonFile, changes: Mapping[str, Any]) -> None:
    """Raise LessonError if an edit did not do what it should: YAML has many corners."""
    import yaml

    try:
        metadata = metadata_of(edited)
    except LessonError:
        raise LessonError(f"{edited.path}: cannot edit this frontmatter", 1, _BY_HAND) from None
    for key, value in changes.items():
        wanted = None if value is None else yaml.safe_load(_flow(value))
        if repr(metadata.get(key)) != repr(wanted):  # by repr: nan is not equal to itself
            raise LessonError(f"{edited.path}: cannot edit the key {key!r}", 1, _BY_HAND)


def _edit(block: str, key: str, value: Any, newline: str, path: str) -> str:
    """Return the YAML lines with one key set, added or removed."""
    import yaml

    try:
        root = yaml.compose(block, Loader=yaml.SafeLoader)
        aliases = any(isinstance(e, yaml.AliasEvent) for e in yaml.parse(block, yaml.SafeLoader))
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
    if aliases:  # the value may be what an alias stands for, or be one
        raise LessonError(f"{path}: cannot edit frontmatter with *aliases", 1, _BY_HAND)
    name, old = pairs[-1]
    start = block.index(":", name.end_mark.index) + 1
    end = max(start, _end_of(block, old))
    if value is None:
        begin = block.rfind("\n", 0, name.start_mark.index) + 1
        stop = block.find("\n", end)
        rest = block[:begin] + (block[stop + 1 :] if stop >= 0 else "")
        return _edit(rest, key, None, newline, path) if len(pairs) > 1 else rest
    return f"{block[:start]} {_flow(value)}{block[end:]}"


def _end_of(block: str, node: Any) -> int:
    """Return the index after a value: without the blank lines and comments that follow it."""
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
    if block and not block.endswith("\n"):
        block += newline
    return f"{block}{indent}{line_of(key, value)}{newline}"


def _flow(value: Any) -> str:
    """Write a value as YAML on one line."""
    import yaml

    plain = list(value) if isinstance(value, (tuple, set, frozenset)) else value
    dumped: str = yaml.dump(
        plain,
        Dumper=one_line_dumper(yaml.SafeDumper),
        default_flow_style=True,
        width=float("inf"),
        allow_unicode=True,
        sort_keys=False,
    )
    return dumped.removesuffix("\n").removesuffix("\n...")
