"""At the start of a session the person is told, once, that the last one taught what nobody proposed."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.commands import run
from tests.support.conversations import Conversation
from tests.support.files import MakeVault, write
from tests.support.proposing import ENTRY, proposed
from vault_index import api, client
from vault_index.hotpath import spool
from vault_index.journal import capture
from vault_index.journal.journal import Journal
from vault_index.learn import at_end, nudge
from vault_index.vault import Vault, open_vault

REFUSAL = (
    "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a"
    " file edit, the new_string was NOT written to the file). STOP what you are doing and wait for"
    " the user to tell you how to proceed."
)
NO = "No, use five retries with a fixed pause of two seconds"
Talk = Callable[[Conversation], object]


def repaired(talk: Conversation, command: str = "pytest -q") -> Conversation:
    talk.runs(command, "FAILED test_upload", failed=True)
    talk.edits("store/upload.py", "RETRIES = 3", f"RETRIES = {len(command)}")
    return talk.runs(command, "1 passed")


def refused(talk: Conversation) -> Conversation:
    return talk.runs("git push --force", REFUSAL, failed=True)


SESSIONS: dict[str, tuple[Talk, str]] = {
    "only talk": (lambda t: t.says("It retries three times."), ""),
    "a change": (lambda t: t.edits("a.py", "x = 1", "x = 2"), ""),
    "a command that passes": (lambda t: t.runs("pytest -q", "1 passed"), ""),
    "a failure for ever": (lambda t: t.runs("pytest -q", "FAILED test_a", failed=True), ""),
    "thanks": (lambda t: t.says("Done: it retries.").asks("thanks, looks good"), ""),
    "another question": (lambda t: t.says("Done: it retries.").asks("And what of downloads?"), ""),
    "a failure that passed": (repaired, "a failure that passed"),
    "three of them": (
        lambda t: repaired(repaired(repaired(t), "ruff check ."), "mypy"),
        "3 failures that passed",
    ),
    "a refused call": (refused, "a refused call"),
    "a correction": (lambda t: t.says("I retry three times.").asks(NO), "a correction"),
    "two of a kind": (
        lambda t: t.says("I retry three times.").asks(NO).says("Done.").asks("No, that is wrong, use 4"),
        "2 corrections",
    ),
    "all of it": (
        lambda t: refused(repaired(t)).says("I retry three times.").asks(NO),
        "a failure that passed, a refused call and a correction",
    ),
}  # fmt: skip


@pytest.fixture
def team(make_vault: MakeVault, own_world: Path, text_only: None) -> Vault:
    write(own_world / "journal" / "recorded", "*\n")
    return open_vault(make_vault({"a.md": "# A\n\nB.\n"}).root)


def ended(team: Vault, talk: Conversation) -> None:
    """Let a session end: it is captured, and its note is worked off."""
    journal = Journal(team.config)
    spool.note(str(journal.folder), str(talk.file), spool.ENDED)
    capture.capture(journal, talk.file, "claude")
    at_end.run_ended(journal, lambda _root, _values: ("", ""), pytest.fail)


def session(team: Vault, name: str = "one", then: Talk = repaired) -> Conversation:
    talk = Conversation(team.root, name).asks("How many times should the uploader retry?")
    then(talk)
    ended(team, talk)
    return talk


@pytest.mark.parametrize("what", SESSIONS)
def test_of_twelve_sessions_six_are_named_each_once(team: Vault, what: str) -> None:
    then, said = SESSIONS[what]
    talk = session(team, what, then)
    wanted = f"lessons: the last session here had {said}: /lessons:learn last" if said else ""
    assert nudge.line(team, team.root, talk.id) == ""  # it goes on
    assert nudge.line(team, team.root, "the next") == wanted
    assert nudge.line(team, team.root, "one more") == ""


def test_status_counts_how_often_it_was_shown_and_followed(team: Vault) -> None:
    """Issue 58, row 12."""
    for name in ("one", "two"):
        talk = session(team, name)
        assert nudge.line(team, team.root, "the next")
    shown = "nudges     2 lines to learn from a session shown, "
    assert f"{shown}0 followed" in run("lessons", "status", cwd=team.root).out
    entry = {**ENTRY, "quotes": ["How many times should the uploader retry?"]}
    command = api.learn.propose(entries=[entry], folder=str(team.root), session=talk.id)
    client.ask(str(team.root), command)
    assert f"{shown}2 followed within a day" in run("lessons", "status", cwd=team.root).out


def test_what_was_proposed_from_is_not_named_nor_what_a_quiet_one_follows(team: Vault) -> None:
    talk = session(team)
    entry = {**ENTRY, "quotes": ["How many times should the uploader retry?"]}
    command = api.learn.propose(entries=[entry], folder=str(team.root), session=talk.id)
    assert client.ask(str(team.root), command).proposals
    assert nudge.line(team, team.root, "the next") == ""
    session(team, "two")
    session(team, "three", lambda t: t.says("Three times."))
    assert nudge.line(team, team.root, "the next") == ""


def test_two_proposals_that_wait_for_a_week_are_named_once_a_week(team: Vault) -> None:
    files = [
        Path(proposed(team, title, text)["file"])
        for title, text in (("Heap", "Raise the heap in CI."), ("Clock", "Freeze the clock."))
    ]
    assert nudge.line(team, team.root, "the next") == ""
    for file in files:
        os.utime(file, (time.time() - 8 * 86_400,) * 2)
    named = nudge.line(team, team.root, "the next")
    assert named == "lessons: 2 proposals have waited for a week: lessons review"
    assert nudge.line(team, team.root, "one more") == ""


@pytest.mark.slow
def test_the_hook_tells_the_person_and_not_the_model(team: Vault, own_world: Path) -> None:
    run("lessons", "index", cwd=team.root)
    session(team)

    def start(name: str, *words: str) -> str:
        event = {"hook_event_name": "SessionStart", "session_id": name, "source": "startup"}
        given = json.dumps({**event, "cwd": str(team.root)})
        return run("lessons-hook", *words, cwd=team.root, stdin=given).out

    write(own_world / "config.toml", "[learn]\nnudge = false\n")
    assert "/lessons:learn" not in start("zero")
    (own_world / "config.toml").unlink()
    assert "/lessons:learn" not in start("codex", "--agent", "codex")  # which shows no line
    answer = json.loads(start("one"))
    assert answer["systemMessage"].endswith("a failure that passed: /lessons:learn last")
    assert "/lessons:learn" not in json.dumps(answer.get("hookSpecificOutput", {}))
    assert "/lessons:learn" not in start("two")
