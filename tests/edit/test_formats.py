"""Foreign files become lesson files that a person could have written, whole or not at all."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.support.drafts import drafts, keys, lesson, only, problem, read
from vault_index.edit.formats import FORMATS, Draft, guess
from vault_index.errors import LessonError
from vault_index.lesson.category import slugify
from vault_index.lesson.parse import parse_file

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
        ("Use pnpm", 9),
        ("Never commit to main!", 11),
        ("Before a push", 14),
        ("Long lines", 20),
        ("Number the steps of a plan", 22),
        ("Say when it is done", 24),
        ("Build", 33),
    ]
    assert keys(found[0]) == {"title": "Use pnpm", "source": "api/CLAUDE.md"}
    assert [one.categories for one in found] == [("package-manager",)] * 6 + [("build",)]
    assert [lesson(found[n]).text for n in (0, 2, 4, 5, 6)] == [
        "Never npm or yarn.\nIt shares one store.",
        "Before a push:\n```sh\nmake test\n  - no bullet\n```\n1. nested",
        "Number the steps of a plan\n- two spaces are enough",
        "Say when it is done:\n```\ndone\n```",
        "Run make.\n\n```sh\n- make\n```",
    ]


def test_instructions_with_other_marks() -> None:
    found = drafts(
        "---\na: 1\n---\nTitle\n===\n\nStyle\n---\n+ 日本語で書いてください\n", ".cursorrules"
    )
    assert [(lesson(one).title, one.line, one.categories) for one in found] == [
        ("日本語で書いてください", 9, ("style",))
    ]
    long = "word " * 30
    assert lesson(only(f"- {long}\n", "AGENTS.md")).title == "word " * 15 + "word"
    assert "source" not in keys(only("- four words are enough", "-", "bullets"))
    twice = drafts("- **Be kind**: to all of them\n- **Be kind**: to me as well\n", "AGENTS.md")
    assert [one.name for one in twice] == ["be-kind", "be-kind-2"]


RULES = """\
# Acme

This file gives guidance to Claude Code when it works here.

## Database

- Never edit a migration that was merged: write a new one, since staging has applied it and would drift.
- Name columns in snake_case.

### Locks

Set `lock_timeout` in each migration that touches `orders`, or deploys hang.
"""


def test_headings_are_categories_and_titles_whole_phrases() -> None:
    """The line that says what the file is is no lesson, and no body repeats its title."""
    found = drafts(RULES, "CLAUDE.md")
    assert [(lesson(one).title, one.categories) for one in found] == [
        ("Never edit a migration that was merged: write a new one", ("database",)),
        ("Name columns in snake_case", ("database",)),
        ("Locks", ("database/locks",)),
    ]
    told = drafts(
        "- Run `make test`. Never run pytest alone, it misses the database.\n", "CLAUDE.md"
    )
    assert lesson(told[0]).title == "Run `make test`"
    assert lesson(told[0]).text == "Never run pytest alone, it misses the database."


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
    lines = range(1, data.count(b"\n") + 2)
    assert all(one.message.startswith(f"{path}: ") and one.line in lines for one in refused)
    for draft in found:
        assert any(one.text for one in parse_file(draft.data, "a.md"))
        assert draft.data.endswith(b"\n")
        assert b"\r\n" not in draft.data
        assert draft.name == slugify(draft.name) != ""
        assert draft.line in lines


@pytest.mark.timeout(60)
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize(
    "mark", ["\r", "`", "[[", "%%", "<%", "{{title", "<!--", "a/", "> [!", "- "]
)
def test_a_hundred_kilobytes_of_one_mark_come_to_an_end(mark: str, format: str) -> None:
    """Going back and forth over them would take hours."""
    try:
        drafts(mark * (100_000 // len(mark)) + "\nend", "a.md", format)
    except LessonError:
        pass
