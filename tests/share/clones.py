"""Two clones of one bare repository, as two people have them."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.support.commands import Ran, run
from tests.support.files import write

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


def two_clones(tmp_path: Path) -> tuple[Path, Path]:
    """Two clones of one bare repository, each set up by `lessons init`."""
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


def copies_of_clones(shelf: Path, folder: Path) -> tuple[Path, Path]:
    """Copy `team.git`, `ada` and `bob` of a folder into another, as if they had been cloned there."""
    shutil.copytree(shelf, folder, symlinks=True, dirs_exist_ok=True)
    for clone in (folder / "ada", folder / "bob"):
        config = clone / ".git" / "config"
        config.write_text(config.read_text().replace(f"{shelf}/", f"{folder}/"))
        run("git", "update-index", "-q", "--refresh", cwd=clone)  # the files are others
    return folder / "ada", folder / "bob"


def save(clone: Path, message: str) -> None:
    run("git", "add", "-A", cwd=clone)
    run("git", "commit", "-q", "--no-verify", "-m", message, cwd=clone)


def sync(clone: Path, check: bool = True) -> Ran:
    return run("lessons", "sync", cwd=clone, check=check)
