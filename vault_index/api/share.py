"""Commands about what goes to others and comes from them: check, log, sync."""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from vault_index import api, check, git
from vault_index.api.question import Caller, command
from vault_index.check import (
    Candidate,
    Finding,
    KeptFindings,
    Selection,
    links,
    time_limit,
)
from vault_index.check.links import Prerequisite
from vault_index.errors import VaultError
from vault_index.learn.skills import render
from vault_index.recall import outdated
from vault_index.retrieval import above
from vault_index.share import history, remote
from vault_index.store import ownership
from vault_index.vault import Vault, open_vault

COMPARED_FILES = 1_000  # of a commit: to compare lessons, all of them are indexed first


@command
def check_files(
    vault: Vault, caller: Caller, paths: Sequence[str] = (), staged: bool = False, since: str = ""
) -> tuple[list[Finding], int]:
    """Check lesson files; return the findings, and how many files were checked.

    `paths` are absolute, of files or folders; without any it is the whole vault or, `staged`, what the
    next commit adds or changes; `since`, what is not as it was at a commit. A check of staged files has
    a limit of processor time, for a commit must end: after it only secrets and the form are checked.
    """
    if staged:
        chosen = check.staged(vault)
    elif paths:
        chosen = check.named(vault, paths)
    else:
        changed = set(git.changed_since(vault.root, since)) if since else None
        chosen = check.everything(vault, changed)
    return _findings(vault, caller, chosen, staged=staged), len(chosen)


@command
def touched(vault: Vault, caller: Caller, since: str) -> list[outdated.Reason]:
    """List the reasons to look at lessons after the changes since a commit, as `stale_lessons` does."""
    caller.index(vault)
    return outdated.touched(vault, since)


@dataclass(frozen=True, slots=True)
class Log:
    """The commits that changed a lesson, newest first.

    If it `is_deleted`, `deleted_in` is the commit, "" where HEAD still has it.
    """

    id: str
    path: str
    edits: list[history.LessonCommit]
    is_deleted: bool
    deleted_in: str


@command
def log(vault: Vault, caller: Caller, name: str, limit: int | None = None) -> Log:
    """List the commits that changed a lesson, also one that was deleted: see `history.log`."""
    deleted_in, removed = "", None
    try:
        entry = caller.ask(api.lesson.show(name=name))
        id, path = entry.id, entry.path
    except VaultError as error:
        removed = history.deleted(vault, name)
        if removed is None or not error.message.startswith("no lesson "):
            raise
        deleted_in, id, path = removed
    return Log(id, path, history.log(vault, id, path, limit), removed is not None, deleted_in)


@command
def sync(vault: Vault, caller: Caller) -> remote.SyncResult:
    """Fetch, rebase, push, and bring the index up to date, also of the vaults above."""
    ownership.check(vault.index_dir)
    for each in above.of(vault):
        try:
            if each.is_there:
                caller.index(open_vault(each.root))
        except VaultError as error:
            caller.note(f"warning: {each.name}: {error.message}")
    done = remote.sync(vault)
    caller.index(vault, or_stale=True)  # a search right after this shows who wrote what came
    done.lessons = vault.open_index().lessons
    return done


@command
def vaults(vault: Vault, caller: Caller) -> list[above.Listed]:
    """List the vaults that a prompt searches, nearest first."""
    del caller
    return above.listed(vault)


def _findings(vault: Vault, caller: Caller, chosen: Selection, *, staged: bool) -> list[Finding]:
    """Check the files, and compare them with the index if there is one."""
    findings = _of_names(vault, chosen)
    notes: list[str] = []
    built: set[str] = set()
    first: list[Prerequisite] = []
    count, done = len(chosen), 0
    comparing = not staged or count <= COMPARED_FILES
    progress = caller.progress_of("checking lessons")
    progress(0, count)
    with KeptFindings(vault.config.home) as kept:
        texts = _TextChecks(vault, kept, count, staged=staged)
        for batch in chosen.batches():
            categories = list(vault.config.taxonomy)
            try:
                if comparing:
                    # a commit does not fetch the model of 90 MB
                    question = api.search.compare(
                        paths=[each.path for each in batch if each.is_lesson]
                    )
                    answer = caller.ask(question, fetch=not staged, note=notes.append)
                    findings += answer.findings
                    categories += answer.categories
            except VaultError as error:
                comparing = False
                caller.note(f"warning: duplicates and prompts were not checked: {error.message}")
            for candidate in batch:
                findings += texts.findings(candidate, categories)
                findings += links.dead(vault.root, candidate)
                first += links.prerequisites(candidate)
                if render.MARK in candidate.data:
                    built.add(candidate.shown)
                if comparing and candidate.is_lesson and not candidate.as_on_disk:
                    about = "duplicates and prompts are as in the file on disk"
                    caller.note(f"note: {candidate.shown}: {about}")
                progress(done := done + 1, count)
    findings += [] if staged else _of_built_skills(caller, built)  # a commit may come before
    findings += _missing(caller, first)
    _repeat(caller, notes, findings)
    _note_unchecked(caller, texts.unread, count if staged and count > COMPARED_FILES else 0)
    return sorted(findings)


class _TextChecks:
    """The check of one text after another; of `staged` ones in a limit of processor time for all."""

    def __init__(self, vault: Vault, kept: KeptFindings, count: int, *, staged: bool) -> None:
        self._vault, self._kept, self._staged = vault, kept, staged
        # of processor time: for all that is checked, and for what is never left out
        self._seconds = time_limit.ALL_SECONDS if staged else math.inf
        self._more = time_limit.FILE_SECONDS * count
        self.unread = 0  # files whose words were not searched for prompt injection

    def findings(self, candidate: Candidate, categories: Collection[str]) -> list[Finding]:
        seconds = self._seconds + self._more
        if seconds <= 0:
            why = f"the commit takes more than {time_limit.ALL_SECONDS:.0f} s to check"
            return [check.not_checked(candidate.shown, why)]
        began = time.process_time()
        is_read = self._seconds > 0 or self._kept.get(candidate) is not None
        limit = min(seconds, time_limit.RULE_SECONDS)
        found = check.of_text(candidate, categories, limit, orders=is_read, kept=self._kept)
        self.unread += not is_read
        noted = partial(check.noted_in_commits, self._vault, candidate) if self._staged else None
        findings = check.with_command(candidate, found, self._vault.config.home, noted)
        self._seconds -= time.process_time() - began
        return findings


def _of_names(vault: Vault, chosen: Selection) -> list[Finding]:
    lessons = {each for each, is_lesson in chosen.files if is_lesson}
    findings = list(check.of_names(vault, lessons))
    if chosen.unlisted:
        why = f"skills elsewhere in the repository were not checked: {chosen.unlisted}"
        findings.append(Finding(".git", 1, check.NOT_CHECKED, why))
    return findings


def _note_unchecked(caller: Caller, unread: int, uncompared: int) -> None:
    """Note the number of files not read for prompt injection, or not compared with the others."""
    parts = [f"prompt injection in {unread:,}"] if unread else []
    parts += [f"duplicates of {uncompared:,}"] if uncompared else []
    if parts:
        caller.note(f"note: not checked: {', '.join(parts)} files; run `lessons check --all`")


def _repeat(caller: Caller, notes: Sequence[str], findings: Sequence[Finding]) -> None:
    """Note each line once that came with the answers, unless a finding says it."""
    reported = {f"{finding.path}:{finding.line}: {finding.message}" for finding in findings}
    for line in dict.fromkeys(notes):  # the same ones come with each batch
        message = line.removeprefix("warning: ")
        if not any(each.startswith(message) for each in reported):
            caller.note(line)


def _missing(caller: Caller, first: Sequence[Prerequisite]) -> Iterator[Finding]:
    """Yield a finding for each prerequisite that names no lesson."""
    if not first:
        return
    try:
        lessons = caller.ask(api.lesson.select())
    except VaultError as error:
        caller.note(f"warning: prerequisites were not looked up: {error.message}")
        return
    names = {name.casefold() for each in lessons for name in (each.id, each.title, *each.aliases)}
    ends = tuple(f"/{each.id.casefold()}" for each in lessons)
    for each in first:
        wanted = each.name.casefold()
        if wanted not in names and not any(id.endswith(f"/{wanted}") for id in ends):
            yield links.missing(each)


def _of_built_skills(caller: Caller, paths: Collection[str]) -> Iterator[Finding]:
    if not paths:
        return
    try:
        behind = caller.ask(api.skill.compare())
    except VaultError as error:
        caller.note(f"warning: skills were not compared with their lessons: {error.message}")
        return
    yield from (finding for finding in behind if finding.path in paths)
