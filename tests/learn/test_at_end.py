"""`[learn] auto = true`: a session that ended is learned from once, without being in the way."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import run
from tests.support.conversations import Conversation, about_redirects, about_retries
from tests.support.files import MakeVault, commit
from tests.support.watchers import soon, watched
from vault_index import api, client
from vault_index.config import Config, load
from vault_index.hotpath import spool
from vault_index.journal import backlog, capture
from vault_index.journal.journal import Journal
from vault_index.learn import at_end, runs
from vault_index.vault import Vault

AUTO = "[learn]\nauto = true\n"


@pytest.fixture
def team(make_vault: MakeVault, own_world: Path, text_only: None) -> Vault:
    """A vault whose sessions are recorded and learned from."""
    (own_world / "config.toml").write_text(AUTO)
    vault = make_vault({"ops.md": "Restart the worker after a deploy."})
    commit(vault.root)
    return vault


class Learner:
    """Stands for the command `learn`: it answers with a status; `values` are the calls."""

    def __init__(self, status: str = runs.PROPOSED) -> None:
        self.status = status
        self.values: list[tuple[str, dict[str, Any]]] = []

    def __call__(self, root: str, values: dict[str, Any]) -> tuple[str, str]:
        self.values.append((root, values))
        return self.status, ""


def ended(talk: Conversation) -> Journal:
    """Return the journal, which a session is in, and in which its end is noted."""
    journal = Journal(load())
    capture.capture(journal, talk.file, "claude", force=True)
    journal.folder.mkdir(exist_ok=True, parents=True)
    spool.note(str(journal.folder), str(talk.file), spool.ENDED)
    return journal


def run_at_end(journal: Journal, learner: Learner) -> list[str]:
    said: list[str] = []
    at_end.run_ended(journal, learner, said.append)
    return said


def test_a_session_that_ended_is_learned_from_in_the_vault_of_its_folder(team: Vault) -> None:
    talk, learner = about_redirects(team.root), Learner()
    journal = ended(talk)
    assert run_at_end(journal, learner) == []
    values = {"scope": "session", "target": talk.id, "asked_by": runs.NOBODY}
    assert learner.values == [(str(team.root), values)]
    assert backlog.ended(journal) == []
    assert run_at_end(journal, learner) == []
    assert len(learner.values) == 1


def test_nothing_is_learned_where_nobody_wants_it(team: Vault, own_world: Path) -> None:
    (own_world / "config.toml").unlink()
    learner = Learner()
    journal = ended(about_redirects(team.root))
    run_at_end(journal, learner)
    assert learner.values == []
    assert backlog.ended(journal) == []
    assert not (own_world / "learn").exists()


def test_a_model_that_is_away_is_tried_at_the_next_end(team: Vault) -> None:
    learner = Learner(runs.AWAY)
    journal = ended(about_redirects(team.root))
    run_at_end(journal, learner)
    assert len(backlog.ended(journal)) == 1
    old = journal.folder / spool.FOLDER / backlog.ended(journal)[0].name
    os.utime(old, (1_000_000, 1_000_000))
    run_at_end(journal, learner)
    assert len(learner.values) == 2
    assert backlog.ended(journal) == []  # after two days nobody waits any more


def test_one_process_does_it_at_a_time(team: Vault, own_world: Path) -> None:
    learner = Learner()
    journal = ended(about_redirects(team.root))
    with (own_world / at_end.LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        run_at_end(journal, learner)
    assert learner.values == []
    assert len(backlog.ended(journal)) == 1


def test_only_the_end_of_a_session_is_noted(team: Vault, own_world: Path) -> None:
    talk = about_redirects(team.root)
    (own_world / "journal").mkdir()
    (own_world / "journal" / "recorded").write_text("*\n")
    journal = Journal(Config(home=own_world))
    for event in ("Stop", "SubagentStop", "PreCompact"):
        assert spool.note_end(talk.event(event), str(team.root))
    assert backlog.ended(journal) == []
    assert spool.note_end(talk.event("SessionEnd"), str(team.root))
    assert [note.transcript for note in backlog.ended(journal)] == [talk.file]
    assert [note.transcript for note in backlog.waiting(journal)] == [talk.file]


@pytest.mark.slow
@pytest.mark.parametrize("by", ["a process", "the watcher"])
def test_from_the_hook_to_a_proposal_and_never_twice(team: Vault, by: str) -> None:
    run("lessons", "install", "claude", "--journal", cwd=team.root)
    talk = about_retries(team.root)
    event = talk.event("SessionEnd")
    journal = Journal(load())

    def hook() -> None:
        done = run("lessons-hook", cwd=team.root, stdin=json.dumps(event))
        assert (done.out, done.err) == ("", "")

    def proposals() -> list[Any]:
        return [*client.ask(team, api.proposal.select())]

    def is_settled() -> bool:
        return not backlog.ended(journal) and not backlog.waiting(journal)

    with watched(team) if by == "the watcher" else contextlib.nullcontext():
        hook()
        soon(proposals, seconds=120)
        (made,) = proposals()
        assert made.is_draft
        soon(is_settled, seconds=120)
        talk.asks("And the logout?").says("The logout keeps the query, too, I looked.")
        hook()
        soon(is_settled, seconds=120)
        assert len(runs.runs(journal.config)) == 1
        printed = run("lessons", "status", cwd=team.root).out
    assert "learning   1 run, 1 proposal, at the end of sessions" in printed
