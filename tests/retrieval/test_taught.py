"""Taught prompts: they fire a lesson above any floor, or keep it out; the nearer one decides."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.support.files import MakeVault, lesson_text
from tests.support.indexed import with_words
from vault_index.index import reconcile
from vault_index.recall import select
from vault_index.retrieval import query
from vault_index.retrieval.hit import Query
from vault_index.vault import Vault, open_vault

pytestmark = pytest.mark.slow

PROMPT = "run the tests please"
MakeTaught = Callable[..., Vault]


@pytest.fixture
def make_taught(make_vault: MakeVault, monkeypatch: pytest.MonkeyPatch) -> MakeTaught:
    """Return a vault of lessons by name: what each fires on and is silent on."""

    def make(words: bool = True, **lessons: tuple[list[str], list[str]]) -> Vault:
        texts = {
            f"{name}.md": f"---\ntitle: Use uv for {name}\nfires_on: {json.dumps(fires)}\n"
            f"silent_on: {json.dumps(silent)}\n---\nThe environment of {name} is that of uv.\n"
            for name, (fires, silent) in lessons.items()
        }
        vault = make_vault(texts | {"other.md": lesson_text("Other", "Cache retries of a queue.")})
        if words:
            with_words(vault)
        else:
            monkeypatch.setenv("LESSONS_EMBEDDER", "none")
            vault = open_vault(vault.root)
        reconcile.sync(vault)
        return vault

    return make


def injected(vault: Vault, prompt: str) -> list[str]:
    return [hit.lesson_id for hit in select.for_prompt(vault, prompt).hits]


@pytest.mark.parametrize("words", [True, False])
def test_a_taught_prompt_fires_and_is_marked(make_taught: MakeTaught, words: bool) -> None:
    vault = make_taught(words, pytest=([PROMPT], []))
    hit = query.find(vault, "Run  the tests PLEASE")[0]
    assert (hit.lesson_id, hit.taught_prompt) == ("pytest", PROMPT)
    assert hit.taught == pytest.approx(1, abs=1e-3)
    assert hit.score == pytest.approx(hit.cosine + hit.full_text + hit.exact + hit.taught)
    assert hit.as_json()["taught_prompt"] == PROMPT
    assert injected(vault, PROMPT) == ["pytest"]
    assert all(not hit.taught for hit in query.find(vault, "cache retries of a queue"))


def test_a_near_prompt_fires_too(make_taught: MakeTaught) -> None:
    vault = make_taught(pytest=([PROMPT], []))
    assert injected(vault, "run our tests please") == ["pytest"]


@pytest.mark.parametrize("words", [True, False])
def test_silent_on_keeps_a_lesson_out_whatever_its_score(
    make_taught: MakeTaught, words: bool
) -> None:
    asked = "the environment of pytest is that of uv"
    vault = make_taught(words, pytest=([], [asked]))
    results = query.run(vault, Query(asked))
    assert "pytest" not in [hit.lesson_id for hit in results.hits]
    assert (f"silent_on: {asked}") in [why for _, why in results.dropped]
    assert injected(vault, asked) == []


def test_at_equal_distance_silence_wins_else_the_nearer_prompt(make_taught: MakeTaught) -> None:
    vault = make_taught(pytest=([PROMPT, "deploy the shop to staging"], [PROMPT]))
    assert injected(vault, PROMPT) == []
    assert injected(vault, "deploy the shop to staging") == ["pytest"]


def test_a_prompt_of_a_file_of_sections_fires_the_best_of_them(make_vault: MakeVault) -> None:
    text = (
        f"---\nfires_on: [{PROMPT}]\n---\n## Lesson: Colours\n\nPaint it blue.\n\n"
        "## Lesson: How to run tests\n\nRun the tests with uv.\n"
    )
    vault = make_vault({"many.md": text}, words=True, indexed=True)
    assert injected(vault, PROMPT) == ["many#how-to-run-tests"]
