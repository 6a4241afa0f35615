"""A session as markdown for who wants it: its prompts, observations and summary, in their order."""

from __future__ import annotations

import re
from collections.abc import Iterator

from vault_index.journal.record import OBSERVATION, PROMPT, Command, Record, Session
from vault_index.text.blocks import one_line

_LISTS = ("facts", "files_read", "files_modified")
_TICKS = re.compile(r"`{3,}")


def markdown(session: Session) -> str:
    """Return a session as markdown."""
    about = ("project", "folder", "branch", "began", "ended", "agent")
    values = [("session", session.id), *((name, getattr(session, name)) for name in about)]
    lines = [f"# {one_line(title_of(session), 120)}", ""]
    lines += [f"- {name}: {value}" for name, value in values if value]
    for record in session.records:
        lines += ["", *_shown(record)]
    return "\n".join(lines) + "\n"


def title_of(session: Session) -> str:
    """Return the subject of a session: the request of its summary, else its first prompt."""
    last = session.records[-1:] if session.records else ()
    titles = (each.fields.get("request", "").partition("\n")[0] or each.title for each in last)
    return next(filter(None, titles), session.id)


def _shown(record: Record) -> Iterator[str]:
    level = "###" if record.kind == OBSERVATION else "##"
    number = f" {record.number}" if record.kind == PROMPT else ""
    about = [f"{level} {record.kind.capitalize()}{number}", record.id, record.at[11:16]]
    about += [record.type, *record.concepts]
    yield f"{' · '.join(filter(None, about))}: {one_line(record.title, 120)}"
    if record.context:
        yield from ("", "> " + record.context.replace("\n", "\n> "))
    if record.text:
        yield from ("", record.text)
    for name in _LISTS:
        if values := getattr(record, name):
            items = ("- " + each.replace("\n", "\n  ") for each in values)
            yield from ("", f"**{_label(name)}**", "", *items)
    for shown in (*map(_command, record.commands), *record.errors):
        ticks = "`" * max([3, *(len(run) + 1 for run in _TICKS.findall(shown))])
        yield from ("", ticks, shown, ticks)
    for name, text in record.fields.items():
        yield from ("", f"**{_label(name)}**", "", text)


def _label(name: str) -> str:
    return name.replace("_", " ").capitalize()


def _command(command: Command) -> str:
    status = "unknown" if command.status is None else command.status
    failed = ", failed" if command.failed else ""
    output = f"\n{command.output}" if command.output else ""
    return f"$ {command.text}\n[exit {status}{failed}]{output}"
