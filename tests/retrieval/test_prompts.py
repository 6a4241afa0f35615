"""Prompts that a lesson answers count as its own words and vectors, and do not act by themselves."""

from __future__ import annotations

import json

import pytest

from tests.support.files import MakeVault, lesson_text
from vault_index.entrypoints.wording import hits
from vault_index.index import reconcile
from vault_index.recall import select
from vault_index.retrieval import query, rivals
from vault_index.retrieval.hit import Query
from vault_index.vault import Vault

pytestmark = pytest.mark.slow

PROMPT = "where does the missing cent go"
OTHERS = {
    f"other-{number}.md": lesson_text(f"Other {number}", text)
    for number, text in enumerate(
        (
            "Cache retries of a queue with a jitter.",
            "Migrations wait for a lock on the table.",
            "A closed pipe raises BrokenPipeError.",
            "Staging deploys need the tunnel.",
        )
    )
}


def with_key(make_vault: MakeVault, key: str, *texts: str) -> Vault:
    """Return an indexed vault of five lessons, of which `money` has texts under a key."""
    money = (
        f"---\ntitle: Amounts are whole numbers\n{key}: {json.dumps(texts)}\n---\n"
        "Send amounts in the smallest unit of the currency.\n"
    )
    return make_vault({"money.md": money, **OTHERS}, words=True, indexed=True)


@pytest.mark.parametrize("key", ["prompts", "fires_on", "fires_on_error"])
def test_what_a_lesson_answers_finds_it_by_its_words_and_its_vector(
    make_vault: MakeVault, key: str
) -> None:
    asked = "where does a missing cent hide"
    without = {hit.lesson_id: hit for hit in query.find(with_key(make_vault, key), asked, 9)}
    assert without["money"].full_text == 0
    vault = with_key(make_vault, key, "how to add a price", PROMPT)
    first = query.find(vault, asked, 1)[0]
    assert first.cosine > without["money"].cosine
    assert first.lesson_id == "money"
    assert (first.prompt, first.taught) == (PROMPT, 0.0)
    assert first.full_text > 0


def test_explain_names_the_prompt_that_counted(make_vault: MakeVault) -> None:
    vault = with_key(make_vault, "prompts", "how to add a price", PROMPT)
    first = query.run(vault, Query(PROMPT, explain=True)).hits[0]
    assert f'by the prompt "{PROMPT}"' in hits.evidence(first)
    assert first.as_json()["prompt"] == PROMPT
    assert first.score == pytest.approx(sum(term for _, term in first.terms))
    by_text = query.find(vault, "amounts in the smallest unit of the currency")[0]
    assert (by_text.lesson_id, by_text.prompt) == ("money", "")


def test_a_prompt_finds_its_lesson_and_does_not_force_it(make_vault: MakeVault) -> None:
    vault = with_key(make_vault, "prompts", PROMPT)
    first = select.for_prompt(vault, PROMPT).hits[0]
    assert (first.lesson_id, first.as_line) == ("money", False)
    hit = query.find(vault, PROMPT)[0]
    assert hit.cosine < 0.9  # a prompt says a little less than the text that answers it
    assert not hit.taught


def test_a_prompt_to_be_silent_at_wins(make_vault: MakeVault) -> None:
    money = (
        f"---\ntitle: Amounts\nprompts: [{PROMPT}]\nsilent_on: [{PROMPT}]\n---\nWhole numbers.\n"
    )
    vault = make_vault({"money.md": money, **OTHERS}, words=True, indexed=True)
    assert "money" not in [hit.lesson_id for hit in query.find(vault, PROMPT)]


def test_a_prompt_of_a_file_of_sections_is_that_of_the_best_of_them(make_vault: MakeVault) -> None:
    text = (
        f"---\nprompts: [{PROMPT}]\n---\n## Lesson: Colours\n\nPaint it blue.\n\n"
        "## Lesson: A missing cent\n\nA cent is lost where amounts are floats.\n"
    )
    vault = make_vault({"many.md": text, **OTHERS}, words=True, indexed=True)
    found = {hit.lesson_id: hit for hit in query.find(vault, PROMPT, 9)}
    assert found["many#a-missing-cent"].prompt == PROMPT
    assert found["many#colours"].prompt == ""
    assert found["many#colours"].cosine < found["many#a-missing-cent"].cosine


def test_a_section_has_prompts_of_its_own(make_vault: MakeVault) -> None:
    text = (
        "## Lesson: Colours\n\nPaint it blue.\n\n"
        f"## Lesson: Amounts\nprompts: [{PROMPT}]\n\nWhole numbers.\n"
    )
    vault = make_vault({"many.md": text, **OTHERS}, words=True, indexed=True)
    assert query.find(vault, PROMPT)[0].lesson_id == "many#amounts"


def test_an_edited_prompt_counts_after_the_next_pass(make_vault: MakeVault) -> None:
    vault = with_key(make_vault, "prompts", "how to add a price")
    file = vault.root / "lessons/money.md"
    file.write_text(file.read_text().replace("how to add a price", PROMPT))
    reconcile.sync(vault)
    assert query.find(vault, PROMPT)[0].prompt == PROMPT
    assert query.find(vault, "how to add a price")[0].prompt != "how to add a price"


def test_by_full_text_alone_the_words_of_prompts_count(
    make_vault: MakeVault, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LESSONS_EMBEDDER", "none")
    money = f"---\ntitle: Amounts\nprompts: [{PROMPT}]\n---\nWhole numbers.\n"
    vault = make_vault({"money.md": money, **OTHERS}, indexed=True)
    assert query.find(vault, "missing cent")[0].lesson_id == "money"


def test_a_warm_and_a_cold_process_answer_the_same(make_vault: MakeVault) -> None:
    vault = with_key(make_vault, "prompts", "how to add a price", PROMPT)
    cold = query.find(vault, "the missing cent of an invoice")
    vault.open_index().store.load(warm=True)
    warm = query.find(vault, "the missing cent of an invoice")
    assert [hit.lesson_id for hit in warm] == [hit.lesson_id for hit in cold]
    assert [hit.prompt for hit in warm] == [hit.prompt for hit in cold]


def test_check_warns_of_a_prompt_that_finds_another_lesson_first(make_vault: MakeVault) -> None:
    asked = "migrations wait for a lock on the table"
    vault = with_key(make_vault, "prompts", PROMPT, asked)
    (found,) = rivals.findings(vault, ["money.md"])
    assert (found.path, found.line, found.rule) == ("lessons/money.md", 3, "prompt")
    assert found.message == (
        f"{asked!r} finds lessons/other-1.md first: write what this one alone answers"
    )
    assert list(rivals.findings(vault, ["other-1.md"])) == []
