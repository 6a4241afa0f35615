"""The passages for a question, of a real index: where they are from, and what is not among them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.files import lesson_text, write
from tests.support.indexed import with_words
from tests.support.places import TESTS
from vault_index.ask import passages
from vault_index.ask.passages import SearchRequest, SearchResult
from vault_index.edit import init
from vault_index.edit.formats.course import read_course
from vault_index.index import reconcile
from vault_index.vault import Vault, open_vault

STEPS = "\n\n".join(
    f"## Step {number}\n\n"
    + " ".join(f"In step {number} the {word} is looked at." for word in ("disk", "log", "queue"))
    * 3
    for number in range(1, 12)
)
DEEP = f"{STEPS}\n\n## Rollback\n\nA rollback of the zeppelin needs the flag --unfurl.\n\n{STEPS}"
TALKS = """\
---
title: Talks
---

## Lesson: Opening

Begin with the axolotl.

## Lesson: Closing

End with the axolotl, too.
"""
SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


def find(vault: Vault, query: str, **narrowed: Any) -> SearchResult:
    return passages.find(vault, SearchRequest(query, **narrowed))


@pytest.fixture(scope="module")
def vault(tmp_path_factory: pytest.TempPathFactory) -> Vault:
    """A vault with a long lesson, and three courses, one with a secret."""
    root = tmp_path_factory.mktemp("passages") / "team"
    init(root)
    course = (TESTS / "courses" / "introduction_to_ai.txt").read_bytes()
    texts: dict[str, str | bytes] = {
        "devops/zeppelin.md": lesson_text("Zeppelin", DEEP),
        "devops/ci/heap.md": lesson_text("Heap", "Raise the heap.\n\nThe platypus build dies."),
        "guides/talks.md": TALKS,
        "guides/keys.md": TALKS.replace("Talks", "Keys of the wombats") + SECRET,
        "courses/introduction-to-ai.md": read_course(course, "ai.txt")[0].data,
    }
    for path, text in texts.items():
        write(root / "lessons" / path, text)
    opened = open_vault(root, floor=0.2)
    with_words(opened)
    reconcile.sync(opened)
    return opened


@pytest.mark.slow
def test_a_passage_says_where_it_is_from(vault: Vault) -> None:
    result = find(vault, "zeppelin rollback unfurl", best=True)
    first = result.passages[0]
    assert (first.title, first.section) == ("Zeppelin", "Rollback")
    assert first.path == "lessons/devops/zeppelin.md"
    lines = (vault.root / first.path).read_text("utf-8").split("\n")
    assert lines[first.line - 1].startswith("A rollback of the zeppelin")
    assert len(first.text) <= passages.MAX_CHARS
    assert first.best[0] == "A rollback of the zeppelin needs the flag --unfurl."
    assert first.best[0] in first.text


def test_a_document_and_a_lesson_by_number(vault: Vault) -> None:
    result = find(vault, "what does it say?", document="Introduction to AI", lesson_number=1)
    (only,) = result.passages  # it was named, so no floor is between
    assert (only.title, only.section) == ("Introduction to AI", "What is chunking")
    assert only.link == "https://example.com/ai/1"
    assert result.place == "Introduction to AI, lesson 1: What is chunking"
    assert only.text.startswith("A document is too long")
    result = find(vault, "keyword index", document="Introduction to AI", lesson_number=3)
    assert [each.section for each in result.passages] == ["Retrieval"]  # whose link is missing
    result = find(vault, "axolotl", document="talks", lesson_number=2)
    assert [each.section for each in result.passages] == ["Closing"]


def test_a_name_that_nothing_has_narrows_nothing_and_is_said(vault: Vault) -> None:
    result = find(vault, "platypus build", document="sailing for beginners", lesson_number=2)
    assert [each.title for each in result.passages if not each.is_weak] == ["Heap"]
    assert "no document or category is called 'sailing for beginners'" in result.notes[0]
    result = find(vault, "chunking", document="Introduction to AI", lesson_number=77)
    assert "has no lesson 77" in result.notes[0]
    assert {each.path for each in result.passages} == {"lessons/courses/introduction-to-ai.md"}


def test_a_category_narrows_also_in_part(vault: Vault) -> None:
    for name in ("devops/ci", "devops ci"):
        result = find(vault, "platypus build", category=name)
        assert [each.title for each in result.passages] == ["Heap"], name
        assert result.place == "devops/ci"
    elsewhere = find(vault, "axolotl", category="devops").passages
    assert all(each.is_weak and each.path.startswith("lessons/devops/") for each in elsewhere)


def test_below_the_floor_there_are_only_the_nearest(vault: Vault) -> None:
    strict = open_vault(vault.root, floor=9.0)
    with_words(strict)
    result = find(strict, "platypus build")
    assert result.passages[0].title == "Heap"
    assert all(each.is_weak for each in result.passages)
    assert len(result.passages) <= passages.MAX_WEAK


def test_a_document_that_is_withheld_is_not_named(vault: Vault) -> None:
    result = find(vault, "axolotl", document="keys of the wombats", lesson_number=1)
    assert result.place == ""
    assert all("Keys of the" not in note for note in result.notes)
    paths = {each.path for each in result.passages}
    assert "lessons/guides/talks.md" in paths
    assert "lessons/guides/keys.md" not in paths


@pytest.mark.slow
def test_a_name_half_remembered_finds_its_document_by_letters_alone(vault: Vault) -> None:
    letters = open_vault(vault.root, embedder="none")
    reconcile.sync(letters)
    result = find(letters, "keyword index", document="intro to ai corse", lesson_number=3)
    assert result.place == "Introduction to AI, lesson 3: Retrieval"
    assert "so all of the vault" in find(letters, "heap", document="sailing to ai").notes[0]
    reconcile.sync(vault)
