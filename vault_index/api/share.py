"""Commands about what goes to others and comes from them: check, log, sync."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from vault_index import api, check, git
from vault_index.api import codec
from vault_index.api.question import Caller, command
from vault_index.check import pattern
from vault_index.errors import VaultError
from vault_index.learn.skills import render
from vault_index.search import above
from vault_index.share import clones, history, remote
from vault_index.store import ownership
from vault_index.vault import printable

if TYPE_CHECKING:
    from vault_index.check import Candidate, Finding
    from vault_index.vault import Vault

FILES_AT_ONCE = 50  # in one question to the watcher


@command
def check_files(
    vault: Vault,
    caller: Caller,
    paths: Sequence[str] = (),
    staged: bool = False,
    since: str = "",
) -> dict[str, Any]:
    """Check lesson files: `findings`, how many `files` and `errors`, `shown` as lines.

    `paths` are absolute, of files or folders; without any it is the whole vault or, `staged`, what the
    next commit adds or changes; `since`, what is not as it was at a commit. A check of staged files has
    a limit of processor time: a commit must end.
    """
    if staged:
        # git stages names that the vault passes over, because they are not UTF-8
        candidates = [
            replace(candidate, path=printable(candidate.path)) for candidate in check.staged(vault)
        ]
    elif since:
        changed = set(git.changed_since(vault.root, since))
        candidates = [each for each in check.everything(vault) if each.shown in changed]
    elif paths:
        candidates = check.named(vault, paths)
    else:
        candidates = check.everything(vault)
    findings = _findings(vault, caller, candidates, staged=staged)
    if not staged:  # a commit may come before the build
        findings = sorted([*findings, *_of_built_skills(caller, candidates)])
    return {
        "findings": codec.to_json(findings),
        "shown": [str(finding) for finding in findings],
        "files": len(candidates),
        "errors": sum(finding.severity == check.ERROR for finding in findings),
    }


@command
def log(vault: Vault, caller: Caller, name: str) -> dict[str, Any]:
    """List the commits that changed a lesson: `edits`, newest first, with its `id` and `path`.

    `deleted_in` is the commit in which it was deleted, "" for a lesson that exists.
    """
    deleted_in = ""
    try:
        asked = api.lesson.show(name=name)
        entry = caller.ask(asked, names_only=True, prompts=False)["entry"]
        id, path = entry["id"], entry["path"]
    except VaultError as error:
        gone = history.deleted(vault, name)
        if gone is None or not error.message.startswith("no lesson "):
            raise
        deleted_in, id, path = gone
    edits = [asdict(edit) for edit in history.log(vault, id, path)]
    return {"id": id, "path": path, "deleted_in": deleted_in, "edits": edits}


@command
def sync(vault: Vault, caller: Caller) -> dict[str, Any]:
    """Fetch, rebase or merge, push, and bring the index up to date: `remote.SyncResult`, `lessons`."""
    ownership.check(vault.index_dir)
    clones.update(vault, caller.index, caller.note)
    result = remote.sync(vault)
    caller.index(vault, or_stale=True)  # a search right after this shows who wrote what came
    return {**asdict(result), "lessons": vault.open_index().lessons}


@command
def vaults(vault: Vault, caller: Caller, update: bool = False, accept: bool = False) -> Any:
    """List the vaults that a prompt searches: `clones.listed`.

    `accept` takes what the vault proposes; it and `update` fetch and index what is above.
    """
    if accept:
        above.accept(vault)
    if accept or update:
        return clones.update(vault, caller.index, caller.note)
    return clones.listed(vault)


def _findings(
    vault: Vault, caller: Caller, candidates: Sequence[Candidate], *, staged: bool
) -> list[Finding]:
    """Check what the files say and, as far as there is an index, compare them with it."""
    findings: list[Finding] = []
    notes: list[str] = []
    comparing = True
    progress = caller.progress_of("checking lessons")
    seconds = pattern.ALL_SECONDS if staged else math.inf
    for start in range(0, len(candidates), FILES_AT_ONCE):
        batch = candidates[start : start + FILES_AT_ONCE]
        categories = list(vault.config.taxonomy)
        try:
            if comparing:
                # a commit does not fetch the model of 90 MB
                asked = api.search.compare(paths=[each.path for each in batch if each.is_lesson])
                answer = caller.ask(asked, fetch=not staged, note=notes.append)
                findings += answer.findings
                categories += answer.categories
        except VaultError as error:
            comparing = False
            caller.note(f"warning: duplicates and prompts were not checked: {error.message}")
        for candidate in batch:
            if seconds <= 0:
                why = f"the commit takes more than {pattern.ALL_SECONDS:.0f} s to check"
                findings.append(check.not_checked(candidate.shown, why))
                continue
            began = time.process_time()
            limit = min(seconds, pattern.RULE_SECONDS)
            said = check.of_text(candidate, categories, limit)
            findings += check.with_command(candidate, said, vault.config.home)
            seconds -= time.process_time() - began
            if candidate.is_lesson and not candidate.as_on_disk:
                about = "duplicates and prompts are those of the file on disk"
                caller.note(f"note: {candidate.shown}: {about}")
        progress(start + len(batch), len(candidates))
    reported = {f"{finding.path}:{finding.line}: {finding.message}" for finding in findings}
    for line in dict.fromkeys(notes):  # the same ones come with each batch
        if line.removeprefix("warning: ") not in reported:
            caller.note(line)
    return sorted(findings)


def _of_built_skills(caller: Caller, candidates: Sequence[Candidate]) -> Iterator[Finding]:
    """Yield which skills among the files are behind the lessons that they were built from."""
    paths = {each.shown for each in candidates if render.MARK in each.data}
    if not paths:
        return
    try:
        behind = caller.ask(api.skill.compare())
    except VaultError as error:
        caller.note(f"warning: skills were not compared with their lessons: {error.message}")
        return
    yield from (finding for finding in behind if finding.path in paths)
