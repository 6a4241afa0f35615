"""What is read from git's plain files is what git says, or is left to git."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.commands import run
from tests.support.files import commit, write
from vault_index import git
from vault_index.git import dotgit


def said(root: Path, *words: str) -> str:
    return run("git", *words, cwd=root).out.strip()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "repo"
    run("git", "init", "-q", root, cwd=tmp_path)
    write(root / "a.txt", "a")
    commit(root, "first")
    return root


def index_v4(root: Path) -> None:
    said(root, "update-index", "--index-version", "4")


def split_index(root: Path) -> None:
    said(root, "update-index", "--split-index")


@pytest.mark.parametrize("name", [".vault_index/x", "sub/.VAULT_INDEX/deep/x", ".vault_index"])
@pytest.mark.parametrize("make", [Path, index_v4, split_index])
def test_what_is_tracked_is_seen_in_every_form_of_the_index(
    root: Path, make: Callable[[Path], object], name: str
) -> None:
    write(root / ".vault_foo", "x")
    write(root / name, "x")
    said(root, "add", "-f", "-A")
    make(root)
    folder = root / "sub" if name.startswith("sub") else root
    assert not dotgit.tracks_nothing_named(root, ".vault_index")
    assert git.is_tracked(folder, ".vault_index")
