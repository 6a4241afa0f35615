"""What documents hold: courses with their numbered lessons, in order."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.commands import run
from tests.support.files import MakeVault, lesson_text, write
from tests.support.places import TESTS
from vault_index import api, client
from vault_index.vault import Vault, open_vault

COURSES = TESTS / "courses"
HANDBOOK = """\
---
title: Handbook
author: Grace
---
## Lesson: Zebra first

How to begin.

## Lesson: Aardvark last

How to end.
"""


@pytest.fixture
def library(make_vault: MakeVault, monkeypatch: pytest.MonkeyPatch) -> Vault:
    monkeypatch.setenv("LESSONS_EMBEDDER", "none")
    vault = make_vault({"heap.md": lesson_text("Heap", "Raise it."), "ops/handbook.md": HANDBOOK})
    for name in ("introduction_to_ai", "containers_for_developers"):
        write(vault.root / f"{name}.txt", (COURSES / f"{name}.txt").read_text("utf-8"))
        run("lessons", "import", f"{name}.txt", "--write", cwd=vault.root)
    return open_vault(vault.root)


@pytest.mark.slow
def test_courses_and_documents_are_listed_with_how_many_lessons_they_have(library: Vault) -> None:
    listed = client.ask(library, api.document.select())
    assert [(each.kind, each.title, each.lessons) for each in listed] == [
        ("course", "Containers for C# developers", 2),
        ("document", "Handbook", 2),
        ("course", "Introduction to AI", 3),
    ]
    assert listed[2].author == "Ada Lovelace"
    assert listed[2].link == "https://example.com/ai"
    named = client.ask(library, api.document.select(name="intoduction ai"))
    assert named[0].title == "Introduction to AI"


@pytest.mark.slow
def test_the_lessons_of_a_document_come_in_its_order_with_number_and_link(library: Vault) -> None:
    listed = client.ask(library, api.document.select())
    path = {each.title: each.path for each in listed}
    asked = api.document.contents(path=path["Introduction to AI"])
    lessons = client.ask(library, asked)
    assert [(each.number, each.title, each.link) for each in lessons] == [
        (0, "Welcome", "https://example.com/ai/0"),
        (1, "What is chunking", "https://example.com/ai/1"),
        (3, "Retrieval", ""),  # without a link
    ]
    lessons = client.ask(library, api.document.contents(path=path["Handbook"]))
    assert [each.title for each in lessons] == ["Zebra first", "Aardvark last"]
    assert client.ask(library, api.document.contents(path="none.md")) == ()


@pytest.mark.slow
def test_what_hooks_leave_out_is_in_no_list(library: Vault) -> None:
    secret = "The password for the staging admin is Tr0ub4dor&3x"
    write(Path(library.lessons_dir) / "ops/handbook.md", HANDBOOK + secret)
    listed = client.ask(library, api.document.select())
    assert "Handbook" not in [each.title for each in listed]
    asked = api.document.contents(path="lessons/ops/handbook.md")
    assert client.ask(library, asked) == ()


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
    kinds = {each.path: each.kind for each in client.ask(vault, api.document.select())}
    assert kinds == {"lessons/shell.md": "course", "lessons/talk.md": "document"}
