"""A vault of one lesson is as quiet as a large one: with the model, without it, and from its file."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.files import MakeVault, lesson_text
from vault_index import check
from vault_index.index import diff, reconcile
from vault_index.recall import select
from vault_index.retrieval import query
from vault_index.retrieval.hit import Query
from vault_index.vault import Vault

VPN = lesson_text(
    "Staging deploys need the VPN",
    "The deploy job hangs at the connection otherwise: connect to the VPN, then run the job again.",
)
# each of them shares a word with the lesson
OTHERS = (
    "write a job queue for thumbnails",
    "the loading spinner hangs",
    "connect the form to the backend",
    "add a deploy button to the admin page",
    "why is the database connection slow",
    "run the linter again please",
)
OWN = ("the staging deploy hangs", "why does the deploy job hang at the connection to staging")


@pytest.fixture
def without_model(make_vault: MakeVault, text_only: None) -> Vault:
    return make_vault({"ops/vpn.md": VPN})


def assert_quiet(vault: Vault) -> None:
    """Check that the lesson comes at its own prompts alone, and that each silence is plain."""
    for prompt in OTHERS:
        given = select.for_prompt(vault, prompt)
        assert not given.hits, prompt
        assert given.near is None or given.floor is None or given.near.reason < given.floor
    for prompt in OWN:
        assert select.for_prompt(vault, prompt).hits, prompt


def test_by_words_alone_it_needs_two_of_the_prompt(without_model: Vault) -> None:
    reconcile.sync(without_model)
    assert_quiet(without_model)
    found = query.run(without_model, Query(OTHERS[0])).hits
    assert [hit.lesson_id for hit in found] == ["ops/vpn"]  # a search still finds it


def test_only_what_may_come_is_checked_where_there_is_no_index(
    without_model: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To check a file takes a fifth of a hook's processor time."""
    checked: list[str] = []

    def withheld_by(_vault: Vault, path: str, _data: bytes) -> check.Withheld:
        checked.append(path)
        return check.Withheld("")

    monkeypatch.setattr(diff, "withheld_by", withheld_by)
    for prompt, files in ((OWN[0], 1), (OTHERS[0], 0)):
        checked.clear()
        select.from_files(without_model, prompt)
        assert len(checked) == files


def test_without_an_index_too(without_model: Vault) -> None:
    for prompt in OTHERS:
        assert not select.from_files(without_model, prompt).hits, prompt
    for prompt in OWN:
        assert select.from_files(without_model, prompt).hits, prompt


@pytest.mark.slow
def test_with_the_model_too(make_vault: MakeVault, with_model: Path) -> None:
    vault = make_vault({}, indexed=True)
    (vault.lessons_dir / "vpn.md").write_text(VPN, encoding="utf-8")
    reconcile.sync(vault)
    assert_quiet(vault)
