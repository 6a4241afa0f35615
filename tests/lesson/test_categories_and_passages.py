"""Categories have one spelling and form a tree; a lesson is cut into passages and nothing is lost."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.places import REPO
from vault_index.lesson import category as categories
from vault_index.lesson import passages
from vault_index.lesson.parse import parse_file

LESSONS = REPO / "lessons"

raw_categories = st.one_of(st.text(), st.text(st.sampled_from("aB1 ./-_#+ü\\")))
category_paths = st.lists(st.sampled_from(["a", "b", "ci-cd", "c++"]), min_size=1, max_size=6).map(
    "/".join
)
prose_lines = st.text(st.sampled_from("ab .;?!"), max_size=300)
code = st.sampled_from(["```sh\nmake\n\nmake test\n```", "~~~\n" + "x = 1\n\n" * 200 + "~~~"])
markdown = st.lists(st.one_of(prose_lines, st.just(""), code), max_size=30).map("\n".join)


# categories


@pytest.mark.parametrize(
    ("raw", "category"),
    [
        ("devops/ci-cd", "devops/ci-cd"),
        (" DevOps / CI CD/", "devops/ci-cd"),
        ("//a///b//", "a/b"),
        ("a, b & c", "a-b-c"),
        ("C++/C#", "c++/c#"),
        ("Größe/日本語", "größe/日本語"),
        ("../../etc", "etc"),
        ("a/./b", "a/b"),
        (".net/v1.2", "net/v1.2"),
        ("a\\b", "a-b"),
        ("...", ""),
        ("🔥", ""),
        ("", ""),
    ],
)
def test_a_category_has_one_spelling(raw: str, category: str) -> None:
    assert categories.normalise(raw) == category


@given(raw_categories)
def test_a_spelling_is_a_safe_folder_and_stays_as_it_is(raw: str) -> None:
    category = categories.normalise(raw)
    assert categories.normalise(category) == category
    if category:
        assert all(part and not part.startswith(".") for part in category.split("/"))
        assert categories.from_folder(f"{category}/lesson.md") == category


def test_the_folder_names_the_category() -> None:
    assert categories.from_folder("DevOps/CI CD/heap.md") == "devops/ci-cd"
    assert categories.from_folder("heap.md") is None
    assert categories.from_folder("🔥/heap.md") is None


@given(st.lists(category_paths))
def test_levels_hold_every_prefix_once(paths: list[str]) -> None:
    columns = categories.levels(paths)
    for depth, column in enumerate(columns):
        assert len(column) == len(set(column))
        assert all(prefix.count("/") == depth for prefix in column)
    every = {p for path in paths for p in categories.prefixes(path)[: categories.MAX_DEPTH]}
    assert every == {prefix for column in columns for prefix in column}


@pytest.mark.slow
@given(st.lists(st.lists(category_paths, max_size=3)))
def test_no_category_counts_more_than_the_one_above_it(lessons: list[list[str]]) -> None:
    counts = categories.counts(lessons)
    for category, count in counts.items():
        assert count <= counts[category.split("/")[0]] <= len(lessons)


# passages


def fences_of(text: str) -> list[str]:
    """Return the fenced blocks of a text of this file's strategy, whole."""
    blocks: list[str] = []
    inside = ""
    for line in text.split("\n"):
        if inside:
            blocks[-1] += "\n" + line
            inside = "" if line == inside else inside
        elif line[:3] in ("```", "~~~"):
            inside = line[:3]
            blocks.append(line)
    return blocks


def assert_covered(text: str, pieces: list[str]) -> None:
    """The pieces, in their order, are the whole text; each repeats 100 characters at most."""
    covered = 0
    for piece in pieces:
        start = text.index(piece, max(0, covered - passages.OVERLAP_CHARS - 10))
        assert not text[covered:start].strip(), "lost"
        assert len(text[start:covered].strip()) <= passages.OVERLAP_CHARS
        assert start + len(piece) > covered
        covered = start + len(piece)
    assert not text[covered:].strip()


def test_a_long_lesson_is_the_whole_and_its_pieces() -> None:
    paragraphs = [f"Paragraph {n}. " + "word " * 60 for n in range(8)]
    whole, *pieces = passages.cut("\n\n".join(paragraphs))
    assert whole == "\n\n".join(paragraphs)
    assert all(len(piece) <= passages.PIECE_CHARS for piece in pieces)
    assert_covered(whole, pieces)


def test_pieces_end_with_a_sentence_and_begin_with_the_end_of_the_one_before() -> None:
    _, *pieces = passages.cut(" ".join(f"This is sentence number {n}." for n in range(100)))
    for before, after in itertools.pairwise(pieces):
        assert before.endswith(".")
        assert after.startswith("This is sentence")
        assert after.split(". ")[0] in before


@pytest.mark.parametrize(
    "text",
    ["word " * 2000, "x" * 5000, " ".join(map(str, range(3000))), "One. " * 900, "line\n" * 900]
    + ["ü🔥" * 1500],
    ids=["no sentence", "no blank", "words", "sentences", "lines", "emoji"],
)
def test_a_paragraph_that_is_too_long_is_cut_too(text: str) -> None:
    _, *pieces = passages.cut(text)
    assert all(0 < len(piece) <= passages.PIECE_CHARS for piece in pieces)
    if len(set(text.split())) > 90:  # of what repeats itself nobody can say where it stood
        assert_covered(text, pieces)


@pytest.mark.slow
@settings(deadline=None)  # the first one may load markdown-it
@given(markdown)
def test_nothing_is_lost(text: str) -> None:
    whole, *pieces = passages.cut(text)
    assert whole == text
    if pieces:  # beyond the reach of the embedder they speak for the whole
        ends = [text.find(piece) for piece in pieces]
        assert min(ends) >= 0
        assert text.strip().startswith(pieces[0])
        assert text.strip().endswith(pieces[-1])
        assert set(text.split()) == {word for piece in pieces for word in piece.split()}


@settings(deadline=None)  # the first one may load markdown-it
@given(markdown)
def test_a_code_fence_stays_in_one_piece(text: str) -> None:
    pieces = passages.cut(text)[1:] or [text]
    for fence in fences_of(text):
        assert any(fence in piece for piece in pieces)


def test_prose_is_the_sentences() -> None:
    text = (
        "Raise [the heap](https://example.org/a):\n\n```sh\nexport A=1\n```\n\n![shot](a.png) Done."
    )
    assert passages.prose(text) == "Raise the heap:\nshot Done."


def test_every_lesson_here_has_prose() -> None:
    for file in LESSONS.rglob("*.md"):
        for lesson in parse_file(file.read_bytes(), file.name):
            said = passages.prose(lesson.text)
            assert said
            assert "```" not in said
