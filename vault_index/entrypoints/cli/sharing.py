"""`lessons check`, `sync`, `merge-driver`: what goes to others, and what comes from them."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from vault_index.entrypoints.cli import ready
from vault_index.errors import VaultError

if TYPE_CHECKING:
    from vault_index.check import Candidate, Finding

_AT_ONCE = 50  # files in one question


@click.command(epilog="Example: lessons check --staged")
@click.argument("paths", nargs=-1, type=click.Path(exists=True, path_type=Path))
@click.option("--staged", is_flag=True, help="What the next commit adds or changes.")
@click.option("--all", "everything", is_flag=True, help="The whole vault (the default).")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def check(
    named: str | None, paths: tuple[Path, ...], staged: bool, everything: bool, as_json: bool
) -> None:
    """Check lessons: their shape, secrets, prompt injection, near-duplicates, own prompts.

    PATHS are lesson files or folders of them. Ends with 1 if there are errors; warnings are told.
    """
    from dataclasses import replace

    from vault_index import check as checking
    from vault_index.vault import printable

    if sum((bool(paths), staged, everything)) > 1:
        raise click.UsageError("give PATHS, --staged or --all: one of them")
    vault = ready.open_vault(named)
    if staged:
        # git stages names that the vault passes over, because they are not UTF-8
        candidates = [replace(one, path=printable(one.path)) for one in checking.staged(vault)]
    elif paths:
        candidates = checking.named(vault, [os.path.abspath(path) for path in paths])  # noqa: PTH100
    else:
        candidates = checking.everything(vault)
    # a commit does not fetch 90 MB
    found = _findings(named, candidates, vault.config.taxonomy, fetch=not staged)
    errors = sum(one.severity == checking.ERROR for one in found)
    if as_json:
        click.echo(json.dumps([one.as_json() for one in found], indent=2, ensure_ascii=False))
    else:
        for one in found:
            click.echo(one)
        if found or not staged:
            counts = f"{_count(errors, 'error')}, {_count(len(found) - errors, 'warning')}"
            click.echo(f"{_count(len(candidates), 'file')} checked: {counts}", err=True)
    if errors and staged:
        ready.note("not committed; mend it, or commit without the check: git commit --no-verify")
    if errors:
        raise SystemExit(1)


def _findings(
    named: str | None, candidates: list[Candidate], taxonomy: Sequence[str], *, fetch: bool
) -> list[Finding]:
    """Check what the files say and, as far as there is an index, how they stand in it."""
    from vault_index import check as checking

    found: list[Finding] = []
    asking = True
    with ready.progress("checking lessons") as show:
        for start in range(0, len(candidates), _AT_ONCE):
            some = candidates[start : start + _AT_ONCE]
            known = list(taxonomy)
            try:
                paths = [one.path for one in some]
                answer = ready.ask(named, "check", fetch=fetch, paths=paths) if asking else {}
                found += [checking.Finding(**one) for one in answer.get("findings", [])]
                known += answer.get("categories", [])
            except VaultError as error:
                asking = False
                ready.note(f"warning: duplicates and prompts were not checked: {error.message}")
            for one in some:
                found += checking.of_text(one, known)
                if not one.as_on_disk:
                    about = "duplicates and prompts are those of the file on disk"
                    ready.note(f"note: lessons/{one.path}: {about}")
            show(start + len(some), len(candidates))
    return sorted(found)


@click.command(epilog="Example: lessons sync")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def sync(named: str | None, as_json: bool) -> None:
    """Fetch what others pushed, put your commits on top, reindex, push.

    Nothing is forced, a conflict changes nothing here, and what is not committed stays as it is.
    """
    from dataclasses import asdict

    from vault_index import share

    vault = ready.open_vault(named)
    done = share.sync(vault)
    lessons = len(ready.ask(named, "list", category=None)["entries"])
    if as_json:
        click.echo(json.dumps({**asdict(done), "lessons": lessons}, indent=2))
        return
    click.echo(f"fetched {_count(done.fetched, 'commit')} of {done.remote}")
    if done.rebased:
        click.echo(f"put {_count(done.rebased, 'commit')} of yours on top")
    if done.dropped:
        click.echo(f"dropped {_count(done.dropped, 'commit')} that {done.remote} took back")
    click.echo(f"indexed {_count(lessons, 'lesson')}")
    click.echo(f"pushed {_count(done.pushed, 'commit')}" if done.pushed else "nothing to push")
    if done.uncommitted:
        click.echo(f"{_count(done.uncommitted, 'changed file')} not committed, so only yours")


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


@click.command("merge-driver", hidden=True, epilog="Example: lessons merge-driver %O %A %B")
@click.argument("base", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("ours", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("theirs", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def merge_driver(base: Path, ours: Path, theirs: Path) -> None:
    """Merge a lesson file for git, which calls this: the result goes into OURS; 1 for a conflict."""
    import subprocess

    from vault_index import merge

    try:
        merged = merge.files(base.read_bytes(), ours.read_bytes(), theirs.read_bytes())
    except Exception as error:  # noqa: BLE001  # git would take "ours" as it is for the merge
        ready.note(f"warning: left to git's own merge: {type(error).__name__}: {error}")
        merged = None
    if merged is None:  # git's own way
        words = ["git", "merge-file", "-L", "ours", "-L", "base", "-L", "theirs"]
        raise SystemExit(min(1, abs(subprocess.call([*words, ours, base, theirs]))))
    ours.write_bytes(merged.data)
    if merged.conflicts:
        raise SystemExit(1)
