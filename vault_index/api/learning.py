"""Commands that learn: from a session, from commits or files, proposals are made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from vault_index.learn import record, run
from vault_index.learn.material import SESSION

if TYPE_CHECKING:
    from vault_index.api import Caller
    from vault_index.vault import Vault


def learn(
    vault: Vault,
    caller: Caller,
    scope: str = SESSION,
    target: str | Sequence[str] = "",
    folder: str = "",
    force: bool = False,
    dry_run: bool = False,
    asked_by: str = record.PERSON,
) -> dict[str, Any]:
    """Make proposals of what a session, commits or files taught: see `run.learn`."""
    return run.learn(
        vault,
        caller,
        scope,
        target,
        folder=folder,
        force=force,
        dry_run=dry_run,
        asked_by=asked_by,
    )


def trigger(
    vault: Vault, caller: Caller, scope: str, target: str = "", folder: str = ""
) -> dict[str, Any]:
    """Do the same for an agent: only what is worth it by the vault's own threshold."""
    return learn(vault, caller, scope, target, folder, asked_by=record.AGENT)
