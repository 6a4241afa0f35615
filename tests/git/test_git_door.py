"""How we call git: of the hooks in a repository a push alone runs its own, and no file of a work tree is
taken for git's settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.commands import run
from tests.support.files import commit, lesson_text, write
from vault_index import git

HOOKS = ("pre-commit", "post-checkout", "post-merge", "pre-push", "reference-transaction")


@pytest.fixture
def marking(tmp_path: Path) -> tuple[Path, Path]:
    """A program, and the file that it leaves a line in."""
    marks = tmp_path / "marks"
    program = write(tmp_path / "bin" / "mark", f'#!/bin/sh\necho "$0 $*" >> {marks}\nexit 1\n')
    program.chmod(0o755)
    return program, marks


@pytest.mark.slow
def test_a_folder_in_a_clone_that_looks_like_a_bare_repository_is_none(
    tmp_path: Path, marking: tuple[Path, Path]
) -> None:
    program, marks = marking
    root = tmp_path / "clone"
    run("git", "init", "-q", root, cwd=tmp_path)
    lessons = root / "lessons"
    write(lessons / "vault.toml", "")
    write(lessons / "heap.md", lesson_text("Heap", "Raise the heap."))
    write(lessons / "HEAD", "ref: refs/heads/main\n")
    write(lessons / "objects/.keep", "")
    write(lessons / "refs/.keep", "")
    write(
        lessons / "config", f"[core]\nfsmonitor = {program}\nworktree = {tmp_path}\nbare = false\n"
    )
    commit(root)
    for words in (("index",), ("status",), ("log", "heap"), ("check",)):
        run("lessons", *words, cwd=lessons, check=False)
    assert not marks.exists()


@pytest.mark.slow
def test_core_worktree_moves_no_work_tree(tmp_path: Path) -> None:
    outside = write(tmp_path / "outside" / "lessons" / "heap.md", "mine\n").parent.parent
    root = tmp_path / "copied"
    remote = tmp_path / "remote.git"
    run("git", "init", "-q", "--bare", "-b", "main", remote, cwd=tmp_path)
    run("git", "clone", "-q", remote, root, cwd=tmp_path)
    run("git", "switch", "-q", "-c", "main", cwd=root)
    write(root / "lessons/vault.toml", "")
    write(root / "lessons/heap.md", lesson_text("Heap", "Raise the heap."))
    commit(root)
    run("git", "push", "-q", "-u", "origin", "main", cwd=root)
    other = tmp_path / "other"
    run("git", "clone", "-q", remote, other, cwd=tmp_path)
    write(other / "lessons/heap.md", lesson_text("Heap", "Raise it further."))
    commit(other)
    run("git", "push", "-q", cwd=other)
    run("git", "config", "core.worktree", outside, cwd=root)
    run("lessons", "sync", cwd=root)
    assert (outside / "lessons/heap.md").read_text() == "mine\n"
    assert "further" in (root / "lessons/heap.md").read_text()


@pytest.mark.slow
def test_a_sync_runs_a_pre_push_hook_and_no_other(
    tmp_path: Path, marking: tuple[Path, Path]
) -> None:
    program, marks = marking
    remote, root = tmp_path / "remote.git", tmp_path / "mine"
    run("git", "init", "-q", "--bare", "-b", "main", remote, cwd=tmp_path)
    run("git", "init", "-q", "-b", "main", root, cwd=tmp_path)
    run("git", "remote", "add", "origin", remote, cwd=root)
    write(root / "lessons/vault.toml", "")
    commit(root)
    for name in HOOKS:
        write(root / f".git/hooks/{name}", f"#!/bin/sh\nexec {program} {name}\n").chmod(0o755)
    ran = run("lessons", "sync", cwd=root, check=False)
    assert ran.code == 1
    assert "git push" in ran.err
    assert {line.split()[1] for line in marks.read_text().splitlines()} == {"pre-push"}
    assert run("git", "for-each-ref", cwd=remote).out == ""


def test_the_author_of_commits_is_named_as_git_names_him(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("git", "init", "-q", cwd=tmp_path)
    for key, value in (("user.name", "Ada"), ("author.name", "Countess"), ("", "Grace")):
        if key:
            monkeypatch.delenv("GIT_AUTHOR_NAME", raising=False)
            run("git", "config", key, value, cwd=tmp_path)
        else:
            monkeypatch.setenv("GIT_AUTHOR_NAME", value)
        write(tmp_path / "who", value)
        commit(tmp_path, value)
        said = run("git", "log", "-1", "--format=%an", cwd=tmp_path).out.strip()
        assert git.author_name(tmp_path) == said == value
