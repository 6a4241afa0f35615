"""The commands for lessons: add, list, show, edit, rm, stale, confirm."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from vault_index import client
from vault_index.entrypoints.cli import asking, completion, output, reviewing, status
from vault_index.entrypoints.cli.output import count, from_here, json_option
from vault_index.errors import VaultError


@click.command(
    "add", epilog='Example: echo "Raise the heap." | lessons add --title "Heap" -c devops/ci-cd -'
)
@click.argument("source", required=False, metavar="[FILE|-]")
@click.option(
    "--title", default="", help="The title; without FILE the text comes from --text or stdin."
)
@click.option("--text", default="", help="The text, instead of a file.")
@click.option(
    *("-c", "--category", "categories"),
    multiple=True,
    help="Where it belongs; repeatable.",
    shell_complete=completion.categories,
)
@click.option(
    "--tag", "tags", multiple=True, help="A tag; repeatable.", shell_complete=completion.tags
)
@click.option(
    *("--type", "type_"),
    default="",
    help="code_pattern, bug_fix, architecture, project_rule.",
    shell_complete=completion.types,
)
@click.pass_obj
def add_command(
    named: str | None,
    source: str | None,
    title: str,
    text: str,
    categories: tuple[str, ...],
    tags: tuple[str, ...],
    type_: str,
) -> None:
    """Put a lesson into the vault and print its path.

    FILE is markdown; `-` reads stdin.
    """
    vault = client.open_vault(named)
    values = {"text": _source(source, title, text).decode("utf-8", "surrogateescape")}
    given = {"title": title, "categories": categories, "tags": tags, "type": type_}
    added = asking.ask(named, "add", {**values, **given})
    output.say(from_here(Path(added["path"]), vault.root))


def _source(source: str | None, title: str, text: str) -> bytes:
    if text:
        return text.encode()
    if source and source != "-":
        try:
            return Path(source).read_bytes()
        except OSError as error:
            raise VaultError(f"{source} cannot be read: {error.strerror}") from None
    if source is None and (not title or sys.stdin.isatty()):
        raise click.UsageError("name a FILE, `-` for stdin, or pass --title and --text")
    return sys.stdin.buffer.read()


@click.command("list", epilog="Example: lessons list -c devops --sort updated -n 20")
@click.option("-c", "--category", help="Only in or below it.", shell_complete=completion.categories)
@click.option("--tag", help="Only with this tag.", shell_complete=completion.tags)
@click.option(
    *("--type", "type_"),
    help="Only of this type: code_pattern, bug_fix, architecture, project_rule.",
    shell_complete=completion.types,
)
@click.option("--since", metavar="DATE", help="Only new or changed since: 2026-03-31, or 30d, 8w.")
@click.option(
    "--sort",
    default="id",
    show_default=True,
    type=click.Choice(["id", "title", "created", "updated", "confidence"]),
    help="Latest or highest first.",
)
@click.option("--reverse", is_flag=True, help="The other way round.")
@click.option("-n", "--limit", type=click.IntRange(1), help="How many; without: all.")
@click.option("--page", default=1, type=click.IntRange(1), help="Which page, each of -n lessons.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def list_command(
    named: str | None,
    category: str | None,
    tag: str | None,
    type_: str | None,
    since: str | None,
    sort: str,
    reverse: bool,
    limit: int | None,
    page: int,
    as_json: bool,
) -> None:
    """List the lessons."""
    if page > 1 and limit is None:
        raise click.UsageError("--page needs -n: how many a page has")
    values: dict[str, Any] = {
        "category": category,
        "tag": tag,
        "type": type_,
        "since": output.since(since) if since else "",
        "order": sort,
        "reverse": reverse,
        "limit": limit,
        "offset": (limit or 0) * (page - 1),
    }
    entries = asking.ask(named, "list", values, names_only=not as_json)["entries"]
    if as_json:
        output.json(entries)
        return
    if not sys.stdout.isatty():
        output.rows((entry["id"], output.TAB, entry["title"]) for entry in entries)
        return
    lines = [(output.styled(entry["id"], dim=True), "  ", entry["title"]) for entry in entries]
    output.rows(lines)


@click.command("show", epilog="Example: lessons show devops/ci-cd/node-heap-out-of-memory")
@completion.lesson(required=False)
@click.option("--at", metavar="REV", help="As it was at a commit, tag or date; deleted ones, too.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def show_command(named: str | None, lesson_id: str | None, at: str | None, as_json: bool) -> None:
    """Print one lesson.

    ID is its id, its path from here or from the vault, or the end of either. The beginning of such an
    end is enough, if it is that of one lesson only. Without ID you pick one.
    """
    from vault_index.lesson.category import marked

    lesson_id = lesson_id or asking.pick(named)
    if at is None:
        try:
            entry = asking.entry(named, lesson_id, prompts=as_json)
        except VaultError as error:
            raise _as_deleted(named, lesson_id, error) from None
    else:
        values = {"name": client.name_in_vault(named, lesson_id)}
        entry = asking.ask_as_of(named, at, "show", values)["entry"]
    outcome = {} if at else asking.ask(named, "outcome", {"id": entry["id"]}, as_is=True)["outcome"]
    if as_json:
        entry |= {"outcome": outcome} if outcome else {}
        entry.pop("file_hash", None)
        output.json(entry)
        return
    output.say(output.styled(entry["title"], bold=True))
    by = entry["author"] or "not committed"
    when = entry["updated_at"] or entry["created_at"]
    filed = ", ".join(marked(entry["categories"], entry["filed_by"]))
    output.say(f"[{filed}] {entry['path']} · {by}" + (f", {when[:10]}" if when else ""))
    if outcome and outcome["injected"]:
        output.say(status.outcome_line(outcome))
    if entry["withheld"]:
        asking.note(f"warning: hooks leave it out: {entry['withheld']}")
    output.say()
    output.text(entry["text"])


def _as_deleted(named: str | None, lesson_id: str, error: VaultError) -> VaultError:
    """Return an error that says in which commit a lesson was deleted, if it was; else the same error."""
    from vault_index.share import history

    if not error.message.startswith("no lesson "):
        return error
    gone = history.deleted(client.open_vault(named), client.name_in_vault(named, lesson_id))
    if gone is None:
        return error
    commit, id, _ = gone
    message = f"{id} was deleted in commit {commit[:10]}"
    return VaultError(message, f"lessons show {id} --at {commit[:10]}~")


@click.command("edit", epilog="Example: lessons edit node-heap-out-of-memory")
@completion.lesson(required=False)
@click.pass_obj
def edit_command(named: str | None, lesson_id: str | None) -> None:
    """Open a lesson's file in your editor.

    The editor is $VISUAL, $EDITOR, git's, or vi. Without ID you pick a lesson.
    """
    import shlex
    import subprocess

    from vault_index import check, client, files
    from vault_index.lesson import parse

    vault = client.open_vault(named)
    entry = asking.entry(named, lesson_id or asking.pick(named), names_only=True, prompts=False)
    file = vault.root / entry["path"]
    files.refuse_links(file, vault.root)
    command = reviewing.command_of(vault.root)
    try:
        done = subprocess.run([*shlex.split(command), str(file)], check=False)
    except (OSError, ValueError) as error:
        message = f"cannot run the editor {command!r}: {error}"
        raise VaultError(message, "set EDITOR") from None
    if done.returncode != 0:
        raise VaultError(f"the editor {command!r} ended with {done.returncode}")
    try:
        data = file.read_bytes()
        parse.parse_file(data, entry["path"])
    except OSError:
        asking.note(f"{entry['path']} is gone")
        return
    except VaultError as error:
        asking.note(f"warning: {error}: the index keeps its last good text")
        return
    wrong = check.first_error(entry["path"].partition("/")[2], data)
    if wrong:
        asking.note(f"warning: {wrong}")


@click.command("rm", epilog="Example: lessons rm staging-deploys-need-the-vpn --yes")
@completion.lesson()
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.pass_obj
def rm_command(named: str | None, lesson_id: str, yes: bool) -> None:
    """Delete a lesson, its file or its section, after asking."""
    from vault_index.search import entries

    entry = asking.entry(named, lesson_id, names_only=True, prompts=False)
    if yes and entries.is_beginning(lesson_id, entry["id"], entry["path"]):
        hint = f"lessons rm {entry['id']} --yes"
        raise VaultError(f"{lesson_id!r} is only the beginning of a name", hint)
    if not yes:
        if not sys.stdin.isatty():
            raise VaultError(f"{entry['id']} is not deleted without asking", "pass --yes")
        if not output.confirm(f"delete {entry['title']!r} ({entry['path']})?"):
            asking.note("nothing deleted")
            return
    deleted = asking.ask(named, "delete", {"name": entry["id"], "shown": entry})
    kept = ", with its file" if deleted["removed"] else ""
    output.say(f"deleted {entry['id']}{kept}")


@click.command("stale", epilog="Example: lessons stale")
@json_option
@click.pass_obj
def stale_command(named: str | None, as_json: bool) -> None:
    """List lessons that only cost, or whose subject is gone.

    A lesson is listed when agents contradict it or never take its advice, or when a file, a name of the
    code or a version that it cites is gone or has changed much since it was last confirmed. Nothing is
    deleted: each line says why, and what to do.
    """
    answer = asking.ask(named, "stale")
    if as_json:
        output.json(answer)
        return
    if not answer["reasons"]:
        output.say("no lesson needs another look")
    for reason in answer["reasons"]:
        output.say(f"{reason['path']}: {reason['why']}")
        output.say(f"  {reason['do']}")
    if answer["reasons"]:
        asking.note(f"{count(answer['lessons'], 'lesson')}; if it still holds: lessons confirm ID")
    if answer["waiting"]:
        asking.note(f"{count(answer['waiting'], 'session')} not judged yet: run it again")


@click.command("confirm", epilog="Example: lessons confirm devops/ci-cd/node-heap-out-of-memory")
@click.argument(
    "lesson_ids", metavar="ID...", nargs=-1, required=True, shell_complete=completion.ids
)
@json_option
@click.pass_obj
def confirm_command(named: str | None, lesson_ids: tuple[str, ...], as_json: bool) -> None:
    """Note in lessons that they hold; give held ones to agents.

    It writes `confirmed: DATE` into the frontmatter, of a section into that of its whole file. From
    then on `lessons stale` compares a lesson with the repository of that day. A lesson that hooks hold
    back, because it reads like orders to an agent, they give again: to your agents, for this text.
    """
    names = [client.name_in_vault(named, lesson_id) for lesson_id in lesson_ids]
    answer = asking.ask(named, "confirm", {"names": names})
    if as_json:
        output.json(answer)
    else:
        for lesson in answer["confirmed"]:
            said = "confirmed" if lesson["changed"] else "was confirmed today already:"
            output.say(f"{said} {lesson['id']}")
            if lesson["released"]:
                output.say(f"agents get it from now on: {lesson['path']}")
    if answer["failed"]:
        hint = "correct these files, then confirm them again"
        raise VaultError("; ".join(answer["failed"]), hint)
