"""Proposals: draft lessons of agents and of sessions, which a person reviews."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from vault_index import api
from vault_index.api.question import Caller, command, question
from vault_index.errors import VaultError
from vault_index.index import classifier
from vault_index.learn import gather
from vault_index.lesson.category import DEFAULT_CONFIDENCE, UNCATEGORIZED
from vault_index.lesson.parse import Lesson, id_of
from vault_index.proposals import accept as acceptance
from vault_index.proposals import draft, fingerprint, points, review, similarity
from vault_index.recall import anchors

if TYPE_CHECKING:
    from vault_index.proposals.draft import Proposal
    from vault_index.vault import Vault

_PROPOSED = ("title", "text", "category", "tags", "fires_on", "by")
_LOOKED_AT = (*_PROPOSED[:-1], "silent_on", "confidence", "changes")


@command
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

    The status is waiting | waiting already | rejected before | a lesson already. `near` are lessons like
    it as [id, title, likeness]; `findings` warnings with `level`, `rule`, `message`. A text with an error
    of `check` is refused, and nothing of it is kept.
    """
    named = anchors.proposed(gather.recent_changes(vault), f"{title}\n{text}")
    proposal = draft.create(title, text, category, tags, fires_on, by, anchors=named)
    values = {key: getattr(proposal, key) for key in _PROPOSED}
    try:
        compared = caller.ask(api.proposal.check(**values), fetch=False)
    except VaultError as error:
        findings = review.checked(proposal).findings  # which raises the error if it is of the check
        compared = {"findings": findings}
        caller.note(f"warning: not compared with the lessons: {error.message}")
    proposal = replace(proposal, findings=tuple(compared["findings"]))
    if went := review.expire(vault):
        caller.note(f"note: {went}")
    return review.propose(vault, proposal, compared)


@command
def select(vault: Vault, caller: Caller, id: str = "", session: str = "") -> dict[str, Any]:
    """List the `proposals` that wait, oldest first; with `id` that one, also by its beginning.

    `session` is the private id of one, or its beginning. Each has its `project` and `day`, the `quote`
    that proves most with its `speaker`, and the day on which it `expires`, or ""; it stays until a
    command that writes lets it go.
    """
    del caller
    return {"proposals": _selected(vault, id, session)}


def _selected(vault: Vault, id: str, session: str) -> list[dict[str, Any]]:
    listed = [review.find(vault, id, broken=True)] if id else review.waiting(vault)
    if session:
        listed = [proposal for proposal in listed if proposal.session.startswith(session)]
    return [_as_json(vault, proposal) for proposal in listed]


@command
def cards(vault: Vault, caller: Caller, id: str = "", session: str = "") -> dict[str, Any]:
    """List the `proposals` as `select` does, with all that a reviewer wants to know of each.

    That is `nearest`, `prompts`, `suggested` and `why_suggested`: see `outlook`; the lesson
    that it `changes` as `target` with `id`, `diff` and `is_outdated`, or None; and its file as an
    editor gets it, `source`.
    """
    listed = _selected(vault, id, session)
    return {"proposals": [_looked_at(vault, caller, values) for values in listed]}


@command
def hints(vault: Vault, caller: Caller, session: str = "") -> dict[str, Any]:
    """List the `points` to look at that rules found, oldest first: see `proposals.points`."""
    del caller
    return {"points": [asdict(each) for each in points.waiting(vault, session)]}


@command
def edit(vault: Vault, caller: Caller, id: str, text: str, seen: str) -> dict[str, Any]:
    """Write the edited `source` of a proposal, of which the editor got `seen`: the proposal.

    It is checked again: what `check` calls an error is refused, and the proposal stays as it was. An
    edited change is one of the lesson as it is now, which a reviewer sees as its diff.
    """
    categories: Sequence[str] = ()
    try:
        categories = list(caller.ask(api.lesson.count(), fetch=False)["counts"])
    except VaultError as error:
        caller.note(f"warning: its category is not compared with the others: {error.message}")
    changes, lesson = review.find(vault, id, broken=True).changes, None
    if changes:
        with suppress(VaultError):  # the lesson is gone: it stays a change of what was there
            lesson = caller.ask(api.lesson.show(name=changes))["entry"]
    return _as_json(vault, review.edit(vault, id, text, seen, categories, lesson))


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
    change = acceptance.addition_of(proposal, entry)
    if write:
        acceptance.accept(vault, id, entry, seen, commit=commit)
    about = {"id": entry["id"], "path": entry["path"], "title": entry["title"]}
    return {**about, "diff": change.diff, "before": change.before, "written": write}


@command
def accept(
    vault: Vault, caller: Caller, id: str, category: str = "", commit: bool = False
) -> dict[str, Any]:
    """Make a proposal a lesson, or change the lesson it is a change of: the lesson's `id` and `path`.

    The path is from the vault's root.
    """
    proposal = review.find(vault, id)
    if not proposal.changes:
        path = acceptance.accept(vault, id, category=category, commit=commit)
        lesson = id_of(str(path.relative_to(vault.lessons_dir)))
        return {"id": lesson, "path": str(path.relative_to(vault.root))}
    entry = caller.ask(api.lesson.show(name=proposal.changes))["entry"]
    path = acceptance.accept(vault, id, entry, commit=commit)
    return {"id": entry["id"], "path": str(path.relative_to(vault.root))}


@command
def reject(vault: Vault, caller: Caller, id: str) -> dict[str, Any]:
    """Take a proposal away for good, its `id` and `title`: the same, however worded, stays away.

    A point to look at goes in the same way, its quote as the title.
    """
    if points.is_id(id):
        point = points.dismiss(vault, id)
        if point is None:
            raise VaultError(f"no point {id!r:.80} waits", "see their ids with `lessons review`")
        return {"id": point.id, "title": point.quote}
    proposal = review.find(vault, id, broken=True)
    values = {"title": proposal.title, "text": proposal.text}
    compared: dict[str, Any] = {}
    try:
        if proposal.text:
            compared = caller.ask(api.proposal.compare(**values), fetch=False)
    except VaultError as error:
        caller.note(f"warning: only its words are kept to recognise it: {error.message}")
    rejected = review.reject(vault, id, compared)
    return {"id": rejected.id, "title": rejected.title}


def _looked_at(vault: Vault, caller: Caller, values: dict[str, Any]) -> dict[str, Any]:
    """Return a proposal with what is known about it; one that cannot be read as it is."""
    more: dict[str, Any] = {"nearest": None, "prompts": [], "suggested": "", "why_suggested": ""}
    more |= {"target": None, "source": ""}
    if not values["text"]:
        return {**values, **more}
    asked = {key: values[key] for key in _LOOKED_AT}
    try:
        seen = caller.ask(api.proposal.preview(**asked), fetch=False)
        more |= {key: seen[key] for key in ("nearest", "prompts", "suggested")}
        more["why_suggested"] = seen["why"]
    except VaultError as error:
        caller.note(f"warning: not compared with the lessons: {error.message}")
    if values["changes"]:
        more["target"] = _target(vault, caller, values["id"])
    return {**values, **more, "source": review.source(vault, values["id"])}


def _target(vault: Vault, caller: Caller, id: str) -> dict[str, Any]:
    """Return the lesson that a proposal changes, and how."""
    proposal = review.find(vault, id)
    try:
        entry = caller.ask(api.lesson.show(name=proposal.changes))["entry"]
    except VaultError as error:
        return {"id": proposal.changes, "diff": "", "is_outdated": True, "problem": error.message}
    outdated = acceptance.is_outdated(proposal, entry)
    diff = acceptance.change_of(proposal, entry).diff
    return {"id": entry["id"], "diff": diff, "is_outdated": outdated, "problem": ""}


def _as_json(vault: Vault, proposal: Proposal) -> dict[str, Any]:
    quote, speaker = proposal.witness
    day = proposal.day or proposal.created[:10]
    shown = {"day": day, "quote": quote, "speaker": speaker}
    return {**proposal.as_json(), **shown, "expires": review.expires(vault, proposal)}


# Questions about a draft lesson, for the commands about proposals: the watcher has what they need.


@question
def check(
    vault: Vault,
    title: str,
    text: str,
    category: str,
    tags: Sequence[str],
    fires_on: Sequence[str],
    by: str,
    quotes: Sequence[str] = (),
    session: str = "",
) -> dict[str, Any]:
    """Check a draft like a commit: the `findings` that are no errors, and what `compare` returns.

    Raises VaultError for an error, and nothing of the draft is kept.
    """
    evidence: dict[str, Any] = {"quotes": tuple(quotes), "session": session}
    proposal = draft.create(title, text, category, tags, fires_on, by, **evidence)
    proposal = review.checked(proposal)
    compared = similarity.compare(vault, proposal)
    findings = review.checked(proposal, compared["categories"]).findings
    return {**compared, "findings": list(findings)}


@question
def compare(
    vault: Vault,
    title: str,
    text: str,
    fires_on: Sequence[str] = (),
    quotes: Sequence[str] = (),
    session: str = "",
) -> dict[str, Any]:
    """Compare a draft with lessons and with rejected proposals: see `similarity.compare`.

    `fires_on`, `quotes` and the private id of its session are evidence: with the same one a draft in
    other words is recognised.
    """
    evidence: dict[str, Any] = {"quotes": tuple(quotes), "session": session}
    return similarity.compare(vault, draft.create(title, text, "", (), fires_on, **evidence))


@question
def preview(
    vault: Vault,
    title: str,
    text: str,
    category: str = "",
    tags: Sequence[str] = (),
    fires_on: Sequence[str] = (),
    silent_on: Sequence[str] = (),
    confidence: int = DEFAULT_CONFIDENCE,
    changes: str = "",
) -> dict[str, Any]:
    """Return what a reviewer wants to know of a draft: `nearest`, `prompts`, `suggested`, `why`.

    `nearest` is a lesson as [id, title, likeness], or None; `prompts` as `similarity.outlook` returns
    them; `suggested` the category that the classifier proposes for a draft without one, or "", and
    why. `changes` is the id of the lesson of which the draft is a change.
    """
    compared = similarity.compare(vault, draft.create(title, text), without=changes)
    filed = (category,) if category else ()
    lesson = Lesson(
        "proposal", similarity.PATH, title, text, filed, tuple(tags), confidence=confidence
    )
    found = similarity.outlook(vault, lesson, fires_on, silent_on, changes)
    answer = {"nearest": compared["nearest"], "prompts": found, "suggested": "", "why": ""}
    if category or changes:
        return answer
    verdict = classifier.of_draft(vault, title, text, fingerprint.unpack(compared["vector"]))
    first = verdict.categories[0]
    return {**answer, "suggested": "" if first == UNCATEGORIZED else first, "why": verdict.why[0]}
