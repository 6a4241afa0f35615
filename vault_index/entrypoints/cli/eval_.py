"""`lessons eval`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from vault_index.entrypoints.cli import asking, output
from vault_index.entrypoints.cli.options import json_option

MISTAKES_SHOWN = 20  # prompts of `eval`


@click.command("eval", epilog="Example: lessons eval queries.jsonl --lessons lessons.jsonl")
@click.argument("queries", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--lessons",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Lessons as JSON lines (id, title, text, category), instead of the vault.",
)
@json_option
@click.pass_obj
def command(named: str | None, queries: Path, lessons: Path | None, as_json: bool) -> None:
    """Measure recall and false injections over labelled prompts.

    QUERIES holds a JSON object a line: query, relevant (a list of lesson ids, empty if silence is
    right), kind. Each figure is explained, and the prompts that went wrong are named.
    """
    values = {"queries": str(queries)}
    if lessons is None:
        figures = asking.ask(named, "eval", values)
    else:
        from vault_index.api import state

        with state.scratch_vault(str(lessons)) as scratch:
            figures = asking.ask(scratch, "eval", values)
    if as_json:
        output.json(figures)
        return
    _print_figures(figures)
    _print_mistakes(figures, queries)


def _print_figures(figures: dict[str, Any]) -> None:
    from vault_index.search.evaluate import EXPLAINED

    for key, meaning in EXPLAINED.items():
        value = figures[key]
        shown = (
            "" if key == "by_kind" else _line(value) if isinstance(value, dict) else _figure(value)
        )
        output.row(f"{key:<14}{shown:<8}", output.styled(f"  {meaning}", dim=True))
    for kind, of_kind in figures["by_kind"].items():
        output.row(f"  {kind or '(no kind)':<12}{_line(of_kind)}")


def _print_mistakes(figures: dict[str, Any], queries: Path) -> None:
    """Name the ids that no lesson has, the prompts that were missed and those injected falsely."""
    for mistake in figures["unknown"]:
        asking.note(
            f"warning: {queries}:{mistake['line']}: no lesson {mistake['id']!r}: counted as missed"
        )
    for key, title in (
        ("missed", "missed: no right lesson among the first 3"),
        ("injected_falsely", "injected although no lesson answers"),
    ):
        mistakes = figures[key]
        if mistakes:
            output.say(output.styled(f"{title} ({len(mistakes)})", bold=True))
        for mistake in mistakes[:MISTAKES_SHOWN]:
            rank = f", right one at {mistake['rank']}" if mistake["rank"] else ""
            first = f"first {mistake['first']}" if mistake["first"] else "nothing found"
            output.row(f"  {mistake['line']}: {mistake['query']!r:.80} ({first}{rank})")
        if len(mistakes) > MISTAKES_SHOWN:
            output.say(f"  and {len(mistakes) - MISTAKES_SHOWN} more: all with --json")


def _line(values: dict[str, Any]) -> str:
    return "  ".join(f"{key} {_figure(value)}" for key, value in values.items())


def _figure(value: Any) -> str:
    return "-" if value is None else f"{value:.3f}" if isinstance(value, float) else str(value)
