"""`lessons add`, `list`, `show`, `log`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from vault_index.entrypoints.cli import ready
from vault_index.errors import VaultError


@click.command(
    epilog='Example: echo "Raise the heap." | lessons add --title "Heap" -c devops/ci-cd -'
)
@click.argument("source", required=False, metavar="[FILE|-]")
@click.option(
    "--title", default="", help="The title; without FILE the text comes from --text or stdin."
)
@click.option("--text", default="", help="The text, instead of a file.")
@click.option("-c", "--category", "categories", multiple=True, help="Where it belongs; repeatable.")
@click.option("--tag", "tags", multiple=True, help="A tag; repeatable.")
@click.option(
    "--type", "type_", default="", help="code_pattern, bug_fix, architecture, project_rule."
)
@click.pass_obj
def add(
    named: str | None,
    source: str | None,
    title: str,
    text: str,
    categories: tuple[str, ...],
    tags: tuple[str, ...],
    type_: str,
) -> None:
    """Put a lesson into the vault and print its path. FILE is markdown, `-` reads stdin."""
    from vault_index import add as adding

    vault = ready.open_vault(named)
    data = _source(source, title, text)
    path = adding.write(vault, data, title=title, categories=categories, tags=tags, type=type_)
    click.echo(path.relative_to(vault.root))


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


@click.command("list", epilog="Example: lessons list -c devops --json")
@click.option("-c", "--category", help="Only in or below it.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def list_(named: str | None, category: str | None, as_json: bool) -> None:
    """List the lessons, by id."""
    entries = ready.ask(named, "list", category=category)["entries"]
    if as_json:
        click.echo(json.dumps(entries, ensure_ascii=False, indent=2))
        return
    for entry in entries:
        click.echo(f"{entry['id']}\t{entry['title']}" if not sys.stdout.isatty() else
                   f"{click.style(entry['id'], dim=True)}  {entry['title']}")  # fmt: skip


@click.command(epilog="Example: lessons show devops/ci-cd/node-heap-out-of-memory")
@click.argument("lesson_id", metavar="ID")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def show(named: str | None, lesson_id: str, as_json: bool) -> None:
    """Print one lesson. ID is its id, its path, or the end of either if that is one lesson only."""
    entry = ready.ask(named, "show", name=lesson_id)["entry"]
    if as_json:
        click.echo(json.dumps(entry, ensure_ascii=False, indent=2))
        return
    click.echo(click.style(entry["title"], bold=True))
    by = entry["author"] or "not committed"
    when = entry["updated_at"] or entry["created_at"]
    filed = ", ".join(entry["categories"])
    click.echo(f"[{filed}] {entry['path']} · {by}" + (f", {when[:10]}" if when else ""))
    click.echo(f"\n{entry['text']}")


@click.command(epilog="Example: lessons log devops/ci-cd/node-heap-out-of-memory")
@click.argument("lesson_id", metavar="ID")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def log(named: str | None, lesson_id: str, as_json: bool) -> None:
    """Show who wrote and changed a lesson, when and why: the commits, newest first."""
    from dataclasses import asdict

    from vault_index import history

    vault = ready.open_vault(named)
    entry = ready.ask(named, "show", name=lesson_id)["entry"]
    edits = history.log(vault, entry["id"], entry["path"])
    if as_json:
        click.echo(json.dumps([asdict(one) for one in edits], ensure_ascii=False, indent=2))
        return
    for one in edits:
        commit = click.style(one.commit[:10], dim=True)
        click.echo(f"{commit}  {one.when[:10]}  {one.who}: {one.why}")
    if not edits:
        ready.note(f"{entry['path']} is not committed")
