"""The clock is put forward and back: nothing waits for a time to come, and nothing goes for one."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from tests.support.conversations import about_retries
from tests.support.files import MakeVault, write
from tests.support.journals import a_journal, keep, prompt, sessions
from tests.support.proposing import proposed
from vault_index import files, state
from vault_index.config import load
from vault_index.embed import download
from vault_index.entrypoints import doctor, page_code
from vault_index.features import JournalTable
from vault_index.hotpath import log, protocol, spool, start
from vault_index.hotpath.hook_event import Event
from vault_index.journal import backlog, capture, forget
from vault_index.journal.journal import Journal
from vault_index.learn import at_end, nudge, runs
from vault_index.llm.backend import Usage
from vault_index.store import delivery, injections, manifest
from vault_index.store.delivery import Delivery, Given, HookReply
from vault_index.vault import Vault

DAY, YEAR = 86_400.0, 365 * 86_400.0
NOW = time.time()
AHEAD = {
    "by a day": NOW + DAY,
    "by a year": NOW + YEAR,
    "to 2040": 2_208_988_800.0,
}
SetClock = Callable[[float], None]


@pytest.fixture
def set_clock(monkeypatch: pytest.MonkeyPatch) -> SetClock:
    return lambda now: monkeypatch.setattr(time, "time", lambda: now)


@pytest.fixture(params=AHEAD)
def ahead(request: pytest.FixtureRequest, set_clock: SetClock) -> float:
    """The wrong time at which a test begins; it then has the clock put back."""
    now: float = AHEAD[request.param]
    set_clock(now)
    return now


@pytest.fixture
def vault(make_vault: MakeVault, text_only: None) -> Vault:
    return make_vault({"a.md": "# A\n\nB.\n"})


def asked(vault: Vault, **values: object) -> Event:
    begun = {"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": "Why?"}
    return Event.of({**begun, "cwd": str(vault.root), "began": time.time(), **values})


def test_a_prompt_typed_again_is_answered(vault: Vault, ahead: float, set_clock: SetClock) -> None:
    home, root = vault.config.home, vault.root
    assert delivery.claim(home, root, asked(vault))
    set_clock(NOW)
    assert delivery.claim(home, root, asked(vault))
    assert not delivery.claim(home, root, asked(vault))  # the second hook of that event


def test_a_prompt_with_an_id_is_answered_once_all_the_same(
    vault: Vault, set_clock: SetClock
) -> None:
    home, root = vault.config.home, vault.root
    set_clock(NOW + DAY)
    assert delivery.claim(home, root, asked(vault, prompt_id="one"))
    set_clock(NOW)
    assert not delivery.claim(home, root, asked(vault, prompt_id="one"))


def test_a_subagent_gets_no_note_of_long_ago(
    vault: Vault, ahead: float, set_clock: SetClock
) -> None:
    home, root = vault.config.home, vault.root
    delivery.leave_note(home, root, asked(vault), HookReply("old", Delivery("SubagentStart")))
    set_clock(NOW)
    delivery.leave_note(home, root, asked(vault), HookReply("new", Delivery("SubagentStart")))
    told = delivery.take_note(home, root, asked(vault))
    assert told
    assert told.text == "new"


def test_the_last_prompts_are_the_last_that_were_typed(
    vault: Vault, ahead: float, set_clock: SetClock
) -> None:
    home, root = vault.config.home, vault.root
    delivery.record(home, root, Delivery("UserPromptSubmit", said="wrong", given=(Given("w"),)))
    for number, said in enumerate(("first", "second")):
        set_clock(NOW + number)
        delivery.record(home, root, Delivery("UserPromptSubmit", said=said, given=(Given("a"),)))
    assert [each.said for each in injections.records(home, root)] == ["second", "first", "wrong"]
    assert [id for id, _ in injections.summary(home, root, ["a", "w"]).last_used] == ["a"]


def test_a_failure_of_that_time_is_no_failure_of_today(
    vault: Vault, ahead: float, set_clock: SetClock
) -> None:
    home, journal = vault.config.home, Journal(vault.config)
    about = {"event": "Stop", "message": "no answer", "cwd": str(vault.root)}
    write(home / log.HOOK_LOG, json.dumps({"time": delivery.iso_time(ahead), **about}) + "\n")
    stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(ahead))
    write(journal.folder / spool.FOLDER / start.LOG, f"{stamp} the disk is full\n")
    for now, seen in ((ahead, 1), (ahead - 8 * DAY, 0)):
        set_clock(now)
        assert len(injections.complaints_of(vault.root, home, doctor.DAY_SECONDS)) == seen
        assert len(backlog.complaints(journal)) == seen
    assert len(injections.complaints_of(vault.root, home)) == 1


def test_old_indexes_are_removed(tmp_path: Path, ahead: float, set_clock: SetClock) -> None:
    folder = tmp_path / ".vault_index"
    old = folder / "20400101-000000-abcd"
    os.utime(write(old / "manifest.json", "{}"), (ahead, ahead))
    set_clock(NOW)
    write(folder / "building" / "manifest.json", "{}")
    manifest.put_in_force(folder / "building")
    assert not old.exists()


def test_what_a_killed_writer_of_another_machine_left_is_removed(
    tmp_path: Path, ahead: float, set_clock: SetClock
) -> None:
    left = write(tmp_path / f".a.md.0badcafe-123-1{files.TEMPORARY}", "half")
    os.utime(left, (ahead, ahead))
    files.remove_left_overs(tmp_path)
    assert left.exists()
    set_clock(NOW)
    files.remove_left_overs(tmp_path)
    assert not left.exists()


def test_the_line_about_proposals_comes_again(
    vault: Vault, own_world: Path, ahead: float, set_clock: SetClock
) -> None:
    for title, text in (("Heap", "Raise the heap in CI."), ("Clock", "Freeze the clock.")):
        os.utime(proposed(vault, title, text)["file"], (0, 0))
    named = "lessons: 2 proposals have waited for a week: lessons review"
    assert nudge.line(vault, vault.root, "one") == named
    set_clock(NOW - 8 * DAY)
    assert nudge.line(vault, vault.root, "two") == named
    assert nudge.line(vault, vault.root, "three") == ""


def test_a_run_of_that_time_does_not_keep_others_out(vault: Vault, own_world: Path) -> None:
    one = runs.Run(str(vault.root), "session", "s", "digest", "rules", usage=asdict(Usage()))
    begun = runs.begin(load(), one)
    assert begun
    assert runs.begin(load(), one) is None  # it runs
    runs.end(load(), replace(begun, status=runs.BEGUN))
    with state.writing(own_world) as db:
        db.execute("UPDATE run SET at = '2040-01-01T00:00:00+00:00'")
    assert runs.begin(load(), one)


def test_a_session_that_ended_then_waits_no_longer_than_others(
    vault: Vault, own_world: Path, set_clock: SetClock
) -> None:
    write(own_world / "config.toml", "[learn]\nauto = true\n")
    write(own_world / "journal" / "recorded", "*\n")
    journal, talk = Journal(load()), about_retries(vault.root)
    capture.capture(journal, talk.file, "claude", force=True)
    spool.note(str(journal.folder), str(talk.file), spool.ENDED)
    for wait, left in ((DAY, 1), (YEAR, 0)):
        set_clock(NOW - wait)
        at_end.run_ended(journal, lambda *_: (runs.AWAY, ""), lambda _: None)
        assert len(backlog.ended(journal)) == left


def test_one_day_with_a_wrong_clock_lets_no_session_go(
    own_world: Path, ahead: float, set_clock: SetClock
) -> None:
    journal = a_journal(own_world)
    table = replace(journal.config[JournalTable], retention_days=30)
    journal = Journal(journal.config.with_tables(table))
    for name, at in (("old", NOW - 20 * DAY), ("new", NOW), ("wrong", ahead)):
        keep(journal, name, prompt(name, 1, "Why?", "2026-03-01T10:00:00.000Z"))
        with state.writing(own_world) as db:
            db.execute("UPDATE session SET written = ? WHERE id = ?", [int(at * 1e9), name])
    assert forget.expire(journal).sessions == 0
    set_clock(NOW)
    assert forget.expire(journal).sessions == 0
    assert len(sessions(journal)) == 3


def test_a_code_for_the_page_is_good_for_two_minutes(ahead: float, set_clock: SetClock) -> None:
    code = page_code.new_code("token", "http://127.0.0.1:1")
    assert page_code.is_good_code(code, "token", "http://127.0.0.1:1")
    set_clock(NOW)
    assert not page_code.is_good_code(code, "token", "http://127.0.0.1:1")


def test_pauses_end(vault: Vault, own_world: Path, ahead: float, set_clock: SetClock) -> None:
    """Before the next fetch of the model, and before the next wait for a watcher that hung."""
    tried = write(own_world / "models" / download.RECORD, "no network\n")
    Path(protocol.folder()).mkdir(parents=True, exist_ok=True)
    protocol.lose(str(vault.root))
    for file in (tried, Path(protocol.lost(str(vault.root)))):
        os.utime(file, (ahead, ahead))
    assert download.state(own_world).state == download.FAILED
    set_clock(NOW)
    assert download.state(own_world).state == download.MISSING
    protocol.refuse_lost(str(vault.root))  # raises nothing
