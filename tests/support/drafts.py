"""Foreign files read for a test, and what is in the drafts they make."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from vault_index.edit.formats import Draft, read_good
from vault_index.errors import LessonError
from vault_index.lesson.parse import Lesson, parse_file


def read(data: bytes, path: str, format: str = "") -> list[Draft]:
    """Read a file of which all parts can be imported."""
    good, errors = read_good(data, path, format)
    if errors:
        raise errors[0]
    return good


def drafts(text: str | bytes, path: str, format: str = "") -> list[Draft]:
    """Read text as a file of that path; the format is guessed unless it is given."""
    return read(text.encode() if isinstance(text, str) else text, path, format)


def only(text: str | bytes, path: str, format: str = "") -> Draft:
    """Read a file that makes one draft."""
    (draft,) = drafts(text, path, format)
    return draft


def lesson(draft: Draft) -> Lesson:
    """Parse a draft that holds one lesson."""
    (one,) = parse_file(draft.data, f"{draft.name}.md")
    return one


def keys(draft: Draft) -> dict[str, Any]:
    """Return the frontmatter of a draft as YAML reads it."""
    loaded: dict[str, Any] = yaml.safe_load(draft.data.decode().split("---\n")[1])
    return loaded


def problem(text: str | bytes, path: str, format: str = "") -> LessonError:
    """Return the error of a file that is refused."""
    with pytest.raises(LessonError) as raised:
        drafts(text, path, format)
    assert raised.value.message.startswith(f"{path}: ")
    assert "\n" not in raised.value.message
    return raised.value
