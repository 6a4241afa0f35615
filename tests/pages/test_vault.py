"""Vault: whether it is well, what it holds; what is slow comes on demand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.support.commands import run
from tests.support.files import MakeVault, commit, lesson_text, write
from tests.support.given import note
from tests.support.serving import Answering, answering
from tests.support.shown_vaults import ShownVault, shown_vault

pytestmark = pytest.mark.slow
SECTIONS = "## Lesson: Start\n\nHow to begin.\n\n## Lesson: End\n\nHow to end.\n"


COURSE = """\
Course Title: Building retrieval
Course Link: https://example.com/course
Course Instructor: Grace Hopper

Lesson 0: Begin
Lesson Link: https://example.com/0
First of all a word on words.

Lesson 1: End
And at last another one.
"""


def lesson(title: str, days_ago: int, type: str = "") -> str:
    """Return a lesson that was written so many days ago."""
    created = (datetime.now(UTC) - timedelta(days=days_ago)).strftime("%Y-%m-%d")
    text = f"A text of its own about {title.lower()}, for whoever wonders."
    return f"---\ntitle: '{title}'\ncreated: {created}\ntype: {type}\n---\n{text}\n"


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> ShownVault:
    files = {
        f"devops/{'docker' if number % 3 else 'ci-cd'}/note-{number}.md": lesson(
            f"Note {number}", 30 * number % 700, "bug_fix" if number % 2 else ""
        )
        for number in range(24)
    }
    files["devops/handbook.md"] = f"---\ntitle: Handbook\n---\n{SECTIONS}"
    files["ops/gate.md"] = lesson("Gate", 3)
    files["ops/secret.md"] = lesson_text("Log in", "The password for staging is Tr0ub4dor&3x")
    shown = shown_vault(tmp_path_factory.mktemp("vault"), files)
    run("git", "config", "user.name", "Ada", cwd=shown.root)
    run("git", "config", "user.email", "ada@example.org", cwd=shown.root)
    commit(shown.root)
    shown.run("index")
    for _ in range(3):
        note(shown.home, shown.root, "devops/ci-cd/note-0", ms=12.0)
    return shown


def test_lessons_are_counted_for_anybody(answers: Answering) -> None:
    shown = answers.ask("GET", "/page/vault/overview", token=False).text
    for fact in ("28, 6 of them new in the last 30 days", ">4</a>", "<dd>1</dd>"):
        assert fact in shown


def test_courses_have_their_instructor_and_lessons(
    make_vault: MakeVault, own_world: Path, tmp_path: Path
) -> None:
    vault = make_vault({"heap.md": lesson_text("Heap", "Raise the heap.")})
    course = write(tmp_path / "course.txt", COURSE)
    run("lessons", "import", course, "--write", cwd=vault.root)
    with answering(vault.root, own_world, LESSONS_EMBEDDER="none") as served:
        shown = served.ask("GET", "/page/vault/overview", token=False).text
    for words in ("Courses, 1", "Building retrieval</a>", "Grace Hopper", "2 lessons"):
        assert words in shown


def test_what_is_wrong_comes_with_its_command_and_names_no_folder_of_the_machine(
    answers: Answering, shown: ShownVault
) -> None:
    text = answers.ask("GET", "/page/private/vault/state").text
    for words in (
        "things need a look", "lessons/ops/secret.md", 'data-copy="lessons install claude"',
        "3 prompts so far, the first", "half of them within 12 ms", "floor", "all: <code>",
    ):  # fmt: skip
        assert words in text
    assert str(shown.home.parent) not in text


def test_checking_finds_what_a_commit_would_and_what_is_stale(answers: Answering) -> None:
    text = answers.ask("POST", "/page/private/vault/check").text
    assert "files checked: 1 error" in text
    assert "0 lessons stale" in text
    assert "lessons/ops/secret.md" in text
