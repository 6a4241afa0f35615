"""`lessons sync` loses nothing: merge commits, and what is not committed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.share.clones import copies_of_clones
from tests.support.commands import run
from tests.support.files import write
from vault_index.errors import VaultError
from vault_index.share import remote
from vault_index.vault import open_vault

Pair = tuple[Path, Path]


@pytest.fixture
def pair(tmp_path: Path, shelves: Path) -> Pair:
    """Two clones of one repository with a vault, without hooks."""
    shelf = shelves / "pair"
    if not shelf.exists():
        make_pair(shelf)
    return copies_of_clones(shelf, tmp_path)


def make_pair(folder: Path) -> None:
    folder.mkdir()
    bare, ada, bob = folder / "team.git", folder / "ada", folder / "bob"
    run("git", "init", "-q", "--bare", "-b", "main", bare, cwd=folder)
    run("git", "clone", "-q", bare, ada, cwd=folder)
    run("git", "switch", "-q", "-c", "main", cwd=ada)
    write(ada / "lessons/vault.toml", "")
    write(ada / "lessons/a.md", "".join(f"line {n}\n" for n in range(9)))
    save(ada, "first")
    write(ada / "lessons/gone.md", "To be deleted.\n")
    write(ada / ".gitignore", "*.log\n.vault_index/\n")
    save(ada, "start")
    run("git", "push", "-q", "-u", "origin", "main", cwd=ada)
    run("git", "clone", "-q", bare, bob, cwd=folder)


def save(clone: Path, message: str) -> None:
    run("git", "add", "-A", cwd=clone)
    run("git", "commit", "-q", "-m", message, cwd=clone)


def others_push(ada: Path, path: str, text: str) -> None:
    """Have the other clone add to a file and push it."""
    file = ada / path
    write(file, (file.read_text() if file.exists() else "") + text)
    run("git", "add", "-f", path, cwd=ada)
    run("git", "commit", "-q", "-m", f"others: {path}", cwd=ada)
    run("git", "push", "-q", "--force", cwd=ada)


def git(clone: Path, *words: str) -> str:
    return run("git", *words, cwd=clone).out.strip()


@pytest.mark.slow
def test_a_merge_commit_of_yours_is_left_to_git(pair: Pair) -> None:
    ada, bob = pair
    git(bob, "switch", "-q", "-c", "topic")
    write(bob / "lessons/t.md", "Topic.\n")
    save(bob, "topic")
    git(bob, "switch", "-q", "main")
    git(bob, "merge", "-q", "--no-ff", "--no-commit", "topic")
    write(bob / "lessons/p.md", "By hand.\n")
    save(bob, "both")
    others_push(ada, "lessons/b.md", "Of others.\n")
    before = git(bob, "rev-parse", "HEAD")
    with pytest.raises(VaultError, match="a commit of yours is a merge") as raised:
        remote.sync(open_vault(bob))
    assert git(bob, "rev-parse", "HEAD") == before
    words = raised.value.hint.partition(", ")[0].split()
    run(*words, cwd=bob, env={"GIT_EDITOR": "true"})
    assert remote.sync(open_vault(bob)).pushed == 3
    assert git(bob, "show", "origin/main:lessons/p.md") == "By hand."


# what is not committed


NOTE, MINE = "lessons/a.md", "Mine.\n"


def _hidden(bob: Path, how: str) -> None:
    git(bob, "update-index", how, NOTE)
    write(bob / NOTE, MINE)


def _folder(bob: Path) -> None:
    (bob / NOTE).unlink()
    write(bob / NOTE / "mine", MINE)


def _intended(bob: Path) -> None:
    write(bob / "lessons/b.md", MINE)
    git(bob, "add", "-N", "lessons/b.md")


BELOW = "lessons/x.log/deep/b.md"
# what others push, and what hinders it
CHANGES: dict[str, tuple[str, Callable[[Path], object]]] = {
    "ignored": ("lessons/notes.log", lambda bob: write(bob / "lessons/notes.log", MINE)),
    "ignored below": ("lessons/new", lambda bob: write(bob / "lessons/new/mine.log", MINE)),
    "ignored above": (BELOW, lambda bob: write(bob / "lessons/x.log", MINE)),
    "link above": (BELOW, lambda bob: (bob / "lessons/x.log").symlink_to(bob.parent)),
    "deleted": (NOTE, lambda bob: (bob / NOTE).unlink()),
    "staged": (NOTE, lambda bob: git(bob, "rm", "-q", NOTE)),
    "assumed unchanged": (NOTE, lambda bob: _hidden(bob, "--assume-unchanged")),
    "skipped": (NOTE, lambda bob: _hidden(bob, "--skip-worktree")),
    "mode": (NOTE, lambda bob: (bob / NOTE).chmod(0o755)),
    "folder": (NOTE, _folder),
    "intended": ("lessons/b.md", _intended),
}


@pytest.mark.slow
@pytest.mark.parametrize(("theirs", "change"), CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("with_own", [False, True])
def test_what_is_not_committed_is_kept_and_stops_it(
    pair: Pair, theirs: str, change: Callable[[Path], object], with_own: bool
) -> None:
    ada, bob = pair
    if with_own:
        write(bob / "lessons/own.md", "Mine, committed.\n")
        save(bob, "own")
    others_push(ada, theirs, "Of others.\n")
    change(bob)
    before, head = state(bob), git(bob, "rev-parse", "HEAD")
    with pytest.raises(VaultError, match=r"in the way: lessons|would be overwritten"):
        remote.sync(open_vault(bob))
    assert state(bob) == before
    assert git(bob, "rev-parse", "HEAD") == head


def state(clone: Path) -> dict[str, object]:
    files = [one for one in clone.rglob("*") if ".git" not in one.parts and not one.is_dir()]
    status = git(clone, "status", "--porcelain")
    return {str(one): (one.lstat().st_mode, one.read_bytes()) for one in files} | {"": status}
