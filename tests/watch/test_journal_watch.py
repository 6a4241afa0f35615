"""The journal in the watcher: a turn is found a moment after its end; prompts are answered meanwhile."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import run
from tests.support.conversations import Conversation, about_redirects, about_retries
from tests.support.files import lesson_text
from tests.support.journals import a_journal
from tests.support.watchers import soon, watched
from vault_index.hotpath import protocol
from vault_index.journal import archive
from vault_index.vault import Vault
from vault_index.watch import journal

pytestmark = pytest.mark.slow


@pytest.fixture
def team(make_vault: Callable[..., Vault], text_only: None) -> Vault:
    """A vault whose project is recorded."""
    vault = make_vault({"devops/heap.md": lesson_text("Heap", "Raise the heap of the build.")})
    run("lessons", "index", cwd=vault.root)
    run("lessons", "install", "claude", "--journal", cwd=vault.root)
    return vault


def ask(vault: Vault, name: str, **values: Any) -> Any:
    """Ask the watcher itself: no answer comes from anywhere else."""
    question = {"ask": f"journal.{name}", "with": values, "fresh": False}
    return protocol.ask(str(vault.root), question, timeout=60)["answer"]


def sessions(vault: Vault) -> list[str]:
    return [each["id"] for each in ask(vault, "sessions")]


def hook(talk: Conversation, name: str = "Stop") -> None:
    done = run("lessons-hook", cwd=talk.folder, stdin=json.dumps(talk.event(name)))
    assert (done.code, done.out, done.err) == (0, "", "")


def test_a_killed_agent_loses_nothing(team: Vault) -> None:
    """No hook says that the transcript grew; the watcher looks by itself."""
    first = about_redirects(team.root)  # grew before the watcher began
    with watched(team):
        soon(lambda: first.id in sessions(team))
        second = about_retries(team.root)
        soon(lambda: second.id in sessions(team), seconds=journal.SCAN_SECONDS + 30)


def test_commands_are_answered_by_the_watcher_and_see_what_just_grew(team: Vault) -> None:
    with watched(team):
        hook(about_redirects(team.root))
        (session,) = run("lessons", "journal", "sessions", "--json", cwd=team.root).json
        shown = run("lessons", "journal", "show", session["id"], cwd=team.root).out
        assert "[bugfix]" in shown


def test_two_watchers_take_each_turn_in_once(
    team: Vault, make_vault: Callable[..., Vault], own_world: Path
) -> None:
    other = make_vault({"a.md": lesson_text("A", "B.")}, name="other")
    run("lessons", "index", cwd=other.root)
    with watched(team), watched(other):
        talks = [about_redirects(team.root), about_redirects(other.root)]
        for talk in talks:
            hook(talk)
        expected = sorted(talk.id for talk in talks)
        soon(lambda: sorted(sessions(team)) == expected == sorted(sessions(other)))
        assert len(archive.latest(a_journal(own_world))) == 2


def test_prompts_are_answered_while_the_journal_works(team: Vault) -> None:
    with watched(team):
        for number in range(5):
            talk = Conversation(team.root, str(number))
            for turn in range(20):
                talk.asks(f"Question {turn} of {number}").says("An answer of some words. " * 50)
            hook(talk)
        asked = {"ask": "search.find", "with": {"query": {"text": "heap"}}, "fresh": False}
        protocol.ask(str(team.root), asked, timeout=60)
        soon(lambda: len(sessions(team)) == 5)
