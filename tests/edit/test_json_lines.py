"""A JSON object a line is a lesson; each one that is not is an error, by its line."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.drafts import drafts, keys, lesson, only, problem, read
from vault_index.edit.formats import read_good


def test_a_long_file_is_read_by_its_lines() -> None:
    line = json.dumps({"title": "Long", "text": "Use foo. " * 20_000})
    good, errors = read_good(f"{line}\n{{broken\n{line * 20}\n".encode() + line.encode(), "a.jsonl")
    assert len(good) == 2
    assert [error.line for error in errors] == [2, 3]
    assert "not JSON" in errors[0].message
    assert "larger than 2 MB" in errors[1].message


def test_an_object_a_line() -> None:
    value = {
        "id": "git/foo-bar",
        "category": "Git",
        "title": "Foo: bar",
        "text": "Use foo.\r\n---\nThen bar.",
        "tags": ["a", "b"],
        "confidence": 4,
        "created": "2025-11-15T10:30:00Z",
        "unknown": {"deep": [1, None, {"x": 1.5}], "lines": "a\n---\nb"},
        "author": "Größe 🔥",
        "nothing": None,
    }
    draft = only(f"\n{json.dumps(value)}\n\n", "all.jsonl")
    assert (draft.name, draft.categories, draft.line) == ("foo-bar", ("git",), 2)
    kept = ("title", "tags", "confidence", "created", "unknown", "author")
    assert keys(draft) == {key: value[key] for key in kept}  # the path says id and category
    assert "author: Größe 🔥" in draft.data.decode()
    assert lesson(draft).text == "Use foo.\n---\nThen bar."


@pytest.mark.parametrize(
    ("value", "name", "categories", "frontmatter"),
    [
        ({"text": "Use pnpm. Not npm."}, "use-pnpm", (), {"title": "Use pnpm"}),
        ({"body": "# Use pnpm\ntext"}, "use-pnpm", (), {"title": "Use pnpm"}),
        ({"content": "text", "title": " T \n 1"}, "t-1", (), {"title": "T 1"}),
        ({"lesson": "text", "title": "T", "id": 42}, "42", (), {"id": "42", "title": "T"}),
        (
            {"text": "text", "title": "T", "id": "x/Y z", "categories": "a/B, c"},
            "y-z",
            ("a/b", "c"),
            {"id": "x/Y z", "title": "T", "categories": ["a/b", "c"]},
        ),
        ({"text": "t", "title": "T", "id": "../..", "category": ["../x"]}, "t", ("x",), None),
    ],
)
def test_names_titles_and_categories_of_objects(
    value: Any, name: str, categories: tuple[str, ...], frontmatter: Any
) -> None:
    draft = only(json.dumps(value), "all.jsonl")
    assert (draft.name, draft.categories) == (name, categories)
    assert frontmatter is None or keys(draft) == frontmatter


def test_lessons_of_one_name_get_numbers_within_their_category() -> None:
    lines = [{"title": "A", "text": "x", "category": c} for c in ("x", "x", "y", "x")]
    lines.insert(1, {"title": "A 2", "text": "x", "category": "x"})
    found = drafts("\n".join(map(json.dumps, lines)), "all.jsonl")
    assert [one.name for one in found] == ["a", "a-2", "a-3", "a", "a-4"]


def test_one_array_for_the_whole_file() -> None:
    found = drafts('[\n{"text": "one is one"},\n{"text": "two is two"}\n]\n', "all.json")
    assert [(one.name, one.line) for one in found] == [("one-is-one", 1), ("two-is-two", 1)]
    assert "object 2: no text" in problem('[{"text": "one"}, {}]', "all.json").message


def test_an_object_is_one_lesson_whatever_its_text_looks_like() -> None:
    text = "Before.\n## Lesson: not another\n```\n## Lesson: code\n```"
    one = lesson(only(json.dumps({"text": text}), "all.jsonl"))
    assert one.text == text.replace("## Lesson: not", "\\## Lesson: not")
    hidden = "## Lesson: a\n<a>\n## Lesson: b\n"  # HTML, until the line above it is text
    assert "\\## Lesson: b" in lesson(only(json.dumps({"text": hidden}), "all.jsonl")).text


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("{'text': 1}", "not JSON"),
        ("[1]", "not a JSON object"),
        ("3", "a int, not a JSON object"),
        ("{}", "no text"),
        ('{"text": " "}', "no text"),
        ('{"text": "# Only a heading"}', "no text"),
        ('{"text": ["x"]}', "'text' is a list"),
        ('{"text": "x", "title": {}}', "'title' is a dict"),
        ('{"text": "x", "id": []}', "'id' is a list"),
        ('{"text": "x", "categories": [1]}', "'categories' is neither"),
        ('{"text": "\\ud800"}', "half a surrogate pair"),
        ('{"text": "x\\u0000"}', "a NUL character"),
        ('{"text": "x", "n": ' + "9" * 5000 + "}", "not usable JSON"),
        ('{"text": "x", "n": ' + "[" * 200 + "]" * 200 + "}", "nested deeper than 100"),
        ("[" * 100_000, "not usable JSON"),
    ],
)
def test_a_line_that_is_no_lesson_is_named(line: str, says: str) -> None:
    error = problem(f'{{"text": "a good one"}}\r\n\r\n{line}\n', "all.jsonl")
    assert says in error.message
    assert error.line == 3


def test_the_good_lines_of_a_file_are_read_and_all_bad_ones_named() -> None:
    text = (
        '{"text": "one is one"}\n{"text":\n{"text": "two is two"}\n{}\n["x"]\n{"text": "three"}\n'
    )
    good, errors = read_good(text.encode(), "all.jsonl")
    assert [(one.name, one.line) for one in good] == [
        ("one-is-one", 1),
        ("two-is-two", 3),
        ("three", 6),
    ]
    assert [error.line for error in errors] == [2, 4, 5]


def test_a_line_that_is_a_list_does_not_make_the_file_an_array() -> None:
    good, errors = read_good(b'[1]\n{"text": "two is two"}\n', "all.jsonl")
    assert [one.name for one in good] == ["two-is-two"]
    assert [error.line for error in errors] == [1]


def test_good_objects_of_an_array_are_read() -> None:
    good, errors = read_good(b'[{"text": "one is one"}, {}, {"text": "two"}]', "all.json")
    assert [one.name for one in good] == ["one-is-one", "two"]
    assert ["object 2" in error.message for error in errors] == [True]


def test_a_file_that_is_no_json_at_all_is_one_error() -> None:
    good, errors = read_good(b"a\nb\nc\n", "all.jsonl")
    assert (good, [error.line for error in errors]) == ([], [1])


@pytest.mark.slow
def test_ten_thousand_lines_of_one_title_have_names_of_their_own() -> None:
    value = {"title": "Use pnpm", "text": "Never npm.", "tags": ["a", "b"], "category": "x"}
    text = "\n".join(json.dumps({**value, "n": n}) for n in range(10_000)).encode()
    assert len({one.name for one in read(text, "all.jsonl")}) == 10_000


VALUES: st.SearchStrategy[Any] = st.recursive(
    st.text() | st.integers() | st.booleans() | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
OURS = {"id", "title", "text", "content", "body", "lesson", "category", "categories"}


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(
    st.dictionaries(st.text().filter(lambda key: key not in OURS), VALUES, max_size=4), st.text()
)
def test_any_key_comes_back_from_the_frontmatter(others: dict[str, Any], text: str) -> None:
    line = json.dumps({**others, "title": "T", "text": f"x {text}".replace("\0", "")})
    draft = only(line, "all.jsonl")
    assert keys(draft) == {**others, "title": "T"}
    assert lesson(draft).text


def test_only_the_first_of_an_id_declares_it() -> None:
    lines = '{"id": "heap", "text": "one"}\n{"id": "heap", "text": "another"}\n'
    first, second = read(lines.encode(), "all.jsonl")
    assert (first.name, second.name) == ("heap", "heap-2")
    assert (lesson(first).declared, lesson(second).declared) == ("heap", "")
