"""`lessons check`, `sync`, `merge-driver`: what goes to others, and what comes from them."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vault_index.entrypoints.cli import output, ready
from vault_index.errors import VaultError

if TYPE_CHECKING:
    from vault_index.check import Candidate, Finding

_AT_ONCE = 50  # files in one question
CANNOT_MERGE = 255  # git 2.42 then stops the merge; older ones leave a conflict with "ours" only


@click.command(epilog="Example: lessons check --staged")
@click.argument("paths", nargs=-1, type=click.Path(exists=True, path_type=Path))
@click.option("--staged", is_flag=True, help="What the next commit adds or changes.")
@click.option("--all", "everything", is_flag=True, help="The whole vault (the default).")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--error-status", default=1, hidden=True, help="The exit status for what is wrong.")
@click.pass_obj
def check(
    named: str | None,
    paths: tuple[Path, ...],
    staged: bool,
    everything: bool,
    as_json: bool,
    error_status: int,
) -> None:
    """Check lessons: their shape, secrets, prompt injection, conflict markers, duplicates, own prompts.

    PATHS are lesson or SKILL.md files, or folders of them. Exits with status 1 on errors.
    """
    if sum((bool(paths), staged, everything)) > 1:
        raise click.UsageError("give PATHS, --staged or --all: one of them")
    try:
        has_errors = _check(named, paths, staged=staged, as_json=as_json)
    except VaultError as error:
        if error_status == 1:
            raise
        # the hook takes 1 for a program that does not start, as Python ends with it, too
        output.say(f"Error: {error.message}", err=True)
        raise SystemExit(error_status) from None
    if has_errors:
        raise SystemExit(error_status)


def _check(named: str | None, paths: tuple[Path, ...], *, staged: bool, as_json: bool) -> bool:
    """Check and print; whether there are errors."""
    from dataclasses import replace

    from vault_index import check as checking
    from vault_index.vault import printable

    vault = ready.open_vault(named)
    if staged:
        # git stages names that the vault passes over, because they are not UTF-8
        candidates = [replace(one, path=printable(one.path)) for one in checking.staged(vault)]
    elif paths:
        candidates = checking.named(vault, [os.path.abspath(path) for path in paths])  # noqa: PTH100
    else:
        candidates = checking.everything(vault)
    # a commit does not fetch the model of 90 MB
    found = _findings(named, candidates, vault.config.taxonomy, staged=staged)
    errors = sum(one.severity == checking.ERROR for one in found)
    if as_json:
        output.json([one.as_json() for one in found])
    else:
        for one in found:
            output.say(one)
        if found or not staged:
            counts = f"{_count(errors, 'error')}, {_count(len(found) - errors, 'warning')}"
            output.say(f"{_count(len(candidates), 'file')} checked: {counts}", err=True)
    if errors and staged:
        ready.note("not committed; fix it, or commit without the check: git commit --no-verify")
    return errors > 0


def _findings(
    named: str | None, candidates: list[Candidate], taxonomy: Sequence[str], *, staged: bool
) -> list[Finding]:
    """Check what the files say and, as far as there is an index, how they stand in it.

    What is staged has a limit of processor time: a commit must end.
    """
    from vault_index import check as checking
    from vault_index.check import deadline

    found: list[Finding] = []
    notes: list[str] = []
    asking = True
    left = deadline.ALL_SECONDS if staged else math.inf
    with ready.progress("checking lessons") as show:
        for start in range(0, len(candidates), _AT_ONCE):
            some = candidates[start : start + _AT_ONCE]
            known = list(taxonomy)
            try:
                paths = [one.path for one in some if one.is_lesson]
                answer: dict[str, Any] = {}
                if asking:
                    say = notes.append
                    answer = ready.ask(named, "check", fetch=not staged, say=say, paths=paths)
                found += [checking.Finding(**one) for one in answer.get("findings", [])]
                known += answer.get("categories", [])
            except VaultError as error:
                asking = False
                ready.note(f"warning: duplicates and prompts were not checked: {error.message}")
            for one in some:
                if left <= 0:
                    why = f"the commit takes more than {deadline.ALL_SECONDS:.0f} s to check"
                    found.append(checking.not_checked(one.shown, why))
                    continue
                began = time.process_time()
                found += checking.of_text(one, known, min(left, deadline.RULE_SECONDS))
                left -= time.process_time() - began
                if one.is_lesson and not one.as_on_disk:
                    about = "duplicates and prompts are those of the file on disk"
                    ready.note(f"note: {one.shown}: {about}")
            show(start + len(some), len(candidates))
    findings = {f"{one.path}:{one.line}: {one.message}" for one in found}
    for said in dict.fromkeys(notes):  # once for each batch
        if said.removeprefix("warning: ") not in findings:
            ready.note(said)
    return sorted(found)


@click.command(epilog="Example: lessons sync")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def sync(named: str | None, as_json: bool) -> None:
    """Fetch what others pushed, put your commits on top, reindex, push.

    Nothing is forced, a conflict changes nothing here, and what is not committed stays as it is.
    """
    from dataclasses import asdict

    from vault_index import ownership, share

    vault = ready.open_vault(named)
    ownership.check(vault.index_folder)
    done = share.sync(vault)
    # settled: who wrote what came is told by git, and a search right after this shows it
    lessons = len(ready.ask(named, "list", settled=True, indexed=True, category=None)["entries"])
    if as_json:
        output.json({**asdict(done), "lessons": lessons})
        return
    output.say(f"fetched {_count(done.fetched, 'commit')} of {done.remote}")
    if done.rebased:
        output.say(f"put {_count(done.rebased, 'commit')} of yours on top")
    if done.merged:
        output.say(f"merged {_count(done.merged, 'commit')} of yours, as a rebase keeps less")
    if done.dropped:
        output.say(f"dropped {_count(done.dropped, 'commit')} that {done.remote} took back")
    output.say(f"indexed {_count(lessons, 'lesson')}")
    output.say(f"pushed {_count(done.pushed, 'commit')}" if done.pushed else "nothing to push")
    if done.uncommitted:
        output.say(f"{_count(done.uncommitted, 'changed file')} not committed, so only yours")


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


@click.command("merge-driver", hidden=True, epilog="Example: lessons merge-driver %O %A %B")
@click.argument("base", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("ours", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("theirs", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--marker-size", default=7, help="How many characters a conflict marker has.")
@click.option("--clean-status", default=0, help="The exit status for a merge without conflict.")
@click.option("--conflict-status", default=1, help="The exit status for one with.")
def merge_driver(
    base: Path,
    ours: Path,
    theirs: Path,
    marker_size: int,
    clean_status: int,
    conflict_status: int,
) -> None:
    """Merge a lesson file for git, which calls this: the result goes into OURS; 1 for a conflict."""
    import subprocess

    from vault_index import files, merge

    before = ours.read_bytes()
    try:
        merged = merge.files(base.read_bytes(), before, theirs.read_bytes())
    except Exception as error:  # noqa: BLE001  # git would take "ours" as it is for the merge
        ready.note(f"warning: left to git's own merge: {type(error).__name__}: {error}")
        merged = None
    if merged is None:  # git's own way
        words = ["git", "merge-file", f"--marker-size={marker_size}"]
        words += ["-L", "ours", "-L", "base", "-L", "theirs"]
        raise SystemExit(
            clean_status if subprocess.call([*words, ours, base, theirs]) == 0 else conflict_status
        )
    try:
        files.change_file(ours, merged.data, expected=before, within=ours.parent)
    except VaultError as error:
        ready.note(f"error: not merged: {error.message}")
        raise SystemExit(CANNOT_MERGE) from None
    raise SystemExit(conflict_status if merged.conflicts else clean_status)
