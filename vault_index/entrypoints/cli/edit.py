"""`lessons edit`."""

from __future__ import annotations

import click

from vault_index.entrypoints.cli import asking, completion, editor
from vault_index.errors import VaultError


@click.command("edit", epilog="Example: lessons edit node-heap-out-of-memory")
@completion.lesson(required=False)
@click.pass_obj
def command(named: str | None, lesson_id: str | None) -> None:
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
    command = editor.command_of(vault.root)
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
