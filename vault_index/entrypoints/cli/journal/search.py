"""`lessons journal search`."""

from __future__ import annotations

from typing import Any

import click

from vault_index.entrypoints.cli import asking, output
from vault_index.entrypoints.cli.journal import lines, options


@click.command("search", epilog="Example: lessons journal search --file store/table.py --since 30d")
@click.argument("query", nargs=-1)
@click.option("-k", default=5, show_default=True, type=click.IntRange(1, 1000), help="How many.")
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    type=click.Choice(["prompt", "observation", "summary"]),
    help="Only these; repeatable.",
)
@options.project
@click.option("--file", "file", default="", help="Only what touched it: a path, its end, a folder.")
@click.option("--concept", default="", help="Only with it: gotcha, trade-off, how-it-works ...")
@click.option("--type", "type_", default="", help="Only of it: bugfix, feature, decision ...")
@options.since
@options.until
@click.option("--explain", is_flag=True, help="Show each term of the scores.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def command(
    named: str | None,
    query: tuple[str, ...],
    k: int,
    kinds: tuple[str, ...],
    project: str | None,
    all_projects: bool,
    file: str,
    concept: str,
    type_: str,
    since: str | None,
    until: str | None,
    explain: bool,
    as_json: bool,
) -> None:
    """Find prompts, work and decisions, best first.

    Without QUERY, --file lists what touched it, the latest first. Searches look back 90 days; see
    `journal.window_days`.
    """
    if not query and not (file or concept or type_):
        raise click.UsageError("name what to search for, or a --file, --concept or --type")
    values: dict[str, Any] = {
        "text": " ".join(query), "k": k, "kinds": list(kinds), "file": file, "concept": concept,
        "type": type_, "explain": explain,
        **options.where(project, all_projects), **options.window(since, until),
    }  # fmt: skip
    answer = asking.ask(named, "journal search", values)
    if as_json:
        output.json({key: answer[key] for key in ("hits", "older", "text_only")})
        return
    if answer["text_only"] and answer["embedder"] != "none":
        asking.note(f"note: full text only: {answer['text_only']}")
    if answer["hits"] and values["folder"] and not answer["project"]:
        asking.note("note: nothing is kept of this folder: this is of all projects")
    if not answer["hits"]:
        asking.note("nothing in the journal matches")
    lines.print_hits(answer["hits"])
    for hit in answer["hits"] if explain else ():
        terms = f"cosine {hit['cosine']:.3f} + full text {hit['full_text']:.3f}"
        output.row(f"  {hit['score']:.3f} = {terms}: {hit['id']}")
    if answer["older"]:
        asking.note(f"{answer['older']} older: --since all")
