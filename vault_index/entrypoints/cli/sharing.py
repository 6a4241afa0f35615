"""The commands that share a vault: sync, check, and the merge driver."""

from __future__ import annotations

import os
from pathlib import Path

import click

from vault_index import api
from vault_index.entrypoints.cli import asking, options, output
from vault_index.entrypoints.words import count
from vault_index.errors import VaultError


@click.command("sync", epilog="Example: lessons sync")
@options.as_json
@click.pass_obj
def sync_command(named: str | None, as_json: bool) -> None:
    """Fetch, put your commits on top, push, reindex.

    Nothing is forced, a conflict changes nothing here, and uncommitted changes stay as they are.
    """
    done = asking.ask(named, api.share.sync())
    if as_json:
        output.json(done)
        return
    output.say(f"fetched {count(done['fetched'], 'commit')} of {done['remote']}")
    if done["rebased"]:
        output.say(f"put {count(done['rebased'], 'commit')} of yours on top")
    if done["merged"]:
        output.say(f"merged {count(done['merged'], 'commit')} of yours, as a rebase keeps less")
    if done["dropped"]:
        output.say(f"dropped {count(done['dropped'], 'commit')} that {done['remote']} took back")
    output.say(f"indexed {count(done['lessons'], 'lesson')}")
    output.say(f"pushed {count(done['pushed'], 'commit')}" if done["pushed"] else "nothing to push")
    if done["uncommitted"]:
        were = "was" if done["uncommitted"] == 1 else "were"
        output.say(f"{count(done['uncommitted'], 'uncommitted file')} {were} not shared")


@click.command("check", epilog="Example: lessons check --staged")
@click.argument("paths", nargs=-1, type=click.Path(exists=True, path_type=Path))
@click.option("--staged", is_flag=True, help="What the next commit adds or changes.")
@click.option("--all", "everything", is_flag=True, help="The whole vault (the default).")
@options.as_json
@click.option("--error-status", default=1, hidden=True, help="The exit status for what is wrong.")
@click.pass_obj
@output.paged()
def check_command(
    named: str | None,
    paths: tuple[Path, ...],
    staged: bool,
    everything: bool,
    as_json: bool,
    error_status: int,
) -> None:
    """Check frontmatter, secrets, prompt injection, duplicates.

    Also conflict markers, and prompts of a lesson's own that do not find it. PATHS are lesson or
    SKILL.md files, or folders of them. Exits with status 1 on errors.
    """
    if sum((bool(paths), staged, everything)) > 1:
        raise click.UsageError("give PATHS, --staged or --all: one of them")
    try:
        has_errors = _check(named, paths, staged=staged, as_json=as_json)
    except VaultError as error:
        if error_status == 1:
            raise
        # the hook takes 1 for a program that does not start, as Python ends with it, too
        output.error(error.message)
        raise SystemExit(error_status) from None
    if has_errors:
        raise SystemExit(error_status)


def _check(named: str | None, paths: tuple[Path, ...], *, staged: bool, as_json: bool) -> bool:
    """Check and print; whether there are errors."""
    places = [os.path.abspath(path) for path in paths]  # noqa: PTH100  # Path.absolute keeps `..`
    checked = asking.ask(named, api.share.check_files(paths=places, staged=staged))
    findings, errors = checked["findings"], checked["errors"]
    if as_json:
        output.json(findings)
    else:
        for line in checked["shown"]:
            output.say(line)
        if findings or not staged:
            counts = f"{count(errors, 'error')}, {count(len(findings) - errors, 'warning')}"
            output.say(f"{count(checked['files'], 'file')} checked: {counts}", err=True)
    if errors and staged:
        asking.note("not committed; fix it, or commit without the check: git commit --no-verify")
    return bool(errors)


# `lessons merge-driver`: what git runs to merge two versions of a lesson file.

CANNOT_MERGE = 255  # git 2.42 then stops the merge; older ones leave a conflict with "ours" only


@click.command("merge-driver", hidden=True, epilog="Example: lessons merge-driver %O %A %B")
@click.argument("base", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("ours", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("theirs", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--marker-size", default=7, help="How many characters a conflict marker has.")
@click.option("--clean-status", default=0, help="The exit status for a merge without conflict.")
@click.option("--conflict-status", default=1, help="The exit status for one with.")
def merge_driver_command(
    base: Path,
    ours: Path,
    theirs: Path,
    marker_size: int,
    clean_status: int,
    conflict_status: int,
) -> None:
    """Merge a lesson file for git, which calls this: the result goes into OURS; 1 for a conflict."""
    import subprocess

    from vault_index import files
    from vault_index.lesson import merge

    before = ours.read_bytes()
    try:
        merged = merge.files(base.read_bytes(), before, theirs.read_bytes())
    except Exception as error:  # noqa: BLE001  # git would take "ours" as it is for the merge
        asking.note(f"warning: left to git's own merge: {type(error).__name__}: {error}")
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
        asking.note(f"error: not merged: {error.message}")
        raise SystemExit(CANNOT_MERGE) from None
    raise SystemExit(conflict_status if merged.conflicts else clean_status)
