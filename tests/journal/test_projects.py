"""Which project a session belongs to: the repository counts, not the name or the place of a folder."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.commands import run
from vault_index import config
from vault_index.journal import projects
from vault_index.journal.journal import Journal


@pytest.fixture
def journal(own_world: Path) -> Journal:
    return Journal(config.load())


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


@pytest.mark.slow
def test_projects_of_one_name_are_kept_apart(journal: Journal, tmp_path: Path) -> None:
    for above in ("a", "b", "c"):
        (tmp_path / above).mkdir()
    first = repository(tmp_path / "a" / "api", "One")
    second = repository(tmp_path / "b" / "api", "Two")
    fork = tmp_path / "c" / "api"
    shutil.copytree(first, fork)  # which is there beside the first
    names = [projects.project_of(journal.home, str(folder)) for folder in (first, second, fork)]
    assert names == ["api", "api-2", "api-3"]
    assert [projects.project_of(journal.home, str(folder)) for folder in (fork, first)] == [
        "api-3",
        "api",
    ]
    for folder in (first, second):
        run("git", "remote", "add", "origin", "https://git.internal/api", cwd=folder)
    (tmp_path / "d").mkdir()
    shutil.copytree(second, tmp_path / "d" / "api")  # one more clone of the second
    assert projects.project_of(journal.home, str(tmp_path / "d" / "api")) == "api-2"


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
