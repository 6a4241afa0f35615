"""A lesson that is not committed counts as new, whenever it says that it was written."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.commands import run
from tests.support.files import MakeVault, lesson_text, write
from vault_index.vault import Vault

pytestmark = pytest.mark.slow
LONG_AGO = {"GIT_AUTHOR_DATE": "2020-01-01T00:00:00Z", "GIT_COMMITTER_DATE": "2020-01-01T00:00:00Z"}
DATED = "---\ntitle: Heap of an old note\ncreated: 2019-01-01\n---\nRaise the heap.\n"


@pytest.fixture
def team(make_vault: MakeVault, text_only: None) -> Vault:
    vault = make_vault({"old.md": lesson_text("Old heap", "Raise the heap of node.")})
    run("git", "add", "-A", cwd=vault.root)
    run("git", "commit", "-qm", "old", "--no-verify", cwd=vault.root, env=LONG_AGO)
    write(vault.lessons_dir / "imported.md", DATED)
    return vault


def ids(vault: Vault, *words: str) -> list[str]:
    return [each["id"] for each in run("lessons", "list", "--json", *words, cwd=vault.root).json]


def test_a_dated_lesson_that_is_not_committed_is_new(team: Vault) -> None:
    """Issue 55, row 14."""
    assert ids(team, "--since", "30d") == ["imported"]
    assert ids(team, "--sort", "updated") == ["imported", "old"]
    found = run("lessons", "search", "--json", "--since", "30d", "heap", cwd=team.root).json["hits"]
    assert [hit["id"] for hit in found] == ["imported"]
    older = run("lessons", "search", "--json", "--until", "2024-01-01", "heap", cwd=team.root).json
    assert [hit["id"] for hit in older["hits"]] == ["old"]
    run("git", "add", "-A", cwd=team.root)
    run("git", "commit", "-qm", "then", "--no-verify", cwd=team.root, env=LONG_AGO)
    assert ids(team, "--since", "30d") == []


def test_outside_a_repository_its_own_date_counts(tmp_path: Path, text_only: None) -> None:
    write(tmp_path / "notes" / "lessons" / "vault.toml", "")
    for name, text in (("dated", DATED), ("undated", lesson_text("Heap", "Raise the heap."))):
        write(tmp_path / "notes" / "lessons" / f"{name}.md", text)
    listed = run("lessons", "list", "--json", "--since", "30d", cwd=tmp_path / "notes").json
    assert [each["id"] for each in listed] == ["undated"]
