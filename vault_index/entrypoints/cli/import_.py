"""`lessons import`."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import click

from vault_index.entrypoints.cli import asking, completion, output

SHOWN = 200  # items of a long table, on a terminal


@click.command("import", epilog="Example: lessons import CLAUDE.md --write")
@click.argument("source", metavar="FILE|DIR|-")
@click.option(
    "--as",
    "format",
    type=click.Choice(["markdown", "jsonl", "bullets", "course", "obsidian"]),
    help="The format; without: guessed.",
)
@click.option(
    *("-c", "--category"),
    default="",
    help="For lessons that name none; without: inbox.",
    shell_complete=completion.categories,
)
@click.option("--write", is_flag=True, help="Do it; without, only show what would be done.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def command(
    ctx: click.Context, source: str, format: str | None, category: str, write: bool, as_json: bool
) -> None:
    """Bring in lessons from files, after showing what goes where.

    The source is a file, a folder or stdin: markdown with or without frontmatter and `## Lesson:`
    sections, JSON lines, a CLAUDE.md or AGENTS.md of bullets, an Obsidian folder, a course
    (`Course Title:`, `Lesson 1:`). Nothing is overwritten; near-duplicates and what `check` calls an
    error are left out; a second run changes nothing.
    """
    from vault_index.errors import VaultError

    path = os.path.expanduser(source)  # noqa: PTH111  # Path's raises for ~nobody
    if source != "-" and not os.path.exists(path):  # noqa: PTH110  # and Path's for long names
        raise VaultError(f"{source} is not there", "name a file, a folder, or - for stdin")
    values: dict[str, Any] = {"format": format or "", "category": category, "write": write}
    if source == "-":
        values["text"] = sys.stdin.buffer.read().decode("utf-8", "surrogateescape")
    else:
        values["source"] = path
    answer = asking.ask(ctx.obj, "import", values)
    if as_json:
        output.json(answer)
    else:
        _as_table(answer["items"], write)
    for name in answer["empty"]:
        asking.note(f"note: {name}: nothing to import (no text, or a template)")
    for problem in answer["problems"]:
        asking.note(f"error: {problem}")
    if answer["problems"]:
        ctx.exit(1)


def _as_table(items: Sequence[Mapping[str, Any]], written: bool) -> None:
    shown = items[:SHOWN] if sys.stdout.isatty() else items
    width = min(60, max((len(item["path"]) for item in shown), default=0))
    for item in shown:
        output.row(_row(item, width))
    if len(shown) < len(items):
        output.say(f"... and {len(items) - len(shown)} more")
    counts = Counter(item["verdict"] for item in items)
    words = {"write": "written" if written else "to write", "same": "there already"}
    words |= {"taken": "whose name is taken", "duplicate": "near-duplicates"}
    words |= {"secret": "with a secret", "refused": "with an error"}
    summary = ", ".join(f"{counts[key]} {word}" for key, word in words.items() if counts[key])
    rest = "" if written or not counts["write"] else "; nothing is written without --write"
    output.say(f"{summary or 'no lessons'}{rest}")


def _row(item: Mapping[str, Any], width: int) -> str | output.Styled:
    about = " ".join((item["why"] or item["title"]).split())
    line = f"{item['verdict']:<10}{item['path']:<{width}}  {about}"
    return line if item["verdict"] == "write" else output.styled(line, dim=True)
