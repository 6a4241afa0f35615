"""The hook before an edit: at the first edit of a file that a lesson is for, that lesson in one line."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import run
from tests.support.files import lesson_text
from tests.support.given import records
from tests.support.watchers import watched
from vault_index.hotpath import hook_event
from vault_index.vault import Vault

FILES = {
    "development/migrations.md": "---\ntitle: Migrations are never edited\n"
    "applies_to: ['migrations/**']\n---\nAdd a new one: those of main ran in production already.\n",
    "development/sql.md": "---\ntitle: Index names\napplies_to: '*.sql'\n---\nName them `ix_table`.\n",
    "conventions/dates.md": lesson_text("Dates are UTC", "Store dates in UTC, show local ones."),
}

pytestmark = pytest.mark.slow


@pytest.fixture
def team(team: Vault) -> Iterator[Vault]:
    with watched(team):
        yield team


def edits(vault: Vault, file: str, tool: str = "Edit", **more: Any) -> str:
    """Send the call of an edit to a real hook process; return the line of a lesson, "" for silence."""
    values = {"notebook_path" if tool == "NotebookEdit" else "file_path": str(vault.root / file)}
    event = {
        "hook_event_name": "PreToolUse",
        "session_id": "s1",
        "cwd": str(vault.root),
        "tool_name": tool,
        "tool_input": {**values, "old_string": "a", "new_string": "b"},
        "tool_use_id": f"toolu_{time.monotonic_ns()}",
    } | more
    done = run("lessons-hook", cwd=vault.root, stdin=json.dumps(event))
    assert done.err == ""
    if not done.out:
        return ""
    output = json.loads(done.out)["hookSpecificOutput"]
    assert output["hookEventName"] == "PreToolUse"
    assert "permissionDecision" not in output  # it allows nothing and refuses nothing
    (line,) = [each for each in output["additionalContext"].splitlines() if each[:2] == "- "]
    return str(line)


def test_the_first_edit_of_a_file_gets_one_lesson_in_one_line(team: Vault) -> None:
    first = edits(team, "migrations/0001_users.sql")
    assert first.startswith("- Migrations are never edited: Add a new one:")
    assert first.endswith("(lessons/development/migrations.md)")
    assert edits(team, "migrations/0001_users.sql") == ""  # another lesson is for it, too
    assert "ix_table" in edits(team, "migrations/0002_orders.sql", "Write")
    assert edits(team, "migrations/0003.sql") == ""
    assert edits(team, "src/dates.py") == ""
    assert "never edited" in edits(team, "migrations/0001_users.sql", agent_id="a1")
    assert "never edited" in edits(
        team, "api/migrations/0001.ipynb", "NotebookEdit", session_id="s2"
    )
    told = records(team)
    assert [each.event for each in told] == [hook_event.EDIT] * 4
    assert told[0].said == "migrations/0001_users.sql"
    last = run("lessons", "last", "-n", "9", cwd=team.root).out
    assert "edited: api/migrations/0001.ipynb" in last
    answer = run("lessons", "teach", "--last", "1", "--fires", "dates", cwd=team.root, check=False)
    assert "an edit, and no prompt" in answer.err


def test_a_file_elsewhere_and_an_odd_call_get_nothing(team: Vault, tmp_path: Path) -> None:
    assert edits(team, str(tmp_path / "migrations" / "0001.sql")) == ""
    assert edits(team, "migrations/0001.sql", tool_input="migrations") == ""
    assert edits(team, "migrations/0001.sql", session_id="") == ""
    assert edits(team, "migrations/0001.sql", "Read") == ""
