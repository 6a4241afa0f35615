"""Forgotten sessions are gone from files, rows and vectors, whatever interrupts it."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.journal.agent_files import DAY, bytes_below, session_id, turn, write_transcript
from tests.support.commands import run
from tests.support.files import write
from tests.support.given import note
from tests.support.journals import drop, sessions
from vault_index import config, files, state
from vault_index.ask.conversations import Conversation, Exchange
from vault_index.errors import VaultError, WriteError
from vault_index.hotpath import spool
from vault_index.journal import backlog, forget, importing, index
from vault_index.journal.journal import PENDING, Journal
from vault_index.journal.record import private_id
from vault_index.proposals.fingerprint import Fingerprint

WORD = "quokkaburrow"
SAID = f"Rename the {WORD} service in all of its files"
KILLS = int(os.environ.get("LESSONS_KILLS", "6"))  # moments: by hand there were 200


@pytest.fixture
def journal(own_world: Path, text_only: None) -> Journal:
    journal = Journal(config.load())
    for name, folder in (("a", "/code/shop"), ("b", "/code/shop"), ("c", "/code/api")):
        said = SAID if name == "a" else f"Fix the login of {name}"
        first = turn(name, 1, said, folder, answer=f"Done: {said}.")
        write_transcript(own_world, name, first, turn(name, 2, f"Now the logout of {name}", folder))
    importing.import_all(journal)
    index.sync(journal)
    return journal


def has(home: Path, text: str = WORD) -> list[str]:
    """Return the user's files, but the agent's transcripts, that have a text."""
    wanted, files = text.lower().encode(), bytes_below(home).items()
    return [path for path, data in files if wanted in data.lower() and "claude" not in path]


@pytest.mark.slow
def test_records_with_a_text_are_gone_and_stay_away(journal: Journal, own_world: Path) -> None:
    assert has(own_world)
    done = forget.forget(journal, matching=WORD.upper())
    assert done.records >= 2
    assert done.left == ()
    assert done.bytes_searched > 1000
    assert has(own_world) == []
    rest = sessions(journal)[session_id("a")]
    assert "Now the logout of a" in [each.text for each in rest.records]
    copy = [one | {"sessionId": session_id("d")} for one in turn("a", 1, SAID)]
    write_transcript(own_world, "d", copy, turn("d", 2, "Go on"))
    write_transcript(own_world, "a", turn("a", 3, f"The {WORD} again"), mtime=int(time.time()) + 9)
    importing.import_all(journal)
    index.sync(journal)
    assert has(own_world) == []
    assert "Go on" in [each.text for each in sessions(journal)[session_id("d")].records]


@pytest.mark.slow
def test_sessions_and_projects_are_gone(journal: Journal, own_world: Path) -> None:
    done = forget.forget(journal, session=session_id("a")[:8])
    assert (done.sessions, done.left) == (1, ())
    assert has(own_world, session_id("a")) == []
    assert forget.forget(journal, project="api").sessions == 1
    importing.import_all(journal)
    assert [*sessions(journal)] == [session_id("b")]
    assert forget.forget(journal, before=DAY).sessions == 0
    assert forget.forget(journal, before=f"{DAY}T23").sessions == 1
    assert sessions(journal) == {}


def test_nothing_is_forgotten_unasked(journal: Journal) -> None:
    with pytest.raises(VaultError, match="nothing to forget is named"):
        forget.forget(journal)
    assert forget.forget(journal, matching="no such text").records == 0
    assert len(sessions(journal)) == 3


def waiting(journal: Journal) -> bool:
    return (journal.folder / PENDING).exists()


@pytest.mark.slow
def test_what_was_made_of_a_session_goes_with_it(journal: Journal, own_world: Path) -> None:
    drafts = journal.config.home / "proposals" / "shop" / "vault"
    drafts.mkdir(parents=True)
    learned = f"---\nproposal: {{session: {private_id(session_id('a'))}}}\n---\nIn other words.\n"
    (drafts / "0a0a0a0a.md").write_text(learned)
    (drafts / "0b0b0b0b.md").write_text("---\ntitle: Log in\n---\nOf another session.\n")
    note(own_world, own_world / "team", "heap", said=SAID)
    asked = Conversation("x" * 32, exchanges=(Exchange("what was it?", SAID),))
    with state.writing(own_world) as db:
        for id, session in (("1", private_id(session_id("a"))), ("2", "")):
            state.insert(db, "rejected", Fingerprint(id, "", (), session=session), place="x")
        state.insert(db, "conversation", asked, vault="x", at="")
    done = forget.forget(journal, session=session_id("a"))
    assert (done.sessions, done.beside, done.left, done.lessons) == (1, 3, (), ())
    assert [path.name for path in drafts.iterdir()] == ["0b0b0b0b.md"]
    with state.reading(own_world) as db:
        assert db.execute("SELECT id FROM rejected").fetchall() == [("2",)]
        assert db.execute("SELECT count(*) FROM conversation").fetchone() == (0,)
        assert db.execute("SELECT said FROM injection").fetchall() == [("",)]
    assert has(own_world) == []


@pytest.mark.slow
def test_an_accepted_lesson_stays_and_is_named(journal: Journal, tmp_path: Path) -> None:
    lesson = tmp_path / "team" / "lessons" / "rename.md"
    lesson.parent.mkdir(parents=True)
    lesson.write_text(f"# Rename\n\n{SAID}\n")
    there = replace(journal.config, vault=tmp_path / "team")
    done = forget.forget(Journal(there), session=session_id("a"))
    assert (done.left, done.lessons) == ((), (str(lesson),))
    assert f"accepted lessons keep it: {lesson}" in done.proof
    assert lesson.exists()


@pytest.mark.slow
def test_a_text_that_only_the_index_has_is_searched_for_and_taken_out(
    journal: Journal, own_world: Path
) -> None:
    drop(journal, sessions(journal)[session_id("a")])  # and wrote nothing down
    state.shrink(own_world)
    assert has(journal.folder)
    printed = run("lessons", "journal", "forget", "--matching", WORD, "--yes", cwd=own_world).out
    assert "nothing in the journal matches" in printed
    assert "nothing of it is left" in printed
    assert has(own_world) == []


@pytest.mark.slow
def test_on_a_full_disk_it_is_noted_and_finished_at_the_next_command(
    journal: Journal, own_world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = files.replace_file

    def full(path: Path, data: bytes) -> None:
        if path.name != PENDING:
            raise WriteError(f"cannot write {path}: the disk is full", "free some space")
        write(path, data)

    with monkeypatch.context() as patch:
        patch.setattr(files, "replace_file", full)
        done = forget.forget(journal, matching=WORD)
    assert has(own_world) == [], "an index that cannot be built again is not kept either"
    assert done.left == ()
    printed = run("lessons", "journal", "search", "login", "--all-projects", cwd=own_world).out
    assert "Fix the login" in printed
    assert has(own_world) == []


@pytest.mark.slow
def test_after_a_kill_at_any_moment_the_next_command_finishes(
    journal: Journal, own_world: Path
) -> None:
    saved = own_world.parent / "saved"
    subprocess.run(["cp", "-a", str(own_world), str(saved)], check=True)
    command = [str(Path(sys.executable).parent / "lessons"), "journal", "forget"]
    command += ["--matching", WORD, "--yes"]
    began = time.monotonic()
    subprocess.run(command, check=True, capture_output=True)
    whole = time.monotonic() - began
    begun = 0
    chance = random.Random(KILLS)
    for number in range(KILLS):
        subprocess.run(["rm", "-rf", str(own_world)], check=True)
        subprocess.run(["cp", "-a", str(saved), str(own_world)], check=True)
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if number % 2:  # as soon as something is noted, and a little later
            while process.poll() is None and not waiting(journal):
                time.sleep(0.001)
            if number > 1:  # the first at once, so that no pause is too long for all of them
                time.sleep(chance.uniform(0, 0.2 * whole))
        else:
            time.sleep(chance.uniform(0, whole))
        process.send_signal(signal.SIGKILL)
        process.wait()
        is_begun = waiting(journal)
        begun += is_begun
        run("lessons", "journal", "status", cwd=own_world)
        assert not waiting(journal)
        left = has(own_world)
        is_whole = WORD in str(sessions(journal))  # the kill came before the note
        assert left == [] or (is_whole and not is_begun), left
    assert begun, f"none of {KILLS} kills came between the note and its end"


@pytest.mark.slow
def test_the_path_of_a_transcript_is_gone_from_the_spool_and_looked_for(
    journal: Journal, own_world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, gone = (sessions(journal)[session_id(name)] for name in ("b", "a"))
    for session in (kept, gone):
        backlog.add(journal, [Path(session.transcript)])
        spool.note(str(journal.folder), session.transcript, spool.ENDED)
        backlog.complain(journal, f"error: {session.transcript} cannot be read")
    grown = journal.folder / spool.FOLDER
    write(grown / "0123456789abcdef.77", gone.transcript[:-9])  # of a hook that was killed
    write(grown / "0123456789abcdef.taken", gone.transcript)
    assert len(has(grown, gone.transcript)) == 4
    with monkeypatch.context() as patch:
        patch.setattr(backlog, "forget", lambda *_: None)
        left = forget.forget(journal, session=gone.id).left
        assert {Path(file).parent for file in left} == {grown}
    assert has(grown, gone.transcript)
    backlog.forget(journal, [gone.transcript])
    assert has(own_world, gone.transcript[:-9]) == []
    assert [note.transcript for note in backlog.waiting(journal)] == [Path(kept.transcript)]
    assert len(backlog.complaints(journal)) == 1


@pytest.mark.slow
def test_a_transcript_that_waits_is_forgotten_with_its_session(
    journal: Journal, own_world: Path
) -> None:
    gone = sessions(journal)[session_id("a")]
    backlog.add(journal, [Path(gone.transcript)])
    done = forget.forget(journal, session=gone.id)
    assert (done.sessions, done.left) == (1, ())
    assert has(own_world, gone.transcript) == []
