"""The frontmatter of a lesson file, which python-frontmatter reads and writes."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any

from vault_index.errors import LessonError
from vault_index.lesson.file import LessonFile, Section

if TYPE_CHECKING:
    import yaml

    from vault_index.lesson.handler import LessonHandler

MAX_CHANGED = 40  # characters of a number or the like
_KEY_LINE = re.compile(r"""^(['"]?)[\w.-]+\1\s*:(\s|$)""")


def metadata_of(file: LessonFile) -> dict[Any, Any]:
    """Return the frontmatter of a file, {} where it has none.

    A block that is never closed is an error here. Raises LessonError with the line.
    """
    if file.opening is None:
        return {}
    if file.closing is None:
        head = next((line for line in file.lines[file.opening + 1 :] if line.strip()), "")
        if _KEY_LINE.match(head):  # above any other line it is a rule
            message = f"{file.path}: frontmatter is not closed"
            raise LessonError(message, file.opening + 1, "add a line with ---")
        return {}
    import frontmatter

    # python-frontmatter skips the blank lines below the dashes
    first = next((n for n in file.frontmatter if file.lines[n].strip()), file.closing)
    handler = handler_of(file.path, above=first, opening=file.opening + 1)
    text = file.text(range(file.opening, file.closing + 1))
    return frontmatter.parse(text, handler=handler)[0]


def own_of(file: LessonFile, section: Section) -> dict[Any, Any]:
    """Return the keys that a section has of its own. Raises LessonError with the line."""
    lines = file.own_keys(section)
    if not lines:
        return {}
    handler = handler_of(file.path, above=lines.start, opening=lines.start + 1)
    return handler.load(file.text(lines))


def oddities(file: LessonFile, lines: range, texts: Collection[str]) -> Iterator[tuple[int, str]]:
    """Find keys that are there twice, and values that YAML cuts or reads as no text, each with its line.

    The lines load; `texts` are the keys whose value is a text or a list of texts.
    """
    import yaml

    root = yaml.compose(file.text(lines), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    written = file.text(lines).split("\n")
    seen: set[str] = set()
    for key, value in root.value if isinstance(root, yaml.MappingNode) else ():
        name, line = str(key.value), lines.start + key.start_mark.line + 1
        if name in seen:
            yield line, f"the key {brief(name)} a second time: the last one counts"
        seen.add(name)
        members = value.value if isinstance(value, yaml.SequenceNode) else [value]
        for each in members if name in texts else ():
            if isinstance(each, yaml.ScalarNode) and not each.style and _is_changed(each):
                number = lines.start + each.start_mark.line + 1
                meant = f'is no text to YAML: write "{each.value}"'
                yield number, f"{name}: {each.value} {meant}"
        end = value.end_mark
        if name == "title" and written[end.line][end.column :].lstrip().startswith("#"):
            yield line, "the title ends before the #: put it in quotes"


def _is_changed(node: yaml.ScalarNode) -> bool:
    """Whether a value without quotes is printed in another way than it is written, as `yes` is."""
    kind, written = node.tag.rpartition(":")[2], node.value
    if kind not in ("bool", "null", "int", "float") or not 0 < len(written) <= MAX_CHANGED:
        return False
    return bool(str(handler_of().value_of(written)) != written)


def handler_of(path: str = "", *, above: int = 0, opening: int = 0) -> LessonHandler:
    """Return the reader and writer of a file's frontmatter; the first call loads YAML, 25 ms."""
    from vault_index.lesson.handler import LessonHandler  # `lessons --help` needs none

    return LessonHandler(path, above, opening)


def brief(value: Any, limit: int = 60) -> str:
    """Return the beginning of a value in Python's spelling, whatever the value."""
    if isinstance(value, str):
        value = value[:limit]
    try:
        text = repr(value)
    except ValueError:  # a whole number of more than 4,300 digits
        text = "a very long number"
    return text[:limit]
