"""The citations of an answer: only numbers that were returned, wherever its pieces end."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vault_index.ask.citations import check

NUMBERS = (1, 2, 3)
CITED = re.compile(r"[\[\uff3b\u3010]\s*(\d+)\s*[\]\uff3d\u3011]")


@pytest.mark.parametrize(
    ("said", "shown", "cited"),
    [
        ("Raise the heap [1].", "Raise the heap [1].", [1]),
        ("Raise it [1], [9].", "Raise it [1].", [1]),
        ("Raise it [1], [9], [2] at once,", "Raise it [1], [2] at once,", [1, 2]),
        ("By [1], and by [2],", "By [1], and by [2],", [1, 2]),
        ("Raise the heap [9].", "Raise the heap.", []),
        ("Both [2][1], and [2] again.", "Both [2][1], and [2] again.", [2, 1]),
        ("Some [1, 9, 3] do.", "Some [1][3] do.", [1, 3]),
        ("All [1-3], or [2\u201312].", "All [1][2][3], or [2][3].", [1, 2, 3]),
        ("As \u30102\u3011 and \u30101\u2020L3-L9\u3011 say.", "As [2] and [1] say.", [2, 1]),
        ("A footnote [^1], not [^4].", "A footnote [1], not.", [1]),
        ("See [1](https://evil.example/x).", "See [1].", [1]),
        ("See [9](https://evil.example/x).", "See.", []),
        ("See [the page](https://example.org/9).", "See [the page](https://example.org/9).", []),
        ("- [ ] a task, [x] another", "- [ ] a task, [x] another", []),
        ("On [2025-11-15] it was.", "On [2025-11-15] it was.", []),
        ("`a[7]` is code, [7] is none.", "`a[7]` is code, is none.", []),
        ("```\na[7]\n```\nbut [7] [1]", "```\na[7]\n```\nbut [1]", [1]),
        ("1. ```js\n   a[7]\n   ```\n2. so [7]", "1. ```js\n   a[7]\n   ```\n2. so", []),
        ("~~~\n[9]\n~~~\n[1]", "~~~\n[9]\n~~~\n[1]", [1]),
        ("A lone ` and [9].", "A lone ` and.", []),
        ("It ends in [1", "It ends in [1", []),
        ("It ends in \u30101\u2020L", "It ends in \u30101\u2020L", []),
        ("[[9]8]", "[\u20268]", []),  # what is struck makes no new citation of the rest
        ("  \n [1] \n", "[1]", [1]),
        ("", "", []),
    ],
)
def test_a_number_that_was_not_returned_is_struck(said: str, shown: str, cited: list[int]) -> None:
    assert check(said, NUMBERS) == (shown, cited)


TEXTS = st.lists(
    st.sampled_from(
        [
            *("[1]", "[2, 9]", "[99]", "[1-3]", "[", "]", "(", ")", "`", "```", "~~~"),
            *("\n", "\n\n"),
            *("\u30101\u3011", "\u30109\u2020L1\u3011", "9", "1", ",", "-", " ", "a", "."),
            *("\\", "^"),
            *("[7](http://x.example)", "`a[7]`", "```\na[9]\n```\n", "> ", "word", "\uff3b9\uff3d"),
        ]
    )
    | st.text(max_size=8),
    max_size=40,
).map("".join)


@pytest.mark.slow
@given(text=TEXTS.map(lambda text: text.replace("`", "").replace("~", "")))
def test_outside_code_only_returned_numbers_are_cited(text: str) -> None:
    shown, cited = check(text, NUMBERS)
    assert {int(number) for number in CITED.findall(shown)} == set(cited) <= set(NUMBERS)
    assert check(shown, NUMBERS) == (shown, cited)
