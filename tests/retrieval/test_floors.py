"""The floors of an embedder: constants for the built-in one, another is measured once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.embedders import FailingEmbedder, WordEmbedder
from tests.support.files import MakeVault, lesson_text
from tests.support.floors import set_floors
from vault_index import api
from vault_index.api.measuring import measure_embedder
from vault_index.embed import minilm
from vault_index.entrypoints.doctor import Hooks
from vault_index.entrypoints.wording import status as words
from vault_index.index import reconcile
from vault_index.index import words as counts
from vault_index.recall import select
from vault_index.retrieval import evidence, failures, floor, measuring, query
from vault_index.retrieval.floor import Floors
from vault_index.status import of as state_of
from vault_index.text import failure
from vault_index.vault import Vault

LOCK = lesson_text("Alter table waits for a lock", "Set lock_timeout before a migration.")
OTHERS = {f"other/{at}.md": lesson_text(f"Other {at}", f"Rule {at} of many.") for at in range(40)}
PROMPT = "alter table waits for a lock, set lock_timeout before the migration"
HANGS = failure.read("psql", "ERROR: alter table waits for a lock, lock_timeout")


def with_embedder(make_vault: MakeVault, embedder: WordEmbedder, few: bool = False) -> Vault:
    vault = make_vault({"lock.md": LOCK} | ({} if few else OTHERS))
    vault.embedder = embedder
    reconcile.sync(vault)
    return vault


def measured(vault: Vault) -> list[str]:
    """Measure a vault's embedder as `lessons index` does; return the notes."""
    notes: list[str] = []
    nothing = api.silent
    caller = api.Caller(notes.append, nothing, nothing, nothing, nothing)  # type: ignore[arg-type]
    measure_embedder(vault, caller)
    return notes


LONGER = "Before the migration, in a table of orders: tell team, owner."


def test_two_that_both_answer_take_no_lead_from_each_other(make_vault: MakeVault) -> None:
    """Issue 57: 14 of 65 runbooks were silent for it."""
    files = {"lock.md": LOCK} | OTHERS
    alone = make_vault(files, name="alone")
    both = make_vault(
        files
        | {"pg.md": lesson_text("Alter table waits for a lock", f"{LONGER} Set lock_timeout.")}
    )
    leads = []
    for vault in (alone, both):
        vault.embedder = WordEmbedder(minilm.NAME)
        reconcile.sync(vault)
        leads.append(query.find(vault, PROMPT, k=3))
    (first, *_), (one, other, third) = leads
    assert {one.lesson_id, other.lesson_id} == {"lock", "pg"}
    assert other.base >= evidence.PAIR * one.base
    assert one.lead is not None
    assert first.lead is not None
    assert one.lead == pytest.approx(one.base - third.base, abs=0.05)
    assert one.lead == pytest.approx(first.lead, abs=0.05)


def test_those_of_the_built_in_model_are_constants(make_vault: MakeVault) -> None:
    vault = with_embedder(make_vault, WordEmbedder(minilm.NAME))
    assert floor.in_force(vault) == Floors(0.47, 0.33)
    assert floor.for_failures(vault) == Floors(0.44, 0.36)
    assert not floor.is_unmeasured(vault)
    assert measured(vault) == []


def test_few_lessons_have_lower_floors_for_prompts_and_higher_ones_for_failures(
    make_vault: MakeVault,
) -> None:
    vault = with_embedder(make_vault, WordEmbedder(minilm.NAME), few=True)
    few = floor.in_force(vault)
    assert few is not None
    assert few.whole == pytest.approx(0.40)
    assert few.line == pytest.approx(0.26)
    assert floor.for_failures(vault).whole > 0.44


def test_until_an_embedder_is_measured_words_decide(make_vault: MakeVault) -> None:
    vault = with_embedder(make_vault, WordEmbedder("unheard of"))
    assert floor.in_force(vault) is None
    by_words = floor.by_words(vault.open_index().lessons)
    given = select.for_prompt(vault, PROMPT)
    assert ([hit.lesson_id for hit in given.hits], given.floor) == (["lock"], by_words.line)
    assert given.hits[0].cosine == 0
    assert failures.find(vault, HANGS).floors == floor.failures_by_words(41)
    (line,) = [
        each
        for each in words.lines(state_of(vault), None, Hooks([], [], []))
        if each[:5] == "floor"
    ]
    assert line.endswith("until those of unheard of are measured: `lessons index` does it")


@pytest.mark.slow
def test_another_embedder_is_measured_once_for_all_vaults(make_vault: MakeVault) -> None:
    vault = with_embedder(make_vault, WordEmbedder("new"))
    notes = measured(vault)
    assert notes == ["measuring new, once: it takes about 400 embeddings"]
    found = floor.of_embedder(vault)
    assert found is not None
    assert found.prompts.whole > found.prompts.line > 0
    assert found.failures.whole > found.failures.line > 0
    other = make_vault({"lock.md": LOCK}, name="other")
    other.embedder = WordEmbedder("new")
    reconcile.sync(other)
    assert floor.of_embedder(other) == found
    assert measured(other) == []


def test_an_embedder_that_goes_away_is_not_measured_and_that_is_said(make_vault: MakeVault) -> None:
    vault = with_embedder(make_vault, WordEmbedder("away"))
    vault.embedder = FailingEmbedder(0)
    vault.embedder.name = "away"
    notes = measured(vault)
    assert "words alone decide until `lessons index` succeeds" in notes[-1]
    assert floor.is_unmeasured(vault)


@pytest.mark.slow
def test_measured_by_the_built_in_model_its_floors_are_the_constants(
    make_vault: MakeVault, with_model: Path
) -> None:
    halves = []
    for half in range(measuring.HALVES):
        files = {
            f"{each['id']}.md": lesson_text(each["title"].replace(":", ","), each["text"])
            for each in measuring.lessons(half)
        }
        vault = make_vault(files, name=f"half-{half}", indexed=True)
        halves.append(measuring.ask(vault, half, api.silent))
    found = measuring.floors_of(halves)
    for kind in ("prompts", "failures"):
        measured_floors, constant = getattr(found, kind), getattr(floor.BUILT_IN, kind)
        assert measured_floors.whole == pytest.approx(constant.whole, abs=0.03)
        assert measured_floors.line == pytest.approx(constant.line, abs=0.03)
    assert found.skills == pytest.approx(floor.BUILT_IN.skills, abs=0.04)


def test_a_floor_of_the_settings_is_for_whole_lessons_and_lines(make_vault: MakeVault) -> None:
    vault = with_embedder(make_vault, WordEmbedder("own"))
    set_floors(vault, 0.9, 0.1)
    assert floor.in_force(vault) == Floors(0.9, 0.1)


def test_words_are_counted_again_when_the_lessons_grew_by_a_tenth(make_vault: MakeVault) -> None:
    vault = make_vault(OTHERS, words=True, indexed=True)
    assert counts.of(vault).lessons == 40
    for number, counted in enumerate((40, 40, 40, 40, 45), start=1):
        text = lesson_text(f"New {number}", "More.")
        (vault.lessons_dir / f"new-{number}.md").write_text(text, "utf-8")
        reconcile.sync(vault)
        assert counts.of(vault).lessons == counted
