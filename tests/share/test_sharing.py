"""Two people and a bare repository: what one learns, the other's agent gets."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from benchmarks import git_operations
from tests.share.clones import save, two_clones
from tests.support.commands import PATH, run
from tests.support.files import lesson_text, write
from tests.support.watchers import (
    assert_same_as_a_rebuild,
    soon,
    soon_same_as_a_rebuild,
    status,
    watched,
)
from vault_index.share import git_hooks


@pytest.fixture
def team(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Two clones of one bare repository, each set up by `lessons init`."""
    monkeypatch.setenv("PATH", PATH)
    return two_clones(tmp_path)


def injected(clone: Path, prompt: str) -> str:
    event = {"hook_event_name": "UserPromptSubmit", "prompt": prompt, "cwd": str(clone)}
    out = run("lessons-hook", cwd=clone, stdin=json.dumps(event))
    return str(out.json["hookSpecificOutput"]["additionalContext"]) if out.out else ""


# hooks


@pytest.mark.slow
def test_after_a_pull_the_other_agent_gets_it(team: tuple[Path, Path], with_model: Path) -> None:
    ada, bob = team
    run("lessons", "index", cwd=bob)
    text = "The deploy job hangs at connecting unless the runner is on the VPN."
    write(ada / "lessons/devops/vpn.md", lesson_text("Staging deploys need the VPN", text))
    save(ada, "vpn")
    run("git", "push", "-q", cwd=ada)
    run("git", "pull", "-q", cwd=bob)
    assert "needs the VPN" not in injected(bob, "thanks")
    # git's hook is indexing, and may hold the lock for longer than a prompt should wait
    prompt = "why does the deploy job to staging hang at connecting to the VPN"
    soon(lambda: text in injected(bob, prompt))


@pytest.mark.slow
def test_init_puts_the_hooks_in_place_once(team: tuple[Path, Path]) -> None:
    ada, bob = team
    assert run("git", "config", "core.hooksPath", cwd=bob).out == ".githooks\n"
    for name, text in git_hooks.HOOKS.items():
        file = ada / ".githooks" / name
        assert file.read_text() == text
        assert os.access(file, os.X_OK)
    assert run("lessons", "init", cwd=bob).out == f"{bob} is a vault\n"
    assert run("git", "status", "--porcelain", cwd=bob).out == ""


@pytest.mark.parametrize("there", [".git/hooks/pre-commit", ".githooks/pre-commit", "husky"])
def test_hooks_that_are_there_are_respected(tmp_path: Path, there: str) -> None:
    root = tmp_path / "repo"
    run("git", "init", "-q", root, cwd=tmp_path)
    if there == "husky":
        run("git", "config", "core.hooksPath", ".husky", cwd=root)
    else:
        write(root / there, "#!/bin/sh\nexit 0\n").chmod(0o755)
    before = run("git", "config", "core.hooksPath", cwd=root, check=False).out
    ran = run("lessons", "init", cwd=root)
    assert "git hooks are in" in ran.err
    assert "lessons check --staged" in ran.err
    assert run("git", "config", "core.hooksPath", cwd=root, check=False).out == before
    if there != "husky":
        assert (root / there).read_text() == "#!/bin/sh\nexit 0\n"
    if there.startswith(".githooks"):
        fixes = run("lessons", "status", "--check", cwd=root, check=False).out
        assert "git config core.hooksPath .githooks" in fixes


@pytest.mark.slow
def test_whatever_git_does_the_index_is_that_of_a_rebuild(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rebase, merge, checkout, stash, worktree, cherry-pick, reset: the benchmark's, but fewer."""
    monkeypatch.setenv("PATH", PATH)
    vault = git_operations.repository(tmp_path / "with" / "team", seed=11, commits=100)
    plain = tmp_path / "without" / "team"
    shutil.copytree(vault.root, plain)
    git_hooks.set_up(vault.root)
    with watched(vault):
        done = {name for name, *_ in git_operations.operations(vault.root, plain, 11, count=30)}
        soon(lambda: not status(vault)["indexing"])
        soon_same_as_a_rebuild(vault)
    assert len(done) >= 6
    assert_same_as_a_rebuild(vault)
