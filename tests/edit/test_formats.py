"""Foreign files become lesson files that a person could have written, whole or not at all."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.support.places import TESTS
from vault_index.edit.formats import FORMATS, Draft, guess, read_good
from vault_index.errors import LessonError
from vault_index.lesson.category import slugify
from vault_index.lesson.parse import Lesson, parse_file


def read(data: bytes, path: str, format: str = "") -> list[Draft]:
    """Read a file of which all parts can be imported."""
    good, errors = read_good(data, path, format)
    if errors:
        raise errors[0]
    return [draft for draft in good if not draft.why]


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
    assert "\n" not in raised.value.message
    return raised.value


# which format a file is in


@pytest.mark.parametrize(
    ("path", "text", "format"),
    [
        ("export/all.jsonl", "", "jsonl"),
        ("all.ndjson", "", "jsonl"),
        ("all.JSON", "", "jsonl"),
        ("-", '\n {"text": "x"}', "jsonl"),
        ("-", '[\n {"text": "x"}]', "jsonl"),
        ("-", "[link](https://example.com)", "markdown"),
        ("CLAUDE.md", "", "bullets"),
        ("api/agents.md", "", "bullets"),
        (".cursorrules", "", "bullets"),
        (".github/copilot-instructions.md", "", "bullets"),
        ("ai.txt", "\ufeff\r\n\r\nCourse Title: AI", "course"),
        ("ai.md", "Course Title: AI", "course"),
        ("ci/heap.md", "Raise the heap, see [[Node]].", "obsidian"),
        ("ci/heap.md", "Raise %%or lower%% the heap.", "obsidian"),
        ("ci/heap.md", "> [!note]\n> text", "obsidian"),
        ("ci/heap.md", "```sh\n[[ -f x ]] && echo 100%%\n```\nand `[[x]]`", "markdown"),
        ("ci/heap.md", "## Lesson: Heap\nsee [[Node]]", "markdown"),
        ("ci/heap.txt", "see [[Node]]", "markdown"),
        ("ci/heap.md", "Raise the heap.", "markdown"),
    ],
)
def test_a_format_is_guessed_by_the_name_and_the_beginning(
    path: str, text: str, format: str
) -> None:
    assert guess(text.encode(), path) == format


# markdown


def test_a_markdown_file_stays_as_it_is() -> None:
    text = "---\nid: heap # mine\ntitle: 'Raise: the heap'\nowner: {a: 1}\n---\n\n# Why\ntext\n"
    assert drafts(text, "DevOps/CI CD/x.md") == [
        Draft("raise-the-heap", ("devops/ci-cd",), text.encode(), 1)
    ]
    assert drafts(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode(), "DevOps/CI CD/x.md") == (
        drafts(text, "DevOps/CI CD/x.md")
    )


@pytest.mark.parametrize("text", ["", " \n\n", "# Title\n", "---\ntitle: x\n---\n", "\ufeff"])
@pytest.mark.parametrize("format", ["markdown", "obsidian", "bullets"])
def test_a_file_without_text_is_no_lesson(text: str, format: str) -> None:
    assert drafts(text, "a.md", format) == []


# instruction files

CLAUDE = """\
# My project

What Claude should know.

## Package manager

Some rules:

- **Use pnpm**: never npm or yarn.
  It shares one store.
- **Never** commit to main! Open a pull request.
- Node 20
- [the long story of how we left npm](docs/npm.md)
- [ ] Before a push:
  ```sh
  make test
    - no bullet
  ```
  1. nested
* **Long lines:** wrap at a hundred characters, e.g. Like this one, so that nobody has to scroll at all

1. Number the steps of a plan
  - two spaces are enough
2. Say when it is done:
```
done
```

A paragraph that belongs to no bullet.

## Build

Run make twice, since the first run writes the list.

```sh
- make
```

### Empty
"""


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("- Node 20", "no statement: Node 20"),
        ("- For the deploy, see `docs/deploy.md`.", "a pointer"),
        ("- ~~Never stop the old mill by hand~~", "struck out"),
        ("- See [the book](https://m.example/b) for the rest", "a pointer"),
        ("- **These are the commands of the mill**:", "an introduction"),
        ("Keep to this in all of the mill.\n\n- Never stop two belts at once", "beside"),
        ("## Belts\n\nThis document describes the conventions of the mill.", "an introduction"),
        ("## Belts\n\nThe commands that you need are these:", "an introduction"),
    ],
)
def test_a_line_that_says_nothing_by_itself_is_left_out_with_a_word(line: str, why: str) -> None:
    good, errors = read_good(f"# Mill\n\n{line}\n".encode(), "CLAUDE.md")
    (left,) = [draft for draft in good if draft.why]
    assert why in left.why
    assert not errors
    kept = b"# Mill\n\n## Belts\n\nNever stop two belts at once: see `belts.md`.\n"
    assert [draft.why for draft in read_good(kept, "CLAUDE.md")[0]] == [""]


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"created_at": "2026-10-02T08:00:00Z", "source_file": "mill.md"},
         {"created": "2026-10-02T08:00:00Z", "source": "mill.md"}),
        ({"createdAt": "2026-10-02", "sourceFile": "mill.md"},
         {"created": "2026-10-02", "source": "mill.md"}),
        ({"timestamp": "2026-10-02", "url": "https://m.example"},
         {"created": "2026-10-02", "source": "https://m.example"}),
        ({"created": "2026-01-01", "created_at": "2026-10-02", "source": "a", "file": "b"},
         {"created": "2026-01-01", "created_at": "2026-10-02", "source": "a", "file": "b"}),
        ({"date": "last week"}, {"date": "last week"}),
    ],
)  # fmt: skip
def test_keys_of_other_programs_are_those_of_a_lesson(
    given: dict[str, str], wanted: dict[str, str]
) -> None:
    draft = only(json.dumps({"title": "T", "text": "One is one."} | given), "a.jsonl")
    assert keys(draft) == {"title": "T"} | wanted


def test_each_top_level_bullet_is_a_lesson() -> None:
    found = drafts(CLAUDE, "api/CLAUDE.md")
    assert [(lesson(one).title, one.line) for one in found] == [
        ("Package manager: Use pnpm", 9),
        ("Package manager: Never commit to main!", 11),
        ("Package manager: Before a push", 14),
        ("Package manager: Long lines", 20),
        ("Package manager: Number the steps of a plan", 22),
        ("Package manager: Say when it is done", 24),
        ("Build", 33),
    ]
    assert keys(found[0]) == {"title": "Package manager: Use pnpm", "source": "api/CLAUDE.md"}
    assert [one.categories for one in found] == [("package-manager",)] * 6 + [("build",)]
    assert [lesson(found[n]).text for n in (0, 2, 4, 5, 6)] == [
        "Never npm or yarn.\nIt shares one store.",
        "Before a push:\n```sh\nmake test\n  - no bullet\n```\n1. nested",
        "Number the steps of a plan\n- two spaces are enough",
        "Say when it is done:\n```\ndone\n```",
        "Run make twice, since the first run writes the list.\n\n```sh\n- make\n```",
    ]


# Obsidian

NOTE = """\
---
aliases: [OOM]
tags: [Node]
---
See [[Node|the runtime]], [[CI#Memory]] and [[Notes/Heap]]. ![[heap.png|300]]
A #dev/ci build (issue #123) %%ask
Ada%% died, says #node `[[x]] #code`.

> [!warning]- Not in production
> > [!tip]

```sh
[[ -f x ]] # %%comment%% #tag
> [!note]
```
"""


def test_a_note_becomes_plain_markdown() -> None:
    draft = only(NOTE, "Dev/CI CD/Heap_size of Node.md")
    assert (draft.name, draft.categories) == ("heap_size-of-node", ("dev/ci-cd",))
    assert keys(draft) == {
        "aliases": ["OOM"],
        "tags": ["Node", "dev/ci"],
        "title": "Heap_size of Node",
    }
    before, code = lesson(draft).text.split("```sh\n")
    assert before.splitlines() == [
        "See the runtime, CI and Notes/Heap. ",
        "A #dev/ci build (issue #123)  died, says #node `[[x]] #code`.",
        "",
        "> **Not in production**",
        "> > **Tip**",
        "",
    ]
    assert code == NOTE.split("```sh\n")[1].strip()


# any file at all

PIECES = """\
---|title: |x|tags: [a]|{a: 1}|# |## Lesson: |- |  - |1. |```|~~~|`|[[|]]|![[|%%|> [!note] |#tag|
Course Title: |Course Link: |Lesson 1: |Lesson 2: |Lesson Link: |word |**bold**: | |\t|\r|é|🔥|\ufeff
{"text": "x"}|[|]|{"text": "## Lesson: x", "id": "a/b"}|{{title}}|\0|\u2028|\x85|<!--|-->|===|Use it. """
ANY = st.binary(max_size=200) | st.lists(
    st.sampled_from([*PIECES.replace("\n", "|").split("|"), "\n", "\n", "\n\n", "\r\n"]),
    max_size=25,
).map(lambda parts: "".join(parts).encode())


@pytest.mark.slow
@settings(max_examples=400, deadline=None)
@example(b"[\r", "jsonl", "-")
@given(ANY, st.sampled_from([*FORMATS, ""]), st.sampled_from(["a/B c.md", "CLAUDE.md", "-"]))
@example(b"%%%%---\n%%x%%---\n", "obsidian", "a.md")
def test_any_bytes_give_lessons_or_an_error_with_a_line(
    data: bytes, format: str, path: str
) -> None:
    refused = []
    try:
        found = read(data, path, format)
    except LessonError as error:
        found, refused = [], [error]
    lines = range(1, data.count(b"\n") + data.count(b"\r") + 2)
    assert all(one.line in lines for one in refused)
    for draft in found:
        assert any(one.text for one in parse_file(draft.data, "a.md"))
        assert draft.data.endswith(b"\n")
        assert b"\r\n" not in draft.data
        assert draft.name == slugify(draft.name) != ""
        assert draft.line in lines


# courses


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


# JSON lines


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


VALUES: st.SearchStrategy[Any] = st.recursive(
    st.text() | st.integers() | st.booleans() | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
OURS = {"id", "title", "text", "content", "body", "lesson", "category", "categories"}
OURS |= {"source_file", "sourceFile", "source_path", "file", "url"}  # what others call `source`


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


CONCEPT = """\
---
type: BigQuery Table
description: One row per completed order.
resource: https://example.com/orders
tags: [sales]
generated: {by: agent/2, at: 2026-05-28T14:30:00Z}
verified:
  - {by: process:nightly, at: 2026-07-01T02:00:00Z}
  - {by: human:ann, at: 2026-06-25T09:00:00Z}
---
# Schema

Keyed by order_id.
"""


def test_a_concept_of_an_open_knowledge_format_bundle_is_a_lesson() -> None:
    draft = only(CONCEPT, "tables/completed-orders.md", "okf")
    one = lesson(draft)
    assert (draft.categories, one.title) == (("tables",), "completed orders")
    assert one.text == "One row per completed order.\n\n# Schema\n\nKeyed by order_id."
    assert (one.type, one.source) == ("BigQuery Table", "https://example.com/orders")
    assert str(one.created) == "2026-05-28 14:30:00+00:00"
    assert str(keys(draft)["confirmed"]).startswith("2026-06-25")
    assert keys(draft)["verified"][0]["by"] == "process:nightly"
