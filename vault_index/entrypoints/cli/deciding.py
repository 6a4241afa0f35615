"""What `lessons accept` and `lessons reject` share: several proposals, or all of a session."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click

from vault_index.entrypoints.cli import asking, output
from vault_index.errors import VaultError

session_option = click.option(
    "--session", default="", metavar="ID", help="All that this session taught."
)


def each(
    named: str | None,
    ids: Sequence[str],
    session: str,
    as_json: bool,
    decide: Callable[[str], dict[str, Any]],
    show: Callable[[dict[str, Any]], None],
) -> None:
    """Decide about proposals in their order, and print each; the first error ends it.

    As JSON one id gives one object, several and a session a list.
    """
    if bool(ids) == bool(session):
        raise click.UsageError("name proposals by their IDs, or a session with --session")
    is_one = len(ids) == 1
    if session:
        listed = asking.ask(named, "proposals", {"session": session})["proposals"]
        if not listed:
            hint = "see the ids of sessions with `lessons review --json`"
            raise VaultError(f"no proposal of a session {session!r:.80} waits", hint)
        ids = [proposal["id"] for proposal in listed]
    decided: list[dict[str, Any]] = []
    try:
        for id in ids:
            decided.append(decide(id))
            if not as_json:
                show(decided[-1])
    finally:
        if as_json and decided:
            output.json(decided[0] if is_one else decided)
