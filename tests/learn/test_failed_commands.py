"""The whole loop: a session fails and repairs, a person accepts, the next one is told at its failure."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import run
from tests.support.conversations import Conversation
from tests.support.files import MakeVault, commit
from tests.support.materials import an_entry, good_answer
from tests.support.model_server import ModelServer
from vault_index.config import load
from vault_index.journal import capture
from vault_index.journal.journal import Journal
from vault_index.recall import respond
from vault_index.recall.sessions import Event
from vault_index.transcripts import reading
from vault_index.vault import Vault, open_vault

REFUSED = "remote: error: GH006: Protected branch update failed for refs/heads/main."


@pytest.fixture
def team(make_vault: MakeVault, own_world: Path, monkeypatch: pytest.MonkeyPatch) -> Vault:
    monkeypatch.setenv("LESSONS_EMBEDDER", "none")
    vault = make_vault({"ops.md": "Restart the worker after a deploy."})
    commit(vault.root)
    return vault


def failed(vault: Vault, session: str, error: str) -> dict[str, Any] | None:
    """Answer a failed push in a session."""
    event = Event(
        *("PostToolUseFailure", session), cwd=str(vault.root), tool_use_id="toolu_1",
        command="git push origin main", error=error,
    )  # fmt: skip
    return respond.respond(open_vault(vault.root), event, by="watcher", ms=1.0)


@pytest.mark.slow
def test_a_repaired_failure_is_told_to_the_next_session_that_fails_so(
    team: Vault, own_world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk = Conversation(team.root, "release")
    talk.asks("Release version 1.2.0 of the shop please")
    talk.edits("pyproject.toml", 'version = "1.1.0"', 'version = "1.2.0"')
    talk.runs("git push origin main", f"Exit code 1\n{REFUSED}", failed=True)
    talk.runs("git switch -c release/1.2.0", "")
    talk.runs("git push origin release/1.2.0", "done")
    talk.says("main is protected, so the release must go through a branch release/VERSION.")
    capture.capture(Journal(load()), talk.file, reading.CLAUDE, force=True)
    (own_world / "config.toml").write_text('[learn]\nmodel = "ollama:small"\n')
    entry = an_entry(
        title="Release through a branch release/VERSION, not main",
        summary="`git push origin main` fails, since main is protected: push `release/VERSION`.",
        explanation="",
        problem="",
        quotes=[REFUSED],
    )
    with ModelServer() as server:
        server.answer = lambda _: json.dumps(good_answer("entries", entry))
        monkeypatch.setenv("OLLAMA_HOST", server.url)
        run("lessons", "learn", "--session", talk.id, cwd=team.root)
    (proposal,) = run("lessons", "review", "list", "--json", cwd=team.root).json
    assert proposal["fires_on_error"] == [REFUSED]
    assert failed(team, "before", REFUSED) is None  # nobody has accepted it

    run("lessons", "review", "accept", proposal["id"], cwd=team.root)
    run("lessons", "index", cwd=team.root)
    for error in (REFUSED, f"Exit code 1\nTo github.com:me/shop.git\n\x1b[31m{REFUSED}\x1b[0m\r\n"):
        answer = failed(team, f"after {len(error)}", error)
        assert answer is not None
        assert "release" in answer["hookSpecificOutput"]["additionalContext"]
    assert failed(team, "other", "fatal: not a git repository") is None
