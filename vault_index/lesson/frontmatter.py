"""The frontmatter of a lesson file as YAML reads it, and what is wrong with it."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any

from vault_index.errors import LessonError
from vault_index.lesson.file import LessonFile, Section, lines_of

if TYPE_CHECKING:
    import yaml

# Limits on frontmatter, checked before YAML is loaded.
#
# A few hundred bytes of YAML can expand to gigabytes: aliases of aliases share memory until
# somebody prints them, deep nesting ends the process, a number of base 60 takes quadratic time.
# Such a block is refused. `brief` prints any value that passed.

MAX_CHARS = 64 * 1024  # of a block; the longest that people write has a few thousand
MAX_EXPANDED = 4 * MAX_CHARS  # with each alias replaced by its value
MAX_NESTING = 100
_BASE_60 = re.compile(r"(?::[0-5]?[0-9]){20}")  # `1:30:00` is a number; read in quadratic time


def refuse_expensive(block: str) -> None:
    """Raise ValueError for a block of YAML that would take much time or memory to load or print.

    The event parser keeps its stack on the heap, so it can count what the loader cannot survive:
    at a depth of 50,000 libyaml's loader kills the process.
    """
    if len(block) > MAX_CHARS:
        raise ValueError(f"longer than {MAX_CHARS // 1024} KB")
    if _BASE_60.search(block):
        raise ValueError("a number of base 60 with more than 20 digits")
    if sum(map(block.count, "[{-?")) <= MAX_NESTING and not ("*" in block and "&" in block):
        return
    import yaml

    sizes: dict[str, int] = {}  # of each anchor, expanded, in characters
    opened: list[tuple[str | None, int]] = []  # the collections around, and where each began
    total = 0
    try:
        for event in yaml.parse(block, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            if isinstance(event, yaml.CollectionStartEvent):
                opened.append((event.anchor, total))
                total += 2
            elif isinstance(event, yaml.CollectionEndEvent):
                anchor, start = opened.pop()
                if anchor:
                    sizes[anchor] = total - start
            elif isinstance(event, yaml.AliasEvent):
                if any(anchor == event.anchor for anchor, _ in opened):
                    raise ValueError(f"*{event.anchor:.40} contains itself")
                total += sizes.get(str(event.anchor), 0) + 1
            elif isinstance(event, yaml.ScalarEvent):
                total += len(event.value) + 1
                if event.anchor:
                    sizes[event.anchor] = len(event.value) + 1
            if len(opened) > MAX_NESTING:
                raise ValueError(f"nested deeper than {MAX_NESTING}")
            if total > MAX_EXPANDED:
                raise ValueError("its aliases stand for too much text")
    except yaml.MarkedYAMLError as error:
        # PyYAML 6.0.4 reads ahead and refuses a depth of 1,000 before its first event
        if "nesting depth" not in (error.problem or ""):
            raise
        raise ValueError(f"nested deeper than {MAX_NESTING}") from None


def brief(value: Any, limit: int = 60) -> str:
    """Return the beginning of a value in Python's spelling, whatever the value."""
    if isinstance(value, str):
        value = value[:limit]
    try:
        text = repr(value)
    except ValueError:  # a whole number of more than 4,300 digits
        text = "a very long number"
    return text[:limit]


MAX_CHANGED = 40  # characters of a number or the like
_PROBLEM_CHARS = 200  # of what YAML says, which repeats what it does not like
_LINES_TRIED = 1_000  # to find the line of frontmatter that does not load
_VALUE = re.compile(
    r"(?P<key>[ \t]*[\w.-]+:[ \t]+|[ \t]*-[ \t]+)(?P<value>(?P<quote>['\"]?)\S.*?)\s*"
)
_TABBED = re.compile(r"(?m)^ *\t")
_KEY_LINE = re.compile(r"""^(['"]?)[\w.-]+\1\s*:(\s|$)""")


def metadata_of(file: LessonFile) -> dict[Any, Any]:
    """Return the frontmatter of a file, {} where it has none.

    Two things that python-frontmatter drops in silence are errors here: a block that is never closed, and
    one that is not a mapping. Raises LessonError with the line.
    """
    if file.opening is None:
        return {}
    if file.closing is None:
        head = next((line for line in file.lines[file.opening + 1 :] if line.strip()), "")
        if _KEY_LINE.match(head):  # above any other line it is a rule
            message = f"{file.path}: frontmatter is not closed"
            raise LessonError(message, file.opening + 1, "add a line with ---")
        return {}
    first = next((n for n in file.frontmatter if file.lines[n].strip()), file.closing)
    block = file.text(range(first, file.closing))
    metadata = _read(block, first, file.path)
    if metadata is None:
        return {}
    if not isinstance(metadata, dict):
        kind = type(metadata).__name__
        message = f"{file.path}: frontmatter is a {kind}, not `key: value` lines"
        raise LessonError(message, file.opening + 1)
    return metadata


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
                at = lines.start + each.start_mark.line + 1
                meant = f'is no text to YAML: write "{each.value}"'
                yield at, f"{name}: {each.value} {meant}"
        end = value.end_mark
        if name == "title" and written[end.line][end.column :].lstrip().startswith("#"):
            yield line, "the title ends before the #: put it in quotes"


def _is_changed(node: yaml.ScalarNode) -> bool:
    """Whether a value without quotes is printed in another way than it is written, as `yes` is."""
    kind, written = node.tag.rpartition(":")[2], node.value
    if kind not in ("bool", "null", "int", "float") or not 0 < len(written) <= MAX_CHANGED:
        return False
    return bool(str(_load(written)) != written)


def own_of(file: LessonFile, section: Section) -> dict[Any, Any]:
    """Return the keys that a section has of its own. Raises LessonError with the line."""
    lines = file.own(section)
    metadata = _read(file.text(lines), lines.start, file.path) if lines else {}
    if not isinstance(metadata, dict):
        raise LessonError(f"{file.path}: not `key: value` lines", lines.start + 1)
    return metadata


def _read(block: str, above: int, path: str) -> Any:
    """Load the lines of frontmatter, `above` of which are so many. Raises LessonError."""
    import yaml  # 25 ms: not at import time, the command line's help does not need it

    try:
        refuse_expensive(block)
        return _load(block)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = above + (mark.line + 1 if mark else 0)
        problem = f"is not YAML: {_on_one_line(error.problem or error.context or error)}"
        tabs = "indent with blanks: YAML takes no tabs" if _TABBED.search(block) else ""
        hint = _quotes(block) or tabs
    except Exception as error:  # noqa: BLE001  # a bad date is a ValueError, deep nesting a RecursionError
        line = above + _line_that_fails(block)
        problem, hint = f"is not usable: {_on_one_line(error)}", ""
    raise LessonError(f"{path}: frontmatter {problem}", line, hint)


def _load(block: str) -> Any:
    """Load YAML as python-frontmatter does: with libyaml, which takes more tabs, where it is there."""
    from frontmatter.default_handlers import YAMLHandler

    return YAMLHandler().load(block, Loader=_loader())


@functools.cache
def _loader() -> type[yaml.SafeLoader]:
    """Return the loader, to which a date that is in no calendar is a text."""
    import yaml

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
        pass

    def timestamp(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> Any:
        try:
            return loader.construct_yaml_timestamp(node)
        except (ValueError, OverflowError):  # 2026-02-30; the 9999 of a zone further east
            return loader.construct_scalar(node)

    Loader.add_constructor("tag:yaml.org,2002:timestamp", timestamp)
    return Loader


def _on_one_line(problem: object) -> str:
    return " ".join(str(problem).split())[:_PROBLEM_CHARS]


def _quotes(block: str) -> str:
    """Return the advice to quote the first value that does not load by itself, and would in quotes."""
    for line in itertools.islice(block.splitlines(), _LINES_TRIED):
        match = _VALUE.fullmatch(line)
        if match is None or len(line) > _PROBLEM_CHARS:
            continue
        value, before = match["value"], match["quote"]
        if before and value.count(before) == 1:  # it goes on in the next line
            continue
        if before and value[-1] == before:
            value = value[1:-1]
        quote = "'" if '"' in value or "\\" in value else '"'
        quoted = f"{match['key']}{quote}{value}{quote}"
        if _failure(line) and not _failure(quoted):
            return f"put the value in quotes: {quoted.strip()}"
    return ""


def _line_that_fails(block: str) -> int:
    """Return which line of a block is YAML and does not load by itself, from 1; 0 for none."""
    import yaml

    lines = enumerate(itertools.islice(lines_of(block), _LINES_TRIED), start=1)
    failures = ((number, _failure(line)) for number, line in lines)
    return next((n for n, why in failures if why and not isinstance(why, yaml.YAMLError)), 0)


def _failure(line: str) -> Exception | None:
    try:
        refuse_expensive(line)
        _load(line.strip())
    except Exception as error:  # noqa: BLE001  # see `_read`
        return error
    return None
