"""`lessons add`, `list`, `show`, `edit`, `rm`, `log`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import click

from vault_index.entrypoints.cli import completion, moments, output, picker, ready
from vault_index.errors import VaultError


@click.command(
    epilog='Example: echo "Raise the heap." | lessons add --title "Heap" -c devops/ci-cd -'
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
def add(
    named: str | None,
    source: str | None,
    title: str,
    text: str,
    categories: tuple[str, ...],
    tags: tuple[str, ...],
    type_: str,
) -> None:
    """Put a lesson into the vault and print its path. FILE is markdown, `-` reads stdin."""
    from vault_index import add as adding

    vault = ready.open_vault(named)
    data = _source(source, title, text)
    path = adding.write(vault, data, title=title, categories=categories, tags=tags, type=type_)
    output.say(_from_here(path, vault.root))


def _from_here(path: Path, root: Path) -> str:
    """Return a path in the vault from the current folder; an absolute one from outside the vault."""
    base = Path(os.path.realpath(root))
    try:
        here = Path.cwd()
    except OSError:  # it was deleted
        return str(path)
    if here != base and base not in here.parents:
        return str(path)
    return os.path.relpath(base / path.relative_to(root), here)


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
@click.option("--page", default=1, type=click.IntRange(1), help="Which page of so many.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def list_(
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
    how: dict[str, Any] = {
        "tag": tag,
        "type": type_,
        "order": sort,
        "reverse": reverse,
        "limit": limit,
    }
    if page > 1 and limit is None:
        raise click.UsageError("--page needs -n: how many a page has")
    how["offset"] = (limit or 0) * (page - 1)
    how["since"] = moments.since(since) if since else ""
    entries = ready.ask(named, "list", names_only=not as_json, category=category, **how)["entries"]
    if as_json:
        output.json(entries)
        return
    if not sys.stdout.isatty():
        output.rows((entry["id"], output.TAB, entry["title"]) for entry in entries)
        return
    lines = [(output.styled(one["id"], dim=True), "  ", one["title"]) for one in entries]
    output.rows(lines)


@click.command(epilog="Example: lessons show devops/ci-cd/node-heap-out-of-memory")
@completion.lesson(required=False)
@click.option("--at", metavar="REV", help="As it was at a commit, tag or date; deleted ones, too.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def show(named: str | None, lesson_id: str | None, at: str | None, as_json: bool) -> None:
    """Print one lesson. ID is its id, its path from here or from the vault, or the end of either.

    The end is enough, or its beginning, if it is that of one lesson only. Without ID you pick one.
    """
    from vault_index.categories import marked

    lesson_id = lesson_id or picker.pick(named)
    if at is None:
        try:
            entry = ready.entry(named, lesson_id, prompts=as_json)
        except VaultError as error:
            raise _as_deleted(named, lesson_id, error) from None
    else:
        entry = _as_it_was(named, lesson_id, at)
    if as_json:
        entry.pop("file_hash", None)
        output.json(entry)
        return
    output.say(output.styled(entry["title"], bold=True))
    by = entry["author"] or "not committed"
    when = entry["updated_at"] or entry["created_at"]
    filed = ", ".join(marked(entry["categories"], entry["filed_by"]))
    output.say(f"[{filed}] {entry['path']} · {by}" + (f", {when[:10]}" if when else ""))
    if entry["withheld"]:
        ready.note(f"warning: hooks leave it out: {entry['withheld']}")
    output.say()
    output.text(entry["text"])


def _as_it_was(named: str | None, lesson_id: str, revision: str) -> Any:
    """Return a lesson as a commit had it."""
    from vault_index import history
    from vault_index.entrypoints import requests

    vault = ready.open_vault(named)
    past, commit = history.at(vault, revision)
    question = {"ask": "show", "with": {"name": ready.in_vault(named, lesson_id)}}
    read = requests.without_table(past, question)
    if read is None:  # nobody filed it, so the classifier is asked
        ready.bring_up_to_date(past)
    entry = read[0]["entry"] if read else requests.answer(past, question)["entry"]
    history.signed(vault, commit, [entry])
    return entry


def _as_deleted(named: str | None, lesson_id: str, error: VaultError) -> VaultError:
    """Return an error that says in which commit a lesson was deleted, if it was; else the same error."""
    from vault_index import history

    if not error.message.startswith("no lesson "):
        return error
    gone = history.deleted(ready.open_vault(named), ready.in_vault(named, lesson_id))
    if gone is None:
        return error
    commit, id, _ = gone
    message = f"{id} was deleted in commit {commit[:10]}"
    return VaultError(message, f"lessons show {id} --at {commit[:10]}~")


@click.command(epilog="Example: lessons edit node-heap-out-of-memory")
@completion.lesson(required=False)
@click.pass_obj
def edit(named: str | None, lesson_id: str | None) -> None:
    """Open a lesson's file in your editor: $VISUAL, $EDITOR, git's, or vi.

    Without ID you pick one.
    """
    import shlex
    import subprocess

    from vault_index import check, files, lesson

    vault = ready.open_vault(named)
    entry = ready.entry(named, lesson_id or picker.pick(named), names_only=True, prompts=False)
    file = vault.root / entry["path"]
    files.refuse_links(file, vault.root)
    command = _editor(vault.root)
    try:
        done = subprocess.run([*shlex.split(command), str(file)], check=False)
    except (OSError, ValueError) as error:
        raise VaultError(f"cannot run the editor {command!r}: {error}", "set EDITOR") from None
    if done.returncode != 0:
        raise VaultError(f"the editor {command!r} ended with {done.returncode}")
    try:
        data = file.read_bytes()
        lesson.parse_file(data, entry["path"])
    except OSError:
        ready.note(f"{entry['path']} is gone")
        return
    except VaultError as error:
        ready.note(f"warning: {error}: the index keeps what it said before")
        return
    wrong = check.first_error(entry["path"].partition("/")[2], data)
    if wrong:
        ready.note(f"warning: {wrong}")


def _editor(root: Path) -> str:
    """Return the command of the user's editor. Raises VaultError where there is none."""
    import shutil

    from vault_index import git

    named = (os.environ.get(name, "").strip() for name in ("VISUAL", "EDITOR"))
    command = next(filter(None, named), "") or git.editor(root)
    if not command and (shutil.which("vi") is None or not sys.stdin.isatty()):
        why = "vi is not installed" if shutil.which("vi") is None else "vi needs a terminal"
        hint = "set EDITOR to your editor, for example: export EDITOR=nano"
        raise VaultError(f"no editor is named and {why}", hint)
    return command or "vi"


@click.command(epilog="Example: lessons rm staging-deploys-need-the-vpn --yes")
@completion.lesson()
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.pass_obj
def rm(named: str | None, lesson_id: str, yes: bool) -> None:
    """Delete a lesson: its file, or its section of a file. It asks first."""
    from vault_index import delete, names

    vault = ready.open_vault(named)
    entry = ready.entry(named, lesson_id, names_only=True, prompts=False)
    if yes and names.is_beginning(lesson_id, entry["id"], entry["path"]):
        hint = f"lessons rm {entry['id']} --yes"
        raise VaultError(f"{lesson_id!r} is only the beginning of a name", hint)
    if not yes:
        if not sys.stdin.isatty():
            raise VaultError(f"{entry['id']} is not deleted without asking", "pass --yes")
        if not output.confirm(f"delete {entry['title']!r} ({entry['path']})?"):
            ready.note("nothing deleted")
            return
    path = delete.lesson(vault, entry["id"], shown=entry)
    kept = "" if path.exists() else ", with its file"
    output.say(f"deleted {entry['id']}{kept}")


@click.command(epilog="Example: lessons log devops/ci-cd/node-heap-out-of-memory")
@completion.lesson()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def log(named: str | None, lesson_id: str, as_json: bool) -> None:
    """Show who wrote and changed a lesson, when and why: the commits, newest first."""
    from dataclasses import asdict

    from vault_index import history

    vault = ready.open_vault(named)
    try:
        entry = ready.entry(named, lesson_id, names_only=True, prompts=False)
    except VaultError as error:
        gone = history.deleted(vault, ready.in_vault(named, lesson_id))
        if gone is None or not error.message.startswith("no lesson "):
            raise
        entry = {"id": gone[1], "path": gone[2]}
        ready.note(f"note: {gone[1]} was deleted in commit {gone[0][:10]}")
    edits = history.log(vault, entry["id"], entry["path"])
    if as_json:
        output.json([asdict(one) for one in edits])
        return
    for one in edits:
        commit = output.styled(one.commit[:10], dim=True)
        output.row(commit, f"  {one.when[:10]}  {one.who}: {one.why}")
    if not edits:
        ready.note(f"{entry['path']} is not committed")
