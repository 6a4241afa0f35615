"""`lessons add`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from vault_index import client
from vault_index.entrypoints.cli import asking, completion, output
from vault_index.entrypoints.cli.options import from_here
from vault_index.errors import VaultError


@click.command(
    "add", epilog='Example: echo "Raise the heap." | lessons add --title "Heap" -c devops/ci-cd -'
)
@click.argument("source", required=False, metavar="[FILE|-]")
@click.option(
    "--title", default="", help="The title; without FILE the text comes from --text or stdin."
)
@click.option("--text", default="", help="The text, instead of a file.")
@click.option(
    *("-c", "--category", "categories"),
    multiple=True,
    help="Where it belongs; repeatable.",
    shell_complete=completion.categories,
)
@click.option(
    "--tag", "tags", multiple=True, help="A tag; repeatable.", shell_complete=completion.tags
)
@click.option(
    *("--type", "type_"),
    default="",
    help="code_pattern, bug_fix, architecture, project_rule.",
    shell_complete=completion.types,
)
@click.pass_obj
def command(
    named: str | None,
    source: str | None,
    title: str,
    text: str,
    categories: tuple[str, ...],
    tags: tuple[str, ...],
    type_: str,
) -> None:
    """Put a lesson into the vault and print its path.

    FILE is markdown; `-` reads stdin.
    """
    vault = client.open_vault(named)
    values = {"text": _source(source, title, text).decode("utf-8", "surrogateescape")}
    options = {"title": title, "categories": categories, "tags": tags, "type": type_}
    added = asking.ask(named, "add", {**values, **options})
    output.say(from_here(Path(added["path"]), vault.root))


def _source(source: str | None, title: str, text: str) -> bytes:
    if text:
        return text.encode()
    if source and source != "-":
        try:
            return Path(source).read_bytes()
        except OSError as error:
            raise VaultError(f"{source} cannot be read: {error.strerror}") from None
    if source is None and (not title or sys.stdin.isatty()):
        raise click.UsageError("name a FILE, `-` for stdin, or pass --title and --text")
    return sys.stdin.buffer.read()
