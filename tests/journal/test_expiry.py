"""What is old goes by a clock that can be trusted, and stays for a week; a wrong clock erases nothing."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.support.agent_files import files_below, session_id, turn, write_transcript
from tests.support.commands import run
from tests.support.homes import clock_ran
from vault_index import config
from vault_index.ask import conversations
from vault_index.ask.conversations import Exchange
from vault_index.features import JournalTable
from vault_index.journal import archive, expiry, forget, importing, projects
from vault_index.journal.journal import Journal
from vault_index.vault import Vault, open_vault

AGE = 400  # days, more than sessions are kept


def day(ago: float) -> str:
    return (datetime.now(UTC) - timedelta(days=ago)).date().isoformat()


@pytest.fixture
def journal(own_world: Path, monkeypatch: pytest.MonkeyPatch) -> Journal:
    """A journal of three sessions that ended long ago, with their transcripts."""
    monkeypatch.setenv("LESSONS_EMBEDDER", "none")
    journal = Journal(config.load())
    for name in "abc":
        dated = json.dumps(turn(name, 1, f"Fix the login of {name}"))
        records = json.loads(re.sub(r"\d{4}-\d\d-\d\dT", f"{day(AGE)}T", dated))
        write_transcript(own_world, name, records, mtime=int(time.time() - AGE * 86_400))
    importing.import_all(journal, 0.0)
    for file in archive.all_files(journal.folder):
        os.utime(file, (0, 0))
    return journal


def sessions(journal: Journal) -> int:
    return len(list(archive.all_files(journal.folder)))


def use_an_agent(world: Path, name: str = "today") -> None:
    """Let a transcript be of today, for the next import."""
    dated = json.dumps(turn(name, 1, "Fix the logout"))
    write_transcript(world, name, json.loads(re.sub(r"\d{4}-\d\d-\d\dT", f"{day(0)}T", dated)))


@pytest.mark.slow
def test_old_sessions_stay_for_a_week_after_they_went(journal: Journal, own_world: Path) -> None:
    use_an_agent(own_world)
    done = run("lessons", "journal", "import", cwd=own_world)
    until = day(-7)
    assert f"note: 3 sessions older than 365 days went; kept until {until} in " in done.err
    assert sessions(journal) == 1
    (kept,) = expiry.put_away_in(journal.config.home, "journal")
    assert len(list(archive.all_files(kept))) == 3
    assert all(path.stat().st_mode & 0o077 == 0 for path in kept.parent.rglob("*"))
    assert forget.expire(journal).sessions == 0
    kept.parent.rename(kept.parent.with_name(day(8)))
    forget.expire(journal)
    assert expiry.put_away_in(journal.config.home, "journal") == []


@pytest.mark.slow
def test_what_is_forgotten_is_gone_from_there_too(journal: Journal, own_world: Path) -> None:
    use_an_agent(own_world)
    importing.import_all(journal)
    assert forget.expire(journal).sessions == 3
    assert forget.forget(journal, session=session_id("a")).sessions == 1
    (kept,) = expiry.put_away_in(journal.config.home, "journal")
    assert len(list(archive.all_files(kept))) == 2
    assert forget.forget(journal, matching="login of b").sessions == 1
    assert not any(b"login of b" in data for data in files_below(kept).values())


@pytest.mark.slow
@pytest.mark.parametrize("last", [AGE, 30, -AGE], ids=["ahead", "a month ahead", "back"])
def test_a_clock_that_jumped_erases_nothing(journal: Journal, own_world: Path, last: float) -> None:
    clock_ran(own_world, since=last + 100, last=last)
    use_an_agent(own_world)
    for _ in range(3):
        assert "went" not in run("lessons", "journal", "import", cwd=own_world).err
    assert sessions(journal) == 4
    clock = json.loads((own_world / "expired" / "clock.json").read_text())
    clock["since"] = (datetime.now(UTC) - timedelta(days=1.1)).isoformat()
    (own_world / "expired" / "clock.json").write_text(json.dumps(clock))
    assert forget.expire(journal).sessions == 3, "it ran on for a day, and agents say the same"


def test_a_clock_that_agents_do_not_confirm_erases_nothing(
    journal: Journal, own_world: Path
) -> None:
    assert forget.expire(journal).sessions == 0, "their transcripts are of another year"
    clock_ran(own_world, since=29, last=1)
    assert forget.expire(journal).sessions == 0
    clock_ran(own_world, since=31, last=1)
    assert forget.expire(journal).sessions == 3, "no agent was used for a month"


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"since": "x", "last": "y"}', "null", "\0"])
def test_a_damaged_record_of_the_clock_is_none(
    journal: Journal, own_world: Path, damage: str
) -> None:
    clock_ran(own_world, since=100, last=1)
    (own_world / "expired" / "clock.json").write_text(damage)
    assert forget.expire(journal).sessions == 0
    assert sessions(journal) == 3


def test_conversations_stay_for_a_week_and_only_by_a_clock_to_trust(
    own_world: Path, make_vault: Callable[..., Vault]
) -> None:
    (own_world / "config.toml").write_text("[ask]\nrecord = true\n")
    recording = open_vault(make_vault({}).root)
    asked = Exchange("How?", "So.")
    conversations.add(recording, conversations.open_(recording), asked)
    (file,) = (projects.private_folder(recording, conversations.FOLDER) or Path()).glob("*.json")
    os.utime(file, (0, 0))
    clock_ran(own_world, since=100, last=AGE)
    assert conversations.add(recording, conversations.open_(recording), asked) == ""
    assert file.exists()
    clock_ran(own_world, since=100, last=1)
    went = conversations.add(recording, conversations.open_(recording), asked)
    assert went.startswith("1 conversation older than 365 days went; kept until ")
    (kept,) = expiry.put_away_in(own_world, conversations.FOLDER)
    assert [each.name for each in kept.rglob("*.json")] == [file.name]


def test_retention_for_ever_expires_nothing(journal: Journal, own_world: Path) -> None:
    clock_ran(own_world, since=100, last=1)
    for days in (0, 999_999_999):
        patient = Journal(
            journal.config.having(replace(journal.config[JournalTable], retention_days=days))
        )
        assert forget.expire(patient).sessions == 0
