"""The command that answers: ask."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from vault_index import api
from vault_index.entrypoints.cli import context, options, output

if TYPE_CHECKING:
    from vault_index.ask.passages import Passage
    from vault_index.ask.respond import Answer

TEXT_INDENT = 4


@options.command("ask", 'lessons ask "how do we roll back a staging deploy?"')
@click.argument("question", nargs=-1, required=True)
@options.text("--session session_name", "NAME", "Continue the conversation NAME.")
@options.text("--in document", "NAME", "Only from this document or category, by name.")
@options.lesson_number
@options.category("Only from lessons in or below it.")
@click.option("--model", default="", help="Who answers, in place of the one in your settings.")
@options.flag("--no-stream", "Print the answer when it is complete.")
def ask_command(question: tuple[str, ...], no_stream: bool, as_json: bool, **asked: Any) -> None:
    """Answer QUESTION from the vault, with sources.

    The model in your settings ([ask] model) searches the vault and cites what it used; without
    one you get the passages that answer best. At a terminal the answer is printed as it is written.
    The exit status is 1 where a model did not answer, or not to its end.
    """
    command = api.asking.ask(query=" ".join(question), **asked)
    is_live = sys.stdout.isatty() and not (no_stream or as_json)
    pieces: list[str] = []  # that are printed as they come

    def take(event: Mapping[str, Any]) -> None:
        if is_live and event["event"] == "piece":
            output.piece(event["text"])
            pieces.append(event["text"])

    try:
        answer = context.ask(command, event=take)
    finally:
        if pieces and not pieces[-1].endswith("\n"):
            output.say()
    if as_json:
        output.json(answer)
    else:
        if answer.answer and not pieces:
            output.text(answer.answer.rstrip())
        elif answer.model and "".join(pieces).strip() != answer.answer:
            context.note("note: a number without a source below was not found: do not trust it")
        _show_sources(answer)
    if answer.trouble:
        context.note(f"warning: {answer.trouble}")
    if answer.hint:
        context.note(f"Try: {answer.hint}")
    if answer.trouble:
        raise click.exceptions.Exit(1)


def _show_sources(answer: Answer) -> None:
    in_full = not answer.sources and (not answer.model or bool(answer.trouble))
    passages = answer.passages if in_full else answer.sources
    is_apart = bool(answer.answer)
    for passage in passages:
        if is_apart:
            output.say()
        _passage(passage, in_full=in_full)
        is_apart = in_full


def _passage(passage: Passage, *, in_full: bool) -> None:
    about = [f" ({passage.section})"] if passage.section else []
    output.say(output.styled(f"[{passage.number}] {passage.title}", bold=True), *about)
    signed = ", ".join(filter(None, [passage.author, passage.date[:10]]))
    line = f":{passage.line}" if passage.line else ""
    source = f"{passage.path}{line}" if passage.path else f"journal {passage.id}"
    output.say(" " * TEXT_INDENT, " · ".join(filter(None, [source, signed])), indent=TEXT_INDENT)
    if passage.link:
        output.say(" " * TEXT_INDENT, passage.link)
    if in_full:
        for parts in _lines(passage.text, passage.best):
            indent = " " * TEXT_INDENT if any(parts) else ""
            output.say(indent, *parts, indent=TEXT_INDENT)


def _lines(text: str, best: Sequence[str]) -> list[list[object]]:
    """Return the lines of a passage as parts, the sentences that answer set off."""
    from vault_index.ask import sentences  # with the expressions it needs, 5 ms of each command

    has_bold = sys.stdout.isatty() and output.color() is not False
    lines: list[list[object]] = [[]]
    for run, is_best in sentences.runs(text, best):
        first, *rest = run.split("\n")
        for number, part in enumerate([first, *rest]):
            if number:
                lines.append([])
            shown: object = part
            if is_best and part.strip():
                shown = output.styled(part, bold=True) if has_bold else f"**{part}**"
            lines[-1].append(shown)
    return lines
