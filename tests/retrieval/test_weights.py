"""Search by fixed weights: an option, off by default, for what people and agents search for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import run
from tests.support.files import MakeVault, lesson_text, write
from tests.support.given import given_to
from tests.support.indexed import with_words
from vault_index import api
from vault_index.config import Config, SearchTable, load, vault_problems
from vault_index.errors import SettingsError
from vault_index.retrieval import floor, query
from vault_index.retrieval.hit import Hit, Query
from vault_index.vault import Vault, open_vault

HEAP = "Raise the heap when the build runs out of memory."
FILES = {
    "a.md": lesson_text("Build memory", f"{HEAP} See the logs of the build."),
    "b.md": lesson_text("Build memory", f"{HEAP} See the notes of the build."),
    "c.md": lesson_text("Closed pipe", "A closed pipe raises an error in the writer."),
}


def vault_with(make_vault: MakeVault, settings: str = "", **more: str) -> Vault:
    return make_vault({**FILES, **more, "vault.toml": settings}, words=True, indexed=True)


def searched(vault: Vault, text: str = "build memory heap", **options: Any) -> tuple[Hit, ...]:
    with_words(vault)
    query = Query(text, 9, **options)
    return api.search.find(query=query).answer(vault).hits


def weights(text: str, least: float = 0.0) -> str:
    return f'[search]\nweights = "{text}"\nmin_similarity = {least}\n'


@pytest.mark.parametrize(
    "text", ["60/30/5", "60/30/5/5/0", "60,30,5,5", "a/b/c/d", "0/0/0/0", "-1/1/1/1", "1.5/1/1/1"]
)
def test_weights_that_are_none_are_a_clear_error(text: str, tmp_path: Path) -> None:
    file = write(tmp_path / "config.toml", weights(text))
    with pytest.raises(SettingsError, match=r"search\.weights must be four whole numbers") as error:
        load(None, {"LESSONS_HOME": str(tmp_path)})
    assert str(file) in error.value.message
    assert "60/30/5/5" in error.value.hint
    assert vault_problems(file.read_bytes())[0].key == "search.weights"


def test_the_weights_are_shares(tmp_path: Path) -> None:
    config = Config(home=tmp_path, search=SearchTable(weights="60/30/5/5"))
    assert query.weights_of(config) == [0.6, 0.3, 0.05, 0.05]
    assert query.weights_of(Config(home=tmp_path)) == []


def test_without_weights_nothing_differs(make_vault: MakeVault) -> None:
    vault = vault_with(make_vault)
    found = [hit.lesson_id for hit in query.find(vault, "build memory heap", 9)]
    assert [hit.lesson_id for hit in searched(vault)] == found
    assert not any(hit.weighted for hit in searched(vault))


def test_each_weight_decides_by_itself(make_vault: MakeVault) -> None:
    sure = FILES["b.md"].replace("---\n", "---\nconfidence: 5\n", 1)
    vault = vault_with(make_vault, weights("0/0/1/0"), **{"b.md": sure})
    assert searched(vault)[0].lesson_id == "b"
    write(vault.lessons_dir / "vault.toml", weights("0/0/0/1"))
    for id, times in (("c", 3), ("a", 1)):
        for _ in range(times):
            given_to(vault, (id,))
    found = searched(open_vault(vault.root))
    assert [hit.lesson_id for hit in found] == ["c", "a", "b"]
    assert [hit.as_json()["weighted"] for hit in found] == [
        [0, 0, 0, 1],
        [0, 0, 0, 0.3333],
        [0, 0, 0, 0],
    ]
    for by in ("1/0/0/0", "0/1/0/0"):
        write(vault.lessons_dir / "vault.toml", weights(by))
        assert searched(open_vault(vault.root), "pipe writer")[0].lesson_id == "c"


def test_what_is_less_like_the_query_is_no_hit(make_vault: MakeVault) -> None:
    vault = vault_with(
        make_vault, weights("60/30/5/5", 0.3), **{"d.md": lesson_text("Cats", "A cat sleeps.")}
    )
    assert {hit.lesson_id for hit in searched(vault)} == {"a", "b"}
    explained = Query("build memory heap", explain=True)
    dropped = api.search.find(query=explained).answer(vault).dropped
    assert sorted(hit.lesson_id for hit, _ in dropped) == ["c", "d"]
    assert {why for _, why in dropped} == {"less than 30% like the query"}


@pytest.mark.slow
def test_hooks_and_floors_go_by_the_sum_of_evidence(make_vault: MakeVault) -> None:
    plain = vault_with(make_vault)
    before = floor.in_force(plain), query.find(plain, "build memory heap", 2)
    write(plain.lessons_dir / "vault.toml", weights("0/0/0/1", 0.99))
    vault = open_vault(plain.root)
    with_words(vault)
    assert (floor.in_force(vault), query.find(vault, "build memory heap", 2)) == before


@pytest.mark.slow
def test_explain_shows_the_terms(make_vault: MakeVault, with_model: Path) -> None:
    vault = make_vault({**FILES, "vault.toml": weights("60/30/5/5")})
    out = run("lessons", "search", "--explain", "the build is out of memory", cwd=vault.root).out
    assert "93.0% = 60.0% vector + 30.0% full text + 3.0% confidence + 0.0% use; " in out
