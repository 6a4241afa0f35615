"""Commands that list and show without a watcher: they bring the index up to date, or build it."""

from __future__ import annotations

import shutil

import pytest
from click.testing import CliRunner, Result

from tests.support.files import MakeVault, lesson_text, write
from vault_index.entrypoints.cli import main
from vault_index.vault import Vault

FILES = {
    "ops/heap.md": lesson_text("Raise the heap", "When the build dies, raise the heap."),
    "dev/several.md": "# Conventions\n\nAll.\n\n## Lesson: Dates are UTC\nAlways.\n",
}


@pytest.fixture
def team(make_vault: MakeVault, monkeypatch: pytest.MonkeyPatch) -> Vault:
    monkeypatch.setenv("LESSONS_EMBEDDER", "none")
    vault = make_vault(FILES)
    monkeypatch.chdir(vault.root)
    return vault


def lessons(*words: str, code: int = 0) -> Result:
    result = CliRunner().invoke(main, list(words))
    assert result.exit_code == code, result.output
    return result


def test_a_file_that_no_longer_parses_is_shown_as_it_was(team: Vault) -> None:
    before = lessons("show", "heap").stdout
    write(team.lessons_dir / "ops/heap.md", "---\ntitle: [\n---\n")
    ended = lessons("show", "heap")
    assert ended.stdout == before
    assert "warning: lessons/ops/heap.md:3: " in ended.stderr


def test_the_first_list_of_a_clone_builds_its_index(team: Vault) -> None:
    shutil.rmtree(team.index_dir, ignore_errors=True)
    listed = lessons("list").stdout
    assert all(id in listed for id in ("ops/heap", "dev/several", "dev/several#dates-are-utc"))
    assert team.index_dir.exists()


def test_a_name_that_is_of_none_or_several(team: Vault) -> None:
    assert "Error: no lesson 'nothing-like-it'" in lessons("show", "nothing-like-it", code=1).stderr
    write(team.lessons_dir / "dev/heap.md", lesson_text("Another", "Text."))
    several = lessons("show", "heap", code=1).stderr
    assert "2 lessons are called 'heap': dev/heap, ops/heap" in several
