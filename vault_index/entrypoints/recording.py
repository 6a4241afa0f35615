"""Whether sessions of agents reach the journal: its state with the hooks that tell it of them."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from vault_index.check.finding import Trouble
from vault_index.entrypoints import agents, doctor
from vault_index.journal import archive
from vault_index.journal.journal import INDEX, Journal
from vault_index.vault import Vault


def state(vault: Vault) -> dict[str, Any]:
    """Return the state of the journal for `lessons status`, as `journal`."""
    return {"journal": archive.overview(Journal(vault.config)) | journal_hooks(vault.root)}


def journal_hooks(project: Path | None = None) -> dict[str, Any]:
    """Return `hooks`: the settings of the agent whose hooks tell the journal of the end of turns."""
    folders = (None, project or Path.cwd())
    places = dict.fromkeys(place for folder in folders for place in agents.recording_in(folder))
    return {"hooks": list(map(str, places)) + doctor.plugin_there(folders[1])}


def journal(vault: Vault) -> Iterator[Trouble]:
    """Look at what is recorded without a hook, and at the index."""
    now = archive.overview(Journal(vault.config))
    if now["recorded"] and not journal_hooks(vault.root)["hooks"]:
        what = "sessions are recorded, and no hook says when a turn ended"
        yield Trouble("journal", what, "lessons install claude --journal")
    if "error" in now["index"]:
        folder = shlex.quote(str(Journal(vault.config).folder / INDEX))
        yield Trouble("journal", now["index"]["error"], f"rm -r {folder}")  # a cache
