"""Nothing goes by its age, unless the user's settings say after how many days."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.journal.agent_files import turn, write_transcript
from tests.support.commands import run
from tests.support.journals import keep, prompt, sessions
from vault_index import config, state
from vault_index.ask import conversations
from vault_index.ask.conversations import Exchange
from vault_index.features import JournalTable
from vault_index.journal import forget, importing
from vault_index.journal.journal import Journal
from vault_index.vault import Vault, open_vault

AGE = 400  # days


def day(ago: float) -> str:
    return (datetime.now(UTC) - timedelta(days=ago)).date().isoformat()


@pytest.fixture
def journal(own_world: Path, text_only: None) -> Journal:
    """A journal of three sessions that ended long ago, with their transcripts."""
    journal = Journal(config.load())
    for name in "abc":
        dated = json.dumps(turn(name, 1, f"Fix the login of {name}"))
        records = json.loads(re.sub(r"\d{4}-\d\d-\d\dT", f"{day(AGE)}T", dated))
        write_transcript(own_world, name, records, mtime=int(time.time() - AGE * 86_400))
    importing.import_all(journal, 0.0)
    return journal


def age(journal: Journal, days: int) -> None:
    """Have all sessions been taken in so long ago, one two days ago, and one today."""
    ago = "UPDATE session SET written = written - ?"
    for name, before in (("lately", days - 2), ("now", 2)):
        with state.writing(journal.home) as db:
            db.execute(ago, [before * 86_400 * 10**9])
        keep(journal, name, prompt(name, 1, "And then?", f"{day(0)}T10:00:00.000Z"))


def keeping(journal: Journal, days: int) -> Journal:
    table = replace(journal.config[JournalTable], retention_days=days)
    return Journal(journal.config.with_tables(table))


def test_nothing_goes_unless_the_settings_say_when(journal: Journal) -> None:
    assert forget.expire(keeping(journal, 10)).sessions == 0, "imported a moment ago"
    age(journal, AGE)
    assert forget.expire(journal).sessions == 0
    for days in (0, AGE + 10, 999_999_999):
        assert forget.expire(keeping(journal, days)).sessions == 0
    assert len(sessions(journal)) == 5
    assert forget.expire(keeping(journal, AGE - 10)).sessions == 3
    assert [*sessions(journal)] == ["lately", "now"]


def test_a_clock_alone_lets_nothing_go(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    later = time.time() + AGE * 86_400
    monkeypatch.setattr(time, "time", lambda: later)
    assert forget.expire(keeping(journal, 10)).sessions == 0


@pytest.mark.slow
def test_a_command_that_writes_lets_old_sessions_go(journal: Journal, own_world: Path) -> None:
    age(journal, AGE)
    (own_world / "config.toml").write_text("[journal]\nretention_days = 365\n")
    done = run("lessons", "journal", "import", cwd=own_world)
    assert "note: 3 sessions older than 365 days went\n" in done.err
    assert [*sessions(journal)] == ["lately", "now"]


def test_conversations_go_with_sessions(own_world: Path, make_vault: Callable[..., Vault]) -> None:
    settings = "[ask]\nrecord = true\n[journal]\nretention_days = 365\n"
    (own_world / "config.toml").write_text(settings)
    recording = open_vault(make_vault({}).root)
    asked = Exchange("How?", "So.")
    for at in ("1970-01-01", day(2)):
        conversations.add(recording, conversations.open_(recording), asked)
        with state.writing(own_world) as db:
            db.execute(f"UPDATE conversation SET at = '{at}T00:00:00+00:00' WHERE at > '{day(1)}'")
    went = conversations.add(recording, conversations.open_(recording), asked)
    assert went == "1 conversation older than 365 days went"
    with state.reading(own_world) as db:
        assert db.execute("SELECT count(*) FROM conversation").fetchone() == (2,)
