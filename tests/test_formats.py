"""Foreign files become lesson files that a person could have written, whole or not at all."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.drafts import drafts, keys, lesson, only, problem
from vault_index.errors import LessonError
from vault_index.formats import FORMATS, Draft, guess, read
from vault_index.lesson import parse_file, slugify

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


def test_a_format_that_is_none_is_named() -> None:
    error = problem("text", "a.md", "docx")
    assert "no format 'docx'" in error.message
    assert "obsidian" in error.hint


# markdown


def test_a_markdown_file_stays_as_it_is() -> None:
    text = "---\nid: heap # mine\ntitle: 'Raise: the heap'\nowner: {a: 1}\n---\n\n# Why\ntext\n"
    assert drafts(text, "DevOps/CI CD/x.md") == [
        Draft("raise-the-heap", ("devops/ci-cd",), text.encode(), 1)
    ]
    assert drafts(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode(), "DevOps/CI CD/x.md") == (
        drafts(text, "DevOps/CI CD/x.md")
    )


def test_declared_categories_go_before_the_folder() -> None:
    text = "---\ntitle: a\ncategories: [DevOps/Docker, a b]\n---\ntext\n"
    assert only(text, "x/a.md").categories == ("devops/docker", "a-b")
    assert only("# A\ntext", "a.md").categories == ()


@pytest.mark.parametrize(
    ("text", "path", "name", "title"),
    [
        ("# Raise the heap\ntext", "ci/x.md", "raise-the-heap", "Raise the heap"),
        ("Raise it. Always.", "ci/Node_heap-size.md", "node-heap-size", "Node heap size"),
        ("Raise it. Always.", "-", "raise-it", "Raise it"),
        ("---\ntitle: [a]\n---\ntext", "ci/heap.txt", "heap", "heap"),
        ("# 🔥\ntext", "ci/heap.md", "heap", "🔥"),
    ],
)
def test_title_from_the_key_the_first_heading_or_the_file_name(
    text: str, path: str, name: str, title: str
) -> None:
    draft = only(text, path)
    assert (draft.name, lesson(draft).title) == (name, title)
    assert draft.data.endswith(b"\n")


def test_a_file_of_sections_keeps_its_own_name() -> None:
    text = "# CI\n\n## Lesson: Heap\none\n\n## Lesson: Cache\ntwo\n"
    assert drafts(text, "devops/CI fixes.md") == [Draft("ci-fixes", ("devops",), text.encode(), 1)]


@pytest.mark.parametrize("text", ["", " \n\n", "# Title\n", "---\ntitle: x\n---\n", "\ufeff"])
@pytest.mark.parametrize("format", ["markdown", "obsidian", "bullets"])
def test_a_file_without_text_is_no_lesson(text: str, format: str) -> None:
    assert drafts(text, "a.md", format) == []


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


@pytest.mark.timeout(60)
def test_ten_thousand_lines_take_seconds() -> None:
    value = {"title": "Use pnpm", "text": "Never npm.", "tags": ["a", "b"], "category": "x"}
    text = "\n".join(json.dumps({**value, "n": n}) for n in range(10_000)).encode()
    start = time.process_time()
    assert len({one.name for one in read(text, "all.jsonl")}) == 10_000
    assert time.process_time() - start < 6  # under 3 on a machine with nothing else to do


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

Run make.

```sh
- make
```

### Empty
"""


def test_each_top_level_bullet_is_a_lesson() -> None:
    found = drafts(CLAUDE, "api/CLAUDE.md")
    assert [(lesson(one).title, one.line) for one in found] == [
        ("What Claude should know", 3),
        ("Use pnpm", 9),
        ("Never commit to main!", 11),
        ("Before a push", 14),
        ("Long lines", 20),
        ("Number the steps of a plan", 22),
        ("Say when it is done", 24),
        ("Build", 33),
    ]
    assert keys(found[1]) == {
        "title": "Use pnpm",
        "source": "api/CLAUDE.md",
        "tags": ["package-manager"],
    }
    assert "tags" not in keys(found[0])
    assert {one.categories for one in found} == {()}
    assert [lesson(found[n]).text for n in (1, 3, 5, 6, 7)] == [
        "**Use pnpm**: never npm or yarn.\nIt shares one store.",
        "Before a push:\n```sh\nmake test\n  - no bullet\n```\n1. nested",
        "Number the steps of a plan\n- two spaces are enough",
        "Say when it is done:\n```\ndone\n```",
        "Run make.\n\n```sh\n- make\n```",
    ]


def test_instructions_with_other_marks() -> None:
    found = drafts(
        "---\na: 1\n---\nTitle\n===\n\nStyle\n---\n+ 日本語で書いてください\n", ".cursorrules"
    )
    assert [(lesson(one).title, one.line, keys(one)["tags"]) for one in found] == [
        ("日本語で書いてください", 9, ["style"])
    ]
    long = "word " * 30
    assert lesson(only(f"- {long}\n", "AGENTS.md")).title == "word " * 15 + "word"
    assert "source" not in keys(only("- four words are enough", "-", "bullets"))
    twice = drafts("- **Be kind**: to all of them\n- **Be kind**: to me as well\n", "AGENTS.md")
    assert [one.name for one in twice] == ["be-kind", "be-kind-2"]


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


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("# {{title}}\n[[x]]", "Daily.md"),
        ("---\ntitle: {{title}}\n---\ntext", "Daily.md"),
        ("<%* tp.file.title %>\n[[x]]", "Daily.md"),
        ("text [[x]]", "Templates/Daily.md"),
        ("text [[x]]", "99 - templates/daily/Note.md"),
    ],
)
def test_a_template_for_notes_is_no_lesson(text: str, path: str) -> None:
    assert drafts(text, path, "obsidian") == []
    assert drafts("Helm knows `{{title}}` and [[x]].", "Helm.md", "obsidian")


# any file at all

PIECES = """\
---|title: |x|tags: [a]|{a: 1}|# |## Lesson: |- |  - |1. |```|~~~|`|[[|]]|![[|%%|> [!note] |#tag|
Course Title: |Course Link: |Lesson 1: |Lesson 2: |Lesson Link: |word |**bold**: | |\t|\r|é|🔥|\ufeff
{"text": "x"}|[|]|{"text": "## Lesson: x", "id": "a/b"}|{{title}}|\0|\u2028|\x85|<!--|-->|===|Use it. """
ANY = st.binary(max_size=200) | st.lists(
    st.sampled_from([*PIECES.replace("\n", "|").split("|"), "\n", "\n", "\n\n", "\r\n"]),
    max_size=25,
).map(lambda parts: "".join(parts).encode())


@settings(max_examples=400, deadline=None)
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
    lines = range(1, data.count(b"\n") + 2)
    assert all(one.message.startswith(f"{path}: ") and one.line in lines for one in refused)
    for draft in found:
        assert any(one.text for one in parse_file(draft.data, "a.md"))
        assert draft.data.endswith(b"\n")
        assert b"\r\n" not in draft.data
        assert draft.name == slugify(draft.name) != ""
        assert draft.line in lines


VALUES: st.SearchStrategy[Any] = st.recursive(
    st.text() | st.integers() | st.booleans() | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
OURS = {"id", "title", "text", "content", "body", "lesson", "category", "categories"}


@settings(max_examples=200, deadline=None)
@given(
    st.dictionaries(st.text().filter(lambda key: key not in OURS), VALUES, max_size=4), st.text()
)
def test_any_key_comes_back_from_the_frontmatter(others: dict[str, Any], text: str) -> None:
    line = json.dumps({**others, "title": "T", "text": f"x {text}".replace("\0", "")})
    draft = only(line, "all.jsonl")
    assert keys(draft) == {**others, "title": "T"}
    assert lesson(draft).text
