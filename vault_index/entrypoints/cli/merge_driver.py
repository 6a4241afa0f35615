"""`lessons merge-driver`: what git runs to merge two versions of a lesson file."""

from __future__ import annotations

from pathlib import Path

import click

from vault_index.entrypoints.cli import asking
from vault_index.errors import VaultError

CANNOT_MERGE = 255  # git 2.42 then stops the merge; older ones leave a conflict with "ours" only


@click.command("merge-driver", hidden=True, epilog="Example: lessons merge-driver %O %A %B")
@click.argument("base", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("ours", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("theirs", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--marker-size", default=7, help="How many characters a conflict marker has.")
@click.option("--clean-status", default=0, help="The exit status for a merge without conflict.")
@click.option("--conflict-status", default=1, help="The exit status for one with.")
def command(
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
