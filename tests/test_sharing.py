"""Two people and a bare repository: what one learns, the other's agent gets."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path

import pytest

from benchmarks import git_operations
from tests.conftest import BIN, Ran, lesson_text, run, write
from tests.planted import SECRETS
from tests.watchers import assert_same_as_a_rebuild, soon, status, watched
from vault_index import git_hooks, index
from vault_index.vault import Vault, open_vault

TWO_LESSONS = """\
---
title: Heap
tags: [node]
confidence: 3
---
Raise the heap.

## Lesson: Docker layers
Install before you copy.
"""


@pytest.fixture
def team(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Two clones of one bare repository, each set up by `lessons init`."""
    monkeypatch.setenv("PATH", f"{BIN}:/usr/bin:/bin")
    bare, ada, bob = tmp_path / "team.git", tmp_path / "ada", tmp_path / "bob"
    run("git", "init", "-q", "--bare", "-b", "main", bare, cwd=tmp_path)
    run("git", "clone", "-q", bare, ada, cwd=tmp_path)
    run("git", "switch", "-q", "-c", "main", cwd=ada)
    run("lessons", "init", cwd=ada)
    write(ada / "lessons/devops/heap.md", TWO_LESSONS)
    write(ada / "code.py", "print('not a lesson')\n")
    save(ada, "a vault")
    run("git", "push", "-q", "-u", "origin", "main", cwd=ada)
    run("git", "clone", "-q", bare, bob, cwd=tmp_path)
    run("lessons", "init", cwd=bob)
    return ada, bob


def save(clone: Path, message: str) -> None:
    run("git", "add", "-A", cwd=clone)
    run("git", "commit", "-q", "--no-verify", "-m", message, cwd=clone)


def sync(clone: Path, check: bool = True) -> Ran:
    return run("lessons", "sync", cwd=clone, check=check)


def injected(clone: Path, prompt: str) -> str:
    event = {"hook_event_name": "UserPromptSubmit", "prompt": prompt, "cwd": str(clone)}
    out = run(
        "lessons-hook", cwd=clone, stdin=json.dumps(event), env={"LESSONS_DEADLINE_MS": "9000"}
    )
    return str(out.json["hookSpecificOutput"]["additionalContext"]) if out.out else ""


# hooks


def test_after_a_pull_the_other_agent_gets_it(
    team: tuple[Path, Path], with_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada, bob = team
    run("lessons", "index", cwd=bob)
    text = "The deploy job hangs at connecting unless the runner is on the VPN."
    write(ada / "lessons/devops/vpn.md", lesson_text("Staging deploys need the VPN", text))
    save(ada, "vpn")
    run("git", "push", "-q", cwd=ada)
    run("git", "pull", "-q", cwd=bob)
    assert "needs the VPN" not in injected(bob, "thanks")
    assert text in injected(bob, "why does the deploy job to staging hang at connecting to the VPN")


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


def test_the_vault_of_this_repository_has_them(tmp_path: Path) -> None:
    folder = Path(__file__).parent.parent / ".githooks"
    for name, text in git_hooks.HOOKS.items():
        if name != "pre-commit":  # that one lints the code, too
            assert (folder / name).read_text() == text
    assert 'exec lessons --vault "${0%/*}/.." check --staged' in (folder / "pre-commit").read_text()


def test_hooks_of_git_index_in_the_background(team: tuple[Path, Path]) -> None:
    _, bob = team
    run("lessons", "index", cwd=bob)
    vault = open_vault(bob)
    run("git", "switch", "-q", "-c", "other", cwd=bob)
    write(bob / "lessons/new.md", lesson_text("New", "Zyzzyva."))
    save(bob, "new")
    until = time.monotonic() + 20
    while vault.open_index().lessons != 3:
        assert time.monotonic() < until
        time.sleep(0.1)


def test_a_vault_in_a_folder_of_a_larger_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{BIN}:/usr/bin:/bin")
    root = tmp_path / "mono" / "team"
    run("git", "init", "-q", tmp_path / "mono", cwd=tmp_path)
    run("lessons", "init", root, cwd=tmp_path)
    assert run("git", "config", "core.hooksPath", cwd=root).out == "team/.githooks\n"
    write(root / "lessons/a.md", lesson_text("A", SECRETS[0]))
    for folder in (tmp_path / "mono", root):
        run("git", "add", "-A", cwd=folder)
        ran = run("git", "commit", "-q", "-m", "a secret", cwd=folder, check=False)
        assert ran.code == 1
        assert "lessons/a.md:4: secret: an AWS key" in ran.err
    write(root / "lessons/a.md", lesson_text("A", "No secret."))
    run("git", "commit", "-q", "-a", "-m", "no secret", cwd=root)
    run("lessons", "index", cwd=root)
    write(root / "lessons/b.md", lesson_text("B", "Another."))
    run("git", "add", "-A", cwd=root)
    run("git", "commit", "-q", "-m", "another", cwd=root)
    until = time.monotonic() + 20
    while open_vault(root).open_index().lessons != 2:
        assert time.monotonic() < until
        time.sleep(0.1)


# sync


def test_sync_tells_what_happened(team: tuple[Path, Path]) -> None:
    ada, bob = team
    write(ada / "lessons/a.md", lesson_text("A", "Of Ada."))
    save(ada, "a")
    assert sync(ada).out == (
        "fetched 0 commits of origin/main\nindexed 3 lessons\npushed 1 commit\n"
    )
    write(bob / "lessons/b.md", lesson_text("B", "Of Bob."))
    save(bob, "b")
    write(bob / "lessons/c.md", lesson_text("C", "A draft."))
    assert sync(bob).out == (
        "fetched 1 commit of origin/main\nput 1 commit of yours on top\nindexed 5 lessons\n"
        "pushed 1 commit\n1 changed file not committed, so only yours\n"
    )
    assert sync(bob).out.splitlines()[2] == "nothing to push"
    assert run("lessons", "sync", "--json", cwd=ada).json == {
        "branch": "main", "remote": "origin/main", "fetched": 1, "rebased": 0, "pushed": 0,
        "uncommitted": 0, "lessons": 4,
    }  # fmt: skip
    log = run("git", "log", "--format=%s", cwd=ada).out.split("\n")
    assert log[:3] == ["b", "a", "a vault"]


def test_two_add_sections_and_change_keys_of_one_file(team: tuple[Path, Path]) -> None:
    ada, bob = team
    for clone, section, key in (
        (ada, "Ada's", "confidence: 5"),
        (bob, "Bob's", "tags: [node, ci]"),
    ):
        name = key.split(":")[0]
        lines = [key if line.startswith(name) else line for line in TWO_LESSONS.splitlines()]
        text = "\n".join(lines) + f"\n\n## Lesson: {section}\nText of {section}\n"
        write(clone / "lessons/devops/heap.md", text)
        save(clone, section)
        sync(clone)
    sync(ada)
    assert (ada / "lessons/devops/heap.md").read_text() == (
        TWO_LESSONS.replace("confidence: 3", "confidence: 5").replace("[node]", "[node, ci]")
        + "\n## Lesson: Ada's\nText of Ada's\n\n## Lesson: Bob's\nText of Bob's\n"
    )


def test_a_conflict_changes_nothing_and_says_what_to_do(team: tuple[Path, Path]) -> None:
    ada, bob = team
    for clone in (ada, bob):
        text = TWO_LESSONS.replace("Raise the heap.", f"Says {clone.name}.")
        write(clone / "lessons/devops/heap.md", text)
        save(clone, clone.name)
    sync(ada)
    before = run("git", "rev-parse", "HEAD", cwd=bob).out
    ran = sync(bob, check=False)
    assert ran.code == 1
    assert ran.err.startswith(
        "Error: lessons/devops/heap.md was changed here and there in different ways; nothing was done\n"
        "Try: git pull --rebase, mend "
    )
    assert run("git", "rev-parse", "HEAD", cwd=bob).out == before
    assert run("git", "status", "--porcelain", cwd=bob).out == ""
    assert run("git", "worktree", "list", cwd=bob).out.count("\n") == 1
    # and what it says works
    run("git", "pull", "-q", "--rebase", cwd=bob, check=False)
    text = (bob / "lessons/devops/heap.md").read_text()
    assert "<<<<<<<" in text
    write(bob / "lessons/devops/heap.md", TWO_LESSONS)
    run("git", "add", "-A", cwd=bob)
    assert "a rebase is under way" in sync(bob, check=False).err
    run("git", "-c", "core.editor=true", "rebase", "--continue", cwd=bob, check=False)
    assert sync(bob).code == 0


def test_what_is_not_committed_stays_or_stops_it(team: tuple[Path, Path]) -> None:
    ada, bob = team
    write(ada / "lessons/devops/heap.md", TWO_LESSONS.replace("Raise", "Please raise"))
    save(ada, "please")
    sync(ada)
    write(bob / "code.py", "print('changed')\n")
    run("git", "add", "code.py", cwd=bob)
    write(bob / "lessons/mine.md", lesson_text("Mine", "A draft."))
    sync(bob)
    assert run("git", "status", "--porcelain", cwd=bob).out == "M  code.py\n?? lessons/mine.md\n"
    write(ada / "lessons/devops/heap.md", TWO_LESSONS)
    save(ada, "no")
    sync(ada)
    write(bob / "lessons/devops/heap.md", "Mine, not committed.\n")
    ran = sync(bob, check=False)
    assert "Error: what is not committed here is in the way: git checkout:" in ran.err
    assert (bob / "lessons/devops/heap.md").read_text() == "Mine, not committed.\n"


def test_a_secret_in_an_earlier_commit_is_not_pushed(team: tuple[Path, Path]) -> None:
    ada, _ = team
    write(ada / "lessons/b.md", lesson_text("B", SECRETS[0]))
    save(ada, "oops")
    write(ada / "lessons/b.md", lesson_text("B", "Clean."))
    save(ada, "take it out")
    ran = sync(ada, check=False)
    assert ran.code == 1
    assert ran.err.startswith("Error: not pushed: commit ")
    assert "b.md:4: an AWS key" in ran.err
    assert run("git", "rev-list", "--count", "origin/main..HEAD", cwd=ada).out == "2\n"


def test_in_a_shallow_clone_and_a_worktree(team: tuple[Path, Path], tmp_path: Path) -> None:
    ada, bob = team
    for number in range(3):
        write(ada / f"lessons/{number}.md", lesson_text(f"N{number}", "Text."))
        save(ada, str(number))
        sync(ada)
    shallow = tmp_path / "shallow"
    run(
        "git",
        "clone",
        "-q",
        "--depth",
        "1",
        f"file://{tmp_path / 'team.git'}",
        shallow,
        cwd=tmp_path,
    )
    write(shallow / "lessons/s.md", lesson_text("S", "Shallow."))
    save(shallow, "s")
    write(ada / "lessons/a.md", lesson_text("A", "Ahead."))
    save(ada, "a")
    sync(ada)
    assert "put 1 commit of yours on top" in sync(shallow).out
    tree = tmp_path / "tree"
    run("git", "worktree", "add", "-q", "-b", "topic", tree, "origin/main", cwd=bob)
    write(tree / "lessons/t.md", lesson_text("T", "Tree."))
    save(tree, "t")
    assert "pushed" in sync(tree).out


def test_where_it_cannot(team: tuple[Path, Path], tmp_path: Path) -> None:
    ada, _ = team
    run("git", "checkout", "-q", "--detach", cwd=ada)
    assert sync(ada, check=False).err.startswith("Error: no branch is checked out\n")
    run("git", "switch", "-q", "main", cwd=ada)
    shutil.rmtree(tmp_path / "team.git")
    ran = sync(ada, check=False)
    assert ran.code == 1
    assert ran.err.startswith("Error: git fetch: ")
    run("git", "remote", "remove", "origin", cwd=ada)
    assert "there is no remote to share the vault with" in sync(ada, check=False).err


def test_a_new_branch_is_pushed_and_followed(team: tuple[Path, Path]) -> None:
    ada, _ = team
    run("git", "switch", "-q", "-c", "topic", cwd=ada)
    write(ada / "lessons/t.md", lesson_text("T", "Text."))
    save(ada, "t")
    sync(ada)
    assert run("git", "rev-parse", "--abbrev-ref", "@{u}", cwd=ada).out == "origin/topic\n"


def test_git_merges_lessons_with_the_driver(team: tuple[Path, Path]) -> None:
    ada, _ = team
    vault: Vault = open_vault(ada)
    for branch, tag in (("one", "a"), ("two", "b")):
        run("git", "switch", "-q", "-c", branch, "main", cwd=ada)
        write(ada / "lessons/devops/heap.md", TWO_LESSONS.replace("[node]", f"[node, {tag}]"))
        save(ada, branch)
    run("git", "merge", "-q", "-m", "both", "one", cwd=ada)
    assert "tags: [node, a, b]\n" in (ada / "lessons/devops/heap.md").read_text()
    index.sync(vault)


def test_whatever_git_does_the_index_is_that_of_a_rebuild(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rebase, merge, checkout, stash, worktree, cherry-pick, reset: the benchmark's, but fewer."""
    monkeypatch.setenv("PATH", f"{BIN}:/usr/bin:/bin")
    vault = git_operations.repository(tmp_path / "with" / "team", seed=11, commits=100)
    plain = tmp_path / "without" / "team"
    shutil.copytree(vault.root, plain)
    git_hooks.set_up(vault.root)
    with watched(vault):
        done = {name for name, *_ in git_operations.operations(vault.root, plain, 11, count=30)}
        time.sleep(3)
        soon(lambda: not status(vault)["indexing"])
        time.sleep(1)
    assert len(done) >= 6
    assert_same_as_a_rebuild(vault)
