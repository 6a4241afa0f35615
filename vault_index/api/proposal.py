"""Proposals: draft lessons of agents and of sessions, which a person reviews."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from vault_index import api
from vault_index.api.question import Caller, command, question
from vault_index.errors import VaultError
from vault_index.index import classifier
from vault_index.lesson.category import UNCATEGORIZED
from vault_index.lesson.parse import Lesson, id_of
from vault_index.proposals import fingerprint, review, similarity
from vault_index.proposals.accept import change_of, write_lesson
from vault_index.proposals.draft import Proposal
from vault_index.search import entries
from vault_index.vault import Vault


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The lesson that a proposal changes: how, or the `problem` with it."""

    id: str
    diff: str = ""
    is_done: bool = False
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Card(Proposal):
    """A proposal as a reviewer sees it.

    `quote` proves most, with its `speaker`. Only `cards` has the rest: `same` and `nearest` are lessons
    as [id, title, likeness], `prompts` what `outlook` says of them, `suggested` the category of the
    classifier, and `source` the file as an editor gets it.
    """

    quote: str = ""
    speaker: str = ""
    same: Sequence[Any] | None = None
    nearest: Sequence[Any] | None = None
    prompts: tuple[Mapping[str, Any], ...] = ()
    suggested: str = ""
    why_suggested: str = ""
    target: Target | None = None
    source: str = ""


@command
def select(vault: Vault, caller: Caller, id: str = "", session: str = "") -> tuple[Card, ...]:
    """List the proposals that wait, oldest first; with `id` that one, also by its beginning.

    `session` is the private id of one, or its beginning.
    """
    del caller
    listed = [review.find(vault, id, broken=True)] if id else review.waiting(vault)
    return tuple(_card(each) for each in listed if each.session.startswith(session))


@command
def cards(vault: Vault, caller: Caller, id: str = "", session: str = "") -> tuple[Card, ...]:
    """List the proposals as `select` does, with all that a reviewer wants to know of each."""
    listed = caller.ask(api.proposal.select(id=id, session=session))
    return tuple(_compared(vault, caller, each) if each.text else each for each in listed)


@command
def edit(vault: Vault, caller: Caller, id: str, text: str, seen: str) -> Card:
    """Write the edited `source` of a proposal, of which the editor got `seen`: the proposal.

    It is checked again: what `check` calls an error is refused, and the proposal stays as it was.
    """
    categories: Sequence[str] = ()
    try:
        categories = list(caller.ask(api.lesson.count(), fetch=False)["counts"])
    except VaultError as error:
        caller.note(f"warning: its category is not compared with the others: {error.message}")
    return _card(review.edit(vault, id, text, seen, categories))


@command
def merge(
    vault: Vault,
    caller: Caller,
    id: str,
    into: str,
    seen: str = "",
    commit: bool = False,
    write: bool = False,
) -> dict[str, Any]:
    """Add a proposal to the end of a lesson: its `id` and `path`, the `diff`, and `before`.

    Only with `write`, and where `seen` is the `before` of what a person saw, it is written; a lesson
    that was saved in between stays as it is.
    """
    proposal = review.find(vault, id)
    entry = caller.ask(api.lesson.show(name=into))["entry"]
    change = change_of(proposal, entry)
    if write:
        write_lesson(vault, id, entry, seen, commit=commit)
    about = {"id": entry["id"], "path": entry["path"], "title": entry["title"]}
    return {**about, "diff": change.diff, "before": change.before, "written": write}


@command
def accept(
    vault: Vault, caller: Caller, id: str, category: str = "", commit: bool = False
) -> dict[str, Any]:
    """Make a proposal a lesson, or change the lesson it is a change of: the lesson's `id` and `path`.

    The path is from the vault's root. One that a lesson says already only goes.
    """
    proposal = review.find(vault, id)
    named, same = proposal.changes, None
    with suppress(VaultError):  # without an index
        if not named:
            same = caller.ask(api.proposal.compare(proposal=proposal), fetch=False)["same"]
            named = same[0] if same else ""
    entry = caller.ask(api.lesson.show(name=named))["entry"] if named else None
    if entry and same:
        review.drop(vault, id)
        return {"id": entry["id"], "path": entry["path"]}
    path = write_lesson(vault, id, entry, category=category, commit=commit)
    lesson = entry["id"] if entry else id_of(str(path.relative_to(vault.lessons_dir)))
    return {"id": lesson, "path": str(path.relative_to(vault.root))}


@command
def reject(vault: Vault, caller: Caller, id: str) -> dict[str, Any]:
    """Take a proposal away for good, its `id` and `title`: the same, however worded, stays away."""
    proposal = review.find(vault, id, broken=True)
    compared: dict[str, Any] = {}
    try:
        if proposal.text:
            compared = caller.ask(api.proposal.compare(proposal=proposal), fetch=False)
    except VaultError as error:
        caller.note(f"warning: only its words are kept to recognise it: {error.message}")
    rejected = review.reject(vault, id, compared)
    return {"id": rejected.id, "title": rejected.title}


def _card(proposal: Proposal) -> Card:
    values = {name: getattr(proposal, name) for name in Proposal.__dataclass_fields__}
    values["day"] = proposal.day or proposal.created[:10]
    quote, speaker = proposal.witness
    return Card(**values, quote=quote, speaker=speaker)


def _compared(vault: Vault, caller: Caller, card: Card) -> Card:
    try:
        card = replace(card, **caller.ask(api.proposal.preview(proposal=card), fetch=False))
    except VaultError as error:
        caller.note(f"warning: not compared with the lessons: {error.message}")
    target = _target(caller, card) if card.changes else None
    return replace(card, target=target, source=review.source(vault, card.id))


def _target(caller: Caller, proposal: Proposal) -> Target:
    try:
        entry = caller.ask(api.lesson.show(name=proposal.changes))["entry"]
    except VaultError as error:
        return Target(id=proposal.changes, problem=error.message)
    diff = change_of(proposal, entry).diff
    return Target(id=entry["id"], diff=diff, is_done=not diff)


# Questions about a draft lesson, for the commands about proposals: the watcher has what they need.


@question
def compare(vault: Vault, proposal: Proposal) -> dict[str, Any]:
    """Compare a draft with lessons and with rejected proposals: see `similarity.compare`.

    Its prompts, its quotes and the private id of its session are evidence: with the same one a draft
    in other words is recognised.
    """
    return similarity.compare(vault, proposal)


@question
def preview(vault: Vault, proposal: Proposal) -> dict[str, Any]:
    """Return what a reviewer wants to know of a draft, by the names of a `Card`."""
    title, text, changes = proposal.title, proposal.text, proposal.changes
    compared = similarity.compare(vault, proposal, without=changes)
    if changes and (entry := entries.entry_or_near(vault, changes)[0]):
        text = change_of(proposal, entry).text
    filed = (proposal.category,) if proposal.category else ()
    lesson = Lesson(
        *("proposal", similarity.PATH, title, text, filed, proposal.tags),
        confidence=proposal.confidence,
    )
    prompts = similarity.outlook(vault, lesson, proposal.fires_on, changes)
    same = [*compared["same"], 1.0] if compared["same"] else None
    answer = {"same": same, "prompts": prompts, "near": tuple(compared["near"])}
    answer |= {"nearest": compared["nearest"]}
    if filed or changes or same:
        return answer
    verdict = classifier.of_draft(vault, title, text, fingerprint.unpack(compared["vector"]))
    first = verdict.categories[0]
    suggested = "" if first == UNCATEGORIZED else first
    return {**answer, "suggested": suggested, "why_suggested": verdict.why[0]}
