"""Whether sessions of agents reach the journal: its state with the hooks that tell it of them."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from vault_index.check.finding import Trouble
from vault_index.entrypoints import agents, doctor
from vault_index.journal import archive
from vault_index.journal.journal import INDEX, Journal
from vault_index.vault import Vault


@dataclass(frozen=True, slots=True)
class JournalStatus:
    """The state of the journal for `lessons status`."""

    journal: archive.JournalOverview


def state(vault: Vault) -> JournalStatus:
    """Look at the journal, with the hooks of a vault's project."""
    return JournalStatus(with_hooks(archive.overview(Journal(vault.config)), vault.root))


def with_hooks(found: archive.JournalOverview, project: Path) -> archive.JournalOverview:
    """Add the settings of the agent whose hooks tell the journal of the end of turns."""
    folders = (None, project)
    files = dict.fromkeys(file for folder in folders for file in agents.recording_in(folder))
    return replace(found, hooks=[*map(str, files), *doctor.plugin_there(project)])


def journal(vault: Vault) -> Iterator[Trouble]:
    """Look at the folders that are recorded without a hook, and at the index."""
    now = state(vault).journal
    if now.recorded and not now.hooks:
        what = "sessions are recorded, and no hook says when a turn ended"
        yield Trouble("journal", what, "lessons install claude --journal")
    if now.index.error:
        folder = shlex.quote(str(Journal(vault.config).folder / INDEX))
        yield Trouble("journal", now.index.error, f"rm -r {folder}")  # a cache
