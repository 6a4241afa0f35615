"""Make a proposal a lesson, or a part of one: a new file, a change of a lesson, an addition to it.

The place of the lesson is noted in the proposal's file, then the lesson is committed where that is
wished, then written, then the proposal removed: after a crash in between, accepting it again does only
what is left. A commit comes first, since a lesson that is written and not committed yet would go into
somebody's next commit without the trailer. Nothing of the evidence is written but the private id of the
session.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vault_index import files, git
from vault_index.edit import add, update
from vault_index.errors import ChangedError, GitError, VaultError
from vault_index.lesson import edits, passages
from vault_index.lesson.category import normalise
from vault_index.lesson.file import LessonFile, hash_of
from vault_index.lesson.parse import parse_file
from vault_index.proposals import draft, store
from vault_index.recall import anchors

if TYPE_CHECKING:
    from vault_index.proposals.draft import Proposal
    from vault_index.search.entries import Entry
    from vault_index.vault import Vault

TRAILER = "Learned-From: session"
SOURCE = "session"
_PLACE, _CONTENT = "writing_to", "writing"  # in the key `proposal`: where, and a hash of the lesson
_LISTS = ("tags", "fires_on", "silent_on", "fires_on_error")
_HEADING = re.compile(r"#{1,5} ")
_OUTDATED = "that lesson says something else now than when the change was proposed"


@dataclass(frozen=True, slots=True)
class Change:
    """A lesson as it is, and as it would be with a proposal. `before` is a hash of its title and text."""

    title: str
    text: str
    tags: tuple[str, ...]
    fires_on: tuple[str, ...]
    silent_on: tuple[str, ...]
    fires_on_error: tuple[str, ...]
    before: str
    diff: str


@dataclass(frozen=True, slots=True)
class _Step:
    """An acceptance that has begun. `data` is the proposal's file; `commit` comes before the write."""

    vault: Vault
    folder: Path
    id: str
    data: bytes
    proposal: Proposal
    commit: add.First | None


def write_lesson(
    vault: Vault,
    name: str,
    entry: Entry | None = None,
    seen: str | None = None,
    category: str = "",
    *,
    commit: bool = False,
) -> Path:
    """Write a proposal as a lesson where its `category` says, or into the lesson of an `entry`.

    Without `seen` it changes that lesson; else it is added to it, and `seen` is the `Change.before`
    that a person agreed to. With `commit` the file is committed, and nothing else. Return its path.
    Raises ChangedError if the lesson is not what the proposal was made from or not what was seen,
    and VaultError, also from `add.write` and `update.write`.
    """
    if commit and git.worktree(vault.lessons_dir) is None:
        raise VaultError(
            "the vault is in no git repository", "run `git init`, or accept it without --commit"
        )
    with store.hold(vault) as folder:
        id = store.find_id(folder, name)
        data = store.read(folder, id)
        proposal = draft.from_bytes(id, data)
        verb = "Add" if entry is None else "Change" if seen is None else "Add to"
        subject = f"{verb} lesson: {entry['title'] if entry else proposal.title}"
        committing = _committing(vault, subject, proposal) if commit else None
        path = _resumed(vault, data, is_new=entry is None)
        if path is None:
            step = _Step(vault, folder, id, data, proposal, committing)
            path = _update(step, entry, seen) if entry else _write(step, category)
        elif committing:
            committing(path, files.read_file(path))
        store.remove(folder, id)
    return path


def change_of(proposal: Proposal, entry: Entry) -> Change:
    """Return the change that a proposal makes to the lesson it is a change of."""
    return _change(proposal, entry, proposal.title, proposal.text)


def addition_of(proposal: Proposal, entry: Entry) -> Change:
    """Return the change that adds a proposal to the end of a lesson.

    Its text goes below its title, and its headings one level down. A change of that lesson adds only
    its new items, before the sections that a learned lesson ends with.
    """
    if proposal.changes == entry["id"]:
        added = proposal.added or draft.added_lines(proposal.text, entry["text"])
        return _change(proposal, entry, entry["title"], passages.with_items(entry["text"], added))
    is_other = draft.words(proposal.title) != draft.words(entry["title"])
    under = [entry["text"].rstrip(), *([f"## {proposal.title}"] if is_other else [])]
    text = "\n\n".join([*under, _lowered(proposal.added or proposal.text)]).strip()
    return _change(proposal, entry, entry["title"], text)


def is_outdated(proposal: Proposal, entry: Entry) -> bool:
    """Whether a lesson says something else than when a change of it was proposed."""
    return proposal.base != draft.id_of(entry["title"], entry["text"])


def _change(proposal: Proposal, entry: Entry, title: str, text: str) -> Change:
    before, after = (
        f"# {name}\n\n{body}\n".splitlines(keepends=True)
        for name, body in ((entry["title"], entry["text"]), (title, text))
    )
    fires_on = _united(entry["fires_on"], _without(proposal.fires_on, entry.get("silent_on")))
    new = fires_on[len(entry["fires_on"] or ()) :]
    after = [*(f"fires_on: {prompt}\n" for prompt in new), *after]
    silent_on = _without(proposal.silent_on, fires_on)
    shown = difflib.unified_diff(before, after, entry["path"], entry["path"])
    return Change(
        title=title,
        text=text,
        tags=_united(entry["tags"], proposal.tags),
        fires_on=fires_on,
        silent_on=_united(entry.get("silent_on"), silent_on),
        fires_on_error=_united(
            entry.get("fires_on_error"),
            _without(proposal.fires_on_error, entry.get("silent_on_error")),
        ),
        before=hash_of(entry["title"], entry["text"]),
        diff="".join(shown),
    )


def _without(texts: Sequence[str], others: Sequence[str] | None) -> list[str]:
    """Return the texts that are not among others: `check` refuses a prompt that is in two lists."""
    there = {text.casefold() for text in others or ()}
    return [text for text in texts if text.casefold() not in there]


def _united(own: Sequence[str] | None, more: Sequence[str]) -> tuple[str, ...]:
    return (*(own or ()), *_without(more, own))


def _update(step: _Step, entry: Entry, seen: str | None) -> Path:
    """Write a change into its lesson, after a note of it in the proposal."""
    vault, proposal = step.vault, step.proposal
    change = (change_of if seen is None else addition_of)(proposal, entry)
    if seen is not None and change.before != seen:
        message = f"{entry['id']} was saved since its change was shown; it was left as it is"
        raise ChangedError(message, "look at it again, and then merge")
    if seen is None and is_outdated(proposal, entry):
        hint = f"lessons review: merge it into {entry['id']}, or edit it"
        raise ChangedError(f"{proposal.id} is a change of {entry['id']}, and {_OUTDATED}", hint)
    if step.commit and not _committed(vault, step.data):
        status = ("status", "--porcelain", "--untracked-files=all", "--", entry["path"])
        if git.command(vault.root, "--literal-pathspecs", *status):
            hint = "commit those first, or decide without --commit"
            raise VaultError(f"{entry['path']} has changes that are not committed", hint)
    _note(step, entry["path"], hash_of(change.title, change.text))
    before: Mapping[str, Any] = entry
    lists = {name: getattr(change, name) for name in _LISTS}
    new = {name: own for name, own in lists.items() if len(own) > len(before.get(name) or ())}
    return update.write(
        vault,
        entry["id"],
        title=change.title if change.title != entry["title"] else None,
        text=change.text,
        **new,
        shown=entry,
        unchanged=True,
        first=step.commit,
    )


def _write(step: _Step, category: str) -> Path:
    """Write the lesson of a proposal, after a note of where in the proposal."""
    vault, session = step.vault, step.proposal.session
    learned: dict[str, Any] = {"source": SOURCE, "session": session} if session else {}
    if there := anchors.of_data(step.data, f"{step.id}.md"):
        top = anchors.top_of(vault)  # a session may have worked in another repository
        here = [each for each in there if anchors.hash_of(top, each)]
        learned[anchors.KEY] = anchors.hashed(vault, here) or None
    source = edits.set_keys(step.data, {**learned, draft.KEY: None, "categories": None})
    chosen = [category] if category else list(parse_file(step.data, "new.md")[0].categories)
    if category and not normalise(category):
        raise VaultError(f"not a category: {category!r:.80}", "name one such as devops/ci-cd")
    path = add.place_of(vault, source, categories=chosen)
    place = str(path.relative_to(vault.root))
    if os.path.lexists(path):
        hint = "run `lessons review`: e edits its title, c names another category"
        raise VaultError(f"{place} is there already", hint)
    _note(step, place, "")
    return add.write(vault, source, categories=chosen, first=step.commit)


def _note(step: _Step, place: str, content: str) -> None:
    noted = {**_about(step.data), _PLACE: place, _CONTENT: content}
    if not content:
        del noted[_CONTENT]  # also that of an attempt before
    store.write(step.folder, step.id, edits.set_keys(step.data, {draft.KEY: noted}))


def _resumed(vault: Vault, data: bytes, *, is_new: bool) -> Path | None:
    """Return the lesson of an acceptance that was ended after it wrote or committed it; None without.

    A new one that was committed and not written any more is written.
    """
    path = _noted(vault, data)
    with suppress(VaultError):
        if path and _has_it(files.read_file(path), data, path.name):
            return path
    there = _committed(vault, data) if is_new else None
    return path if path and there and files.create_file(path, there, within=vault.root) else None


def _committed(vault: Vault, data: bytes) -> bytes | None:
    """Return the file of a lesson that an acceptance committed before it was ended; None without."""
    path = _noted(vault, data)
    if path is None:
        return None
    inside = str(path.relative_to(vault.root))
    there = git.contents(vault.root, {inside: ("HEAD", inside)}).get(inside)
    return there if there and _has_it(there, data, path.name) else None


def _noted(vault: Vault, data: bytes) -> Path | None:
    """Return where an acceptance was about to write; None if none began."""
    place = _about(data).get(_PLACE)
    path = vault.root / place if isinstance(place, str) else None
    if path is None or not path.is_relative_to(vault.lessons_dir) or ".." in path.parts:
        return None
    return path


def _about(data: bytes) -> dict[str, Any]:
    about = edits.keys_of(data).get(draft.KEY)
    return {**about} if isinstance(about, dict) else {}


def _has_it(there: bytes, data: bytes, name: str) -> bool:
    """Whether a file of a name has the lesson of a proposal's file, as it was noted there."""
    try:
        lessons = parse_file(there, name)
    except VaultError:
        return False
    (ours,) = parse_file(data, name)[:1]
    if content := _about(data).get(_CONTENT):
        return any(hash_of(lesson.title, lesson.text) == content for lesson in lessons)
    return any((each.title, each.created) == (ours.title, ours.created) for each in lessons)


def _lowered(text: str) -> str:
    """Return a text with its headings a level lower, below the heading that it gets."""
    file = LessonFile.of_text(text, "proposal.md")
    lines = list(file.lines)
    for number in file.headings(_HEADING):
        lines[number] = f"#{lines[number]}"
    return "".join(lines).strip()


def _committing(vault: Vault, subject: str, proposal: Proposal) -> add.First:
    """Return what commits a lesson before it is written. It raises GitError, with nothing done."""
    message = ["-m", subject, *(["-m", TRAILER] if proposal.session else [])]

    def commit(path: Path, data: bytes) -> None:
        try:
            git.commit_file(vault.root, str(path.relative_to(vault.root)), data, message)
        except GitError as error:
            hint = error.hint or "run `lessons review accept` again after that, or without --commit"
            raise GitError(f"not accepted: {error.message}", hint) from None

    return commit
