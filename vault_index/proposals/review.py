"""Propose a lesson; list what waits; edit or reject it. `accept` makes it a lesson.

A proposal is checked like a commit before any byte of it is kept.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from vault_index import check
from vault_index.check import harmless, prompt_injection
from vault_index.errors import ChangedError, CheckError, ProposalsFullError, VaultError
from vault_index.lesson import category, edits
from vault_index.proposals import draft, fingerprint, store
from vault_index.proposals.draft import Proposal
from vault_index.proposals.fingerprint import NOT_COMPARED, Comparison

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from vault_index.vault import Vault

MAX_WAITING = 200  # more than a person reviews; a runaway agent fills 4 MB and no disk
WAITING, WAITS = "waiting", "waiting already"
REJECTED, IS_LESSON = "rejected before", "a lesson already"


def checked(proposal: Proposal, categories: Collection[str] = ()) -> Proposal:
    """Return a proposal with the warnings of its check. Raises CheckError for an error.

    `categories` are the lessons', of which the card's may be a misspelling.
    """
    refusal, hint = "not proposed, and not kept", "write it without that"
    data = harmless.with_line(draft.to_bytes(proposal), f"{proposal.id}.md")
    return _checked(proposal, data, categories, refusal, hint)


def propose(
    vault: Vault, proposal: Proposal, compared: Comparison = NOT_COMPARED
) -> dict[str, Any]:
    """Keep a proposal that was checked, unless it is there in another form: its `status`.

    Raises ProposalsFullError, WriteError.
    """
    near = [list(each) for each in compared.near]
    answer: dict[str, Any] = {"id": proposal.id, "title": proposal.title, "near": near}
    answer |= {"findings": list(proposal.findings), "file": ""}
    if compared.same:
        return {**answer, "status": IS_LESSON, "near": [[*compared.same, 1.0]]}
    identity = replace(fingerprint.create(proposal, compared), vector="")
    with store.hold(vault) as folder:
        if compared.rejected or fingerprint.find_same(identity, store.rejected(vault)):
            return {**answer, "status": REJECTED}
        ids = store.ids(folder)
        if proposal.id in ids:
            return {**answer, "status": WAITS, "file": str(store.file_of(folder, proposal.id))}
        if len(ids) >= MAX_WAITING:
            hint = "ask a person to run `lessons review`"
            raise ProposalsFullError(f"{len(ids)} proposals wait already, as many as may", hint)
        data = draft.to_bytes(replace(proposal, near=tuple(near)))
        file = store.write(folder, proposal.id, data)
    return {**answer, "status": WAITING, "file": str(file)}


def waiting(vault: Vault) -> list[Proposal]:
    """Return the waiting proposals, oldest first; a file that a person broke has an error as finding."""
    folder = store.folder_of(vault)
    proposals = [store.load(folder, id) for id in store.ids(folder)]
    return sorted(proposals, key=lambda proposal: proposal.created)


def count(vault: Vault) -> int:
    """Return the number of waiting proposals."""
    return len(store.ids(store.folder_of(vault)))


def find(vault: Vault, name: str, *, broken: bool = False) -> Proposal:
    """Return the proposal of an id, or of a beginning that only one has. Raises VaultError.

    With `broken` a file that a person broke has an error as its finding.
    """
    folder = store.folder_of(vault)
    id = store.find_id(folder, name)
    return store.load(folder, id) if broken else draft.from_bytes(id, store.read(folder, id))


def source(vault: Vault, name: str) -> str:
    """Return a proposal as an editor gets it: the lesson file that it would be. Raises VaultError."""
    folder = store.folder_of(vault)
    return _as_lesson(store.read(folder, store.find_id(folder, name)))


def edit(
    vault: Vault,
    name: str,
    text: str,
    seen: str,
    categories: Collection[str] = (),
) -> Proposal:
    """Write an edited proposal; `seen` is the text that was edited. Its age counts from now.

    Raises CheckError for what `check` calls an error, ChangedError if it is not what was seen.
    """
    with store.hold(vault) as folder:
        id = store.find_id(folder, name)
        before = store.read(folder, id)
        if _as_lesson(before) != seen:
            raise ChangedError(f"the proposal {id} has changed meanwhile", "edit it again")
        about = draft.about(draft.from_bytes(id, before))
        keys = {"created": datetime.now(UTC).replace(microsecond=0), draft.KEY: about}
        data = edits.set_keys(text.encode("utf-8", "surrogateescape"), keys)
        data = harmless.with_line(data, f"{id}.md")
        proposal = draft.from_bytes(id, data)
        proposal = _checked(proposal, data, categories, "not kept", "edit it again without that")
        store.write(folder, id, edits.set_keys(data, {draft.KEY: draft.about(proposal)}))
    return proposal


def recur(vault: Vault, id: str, again: Proposal) -> Proposal | None:
    """Note in a proposal that waits the sessions and quotes of the same one again; None if it is gone.

    Those that another process noted meanwhile stay, and so does the rest of its file, which a person may
    have edited.
    """
    with store.hold(vault) as folder:
        if id not in store.ids(folder):
            return None
        data = store.read(folder, id)
        proposal = draft.seen_again(draft.from_bytes(id, data), again)
        store.write(folder, id, edits.set_keys(data, {draft.KEY: draft.about(proposal)}))
    return proposal


def warn(vault: Vault, id: str, finding: Mapping[str, Any]) -> None:
    """Add a warning to a proposal that waits, once. Raises VaultError if it is gone."""
    with store.hold(vault) as folder:
        data = store.read(folder, id)
        proposal = draft.from_bytes(id, data)
        if finding in proposal.findings:
            return
        proposal = replace(proposal, findings=(*proposal.findings, dict(finding)))
        store.write(folder, id, edits.set_keys(data, {draft.KEY: draft.about(proposal)}))


def strike(vault: Vault, name: str, text: str) -> Proposal:
    """Take a prompt or a line of output out of a proposal. Raises VaultError if it is its only one."""
    with store.hold(vault) as folder:
        id = store.find_id(folder, name)
        data = store.read(folder, id)
        proposal = draft.from_bytes(id, data)
        lists = {key: [*getattr(proposal, key)] for key in draft.ANSWERS}
        remaining = {key: [each for each in texts if each != text] for key, texts in lists.items()}
        if remaining == lists:
            raise VaultError(
                f"the proposal {id} has no prompt {text!r:.80}",
                "see them with `lessons review list ID`",
            )
        if proposal.only_prompts and not any(remaining.values()):
            raise VaultError(
                "it has no other prompt", "run `lessons review reject` to take it away"
            )
        keys = {key: texts or None for key, texts in remaining.items() if texts != lists[key]}
        data = edits.set_keys(data, keys)
        store.write(folder, id, data)
    return draft.from_bytes(id, data)


def reject(vault: Vault, name: str, compared: Comparison) -> Proposal:
    """Take a proposal away and keep what recognises it; for a week `take_back` brings it back.

    A file that cannot be read is not recognised.
    """
    with store.hold(vault) as folder:
        id = store.find_id(folder, name)
        proposal = store.load(folder, id)
        now = datetime.now(UTC).isoformat(timespec="seconds")
        if proposal.text:
            store.reject(vault, fingerprint.create(proposal, compared, now))
        store.set_aside(folder, id)
    return proposal


def take_back(vault: Vault, name: str) -> Proposal:
    """Let a proposal wait again that was rejected, by its id or its beginning. Raises VaultError."""
    with store.hold(vault) as folder:
        id = store.bring_back(folder, name)
        store.forget_rejected(vault, id)
        return store.load(folder, id)


def drop(vault: Vault, name: str) -> None:
    """Remove a proposal that a lesson says already. Raises VaultError, WriteError."""
    with store.hold(vault) as folder:
        store.remove(folder, store.find_id(folder, name))


def _as_lesson(data: bytes) -> str:
    return edits.set_keys(data, {draft.KEY: None}).decode("utf-8", "surrogateescape")


def _checked(
    proposal: Proposal, data: bytes, categories: Collection[str], failed: str, hint: str
) -> Proposal:
    folder = f"{proposal.category}/" if proposal.category else ""
    name = category.slugify(proposal.title) or "lesson"
    findings = []
    found = check.of_text(check.Candidate(f"{folder}{name}.md", data), categories)
    found = harmless.settled(found, noted=frozenset)
    for each in found:
        is_order = each.rule == prompt_injection.RULE  # a person decides whether it is one
        if each.severity == check.ERROR and not is_order:
            if each.fingerprints:
                hint = "; ".join(
                    [hint, f"if it is no secret: {harmless.command(found)}, then again"]
                )
            raise CheckError(f"{failed}: {each.rule}: {each.message}", hint, each.rule)
        level = check.WARNING if is_order else each.severity
        findings.append({"level": level, "rule": each.rule, "message": each.message})
    return replace(proposal, findings=tuple(findings))
