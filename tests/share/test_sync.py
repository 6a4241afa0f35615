"""`lessons sync`: what two people commit comes together, and nothing of it is lost."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.share.clones import TWO_LESSONS, copies_of_clones, save, sync, two_clones
from tests.support.commands import PATH, run
from tests.support.files import lesson_text, write
from vault_index.share import remote as share
from vault_index.vault import open_vault

pytestmark = pytest.mark.slow


@pytest.fixture
def team(tmp_path: Path, shelves: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Two clones of one bare repository, each set up by `lessons init`."""
    monkeypatch.setenv("PATH", PATH)
    shelf = shelves / "two clones"
    if not shelf.exists():
        shelf.mkdir()
        two_clones(shelf)
    return copies_of_clones(shelf, tmp_path)


def test_sync_tells_what_happened(team: tuple[Path, Path]) -> None:
    ada, bob = team
    write(ada / "lessons/a.md", lesson_text("A", "Of Ada."))
    save(ada, "a")
    assert sync(ada).out == "origin/main: pushed 1 commit; 3 lessons\n"
    write(bob / "lessons/b.md", lesson_text("B", "Of Bob."))
    save(bob, "b")
    write(bob / "lessons/c.md", lesson_text("C", "A draft."))
    assert sync(bob).out == (
        "origin/main: fetched 1 commit, put 1 commit of yours on top, pushed 1 commit; 5 lessons\n"
        "not shared: 1 uncommitted file; git add lessons && git commit, then lessons sync\n"
    )
    assert sync(bob).out.startswith("origin/main: nothing new; ")
    assert run("lessons", "sync", "--json", cwd=ada).json == {
        "branch": "main", "remote": "origin/main", "fetched": 1, "rebased": 0, "dropped": 0,
        "pushed": 0, "uncommitted": 0, "lessons": 4,
    }  # fmt: skip
    log = run("git", "log", "--format=%s", cwd=ada).out.split("\n")
    assert log[:3] == ["b", "a", "a vault"]


def test_a_full_disk_is_named_and_the_files_are_as_before(
    team: tuple[Path, Path], tmp_path: Path
) -> None:
    """A `git` stands before the real one that says at one step what git says on a full disk."""
    ada, bob = team
    for clone, name in ((ada, "a"), (bob, "b")):
        write(clone / f"lessons/{name}.md", lesson_text(name, "Text."))
        save(clone, name)
    sync(ada)
    says = "fatal: cannot lock ref: file 'index.lock' write error. Out of diskspace"
    full = f'#!/bin/sh\ncase " $* " in *" rebase --quiet "*) echo "{says}" >&2; exit 128;; esac\n'
    write(tmp_path / "bin/git", f'{full}exec "{shutil.which("git")}" "$@"\n').chmod(0o755)
    env = {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}
    failed = run("lessons", "sync", cwd=bob, env=env, check=False)
    assert (failed.code, len(failed.err.splitlines())) == (1, 2)
    assert "Out of diskspace" in failed.err
    assert failed.err.endswith("Try: free some space\n")
    assert run("git", "status", "--short", cwd=bob).out == ""
    assert "pushed 1 commit" in sync(bob).out


def test_two_add_tags_and_change_sections_of_one_file(team: tuple[Path, Path]) -> None:
    ada, bob = team
    for clone, tag, text in (
        (ada, "ci", "Raise the heap."),
        (bob, "heap", "Install before you copy."),
    ):
        changed = TWO_LESSONS.replace("[node]", f"[node, {tag}]").replace(text, f"{text} Really.")
        write(clone / "lessons/devops/heap.md", changed)
        save(clone, tag)
        sync(clone)
    sync(ada)
    wanted = TWO_LESSONS.replace("[node]", "[node, ci, heap]").replace(".\n", ". Really.\n")
    assert (ada / "lessons/devops/heap.md").read_text() == wanted


def test_a_conflict_changes_nothing_and_says_what_to_do(team: tuple[Path, Path]) -> None:
    ada, bob = team
    for clone in (ada, bob):
        text = TWO_LESSONS.replace("Raise the heap.", f"Says {clone.name}.")
        write(clone / "lessons/devops/heap.md", text)
        save(clone, clone.name)
    sync(ada)
    write(bob / "code.py", "print('not committed')\n")
    run("git", "add", "code.py", cwd=bob)
    before = run("git", "rev-parse", "HEAD", cwd=bob).out
    ran = sync(bob, check=False)
    assert ran.code == 1
    assert ran.err.startswith(
        "Error: lessons/devops/heap.md was changed here and there in different ways;"
        " nothing was changed\n"
        "Try: git pull --rebase --autostash, edit what is between "
    )
    assert run("git", "rev-parse", "HEAD", cwd=bob).out == before
    assert run("git", "status", "--porcelain", cwd=bob).out == "M  code.py\n"
    assert run("git", "stash", "list", cwd=bob).out == ""
    # and what it says works
    run("git", "pull", "-q", "--rebase", "--autostash", cwd=bob, check=False)
    text = (bob / "lessons/devops/heap.md").read_text()
    assert "<<<<<<<" in text
    write(bob / "lessons/devops/heap.md", TWO_LESSONS)
    run("git", "add", "-A", cwd=bob)
    said = sync(bob, check=False).err
    assert "a rebase is under way" in said
    assert (
        "Try: git rebase --abort, then lessons sync; or finish it, if you began it: --continue runs"
        in said
    )
    run("git", "-c", "core.editor=true", "rebase", "--continue", cwd=bob, check=False)
    assert sync(bob).code == 0
    assert run("git", "status", "--porcelain", cwd=bob).out == " M code.py\n"


def test_what_the_remote_took_back_is_not_pushed_again(team: tuple[Path, Path]) -> None:
    ada, bob = team
    write(ada / "lessons/bad.md", lesson_text("Bad", "Taken back."))
    save(ada, "bad")
    sync(ada)
    sync(bob)
    run("git", "reset", "-q", "--hard", "HEAD~", cwd=ada)
    write(ada / "lessons/good.md", lesson_text("Good", "Instead."))
    save(ada, "good")
    run("git", "push", "-q", "--force", cwd=ada)
    assert "dropped 1 commit that origin/main took back; " in sync(bob).out
    assert not (bob / "lessons/bad.md").exists()
    run("git", "push", "-q", "--force", "origin", "HEAD~:main", cwd=ada)
    write(bob / "lessons/b.md", lesson_text("B", "Of Bob."))
    save(bob, "b")
    assert "pushed 1 commit" in sync(bob).out
    log = run("git", "log", "--format=%s", "origin/main", cwd=bob).out.split("\n")
    assert log[:2] == ["b", "a vault"]


def test_six_at_once(team: tuple[Path, Path], tmp_path: Path) -> None:
    clones = []
    for number in range(6):
        clone = tmp_path / f"clone{number}"
        run("git", "clone", "-q", tmp_path / "team.git", clone, cwd=tmp_path)
        write(clone / f"lessons/{number}.md", lesson_text(f"N{number}", f"Text {number}."))
        save(clone, str(number))
        clones.append(clone)
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda clone: share.sync(open_vault(clone)), clones))
    assert run("git", "rev-list", "--count", "main", cwd=tmp_path / "team.git").out == "7\n"


def test_it_pushes_to_no_branch_that_nobody_named(team: tuple[Path, Path]) -> None:
    ada, bob = team
    run("git", "switch", "-q", "-c", "feature", "--track", "main", cwd=ada)
    write(ada / "lessons/f.md", lesson_text("F", "Text."))
    save(ada, "f")
    assert sync(ada).out.startswith("origin/feature: pushed 1 commit; ")
    run("git", "fetch", "-q", cwd=bob)
    run("git", "switch", "-q", "-c", "topic", "origin/main", cwd=bob)
    assert sync(bob, check=False).err == (
        "Error: topic follows origin/main, which has another name\n"
        "Try: git branch --unset-upstream, and lessons sync shares it as origin/topic; "
        "or git config push.default upstream, and it goes to main\n"
    )
    run("git", "config", "push.default", "upstream", cwd=bob)
    assert sync(bob).code == 0
    run("git", "config", "remote.pushDefault", "fork", cwd=bob)
    assert "is for pull requests" in sync(bob, check=False).err
    run("git", "tag", "feature", cwd=ada)
    write(ada / "lessons/f.md", lesson_text("F", "A tag of the same name."))
    save(ada, "f")
    assert "pushed 1 commit" in sync(ada).out


def test_where_it_cannot(team: tuple[Path, Path], tmp_path: Path) -> None:
    ada, _ = team
    run("git", "switch", "-q", "--orphan", "fresh", cwd=ada)
    write(ada / "lessons/vault.toml", "")
    assert sync(ada, check=False).err == (
        "Error: nothing is committed here yet\n"
        "Try: git pull origin fresh, or git commit, then lessons sync\n"
    )
    (ada / "lessons/vault.toml").unlink()
    run("git", "checkout", "-q", "--detach", "main", cwd=ada)
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


def delete_a_lesson(clone: Path) -> None:
    (clone / "lessons/devops/heap.md").unlink()
    save(clone, "this lesson is wrong")


def delete_code(clone: Path) -> None:
    (clone / "code.py").unlink()
    save(clone, "no code")


def commit_nothing(clone: Path) -> None:
    run("git", "commit", "-q", "--no-verify", "--allow-empty", "-m", "run CI again", cwd=clone)


def make_executable(clone: Path) -> None:
    (clone / "code.py").chmod(0o755)
    save(clone, "a mode alone")


def merge_a_deletion(clone: Path) -> None:
    run("git", "switch", "-q", "-c", "topic", cwd=clone)
    delete_a_lesson(clone)
    run("git", "switch", "-q", "main", cwd=clone)
    run("git", "merge", "-q", "--no-ff", "--no-verify", "-m", "merge topic", "topic", cwd=clone)


def merge_nothing(clone: Path) -> None:
    run("git", "switch", "-q", "-c", "topic", cwd=clone)
    delete_code(clone)
    run("git", "switch", "-q", "main", cwd=clone)
    how = ("-s", "ours", "--no-verify", "-m", "not that")
    run("git", "merge", "-q", "--no-ff", *how, "topic", cwd=clone)


@pytest.mark.parametrize(
    ("change", "commits"),
    [
        (delete_a_lesson, "1 commit"),
        (delete_code, "1 commit"),
        (commit_nothing, "1 commit"),
        (make_executable, "1 commit"),
        (merge_a_deletion, "2 commits"),
        (merge_nothing, "2 commits"),
    ],
)
def test_commits_that_add_no_content_are_pushed(
    team: tuple[Path, Path], change: Callable[[Path], None], commits: str
) -> None:
    """What git prints of such commits is nothing: its exit status says whether it could read them."""
    ada, bob = team
    change(ada)
    assert sync(ada).out.startswith(f"origin/main: pushed {commits}; ")
    sync(bob)
    heads = [run("git", "rev-parse", "HEAD", cwd=clone).out for clone in (ada, bob)]
    assert heads[0] == heads[1]


def test_commits_that_git_cannot_read_are_not_pushed(team: tuple[Path, Path]) -> None:
    ada, _ = team
    write(ada / "lessons/a.md", lesson_text("A", "Text."))
    save(ada, "a")
    tree = run("git", "rev-parse", "HEAD^{tree}", cwd=ada).out.strip()
    (ada / ".git/objects" / tree[:2] / tree[2:]).unlink()
    failed = sync(ada, check=False)
    assert (failed.code, failed.out) == (1, "")
    assert "bad tree object" in failed.err
    assert failed.err.endswith("Try: git fsck\n")
