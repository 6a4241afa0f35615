"""`lessons learn`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from vault_index.entrypoints.cli import asking, output
from vault_index.entrypoints.cli.output import count, json_option

AGAIN = "learned already; `lessons learn --again` does it once more"


@click.command("learn", epilog="Example: lessons learn --session last --why --dry-run")
@click.option("--session", metavar="ID", help="A session: its id or its beginning. [default: last]")
@click.option("--commit", metavar="REV|A..B", help="Commits.")
@click.option("--files", multiple=True, metavar="PATH", help="A file as it is; several times.")
@click.option("--why", is_flag=True, help="Print what makes it worth it, and what was dropped.")
@click.option("--again", is_flag=True, help="Also if the same was learned before.")
@click.option("--dry-run", is_flag=True, help="Only print what would be sent, and to whom.")
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    session: str | None,
    commit: str | None,
    files: tuple[str, ...],
    why: bool,
    again: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Propose lessons from a session, commits or files.

    Rules make drafts, or the model in your settings ([learn] model) analyses what happened. Nothing is
    a lesson before you accept it: see `lessons review`.
    """
    if sum(map(bool, (session, commit, files))) > 1:
        raise click.UsageError("choose one of --session, --commit and --files")
    values: dict[str, Any] = {"scope": "session", "target": session or "last"}
    if commit:
        values = {"scope": "commit", "target": commit}
    elif files:
        values = {"scope": "files", "target": [str(Path(file).absolute()) for file in files]}
    values |= {"folder": str(Path.cwd()), "force": again, "dry_run": dry_run}
    try:
        answer = asking.ask(ctx.obj, "learn", values)
    except KeyboardInterrupt:
        asking.note("stopped; what was proposed until now stays")
        raise
    if as_json:
        output.json(answer)
    else:
        _show(answer, why=why, dry_run=dry_run)
    if answer["trouble"]:
        asking.note(f"Error: {answer['trouble']}")
        if answer["hint"]:
            asking.note(f"Try: {answer['hint']}")
        ctx.exit(1)


def _show(answer: dict[str, Any], *, why: bool, dry_run: bool) -> None:
    if why or dry_run:
        _addends(answer)
    if dry_run:
        _plan(answer)
        return
    for each in answer["proposals"]:
        kind = f" (changes {each['changes']})" if each["changes"] else " (draft)" * each["is_draft"]
        output.row(output.styled(each["id"], bold=True), f"  {each['title']}{kind}")
        for id, title, likeness in [] if each["changes"] else each["near"]:
            output.say(f"  {likeness:.0%} like {id} ({title})", indent=2)
    for each in answer["dropped"] if why else ():
        output.say(f"dropped: {each['title']}: {each['reason']}", indent=2)
    if not answer["trouble"]:
        output.say(_closing(answer))


def _closing(answer: dict[str, Any]) -> str:
    """Return what came of it, in a line."""
    made, dropped = len(answer["proposals"]), len(answer["dropped"])
    entries = "1 entry" if dropped == 1 else f"{dropped} entries"
    left = f"; {entries} dropped" if dropped else ""
    if made:
        return f"{count(made, 'proposal')} to review: `lessons review`{left}{_took(answer)}"
    if answer["status"] == "learned already":
        return AGAIN
    if answer["status"] == "running already":
        return "another process learns the same right now"
    return f"nothing was worth a proposal{left}{_took(answer)}"


def _took(answer: dict[str, Any]) -> str:
    usage = answer["usage"]
    if not usage["calls"]:
        return ""
    tokens = usage["input_tokens"] + usage["output_tokens"]
    cost = "" if usage["cost"] is None else f", {usage['cost']:.3f} dollars"
    return f" ({tokens:,} tokens, {usage['seconds']:.1f} s{cost})"


def _addends(answer: dict[str, Any]) -> None:
    significance = answer["significance"]
    for addend in significance["addends"]:
        output.say(f"+{addend['points']}  {addend['name']}: {addend['why']}", indent=4)
    enough = "worth it" if significance["points"] >= answer["threshold"] else "not worth it"
    output.say(f"{significance['points']} points of {answer['threshold']}: {enough} by itself")


def _plan(answer: dict[str, Any]) -> None:
    for stage in answer["plan"]["stages"]:
        about = f"{stage['chars']:,} characters, about {stage['tokens']:,} tokens"
        output.say(f"{stage['stage']:<9}  {about}", indent=11)
    output.say(answer["sends"])
