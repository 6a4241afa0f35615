"""`lessons last`: what agents asked lately and what they got, and teaching by its numbers."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from tests.support.commands import run
from tests.support.conversations import Conversation
from tests.support.embedders import WordEmbedder
from tests.support.files import MakeVault, lesson_text
from tests.support.hits import LESSON
from tests.support.indexed import kept_on
from vault_index.entrypoints.wording import hits
from vault_index.hotpath.hook_event import Event
from vault_index.index import reconcile
from vault_index.recall import respond, select
from vault_index.retrieval import query
from vault_index.retrieval.hit import percent_of
from vault_index.vault import Vault, open_vault

PROMPT = "run the tests please"


@pytest.fixture
def team(make_vault: MakeVault, shelves: Path, tmp_path: Path) -> Vault:
    texts = {"uv.md": lesson_text("Tests run under uv", "Start pytest as uv run pytest.")}
    texts["dates.md"] = lesson_text("Dates are UTC", "Store dates in UTC.")
    make = partial(make_vault, texts, name="first")
    return kept_on(shelves / "last", make, tmp_path / "team", WordEmbedder())


def asks(vault: Vault, session: Conversation, prompt: str) -> None:
    """Let an agent ask as its hook does, and keep its own transcript."""
    session.asks(prompt)
    event = Event("UserPromptSubmit", session.id, prompt=prompt, cwd=str(vault.root))
    respond.respond(vault, event, by="process", ms=1.0)


def last(vault: Vault, *words: str) -> str:
    return run("lessons", "last", *words, cwd=vault.root).out


def test_a_lesson_has_one_percentage_wherever_it_is_shown(team: Vault) -> None:
    """In the block, `last` and a search, on the scale of the floors."""
    asked = "start pytest as uv run pytest under uv"
    asks(team, Conversation(team.root, "build"), asked)
    (hit, *_) = query.find(team, asked)
    given = select.for_prompt(team, asked)
    assert given.hits[0].reason == pytest.approx(hit.reason, abs=1e-3)
    shown = f"({hit.percent}%)"
    assert hit.percent == percent_of(hit.reason)
    assert shown in given.text
    assert shown in last(team)
    assert shown in hits.lines(hit, 1)[0]
    assert round(100 * hit.as_json()["score"]) == hit.percent


def test_a_list_says_if_a_lower_one_has_a_higher_percentage() -> None:
    first, second = replace(LESSON, score=0.6, lead=0.1), replace(LESSON, score=0.5, lead=0.4)
    assert second.percent > first.percent
    assert hits.is_out_of_order([first, second])
    assert not hits.is_out_of_order([second, first])


@pytest.mark.slow
def test_a_prompt_is_taught_by_its_number(team: Vault) -> None:
    team = open_vault(team.root, pointers=False)
    team.__dict__["embedder"] = WordEmbedder()
    session = Conversation(team.root, "build")
    asks(team, session, PROMPT)
    asks(team, session, "store dates in UTC")
    run("lessons", "teach", "--last", "2", "--fires", "uv", cwd=team.root)
    assert "fires_on:" in (team.lessons_dir / "uv.md").read_text()
    assert ", taught fires_on" in last(team)
    reconcile.sync(team)
    asks(team, session, PROMPT)
    assert "%, taught) uv" in last(team, "-n", "1")
    run("lessons", "teach", "--last", "1", "--not", "uv", cwd=team.root)
    assert "taught silent_on" in last(team, "-n", "1")
    run("lessons", "teach", "--last", "1", "--not", "uv", "--undo", cwd=team.root)
    assert "taught silent_on" not in last(team, "-n", "1")


def test_the_text_of_a_transcript_that_is_gone_has_to_be_typed(team: Vault) -> None:
    session = Conversation(team.root, "build")
    asks(team, session, PROMPT)
    session.file.unlink()
    assert "(the text of this prompt was not kept)" in last(team)
    done = run("lessons", "teach", "--last", "1", "--fires", "uv", cwd=team.root, check=False)
    assert "type it: lessons teach PROMPT" in done.err
