"""Markdown, with or without frontmatter and `## Lesson:` sections: a file is a draft as it is."""

from __future__ import annotations

from vault_index import categories as tree
from vault_index.errors import LessonError
from vault_index.formats.draft import Draft, first_sentence, name_of, stem_of
from vault_index.formats.file_text import says_something, text_of
from vault_index.frontmatter_edit import set_keys
from vault_index.lesson import Lesson, parse_file


def read_markdown(data: bytes, path: str) -> list[Draft]:
    """Read a markdown file: one draft, or none when it has no text.

    Raises LessonError, with the line, for what no vault could read.
    """
    return draft_of(text_of(data, path), path, " ".join(_words(stem_of(path))))


def draft_of(text: str, path: str, file_title: str) -> list[Draft]:
    """Make a draft of a whole file's text. `file_title` is its title where it names none itself."""
    lessons = parse_file(text.encode(), path)
    if not any(says_something(one.text) for one in lessons):
        return []
    data = text.encode() if text.endswith("\n") else f"{text}\n".encode()
    titles = [stem_of(path)]
    if not any("#" in one.id for one in lessons):  # no sections, which have titles of their own
        title = _own_title(text, path, lessons[0])
        titles.insert(0, title or file_title)
        if not title:
            data = _with_title(data, path, file_title or first_sentence(lessons[0].text))
    declared = [tree.normalise(one) for one in lessons[0].categories]
    filed = dict.fromkeys(filter(None, declared or [tree.from_folder(path) or ""]))
    return [Draft(name_of(*titles, first_sentence(lessons[0].text)), tuple(filed), data, 1)]


def _own_title(text: str, path: str, lesson: Lesson) -> str:
    """Give the title that frontmatter or the first heading says; "" if it came from the path."""
    elsewhere = parse_file(text.encode(), f"{path}-other.md")
    return lesson.title if elsewhere[0].title == lesson.title else ""


def _with_title(data: bytes, path: str, title: str) -> bytes:
    try:
        return set_keys(data, {"title": title}, path)
    except LessonError:  # frontmatter that cannot be edited; the file name will be the title
        return data


def _words(name: str) -> list[str]:
    return name.replace("_", " ").replace("-", " ").split()
