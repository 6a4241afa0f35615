"""`lessons journal timeline`."""

from __future__ import annotations

import click

from vault_index.entrypoints.cli import asking, output
from vault_index.entrypoints.cli.journal import lines, options


@click.command("timeline", epilog='Example: lessons journal timeline "yesterday 14:00" --after 20')
@click.argument("anchor", nargs=-1, required=True)
@click.option("--before", default=10, show_default=True, type=click.IntRange(0, 50),
              help="Records before it.")  # fmt: skip
@click.option("--after", default=10, show_default=True, type=click.IntRange(0, 50),
              help="Records after it.")  # fmt: skip
@click.option(
    "--format",
    "form",
    type=click.Choice(["index", "full"]),
    default="index",
    show_default=True,
    help="A line each, or all that is known.",
)
@options.project
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def command(
    named: str | None,
    anchor: tuple[str, ...],
    before: int,
    after: int,
    form: str,
    project: str | None,
    all_projects: bool,
    as_json: bool,
) -> None:
    """Show what came before and after a moment.

    ANCHOR is a record, a session, a time (2026-11-20T14:00, "yesterday 14:00") or a query, whose best
    hit is taken.
    """
    values = {
        "anchor": " ".join(anchor), "before": before, "after": after, "full": form == "full",
        **options.where(project, all_projects),
    }  # fmt: skip
    answer = asking.ask(named, "journal timeline", values)
    if as_json:
        output.json(answer)
        return
    session = None
    for number, record in enumerate(answer["records"]):
        if number == answer["before"] and not answer["anchor"]:
            output.row(output.styled(f"> {values['anchor']}", bold=True))
        if record["session"] != session:
            session = record["session"]
            where = record["project"] + (f"@{record['branch']}" if record["branch"] else "")
            output.row(output.styled(f"{record['id'].rpartition('-')[0]} {where}", bold=True))
        is_anchor = record["id"] == answer["anchor"]
        if form == "full":
            lines.print_full(record)
            output.say()
            continue
        line = f"{lines.local(record['at'])}  {record['id']:<16} {lines.heading(record)}"
        mark = "> " if is_anchor else "  "
        output.row(output.styled(mark + line, bold=True) if is_anchor else mark + line)
    if not answer["records"]:
        asking.note("nothing in the journal there")
