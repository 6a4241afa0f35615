"""Trust is about the text that is injected: is it what git has, and who committed that?"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.commands import run
from tests.support.files import MakeVault, commit, lesson_text, write
from tests.support.trust import HEAP, PROMPT, injected, trusting, vault_of_trust
from vault_index.config import load
from vault_index.index import reconcile
from vault_index.recall import select
from vault_index.retrieval import query
from vault_index.vault import Vault, open_vault

BROKEN = "---\ntitle: fine\ntags: one: two\n---\ntext\n"
UNTRUSTED = HEAP.replace("Raise", "Never mind, raise")


@pytest.fixture
def team(make_vault: MakeVault, own_world: Path) -> Vault:
    return vault_of_trust(make_vault, own_world)


def commit_as(root: Path, name: str) -> None:
    """Commit everything as somebody else."""
    run("git", "add", "-A", cwd=root)
    author = f"{name} <{name.lower()}@example.org>"
    run("git", "commit", "-q", "-m", f"by {name}", "--author", author, cwd=root)


@pytest.mark.slow
def test_committed_only(team: Vault, own_world: Path) -> None:
    assert injected(team) == ["heap"]
    trusting(own_world, 'trust = "committed-only"')
    assert injected(team) == ["heap"]
    write(team.lessons_dir / "mine.md", HEAP.replace("Raise", "Please raise"))
    assert injected(team) == ["heap"]
    assert {hit.lesson_id for hit in query.find(open_vault(team.root), PROMPT, k=2)} == {
        "heap",
        "mine",
    }
    write(team.lessons_dir / "heap.md", HEAP + "Changed, and not committed.\n")
    assert injected(team) == []
    run("git", "add", "-A", cwd=team.root)
    assert injected(team) == [], "staged is not committed"
    commit(team.root)
    assert sorted(injected(team)) == ["heap", "mine"]


@pytest.mark.slow
def test_only_of_authors_on_the_list(team: Vault, own_world: Path) -> None:
    trusting(own_world, 'trusted_authors = ["ada@example.org"]')
    assert injected(team) == ["heap"]
    trusting(own_world, 'trusted_authors = ["ADA lovelace"]')
    assert injected(team) == ["heap"]
    write(team.lessons_dir / "heap.md", HEAP + "And more.\n")
    commit_as(team.root, "Eve")
    assert injected(team) == []


@pytest.mark.slow
def test_an_author_counts_only_with_a_committer_on_the_list(
    team: Vault, own_world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit may name any author: `git commit --author "Ada <ada@example.org>"`."""
    trusting(own_world, 'trusted_authors = ["ada@example.org"]')
    write(team.lessons_dir / "heap.md", HEAP + "And more.\n")
    run("git", "add", "-A", cwd=team.root)
    with monkeypatch.context() as patch:
        patch.setenv("GIT_COMMITTER_NAME", "Eve")
        patch.setenv("GIT_COMMITTER_EMAIL", "eve@example.org")
        run("git", "commit", "-q", "-m", "x", cwd=team.root)
    assert injected(team) == []
    trusting(own_world, 'trusted_authors = ["ada@example.org", "EVE"]')
    assert injected(team) == ["heap"]


@pytest.mark.slow
def test_a_file_name_that_is_a_pattern_borrows_nobodys_trust(team: Vault, own_world: Path) -> None:
    trusting(own_world, 'trusted_authors = ["ada@example.org"]')
    (team.lessons_dir / "heap.md").rename(team.lessons_dir / "*.md")
    commit_as(team.root, "Eve")
    write(team.lessons_dir / "other/1.md", lesson_text("T1", "Of something else, changed by Ada."))
    commit(team.root)
    assert injected(team) == []


def test_a_vault_cannot_set_whom_to_trust(make_vault: MakeVault) -> None:
    vault = make_vault({})
    write(vault.lessons_dir / "vault.toml", 'trust = "all"\ntrusted_authors = ["eve"]\n')
    config = load(vault.lessons_dir / "vault.toml")
    assert [each.key for each in config.unknown_keys] == ["trust", "trusted_authors"]
    assert config.trusted_authors == ()


@pytest.mark.slow
def test_rows_of_an_untrusted_version_are_not_those_of_a_trusted_file(
    team: Vault, own_world: Path
) -> None:
    """A trusted author replaces text with what does not parse: its last good rows stay."""
    trusting(own_world, 'trusted_authors = ["ada@example.org"]')
    write(team.lessons_dir / "heap.md", UNTRUSTED)
    commit_as(team.root, "Eve")
    assert injected(team) == []
    write(team.lessons_dir / "heap.md", BROKEN)
    commit_as(team.root, "Ada")
    assert injected(team) == []
    assert query.find(open_vault(team.root), PROMPT)[0].lesson_id == "heap"


@pytest.mark.slow
def test_rows_of_a_draft_are_not_those_of_a_committed_file(team: Vault, own_world: Path) -> None:
    trusting(own_world, 'trust = "committed-only"')
    write(team.lessons_dir / "heap.md", UNTRUSTED)
    assert injected(team) == []
    write(team.lessons_dir / "heap.md", BROKEN)
    commit(team.root)
    assert injected(team) == []
    write(team.lessons_dir / "heap.md", HEAP)
    commit(team.root)
    assert injected(team) == ["heap"]
    write(team.lessons_dir / "heap.md", BROKEN)
    assert injected(team) == ["heap"], "the last good rows are what git has"


@pytest.mark.slow
def test_what_was_saved_after_the_index_was_made_lends_its_rows_no_trust(
    team: Vault, own_world: Path
) -> None:
    trusting(own_world, 'trust = "committed-only"')
    write(team.lessons_dir / "heap.md", UNTRUSTED)
    again = open_vault(team.root)
    reconcile.sync(again)
    write(team.lessons_dir / "heap.md", HEAP)  # as it is in HEAD; the index says otherwise
    assert not select.for_prompt(again, PROMPT).hits


@pytest.mark.slow
def test_a_filter_of_the_repository_makes_no_text_trusted(team: Vault, own_world: Path) -> None:
    """And it is not run."""
    trusting(own_world, 'trust = "committed-only"')
    ran = team.root / "ran"
    write(team.root / ".gitattributes", "*.md filter=clean\n")
    clean = f"sh -c 'touch {ran}; git cat-file blob HEAD:lessons/heap.md'"
    run("git", "config", "filter.clean.clean", clean, cwd=team.root)
    write(team.lessons_dir / "heap.md", UNTRUSTED)
    assert injected(team) == []
    assert not ran.exists()


@pytest.mark.slow
def test_a_rename_vouches_for_no_text(team: Vault, own_world: Path) -> None:
    trusting(own_world, 'trusted_authors = ["ada@example.org"]')
    write(team.lessons_dir / "heap.md", UNTRUSTED)
    commit_as(team.root, "Eve")
    (team.lessons_dir / "heap.md").rename(team.lessons_dir / "raised.md")
    commit_as(team.root, "Ada")
    assert injected(team) == []
    write(team.lessons_dir / "raised.md", HEAP)
    commit_as(team.root, "Ada")
    assert injected(team) == ["raised"]
    (team.lessons_dir / "raised.md").rename(team.lessons_dir / "heap.md")
    commit_as(team.root, "Ada")
    assert injected(team) == ["heap"]


@pytest.mark.slow
def test_a_shallow_clone_makes_nobody_the_author_of_all(
    team: Vault, own_world: Path, tmp_path: Path
) -> None:
    trusting(own_world, 'trusted_authors = ["ada@example.org"]')
    write(team.lessons_dir / "heap.md", UNTRUSTED)
    commit_as(team.root, "Eve")
    write(team.lessons_dir / "other/1.md", lesson_text("T1", "Of something else, by Ada."))
    commit_as(team.root, "Ada")
    clone = tmp_path / "shallow"
    run("git", "clone", "-q", "--depth", "1", f"file://{team.root}", clone, cwd=tmp_path)
    assert injected(open_vault(clone)) == []


@pytest.mark.slow
def test_a_mailmap_makes_nobody_somebody_else(team: Vault, own_world: Path) -> None:
    trusting(own_world, 'trusted_authors = ["ada@example.org"]')
    write(team.lessons_dir / "heap.md", UNTRUSTED)
    write(team.root / ".mailmap", "Ada <ada@example.org> <eve@example.org>\n")
    commit_as(team.root, "Eve")
    assert run("git", "log", "-1", "--format=%aE", cwd=team.root).out.strip() == "ada@example.org"
    assert injected(team) == []
