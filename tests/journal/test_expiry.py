"""Nothing goes by its age, unless the user's settings say after how many days."""

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

from tests.support.agent_files import turn, write_transcript
from tests.support.commands import run
from vault_index import config
from vault_index.ask import conversations
from vault_index.ask.conversations import Exchange
from vault_index.features import JournalTable
from vault_index.journal import archive, forget, importing, projects
from vault_index.journal.journal import Journal
from vault_index.vault import Vault, open_vault

AGE = 400  # days


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


def keeping(journal: Journal, days: int) -> Journal:
    table = replace(journal.config[JournalTable], retention_days=days)
    return Journal(journal.config.having(table))


def test_nothing_goes_unless_the_settings_say_when(journal: Journal) -> None:
    assert forget.expire(journal).sessions == 0
    for days in (0, AGE + 10, 999_999_999):
        assert forget.expire(keeping(journal, days)).sessions == 0
    assert sessions(journal) == 3
    assert forget.expire(keeping(journal, AGE - 10)).sessions == 3
    assert sessions(journal) == 0


@pytest.mark.slow
def test_a_command_that_writes_lets_old_sessions_go(journal: Journal, own_world: Path) -> None:
    (own_world / "config.toml").write_text("[journal]\nretention_days = 365\n")
    done = run("lessons", "journal", "import", cwd=own_world)
    assert "note: 3 sessions older than 365 days went\n" in done.err
    assert sessions(journal) == 0


def test_conversations_go_with_sessions(own_world: Path, make_vault: Callable[..., Vault]) -> None:
    settings = "[ask]\nrecord = true\n[journal]\nretention_days = 365\n"
    (own_world / "config.toml").write_text(settings)
    recording = open_vault(make_vault({}).root)
    asked = Exchange("How?", "So.")
    conversations.add(recording, conversations.open_(recording), asked)
    (file,) = (projects.private_folder(recording, conversations.FOLDER) or Path()).glob("*.json")
    os.utime(file, (0, 0))
    went = conversations.add(recording, conversations.open_(recording), asked)
    assert went == "1 conversation older than 365 days went"
    assert not file.exists()
