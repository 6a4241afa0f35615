"""`lessons mv`."""

from __future__ import annotations

import click

from vault_index.entrypoints.cli import asking, completion, output
from vault_index.entrypoints.cli.options import closing, json_option


@click.command("mv", epilog="Example: lessons mv devops/ci-cd devops/pipelines --write")
@click.argument("old", shell_complete=completion.categories)
@click.argument("new", shell_complete=completion.categories)
@click.option("--write", is_flag=True, help="Do it; without, only show what would be done.")
@json_option
@click.pass_obj
def command(named: str | None, old: str, new: str, write: bool, as_json: bool) -> None:
    """Rename the category OLD to NEW in all files in one go.

    Categories below it move along. Folders of that name move, what frontmatter declares is rewritten,
    nothing else in a file is touched. If one file cannot be changed, none is.
    """
    renamed = asking.ask(named, "rename", {"old": old, "new": new, "write": write})
    if as_json:
        output.json({key: renamed[key] for key in ("changes", "skipped", "written")})
        return
    for change in renamed["changes"]:
        categories = f"  [{', '.join(change['categories'])}]" if change["categories"] else ""
        path, to = change["path"], change["to"]
        output.row((f"{path} -> {to}" if to != path else path) + categories)
    for reason in renamed["skipped"]:
        asking.note(f"warning: {reason}: left as it is")
    if renamed["in_settings"]:
        name = renamed["in_settings"]
        asking.note(f"note: lessons/vault.toml names {name}, too: change it there by hand")
    closing(len(renamed["changes"]), "file", "changed" if write else "", write)
