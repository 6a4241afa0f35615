"""Prompts for lessons that have none: handed over, proposed, and accepted as a batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vault_index import api
from vault_index.api.question import Caller, command, question
from vault_index.errors import VaultError

if TYPE_CHECKING:
    from vault_index.learn.tend import Tended, Untended
    from vault_index.vault import Vault


@question
def untended(vault: Vault, most: int = 20) -> Untended:
    """List lessons without prompts, the latest first: at most twenty."""
    from vault_index.learn import tend

    return tend.untended(vault, most)


@command
def propose(
    vault: Vault, caller: Caller, answers: Sequence[Mapping[str, Any]], by: str = "agent"
) -> Tended:
    """Make proposals of prompts for lessons: see `tend.propose`."""
    from vault_index.learn import tend

    return tend.propose(vault, api.learn.learner(caller), answers, by)


@command
def ask_model(vault: Vault, caller: Caller, most: int = 20, dry_run: bool = False) -> Tended:
    """Have the model of the settings write prompts: see `tend.by_model`."""
    from vault_index.learn import tend

    return tend.by_model(vault, api.learn.learner(caller), most, dry_run=dry_run)


@dataclass(frozen=True, slots=True)
class AcceptedBatch:
    """The files that a batch changed, from the vault's root, and the proposals that still wait."""

    paths: tuple[str, ...]
    left: Mapping[str, str]  # the reason by the id of the lesson


@command
def accept(vault: Vault, caller: Caller, batch: str, commit: bool = False) -> AcceptedBatch:
    """Make all changes of a batch; with `commit` they are one commit.

    A lesson that was changed meanwhile keeps its proposal. Raises VaultError for no such batch.
    """
    from vault_index.proposals.accept import commit_batch, refuse_uncommitted

    waiting = caller.ask(api.proposal.select(batch=batch)) if batch else ()
    if not waiting:
        raise VaultError(f"no batch {batch!r:.80} waits", "see `lessons review list`")
    if commit:
        refuse_uncommitted(vault)
    paths, refused = list[str](), dict[str, str]()
    for number, each in enumerate(waiting):
        caller.progress("accepting", number, len(waiting))
        try:
            accepted = caller.ask(api.proposal.accept(id=each.id))
        except VaultError as error:
            refused[each.changes] = error.message
        else:
            paths.append(accepted.path)
    if commit and paths:
        commit_batch(vault, paths)
    return AcceptedBatch(tuple(dict.fromkeys(paths)), refused)
