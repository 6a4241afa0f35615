"""The record of a search says why nothing came of it, and old records stay readable."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import pytest

from tests.support.embedders import WordEmbedder
from tests.support.files import MakeVault, write
from tests.support.given import records
from tests.support.indexed import HEAP, LOCK, kept_on, with_words
from tests.support.serving import answering
from vault_index.recall.respond import respond
from vault_index.store.injections import Event, Record
from vault_index.vault import Vault, open_vault

pytestmark = pytest.mark.slow

PROMPT = "raise the heap when the build runs out of memory"


@pytest.fixture
def team(make_vault: MakeVault, shelves: Path, tmp_path: Path) -> Vault:
    make = partial(make_vault, {"heap.md": HEAP, "lock.md": LOCK}, name="first")
    return kept_on(shelves / "why-silent", make, tmp_path / "team", WordEmbedder())


def prompted(vault: Vault, prompt: str, session: str = "s1") -> Record:
    """Answer a prompt as the hook does, and return the record of it."""
    event = Event("UserPromptSubmit", session, prompt=prompt, cwd=str(vault.root))
    respond(vault, event, by="process", ms=0.0)
    return records(vault)[-1]


def test_a_silence_names_the_nearest_lesson_and_its_score(team: Vault) -> None:
    assert prompted(team, PROMPT).silent == ""
    write(team.lessons_dir / "vault.toml", "floor = 9.0\n")
    strict = open_vault(team.root)
    with_words(strict)
    record = prompted(strict, PROMPT, "s2")
    assert (record.lessons, record.silent) == ([], "nothing above the floor")
    assert record.near
    assert record.near.lesson == "heap"
    assert 0 < (record.near.score or 0) < (record.floor or 0) == 9.0


def test_a_lesson_that_the_session_has_is_named(team: Vault) -> None:
    assert prompted(team, PROMPT).lessons == ["heap"]
    again = prompted(team, PROMPT)
    assert (again.lessons, again.silent) == ([], "the session has it already")
    assert again.near
    assert again.near.lesson == "heap"


def test_each_lesson_above_the_floor_comes_or_it_is_said_why_not(
    make_vault: MakeVault, own_world: Path
) -> None:
    text = "Raise the heap when the build runs out of memory in its pipeline."
    files = {f"{n}.md": f"---\ntitle: Heap of build {n}\n---\n{text} {n}\n" for n in range(5)}
    files["old.md"] = f"---\ntitle: Memory\nsilent_on: ['{PROMPT}']\n---\n{text}\n"
    files["far.md"] = "---\ntitle: Memory of elephants\n---\nLong.\n"
    settings = "prompt_lessons = 2\nfloor = 0.01\n"
    vault = make_vault(files | {"vault.toml": settings})
    write(own_world / "config.toml", "pointers = false\n")
    with answering(vault.root, own_world, LESSONS_EMBEDDER="none") as served:
        shown = served.ask("GET", f"/page/private/search?q={PROMPT}").text
        lesson = re.compile(r'<li class="row.*?</li>', re.DOTALL)
        told = dict.fromkeys(
            ["would be injected", "taught to stay out", "others come before it"], 0
        )
        told |= {"a prompt gets at most 2 whole and 0 as a line": 0, "it scores little beside": 0}
        for each in lesson.findall(shown.partition('class="floor"')[0]):
            (said,) = [what for what in told if what in each]
            told[said] += 1
        assert told["would be injected"] == 2
        assert sum(told.values()) >= 5
        assert "not injected" not in served.ask("GET", "/page/search?q=heap", token=False).text
