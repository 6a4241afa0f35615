"""Propose a lesson; list what waits; accept or reject it.

A proposal is checked like a commit before any byte of it is kept. To accept one, its place in the vault
is noted in its file, then the lesson is written, then the proposal removed: whoever accepts it again
after a crash in between finds the lesson there and only removes the proposal.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vault_index import check, files, git
from vault_index.edit import add
from vault_index.errors import GitError, VaultError
from vault_index.lesson import edit_frontmatter, markdown
from vault_index.lesson.category import normalise
from vault_index.lesson.parse import parse_file
from vault_index.proposals import draft, shelf
from vault_index.proposals.draft import Proposal

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from vault_index.vault import Vault

MAX_WAITING = 200  # more than a person reviews; a runaway agent fills 4 MB and no disk
WAITING, WAITS = "waiting", "waiting already"
REJECTED, IS_LESSON = "rejected before", "a lesson already"
_PLACE = "writing_to"  # in the key `proposal`: where the lesson is being written


def checked(proposal: Proposal, categories: Collection[str] = ()) -> Proposal:
    """Return a proposal with the warnings of its check. Raises VaultError for an error.

    `categories` are those of the lessons, of which its own may be a misspelling.
    """
    file = f"{proposal.category}/" if proposal.category else ""
    name = markdown.slugify(proposal.title) or "lesson"
    candidate = check.Candidate(f"{file}{name}.md", draft.to_bytes(proposal))
    findings = check.of_text(candidate, categories)
    errors = [finding for finding in findings if finding.severity == check.ERROR]
    if errors:
        why = f"{errors[0].rule}: {errors[0].message}"
        raise VaultError(f"not proposed, and not kept: {why}", "write it without that")
    kept = tuple(
        {"level": finding.severity, "rule": finding.rule, "message": finding.message}
        for finding in findings
    )
    return replace(proposal, findings=kept)


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
    words = shelf.hashed(draft.words(f"{proposal.title} {proposal.text}"))
    with shelf.opened(vault) as folder:
        if compared.get("rejected") or shelf.has_words_of(words, shelf.rejected(folder)):
            return {**answer, "status": REJECTED}
        waiting = shelf.ids(folder)
        if proposal.id in waiting:
            return {**answer, "status": WAITS, "file": str(shelf.file_of(folder, proposal.id))}
        if len(waiting) >= MAX_WAITING:
            hint = (
                "ask a person to run `lessons proposals`, then `lessons accept` or `lessons reject`"
            )
            raise VaultError(f"{len(waiting)} proposals wait already, as many as may", hint)
        kept = replace(proposal, near=tuple(near))
        file = shelf.write(folder, proposal.id, draft.to_bytes(kept))
    return {**answer, "status": WAITING, "file": str(file)}


def waiting(vault: Vault) -> list[Proposal]:
    """Return what waits, oldest first; a file that a person broke has an error as its finding."""
    folder = shelf.folder_of(vault)
    proposals = []
    for id in shelf.ids(folder):
        try:
            proposals.append(_read(folder, id))
        except VaultError as error:
            finding = {"level": check.ERROR, "rule": "frontmatter", "message": error.message}
            proposals.append(Proposal(id, "(cannot be read)", "", findings=(finding,)))
    return sorted(proposals, key=lambda proposal: proposal.created)


def count(vault: Vault) -> int:
    """Return how many proposals wait."""
    return len(shelf.ids(shelf.folder_of(vault)))


def find(vault: Vault, name: str) -> Proposal:
    """Return the proposal of an id, or of a beginning that only one has. Raises VaultError."""
    folder = shelf.folder_of(vault)
    return _read(folder, _id(folder, name))


def accept(vault: Vault, name: str, category: str = "", *, commit: bool = False) -> Path:
    """Write a proposal as a lesson where its category says, and return the path of its file.

    With `commit` the file is committed, and nothing else. Raises VaultError, also from `add.write`.
    """
    if commit and git.worktree(vault.lessons_dir) is None:
        raise VaultError(
            "the vault is in no git repository", "run `git init`, or accept it without --commit"
        )
    with shelf.opened(vault) as folder:
        id = _id(folder, name)
        proposal = _read(folder, id)
        data = shelf.read(folder, id) or b""
        path = _written(vault, data) or _write(vault, folder, id, data, category)
        shelf.remove(folder, id)
    if commit:
        _commit(vault, path, proposal.title)
    return path


def reject(vault: Vault, name: str, compared: Mapping[str, Any]) -> Proposal:
    """Remove a proposal and keep what recognises it. `compared` is what `likeness.of` returned."""
    with shelf.opened(vault) as folder:
        id = _id(folder, name)
        proposal = _read(folder, id)
        words = draft.words(f"{proposal.title} {proposal.text}")
        now = datetime.now(UTC).isoformat(timespec="seconds")
        embedder, vector = (str(compared.get(key) or "") for key in ("embedder", "vector"))
        shelf.reject(folder, id, now, words, embedder, vector)
        shelf.remove(folder, id)
    return proposal


def _id(folder: Path | None, name: str) -> str:
    matching = [id for id in shelf.ids(folder) if name and id.startswith(name.strip().lower())]
    if len(matching) == 1:
        return matching[0]
    if matching:
        some = ", ".join(matching[:4])
        raise VaultError(
            f"{len(matching)} proposals begin with {name!r}: {some}", "give the whole id"
        )
    raise VaultError(f"no proposal {name!r:.80} waits", "see their ids with `lessons proposals`")


def _read(folder: Path | None, id: str) -> Proposal:
    data = shelf.read(folder, id) if folder else None
    if data is None:
        raise VaultError(f"no proposal {id!r} waits", "see their ids with `lessons proposals`")
    return draft.from_bytes(id, data)


def _write(vault: Vault, folder: Path, id: str, data: bytes, category: str) -> Path:
    """Write the lesson of a proposal, after a note of where in the proposal."""
    keys = edit_frontmatter.keys_of(data)
    source = edit_frontmatter.set_keys(data, {draft.KEY: None, "categories": None})
    chosen = [category] if category else list(parse_file(data, "new.md")[0].categories)
    if category and not normalise(category):
        raise VaultError(f"not a category: {category!r:.80}", "name one such as devops/ci-cd")
    path = add.place_of(vault, source, categories=chosen)
    about = keys.get(draft.KEY)
    noted = {
        **(about if isinstance(about, dict) else {}),
        _PLACE: str(path.relative_to(vault.root)),
    }
    shelf.write(folder, id, edit_frontmatter.set_keys(data, {draft.KEY: noted}))
    return add.write(vault, source, categories=chosen)


def _written(vault: Vault, data: bytes) -> Path | None:
    """Return the lesson that an acceptance wrote before it was ended; None where there is none."""
    about = edit_frontmatter.keys_of(data).get(draft.KEY)
    place = about.get(_PLACE) if isinstance(about, dict) else None
    path = vault.root / place if isinstance(place, str) else None
    if path is None or not path.is_relative_to(vault.lessons_dir) or ".." in path.parts:
        return None
    try:
        there = parse_file(files.read_file(path), path.name)
    except VaultError:
        return None
    (ours,) = parse_file(data, path.name)[:1]
    is_it = bool(there) and (there[0].title, there[0].created) == (ours.title, ours.created)
    return path if is_it else None


def _commit(vault: Vault, path: Path, title: str) -> None:
    """Commit one file. Raises GitError, with the file as it was written."""
    inside = str(path.relative_to(vault.root))
    try:
        git.command(vault.root, "add", "--", inside)
        git.command(vault.root, "commit", "-q", "-m", f"Add lesson: {title}", "--", inside)
    except GitError as error:
        message = f"the lesson is in {inside} now, and not committed: {error.message}"
        raise GitError(message, error.hint or "commit it with git") from None
