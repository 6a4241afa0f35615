"""Derived tables: stale after a quick pass, fresh after a full one, and right whoever was killed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.files import MakeVault, lesson_text, write
from tests.support.indexed import HEAP, LOCK, assert_alike, assert_same_as_a_rebuild, with_words
from tests.support.watchers import rows
from vault_index import files
from vault_index.index import reconcile
from vault_index.index.derived import DERIVED, Derived, Refreshed, Sources
from vault_index.search import entries
from vault_index.store import manifest
from vault_index.store.schema import DOCUMENTS, SKILLS
from vault_index.vault import Vault

SKILL = "---\ndescription: Bake bread.\n---\n"


@pytest.fixture
def team(make_vault: MakeVault, monkeypatch: pytest.MonkeyPatch) -> Vault:
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


@pytest.mark.slow
def test_a_quick_pass_leaves_to_a_full_one_what_can_wait(team: Vault) -> None:
    assert stale(team) == set()
    change_all(team)
    stats = reconcile.sync(team, full=False)
    assert (stats.changed, stats.added, stats.skills) == (1, 1, 2)
    assert stale(team) == {"categories", "text index", "places"}
    assert entries.entry(team, "development/c")["title"] == "New"
    stats = reconcile.sync(team)
    assert (stats.unchanged, stats.refiled, stats.skills) == (3, 1, None)
    assert stale(team) == set()
    assert_all_as_a_rebuild(team)


@pytest.mark.slow
@pytest.mark.parametrize("table", DERIVED, ids=lambda table: table.name)
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_sync_killed_while_it_refreshes_one(
    team: Vault, monkeypatch: pytest.MonkeyPatch, table: Derived, when: str
) -> None:
    def killed(sources: Sources) -> Refreshed:
        if when == "after":
            table.refresh(sources)
        raise KeyboardInterrupt

    change_all(team)
    with_kill = [replace(each, refresh=killed) if each is table else each for each in DERIVED]
    with monkeypatch.context() as patch:
        patch.setattr(reconcile, "DERIVED", with_kill)
        with pytest.raises(KeyboardInterrupt):
            reconcile.sync(team)
    reconcile.sync(team)
    assert stale(team) == set()
    assert_all_as_a_rebuild(team)


@pytest.mark.slow
def test_a_skill_put_back_after_a_sync_that_was_killed(
    team: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(team.root / "skills/bake/SKILL.md", SKILL.replace("bread", "a cake"))

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(manifest, "save", killed)
        with pytest.raises(KeyboardInterrupt):
            reconcile.sync(team)
    write(team.root / "skills/bake/SKILL.md", SKILL)
    reconcile.sync(team)
    assert [row["text"] for row in rows(team, SKILLS)] == ["Bake bread."]
