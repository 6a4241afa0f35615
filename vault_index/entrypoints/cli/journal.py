"""`lessons journal`: the commands of the journal."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click

from vault_index import api, files
from vault_index.api import codec
from vault_index.entrypoints.cli import context, options, output
from vault_index.entrypoints.wording import excerpt, journal
from vault_index.errors import VaultError
from vault_index.journal.record import JournalHits, KeptRecord, ListedSession
from vault_index.retrieval.hit import parts_of
from vault_index.store import times
from vault_index.text.words import count


def project_options(function: Callable[..., object]) -> Any:
    """Add `--project` and `--all-projects`; the command gets what `project_asked` returns of them."""

    @click.option(
        "-p",
        "--project",
        help="Of this project: a name, a folder or all; without: of the one around here.",
    )
    @options.flag("--all-projects", "Of all projects.")
    @wraps(function)
    def run(*args: Any, project: str | None, all_projects: bool, **values: Any) -> object:
        return function(*args, **project_asked(project, all_projects), **values)

    return run


NO_SESSION = (
    "the journal has no such session; see others with `lessons journal sessions --all-projects`,"
    " take in earlier ones with `lessons journal import`"
)
since = click.option(
    "--since", metavar="DATE", help="Only since: 90d, yesterday, 2026-03-31, or all."
)
until = click.option("--until", metavar="DATE", help="Only until then.")


def project_asked(named: str | None, all_projects: bool) -> dict[str, Any]:
    """Return the project to look at: `project` is a name, `folder` one that it is in."""
    if named and all_projects:
        raise click.UsageError("--project and --all-projects exclude each other")
    if all_projects:
        return {"project": "", "folder": ""}
    path = files.expanded(named) if named else Path.cwd()
    if named and not ("/" in named and path.is_dir()) and named != ".":
        return {"project": named, "folder": ""}
    return {"project": "", "folder": str(path.absolute())}


@click.group(
    "journal",
    cls=options.InOrder,
    epilog='Example: lessons journal search "what did we decide on retries"',
)
def command() -> None:
    """Find again what was asked, done and decided here.

    The journal is the private memory of your sessions with coding agents, in ~/.lessons on this
    machine. It is never committed and costs no tokens. Begin with `lessons journal import`; to
    go on by itself: `lessons install claude --journal`.
    """


@options.command(
    "search", "lessons journal search --file store/table.py --since 30d", of=command, paged=True
)
@click.argument("query", nargs=-1)
@options.number("-n -k k", 5, 1, 1000, "How many.")
@options.choice(
    "--kind kinds", "prompt observation summary", "Only these; repeatable.", multiple=True
)
@project_options
@click.option("--file", default="", help="Only what touched it: a path, its end, a folder.")
@click.option("--concept", default="", help="Only with it: gotcha, trade-off, how-it-works ...")
@click.option("--type", default="", help="Only of it: bugfix, feature, decision ...")
@since
@until
@options.flag("--explain", "Show each term of the scores.")
def search_command(
    query: tuple[str, ...],
    since: str | None,
    until: str | None,
    explain: bool,
    **only: Any,
) -> options.Answers:
    """Find prompts, work and decisions, best first.

    Without QUERY, --file lists what touched it, the latest first. Searches look back 90 days; see
    `journal.window_days`.
    """
    if not query and not (only["file"] or only["concept"] or only["type"]):
        raise click.UsageError("name what to search for, or a --file, --concept or --type")
    only |= {"text": " ".join(query), **times.window(since, until)}
    answer = context.ask(api.journal.search(**only))
    hits = [hit.as_json(explain=explain) for hit in answer.hits]
    yield {"hits": hits, "older": answer.older, "text_only": answer.text_only}
    if answer.text_only and answer.embedder != "none":
        context.note_once(f"note: full text only: {answer.text_only}")
    print_hits(answer)
    for hit in answer.hits if explain else ():
        terms = f"cosine {parts_of(hit.cosine)} + full text {parts_of(hit.full_text)}"
        output.row(f"  {parts_of(hit.score)} = {terms}: {hit.id}")
    if answer.older:
        context.note(f"{answer.older} older: --since all")


@options.command(
    "timeline", 'lessons journal timeline "yesterday 14:00" --after 20', of=command, paged=True
)
@click.argument("anchor", nargs=-1, required=True)
@options.number("--before", 10, 0, 50, "Records before it.")
@options.number("--after", 10, 0, 50, "Records after it.")
@options.choice(
    "--format form", "index full", "A line each, or all that is known.", default="index"
)
@project_options
def timeline_command(anchor: tuple[str, ...], form: str, **around: Any) -> options.Answers:
    """Show what came before and after a moment.

    ANCHOR is a record, a session, a time ("yesterday 14:00", "last tuesday") or a query, whose best
    hit is taken.
    """
    text, is_full = " ".join(anchor), form == "full"
    answer = context.ask(api.journal.timeline(anchor=text, full=is_full, **around))
    records = [record.as_json() for record in answer.records]
    yield {**codec.to_json(answer), "records": records}
    if not answer.records:
        context.note_nothing(journal.nothing(answer))
    session = None
    for number, record in enumerate(answer.records):
        if number == answer.before and not answer.anchor:
            output.row(output.styled(f"> {text}", bold=True))
        if record.session != session:
            session = record.session
            about = f"{journal.session_id(record)} {journal.where(record)}"
            output.row(output.styled(about, bold=True))
        if is_full:
            _print_record(record)
            output.say()
            continue
        line = f"{times.local(record.at)}  {record.id:<16} {journal.heading(record)}"
        is_anchor = record.id == answer.anchor
        output.row(output.styled(f"> {line}", bold=True) if is_anchor else f"  {line}")


@options.command("show", "lessons journal show 3f2a91c0-o3.2", of=command, paged=True)
@click.argument("name", metavar="ID")
def show_command(name: str) -> options.Answers:
    """Show a record, or a session, by its id.

    The beginning of a session's id is enough.
    """
    answer = context.ask(api.journal.show(name=name))
    yield answer
    session, records = answer.session, answer.records
    if not name.startswith(records[0].id) or len(records) > 1:
        _print_session(session)
    for number, record in enumerate(records):
        if number or len(records) > 1:
            output.say()
        _print_record(record)


@options.command(
    "sessions", "lessons journal sessions --since 7d --all-projects", of=command, paged=True
)
@options.number("-n --limit", 20, 1, None, "How many.")
@project_options
@since
@until
def sessions_command(since: str | None, until: str | None, **only: Any) -> options.Answers:
    """List sessions, the latest first."""
    only |= times.window("all" if since is None else since, until)
    sessions = context.ask(api.journal.sessions(**only))
    yield sessions
    for session in sessions:
        _print_session(session)
    if not sessions:
        context.note_nothing(NO_SESSION)


@options.command("export", "lessons journal export 3f2a91c0 > session.md", of=command)
@click.argument("name", metavar="ID", required=False, default="")
@project_options
def export_command(name: str, **only: Any) -> options.Answers:
    """Print a session as markdown, or all sessions of a project."""
    text = context.ask(api.journal.export(name=name, **only))
    yield {"markdown": text}
    if text:
        output.text(text.rstrip("\n"))
    else:
        context.note_nothing(NO_SESSION)


@options.command("import", "lessons journal import --since 90d --dry-run", of=command)
@click.option(
    "--since",
    metavar="DATE",
    default="30d",
    show_default=True,
    help="Sessions that went on since: 90d, 8w, 2026-03-31, or all.",
)
@click.option("-p", "--project", help="Only of this project: a name or a folder.")
@options.flag("--dry-run", "Only show what it would take in.")
def import_command(since: str, project: str | None, dry_run: bool) -> options.Answers:
    """Take in the sessions that agents keep here.

    Reads the transcripts of Claude Code and Codex CLI, changes none, and keeps what it took in under
    ~/.lessons, without the secrets that we recognise. Stop it and run it again as you like.
    """
    values = {"since": times.window(since)["since"], "dry_run": dry_run}
    values |= project_asked(project, all_projects=not project)
    try:
        imported = context.ask(api.journal.import_transcripts(**values))
    except KeyboardInterrupt:
        context.note("stopped; what was taken in stays, and the next import goes on from there")
        raise
    yield imported
    projects = sorted(imported.projects.items(), key=lambda item: (-item[1], item[0]))
    width = max((len(name) for name, _ in projects), default=0)
    for name, sessions in projects if dry_run else ():
        output.row(f"{name:<{width}}  {count(sessions, 'session')}")
    for problem in imported.problems:
        context.note(f"warning: {problem}")
    for why, transcripts in sorted(imported.nothing.items()):
        context.note(f"note: nothing to keep of {count(transcripts, 'transcript')}: {why}")
    if imported.older:
        context.note(f"note: {count(imported.older, 'older transcript')}: --since all")
    unchanged = [f"{imported.unchanged} there already"] if imported.unchanged else []
    if not imported.sessions:
        output.say(", ".join(["nothing new", *unchanged]))
        return
    parts = [f"{count(imported.sessions, 'session')} of {count(len(projects), 'project')}"]
    parts += [count(imported.records, "record"), f"{imported.bytes / 1e6:.1f} MB read"]
    ended = "; nothing was taken in" if dry_run else f" in {imported.seconds:.1f} s"
    output.say(", ".join([*parts, *unchanged]) + ended)
    if imported.by_words:
        which = count(imported.by_words, "session")
        context.note(f"note: words find {which} now; their vectors are made in the background")


@options.command("status", "lessons journal status --json", of=command, paged=True)
def status_command() -> options.Answers:
    """Show what is recorded, and what went wrong."""
    from vault_index.entrypoints import recording

    state = recording.with_hooks(context.ask(api.journal.status()), Path.cwd())
    yield state
    for line in journal.lines(state):
        output.say(line, indent=11)


@options.command("forget", "lessons journal forget --session 3f2a91c0", of=command)
@click.option("--session", default="", help="A session, by its id or the beginning of it.")
@click.option("--project", default="", help="All sessions of a project.")
@options.date("--before", times.since, "What ended before: 90d, 2026-03-31.")
@options.text("--matching", "TEXT", "The records with this text.")
@options.yes
def forget_command(yes: bool, **values: str) -> options.Answers:
    """Delete sessions, and check that nothing is left.

    With several options, what all of them name. The agent's own transcripts stay: they are its.
    """
    named = {**values, "before": times.local(values["before"])}
    chosen = ", ".join(f"{name} {value}" for name, value in named.items() if value.strip())
    if not chosen:
        message = "name a --session, a --project, a time --before or a text --matching"
        raise click.UsageError(message)
    if not yes and sys.stdin.isatty() and not output.confirm(f"forget {chosen}?"):
        raise click.Abort
    forgotten = context.ask(api.journal.erase(**values))
    if values["session"] and not (
        forgotten.records or forgotten.sessions or forgotten.beside or forgotten.left
    ):
        where = f"no session {values['session']!r:.80} in the journal that matches"
        raise VaultError(where, "see their ids: lessons journal sessions")
    yield options.AnswerWithStatus(
        {**codec.to_json(forgotten), "proof": forgotten.proof}, bool(forgotten.left)
    )
    if not forgotten.records and not forgotten.sessions:
        output.say("nothing in the journal matches")
        if not forgotten.files_searched:
            return
    else:
        sessions = f" and {count(forgotten.sessions, 'session')}" if forgotten.sessions else ""
        output.say(f"forgot {count(forgotten.records, 'record')}{sessions}")
    if forgotten.beside:
        files_beside = count(forgotten.beside, "file")
        output.say(f"removed {files_beside} of proposals and conversations made of it")
    output.say(forgotten.proof)


def print_hits(answer: JournalHits) -> None:
    """Print the hits of a search, two or three lines each, or that nothing matches."""
    if not answer.hits:
        context.note_nothing(journal.nothing(answer))
    width = min(100, output.screen_width() or 100)
    for number, hit in enumerate(answer.hits, start=1):
        head = f"{number}. {journal.heading(hit)}{journal.percent(hit)}"
        output.row(output.styled(head, bold=True))
        output.row("   ", output.styled(journal.place(hit), dim=True))
        text = excerpt(hit.text, width - 3)
        if text and text != hit.title:
            output.row(f"   {text}")


def _print_record(record: KeptRecord) -> None:
    output.say(output.styled(journal.heading(record), bold=True))
    output.say(output.styled(journal.place(record), dim=True))
    for text in filter(None, journal.details(record)):
        output.text(text)


def _print_session(session: ListedSession) -> None:
    output.row(
        output.styled(times.local(session.began), dim=True),
        f"  {session.short}  {journal.where(session)}  ",
        output.styled(session.title or "(no prompt)", bold=True),
        f"  {journal.session_about(session)}",
    )
