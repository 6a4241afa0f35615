"""`lessons init`."""

from __future__ import annotations

from pathlib import Path

import click

from vault_index.entrypoints.cli import asking, output, recording


@click.command("init", epilog="Example: lessons init ~/code/team")
@click.argument("path", default=".", type=click.Path(file_okay=False, path_type=Path))
def command(path: Path) -> None:
    """Make a vault in the git repository at PATH, or start one."""
    from vault_index import api

    folder = path.absolute()
    done = api.init(str(folder))
    for key, what in (
        ("repository", "started a git repository"),
        ("vault", "made lessons/vault.toml"),
        ("ignored", f"added {' and '.join(done['ignored'])} to .gitignore"),
        ("hooks", "switched on the git hooks in .githooks"),
        ("upgraded", "brought the git hooks in .githooks up to date: commit them"),
        ("driver", "set up the merge driver for lessons in .gitattributes"),
    ):
        if done[key]:
            output.say(what)
    if done["chain"]:
        asking.note(f"note: {done['chain']}")
    output.say(f"{folder} is a vault")
    recording.offer(folder)
    asking.announce_model()
