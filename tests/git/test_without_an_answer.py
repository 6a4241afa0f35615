"""Where git does not answer - another user's repository, a broken one, no git - nobody is told that
there is nothing: each command says why, and what helps."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import Ran, run
from tests.support.files import commit, lesson_text, write
from tests.support.indexed import copy_of, full_text_vault
from tests.support.trust import HEAP, PROMPT, trusting
from vault_index import git
from vault_index.errors import (
    BrokenRepositoryError,
    GitError,
    GitRefusedError,
    GitTimeoutError,
    NoCommitError,
    NoGitError,
)
from vault_index.git import run as git_run
from vault_index.journal import excluded, projects
from vault_index.transcripts.moments import Moment
from vault_index.vault import open_vault

pytestmark = pytest.mark.slow

Break = Callable[[Path, pytest.MonkeyPatch], None]


def make_it_anothers(root: Path, patch: pytest.MonkeyPatch) -> None:
    patch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")  # git's own, of its tests


def lead_nowhere(root: Path, patch: pytest.MonkeyPatch) -> None:
    (root / ".git").rename(root.parent / "moved")
    write(root / ".git", "gitdir: /nowhere/at/all\n")


def empty_head(root: Path, patch: pytest.MonkeyPatch) -> None:
    """Above it is a good repository, which would answer in its place."""
    run("git", "init", "-q", "-b", "above", root.parent, cwd=root)
    commit_all = ("commit", "-q", "--no-verify", "--allow-empty", "-m", "of the one above")
    run("git", *commit_all, cwd=root.parent)
    write(root / ".git/HEAD", "")


def lose_the_branch(root: Path, patch: pytest.MonkeyPatch) -> None:
    write(root / ".git/refs/heads/main", "no hash\n")


def lose_the_objects(root: Path, patch: pytest.MonkeyPatch) -> None:
    for folder in (root / ".git/objects").glob("??"):
        shutil.rmtree(folder)


def hang(root: Path, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(git_run, "READING_SECONDS", 0.2)
    write(root.parent / "bin/git", "#!/bin/sh\nexec sleep 60\n").chmod(0o755)
    patch.setenv("PATH", f"{root.parent / 'bin'}:{os.environ['PATH']}")


def remove_git(root: Path, patch: pytest.MonkeyPatch) -> None:
    patch.setenv("PATH", str(root.parent / "nothing"))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An indexed vault with two commits: the second one deletes code and a lesson."""
    root = full_text_vault(tmp_path_factory.mktemp("made") / "team", {"heap.md": HEAP})
    run("git", "symbolic-ref", "HEAD", "refs/heads/main", cwd=root)
    write(root / "lessons/gone.md", lesson_text("Gone", "It was here."))
    write(root / "src/app.py", "x = 1\n")
    commit(root)
    (root / "src/app.py").unlink()
    (root / "lessons/gone.md").unlink()
    commit(root)
    return root


@pytest.fixture
def root(made: Path, tmp_path: Path, text_only: None) -> Path:
    return copy_of(made, tmp_path / "team").root


@pytest.fixture
def unindexed(root: Path) -> Path:
    shutil.rmtree(root / ".vault_index")
    return root


REASONS: list[tuple[Break, type[GitError], str, str]] = [
    (
        make_it_anothers,
        GitRefusedError,
        "git reads nothing of {root}, for it belongs to another user",
        "git config --global --add safe.directory {root}",
    ),
    (lead_nowhere, BrokenRepositoryError, "{root}/.git is broken: not a git repository", "status"),
    (
        empty_head,
        BrokenRepositoryError,
        "{root}/.git is broken: git does not take it for a repository",
        "git -C {root} status",
    ),
    (lose_the_branch, BrokenRepositoryError, "{root}/.git is broken: ", "git -C {root} fsck"),
    (lose_the_objects, BrokenRepositoryError, "bad object HEAD", "git -C {root} fsck"),
    (hang, GitTimeoutError, "did not answer in 0 s", "git -C {root} status"),
    (remove_git, NoGitError, "there is no git command here", "install git"),
]
# each asks git; what is false of a repository with commits
ASKING = [
    "log heap",
    "log gone",
    "show heap --at HEAD",
    "show heap --at 2030-01-01",
    "check --against HEAD",
    "learn --commit HEAD",
    "add --title New --text New. --commit",
]
FALSE = (
    "no commit",
    "not committed",
    "no branch",
    "nothing above",
    "no vault at",
    "names no commits",
)


@pytest.mark.parametrize(("break_it", "error", "what", "fix"), REASONS)
def test_every_command_says_why_git_does_not_answer(
    root: Path, monkeypatch: pytest.MonkeyPatch, break_it: Break, error: type[GitError],
    what: str, fix: str,
) -> None:  # fmt: skip
    break_it(root, monkeypatch)
    with pytest.raises(error):
        git.worktree(root)
    what, fix = what.format(root=root), fix.format(root=root)
    for words in ASKING:
        ran = run("lessons", *words.split(" "), cwd=root, check=False)
        assert (ran.code, words, ran.out) == (1, words, "")
        assert (what in ran.err, fix in ran.err) == (True, True), f"{words}: {ran.err}"
        assert not any(false in ran.err for false in FALSE), f"{words}: {ran.err}"
    status = run("lessons", "status", cwd=root)
    assert what in next(line for line in status.out.splitlines() if line.startswith("git  "))
    assert fix in status.out
    seen = run("lessons", "status", "--json", cwd=root).json["git"]
    assert (seen["branch"], seen["head"], what in seen["error"]) == ("", "", True)
    assert not (root / "lessons/new.md").exists()


@pytest.mark.parametrize(("break_it", "what"), [(each[0], each[2]) for each in REASONS])
def test_trust_in_commits_is_silent_in_hooks_and_says_why_in_a_terminal(
    root: Path, own_world: Path, monkeypatch: pytest.MonkeyPatch, break_it: Break, what: str
) -> None:
    trusting(own_world, 'trust = "committed-only"')
    assert "heap" in run("lessons", "recall", PROMPT, cwd=root).out
    break_it(root, monkeypatch)
    event = {"hook_event_name": "UserPromptSubmit", "prompt": PROMPT, "cwd": str(root)}
    soon = {"LESSONS_DEADLINE_MS": "3000"}  # a git that hangs is not waited for
    asked = json.dumps(event | {"session_id": "s"})
    hook = run("lessons-hook", cwd=root, stdin=asked, env=soon)
    assert (hook.code, hook.out) == (0, "")
    ran = run("lessons", "recall", PROMPT, cwd=root, check=False)
    assert (ran.code, ran.out) == (1, "")
    assert what.format(root=root) in ran.err


@pytest.mark.parametrize("break_it", [each[0] for each in REASONS])
def test_authors_are_unknown_and_nothing_is_called_uncommitted(
    unindexed: Path, monkeypatch: pytest.MonkeyPatch, break_it: Break
) -> None:
    root = unindexed
    break_it(root, monkeypatch)
    indexed = run("lessons", "index", cwd=root)
    assert "warning: authors are not known: " in indexed.err
    assert "author unknown" in run("lessons", "show", "heap", cwd=root).out
    assert "author unknown" in run("lessons", "recall", PROMPT, cwd=root).out


def test_authors_come_when_git_answers_again(
    unindexed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = unindexed
    with monkeypatch.context() as patch:
        make_it_anothers(root, patch)
        run("lessons", "index", cwd=root)
    run("lessons", "index", cwd=root)
    assert author(run("lessons", "show", "heap", "--json", cwd=root)) not in ("", "author unknown")


def author(shown: Ran) -> Any:
    return shown.json["author"]


@pytest.mark.parametrize("break_it", [make_it_anothers, lead_nowhere, hang, remove_git])
def test_a_check_says_what_it_could_not_check(
    root: Path, monkeypatch: pytest.MonkeyPatch, break_it: Break
) -> None:
    """Lessons are on disk, so they are checked; which skills git tracks elsewhere is not known."""
    break_it(root, monkeypatch)
    ran = run("lessons", "check", cwd=root, check=False)
    assert ran.code == 1
    assert ran.out.startswith(".git:1: not-checked: skills elsewhere in the repository")
    assert "2 files checked: 1 error" in ran.err
    assert run("lessons", "check", "lessons/heap.md", cwd=root).code == 0
    staged = run("lessons", "check", "--staged", cwd=root, check=False)
    assert (staged.code, staged.out) == (1, "")


def test_a_staged_lesson_whose_content_is_lost_is_not_called_empty(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(root / "lessons/new.md", lesson_text("New", "A new text."))
    run("git", "add", "-A", cwd=root)
    blob = run("git", "rev-parse", ":lessons/new.md", cwd=root).out.strip()
    (root / ".git/objects" / blob[:2] / blob[2:]).unlink()
    ran = run("lessons", "check", "--staged", cwd=root, check=False)
    assert (ran.code, "could not be read" in ran.err, "empty" in ran.out) == (1, True, False)


def test_a_lesson_is_deleted_though_git_does_not_answer(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_it_anothers(root, monkeypatch)
    assert "deleted heap" in run("lessons", "rm", "heap", "--yes", cwd=root).out


def test_what_git_ignores_is_not_guessed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A session that names files is not recorded where nobody knows which are ignored."""
    write(root / ".gitignore", ".env\n")
    said = [Moment("ran", "KEY=1", "cat .env")]
    assert ".env" not in str(excluded.Exclude().apply(said, str(root)))
    make_it_anothers(root, monkeypatch)
    with pytest.raises(GitError, match="what git ignores there is not known"):
        excluded.Exclude().apply(said, str(root))


def test_a_project_is_not_made_twice(
    root: Path, own_world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clone that moved is known by its first commit, so that must be read."""
    name = projects.project_of(own_world, str(root))
    moved = root.rename(tmp_path / "elsewhere")
    with monkeypatch.context() as patch:
        make_it_anothers(moved, patch)
        with pytest.raises(GitRefusedError):
            projects.project_of(own_world, str(moved))
    assert projects.project_of(own_world, str(moved)) == name


def test_a_links_origin_is_not_guessed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A link that a clone brought is not followed; whether it did is for git to say."""
    (root / ".claude").symlink_to(root.parent / "elsewhere", target_is_directory=True)
    make_it_anothers(root, monkeypatch)
    ran = run("lessons", "install", "claude", "--project", cwd=root, check=False)
    assert (ran.code, "safe.directory" in ran.err) == (1, True)


# What is no failure.


def test_a_repository_without_a_commit_is_none_of_these(tmp_path: Path, text_only: None) -> None:
    run("lessons", "init", tmp_path, cwd=tmp_path)
    write(tmp_path / "lessons/heap.md", HEAP)
    assert ", no commit yet, " in run("lessons", "status", cwd=tmp_path).out
    assert run("lessons", "log", "heap", cwd=tmp_path).err == "lessons/heap.md is not committed\n"
    assert "not committed" in run("lessons", "show", "heap", cwd=tmp_path).out
    with pytest.raises(NoCommitError):
        git.ask(tmp_path, "log")
    assert git.resolve(tmp_path, "HEAD") == git.at_date(tmp_path, "2030-01-01") == ""
    assert git.base_at(tmp_path, 2e9) == git.root_commit(tmp_path) == ""


def test_a_folder_in_no_repository_is_none_of_these(tmp_path: Path, text_only: None) -> None:
    write(tmp_path / "lessons/vault.toml", "")
    write(tmp_path / "lessons/heap.md", HEAP)
    assert "not a repository" in run("lessons", "status", cwd=tmp_path).out
    assert run("lessons", "check", cwd=tmp_path).code == 0
    assert git.resolve(tmp_path, "HEAD") == ""


def test_a_submodule_answers_for_itself_and_says_when_it_is_broken(
    root: Path, tmp_path: Path
) -> None:
    outer = tmp_path / "outer"
    run("git", "init", "-q", "-b", "main", outer, cwd=tmp_path)
    files = ("-c", "protocol.file.allow=always")
    run("git", *files, "submodule", "--quiet", "add", root, "vendor/team", cwd=outer)
    inner = outer / "vendor/team"
    head = run("git", "rev-parse", "--short", "HEAD", cwd=root).out.strip()
    assert git.worktree(inner / "lessons") == git.Worktree("main", head)
    assert git.ignored(outer.resolve(), ["vendor/team/.vault_index/x"]) == {
        "vendor/team/.vault_index/x"
    }
    shutil.rmtree(outer / ".git/modules")
    with pytest.raises(BrokenRepositoryError) as caught:
        git.worktree(inner)
    assert caught.value.hint.startswith("git submodule update --init")


def test_a_checkout_of_another_user_is_refused_by_the_real_git(root: Path) -> None:
    """As root sees a folder that is mounted into a container."""
    if os.geteuid():
        pytest.skip("only root can give a folder away")
    shutil.rmtree(root / ".vault_index")
    for path in (root, *root.rglob("*")):
        os.chown(path, 65534, 65534)
    ran = run("lessons", "sync", cwd=root, check=False)
    assert ran.err == (
        f"Error: git reads nothing of {root}, for it belongs to another user\n"
        f"Try: git config --global --add safe.directory {root}\n"
    )


def test_a_repository_that_may_not_be_looked_into_is_not_missed(root: Path) -> None:
    if os.geteuid():
        (root / ".git").chmod(0)
        assert git.top_of(root / "lessons") == root
        (root / ".git").chmod(0o755)
        return
    load = "import os; from vault_index.git.dotgit import top_of"  # others may not read our modules
    script = f"{load}; os.setgid(1); os.setuid(1); print(top_of({str(root)!r}))"
    for folder in (root, *root.parents):
        folder.chmod(folder.stat().st_mode | 0o055)
    (root / ".git").chmod(0o700)
    assert run(sys.executable, "-c", script, cwd=root).out == f"{root}\n"
    assert open_vault(root).root == root
