"""Proposals: draft lessons of agents, which a person accepts or rejects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from vault_index.errors import VaultError
from vault_index.lesson.parse import id_of
from vault_index.proposals import draft, review

if TYPE_CHECKING:
    from vault_index.api import Caller
    from vault_index.vault import Vault

_PROPOSED = ("title", "text", "category", "tags", "fires_on", "by")


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
    proposal = draft.of(title, text, category, tags, fires_on, by)
    values = {key: getattr(proposal, key) for key in _PROPOSED}
    try:
        compared = caller.ask({"ask": "check proposal", "with": values}, fetch=False)
    except VaultError as error:
        findings = review.checked(proposal).findings  # which raises the error if it is of the check
        compared = {"findings": findings}
        caller.note(f"warning: not compared with the lessons: {error.message}")
    proposal = replace(proposal, findings=tuple(compared["findings"]))
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
    proposal = review.find(vault, id)
    values = {"title": proposal.title, "text": proposal.text}
    compared: dict[str, Any] = {}
    try:
        compared = caller.ask({"ask": "compare proposal", "with": values}, fetch=False)
    except VaultError as error:
        caller.note(f"warning: only its words are kept to recognise it: {error.message}")
    rejected = review.reject(vault, id, compared)
    return {"id": rejected.id, "title": rejected.title}
