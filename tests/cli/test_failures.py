"""Failed commands at the command line: try one, teach a line of it, measure many."""

from __future__ import annotations

import pytest

from tests.support.commands import run
from tests.support.conversations import Conversation
from tests.support.files import lesson_text, write
from vault_index.journal import capture
from vault_index.journal.journal import Journal
from vault_index.transcripts import reading
from vault_index.vault import Vault

BUSY = "Error: listen EADDRINUSE: address already in use :::3000"
FILES = {
    "ops/proxy.md": lesson_text("The proxy keeps its port", "Restart the proxy."),
    "ops/dates.md": lesson_text("Dates are UTC", "Store dates in UTC."),
}


@pytest.mark.slow
def test_a_line_that_any_failure_has_is_refused(team: Vault) -> None:
    words = ("lessons", "teach", "--error", "command failed", "--fires", "ops/proxy")
    refused = run(*words, cwd=team.root, check=False)
    assert refused.code == 1
    assert "many failures say this" in refused.err
    text = FILES["ops/proxy.md"].replace("---\n", "---\nfires_on_error: [command failed]\n", 1)
    write(team.lessons_dir / "ops/proxy.md", text)
    checked = run("lessons", "check", cwd=team.root, check=False)
    assert checked.code == 1
    assert "many failures say 'command failed'" in checked.out


def test_without_a_record_the_last_failure_is_nobodys(team: Vault) -> None:
    words = ("lessons", "teach", "--error", "--fires", "ops/proxy")
    assert "no failure in the record" in run(*words, cwd=team.root, stdin="", check=False).err


@pytest.mark.slow
def test_without_a_hook_the_last_failure_is_the_journals(team: Vault) -> None:
    talk = Conversation(team.root, "start").asks("start the shop please, it is down")
    talk.runs("npm start", f"Exit code 1\n{BUSY}", failed=True).runs("ls", "app")
    capture.capture(Journal(team.config), talk.file, reading.CLAUDE, force=True)
    words = ("lessons", "teach", "--error", "--fires", "ops/proxy")
    assert BUSY in run(*words, cwd=team.root, stdin="").out
    assert BUSY in (team.lessons_dir / "ops/proxy.md").read_text("utf-8")
