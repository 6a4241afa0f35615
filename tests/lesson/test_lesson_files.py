"""A lesson file is read as its author meant it; one that cannot be read is named with its line."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime

import frontmatter
import pytest
from frontmatter.default_handlers import YAMLHandler
from hypothesis import example, given, settings
from hypothesis import strategies as st

from vault_index.errors import LessonError
from vault_index.lesson import edits
from vault_index.lesson.file import LessonFile
from vault_index.lesson.frontmatter import metadata_of
from vault_index.lesson.handler import LessonHandler
from vault_index.lesson.parse import Lesson, parse_file

FULL = b"""\
---
title: Node runs out of memory in the CI build
categories: [devops/ci-cd, development/frontend/build]
tags: [node, ci]
type: bug_fix
confidence: 4
created: 2025-11-15T10:30:00Z
source: lessons/ci-fixes.md
fires_on: ["our build dies with heap out of memory"]
silent_on: ["the phone app runs out of battery"]
reviewers: {ada: yes}
---
Raise the heap.
"""


def only(data: bytes | str, path: str = "devops/heap.md") -> Lesson:
    """Parse a file that holds one lesson."""
    (lesson,) = parse_file(data.encode() if isinstance(data, str) else data, path)
    return lesson


def problem(data: bytes | str, path: str = "bad.md") -> LessonError:
    """Return the error of a file that does not parse."""
    with pytest.raises(LessonError) as raised:
        parse_file(data.encode() if isinstance(data, str) else data, path)
    assert raised.value.message.startswith(f"{path}: ")
    return raised.value


# what a file says


def test_every_field_is_read() -> None:
    assert only(FULL) == Lesson(
        id="devops/heap",
        path="devops/heap.md",
        title="Node runs out of memory in the CI build",
        text="Raise the heap.",
        categories=("devops/ci-cd", "development/frontend/build"),
        tags=("node", "ci"),
        type="bug_fix",
        confidence=4,
        created=datetime(2025, 11, 15, 10, 30, tzinfo=UTC),
        source="lessons/ci-fixes.md",
        fires_on=("our build dies with heap out of memory",),
        silent_on=("the phone app runs out of battery",),
    )


def test_the_folder_is_not_a_declared_category() -> None:
    assert only("text", "devops/docker/a.md").categories == ()
    assert only("---\ncategory: devops/docker\n---\ntext", "x/a.md").categories == (
        "devops/docker",
    )
    assert only("---\ncategories: a/b, c\n---\ntext", "x/a.md").categories == ("a/b", "c")


def test_a_declared_id_names_the_lesson_wherever_it_is_moved() -> None:
    text = "---\nid: heap-42\n---\ntext\n\n## Lesson: Two\nmore"
    for path in ("a.md", "devops/b.md"):
        assert [one.id for one in parse_file(text.encode(), path)] == ["heap-42", "heap-42#two"]
    assert only("---\nid: a#b\n---\ntext").id == "a-b"


@pytest.mark.parametrize(
    ("text", "title", "rest"),
    [
        ("# Raise the heap\n\ntext", "Raise the heap", "text"),
        ("### Raise the heap ###\ntext", "Raise the heap", "text"),
        ("---\ntitle: Heap\n---\n# Heap\ntext", "Heap", "text"),
        ("---\ntitle: Heap\n---\n# Background\ntext", "Heap", "# Background\ntext"),
        ("text first\n# Heading", "node heap size", "text first\n# Heading"),
        ("---\ntitle: 2025\n---\ntext", "2025", "text"),
        ("---\ntitle: [a, b]\n---\ntext", "node heap size", "text"),
        ("---\ntitle: 'two\n\n  lines'\n---\ntext", "two lines", "text"),
        ("---\ntitle: 0x" + "f" * 5000 + "\n---\ntext", "node heap size", "text"),
    ],
)
def test_title_from_the_key_the_first_heading_or_the_file_name(
    text: str, title: str, rest: str
) -> None:
    lesson = only(text, "devops/node_heap-size.md")
    assert (lesson.title, lesson.text) == (title, rest)


@pytest.mark.parametrize(
    ("written", "moment"),
    [
        ("2025-11-15", datetime(2025, 11, 15, tzinfo=UTC)),
        ("2025-11-15 10:30:00", datetime(2025, 11, 15, 10, 30, tzinfo=UTC)),
        ("2025-11-15T10:30:00+02:00", datetime(2025, 11, 15, 8, 30, tzinfo=UTC)),
        ("'2025-11-15T10:30:00Z'", datetime(2025, 11, 15, 10, 30, tzinfo=UTC)),
        ("'2025-11-15'", datetime(2025, 11, 15, tzinfo=UTC)),
        ("'last week'", None),
        ("2025", None),
        ("0001-01-01T00:00:00+10:00", None),
    ],
)
def test_dates_are_utc(written: str, moment: datetime | None) -> None:
    assert only(f"---\ncreated: {written}\n---\ntext").created == moment


@pytest.mark.parametrize(
    ("written", "confidence"),
    [("5", 5), ("9", 5), ("-3", 1), ("2.9", 2), ("high", 3), ("yes", 3), (".nan", 3), (".inf", 5)],
)
def test_confidence_is_one_to_five(written: str, confidence: int) -> None:
    assert only(f"---\nconfidence: {written}\n---\ntext").confidence == confidence


# several lessons in one file


def test_sections_are_lessons_that_share_the_frontmatter() -> None:
    text = "---\ntags: [node]\n---\n## Lesson: Raise the heap\none\n\n## Lesson: Cache it ##\ntwo\n"
    first, second = parse_file(text.encode(), "ci.md")
    assert (first.id, first.title, first.text) == ("ci#raise-the-heap", "Raise the heap", "one")
    assert (second.id, second.title, second.text) == ("ci#cache-it", "Cache it", "two")
    assert first.tags == second.tags == ("node",)


def test_sections_of_the_same_title_have_ids_of_their_own() -> None:
    text = "## Lesson: Heap\n1\n## Lesson: heap!\n2\n## Lesson: Heap 2\n3\n## Lesson:\n4\n"
    lessons = parse_file(text.encode(), "ci.md")
    assert [one.text for one in lessons] == ["1", "2", "3", "4"]
    assert len({one.id for one in lessons}) == 4


def test_text_before_the_first_section_is_a_lesson_a_mere_heading_is_not() -> None:
    sections = "## Lesson: A\none"
    assert [one.id for one in parse_file(f"# CI\n\n{sections}".encode(), "ci.md")] == ["ci#a"]
    first, _ = parse_file(f"# CI\nWe use Actions.\n\n{sections}".encode(), "ci.md")
    assert (first.id, first.title, first.text) == ("ci", "CI", "We use Actions.")


def test_a_section_heading_in_code_is_code() -> None:
    text = "````md\n```\n## Lesson: not one\n```\n## Lesson: nor this\n````\n## Lesson: Real\ntext"
    assert [one.id for one in parse_file(text.encode(), "a.md")][1:] == ["a#real"]
    inline = "```x``` is code on one line\n## Lesson: Real\ntext"
    assert [one.id for one in parse_file(inline.encode(), "a.md")] == ["a", "a#real"]


# how a file is written


def test_a_byte_order_mark_is_no_part_of_the_text() -> None:
    assert only(b"\xef\xbb\xbf" + FULL) == only(FULL)


def test_windows_line_ends_change_nothing() -> None:
    assert only(FULL.replace(b"\n", b"\r\n")) == only(FULL)
    text = b"# CI\nWe use Actions.\n\n```sh\nmake\n```\n\n## Lesson: Raise\none\ntwo\n"
    assert parse_file(text.replace(b"\n", b"\r\n"), "a.md") == parse_file(text, "a.md")


@pytest.mark.parametrize("data", [b"", b"\n \n", b"\xef\xbb\xbf", b"---\n---\n"])
def test_an_empty_file_holds_no_lesson(data: bytes) -> None:
    assert parse_file(data, "a.md") == []


@pytest.mark.parametrize(
    "text",
    [
        "Before\n\n```yaml\n---\ntitle: x\n---\n```\nafter",
        "---\n\nA rule, then text.",
        "-- \ntitle: x",
        "Text\n---\nmore\n---\nend",
    ],
)
def test_dashes_that_are_not_frontmatter_are_text(text: str) -> None:
    assert only(text).text == text


@pytest.mark.parametrize(
    "date",
    ["2025-13-45", "2026-02-30", "2025-02-29T25:61:00Z", "0000-00-00", "9999-12-31T23:00:00-09:00"],
)
def test_an_impossible_date_withholds_no_lesson(date: str) -> None:
    """Issue 55, row 14: the lesson was in no index."""
    text = f"---\ntitle: Heap\ncreated: {date}\nseen: [{date}]\n---\nRaise it.\n"
    (lesson,) = parse_file(text.encode(), "lessons/heap.md")
    assert (lesson.title, lesson.text, lesson.created) == ("Heap", "Raise it.", None)


# what cannot be read


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("---\ntitle: x\nno end\n", 1, "frontmatter is not closed"),
        ("\n\n---\ntitle: x\n", 3, "frontmatter is not closed"),
        ("---\n- a\n- b\n---\ntext", 1, "frontmatter is a list"),
        ("---\njust words\n---\ntext", 1, "frontmatter is a str"),
        ("---\ntitle: x\ntags: one: two\n---\ntext", 3, "frontmatter is not YAML"),
        ("---\ntitle: x\n\ttags: y\n---\ntext", 3, "frontmatter is not YAML"),
        ("\n---\ntitle: x\ntags: [a\n---\ntext", 5, "frontmatter is not YAML"),
        ("---\ntitle: x\n? [a]\n: b\n---\ntext", 3, "frontmatter is not YAML"),
        (
            "---\ntitle: x\n<<<<<<< HEAD\ntags: [a]\n=======\ntags: [b]\n>>>>>>> main\n---\ntext",
            4,
            "frontmatter is not YAML",
        ),
    ],
)
def test_broken_frontmatter_is_named_with_its_line(text: str, line: int, says: str) -> None:
    for data in (text, text.replace("\n", "\r\n")):
        error = problem(data)
        assert says in error.message
        assert error.line == line
        assert "\n" not in error.message


# what YAML gives a meaning, and letters that it takes in some places only
HEADERS = st.text(
    st.sampled_from("\n\n\t :-#[]{}&*!|>%@`'\"?,~.\\=<0a2e\r\x0b\x0c\x01\x85\u2028\ufeff\U0001f525")
    | st.characters(codec="utf-8"),
    max_size=40,
)


@pytest.mark.slow
@settings(deadline=None)  # the first one imports what reads YAML
@given(HEADERS, HEADERS)
@example("\t\nNotes", "more")  # libyaml and PyYAML's own loader see this tab differently
def test_no_frontmatter_whatever_ends_in_another_error(header: str, body: str) -> None:
    with contextlib.suppress(LessonError):
        parse_file(f"---\n{header}\n---\n{body}\n".encode(), "bad.md")


@settings(deadline=None)
@given(HEADERS, HEADERS)
@example("\n \ntitle: x", "---\n")
@example("title: x\n----  \n", "---")
def test_other_programs_read_the_same_in_a_file(header: str, body: str) -> None:
    text = f"---\n{header}\n---\n{body}\n"
    file = LessonFile.of_text(text, "a.md")
    with contextlib.suppress(LessonError):
        metadata = metadata_of(file)
        if file.closing is not None and file.newline != "\r":
            theirs = frontmatter.parse(text, handler=YAMLHandler())
            assert repr((metadata, file.text(file.body).strip())) == repr(theirs)


VALUES = st.one_of(
    st.text(), st.lists(st.text()), st.integers(), st.dates(), st.booleans(), st.none()
)
FIELDS = st.fixed_dictionaries(
    {"title": VALUES}, optional=dict.fromkeys(("tags", "prompts", "of: ours", "#no"), VALUES)
)


@settings(deadline=None)
@given(HEADERS, FIELDS)
@example("Below --- a rule\n---\nmore", {"title": "---"})
def test_python_frontmatter_reads_and_writes_a_lesson(text: str, fields: dict[str, object]) -> None:
    """Issue 59, section 3."""
    text = text.replace("\r", "").replace("\0", "").strip()
    post = frontmatter.Post(text, LessonHandler())
    post.metadata.update(fields)
    written = frontmatter.dumps(post)
    assert frontmatter.parse(written, handler=LessonHandler()) == (fields, text)
    assert edits.new_file(text, fields) == written.encode()
    assert metadata_of(LessonFile.of(written.encode(), "a.md")) == fields


@pytest.mark.parametrize(
    ("block", "message", "line"),
    [
        ("a: 1\nb: [x", "frontmatter is not YAML: ", 4),
        ("a: 1\nb: it's: two", 'put the value in quotes: b: "it', 3),
        ("&a [" * 200, "nested deeper than 100", 2),
        ("- a\n- b", "frontmatter is a list, not `key: value` lines", 1),
    ],
)
def test_python_frontmatter_names_the_line_with_our_handler(
    block: str, message: str, line: int
) -> None:
    """Issue 59, section 3."""
    handler = LessonHandler("a.md", above=1, opening=1)
    with pytest.raises(LessonError) as raised:
        frontmatter.parse(f"---\n{block}\n---\nText.\n", handler=handler)
    assert message in str(raised.value) + raised.value.hint
    assert raised.value.line == line
    with pytest.raises(LessonError) as same:
        metadata_of(LessonFile.of_text(f"---\n{block}\n---\nText.\n", "a.md"))
    assert str(same.value) == str(raised.value)


def test_sections_carry_the_title_of_their_document() -> None:
    text = (
        "---\ntitle: Handbook\nauthor: Ada\nlink: https://example.org\n---\n## Lesson: One\n\n1\n"
    )
    (lesson,) = parse_file(text.encode(), "a.md")
    assert (lesson.document, lesson.title) == ("Handbook", "One")
    assert (lesson.written_by, lesson.link) == ("Ada", "https://example.org")
    (alone,) = parse_file(b"# Alone\n\nText.\n", "b.md")
    assert alone.document == ""


@pytest.mark.parametrize(
    "between",
    [
        "\nFelt for the kiln: only the grey one, the white one smokes.\n\n",  # P01
        "Felt for the kiln: only the grey one, the white one smokes.\n",
        "\nWarning: the white felt smokes.\n\n",
        "\nThe white felt smokes.\n\n- grey: good\n",
        "\n# Felt\n\nThe white one smokes: never buy it.\n\n",
    ],
)
def test_text_between_two_rules_is_text(between: str) -> None:
    for text in (
        f"---\n{between}---\n\nOrder in May.",
        f"\ufeff\n---\n{between}---\nOrder in May.",
    ):
        assert only(text).text == text.removeprefix("\ufeff").strip()
        windows = text.replace("\n", "\r\n")
        assert only(windows) == only(text)


@pytest.mark.parametrize(
    ("bom", "pasted"), [("", ""), ("\ufeff", ""), ("", "one\ntwo\n"), ("", "one\r\ntwo\r\n")]
)
def test_a_file_of_an_old_mac_is_read_and_edited_as_any_other(bom: str, pasted: str) -> None:  # P03
    unix = (
        "---\ntitle: The hoist counts from zero\ntags: [hoist]\n---\nFloor 0 is the yard.\n\n"
        "```sh\n## Lesson: none\n```\n\n## Lesson: Doors\ntags: [door]\n\nThey close.\n"
    )
    mac = bom + unix.replace("\n", "\r") + pasted
    plain = unix + pasted.replace("\r", "")
    assert parse_file(mac.encode(), "a.md") == parse_file(plain.encode(), "a.md")
    for key, value in (("tags", ["crane"]), ("type", "bug_fix"), ("tags", None)):
        changed = edits.set_keys(mac.encode(), {key: value}).decode().replace("\r\n", "\n")
        wanted = edits.set_keys(plain.encode(), {key: value}).decode()
        assert changed.removeprefix(bom).replace("\r", "\n") == wanted
    renamed = edits.set_text(mac.encode(), "doors", "Shut.", "Gates", "a.md")
    assert b"## Lesson: Gates\r" in renamed
    assert parse_file(renamed, "a.md")[1].text == "Shut."


@pytest.mark.parametrize(
    ("line", "quoted"),
    [
        ("title: Rolls: which one to order", 'title: "Rolls: which one to order"'),  # P01
        ("title: *glossy* jams", 'title: "*glossy* jams"'),
        ("title: @home", 'title: "@home"'),
        ("title: `make` hangs", 'title: "`make` hangs"'),
        ("title: [Draft] the mill", 'title: "[Draft] the mill"'),
        ('title: %s is "x"', "title: '%s is \"x\"'"),
        ("tags:\n  - a\n  - b: c: d", '- "b: c: d"'),
        ('title: "Fix" the roll', "title: '\"Fix\" the roll'"),
        ("title: 'It's the roll'", 'title: "It\'s the roll"'),
        ('title: "C:\\rolls\\x"', "title: 'C:\\rolls\\x'"),
    ],
)
def test_frontmatter_that_quotes_would_mend_says_so(line: str, quoted: str) -> None:
    hint = problem(f"---\nid: rolls\n{line}\ntype: bug_fix\n---\nOrder the matte roll.\n").hint
    assert hint == f"put the value in quotes: {quoted}"


def test_a_pointer_to_a_text_elsewhere_is_no_lesson() -> None:
    of_lfs = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 120\n"
    for text in (of_lfs, of_lfs.replace("git-lfs.github.com", "hawser.github.com"),
                 of_lfs.replace("\n", "\r\n"), "/annex/objects/MD5E-s9--1.md\n"):  # fmt: skip
        error = problem(text)
        assert "a pointer to the text" in error.message
        assert "git lfs pull" in error.hint
    assert only("version https://example.org is the one to use").text
