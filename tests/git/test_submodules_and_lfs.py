"""A submodule with settings of its own, and lessons kept in LFS: no program that they name is run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.commands import run
from tests.support.files import commit, lesson_text, write

HEAP = lesson_text("Heap", "The node build dies with heap out of memory: raise it.")
POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:{:064d}\nsize 12345\n"
PROGRAMS = (
    *("core.fsmonitor", "core.sshCommand", "core.pager", "core.editor", "core.askpass"),
    *("filter.lfs.clean", "filter.lfs.smudge", "filter.lfs.process"),
    *("diff.lfs.textconv", "diff.external", "gpg.program"),
)
HOOKS = ("post-checkout", "pre-commit", "post-index-change", "reference-transaction")
COMMANDS = (
    *(("search", "heap"), ("show", "heap"), ("log", "heap"), ("status",), ("check",), ("index",)),
    *(("sync",), ("show", "--at", "HEAD", "heap")),
)


@pytest.fixture
def mark(tmp_path: Path) -> Path:
    """A program; what it makes, if it is ever run, is beside it with the ending `.ran`."""
    program = tmp_path / "bin" / "mark"
    write(program, f"#!/bin/sh\necho $0 >> {program}.ran\ncat\n").chmod(0o755)
    for hook in HOOKS:
        write(tmp_path / "hooks" / hook, program.read_text()).chmod(0o755)
    return program


def turn_hostile(repository: Path, mark: Path) -> None:
    for name in PROGRAMS:
        run("git", "config", name, mark, cwd=repository)
    run("git", "config", "core.hooksPath", mark.parents[1] / "hooks", cwd=repository)
    run("git", "config", "filter.lfs.required", "true", cwd=repository)


def spend_a_day(root: Path) -> str:
    said = "".join(run("lessons", *words, cwd=root, check=False).err for words in COMMANDS)
    event = {"hook_event_name": "UserPromptSubmit", "prompt": "heap", "session_id": "s"}
    run("lessons-hook", cwd=root, stdin=json.dumps({**event, "cwd": str(root)}))
    return said


@pytest.mark.slow
def test_a_submodule_runs_nothing(tmp_path: Path, mark: Path, text_only: None) -> None:
    inner, outer = tmp_path / "inner", tmp_path / "outer"
    for each in (inner, outer):
        run("git", "init", "-q", each, cwd=tmp_path)
    write(inner / "heap.md", HEAP)
    write(inner / ".gitattributes", "*.md filter=lfs diff=lfs\n")
    commit(inner)
    files = ("-c", "protocol.file.allow=always")
    run("git", *files, "submodule", "--quiet", "add", inner, "lessons", cwd=outer)
    run("lessons", "init", cwd=outer)
    commit(outer)
    for repository in (outer, outer / "lessons"):
        turn_hostile(repository, mark)
    run("git", "config", "submodule.lessons.update", f"!{mark}", cwd=outer)
    (outer / "lessons" / "heap.md").touch()
    assert "Traceback" not in spend_a_day(outer)
    assert not mark.with_name("mark.ran").exists()


@pytest.mark.slow
def test_pointers_of_lfs_are_named_and_run_nothing(
    tmp_path: Path, mark: Path, text_only: None
) -> None:
    root = tmp_path / "team"
    run("git", "init", "-q", root, cwd=tmp_path)
    write(root / "lessons" / "heap.md", HEAP)
    for number in range(3):
        write(root / "lessons" / f"p{number}.md", POINTER.format(number))
    write(root / ".gitattributes", "*.md filter=lfs diff=lfs merge=lfs -text\n")
    commit(root)  # before the hook of a vault, which refuses pointers
    run("lessons", "init", cwd=root)
    turn_hostile(root, mark)
    for file in (root / "lessons").iterdir():
        file.touch()
    said = spend_a_day(root)
    for number in range(3):
        assert f"lessons/p{number}.md:1: a pointer to the text, which is not here" in said
    assert not mark.with_name("mark.ran").exists()
