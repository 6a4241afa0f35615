"""Taking a transcript in: nothing is lost, nothing is there twice, and no secret is kept."""

from __future__ import annotations

import stat
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from tests.journal.agent_files import session_id, turn, write_transcript
from tests.support.commands import run
from tests.support.journals import sessions
from vault_index import state
from vault_index.features import JournalTable
from vault_index.journal import archive, capture, projects
from vault_index.journal.journal import Journal
from vault_index.transcripts import events


def test_a_session_goes_on_where_it_was(journal: Journal, own_world: Path) -> None:
    turns = [turn("a", number, f"Do step {number} of the login") for number in range(1, 5)]
    file = write_transcript(own_world, "a", turns[0])
    for count in (1, 2, 4, 4):
        write_transcript(own_world, "a", *turns[:count])
        taken = capture.capture(journal, file, "claude", force=True)
        assert taken.session
        assert taken.session.prompts == count
    assert taken.new == 0
    (kept,) = archive.latest(journal)
    step_by_step, there = sessions(journal), archive.moments_of(journal, kept)
    (own_world / state.FILE).unlink()
    capture.capture(journal, file, "claude", force=True)
    assert sessions(journal) == step_by_step
    assert archive.moments_of(journal, kept) == there
    for file in own_world.glob(f"{state.FILE}*"):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file


def test_only_what_is_recorded_and_a_session_of_its_user(
    journal: Journal, own_world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write_transcript(own_world, "a", turn("a", 1, "Fix the login"))
    assert capture.capture(journal, file, "claude").why == capture.NOT_RECORDED
    projects.record(journal, "/code/shop")
    ours = write_transcript(own_world, "b", turn("b", 1, f"{events.MARKER}\nSummarise this."))
    empty = write_transcript(own_world, "c")
    assert capture.capture(journal, ours, "claude").session is None
    assert capture.capture(journal, empty, "claude", force=True).why == capture.NO_WORK
    assert sessions(journal) == {}
    monkeypatch.setenv("LESSONS_INTERNAL", "1")
    assert capture.capture(journal, file, "claude").why == capture.OURS
    monkeypatch.delenv("LESSONS_INTERNAL")
    assert capture.capture(journal, file, "claude").session


@pytest.mark.slow
def test_files_that_git_ignores_or_the_user_names_are_left_out(
    journal: Journal, own_world: Path, tmp_path: Path
) -> None:
    shop = tmp_path / "shop"
    run("git", "init", "-q", shop, cwd=tmp_path)
    (shop / ".gitignore").write_text("*.local\n/private/\n")
    named = journal.config.with_tables(
        replace(journal.config[JournalTable], exclude=("customers/*",))
    )
    file = write_transcript(
        own_world,
        "a",
        turn("a", 1, "Fix it", str(shop), file="settings.local"),
        turn("a", 2, "Look at private/plan.md.", str(shop), command="cat private/plan.md",
             output="secret plan", status="1"),
        turn("a", 3, "And customers/acme.txt?", str(shop), file="customers/acme.txt"),
        turn("a", 4, "Fix src/login.py", str(shop), file="src/login.py"),
    )  # fmt: skip
    session = capture.capture(Journal(named), file, "claude", force=True).session
    assert session
    kept = f"{session} {archive.moments_of(journal, session)}"
    for gone in ("settings.local", "private/plan", "secret plan", "acme"):
        assert gone not in kept, gone
    assert "src/login.py" in kept
    assert "Look at [left out]." in kept


def test_a_resumed_copy_repeats_nothing(journal: Journal, own_world: Path) -> None:
    old = turn("a", 1, "Fix the login")
    copy = [record | {"sessionId": session_id("b")} for record in old]
    first = capture.capture(journal, write_transcript(own_world, "a", old), "claude", force=True)
    again = write_transcript(own_world, "b", copy)
    assert capture.capture(journal, again, "claude", force=True).why == capture.COPY
    again = write_transcript(own_world, "b", copy, turn("b", 2, "Now the logout"))
    second = capture.capture(journal, again, "claude", force=True)
    assert first.session
    assert second.session
    prompts = [record.text for record in second.session.records if record.kind == "prompt"]
    assert prompts == ["Now the logout"]
    assert len(first.session.records) == 3


def test_two_readers_at_once(journal: Journal, own_world: Path) -> None:
    turns = [turn("a", number, f"Do step {number}") for number in range(1, 9)]
    file = write_transcript(own_world, "a", *turns)
    threads = [
        threading.Thread(
            target=capture.capture, args=(journal, file, "claude"), kwargs={"force": True}
        )
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (session,) = sessions(journal).values()
    assert session.prompts == 8
