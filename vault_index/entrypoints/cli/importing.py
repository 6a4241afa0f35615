"""`lessons import`."""

from __future__ import annotations

import os
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vault_index.entrypoints.cli import completion, output, ready

if TYPE_CHECKING:
    from vault_index.importing import Item, Plan

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
    help="For what says none; without: inbox.",
    shell_complete=completion.categories,
)
@click.option("--write", is_flag=True, help="Do it; without, only show what would be done.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def import_(
    ctx: click.Context, source: str, format: str | None, category: str, write: bool, as_json: bool
) -> None:
    """Bring in lessons from a file, a folder or stdin, after showing what would be written where.

    Markdown with or without frontmatter and `## Lesson:` sections, JSON lines, a CLAUDE.md or
    AGENTS.md of bullets, an Obsidian folder, a course (`Course Title:`, `Lesson 1:`). Nothing is
    overwritten; near-duplicates and what `check` calls an error are left out; a second run changes
    nothing.
    """
    from vault_index import importing
    from vault_index.errors import VaultError

    given = Path(os.path.expanduser(source))  # noqa: PTH111  # which raises for ~nobody
    if source != "-" and not os.path.exists(given):  # noqa: PTH110  # and this for long names
        raise VaultError(f"{source} is not there", "name a file, a folder, or - for stdin")
    vault = ready.open_vault(ctx.obj)
    ready.bring_up_to_date(vault)
    data = sys.stdin.buffer.read() if source == "-" else given
    with ready.progress("comparing lessons") as show:
        planned = importing.plan(vault, data, format=format or "", category=category, progress=show)
    if write:
        with ready.progress("writing lessons") as show:
            importing.carry_out(vault, planned, show)
        ready.bring_up_to_date(vault)
    if as_json:
        _as_json(planned, write)
    else:
        _as_table(planned, write)
    for name in planned.empty:
        ready.note(f"note: {name}: nothing to import (no text, or a template)")
    for problem in planned.problems:
        ready.note(f"error: {problem}")
    if planned.problems:
        ctx.exit(1)


def _as_json(planned: Plan, written: bool) -> None:
    keys = ("source", "line", "path", "title", "verdict", "why")
    items = [{key: getattr(item, key) for key in keys} for item in planned.items]
    answer: dict[str, Any] = {"items": items, "problems": planned.problems}
    answer["empty"] = planned.empty
    answer["written"] = written
    output.json(answer)


def _as_table(planned: Plan, written: bool) -> None:
    from vault_index.importing import WRITE

    shown = planned.items[:SHOWN] if sys.stdout.isatty() else planned.items
    width = min(60, max((len(item.path) for item in shown), default=0))
    for item in shown:
        output.row(_row(item, width))
    if len(shown) < len(planned.items):
        output.say(f"... and {len(planned.items) - len(shown)} more")
    counts = Counter(item.verdict for item in planned.items)
    words = {"write": "written" if written else "to write", "same": "there already"}
    words |= {"taken": "whose name is taken", "duplicate": "near-duplicates"}
    words |= {"secret": "with a secret", "refused": "with an error"}
    said = ", ".join(f"{counts[one]} {word}" for one, word in words.items() if counts[one])
    rest = "" if written or not counts[WRITE] else "; nothing is written without --write"
    output.say(f"{said or 'no lessons'}{rest}")


def _row(item: Item, width: int) -> str | output.Styled:
    told = " ".join((item.why or item.title).split())
    line = f"{item.verdict:<10}{item.path:<{width}}  {told}"
    return line if item.verdict == "write" else output.styled(line, dim=True)
