"""What is read from git's plain files is what git says, or is left to git."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.commands import run
from tests.support.files import commit, write
from vault_index import git
from vault_index.errors import ForeignIndexError
from vault_index.git import dotgit
from vault_index.vault import open_vault


def said(root: Path, *words: str) -> str:
    return run("git", *words, cwd=root).out.strip()


def loose(root: Path) -> Path:
    return root


def packed(root: Path) -> Path:
    said(root, "pack-refs", "--all")
    return root


def packed_and_moved_on(root: Path) -> Path:
    commit(packed(root) if write(root / "b.txt", "b") else root, "second")
    return root


def detached(root: Path) -> Path:
    said(root, "checkout", "-q", "--detach")
    return root


def deep_branch(root: Path) -> Path:
    said(root, "checkout", "-q", "-b", "ada/größe#1")
    return root


def linked(root: Path) -> Path:
    said(root, "worktree", "add", "-q", "-b", "other", str(root.parent / "linked"))
    commit(root.parent / "linked") if write(root.parent / "linked/c.txt", "c") else None
    return root.parent / "linked"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "repo"
    run("git", "init", "-q", root, cwd=tmp_path)
    write(root / "a.txt", "a")
    commit(root, "first")
    return root


@pytest.mark.parametrize(
    "make", [loose, packed, packed_and_moved_on, detached, deep_branch, linked]
)
def test_the_commit_checked_out_is_read_without_git(
    root: Path, make: Callable[[Path], Path]
) -> None:
    place = make(root)
    assert dotgit.head_of(place) == said(place, "rev-parse", "HEAD") == git.head(place)


def unborn(root: Path) -> None:
    said(root, "checkout", "-q", "--orphan", "new")


def a_linked_head(root: Path) -> None:
    """As old versions of git made it."""
    branch = said(root, "branch", "--show-current")
    (root / ".git/HEAD").unlink()
    (root / ".git/HEAD").symlink_to(f"refs/heads/{branch}")


def one_branch_for_another(root: Path) -> None:
    branch = said(root, "branch", "--show-current")
    said(root, "symbolic-ref", "refs/heads/alias", f"refs/heads/{branch}")
    said(root, "symbolic-ref", "HEAD", "refs/heads/alias")


@pytest.mark.parametrize("make", [unborn, a_linked_head, one_branch_for_another])
def test_what_is_unusual_is_left_to_git(root: Path, make: Callable[[Path], None]) -> None:
    make(root)
    assert dotgit.head_of(root) is None
    there = run("git", "rev-parse", "--verify", "-q", "HEAD", cwd=root, check=False).out.strip()
    assert (git.head(root) or "") == there


def test_a_head_that_leads_elsewhere_is_not_followed(root: Path, tmp_path: Path) -> None:
    write(tmp_path / "secret", "5e" * 20)
    for text in ("ref: refs/heads/../../../secret", f"ref: {tmp_path / 'secret'}", "junk"):
        write(root / ".git/HEAD", text)
        assert dotgit.head_of(root) is None


# what git tracks


def index_v4(root: Path) -> None:
    said(root, "update-index", "--index-version", "4")


def split_index(root: Path) -> None:
    said(root, "update-index", "--split-index")


@pytest.mark.parametrize("name", [".vault_index/x", "sub/.VAULT_INDEX/deep/x", ".vault_index"])
@pytest.mark.parametrize("make", [loose, index_v4, split_index])
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


def test_an_index_that_came_with_a_clone_is_still_refused(root: Path) -> None:
    write(root / "lessons/vault.toml", "")
    write(root / ".vault_index/current", "x")
    commit(root)
    with pytest.raises(ForeignIndexError, match="is tracked by git"):
        _ = open_vault(root).index_dir
