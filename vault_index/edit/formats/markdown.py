"""Markdown, with or without frontmatter and `## Lesson:` sections: a file is a draft as it is."""

from __future__ import annotations

from vault_index.edit.formats.draft import Draft, first_sentence, name_of, stem_of
from vault_index.edit.formats.lesson_file import has_body, text_of
from vault_index.errors import LessonError
from vault_index.lesson import category
from vault_index.lesson.edit_frontmatter import set_keys
from vault_index.lesson.parse import Lesson, parse_file


def read_markdown(data: bytes, path: str) -> list[Draft]:
    """Read a markdown file: one draft, or none when it has no text.

    Raises LessonError, with the line, for what no vault could read.
    """
    return draft_of(text_of(data, path), path, " ".join(_words(stem_of(path))))


def draft_of(text: str, path: str, file_title: str) -> list[Draft]:
    """Make a draft of a whole file's text. `file_title` is its title where the text has none."""
    lessons = parse_file(text.encode(), path)
    if not any(has_body(lesson.text) for lesson in lessons):
        return []
    data = text.encode() if text.endswith("\n") else f"{text}\n".encode()
    titles = [stem_of(path)]
    if not any(
        "#" in lesson.id for lesson in lessons
    ):  # no sections, which have titles of their own
        title = _own_title(text, path, lessons[0])
        titles.insert(0, title or file_title)
        if not title:
            data = _with_title(data, path, file_title or first_sentence(lessons[0].text))
    declared = [category.normalise(raw) for raw in lessons[0].categories]
    filed = dict.fromkeys(filter(None, declared or [category.from_folder(path) or ""]))
    return [Draft(name_of(*titles, first_sentence(lessons[0].text)), tuple(filed), data, 1)]


def _own_title(text: str, path: str, lesson: Lesson) -> str:
    """Return the title in frontmatter or the first heading; "" if it came from the path."""
    elsewhere = parse_file(text.encode(), f"{path}-other.md")
    return lesson.title if elsewhere[0].title == lesson.title else ""


def _with_title(data: bytes, path: str, title: str) -> bytes:
    try:
        return set_keys(data, {"title": title}, path)
    except LessonError:  # frontmatter that cannot be edited; the file name will be the title
        return data


def _words(name: str) -> list[str]:
    return name.replace("_", " ").replace("-", " ").split()
