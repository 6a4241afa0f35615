"""What is still known of lessons that were deleted or renamed, and what a sync says of conflicts."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.support.commands import run
from tests.support.files import MakeVault, commit, lesson_text, write
from tests.support.given import given_to
from tests.support.terminals import at_terminal
from tests.support.watchers import soon, watched
from vault_index import status
from vault_index.entrypoints.cli import main
from vault_index.index import reconcile
from vault_index.vault import Vault, open_vault

SECTIONS = "## Lesson: Dates are UTC\nAlways.\n\n## Lesson: Names are short\nText.\n"


def lessons(*words: str, code: int = 0) -> Result:
    result = CliRunner().invoke(main, list(words))
    assert result.exit_code == code, result.output
    return result


@pytest.fixture
def team(make_vault: MakeVault, monkeypatch: pytest.MonkeyPatch) -> Vault:
    files = {"ops/heap.md": lesson_text("Raise the heap", "To 4 GB."), "dev/all.md": SECTIONS}
    vault = make_vault(files)
    monkeypatch.chdir(vault.root)
    monkeypatch.setenv("LESSONS_EMBEDDER", "none")
    commit(vault.root, "first")
    return open_vault(vault.root)


# deleted


def test_a_deleted_lesson_has_a_log_and_is_shown_as_it_was(team: Vault) -> None:
    lessons("rm", "heap", "--yes")
    commit(team.root, "heap is gone")
    ended = lessons("show", "ops/heap", code=1)
    gone = run("git", "rev-parse", "HEAD", cwd=team.root).out.strip()[:10]
    assert f"Error: ops/heap was deleted in commit {gone}\n" in ended.stderr
    hint = ended.stderr.partition("Try: lessons ")[2].split()
    assert hint == ["show", "ops/heap", "--at", f"{gone}~"]
    shown = lessons(*hint).stdout
    assert shown.startswith("Raise the heap\n[ops] lessons/ops/heap.md · Ada Lovelace, ")
    assert shown.endswith("\n\nTo 4 GB.\n")
    for name in ("heap", "lessons/ops/heap.md"):
        said = lessons("log", name)
        assert said.stderr == f"note: ops/heap was deleted in commit {gone}\n"
        assert [line.rpartition(": ")[2] for line in said.stdout.splitlines()] == [
            "heap is gone",
            "first",
        ]


def test_a_deleted_section_has_a_log(team: Vault) -> None:
    lessons("rm", "dates-are-utc", "--yes")
    commit(team.root, "no dates")
    said = lessons("log", "dev/all#dates-are-utc")
    assert said.stdout.splitlines()[0].endswith(": no dates")
    assert "was deleted in commit" in lessons("show", "all#dates-are-utc", code=1).stderr


@pytest.mark.parametrize(("id", "way"), [("ops/heap", "git"), ("dev/all#dates-are-utc", "lessons")])
@pytest.mark.parametrize("is_staged", [False, True])
def test_a_deletion_that_is_not_committed_is_known_and_comes_back(
    team: Vault, id: str, way: str, is_staged: bool
) -> None:
    text = lessons("show", id).stdout.rpartition("\n\n")[2]
    said = lessons("rm", id, "--yes").stderr.partition("to get it back: ")[2].strip()
    if is_staged:
        run("git", "add", "-A", cwd=team.root)
    log = lessons("log", id)
    assert log.stdout.endswith(": first\n")
    assert log.stderr == f"note: {id} was deleted since them\n"
    for words in (("show", id), ("edit", id), ("rm", id, "--yes")):
        ended = lessons(*words, code=1).stderr
        assert f"Error: the last commit has {id}, and it is no longer here\n" in ended
        assert ended.endswith(f"Try: {said}\n")
    assert said.startswith(f"{way} ")
    back = run(*shlex.split(said), cwd=team.root)
    assert text in (back.out if way == "lessons" else lessons("show", id).stdout)


def test_a_lesson_that_no_commit_has_is_said_to_be_lost(team: Vault) -> None:
    write(team.lessons_dir / "new.md", lesson_text("New", "Of today."))
    typed = [("[y/N]", "y\n")]
    _, shown = at_terminal("lessons", "rm", "new", cwd=team.root, typed=typed)
    assert "delete 'New' (lessons/new.md), which no commit has? [y/N]" in shown
    assert "to get it back" not in shown


def test_what_never_was_is_not_said_to_be_deleted(team: Vault) -> None:
    for words in (["show", "hoop"], ["log", "hoop"], ["log", "dev/all#hoop"]):
        ended = lessons(*words, code=1)
        assert "Error: no lesson " in ended.stderr
        assert "deleted" not in ended.stderr


# renamed


def used(vault: Vault) -> list[list[object]]:
    return [list(one) for one in status.of(vault)["injections"]["most_used"]]


def inject(vault: Vault, id: str) -> None:
    reconcile.sync(vault)
    given_to(vault, (id,))


@pytest.mark.slow
def test_a_lesson_that_moved_keeps_its_use(team: Vault) -> None:
    inject(team, "ops/heap")
    inject(team, "dev/all#dates-are-utc")
    since = status.of(team)["injections"]["since"]
    lessons("categories", "rename", "ops", "operations", "--write")
    reconcile.sync(team)
    assert used(team) == [["operations/heap", 1], ["dev/all#dates-are-utc", 1]] or used(team) == [
        ["dev/all#dates-are-utc", 1],
        ["operations/heap", 1],
    ]
    run("git", "mv", "lessons/dev", "lessons/rules", cwd=team.root)
    reconcile.sync(team)
    inject(team, "rules/all#dates-are-utc")
    assert used(team) == [["rules/all#dates-are-utc", 2], ["operations/heap", 1]]
    state = status.of(team)["injections"]
    assert (state["prompts"], state["since"]) == (3, since)


# sync


def two_sides(
    tmp_path: Path, team: Vault, theirs: Callable[[Path], object], ours: Callable[[Path], object]
) -> str:
    """Change a file on both sides, and return what `lessons sync` advises."""
    run("git", "clone", "-q", "--bare", team.root, tmp_path / "hub.git", cwd=tmp_path)
    run("git", "remote", "add", "origin", tmp_path / "hub.git", cwd=team.root)
    run("git", "clone", "-q", tmp_path / "hub.git", tmp_path / "other", cwd=tmp_path)
    theirs(tmp_path / "other" / "lessons/ops/heap.md")
    commit(tmp_path / "other", "theirs")
    run("git", "push", "-q", cwd=tmp_path / "other")
    ours(team.lessons_dir / "ops/heap.md")
    commit(team.root, "ours")
    return lessons("sync", code=1).stderr


@pytest.mark.slow
def test_sync_advises_to_edit_markers_where_there_are_some(tmp_path: Path, team: Vault) -> None:
    said = two_sides(
        tmp_path,
        team,
        lambda file: write(file, lesson_text("Raise the heap", "To 8 GB.")),
        lambda file: write(file, lesson_text("Raise the heap", "To 2 GB.")),
    )
    assert "was changed here and there in different ways" in said
    assert "edit what is between <<<<<<< and >>>>>>>, git add it (or git rm " in said


@pytest.mark.slow
def test_what_a_sync_brought_is_signed_at_once(tmp_path: Path, team: Vault) -> None:
    run("git", "clone", "-q", "--bare", team.root, tmp_path / "hub.git", cwd=tmp_path)
    run("git", "remote", "add", "origin", tmp_path / "hub.git", cwd=team.root)
    run("git", "clone", "-q", tmp_path / "hub.git", tmp_path / "other", cwd=tmp_path)
    with watched(team):
        for number in range(3):  # few enough to be indexed by the watcher itself
            write(
                tmp_path / f"other/lessons/ops/z{number}.md", lesson_text(f"Zebra {number}", "Q.")
            )
        commit(tmp_path / "other", "zebras")
        run("git", "push", "-q", cwd=tmp_path / "other")
        lessons("sync")
        found = lessons("search", "zebra").stdout
        assert found.count("· Ada Lovelace") == 3
        assert "not committed" not in found


# settings


@pytest.mark.slow
def test_a_broken_vault_toml_is_named_while_a_watcher_runs(team: Vault) -> None:
    with watched(team):
        lessons("list")
        write(team.lessons_dir / "vault.toml", "floor = \n")
        for words in (["list"], ["show", "heap"], ["categories"], ["search", "heap"]):
            assert "vault.toml: not TOML" in lessons(*words, code=1).stderr
        write(team.lessons_dir / "vault.toml", "floor = 0.5\n")
        soon(lambda: CliRunner().invoke(main, ["list"]).exit_code == 0)
