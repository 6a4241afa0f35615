"""Documents: a half-remembered name finds one, and a search stays within it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.commands import run
from tests.support.files import MakeVault, lesson_text, write
from tests.support.places import TESTS, labelled
from vault_index import api, client
from vault_index.edit.formats.course import read_course
from vault_index.errors import VaultError
from vault_index.index import reconcile
from vault_index.index.derived import DOCUMENT
from vault_index.lesson.category import slugify
from vault_index.retrieval import query
from vault_index.retrieval.documents import MIN_LIKENESS, near, places, resolve
from vault_index.retrieval.hit import Query
from vault_index.vault import open_vault

COURSES = TESTS / "courses"

# Written for this by somebody who had not seen how names are compared.
NAMES = labelled("names.jsonl")
DOCUMENTS = labelled("documents.jsonl")


def document(title: str, author: str = "", description: str = "") -> str:
    """Return a lesson file of two sections."""
    keys = {"title": title, "author": author, "description": description}
    head = "\n".join(f"{key}: {json.dumps(value)}" for key, value in keys.items() if value)
    return f"---\n{head}\n---\n## Lesson: Start\n\nHow to begin.\n\n## Lesson: End\n\nHow to end.\n"


@pytest.fixture(scope="module")
def library(model_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A vault of sixty documents, indexed with the real model."""
    root = tmp_path_factory.mktemp("library")
    for one in DOCUMENTS:
        text = document(one["title"], one["author"], one["description"])
        write(root / "lessons" / f"handbook/{slugify(one['title'])}.md", text)
    write(root / "lessons" / "vault.toml", "")
    reconcile.sync(open_vault(root, environ={"LESSONS_HOME": str(model_home)}))
    return root


@pytest.mark.slow
@pytest.mark.parametrize("half", ["misspelt", "partial, paraphrased or abbreviated"])
def test_at_least_28_of_30_names_are_resolved(half: str, library: Path, model_home: Path) -> None:
    vault = open_vault(library, environ={"LESSONS_HOME": str(model_home)})
    names = NAMES[:30] if half == "misspelt" else NAMES[30:]
    missed = []
    for name in names:
        ranked = near(vault, name["asked"])
        if ranked[0].likeness < MIN_LIKENESS or ranked[0].title != name["title"]:
            missed.append((name["asked"], ranked[0].title))
    assert len(missed) <= 2, missed


@pytest.mark.slow
def test_what_no_document_is_called_is_said_with_the_nearest(
    library: Path, model_home: Path
) -> None:
    vault = open_vault(library, environ={"LESSONS_HOME": str(model_home)})
    for name in ("quantum cooking", "asdf", "the weather"):
        with pytest.raises(VaultError) as error:
            resolve(vault, name)
        assert error.value.hint.startswith("name one of the nearest: ")


@pytest.mark.slow
def test_a_place_tells_title_description_link_and_author(make_vault: MakeVault) -> None:
    course = (COURSES / "introduction_to_ai.txt").read_text("utf-8")
    vault = make_vault()
    write(vault.root / "course.txt", course)
    run("lessons", "import", "course.txt", "--write", cwd=vault.root)
    place = resolve(vault, "intro to ai")
    assert (place.kind, place.title) == ("document", "Introduction to AI")
    assert place.author == "Ada Lovelace"
    assert place.link.startswith("https://")
    assert "chunking" in place.description  # the titles of its parts, when it has none


def test_a_short_lesson_is_no_document_and_a_long_one_is(make_vault: MakeVault) -> None:
    long = " ".join(f"This is what was learned about step {n}." for n in range(100))
    vault = make_vault(
        {"short.md": lesson_text("Short", "Text."), "long.md": lesson_text("Long", long)},
        indexed=True,
    )
    documents = [one for one in places(vault) if one.kind == DOCUMENT]
    assert [one.title for one in documents] == ["Long"]


def test_a_search_in_a_document_finds_nothing_else(make_vault: MakeVault, text_only: None) -> None:
    chunks = "Chunking is what the kitchen calls it when chocolate is cut."
    course = read_course((COURSES / "introduction_to_ai.txt").read_bytes(), "ai.txt")[0].data
    vault = make_vault(
        {"kitchen.md": lesson_text("What is chunking", chunks), "ai.md": course}, indexed=True
    )
    asked = Query("what is chunking", within="intro to ai course", min_score=-1.0)
    hits = query.run(open_vault(vault.root), asked).hits
    assert (hits[0].document, hits[0].title) == ("Introduction to AI", "What is chunking")
    assert {hit.path for hit in hits} == {"lessons/ai.md"}
    with pytest.raises(VaultError, match="no document or category is called 'sailing'") as raised:
        query.run(vault, Query("knots", within="sailing"))
    assert raised.value.hint.startswith("name one of the nearest: ")


def test_the_catalog_follows_the_files(make_vault: MakeVault) -> None:
    vault = make_vault({"a.md": document("First Course")}, indexed=True)
    write(vault.lessons_dir / "a.md", document("Second Course"))
    write(vault.lessons_dir / "talks/b.md", document("A Talk"))
    reconcile.sync(vault)
    titles = {one.title for one in places(vault) if one.kind == DOCUMENT}
    assert titles == {"Second Course", "A Talk"}
    (vault.lessons_dir / "talks/b.md").unlink()
    reconcile.sync(vault)
    assert {one.path for one in places(vault)} == {"lessons/a.md", "uncategorized"}


@pytest.mark.slow
def test_a_course_is_a_document_whose_lessons_say_their_numbers(
    make_vault: MakeVault, text_only: None
) -> None:
    numbered = (
        "## Lesson: Flags\n\nLesson 2\n\nPass -x.\n\n## Lesson: Traps\n\nLesson 5\n\nTrap it.\n"
    )
    talk = "## Lesson: Learn\n\nLesson learned.\n\n## Lesson: Count\n\nLesson 7 was long.\n"
    vault = make_vault({"shell.md": numbered, "talk.md": talk})
    (course,) = client.ask(vault, api.document.courses())
    assert course.path == "lessons/shell.md"
    assert [(each.number, each.title) for each in course.lessons] == [(2, "Flags"), (5, "Traps")]
