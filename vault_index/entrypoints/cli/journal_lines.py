"""Records and sessions as lines for people; times are local."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from vault_index.entrypoints.cli import output
from vault_index.entrypoints.cli.output import count

Json = Mapping[str, Any]
SHOWN_FILES = 3  # of a record, in a list


def local(at: str, form: str = "%Y-%m-%d %H:%M") -> str:
    """Return a moment of ISO 8601 as a local time; what is none as it is."""
    try:
        return datetime.fromisoformat(at).astimezone().strftime(form)
    except (ValueError, OverflowError, OSError):
        return at


def kind_of(record: Json) -> str:
    """Return what a record is in a word: of an observation its type."""
    return str(record["type"] or record["kind"])


def heading(record: Json) -> str:
    """Return the kind and the title of a record."""
    return f"[{kind_of(record)}] {record['title'] or '(no title)'}"


def place(record: Json) -> str:
    """Return the id of a record, its project and branch, and when it was."""
    where = record["project"] + (f"@{record['branch']}" if record["branch"] else "")
    return " · ".join(filter(None, (record["id"], where, local(record["at"]))))


def excerpt(record: Json, room: int) -> str:
    """Return the text of a record in one line of at most `room` characters."""
    text = " ".join(str(record["text"])[: 40 * room].split())
    return text[: room - 1] + "…" if len(text) > room else text


def print_hits(hits: Iterable[Json]) -> None:
    """Print hits, two or three lines each."""
    width = min(100, output.screen_width() or 100)
    for number, hit in enumerate(hits, start=1):
        score = hit.get("score")
        percent = f" ({100 * min(1.0, max(0.0, score)):.0f}%)" if score else ""
        output.row(output.styled(f"{number}. {heading(hit)}{percent}", bold=True))
        output.row("   ", output.styled(place(hit), dim=True))
        text = excerpt(hit, width - 3)
        if text and text != hit["title"]:
            output.row(f"   {text}")


def print_full(record: Json) -> None:
    """Print all that is known of a record."""
    output.say(output.styled(heading(record), bold=True))
    output.say(output.styled(place(record), dim=True))
    if record["text"] and " ".join(record["text"].split()) != record["title"]:
        output.say()
        output.text(record["text"])
    for name in ("facts", "concepts", "files_read", "files_modified", "errors"):
        values = record.get(name) or ()
        if name == "concepts" and values:
            output.say(f"concepts: {', '.join(values)}")
        elif values:
            output.say(f"{name.replace('_', ' ')}:")
            for value in values:
                output.text(f"- {value}")
    for command in record.get("commands") or ():
        status = command["status"]
        ended = f"exit {status}" if status is not None else "failed" if command["failed"] else ""
        output.say(f"$ {command['text']}", output.styled(f"  {ended}".rstrip(), dim=True))
        if command["output"]:
            output.text(command["output"])


def print_session(session: Json) -> None:
    """Print a session in a line: when, where, what was asked, files, how long."""
    where = session["project"] + (f"@{session['branch']}" if session["branch"] else "")
    about = [count(session["typed"], "prompt"), count(len(session["files"]), "file")]
    about += [lasted(session["began"], session["ended"])]
    output.row(
        output.styled(local(session["began"]), dim=True),
        f"  {session['short']}  {where}  ",
        output.styled(session["request"] or "(no prompt)", bold=True),
        f"  {', '.join(filter(None, about))}",
    )


def lasted(began: str, ended: str) -> str:
    """Return how long a session took, in words."""
    try:
        length = datetime.fromisoformat(ended) - datetime.fromisoformat(began)
    except (ValueError, TypeError):
        return ""
    if length < timedelta(minutes=2):
        return f"{max(0, round(length.total_seconds()))} s"
    minutes = round(length.total_seconds() / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes / 60:.0f} h"
