"""Skills that are built of lessons: how near each is, building them, whether they are behind."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from vault_index.api.question import Caller, command, question
from vault_index.check.finding import Finding
from vault_index.learn.skills import build
from vault_index.learn.skills.build import Built
from vault_index.vault import Vault


@question
def compare(vault: Vault) -> tuple[Finding, ...]:
    """Return the findings on skills that are behind their lessons, or were changed by hand."""
    return tuple(build.findings(vault))


@command
def build_ready(
    vault: Vault, caller: Caller, tags: Sequence[str] = (), dry_run: bool = False
) -> list[Built]:
    """Build the skills that are ready, or the skills of these tags."""
    caller.index(vault)
    return build.build(vault, tags, dry_run=dry_run)


@command
def deploy(vault: Vault, caller: Caller, project: str = "", remove: bool = False) -> dict[str, str]:
    """Copy the built skills to Claude Code, the user's or a project's, or remove the copies.

    Return the state by folder.
    """
    del caller
    folder = build.folder_for(Path(project) if project else None)
    return build.remove(folder) if remove else build.copy(vault, folder)
