"""What YAML makes of the frontmatter of a lesson file, and what is wrong with it."""

from __future__ import annotations

import itertools
import re
from typing import Any

from vault_index.errors import LessonError
from vault_index.lesson import yaml_bounds
from vault_index.lesson.file import LessonFile, lines_of

_PROBLEM_CHARS = 200  # of what YAML says, which repeats what it does not like
_LINES_TRIED = 1_000  # to find the line of frontmatter that does not load
_KEY_LINE = re.compile(r"""^(['"]?)[\w.-]+\1\s*:(\s|$)""")


def metadata_of(file: LessonFile) -> dict[Any, Any]:
    """Return the frontmatter of a file, {} where it has none.

    What python-frontmatter drops in silence is an error here: a block that is never closed, and one
    that is not a mapping. Raises LessonError with the line.
    """
    if file.opening is None:
        return {}
    if file.closing is None:
        _refuse_unclosed(file)
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


def _read(block: str, above: int, path: str) -> Any:
    """Load the lines of frontmatter, `above` of which are so many. Raises LessonError."""
    import yaml  # 25 ms: not at import time, the command line's help does not need it

    try:
        yaml_bounds.refuse_expensive(block)
        return _load(block)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = above + (mark.line + 1 if mark else 0)
        problem = f"is not YAML: {_on_one_line(error.problem or error.context or error)}"
    except Exception as error:  # noqa: BLE001  # a bad date is a ValueError, deep nesting a RecursionError
        line = above + _line_that_fails(block)
        problem = f"is not usable: {_on_one_line(error)}"
    raise LessonError(f"{path}: frontmatter {problem}", line)


def _refuse_unclosed(file: LessonFile) -> None:
    """Raise LessonError if the line below an opening `---` is a key: without one it is a rule."""
    opening = file.opening or 0
    head = next((line for line in file.lines[opening + 1 :] if line.strip()), "")
    if _KEY_LINE.match(head):
        raise LessonError(
            f"{file.path}: frontmatter is not closed", opening + 1, "add a line with ---"
        )


def _load(block: str) -> Any:
    """Load YAML as python-frontmatter does: with libyaml, which takes more tabs, where it is there."""
    from frontmatter.default_handlers import YAMLHandler

    return YAMLHandler().load(block)


def _on_one_line(problem: object) -> str:
    return " ".join(str(problem).split())[:_PROBLEM_CHARS]


def _line_that_fails(block: str) -> int:
    """Return which line of a block does not load by itself, from 1; 0 if they all do."""
    import yaml

    for number, line in enumerate(itertools.islice(lines_of(block), _LINES_TRIED), start=1):
        try:
            yaml_bounds.refuse_expensive(line)
            _load(line.strip())
        except yaml.YAMLError:
            continue
        except Exception:  # noqa: BLE001  # the same ValueError or RecursionError as above
            return number
    return 0
