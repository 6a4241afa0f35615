"""A quick pass leaves to a full one what can wait, and all is as in a rebuild, whoever was killed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import run
from tests.support.files import MakeVault, lesson_text, write
from tests.support.indexed import (
    HEAP,
    LOCK,
    PIPE,
    assert_alike,
    assert_same_as_a_rebuild,
    ids,
    with_words,
)
from tests.support.watchers import rows
from vault_index import files
from vault_index.index import reconcile
from vault_index.index.derived import DERIVED, Derived, Refreshed, Sources
from vault_index.retrieval import entries
from vault_index.store import manifest
from vault_index.store.lance import Table
from vault_index.store.schema import DOCUMENTS, SKILLS
from vault_index.vault import Vault

pytestmark = pytest.mark.slow

SKILL = "---\ndescription: Bake bread.\n---\n"


@contextmanager
def killed(where: object, name: str, new: object) -> Iterator[None]:
    """Put something in the place of what a pass calls, by which it ends as if it was killed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(where, name, new)
        with pytest.raises(KeyboardInterrupt):
            yield


def die(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


# authors and dates


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


def test_quick_passes_leave_to_a_full_one_who_wrote_what(team: Vault) -> None:
    for month, name in enumerate(["c.md", "a.md", "d.md", "c.md"], start=2):
        write(team.lessons_dir / name, lesson_text("Saved", f"In {month}."))
        reconcile.at_once(team, full=False)
        commit_in(team.root, month)
        reconcile.at_once(team, full=False)
    (team.lessons_dir / "b.md").unlink()
    reconcile.at_once(team, full=False)
    run("git", "checkout", "-q", "--", "lessons/b.md", cwd=team.root)
    reconcile.at_once(team, full=False)
    reconcile.sync(team)
    assert {entry.author for entry in entries.entries(team)} == {"Ada Lovelace"}
    assert_same_as_a_rebuild(team)


def test_a_quick_pass_killed_between_two_batches(
    team: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a.md", "b.md"):
        (team.lessons_dir / name).unlink()
    reconcile.at_once(team, full=False)
    run("git", "checkout", "-q", "--", "lessons", cwd=team.root)
    written: list[object] = []
    as_it_is = Table.replace

    def once(table: Table, *rest: Any) -> None:
        if written:
            die()
        written.append(rest)
        as_it_is(table, *rest)

    with monkeypatch.context() as patch, killed(Table, "replace", once):
        patch.setattr(reconcile, "BATCH_PASSAGES", 1)
        reconcile.at_once(team, full=False)
    (team.lessons_dir / "b.md").unlink()
    reconcile.sync(team)
    assert ids(team) == ["a"]
    assert entries.entry(team, "a").author == "Ada Lovelace"
    assert_same_as_a_rebuild(team)


@pytest.mark.parametrize("full", [True, False])
def test_a_pass_killed_after_it_wrote_rows(team: Vault, full: bool) -> None:
    (team.lessons_dir / "a.md").unlink()
    reconcile.sync(team)
    run("git", "checkout", "-q", "--", "lessons", cwd=team.root)
    as_it_is = Table.replace

    def once(table: Table, *rest: Any) -> None:
        as_it_is(table, *rest)
        die()

    with killed(Table, "replace", once):
        reconcile.at_once(team, full=full)
    reconcile.sync(team)
    assert entries.entry(team, "a").author == "Ada Lovelace"
    assert_same_as_a_rebuild(team)


# derived tables


@pytest.fixture
def filed(make_vault: MakeVault, monkeypatch: pytest.MonkeyPatch) -> Vault:
    """A vault with a lesson that is filed, one that is not, and a skill; indexed."""
    monkeypatch.setattr(files, "RACY_NS", 0)  # what was saved just now is not looked at again
    vault = make_vault({"devops/a.md": HEAP, "b.md": LOCK})
    write(vault.root / "skills/bake/SKILL.md", SKILL)
    with_words(vault)
    reconcile.sync(vault)
    return vault


def stale(vault: Vault) -> set[str]:
    """Return the names of the derived tables that are stale."""
    index = manifest.current(vault.index_dir)
    assert index is not None
    known = manifest.load(index)
    return {table.name for table in DERIVED if table.is_stale(vault, known)}


def change_all(vault: Vault) -> None:
    """Change what every derived table follows."""
    write(vault.lessons_dir / "b.md", lesson_text("A grafana dashboard", "Is red."))
    write(vault.lessons_dir / "development/c.md", lesson_text("New", "Text."))
    write(vault.root / "skills/bake/SKILL.md", SKILL.replace("bread", "a cake"))
    write(vault.root / "skills/fly/SKILL.md", SKILL.replace("Bake", "Fly to fetch"))


def assert_all_as_a_rebuild(vault: Vault) -> None:
    """Compare the lessons, and the tables that are derived from them."""
    derived = [rows(vault, schema) for schema in (DOCUMENTS, SKILLS)]
    assert_same_as_a_rebuild(vault)
    for before, schema in zip(derived, (DOCUMENTS, SKILLS), strict=True):
        assert_alike(before, rows(vault, schema))


def test_a_quick_pass_leaves_to_a_full_one_what_can_wait(filed: Vault) -> None:
    assert stale(filed) == set()
    change_all(filed)
    stats = reconcile.at_once(filed, full=False)
    assert (stats.changed, stats.added, stats.skills) == (1, 1, 2)
    assert stale(filed) == {"categories", "text index", "words", "places"}
    assert stats.owes
    assert reconcile.at_once(filed, full=False).owes, "whoever saved it"
    assert entries.entry(filed, "development/c").title == "New"
    stats = reconcile.sync(filed)
    assert (stats.unchanged, stats.refiled, stats.skills) == (3, 1, None)
    assert stale(filed) == set()
    assert not reconcile.at_once(filed, full=False).owes
    assert_all_as_a_rebuild(filed)


@pytest.mark.parametrize("table", DERIVED, ids=lambda table: table.name)
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_sync_killed_while_it_refreshes_one(filed: Vault, table: Derived, when: str) -> None:
    def refresh(sources: Sources) -> Refreshed:
        if when == "after":
            table.refresh(sources)
        raise KeyboardInterrupt

    change_all(filed)
    tables = [replace(each, refresh=refresh) if each is table else each for each in DERIVED]
    with killed(reconcile, "DERIVED", tables):
        reconcile.sync(filed)
    reconcile.sync(filed)
    assert stale(filed) == set()
    assert_all_as_a_rebuild(filed)


def test_a_skill_put_back_after_a_sync_that_was_killed(filed: Vault) -> None:
    write(filed.root / "skills/bake/SKILL.md", SKILL.replace("bread", "a cake"))
    with killed(manifest, "save", die):
        reconcile.sync(filed)
    write(filed.root / "skills/bake/SKILL.md", SKILL)
    reconcile.sync(filed)
    assert [row["text"] for row in rows(filed, SKILLS)] == ["Bake bread."]
