"""A course in one text file becomes one lesson file; a malformed one is named with its line."""

from __future__ import annotations

import pytest

from tests.support.drafts import keys, only, problem
from tests.support.places import TESTS
from vault_index.lesson import passages
from vault_index.lesson.parse import parse_file

COURSES = TESTS / "courses"


def test_a_course_is_one_file_with_a_section_for_each_lesson() -> None:
    data = (COURSES / "introduction_to_ai.txt").read_bytes()
    draft = only(data, "courses/introduction_to_ai.txt")
    assert (draft.name, draft.categories, draft.line) == ("introduction-to-ai", ("courses",), 1)
    assert keys(draft) == {
        "title": "Introduction to AI",
        "link": "https://example.com/ai",
        "author": "Ada Lovelace",
        "categories": ["courses"],
    }
    sections = parse_file(draft.data, "courses/introduction-to-ai.md")
    assert [one.title for one in sections] == ["Welcome", "What is chunking", "Retrieval"]
    link, text = sections[1].text.split("\n\n", 1)
    assert link == "[Lesson 1](https://example.com/ai/1)"
    assert text in data.decode()


def test_a_lesson_without_a_link_keeps_its_number() -> None:
    draft = only(b"Course Title: T\nLesson 4: A\nfirst\nLesson 7: B\nsecond\n", "t.txt")
    texts = [one.text for one in parse_file(draft.data, "a.md")]
    assert texts == ["Lesson 4\n\nfirst", "Lesson 7\n\nsecond"]
    numbers = [passages.number_of(text) for text in texts]
    assert [own and (own.number, own.link) for own in numbers] == [(4, ""), (7, "")]
    draft = only(b"Course Title: T\nLesson 4: A\nLesson Link: http://x/a(1)\nfirst\n", "t.txt")
    own = passages.number_of(parse_file(draft.data, "a.md")[0].text)
    assert own is not None
    assert (own.number, own.link) == (4, "http://x/a(1)")


def test_a_course_of_windows_without_a_link_of_its_own() -> None:
    data = (COURSES / "containers_for_developers.txt").read_bytes()
    assert data.startswith(b"\xef\xbb\xbf")
    assert b"\r\n" in data
    draft = only(data, "containers.txt")
    assert b"\r" not in draft.data
    assert "link" not in keys(draft)
    titles = [one.title for one in parse_file(draft.data, "a.md")]
    assert titles == ["Images and layers", "Caching packages in C#"]


def test_code_in_a_course_is_text() -> None:
    draft = only((COURSES / "writing_courses.txt").read_bytes(), "writing.txt")
    assert draft.line == 2
    sections = parse_file(draft.data, "a.md")
    assert [one.title for one in sections] == [
        "The format",
        "What it becomes",
        "Numbers may skip",
        "The end",
    ]
    assert "\nLesson 3: Not a lesson of this course\n" in sections[0].text
    assert "\n## Lesson: nor a section\n```" in sections[0].text
    assert "\n\\## Lesson: this line is text too\n" in sections[1].text


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("", 1, "a course begins with `Course Title:`"),
        ("\nCourse Link: x\nCourse Title: T\n", 2, "a course begins with `Course Title:`"),
        ("Lesson 0: A\ntext", 1, "a course begins with `Course Title:`"),
        ("Course Title:  \nLesson 0: A\ntext", 1, "`Course Title:` is empty"),
        ("Course Title: T\nCourse Title: U\nLesson 0: A\nx", 2, "`Course Title:` a second time"),
        ("Course Title: T\nCourse Link: a\nCourse Link: b\n", 3, "`Course Link:` a second time"),
        ("Course Title: T\n\nHello.\nLesson 0: A\ntext", 3, "text before the first lesson"),
        ("Course Title: T\nLesson Link: a\nLesson 0: A\ntext", 2, "text before the first lesson"),
        ("Course Title: T\nCourse Link: a\n\n", 2, "no lesson"),
        ("Course Title: T\nLesson 0:\ntext", 2, "lesson 0 has no title"),
        ("Course Title: T\nLesson 1: A\nx\nLesson 1: B\nx", 4, "lesson 1 a second time"),
        ("Course Title: T\nLesson 1: A\nx\nLesson 0: B\nx", 4, "lesson 0 after lesson 1"),
        ("Course Title: T\nLesson 0: A\n\nLesson 1: B\nx", 2, "lesson 0 has no text"),
        ("Course Title: T\nLesson 0: A\nx\nLesson 1: B\nLesson Link: l", 4, "1 has no text"),
        ("Course Title: T\nLesson 0: A\nx\nLesson Link: l\n", 4, "not directly below its lesson"),
        ("Course Title: T\nLesson 0: A\n\nLesson Link: l\nx", 4, "not directly below its lesson"),
        ("Course Title: T\nLesson 0: A\nx\n```\nLesson 1: B\n", 4, "code fence is not closed"),
        (
            "Course Title: T\nLesson 0: A\nx\nLesson 1: B\n<!-- y\nLesson 2: C\nz",
            4,
            "HTML of lesson 1",
        ),
    ],
)
def test_each_malformed_kind_is_named_with_its_line(text: str, line: int, says: str) -> None:
    for written in (text, "\ufeff" + text.replace("\n", "\r\n")):
        error = problem(written, "c.txt", "course")
        assert says in error.message
        assert error.line == line
