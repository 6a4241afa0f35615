"""What people and agents say of lessons: useful yes, no, wrong."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import run
from tests.support.embedders import WordEmbedder
from tests.support.files import MakeVault, lesson_text
from tests.support.indexed import kept_on
from tests.support.terminals import at_terminal
from vault_index import api, client
from vault_index.api.injection import Rated
from vault_index.hotpath.hook_event import Event
from vault_index.index import reconcile
from vault_index.recall import ratings, respond
from vault_index.recall.outdated import Reason
from vault_index.vault import Vault

pytestmark = pytest.mark.slow

PROMPT = "store dates in UTC"
EDITED = "src/dates.py"
TOLD = "Dates are UTC"
ERROR = "ValueError: naive datetime in store dates UTC"


@pytest.fixture
def team(make_vault: MakeVault, shelves: Path, tmp_path: Path) -> Vault:
    texts = {"uv.md": lesson_text("Tests run under uv", "Start pytest as uv run pytest.")}
    head = f'type: project_rule\napplies_to: ["{EDITED}"]\nfires_on_error: ["{ERROR}"]\n'
    texts["dates.md"] = lesson_text(TOLD, "Store dates in UTC.").replace("title:", f"{head}title:")
    make = partial(make_vault, texts, name="first")
    return kept_on(shelves / "words", make, tmp_path / "team", WordEmbedder())


def told(vault: Vault, name: str = "UserPromptSubmit", **event: Any) -> bool:
    """Whether an agent is told the lesson about dates, in a session of its own."""
    told.sessions += 1  # type: ignore[attr-defined]
    session = f"s{told.sessions}"  # type: ignore[attr-defined]
    given = Event(name, session, prompt=PROMPT, cwd=str(vault.root), **event)
    answer = respond.respond(vault, given, by="process", ms=1.0)
    return TOLD in json.dumps(answer)


told.sessions = 0  # type: ignore[attr-defined]

EVENTS: list[tuple[str, dict[str, str]]] = [
    ("UserPromptSubmit", {}),
    ("SessionStart", {"source": "startup"}),
    ("PostToolUseFailure", {"command": "python x.py", "error": ERROR}),
    ("FileEdit", {"file": EDITED}),
]


def say(vault: Vault, word: str, by: str = ratings.PERSON, name: str = "dates") -> Rated:
    command = api.injection.useful(name=name, word=word, why="we moved", by=by)
    return client.ask(vault.root, command)


def listed(vault: Vault) -> list[Reason]:
    found = client.ask(vault.root, api.injection.stale_lessons()).reasons
    return [each for each in found if each.kind == "wrong"]


def test_what_a_person_calls_wrong_comes_nowhere_until_somebody_looked(team: Vault) -> None:
    assert [told(team, name, **event) for name, event in EVENTS] == [True] * 4
    assert say(team, "wrong").is_left_out
    assert [told(team, name, **event) for name, event in EVENTS] == [False] * 4
    (reason,) = listed(team)
    assert reason.why.startswith("a person called it wrong on ")
    assert reason.why.endswith(": we moved; hooks leave it out")
    assert reason.do == "lessons useful dates yes"
    say(team, "yes", by=ratings.AGENT)
    assert not told(team)  # an agent does not speak over a person
    assert not say(team, "yes").is_left_out
    assert [told(team, name, **event) for name, event in EVENTS] == [True] * 4
    assert listed(team) == []


def test_a_lesson_called_wrong_comes_back_when_its_text_changes(team: Vault) -> None:
    say(team, "wrong")
    file = team.lessons_dir / "dates.md"
    file.write_text(file.read_text().replace("title:", "tags: [time]\ntitle:"))
    reconcile.sync(team)
    assert not told(team)  # the frontmatter says nothing else
    file.write_text(file.read_text().replace("Store dates in UTC.", "Store dates in UTC, with Z."))
    reconcile.sync(team)
    assert told(team)
    assert listed(team) == []


def test_an_agents_word_only_asks_for_a_look(team: Vault) -> None:
    assert not say(team, "wrong", by=ratings.AGENT).is_left_out
    assert [told(team, name, **event) for name, event in EVENTS] == [True] * 4
    (reason,) = listed(team)
    assert reason.why.startswith("an agent called it wrong on ")
    assert not reason.why.endswith("leave it out")
    say(team, "no")
    assert listed(team) == []


def test_the_command_offers_what_a_person_may_do_next(team: Vault) -> None:
    assert told(team)
    said = run("lessons", "useful", "--last", "1", "no", cwd=team.root).out
    assert "keep it out there: lessons teach --last 1 --not dates" in said
    said = run("lessons", "useful", "dates", "wrong", "we", "moved", cwd=team.root).out
    assert "hooks leave it out; to take that back: lessons useful dates yes" in said
    status = run("lessons", "status", cwd=team.root).out
    assert "we moved; hooks leave it out\n   lessons useful dates yes" in status
    assert "a person called it wrong" in run("lessons", "show", "dates", cwd=team.root).out
    assert "a person called it wrong" in run("lessons", "last", cwd=team.root).out
    run("lessons", "useful", "dates", "yes", cwd=team.root)
    said = run("lessons", "useful", "dates", "wrong", cwd=team.root, env={"CLAUDECODE": "1"}).out
    assert "an agent's word" in said
    assert told(team)


def test_keys_say_it_at_a_terminal(team: Vault) -> None:
    assert told(team)
    typed = [("any other key ends", "1"), ("[w]rong", "w")]
    code, shown = at_terminal("lessons", "last", cwd=team.root, typed=typed)
    assert code == 0, shown
    assert "hooks leave it out; to take that back: lessons useful dates yes" in shown
    assert not told(team)
