"""A hit that words alone found says so, and has no percentage that reads like a doubt. Issue 56."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import run
from tests.support.files import MakeVault, lesson_text, write
from tests.support.given import records
from tests.support.hits import LESSON
from tests.support.serving import Answering, answering
from vault_index.api import search
from vault_index.entrypoints.mcp import texts
from vault_index.entrypoints.wording import hits, journal, proposals
from vault_index.hotpath.hook_event import Event
from vault_index.index import reconcile
from vault_index.journal.record import JournalHit
from vault_index.proposals.similarity import BestLesson
from vault_index.recall import block
from vault_index.recall.respond import respond
from vault_index.retrieval import query
from vault_index.retrieval.hit import BY_WORDS, Query
from vault_index.vault import Vault

HEAP = "our build dies with heap out of memory"
FILES = {
    "ci/heap.md": lesson_text("Raise the heap in CI", "The build dies with heap out of memory."),
    "db/dates.md": lesson_text("Store dates in UTC", "Postgres shifts them by its own offset."),
}
PERCENTAGE = re.compile(r"\d%")


@pytest.fixture
def vault(make_vault: MakeVault, text_only: None) -> Vault:
    """A vault without vectors."""
    return make_vault(FILES, indexed=True)


@pytest.fixture
def served(vault: Vault, own_world: Path) -> Iterator[Answering]:
    with answering(vault.root, own_world, LESSONS_EMBEDDER="none") as served:
        yield served


def typed(vault: Vault, *words: str) -> str:
    return run("lessons", *words, cwd=vault.root).out


def prompted(vault: Vault, prompt: str) -> str:
    """Return the output of a hook for a prompt."""
    event = Event("UserPromptSubmit", "s", prompt=prompt, cwd=str(vault.root))
    answer = respond(vault, event, by="process", ms=1.0)
    return "" if answer is None else str(answer)


def test_a_search_and_a_hook_say_it_in_the_place_of_the_percentage(vault: Vault) -> None:
    for shown in (typed(vault, "search", HEAP), prompted(vault, HEAP), typed(vault, "last")):
        assert f"Raise the heap in CI ({BY_WORDS})" in shown
        assert not PERCENTAGE.search(shown)


def test_the_page_says_it_and_draws_the_floor_without_a_figure(served: Answering) -> None:
    shown = served.ask("GET", f"/page/search?q={HEAP} of postgres").text
    text = re.sub(r"<[^>]*>", " ", shown)
    assert BY_WORDS in text
    assert not PERCENTAGE.search(text)


def test_the_activity_of_agents_says_it(vault: Vault, served: Answering) -> None:
    prompted(vault, HEAP)
    shown = re.sub(r"<[^>]*>", " ", served.ask("GET", "/page/private/activity/list").text)
    assert BY_WORDS in shown
    assert records(vault)[-1].given[0].by_words


def test_an_agent_that_searches_reads_it_of_what_is_below_the_floor(vault: Vault) -> None:
    answer = search.found(vault, Query(f"{HEAP} dates"))
    none_above = replace(answer, floor=0.9)
    assert texts.search_results(none_above).count(f"({BY_WORDS})") == len(answer.hits)


def test_json_has_it_beside_the_score(vault: Vault) -> None:
    (hit, *_) = run("lessons", "search", "--json", HEAP, cwd=vault.root).json["hits"]
    assert hit["by_words"] is True
    assert 0 < hit["score"] < 1


def test_a_silence_by_words_names_words_and_no_figures(vault: Vault) -> None:
    """It said "nearest: Raise the heap in CI, 0%; the floor is 2%"."""
    prompt = "plant a tree in memory of grandmother please"
    said = run("lessons", "recall", prompt, cwd=vault.root).err
    assert "nearest: Raise the heap in CI, too few words in common" in said
    assert not PERCENTAGE.search(said)
    prompted(vault, prompt)
    assert "ci/heap, too few words in common" in typed(vault, "last")


def test_a_hit_with_a_vector_or_a_taught_prompt_keeps_its_percentage(vault: Vault) -> None:
    assert PERCENTAGE.search(block.header(LESSON))
    taught = replace(LESSON, cosine=0.0, taught=1.0)
    assert hits.lines(taught, 1)[0].endswith("%, taught)")
    run("lessons", "teach", HEAP, "--fires", "ci/heap", cwd=vault.root)
    (hit, *_) = query.run(vault, Query(HEAP, 1)).hits
    assert hit.taught
    assert not hit.by_words


def test_of_a_list_with_both_only_percentages_can_be_out_of_order() -> None:
    first = replace(LESSON, cosine=0.0, score=0.1)
    assert first.by_words
    assert not hits.is_out_of_order([first, LESSON])
    assert not hits.is_out_of_order([LESSON, first])


def test_a_row_whose_vector_is_still_to_be_made_says_it_beside_others(
    make_vault: MakeVault,
) -> None:
    """In a vault with a model: what has a cosine stays as it is."""
    vault = make_vault(FILES, words=True)
    reconcile.sync(vault)
    (with_vector, *_) = query.run(vault, Query(HEAP, 1)).hits
    assert hits.lines(with_vector, 1)[0].endswith("%)")
    (by_words, *_) = query.run(vault, Query(HEAP, 1, text_only=True)).hits
    assert hits.lines(by_words, 1)[0].endswith(f"({BY_WORDS})")


def test_a_session_of_the_journal_and_a_draft_say_it() -> None:
    values: Any = dict.fromkeys("id kind session project branch at title text type".split(), "")
    found = JournalHit(**values, number=1, score=0.02, full_text=0.02)
    assert journal.percent(found) == f" ({BY_WORDS})"
    assert journal.percent(replace(found, score=0.52, cosine=0.5)) == " (52%)"
    best = BestLesson("heap", "Heap", 0.02, is_above=True, by_words=True)
    assert proposals._score(best) == f"{BY_WORDS}, above the floor"


def test_a_search_in_an_empty_vault_says_how_to_begin(
    make_vault: MakeVault, text_only: None
) -> None:
    root = make_vault({}, indexed=True).root
    assert (
        "no lesson yet; write the first: lessons add" in run("lessons", "search", "x", cwd=root).err
    )
    write(root / "lessons/heap.md", FILES["ci/heap.md"])
    assert run("lessons", "search", "xylophone", cwd=root).err == "no lesson matches\n"
