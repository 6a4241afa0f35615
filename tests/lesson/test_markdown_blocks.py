"""Which lines are code: markdown-it's answer, with or without asking it, at a bounded cost."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.check.test_hostile_files import assert_bounded
from tests.support.amounts import amount
from vault_index.errors import LessonError
from vault_index.lesson.file import LessonFile
from vault_index.text import blocks

PIECES = ["```", "~~~", "````", "```sh", "``` a`b", "<!--", "-->", "<div>", "<a>", "<", "<pre>"]
PIECES += ["</pre>", "text", "- ", "* ", "1. ", "10) ", "> ", ">", "    ", "\t", " ", "   ", "#"]
PIECES += [
    *("## Lesson: x", "---", "===", "[a]: b", "\\", "|", "+", "0", "\x0c", "\xa0"),
    *("\u2028", "\r"),
]
MARKDOWN = st.lists(st.sampled_from([*PIECES, *["\n"] * 14]), max_size=30).map("".join)


@settings(deadline=None, max_examples=300)  # the first one loads markdown-it
@given(MARKDOWN)
@example("```\n    ")
@example("``````\n```")
@example("    \x0c")
def test_fences_at_the_margin_are_those_of_markdown_it(text: str) -> None:
    margin, is_certain = blocks._at_margin(text)
    if is_certain:
        assert margin == blocks._of_markdown_it(text)


@settings(deadline=None)
@given(MARKDOWN)
def test_blocks_are_lines_of_the_text_one_after_the_other(text: str) -> None:
    end = 0
    for block in blocks.of_text(text):
        assert end <= block.start < block.end <= text.count("\n") + 1
        end = block.end
    assert len(blocks.code_lines(text.split("\n"))) == text.count("\n") + 1


def titles(body: str) -> list[str]:
    """Return the titles of a file's sections."""
    return [section.title for section in LessonFile.of(body.encode(), "a.md").sections]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("- ```sh\n  make\n  ```\n## Lesson: A\n", ["A"]),  # the fence began in the list
        ("1. Do:\n\n   ```\n## Lesson: A\n", ["A"]),  # and ends with it
        ("> ```\n> a\n\n## Lesson: A\n", ["A"]),
        ("```\n> ```\n## Lesson: no\n```\n## Lesson: A\n", ["A"]),
        ("    ```\n\n## Lesson: A\n", ["A"]),
        ("<!--\n## Lesson: hidden\n-->\n## Lesson: A\n", ["A"]),
        ("Text\n<br>\n## Lesson: A\n", ["A"]),
        ("---\ntitle: |\n  ```\n---\n## Lesson: A\n", ["A"]),
        ("```\n---\n## Lesson: no\n", []),
    ],
)
def test_a_section_is_a_heading_that_is_no_code(text: str, expected: list[str]) -> None:
    assert titles(text) == expected
    assert titles(text.replace("\n", "\r\n")) == expected


@given(st.binary(max_size=100) | MARKDOWN.map(str.encode))
def test_a_file_is_what_it_was_made_of(data: bytes) -> None:
    with contextlib.suppress(LessonError):
        assert LessonFile.of(data, "a.md").to_bytes() == data


SIZE = amount(500_000, 2_000_000)
HOSTILE = {
    "backticks": "`" * SIZE,
    "lines of backticks": "`\n" * (SIZE // 2),
    "fences in lists": "- ```\n" * (SIZE // 6),
    "fences in quotations": "> ```\n\n" * (SIZE // 7),
    "quotations": "> " * (SIZE // 2),
    "lists": "- " * (SIZE // 2),
    "deep and lazy": (("> " * 19 + "    a\n") + "a\n" * 1000) * (SIZE // 2050),
    "deep and lazy, fewer": "> " * 19 + "    a\n" + "a\n" * 49_000,
    "deep lists": ("- " * 5 + "    a\n") * (49_000),
    "brackets": "[" * SIZE,
    "spaces": " " * SIZE,
    "tabs": "\t" * (SIZE // 2) + "\n" + "\t" * (SIZE // 2),
    "lines of spaces": "    \n" * (SIZE // 5),
    "comments": "<!--\n" * (SIZE // 5),
    "unclosed comments": "<!-- <!\n\n" * 20_000,
    "few tags": "<a>\n\n" * 20_000 + "<\n" * 5_000,
    "tags": "<a>\n\n" * (SIZE // 5),
    "numbers": "".join(f"{n}. a\n" for n in range(SIZE // 9)) + "    a",
}


PROBE = """\
from vault_index.lesson.file import LessonFile
for data in each():
    print(len(LessonFile.of(data + b"\\n## Lesson: A\\n", "a.md").code_lines))
"""


@pytest.mark.slow
@pytest.mark.parametrize("part", range(2))
def test_a_hostile_text_costs_a_bounded_amount(part: int, tmp_path: Path) -> None:
    assert_bounded(PROBE, dict([*HOSTILE.items()][part::2]), tmp_path)
