"""The commands that teach and tell: teach, last, log."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import click

from vault_index import client
from vault_index.entrypoints.cli import asking, completion, output
from vault_index.entrypoints.cli.output import json_option
from vault_index.errors import VaultError
from vault_index.search.hit import percent_of
from vault_index.text.blocks import shorten_line

# `lessons last`: the latest prompts of agents, and what each got.

PROMPT_CHARS = 90  # of a prompt in the list
NOT_KEPT = "(the text of this prompt was not kept)"


@click.command("last", epilog="Example: lessons last")
@click.option("-n", "count", default=5, show_default=True, type=click.IntRange(1, 100))
@json_option
@click.pass_obj
def last_command(named: str | None, count: int, as_json: bool) -> None:
    """Show the latest prompts of agents and what each got.

    Where one got nothing, it says why. The numbers are those of `lessons teach --last N`.
    """
    records = latest(named, count)
    if as_json:
        output.json(records)
        return
    if not records:
        output.say("no agent has asked yet: type a prompt in a project with hooks, then look again")
        return
    now = datetime.now(UTC)
    for number, record in enumerate(records, start=1):
        ago = output.styled(_ago(record["time"], now), dim=True)
        text = shorten_line(record["text"], PROMPT_CHARS) if record["text"] else NOT_KEPT
        output.row(f"{number}. ", ago, f"  {text}")
        for line in _got(record):
            output.say(f"   {line}")
    asking.note("teach one: lessons teach --last N --fires ID, or --not ID")


def latest(named: str | None, count: int) -> list[dict[str, Any]]:
    """Return the records of the latest prompts, the latest first. Raises VaultError."""
    values = {"limit": count, "only_prompts": True}
    return list(asking.ask(named, "injections", values)["records"])


def record_of(named: str | None, number: int) -> dict[str, Any]:
    """Return the record of a prompt by its number in the list. Raises VaultError."""
    records = latest(named, number)
    if len(records) < number:
        raise VaultError(f"no prompt {number} in the record", "see the numbers: lessons last")
    return records[-1]


def _got(record: dict[str, Any]) -> Iterator[str]:
    """Yield what a prompt got, a line each."""
    for lesson in record["lessons"]:
        mark = ", taught" if lesson["is_taught"] else ""
        taught = f"; taught {lesson['taught']}" if lesson["taught"] else ""
        title = lesson["title"] or "no longer there"
        yield f"{title} ({percent_of(lesson['score'])}%{mark}) {lesson['id']}{taught}"
    for lesson in record["others"]:
        yield f"taught {lesson['taught']}: {lesson['title'] or lesson['id']}"
    for skill in record["skills"]:
        yield f"{skill['name']} ({percent_of(skill['score'])}%), a skill"
    if record["missed"]:
        yield "missed: the hook got no answer in time"
    elif not (record["lessons"] or record["skills"]):
        yield f"silent: {record['silent'] or 'no reason was kept'}{_nearest(record)}"


def _nearest(record: dict[str, Any]) -> str:
    near, floor = record["near"], record["floor"]
    if not near or near["score"] is None or floor is None:
        return ""
    taught = f", taught {near['taught']}" if near["taught"] else ""
    score, least = percent_of(near["score"]), percent_of(floor)
    return f" (nearest: {near['id']}, {score}%{taught}; the floor is {least}%)"


def _ago(time: str, now: datetime) -> str:
    try:
        return output.ago((now - datetime.fromisoformat(time)).total_seconds())
    except ValueError:  # somebody edited the record
        return time[:16]


FIRES, SILENT = "fires_on", "silent_on"


@click.command("teach", epilog='Example: lessons teach "run the tests please" --fires run-tests')
@click.argument("prompt", nargs=-1)
@click.option(
    "--last", type=click.IntRange(1, 100), help="The prompt of that number in `lessons last`."
)
@click.option(
    "--fires", metavar="ID", shell_complete=completion.ids, help="The lesson that should fire."
)
@click.option(
    "--not", "silent", metavar="ID", shell_complete=completion.ids, help="The lesson to keep out."
)
@click.option("--undo", is_flag=True, help="Take back what was taught.")
@json_option
@click.pass_obj
def teach_command(
    named: str | None,
    prompt: tuple[str, ...],
    last: int | None,
    fires: str | None,
    silent: str | None,
    undo: bool,
    as_json: bool,
) -> None:
    """Teach a lesson to fire at PROMPT, or to stay out.

    --last N takes the prompt of that number in `lessons last`. Without --fires and --not, choose among
    the nearest lessons at a terminal. The lesson's file gets the prompt under fires_on or silent_on,
    and acts at the next prompt.
    """
    if bool(prompt) is bool(last):
        raise click.UsageError("name one prompt: PROMPT, or --last N")
    record = record_of(named, last) if last else {}
    text = " ".join(prompt) or record["text"]
    if not text:
        raise VaultError("the text of this prompt was not kept", "type it: lessons teach PROMPT")
    if fires and silent:
        raise VaultError("both --fires and --not", "choose one of them")
    lesson, kind = (silent, SILENT) if silent else (fires, FIRES)
    name = client.name_in_vault(named, lesson) if lesson else asking.pick(named, text)
    values: dict[str, Any] = {"name": name, "kind": kind, "prompt": text, "undo": undo}
    if record:
        values |= {"session": record["session"], "key": record["prompt"]}
    done = asking.ask(named, "teach", values)
    if as_json:
        output.json(done)
        return
    output.say(_said(done, undo))
    if not done["acts"]:
        asking.note(f"it does not act yet: {done['silent'] or 'the lesson still comes'}")


def _said(done: dict[str, Any], undo: bool) -> str:
    if undo:
        return f"{'taken out of' if done['changed'] else 'it was not in'} {done['id']}"
    what = "fires at" if done["kind"] == FIRES else "stays out at"
    again = "" if done["changed"] else " (as taught before)"
    return f"{done['id']} {what} this prompt and near ones{again}"


@click.command("log", epilog="Example: lessons log devops/ci-cd/node-heap-out-of-memory")
@completion.lesson()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def log_command(named: str | None, lesson_id: str, as_json: bool) -> None:
    """Show the commits that changed a lesson, newest first."""
    history = asking.ask(named, "log", {"name": client.name_in_vault(named, lesson_id)})
    if history["deleted_in"]:
        asking.note(f"note: {history['id']} was deleted in commit {history['deleted_in'][:10]}")
    if as_json:
        output.json(history["edits"])
        return
    for edit in history["edits"]:
        commit = output.styled(edit["commit"][:10], dim=True)
        output.row(commit, f"  {edit['when'][:10]}  {edit['who']}: {edit['why']}")
    if not history["edits"]:
        asking.note(f"{history['path']} is not committed")
