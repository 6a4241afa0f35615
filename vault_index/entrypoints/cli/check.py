"""`lessons check`."""

from __future__ import annotations

import os
from pathlib import Path

import click

from vault_index.entrypoints.cli import asking, output
from vault_index.entrypoints.cli.options import count
from vault_index.errors import VaultError


@click.command("check", epilog="Example: lessons check --staged")
@click.argument("paths", nargs=-1, type=click.Path(exists=True, path_type=Path))
@click.option("--staged", is_flag=True, help="What the next commit adds or changes.")
@click.option("--all", "everything", is_flag=True, help="The whole vault (the default).")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--error-status", default=1, hidden=True, help="The exit status for what is wrong.")
@click.pass_obj
def command(
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
        output.say(f"Error: {error.message}", err=True)
        raise SystemExit(error_status) from None
    if has_errors:
        raise SystemExit(error_status)


def _check(named: str | None, paths: tuple[Path, ...], *, staged: bool, as_json: bool) -> bool:
    """Check and print; whether there are errors."""
    places = [os.path.abspath(path) for path in paths]  # noqa: PTH100  # Path.absolute keeps `..`
    checked = asking.ask(named, "check", {"paths": places, "staged": staged})
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
