"""Projects in real git repositories, and sessions of agents in them that the journal has."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests.support.commands import run
from tests.support.conversations import Conversation
from tests.support.files import commit, write
from vault_index import config
from vault_index.edit import init
from vault_index.journal import capture
from vault_index.journal.journal import Journal
from vault_index.vault import Vault, open_vault


def a_project(folder: Path, files: Mapping[str, str] | None = None) -> Path:
    """Make a repository with a commit of files that were there before any session."""
    for path, content in (files or {"README.md": "A shop.\n"}).items():
        write(folder / path, content)
    run("git", "init", "-q", "-b", "main", cwd=folder)
    commit(folder, "Begin")
    return folder


def a_vault(project: Path) -> Vault:
    """Make the project a vault, too, without a trace in its history."""
    init(project)
    run("git", "add", "-A", cwd=project)
    run("git", "commit", "-q", "--amend", "--no-edit", cwd=project)
    return open_vault(project)


def taken(talk: Conversation) -> str:
    """Take a conversation into the journal; return its id."""
    journal = Journal(config.load())
    assert capture.capture(journal, talk.file, "claude", force=True).session
    return talk.id
