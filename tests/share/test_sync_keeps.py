"""`lessons sync` loses nothing: merge commits with changes of their own, and what is not committed."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.clones import copies_of_clones
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


def merge_with_a_change(bob: Path, path: str, text: str, *branches: str) -> None:
    """Merge branches that add a file each, and change another file in the merge commit."""
    for branch in branches:
        git(bob, "switch", "-q", "-c", branch, "main")
        write(bob / f"lessons/{branch}.md", f"Of {branch}.\n")
        save(bob, branch)
    git(bob, "switch", "-q", "main")
    write(bob / "lessons/own.md", "Mine.\n")
    save(bob, "own")
    run("git", "merge", "-q", "--no-commit", *branches, cwd=bob, check=False)
    write(bob / path, text)
    save(bob, "merge")


@pytest.mark.slow
@pytest.mark.parametrize("branches", [("topic",), ("one", "two")])
@pytest.mark.parametrize("path", ["lessons/p.md", "lessons/topic.md", "lessons/one.md"])
def test_what_was_changed_in_a_merge_commit_is_kept(
    pair: Pair, branches: tuple[str, ...], path: str
) -> None:
    ada, bob = pair
    merge_with_a_change(bob, path, "By hand.\n", *branches)
    others_push(ada, "lessons/b.md", "Of others.\n")
    done = remote.sync(open_vault(bob))
    assert (bob / path).read_text() == "By hand.\n"
    assert git(bob, "show", f"origin/main:{path}") == "By hand."
    assert git(bob, "show", "origin/main:lessons/b.md") == "Of others."
    assert (done.rebased, done.merged) == (0, 2 + len(branches))
    assert git(bob, "status", "--porcelain") == ""
    assert len(git(bob, "worktree", "list").splitlines()) == 1


@pytest.mark.slow
def test_a_plain_merge_commit_is_rebased_as_before(pair: Pair) -> None:
    ada, bob = pair
    git(bob, "switch", "-q", "-c", "topic")
    write(bob / "lessons/t.md", "Topic.\n")
    save(bob, "topic")
    git(bob, "switch", "-q", "main")
    write(bob / "lessons/own.md", "Mine.\n")
    save(bob, "own")
    git(bob, "merge", "-q", "-m", "both", "topic")
    others_push(ada, "lessons/b.md", "Of others.\n")
    done = remote.sync(open_vault(bob))
    assert (done.rebased, done.merged) == (3, 0)
    assert git(bob, "log", "-1", "--format=%s") == "both"


@pytest.mark.slow
def test_a_conflict_resolved_in_a_merge_is_not_resolved_again(pair: Pair) -> None:
    ada, bob = pair
    write(bob / "lessons/a.md", (bob / "lessons/a.md").read_text().replace("line 4", "mine 4"))
    save(bob, "mine")
    text = (ada / "lessons/a.md").read_text().replace("line 4", "theirs 4")
    write(ada / "lessons/a.md", text)
    save(ada, "theirs")
    git(ada, "push", "-q")
    run("git", "pull", "-q", "--no-rebase", cwd=bob, check=False)
    write(bob / "lessons/a.md", text.replace("theirs 4", "both 4"))
    save(bob, "resolved")
    others_push(ada, "lessons/b.md", "Of others.\n")
    assert remote.sync(open_vault(bob)).merged == 2
    assert "both 4" in git(bob, "show", "origin/main:lessons/a.md")


@pytest.mark.slow
def test_settings_of_the_user_change_no_other_branch(pair: Pair) -> None:
    ada, bob = pair
    for setting in ("updateRefs", "autoSquash", "autoStash", "rebaseMerges"):
        git(bob, "config", f"rebase.{setting}", "true")
    git(bob, "config", "merge.ff", "only")
    git(bob, "config", "rerere.enabled", "true")
    for name in ("one", "fixup! one"):
        write(bob / f"lessons/{name[-3:]}{len(name)}.md", "Mine.\n")
        save(bob, name)
    git(bob, "branch", "kept", "HEAD~")
    before = git(bob, "rev-parse", "kept")
    others_push(ada, "lessons/b.md", "Of others.\n")
    assert remote.sync(open_vault(bob)).rebased == 2
    assert git(bob, "rev-parse", "kept") == before
    assert git(bob, "log", "-2", "--format=%s") == "fixup! one\none"


@pytest.mark.slow
def test_what_is_there_in_both_is_told_by_the_merge(pair: Pair) -> None:
    """A commit that others took over and changed: the ends are in conflict, the commits are not."""
    ada, bob = pair
    text = (bob / "lessons/a.md").read_text()
    for clone in (ada, bob):
        write(clone / "lessons/a.md", text.replace("line 4", "shared 4"))
        save(clone, f"shared by {clone.name}")
    git(ada, "push", "-q")
    write(bob / "lessons/a.md", text.replace("line 4", "further 4"))
    save(bob, "further")
    assert remote.sync(open_vault(bob)).rebased == 2
    assert "further 4" in git(bob, "show", "origin/main:lessons/a.md")


@pytest.mark.slow
def test_below_a_merge_commit_nothing_is_taken_back_silently(pair: Pair) -> None:
    ada, bob = pair
    others_push(ada, "lessons/bad.md", "Taken back.\n")
    remote.sync(open_vault(bob))
    merge_with_a_change(bob, "lessons/p.md", "By hand.\n", "topic")
    git(ada, "reset", "-q", "--hard", "HEAD~")
    others_push(ada, "lessons/good.md", "Instead.\n")
    before = git(bob, "rev-parse", "HEAD")
    with pytest.raises(VaultError, match="merge commits hold; nothing was done") as raised:
        remote.sync(open_vault(bob))
    assert "git pull --rebase=merges" in raised.value.hint
    assert git(bob, "rev-parse", "HEAD") == before
    assert (bob / "lessons/p.md").exists()


# what is not committed


def _ignored(bob: Path) -> None:
    write(bob / "lessons/notes.log", "Mine.\n")


def _ignored_below(bob: Path) -> None:
    write(bob / "lessons/new/mine.log", "Mine.\n")


def _ignored_above(bob: Path) -> None:
    write(bob / "lessons/x.log", "Mine.\n")


def _link_above(bob: Path) -> None:
    (bob / "elsewhere").mkdir()
    (bob / "lessons/x.log").symlink_to(bob / "elsewhere")


def _deleted(bob: Path) -> None:
    (bob / "lessons/a.md").unlink()


def _staged(bob: Path) -> None:
    git(bob, "rm", "-q", "lessons/a.md")


def _assumed(bob: Path) -> None:
    git(bob, "update-index", "--assume-unchanged", "lessons/a.md")
    write(bob / "lessons/a.md", "Mine.\n")


def _skipped(bob: Path) -> None:
    git(bob, "update-index", "--skip-worktree", "lessons/a.md")
    write(bob / "lessons/a.md", "Mine.\n")


def _mode(bob: Path) -> None:
    (bob / "lessons/a.md").chmod(0o755)


def _folder(bob: Path) -> None:
    (bob / "lessons/a.md").unlink()
    write(bob / "lessons/a.md/mine", "Mine.\n")


def _intended(bob: Path) -> None:
    write(bob / "lessons/b.md", "Mine.\n")
    git(bob, "add", "-N", "lessons/b.md")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "theirs"),
    [
        (_ignored, "lessons/notes.log"),
        (_ignored_below, "lessons/new"),
        (_ignored_above, "lessons/x.log/deep/b.md"),
        (_link_above, "lessons/x.log/deep/b.md"),
        (_deleted, "lessons/a.md"),
        (_staged, "lessons/a.md"),
        (_assumed, "lessons/a.md"),
        (_skipped, "lessons/a.md"),
        (_mode, "lessons/a.md"),
        (_folder, "lessons/a.md"),
        (_intended, "lessons/b.md"),
    ],
)
@pytest.mark.parametrize("with_own", [False, True])
def test_what_is_not_committed_is_kept_and_stops_it(
    pair: Pair, change: Callable[[Path], None], theirs: str, with_own: bool
) -> None:
    ada, bob = pair
    if with_own:
        write(bob / "lessons/own.md", "Mine, committed.\n")
        save(bob, "own")
    others_push(ada, theirs, "Of others.\n")
    change(bob)
    before, head = state(bob), git(bob, "rev-parse", "HEAD")
    with pytest.raises(VaultError, match="what is not committed here is in the way: ") as raised:
        remote.sync(open_vault(bob))
    assert raised.value.hint.endswith("then lessons sync")
    assert state(bob) == before
    assert git(bob, "rev-parse", "HEAD") == head


def state(clone: Path) -> dict[str, object]:
    files = [one for one in clone.rglob("*") if ".git" not in one.parts and not one.is_dir()]
    status = git(clone, "status", "--porcelain")
    return {str(one): (one.lstat().st_mode, one.read_bytes()) for one in files} | {"": status}


@pytest.mark.slow
def test_what_others_do_not_touch_may_be_in_any_state(pair: Pair) -> None:
    ada, bob = pair
    others_push(ada, "lessons/b.md", "Of others.\n")
    others_push(ada, "lessons/x.md", "Of others.\n")
    git(ada, "rm", "-q", "lessons/gone.md")
    save(ada, "gone")
    git(ada, "push", "-q")
    _deleted(bob)
    _ignored(bob)
    (bob / "lessons/gone.md").unlink()  # deleted on both sides
    remote.sync(open_vault(bob))
    assert not (bob / "lessons/a.md").exists()
    assert not (bob / "lessons/gone.md").exists()
    assert (bob / "lessons/notes.log").read_text() == "Mine.\n"
    assert (bob / "lessons/b.md").exists()


@pytest.mark.slow
def test_a_sparse_checkout_is_no_deletion(pair: Pair) -> None:
    ada, bob = pair
    others_push(ada, "code/deep/x.py", "1\n")
    remote.sync(open_vault(bob))
    git(bob, "sparse-checkout", "set", "--cone", "lessons")
    others_push(ada, "code/deep/x.py", "2\n")
    assert remote.sync(open_vault(bob)).fetched == 1
    assert not (bob / "code").exists()


# at random


def _step(chance: random.Random, clone: Path, number: int) -> None:
    """Add a line, delete a file, or merge a branch, perhaps with a change in the merge commit."""
    line = f"{clone.name} {number}\n"
    file = (
        clone
        / f"lessons/{chance.choice('stuvw')}-{clone.name if chance.random() < 0.7 else 'all'}.md"
    )
    kind = chance.random()
    if kind < 0.4:
        at = chance.random() < 0.5
        old = file.read_text() if file.exists() else ""
        write(file, line + old if at else old + line)
        save(clone, line)
    elif kind < 0.5 and file.exists():
        file.unlink()
        save(clone, f"delete {file.name}")
    else:
        git(clone, "switch", "-q", "-c", f"t{number}", "HEAD~1" if kind > 0.8 else "HEAD")
        write(clone / f"lessons/topic-{clone.name}-{number}.md", f"topic {line}")
        save(clone, f"topic {number}")
        git(clone, "switch", "-q", "main")
        git(clone, "merge", "-q", "--no-ff", "--no-commit", f"t{number}")
        if kind > 0.65:
            write(clone / f"lessons/by-hand-{clone.name}-{number}.md", f"by hand {line}")
        save(clone, f"merge {number}")


def lines_of(clone: Path, revision: str) -> set[str]:
    return set(run("git", "grep", "-h", "", revision, "--", "lessons", cwd=clone).out.splitlines())


def ever_removed(clone: Path, revision: str, base: str) -> set[str]:
    """Lines that some commit after `base` took out."""
    log = run("git", "log", "-m", "-p", f"{base}..{revision}", cwd=clone).out.splitlines()
    return {line[1:] for line in log if line.startswith("-") and not line.startswith("---")}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_random_histories_come_together_without_a_loss(pair: Pair, seed: int) -> None:
    chance = random.Random(seed)
    number = 0
    for _ in range(4):
        for clone in pair:
            for _ in range(chance.randint(1, 4)):
                number += 1
                _step(chance, clone, number)
        for clone in chance.sample(pair, 2):
            git(clone, "fetch", "-q")
            old, new = git(clone, "rev-parse", "HEAD"), git(clone, "rev-parse", "origin/main")
            base = git(clone, "merge-base", old, new)
            wanted = lines_of(clone, old) | lines_of(clone, new)
            removed = ever_removed(clone, old, base) | ever_removed(clone, new, base)
            try:
                remote.sync(open_vault(clone))
            except VaultError as error:
                assert "in different ways; nothing was done" in error.message  # noqa: PT017
                assert git(clone, "rev-parse", "HEAD") == old
                run("git", "merge", "-q", "-X", "ours", "--no-commit", new, cwd=clone, check=False)
                save(clone, f"resolved {number}")
                continue
            tip = lines_of(clone, "origin/main")
            assert tip == lines_of(clone, "HEAD")
            assert wanted - tip <= removed
