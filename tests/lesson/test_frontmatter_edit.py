"""Whatever sets a key in a lesson file leaves every other byte as the author wrote it."""

from __future__ import annotations

import difflib
import re
from datetime import UTC, date, datetime
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.places import REPO
from vault_index.errors import LessonError
from vault_index.lesson.edits import set_keys
from vault_index.lesson.file import LessonFile, decode, lines_of
from vault_index.lesson.frontmatter import metadata_of

ODD_FILES = {
    "empty": b"",
    "one word": b"text",
    "no frontmatter": b"# Title\n\ntext\n\n---\n\nmore\n",
    "a rule at the top": b"---\n\nsome text without an end",
    "byte-order mark": b"\xef\xbb\xbf---\ntitle: Heap\n---\ntext\n",
    "only a byte-order mark": b"\xef\xbb\xbftext\n",
    "windows": b"---\r\ntitle: Heap\r\ntags:\r\n  - a\r\n  - b\r\n\r\n# c\r\nid: 7\r\n---\r\nx\r\n",
    "mixed line ends": b"---\ntitle: Heap\r\nid: 7\n---\r\ntext\n",
    "comments": b"---\n# first\ntitle: Heap # why\n\n# about tags\ntags: [a] # more\n# end\n---\ntext\n",
    "only comments": b"---\n# nothing yet\n---\ntext\n",
    "empty frontmatter": b"---\n---\ntext\n",
    "no value": b"---\ntitle:\ntags: # later\nid: ~\n---\ntext\n",
    "quotes": b"---\ntitle: \"Don't: \\\"a\\\"\"\n'id': 'it''s'\n\"tags\": ['a: b', \"#c\"]\n---\nx\n",
    "block lists": b"---\ntitle: Heap\ntags:\n- a\n- b # why\n\n# next\ncategories:\n    - x/y\n---\n",
    "literal": b"---\ntitle: |\n  # not a comment\n\n  two\n\ntags: >-\n  folded\n  x\nid: 1\n---\ntext",
    "over several lines": b"---\ntitle: Heap\n  and more\ntags: [a,\n  b, # c\n  d]\nid: 2\n---\nx\n",
    "duplicate keys": b"---\ntitle: one\nid: 1\ntitle: two\ntags: [a]\n---\ntext\n",
    "dashes in code": b"---\ntitle: T\n---\n```yaml\n---\ntitle: U\n---\n```\n",
    "keys that are no strings": b"---\n1: a\n2025-01-01: b\nyes: c\n~: d\n---\n",
    "emoji": "---\ntitle: 🔥 Größe\n🙂: 日本語\ntags: [👩‍💻, ü]\n---\ntext 🔥\n".encode(),
    "nested": b"---\nmeta:\n  title: inner\n  tags: [a]\ntitle: outer\n---\ntext\n",
    "indented": b"---\n  title: Heap\n  tags: [a]\n---\ntext\n",
    "blank lines above": b"\n\n---\ntitle: Heap\n---\ntext\n",
    "long rules": b"-----\ntitle: Heap\n----\ntext\n",
}
VALUES = st.one_of(
    st.text(st.characters(exclude_categories=["Cs", "Cc"])),
    st.text(st.sampled_from("ab :#'\"[]{}-,\n\t\\&*!|>%@`?\u2028🔥ü")),
    st.sampled_from(["yes", "null", "~", "1.0", "2025-01-01", "...", "a...", "---", "", "a\n\nb "]),
    st.integers(),
    st.dates(),
    st.datetimes(timezones=st.just(UTC)).map(lambda moment: moment.replace(microsecond=0)),
    st.lists(st.text(st.characters(exclude_categories=["Cs"]))),
    st.lists(st.integers()),
)
KEYS = st.sampled_from(["title", "tags", "id", "created", "fires_on", "a: b", "yes", "🙂", "#x"])


@cache
def corpus() -> list[bytes]:
    """Return real files to edit: this repository's lessons."""
    return [file.read_bytes() for file in sorted(REPO.glob("lessons/**/*.md"))]


def parsed(data: bytes) -> tuple[dict[Any, Any], str]:
    file = LessonFile.of(data, "a.md")
    return metadata_of(file), "".join(file.lines[file.body.start :]).strip()


def body(data: bytes) -> bytes:
    """Return the bytes below the frontmatter; without one, all but the byte-order mark."""
    lines = data.removeprefix(b"\xef\xbb\xbf").splitlines(keepends=True)
    rules = [n for n, line in enumerate(lines) if re.fullmatch(rb"-{3,}\s*", line)]
    if len(rules) < 2 or any(line.strip() for line in lines[: rules[0]]):
        return b"".join(lines)
    return b"".join(lines[rules[1] + 1 :])


def lines_that_differ(before: bytes, after: bytes) -> tuple[list[str], list[str]]:
    """Return the lines that went and those that came."""
    old, new = (lines_of(decode(data, "a.md")) for data in (before, after))
    changes = [line for line in difflib.ndiff(old, new) if line[:2] in ("- ", "+ ")]
    gone = [line[2:] for line in changes if line[0] == "-"]
    return gone, [line[2:] for line in changes if line[0] == "+"]


def check_edit(before: bytes, key: str, value: Any) -> None:
    """Set a key and look at everything: its value, the other keys, the body, the other lines."""
    after = set_keys(before, {key: value})
    old, new = parsed(before)[0], parsed(after)[0]
    assert new[key] == value
    assert type(new[key]) is type(value)
    assert {k: v for k, v in new.items() if k != key} == {k: v for k, v in old.items() if k != key}
    assert parsed(after)[1] == parsed(before)[1]
    assert body(after) == body(before)
    assert after.startswith(b"\xef\xbb\xbf") == before.startswith(b"\xef\xbb\xbf")
    assert set_keys(after, {key: value}) == after
    gone, came = lines_that_differ(before, after)
    if key in old:  # its lines are next to each other, and one stands for them
        assert "".join(gone) in before.decode()
        assert len(came) <= 1
    else:  # all there was is there still, in its order
        assert gone == []
        assert len(came) in (1, 3)  # the key, and for a file without frontmatter its two rules


@pytest.mark.parametrize("before", ODD_FILES.values(), ids=ODD_FILES)
def test_no_changes_give_the_same_bytes(before: bytes) -> None:
    assert set_keys(before, {}) == before
    assert set_keys(before, {"nobody has this": None}) == before


def test_no_changes_give_the_same_bytes_for_every_real_file() -> None:
    for before in corpus():
        assert set_keys(before, {}) == before
        assert set_keys(before, {"nobody has this": None}) == before


@pytest.mark.parametrize("before", ODD_FILES.values(), ids=ODD_FILES)
@settings(max_examples=25, deadline=None)
@given(key=KEYS, value=VALUES)
def test_any_value_reads_back_from_any_odd_file(before: bytes, key: str, value: Any) -> None:
    check_edit(before, key, value)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(data=st.data(), key=KEYS, value=VALUES)
def test_any_value_reads_back_from_real_files(data: st.DataObject, key: str, value: Any) -> None:
    check_edit(data.draw(st.sampled_from(corpus())), key, value)


@pytest.mark.slow
def test_every_real_file_takes_every_kind_of_value() -> None:
    moment = datetime(2026, 11, 21, 9, tzinfo=UTC)
    for before in corpus():
        for key, value in (("title", "A: #b"), ("new", ["x", "y, z"]), ("created", moment)):
            check_edit(before, key, value)


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(data=st.data(), values=st.dictionaries(KEYS, VALUES, min_size=1))
def test_keys_that_are_added_and_taken_out_again_leave_the_same_bytes(
    data: st.DataObject, values: dict[str, Any]
) -> None:
    before = data.draw(st.sampled_from(corpus()))
    new = {key: value for key, value in values.items() if key not in parsed(before)[0]}
    assert set_keys(set_keys(before, new), dict.fromkeys(new)) == before


# what an author sees


@pytest.mark.parametrize(
    ("before", "changes", "after"),
    [
        ("---\ntitle: a # why\nid: 1\n---\n", {"title": "b"}, "---\ntitle: b # why\nid: 1\n---\n"),
        ("---\ntitle:   a\n---\n", {"title": "b"}, "---\ntitle: b\n---\n"),
        ("---\n'title': \"a\"\n---\n", {"title": "b"}, "---\n'title': b\n---\n"),
        ("---\ntitle:\n---\n", {"title": "b"}, "---\ntitle: b\n---\n"),
        (
            "---\ntags:\n- a\n- b\n\n# about ids\nid: 1\n---\n",
            {"tags": ["c"]},
            "---\ntags: [c]\n\n# about ids\nid: 1\n---\n",
        ),
        (
            "---\ntext: |\n  # a\n\n  b\n\nid: 1\n---\n",
            {"text": "c"},
            "---\ntext: c\n\nid: 1\n---\n",
        ),
        ("---\r\nid: 1\r\n---\r\nx\r\n", {"a": 2}, "---\r\nid: 1\r\na: 2\r\n---\r\nx\r\n"),
        ("\ufefftext\n", {"a": 2}, "\ufeff---\na: 2\n---\ntext\n"),
        ("text\r\nmore\r\n", {"a": 2}, "---\r\na: 2\r\n---\r\ntext\r\nmore\r\n"),
        ("---\n  id: 1\n---\n", {"a": 2}, "---\n  id: 1\n  a: 2\n---\n"),
        (
            "---\nid: 1\n---\n",
            {"created": date(2025, 1, 2)},
            "---\nid: 1\ncreated: 2025-01-02\n---\n",
        ),
        ("---\nid: 1\n---\n", {"a": "x\ny"}, '---\nid: 1\na: "x\\ny"\n---\n'),
        ("---\na: 1\na: 2\n---\n", {"a": 3}, "---\na: 1\na: 3\n---\n"),
    ],
)
def test_only_the_value_changes(before: str, changes: dict[str, Any], after: str) -> None:
    assert set_keys(before.encode(), changes).decode() == after


@pytest.mark.parametrize(
    "before",
    [
        "---\n{title: a, id: 1}\n---\ntext\n",
        "---\n- a\n---\ntext\n",
        "---\ntitle: a\ntext without an end\n",
        "---\ntitle: one: two\n---\n",
        "---\ntitle: a\nid: &x 1\n? title # why: not\n: b\n---\n",
        "---\ntags: &all [a]\ntitle: *all\n---\n",
        "---\nbase: &b {title: a}\n<<: *b\ntags:\t[a]\ntitle: x\n---\n",
    ],
)
def test_what_cannot_be_edited_safely_is_not_edited(before: str) -> None:
    with pytest.raises(LessonError) as raised:
        set_keys(before.encode(), {"title": "new"}, "devops/a.md")
    assert raised.value.message.startswith("devops/a.md: ")
    assert raised.value.line >= 1
