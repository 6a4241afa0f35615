"""python-frontmatter for lesson files: with limits, errors that name the line, a line for each key.

This takes 25 ms to import, so functions import it when they need it.
"""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING, Any

import yaml
from frontmatter.default_handlers import YAMLHandler

from vault_index.errors import LessonError
from vault_index.lesson.file import lines_of

if TYPE_CHECKING:
    from frontmatter import Post

# A few hundred bytes of YAML can expand to gigabytes: aliases of aliases share memory until
# somebody prints them, deep nesting ends the process, a number of base 60 takes quadratic time.
MAX_CHARS = 64 * 1024  # of a block; the longest that people write has a few thousand
MAX_EXPANDED = 4 * MAX_CHARS  # with each alias replaced by its value
MAX_NESTING = 100
_BASE_60 = re.compile(r"(?::[0-5]?[0-9]){20}")  # `1:30:00` is a number; read in quadratic time
_PROBLEM_CHARS = 200  # of what YAML says, which repeats what it does not like
_LINES_TRIED = 1_000  # to find the line of frontmatter that does not load
_VALUE = re.compile(
    r"(?P<key>[ \t]*[\w.-]+:[ \t]+|[ \t]*-[ \t]+)(?P<value>(?P<quote>['\"]?)\S.*?)\s*"
)
_TABBED = re.compile(r"(?m)^ *\t")


class LessonHandler(YAMLHandler):
    """Read and write one lesson file, for `frontmatter.parse` and `frontmatter.dumps`.

    In errors `path` names the file, `above` counts the lines above the first that is loaded, and
    `opening` is the line of an error about the whole, from 1.
    """

    def __init__(self, path: str = "", above: int = 0, opening: int = 0) -> None:
        super().__init__()
        self.path, self.above, self.opening = path, above, opening

    def load(self, fm: str, **_: object) -> dict[Any, Any]:
        """Load the lines between the dashes. Raises LessonError with the line.

        `frontmatter.parse` would drop in silence what is not a mapping.
        """
        block = fm.removeprefix("\n")  # the end of the dashes
        try:
            refuse_expensive(block)
            metadata = self.value_of(block)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            line = self.above + (mark.line + 1 if mark else 0)
            problem = f"is not YAML: {_on_one_line(error.problem or error.context or error)}"
            tabs = "indent with blanks: YAML takes no tabs" if _TABBED.search(block) else ""
            raise self._error(problem, line, _quotes(block) or tabs) from None
        except Exception as error:  # noqa: BLE001  # a bad date is a ValueError, deep nesting a RecursionError
            line = self.above + _line_that_fails(block)
            raise self._error(f"is not usable: {_on_one_line(error)}", line) from None
        if metadata is None:
            return {}
        if not isinstance(metadata, dict):
            kind = type(metadata).__name__
            raise self._error(f"is a {kind}, not `key: value` lines", self.opening)
        return metadata

    @staticmethod
    def value_of(yaml_text: str) -> Any:
        """Load YAML that is within the limits. Raises YAMLError, ValueError and others."""
        return YAMLHandler().load(yaml_text, Loader=_Loader)

    def export(self, metadata: dict[str, object], **_: object) -> str:
        """Write each key and its value on a line, in the order of the mapping."""
        return "".join(f"{self.line_of(key, value)}\n" for key, value in metadata.items())

    def format(self, post: Post, **_: object) -> str:
        """Write a whole file: the text begins below the dashes, and ends with its line."""
        return f"---\n{self.export(post.metadata)}---\n{post.content}\n"

    @classmethod
    def line_of(cls, key: str, value: Any) -> str:
        """Write a key and its value on one line, without its end."""
        return f"{cls.flow(key)}: {cls.flow(value)}"

    @staticmethod
    def flow(value: Any) -> str:
        """Write a value on one line, in the flow style of YAML."""
        plain = list(value) if isinstance(value, (tuple, set, frozenset)) else value
        dumped: str = yaml.dump(
            plain,
            Dumper=_OneLine,
            default_flow_style=True,
            width=float("inf"),
            allow_unicode=True,
            sort_keys=False,
        )
        return dumped.removesuffix("\n").removesuffix("\n...")

    def _error(self, problem: str, line: int, hint: str = "") -> LessonError:
        return LessonError(f"{self.path}: frontmatter {problem}", line, hint)


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # PyYAML decides which is there
    """The loader, with libyaml, which takes more tabs, where it is there."""


def _timestamp(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> Any:
    """Return a date, or the text of one that is in no calendar."""
    try:
        return loader.construct_yaml_timestamp(node)
    except (ValueError, OverflowError):  # 2026-02-30; the 9999 of a zone further east
        return loader.construct_scalar(node)


_Loader.add_constructor("tag:yaml.org,2002:timestamp", _timestamp)


class _OneLine(yaml.SafeDumper):
    """A dumper that writes a text on one line, its line ends as escapes."""


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    style = '"' if len(value.splitlines()) > 1 or value != value.strip() else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style)


_OneLine.add_representer(str, _text)


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
    lines = enumerate(itertools.islice(lines_of(block), _LINES_TRIED), start=1)
    failures = ((number, _failure(line)) for number, line in lines)
    return next((n for n, why in failures if why and not isinstance(why, yaml.YAMLError)), 0)


def _failure(line: str) -> Exception | None:
    try:
        refuse_expensive(line)
        LessonHandler.value_of(line.strip())
    except Exception as error:  # noqa: BLE001  # see `LessonHandler.load`
        return error
    return None


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
