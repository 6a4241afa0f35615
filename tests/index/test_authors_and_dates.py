"""Authors and dates in the rows are those of a rebuild, whichever commits came and whoever was killed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import run
from tests.support.files import MakeVault, lesson_text, write
from tests.support.indexed import HEAP, PIPE, assert_same_as_a_rebuild, ids, with_words
from vault_index.index import reconcile
from vault_index.search import entries
from vault_index.store.lance import Table
from vault_index.vault import Vault


def commit_in(root: Path, month: int) -> None:
    """Commit everything, dated the first of a month of 2026."""
    when = f"2026-{month:02}-01T12:00:00+00:00"
    dated = {"GIT_AUTHOR_DATE": when, "GIT_COMMITTER_DATE": when}
    run("git", "add", "-A", cwd=root)
    run("git", "commit", "-q", "--allow-empty", "-m", "a change", cwd=root, env=dated)


@pytest.fixture
def team(make_vault: MakeVault) -> Vault:
    """Two lessons of January, `a` and `b`, indexed."""
    vault = make_vault({"a.md": HEAP, "b.md": PIPE})
    commit_in(vault.root, 1)
    with_words(vault)
    reconcile.sync(vault)
    return vault


@pytest.mark.slow
def test_quick_passes_leave_to_a_full_one_who_wrote_what(team: Vault) -> None:
    for month, name in enumerate(["c.md", "a.md", "d.md", "c.md"], start=2):
        write(team.lessons_dir / name, lesson_text("Saved", f"In {month}."))
        reconcile.sync(team, full=False)
        commit_in(team.root, month)
        reconcile.sync(team, full=False)
    (team.lessons_dir / "b.md").unlink()
    reconcile.sync(team, full=False)
    run("git", "checkout", "-q", "--", "lessons/b.md", cwd=team.root)
    reconcile.sync(team, full=False)
    reconcile.sync(team)
    assert {entry["author"] for entry in entries.entries(team)} == {"Ada Lovelace"}
    assert_same_as_a_rebuild(team)


@pytest.mark.slow
def test_a_quick_pass_killed_between_two_batches(
    team: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a.md", "b.md"):
        (team.lessons_dir / name).unlink()
    reconcile.sync(team, full=False)
    run("git", "checkout", "-q", "--", "lessons", cwd=team.root)
    written: list[object] = []
    replace = Table.replace

    def killed(table: Table, *rest: Any) -> None:
        if written:
            raise KeyboardInterrupt
        written.append(rest)
        replace(table, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(reconcile, "BATCH_PASSAGES", 1)
        patch.setattr(Table, "replace", killed)
        with pytest.raises(KeyboardInterrupt):
            reconcile.sync(team, full=False)
    (team.lessons_dir / "b.md").unlink()
    reconcile.sync(team)
    assert ids(team) == ["a"]
    assert entries.entry(team, "a")["author"] == "Ada Lovelace"
    assert_same_as_a_rebuild(team)


@pytest.mark.slow
@pytest.mark.parametrize("full", [True, False])
def test_a_pass_killed_after_it_wrote_rows(
    team: Vault, monkeypatch: pytest.MonkeyPatch, full: bool
) -> None:
    (team.lessons_dir / "a.md").unlink()
    reconcile.sync(team)
    run("git", "checkout", "-q", "--", "lessons", cwd=team.root)
    replace = Table.replace

    def killed(table: Table, *rest: Any) -> None:
        replace(table, *rest)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Table, "replace", killed)
        with pytest.raises(KeyboardInterrupt):
            reconcile.sync(team, full=full)
    reconcile.sync(team)
    assert entries.entry(team, "a")["author"] == "Ada Lovelace"
    assert_same_as_a_rebuild(team)
