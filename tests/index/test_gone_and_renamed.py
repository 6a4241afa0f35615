"""Deleted and renamed lessons: the record and the words still know them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.commands import lessons, run
from tests.support.files import MakeVault, commit, lesson_text
from tests.support.given import given_to
from vault_index import status
from vault_index.index import reconcile
from vault_index.vault import Vault, open_vault

pytestmark = pytest.mark.slow

SECTIONS = "## Lesson: Dates are UTC\nAlways.\n\n## Lesson: Names are short\nText.\n"


@pytest.fixture
def team(make_vault: MakeVault, monkeypatch: pytest.MonkeyPatch, text_only: None) -> Vault:
    files = {"ops/heap.md": lesson_text("Raise the heap", "To 4 GB."), "dev/all.md": SECTIONS}
    vault = make_vault(files)
    monkeypatch.chdir(vault.root)
    commit(vault.root, "first")
    return open_vault(vault.root)


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


def used(vault: Vault) -> list[list[Any]]:
    return [[*one] for one in status.of(vault).injections.most_used]


def inject(vault: Vault, id: str) -> None:
    reconcile.sync(vault)
    given_to(vault, (id,))


def test_a_lesson_that_moved_keeps_its_use(team: Vault) -> None:
    inject(team, "ops/heap")
    inject(team, "dev/all#dates-are-utc")
    since = status.of(team).injections.since
    lessons("categories", "rename", "ops", "operations", "--write")
    reconcile.sync(team)
    assert sorted(used(team)) == [["dev/all#dates-are-utc", 1], ["operations/heap", 1]]
    run("git", "mv", "lessons/dev", "lessons/rules", cwd=team.root)
    reconcile.sync(team)
    inject(team, "rules/all#dates-are-utc")
    assert used(team) == [["rules/all#dates-are-utc", 2], ["operations/heap", 1]]
    state = status.of(team).injections
    assert (state.prompts, state.since) == (3, since)
