"""Which project a session belongs to: the repository counts, not the name or the place of a folder."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.commands import run
from vault_index.journal import projects
from vault_index.journal.journal import Journal


def repository(folder: Path, first: str = "Begin") -> Path:
    run("git", "init", "-q", folder, cwd=folder.parent)
    run("git", "commit", "-q", "--allow-empty", "-m", first, cwd=folder)
    return folder


@pytest.mark.slow
def test_a_repository_is_one_project_wherever_it_is_checked_out(
    journal: Journal, tmp_path: Path
) -> None:
    shop = repository(tmp_path / "shop")
    run("git", "worktree", "add", "-q", tmp_path / "elsewhere" / "fix", cwd=shop)
    (shop / "src").mkdir()
    name = projects.project_of(journal.home, str(shop))
    assert name == "shop"
    for folder in (shop / "src", tmp_path / "elsewhere" / "fix", shop / "removed" / "since"):
        assert projects.project_of(journal.home, str(folder)) == name, folder
    shutil.copytree(shop, tmp_path / "moved")
    shutil.rmtree(shop)
    assert projects.project_of(journal.home, str(tmp_path / "moved")) == name
    assert (
        projects.project_of(journal.home, str(shop / "src")) == name
    )  # of a session before the move


@pytest.mark.parametrize(
    "folder",
    [
        "/nowhere/code/shop/.claude/worktrees/reverent-bartik-ddf1b7",
        "/nowhere/.claude-worktrees/shop/calm-otter",
        "/nowhere/.codex/worktrees/1a2b/shop",
        "/nowhere/code/shop",
    ],
)
def test_a_work_tree_that_is_gone_has_the_name_of_its_repository(
    journal: Journal, folder: str
) -> None:
    """Issue 58, row 8."""
    assert projects.name_for(journal, folder) == "shop"


def test_only_what_was_asked_for_is_recorded(journal: Journal, tmp_path: Path) -> None:
    shop, notes = str(tmp_path / "shop"), str(tmp_path / "notes")
    assert not projects.recorded(journal, shop)
    assert projects.record(journal, shop)
    assert not projects.record(journal, shop)
    assert projects.recorded(journal, f"{shop}/src")
    assert not projects.recorded(journal, notes)
    assert projects.record(journal, "*")
    assert projects.recorded(journal, notes)
    assert projects.stop_recording(journal, notes)
    assert not projects.recorded(journal, f"{notes}/deep")
    assert projects.recorded(journal, shop)
    assert (journal.folder / "recorded").read_text() == f"{shop}\n*\n!{notes}\n"
    assert projects.stop_recording(journal, "*")
    assert not projects.recorded(journal, shop)
