"""`lessons ask`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import click

from vault_index.entrypoints.cli import asking, completion, output
from vault_index.entrypoints.cli.output import json_option

TEXT_INDENT = 4


@click.command("ask", epilog='Example: lessons ask "how do we roll back a staging deploy?"')
@click.argument("question", nargs=-1, required=True)
@click.option(
    "--session", metavar="NAME", default="", help="Go on with the conversation of a name."
)
@click.option(
    *("--in", "document"),
    metavar="NAME",
    default="",
    help="Only from this document or category, by name.",
)
@click.option(
    *("-c", "--category"),
    default="",
    help="Only from lessons in or below it.",
    shell_complete=completion.categories,
)
@click.option("--model", default="", help="Who answers, in place of the one in your settings.")
@click.option("--no-stream", is_flag=True, help="Print the answer when it is complete.")
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    question: tuple[str, ...],
    session: str,
    document: str,
    category: str,
    model: str,
    no_stream: bool,
    as_json: bool,
) -> None:
    """Answer QUESTION from the vault, with sources.

    The model in your settings ([ask] model) searches the vault once and cites what it used; without
    one you get the passages that answer best. At a terminal the answer is printed as it is written.
    The exit status is 1 where a model did not answer, or not to its end.
    """
    values = {"query": " ".join(question), "session_name": session, "document": document}
    values |= {"category": category, "model": model}
    writer = _Writer(is_live=sys.stdout.isatty() and not (no_stream or as_json))
    try:
        answer = asking.ask(ctx.obj, "ask", values, on_event=writer.take)
    finally:
        writer.end_line()
    if as_json:
        output.json(answer)
    else:
        if answer["answer"] and not writer.has_written:
            output.text(answer["answer"].rstrip())
        _show_sources(answer)
    if answer["trouble"]:
        asking.note(f"warning: {answer['trouble']}")
    if answer["hint"]:
        asking.note(f"Try: {answer['hint']}")
    if answer["trouble"]:
        ctx.exit(1)


class _Writer:
    """Prints the pieces of an answer as they come, where they are wanted at once."""

    def __init__(self, *, is_live: bool) -> None:
        self.has_written = False
        self._is_live = is_live
        self._is_line_open = False

    def take(self, event: Mapping[str, Any]) -> None:
        """Take a part of the answer."""
        if self._is_live and event["event"] == "piece":
            output.piece(event["text"])
            self.has_written = True
            self._is_line_open = not event["text"].endswith("\n")

    def end_line(self) -> None:
        """End the line in which the last piece ended."""
        if self._is_line_open:
            output.say()


def _show_sources(answer: Mapping[str, Any]) -> None:
    """Print what an answer rests on; without an answer, the passages in full."""
    in_full = not answer["sources"] and answer["status"] in ("passages", "failed")
    shown = answer["passages"] if in_full else answer["sources"]
    is_apart = bool(answer["answer"])
    for passage in shown:
        if is_apart:
            output.say()
        _passage(passage, in_full=in_full)
        is_apart = in_full


def _passage(passage: Mapping[str, Any], *, in_full: bool) -> None:
    about = [f" ({passage['section']})"] if passage["section"] else []
    output.say(output.styled(f"[{passage['number']}] {passage['title']}", bold=True), *about)
    signed = ", ".join(filter(None, [passage["author"], passage["date"][:10]]))
    line = f":{passage['line']}" if passage["line"] else ""
    place = f"{passage['path']}{line}" if passage["path"] else f"journal {passage['id']}"
    output.say(" " * TEXT_INDENT, " · ".join(filter(None, [place, signed])), indent=TEXT_INDENT)
    if passage["link"]:
        output.say(" " * TEXT_INDENT, passage["link"])
    if in_full:
        for parts in _lines(passage["text"], passage["best"]):
            indent = " " * TEXT_INDENT if any(parts) else ""
            output.say(indent, *parts, indent=TEXT_INDENT)


def _lines(text: str, best: list[str]) -> list[list[object]]:
    """Return the lines of a passage as parts, the sentences that answer set off."""
    from vault_index.ask import citations  # with the expressions it needs, 5 ms of each command

    has_bold = sys.stdout.isatty() and output.color() is not False
    lines: list[list[object]] = [[]]
    for run, is_best in citations.runs(text, best):
        first, *rest = run.split("\n")
        for number, part in enumerate([first, *rest]):
            if number:
                lines.append([])
            shown: object = part
            if is_best and part.strip():
                shown = output.styled(part, bold=True) if has_bold else f"**{part}**"
            lines[-1].append(shown)
    return lines
