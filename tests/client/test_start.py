"""A process that stays starts the watcher, and leaves the model to it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from vault_index import api, client
from vault_index.search.hit import HitList
from vault_index.search.query import Query
from vault_index.vault import Vault
from vault_index.watch import launch

pytestmark = pytest.mark.no_arithmetic


@pytest.fixture
def vault(make_vault: Callable[..., Vault]) -> Vault:
    return make_vault()


def search(vault: Vault) -> HitList:
    question = api.search.find(query=Query("heap out of memory"))
    return client.ask(vault, question, client.Options(start=True))


@pytest.mark.slow
def test_a_question_starts_the_watcher(
    vault: Vault, with_model: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LESSONS_WATCH_AUTOSTART")
    try:
        assert search(vault).hits == ()
        assert launch.status(vault.root)
    finally:
        launch.stop()


@pytest.mark.slow
def test_no_watcher_starts_against_the_settings(vault: Vault) -> None:
    assert search(vault).hits == ()
    assert not launch.is_running()
