"""Make a proposal a lesson, or a part of one: a new file, a change of a lesson, an addition to it.

Accepting is confirming: hooks deliver what they would hold back until a person looks at it. The lesson
is committed where that is wished, then written, then the proposal removed. A commit comes first, since a
lesson that is written and not committed yet would go into somebody's next commit without the trailer. A
kill in between leaves a proposal that a lesson says already: accepting it again only takes it away.
Nothing of the evidence is written but the private id of the session.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vault_index import check, git
from vault_index.edit import add, update
from vault_index.errors import ChangedError, GitError, VaultError
from vault_index.lesson import edits, passages
from vault_index.lesson.category import NO_CATEGORY, normalise
from vault_index.lesson.file import LessonFile, hash_of
from vault_index.lesson.parse import anchor_of, parse_file
from vault_index.proposals import draft, store
from vault_index.recall import anchors
from vault_index.store import released
from vault_index.text.words import count

if TYPE_CHECKING:
    from vault_index.proposals.draft import Proposal
    from vault_index.retrieval.hit import WholeEntry
    from vault_index.vault import Vault

TRAILER = "Learned-From: session"
SOURCE = "session"
_HEADING = re.compile(r"#{1,5} ")


@dataclass(frozen=True, slots=True)
class AmendedLesson:
    """A lesson as it would be with a proposal. `lists` are its keys that get longer.

    `before` is a hash of the title and text that it has.
    """

    text: str
    lists: Mapping[str, Any]
    before: str
    diff: str


def write_lesson(
    vault: Vault,
    name: str,
    entry: WholeEntry | None = None,
    seen: str | None = None,
    category: str = "",
    *,
    commit: bool = False,
) -> Path:
    """Write a proposal as a lesson where its `category` says, or into the lesson of an `entry`.

    A `category` of NO_CATEGORY is the top of the vault.

    Without `seen` it changes that lesson; else it is added to it, and `seen` is the
    `AmendedLesson.before` that a person agreed to. With `commit` the file is committed, and nothing
    else. Return its path.
    Raises ChangedError if the lesson is not what the proposal was made from or not what was seen,
    and VaultError, also from `add.write` and `update.write`.
    """
    if commit:
        _refuse_no_repository(vault)
    with store.hold(vault) as folder:
        id = store.find_id(folder, name)
        data = store.read(folder, id)
        proposal = draft.from_bytes(id, data)
        verb = "Add" if entry is None else "Change" if seen is None else "Add to"
        subject = f"{verb} lesson: {entry.title if entry else proposal.title}"
        first = _before_writing(vault, proposal, entry, subject if commit else "")
        if entry:
            path = _update(vault, proposal, entry, seen, first)
        else:
            path = _write(vault, proposal, data, category, first)
        store.remove(folder, id)
    return path


def change_of(proposal: Proposal, entry: WholeEntry) -> AmendedLesson:
    """Return the change that adds a proposal to a lesson; what that has already is not added.

    A change made for this lesson goes before the sections that a learned one ends with. Anything else
    goes to its end: the text below its title, its headings one level down.
    """
    text, title = entry.text, entry.title
    if proposal.changes == entry.id:
        is_there = proposal.only_prompts or proposal.text in text
        after = text if is_there else passages.with_items(text, proposal.text)
    else:
        is_other = draft.words(proposal.title) != draft.words(title)
        more = f"{f'## {proposal.title}' if is_other else ''}\n\n{_lowered(proposal.text)}".strip()
        after = text if more in text else f"{text.rstrip()}\n\n{more}".strip()
    fires_on = _united(entry.fires_on, _without(proposal.fires_on, entry.silent_on))
    prompts = _without(proposal.prompts, [*fires_on, *(entry.silent_on or ())])
    silent_on = _without(proposal.silent_on, fires_on)
    errors = _without(proposal.fires_on_error, entry.silent_on_error)
    lists = {
        "tags": _united(entry.tags, proposal.tags),
        "prompts": _united(entry.prompts, prompts),
        "fires_on": fires_on,
        "silent_on": _united(entry.silent_on, silent_on),
        "fires_on_error": _united(entry.fires_on_error, errors),
    }
    new = {name: texts[len(getattr(entry, name)) :] for name, texts in lists.items()}
    shown = [f"{name}: {each}\n" for name, texts in new.items() for each in texts]
    old, now = (f"# {title}\n\n{each}\n".splitlines(keepends=True) for each in (text, after))
    diff = difflib.unified_diff(old, [*shown, *now], entry.path, entry.path)
    return AmendedLesson(
        text=after,
        lists={name: lists[name] for name in lists if new[name]},
        before=hash_of(title, text),
        diff="".join(diff),
    )


def _without(texts: Sequence[str], others: Sequence[str] | None) -> list[str]:
    existing = {text.casefold() for text in others or ()}
    return [text for text in texts if text.casefold() not in existing]


def _united(texts: Sequence[str] | None, more: Sequence[str]) -> tuple[str, ...]:
    return (*(texts or ()), *_without(more, texts))


def _update(
    vault: Vault, proposal: Proposal, entry: WholeEntry, seen: str | None, first: add.First
) -> Path:
    """Write a change into its lesson."""
    change = change_of(proposal, entry)
    if seen is not None and change.before != seen:
        message = f"{entry.id} was saved since its change was shown; it was left as it is"
        raise ChangedError(message, "look at it again, and then merge")
    return update.write(
        vault,
        entry.id,
        text=None if change.text == entry.text else change.text,
        **change.lists,
        shown=entry,
        unchanged=True,
        first=first,
    )


def _write(vault: Vault, proposal: Proposal, data: bytes, category: str, first: add.First) -> Path:
    """Write the lesson of a proposal."""
    session = proposal.session
    learned: dict[str, Any] = {"source": SOURCE, "session": session} if session else {}
    if proposal.anchors:
        top = anchors.top_of(vault)  # a session may have worked in another repository
        named = map(anchor_of, proposal.anchors)
        here = [each for each in named if each and anchors.hash_of(top, each)]
        learned[anchors.KEY] = anchors.hashed(vault, here) or None
    source = edits.set_keys(data, {**learned, draft.KEY: None, "categories": None})
    chosen = [category] if category else list(parse_file(data, "new.md")[0].categories)
    if category == NO_CATEGORY:
        chosen = []
    elif category and not normalise(category):
        raise VaultError(f"not a category: {category!r:.80}", "name one such as devops/ci-cd")
    path = add.place_of(vault, source, categories=chosen)
    if os.path.lexists(path):
        hint = "run `lessons review`: e edits its title, c names another category"
        raise VaultError(f"{path.relative_to(vault.root)} is there already", hint)
    return add.write(vault, source, categories=chosen, first=first)


def _lowered(text: str) -> str:
    file = LessonFile.of_text(text, "proposal.md")
    lines = list(file.lines)
    for number in file.headings(_HEADING):
        lines[number] = f"#{lines[number]}"
    return "".join(lines).strip()


def _before_writing(
    vault: Vault, proposal: Proposal, entry: WholeEntry | None, subject: str
) -> add.First:
    """Return a step before a lesson is written: it is released and, with a `subject`, committed.

    A lesson that was held back before its change stays so. It raises VaultError, with nothing written.
    """

    def first(path: Path, data: bytes) -> None:
        until = check.withheld(str(path.relative_to(vault.lessons_dir)), data).until
        if until and not (entry and entry.withheld):
            released.add(vault.config.home, until)
        if subject:
            _commit(vault, str(path.relative_to(vault.root)), data, subject, proposal)

    return first


def _refuse_no_repository(vault: Vault) -> None:
    if git.worktree(vault.lessons_dir) is None:
        raise VaultError(
            "the vault is in no git repository", "run `git init`, or accept it without --commit"
        )


def _refuse_changes(vault: Vault, inside: str) -> None:
    status = ("status", "--porcelain", "--untracked-files=all", "--", inside)
    if git.command(vault.root, "--literal-pathspecs", *status):
        hint = "commit those first, or decide without --commit"
        raise VaultError(f"{inside} has changes that are not committed", hint)


def refuse_uncommitted(vault: Vault) -> None:
    """Raise VaultError unless all lessons are committed, so that a commit holds a batch alone."""
    _refuse_no_repository(vault)
    _refuse_changes(vault, vault.lessons_dir.name)


def commit_batch(vault: Vault, paths: Sequence[str]) -> None:
    """Commit the files of lessons that got prompts, from the vault's root. Raises GitError."""
    subject = f"Add prompts to {count(len(paths), 'lesson')}"
    options = ("--literal-pathspecs", "commit", "--quiet", "-m", subject)
    try:
        git.command(vault.root, *options, "--", *paths)
    except GitError as error:
        hint = "the files are written: commit them with `git commit`"
        raise GitError(f"not committed: {error.message}", hint) from None


def _commit(vault: Vault, inside: str, data: bytes, subject: str, proposal: Proposal) -> None:
    if git.contents(vault.root, {inside: ("HEAD", inside)}).get(inside) == data:
        return  # by an acceptance that was ended before it wrote it
    _refuse_changes(vault, inside)
    try:
        message = ["-m", subject, *(["-m", TRAILER] if proposal.session else [])]
        git.commit_file(vault.root, inside, data, message)
    except GitError as error:
        hint = error.hint or "run `lessons review accept` again after that, or without --commit"
        raise GitError(f"not accepted: {error.message}", hint) from None
