"""What documents hold: courses with their numbered lessons, in order."""

from __future__ import annotations

import pytest

from tests.support.commands import run
from tests.support.files import MakeVault, lesson_text, write
from tests.support.places import TESTS
from vault_index import api, client
from vault_index.vault import Vault, open_vault

COURSES = TESTS / "courses"


@pytest.fixture
def library(make_vault: MakeVault, monkeypatch: pytest.MonkeyPatch) -> Vault:
    monkeypatch.setenv("LESSONS_EMBEDDER", "none")
    vault = make_vault({"heap.md": lesson_text("Heap", "Raise it.")})
    for name in ("introduction_to_ai", "containers_for_developers"):
        write(vault.root / f"{name}.txt", (COURSES / f"{name}.txt").read_text("utf-8"))
        run("lessons", "import", f"{name}.txt", "--write", cwd=vault.root)
    return open_vault(vault.root)


@pytest.mark.slow
def test_courses_are_listed_with_their_lessons_in_order(library: Vault) -> None:
    containers, ai = client.ask(library, api.document.courses())
    assert (containers.title, len(containers.lessons)) == ("Containers for C# developers", 2)
    assert (ai.title, ai.author, ai.link) == (
        "Introduction to AI", "Ada Lovelace", "https://example.com/ai",
    )  # fmt: skip
    assert [(each.number, each.title, each.link) for each in ai.lessons] == [
        (0, "Welcome", "https://example.com/ai/0"),
        (1, "What is chunking", "https://example.com/ai/1"),
        (3, "Retrieval", ""),  # without a link
    ]


@pytest.mark.slow
def test_a_course_is_a_document_whose_lessons_say_their_numbers(
    make_vault: MakeVault, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LESSONS_EMBEDDER", "none")
    numbered = (
        "## Lesson: Flags\n\nLesson 2\n\nPass -x.\n\n## Lesson: Traps\n\nLesson 5\n\nTrap it.\n"
    )
    talk = "## Lesson: Learn\n\nLesson learned.\n\n## Lesson: Count\n\nLesson 7 was long.\n"
    vault = make_vault({"shell.md": numbered, "talk.md": talk})
    (course,) = client.ask(vault, api.document.courses())
    assert course.path == "lessons/shell.md"
    assert [(each.number, each.title) for each in course.lessons] == [
        (2, "Flags"),
        (5, "Traps"),
    ]
