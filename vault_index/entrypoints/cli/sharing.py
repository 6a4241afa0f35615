"""The commands that share a vault: sync, check, and the merge driver."""

from __future__ import annotations

import os
from pathlib import Path

import click

from vault_index import api, client
from vault_index.entrypoints.cli import asking, completion, options, output
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
@click.argument("names", metavar="[PATH|ID]...", nargs=-1, shell_complete=completion.ids)
@click.option("--staged", is_flag=True, help="What the next commit adds or changes.")
@click.option("--all", "everything", is_flag=True, help="The whole vault (the default).")
@click.option("--stale", is_flag=True, help="List lessons that only cost or lost their subject.")
@click.option("--confirm", is_flag=True, help="Note in the lessons ID that they hold.")
@options.as_json
@click.option("--error-status", default=1, hidden=True, help="The exit status for what is wrong.")
@click.pass_obj
@output.paged()
def check_command(
    named: str | None,
    names: tuple[str, ...],
    staged: bool,
    everything: bool,
    stale: bool,
    confirm: bool,
    as_json: bool,
    error_status: int,
) -> None:
    """Check frontmatter, secrets, prompt injection, duplicates.

    Also conflict markers, and prompts of a lesson's own that do not find it. PATHS are lesson or
    SKILL.md files, or folders of them. Exits with status 1 on errors.

    --stale lists lessons that agents contradict or never take, or whose subject is gone: a file, a name
    of the code or a version that they cite. --confirm writes `confirmed: DATE` into the frontmatter, of
    a section into that of its whole file; --stale then compares with the repository of that day. A
    lesson that hooks hold back, because it reads like orders to an agent, they give again: to your
    agents, for this text.
    """
    if sum((bool(names) and not confirm, staged, everything, stale, confirm)) > 1:
        raise click.UsageError("choose one of PATHS, --staged, --all, --stale and --confirm")
    if stale:
        _list_stale(named, as_json)
        return
    if confirm:
        _confirm(named, names, as_json)
        return
    for name in names:
        if not os.path.exists(name):  # noqa: PTH110  # Path's raises for long names
            raise click.UsageError(f"Path {name!r} does not exist.")
    try:
        has_errors = _check(named, names, staged=staged, as_json=as_json)
    except VaultError as error:
        if error_status == 1:
            raise
        # the hook takes 1 for a program that does not start, as Python ends with it, too
        output.error(error.message)
        raise SystemExit(error_status) from None
    if has_errors:
        raise SystemExit(error_status)


def _check(named: str | None, paths: tuple[str, ...], *, staged: bool, as_json: bool) -> bool:
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


def _list_stale(named: str | None, as_json: bool) -> None:
    answer = asking.ask(named, api.injection.stale_lessons())
    if as_json:
        output.json(answer)
        return
    if not answer["reasons"]:
        output.say("no lesson needs another look")
    for reason in answer["reasons"]:
        output.say(f"{reason['path']}: {reason['why']}")
        output.say(f"  {reason['do']}")
    if answer["reasons"]:
        asking.note(
            f"{count(answer['lessons'], 'lesson')}; if it still holds: lessons check --confirm ID"
        )
    if answer["waiting"]:
        asking.note(f"{count(answer['waiting'], 'session')} not judged yet: run it again")


def _confirm(named: str | None, lesson_ids: tuple[str, ...], as_json: bool) -> None:
    if not lesson_ids:
        raise click.UsageError("name the lessons: lessons check --confirm ID")
    names = [client.name_in_vault(named, lesson_id) for lesson_id in lesson_ids]
    answer = asking.ask(named, api.injection.confirm(names=names))
    if as_json:
        output.json(answer)
    else:
        for lesson in answer["confirmed"]:
            said = "confirmed" if lesson["changed"] else "was confirmed today already:"
            output.say(f"{said} {lesson['id']}")
            if lesson["released"]:
                output.say(f"agents get it from now on: {lesson['path']}")
    if answer["failed"]:
        hint = "correct these files, then confirm them again"
        raise VaultError("; ".join(answer["failed"]), hint)


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
