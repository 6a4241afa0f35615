"""Proposals: draft lessons of agents, which a person accepts or rejects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from vault_index.errors import VaultError
from vault_index.lesson.parse import id_of
from vault_index.proposals import draft, likeness, review

if TYPE_CHECKING:
    from vault_index.api import Caller
    from vault_index.vault import Vault


def likeness_of(vault: Vault, title: str, text: str) -> dict[str, Any]:
    """Compare a draft with lessons and with rejected proposals: see `likeness.of`."""
    return likeness.of(vault, title, text)


def remember(
    vault: Vault,
    caller: Caller,
    title: str,
    text: str,
    category: str = "",
    tags: Sequence[str] = (),
    fires_on: Sequence[str] = (),
    by: str = "",
) -> dict[str, Any]:
    """Propose a lesson: `id`, `title`, `status`, `near`, `findings`, `file`.

    The status is waiting | waiting already | rejected before | a lesson already. `near` are lessons
    like it as [id, title, likeness]; `findings` warnings with `level`, `rule`, `message`. What `check`
    calls an error is refused, and nothing of it is kept.
    """
    proposal = review.checked(draft.of(title, text, category, tags, fires_on, by))
    compared = _compared(caller, proposal)
    proposal = review.checked(proposal, compared.get("categories", ()))
    return review.propose(vault, proposal, compared)


def list_(vault: Vault, caller: Caller, id: str = "") -> dict[str, Any]:
    """List the `proposals` that wait, oldest first; with `id` that one, also by its beginning."""
    del caller
    listed = [review.find(vault, id)] if id else review.waiting(vault)
    return {"proposals": [proposal.as_json() for proposal in listed]}


def accept(
    vault: Vault, caller: Caller, id: str, category: str = "", commit: bool = False
) -> dict[str, Any]:
    """Make a proposal a lesson: the lesson's `id`, and the `path` of its file from the vault's root."""
    del caller
    path = review.accept(vault, id, category, commit=commit)
    lesson = id_of(str(path.relative_to(vault.lessons_dir)))
    return {"id": lesson, "path": str(path.relative_to(vault.root))}


def reject(vault: Vault, caller: Caller, id: str) -> dict[str, Any]:
    """Take a proposal away for good, its `id` and `title`: the same or nearly the same stays away."""
    rejected = review.reject(vault, id, _compared(caller, review.find(vault, id)))
    return {"id": rejected.id, "title": rejected.title}


def _compared(caller: Caller, proposal: draft.Proposal) -> dict[str, Any]:
    """Ask what a draft is like; without an index it is compared by its words alone."""
    values = {"title": proposal.title, "text": proposal.text}
    try:
        return caller.ask({"ask": "proposal likeness", "with": values}, fetch=False)
    except VaultError as error:
        caller.note(f"warning: not compared with the lessons: {error.message}")
        return {}
