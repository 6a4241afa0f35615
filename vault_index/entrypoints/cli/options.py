"""What several commands share: an option, counts, the line that closes a plan."""

from __future__ import annotations

import os
from pathlib import Path

import click

from vault_index import client
from vault_index.entrypoints.cli import output

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def project_of(named: str | None) -> str:
    """Register the skills of the project around the current folder; return the folder."""
    from vault_index.index import skills

    here = Path.cwd()
    skills.register(client.open_vault(named), here)
    return str(here)


def from_here(path: Path, root: Path) -> str:
    """Return a path in the vault from the current folder; an absolute one from outside the vault."""
    base = Path(os.path.realpath(root))
    try:
        here = Path.cwd()
    except OSError:  # it was deleted
        return str(path)
    if here != base and base not in here.parents:
        return str(path)
    return os.path.relpath(base / path.relative_to(root), here)


def count(number: int, noun: str) -> str:
    """Return a number with its noun: `1 file`, `2 files`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def closing(number: int, noun: str, done: str, written: bool) -> None:
    """Print how much was done, or that nothing was written."""
    counted = count(number, noun)
    output.say(f"{counted} {done}" if written else f"{counted}; nothing is written without --write")
