"""`lessons journal`: the commands of the journal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from vault_index.entrypoints.cli import asking, journal_lines, output
from vault_index.entrypoints.cli.output import count

# What several commands of the journal share: projects and times.


def project_options(command: Any) -> Any:
    """Add `--project` and `--all-projects`."""
    named = click.option(
        *("-p", "--project"),
        help="Of this project: a name or a folder; without: of the one around here.",
    )
    every = click.option("--all-projects", is_flag=True, help="Of all projects.")
    return named(every(command))


since = click.option("--since", metavar="DATE", help="Only since: 90d, 8w, 2026-03-31, or all.")
until = click.option("--until", metavar="DATE", help="Only until then.")


def project_asked(named: str | None, all_projects: bool) -> dict[str, Any]:
    """Return the project to look at: `project` is a name, `folder` one that it is in."""
    if named and all_projects:
        raise click.UsageError("--project and --all-projects exclude each other")
    if all_projects:
        return {"project": "", "folder": ""}
    path = Path(named).expanduser() if named else Path.cwd()
    if named and not ("/" in named and path.is_dir()) and named != ".":
        return {"project": named, "folder": ""}
    return {"project": "", "folder": str(path.absolute())}


def window_asked(since: str | None, until: str | None) -> dict[str, Any]:
    """Return the times to look at: `since` is None for the usual window, "" for all."""
    began = None if since is None else "" if since == "all" else output.since(since)
    return {"since": began, "until": output.until(until) if until else ""}


COMMANDS = "search timeline show sessions import status forget".split()
_PAGED = "search timeline show sessions status".split()


class _Group(click.Group):
    """The commands of the journal."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        """Return the names of the commands, the most used first."""
        return COMMANDS

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Return a command; a long answer of some goes through the pager."""
        if name not in self.list_commands(ctx):
            return None
        if name not in self.commands:
            command: click.Command = globals()[f"{name}_command"]
            if name in _PAGED and command.callback:
                command.callback = output.paged()(command.callback)
            self.commands[name] = command
        return self.commands[name]


@click.group(
    "journal", cls=_Group, epilog='Example: lessons journal search "what did we decide on retries"'
)
def command() -> None:
    """Find again what was asked, done and decided here.

    The journal is the private memory of your sessions with coding agents, in ~/.lessons/journal on
    this machine. It is never committed and costs no tokens. Begin with `lessons journal import`; to
    go on by itself: `lessons install claude --journal`.
    """


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
@project_options
@click.option("--file", "file", default="", help="Only what touched it: a path, its end, a folder.")
@click.option("--concept", default="", help="Only with it: gotcha, trade-off, how-it-works ...")
@click.option("--type", "type_", default="", help="Only of it: bugfix, feature, decision ...")
@since
@until
@click.option("--explain", is_flag=True, help="Show each term of the scores.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def search_command(
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
        **project_asked(project, all_projects), **window_asked(since, until),
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
    journal_lines.print_hits(answer["hits"])
    for hit in answer["hits"] if explain else ():
        terms = f"cosine {hit['cosine']:.3f} + full text {hit['full_text']:.3f}"
        output.row(f"  {hit['score']:.3f} = {terms}: {hit['id']}")
    if answer["older"]:
        asking.note(f"{answer['older']} older: --since all")


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
@project_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def timeline_command(
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
        **project_asked(project, all_projects),
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
            journal_lines.print_full(record)
            output.say()
            continue
        line = f"{journal_lines.local(record['at'])}  {record['id']:<16} {journal_lines.heading(record)}"
        mark = "> " if is_anchor else "  "
        output.row(output.styled(mark + line, bold=True) if is_anchor else mark + line)
    if not answer["records"]:
        asking.note("nothing in the journal there")


@click.command("show", epilog="Example: lessons journal show 3f2a91c0-o3.2")
@click.argument("name", metavar="ID")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def show_command(named: str | None, name: str, as_json: bool) -> None:
    """Show a record, or a session, by its id.

    The beginning of a session's id is enough.
    """
    answer = asking.ask(named, "journal show", {"name": name})
    if as_json:
        output.json(answer)
        return
    session = answer["session"]
    if not name.startswith(answer["records"][0]["id"]) or len(answer["records"]) > 1:
        journal_lines.print_session(session)
        output.say(output.styled(session["file"], dim=True))
    for number, record in enumerate(answer["records"]):
        if number or len(answer["records"]) > 1:
            output.say()
        journal_lines.print_full(record)


@click.command("sessions", epilog="Example: lessons journal sessions --since 7d --all-projects")
@click.option(
    "-n", "--limit", default=20, show_default=True, type=click.IntRange(1), help="How many."
)
@project_options
@since
@until
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def sessions_command(
    named: str | None,
    limit: int,
    project: str | None,
    all_projects: bool,
    since: str | None,
    until: str | None,
    as_json: bool,
) -> None:
    """List sessions, the latest first."""
    values = {
        "limit": limit, **project_asked(project, all_projects),
        **window_asked("all" if since is None else since, until),
    }  # fmt: skip
    sessions = asking.ask(named, "journal sessions", values)["sessions"]
    if as_json:
        output.json(sessions)
        return
    for session in sessions:
        journal_lines.print_session(session)
    if not sessions:
        asking.note("no session in the journal; get those of before with `lessons journal import`")


@click.command("import", epilog="Example: lessons journal import --since 90d --dry-run")
@click.option(
    "--since",
    metavar="DATE",
    default="30d",
    show_default=True,
    help="Sessions that went on since: 90d, 8w, 2026-03-31, or all.",
)
@click.option("-p", "--project", help="Only of this project: a name or a folder.")
@click.option("--dry-run", is_flag=True, help="Only show what it would take in.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def import_command(
    named: str | None, since: str, project: str | None, dry_run: bool, as_json: bool
) -> None:
    """Take in the sessions that agents keep here.

    Reads the transcripts of Claude Code and Codex CLI, changes none, and keeps what it took in under
    ~/.lessons/journal, without secrets. Stop it and run it again as you like.
    """
    values = {
        "since": "" if since == "all" else output.since(since),
        "dry_run": dry_run,
        **project_asked(project, all_projects=not project),
    }
    try:
        answer = asking.ask(named, "journal import", values)
    except KeyboardInterrupt:
        asking.note("stopped; what was taken in stays, and the next import goes on from there")
        raise
    if as_json:
        output.json(answer)
        return
    _show(answer, dry_run)


def _show(answer: dict[str, Any], dry_run: bool) -> None:
    projects = sorted(answer["projects"].items(), key=lambda item: (-item[1], item[0]))
    width = max((len(name) for name, _ in projects), default=0)
    for name, sessions in projects if dry_run else ():
        output.row(f"{name:<{width}}  {count(sessions, 'session')}")
    for problem in answer["problems"]:
        asking.note(f"warning: {problem}")
    for why, transcripts in sorted(answer["nothing"].items()):
        asking.note(f"note: nothing to keep of {count(transcripts, 'transcript')}: {why}")
    if answer["older"]:
        asking.note(f"note: {count(answer['older'], 'older transcript')}: --since all")
    there = [f"{answer['unchanged']} there already"] if answer["unchanged"] else []
    if not answer["sessions"]:
        output.say(", ".join(["nothing new", *there]))
        return
    parts = [f"{count(answer['sessions'], 'session')} of {count(len(projects), 'project')}"]
    parts += [count(answer["records"], "record"), f"{answer['bytes'] / 1e6:.1f} MB read"]
    ended = "; nothing was taken in" if dry_run else f" in {answer['seconds']:.1f} s"
    output.say(", ".join([*parts, *there]) + ended)


SHOWN = 5  # projects and problems


def lines_of(state: dict[str, Any]) -> Iterator[str]:
    """Yield the state of the journal for people, a line each."""
    recorded = ["every project" if folder == "*" else folder for folder in state["recorded"]]
    hooks = ", ".join(state.get("hooks", []))
    yield f"recorded   {', '.join(recorded) or 'nothing: run `lessons install claude --journal`'}"
    if recorded:
        yield f"hooks      {hooks or 'not installed: only a watcher sees what grew'}"
    if not state["sessions"]:
        yield f"journal    {state['folder']}: empty; run `lessons journal import`"
    else:
        kinds = state["records"]
        parts = [count(kinds[kind], kind) for kind in ("prompt", "observation")]
        sessions = count(state["sessions"], "session")
        yield f"journal    {state['folder']}: {sessions}, {', '.join(parts)}, {state['mb']:.1f} MB"
        yield f"last       {journal_lines.local(state['last'])}"
        most = sorted(state["projects"].items(), key=lambda item: -item[1])
        shown = ", ".join(f"{name} {number}" for name, number in most[:SHOWN])
        more = f" and {len(most) - SHOWN} more" if len(most) > SHOWN else ""
        yield f"projects   {shown}{more}"
    if state["unread"]:
        yield f"unread     {count(state['unread'], 'line')} of transcripts of a kind nobody described"
    index = state["index"]
    if "error" in index:
        yield f"index      {index['error']}"
    elif index:
        behind = state["sessions"] - index["sessions"]
        to_come = f", {behind} to come" if behind > 0 else ""
        yield f"index      {count(index['sessions'], 'session')}, {index['embedder']}{to_come}"
    if state["waiting"]:
        yield f"waiting    {count(state['waiting'], 'transcript')} to be taken in"
    for problem in state["problems"][:SHOWN]:
        yield f"problem    {problem}"
    if len(state["problems"]) > SHOWN:
        yield f"problem    and {len(state['problems']) - SHOWN} more"
    for complaint in state["complaints"][-SHOWN:]:
        yield f"log        {complaint}"


@click.command("status", epilog="Example: lessons journal status --json")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def status_command(named: str | None, as_json: bool) -> None:
    """Show what is recorded, and what went wrong."""
    from vault_index.entrypoints import doctor

    state = asking.ask(named, "journal status") | doctor.journal_hooks()
    if as_json:
        output.json(state)
        return
    for line in lines_of(state):
        output.say(line, indent=11)


@click.command("forget", epilog="Example: lessons journal forget --session 3f2a91c0")
@click.option("--session", default="", help="A session, by its id or the beginning of it.")
@click.option("--project", default="", help="All sessions of a project.")
@click.option("--before", metavar="DATE", default="", help="What ended before: 90d, 2026-03-31.")
@click.option("--matching", metavar="TEXT", default="", help="The records with this text.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def forget_command(
    ctx: click.Context,
    session: str,
    project: str,
    before: str,
    matching: str,
    yes: bool,
    as_json: bool,
) -> None:
    """Take out files, rows and vectors, and prove it.

    With several options, what all of them name. The agent's own transcripts stay: they are its.
    """
    values = {
        "session": session,
        "project": project,
        "before": output.since(before) if before else "",
        "matching": matching,
    }
    chosen = ", ".join(f"{name} {value}" for name, value in values.items() if value)
    if not chosen:
        raise click.UsageError(
            "name a --session, a --project, a time --before or a text --matching"
        )
    if not yes and sys.stdin.isatty() and not output.confirm(f"forget {chosen}?"):
        raise click.Abort
    answer = asking.ask(ctx.obj, "journal forget", values)
    if as_json:
        output.json(answer)
        return
    if not answer["records"] and not answer["sessions"]:
        output.say("nothing in the journal matches")
        if not answer["files_searched"]:
            return
    else:
        sessions = f" and {count(answer['sessions'], 'session')}" if answer["sessions"] else ""
        output.say(f"forgot {count(answer['records'], 'record')}{sessions}")
    if answer["beside"]:
        output.say(
            f"removed {count(answer['beside'], 'file')} of proposals and conversations made of it"
        )
    output.say(answer["proof"])
    if answer["left"]:
        ctx.exit(1)
