"""Propose a lesson; list what waits; edit or reject it. `accept` makes it a lesson.

A proposal is checked like a commit before any byte of it is kept. Those that nobody has reviewed for
`learn.expire_days` go, and may be proposed again.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vault_index import check
from vault_index.errors import ChangedError, VaultError
from vault_index.journal import expiry
from vault_index.lesson import category, edits
from vault_index.lesson.parse import parse_file
from vault_index.proposals import draft, shelf
from vault_index.proposals.draft import Proposal

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from vault_index.vault import Vault

MAX_WAITING = 200  # more than a person reviews; a runaway agent fills 4 MB and no disk
WAITING, WAITS = "waiting", "waiting already"
REJECTED, IS_LESSON = "rejected before", "a lesson already"


def checked(proposal: Proposal, categories: Collection[str] = ()) -> Proposal:
    """Return a proposal with the warnings of its check. Raises VaultError for an error.

    `categories` are those of the lessons, of which its own may be a misspelling.
    """
    findings = _findings(proposal, draft.to_bytes(proposal), categories)
    errors = [finding for finding in findings if finding["level"] == check.ERROR]
    if errors:
        why = f"{errors[0]['rule']}: {errors[0]['message']}"
        raise VaultError(f"not proposed, and not kept: {why}", "write it without that")
    return replace(proposal, findings=tuple(findings))


def propose(vault: Vault, proposal: Proposal, compared: Mapping[str, Any]) -> dict[str, Any]:
    """Keep a proposal that was checked, unless it is there in another form: its `status`.

    `compared` is what `likeness.of` returned, empty where there was no index to ask. Raises
    VaultError where too many wait, WriteError.
    """
    near = [list(each) for each in compared.get("near") or ()]
    answer: dict[str, Any] = {"id": proposal.id, "title": proposal.title, "near": near}
    answer |= {"findings": list(proposal.findings), "file": ""}
    if compared.get("same"):
        return {**answer, "status": IS_LESSON, "near": [[*compared["same"], 1.0]]}
    own = shelf.sketch_of(proposal, compared)
    with shelf.opened(vault) as folder:
        if compared.get("rejected") or shelf.same_sketch(
            replace(own, vector=""), shelf.rejected(folder)
        ):
            return {**answer, "status": REJECTED}
        waiting = shelf.ids(folder)
        if proposal.id in waiting:
            return {**answer, "status": WAITS, "file": str(shelf.file_of(folder, proposal.id))}
        if len(waiting) >= MAX_WAITING:
            hint = "ask a person to run `lessons review`"
            raise VaultError(f"{len(waiting)} proposals wait already, as many as may", hint)
        kept = replace(proposal, near=tuple(near))
        file = shelf.write(folder, proposal.id, draft.to_bytes(kept))
    return {**answer, "status": WAITING, "file": str(file)}


def waiting(vault: Vault) -> list[Proposal]:
    """Return what waits, oldest first; a file that a person broke has an error as its finding."""
    folder = shelf.folder_of(vault)
    proposals = [_read_or_broken(folder, id) for id in shelf.ids(folder)]
    return sorted(proposals, key=lambda proposal: proposal.created)


def count(vault: Vault) -> int:
    """Return how many proposals wait."""
    return len(shelf.ids(shelf.folder_of(vault)))


def expire(vault: Vault) -> str:
    """Put away what has waited for too long, and return a line that says so; "" if nothing went.

    For commands that write: see `journal.expiry`. Raises WriteError.
    """
    folder, home, days = shelf.folder_of(vault), vault.config.home, vault.config.learn_expire_days
    oldest = expiry.oldest(home, days) if shelf.ids(folder) else None
    if oldest is None:
        return ""
    with shelf.opened(vault) as opened:
        old = [id for id in shelf.ids(opened) if (shelf.created(opened, id) or oldest) < oldest]
        for id in old:
            expiry.put_away(home, shelf.file_of(opened, id))
    which = "1 proposal" if len(old) == 1 else f"{len(old)} proposals"
    return expiry.told(home, f"{which} not reviewed in {days} days") if old else ""


def expires(vault: Vault, proposal: Proposal) -> str:
    """Return the day on which a proposal goes, as ISO 8601; "" if never."""
    days = vault.config.learn_expire_days
    if not days or not proposal.created:
        return ""
    try:
        last = datetime.fromisoformat(proposal.created) + timedelta(days)
    except OverflowError:  # after the year 9999
        return ""
    return last.date().isoformat()


def find(vault: Vault, name: str, *, broken: bool = False) -> Proposal:
    """Return the proposal of an id, or of a beginning that only one has. Raises VaultError.

    With `broken` a file that a person broke has an error as its finding.
    """
    folder = shelf.folder_of(vault)
    id = id_of(folder, name)
    return _read_or_broken(folder, id) if broken else read(folder, id)


def source(vault: Vault, name: str) -> str:
    """Return a proposal as an editor gets it: the lesson file that it would be. Raises VaultError."""
    folder = shelf.folder_of(vault)
    return _as_lesson(_data(folder, id_of(folder, name)))


def edit(
    vault: Vault,
    name: str,
    text: str,
    seen: str,
    categories: Collection[str] = (),
    lesson: Mapping[str, Any] | None = None,
) -> Proposal:
    """Write an edited proposal, of which the editor got `seen`; its age counts from now.

    `lesson` is the entry of the one it changes: from now on it is a change of that text.
    Raises VaultError for what `check` calls an error, ChangedError if it is not what was seen.
    """
    with shelf.opened(vault) as folder:
        id = id_of(folder, name)
        before = _data(folder, id)
        if _as_lesson(before) != seen:
            raise ChangedError(f"the proposal {id} has changed meanwhile", "edit it again")
        about = edits.keys_of(before).get(draft.KEY)
        now = datetime.now(UTC).replace(microsecond=0)
        keys = {"created": now, draft.KEY: about}
        data = edits.set_keys(text.encode("utf-8", "surrogateescape"), keys)
        lessons = parse_file(data, f"{id}.md")
        if len(lessons) != 1 or not lessons[0].text or lessons[0].title == id:
            raise VaultError(
                "a proposal is one lesson, with a title and some text", "edit it again"
            )
        proposal = draft.from_bytes(id, data)
        findings = _findings(proposal, data, categories)
        errors = [finding for finding in findings if finding["level"] == check.ERROR]
        if errors:
            why = f"{errors[0]['rule']}: {errors[0]['message']}"
            raise VaultError(f"not kept: {why}", "edit it again without that")
        about = {**(about or {}), "findings": findings}
        if lesson is not None:
            proposal = _rebased(proposal, lesson)
            about |= {"base": proposal.base, "added": proposal.added}
        data = edits.set_keys(data, {draft.KEY: about})
        shelf.write(folder, id, data)
    return replace(proposal, findings=tuple(findings))


def _rebased(proposal: Proposal, lesson: Mapping[str, Any]) -> Proposal:
    """Return a change as one of a lesson as it is now."""
    base = draft.id_of(lesson["title"], lesson["text"])
    return replace(proposal, base=base, added=draft.added_of(proposal.text, lesson["text"]))


def reject(vault: Vault, name: str, compared: Mapping[str, Any]) -> Proposal:
    """Remove a proposal and keep what recognises it. `compared` is what `likeness.of` returned.

    Nothing is kept of a file that cannot be read.
    """
    with shelf.opened(vault) as folder:
        id = id_of(folder, name)
        proposal = _read_or_broken(folder, id)
        now = datetime.now(UTC).isoformat(timespec="seconds")
        if proposal.text:
            shelf.reject(folder, shelf.sketch_of(proposal, compared, now))
        shelf.remove(folder, id)
    return proposal


def id_of(folder: Path | None, name: str) -> str:
    """Return the id of a proposal by its beginning. Raises VaultError."""
    matching = [id for id in shelf.ids(folder) if name and id.startswith(name.strip().lower())]
    if len(matching) == 1:
        return matching[0]
    if matching:
        some = ", ".join(matching[:4])
        raise VaultError(
            f"{len(matching)} proposals begin with {name!r}: {some}", "give the whole id"
        )
    raise VaultError(f"no proposal {name!r:.80} waits", "see their ids with `lessons proposals`")


def read(folder: Path | None, id: str) -> Proposal:
    """Return the proposal of an id. Raises VaultError, LessonError for a file that does not parse."""
    return draft.from_bytes(id, _data(folder, id))


def _read_or_broken(folder: Path | None, id: str) -> Proposal:
    try:
        return read(folder, id)
    except VaultError as error:
        finding = {"level": check.ERROR, "rule": "frontmatter", "message": error.message}
        return Proposal(id, "(cannot be read)", "", findings=(finding,))


def _data(folder: Path | None, id: str) -> bytes:
    data = shelf.read(folder, id) if folder else None
    if data is None:
        raise VaultError(f"no proposal {id!r} waits", "see their ids with `lessons proposals`")
    return data


def _as_lesson(data: bytes) -> str:
    return edits.set_keys(data, {draft.KEY: None}).decode("utf-8", "surrogateescape")


def _findings(proposal: Proposal, data: bytes, categories: Collection[str]) -> list[dict[str, str]]:
    """Return what the check finds in a proposal's file."""
    folder = f"{proposal.category}/" if proposal.category else ""
    name = category.slugify(proposal.title) or "lesson"
    found = check.of_text(check.Candidate(f"{folder}{name}.md", data), categories)
    return [
        {"level": finding.severity, "rule": finding.rule, "message": finding.message}
        for finding in found
    ]
