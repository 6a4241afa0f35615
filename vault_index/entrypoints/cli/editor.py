"""The user's editor."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from vault_index.errors import VaultError


def command_of(root: Path) -> str:
    """Return the command of the user's editor. Raises VaultError without one."""
    import shutil

    from vault_index import git

    named = (os.environ.get(name, "").strip() for name in ("VISUAL", "EDITOR"))
    command = next(filter(None, named), "") or git.editor(root)
    if not command and (shutil.which("vi") is None or not sys.stdin.isatty()):
        why = "vi is not installed" if shutil.which("vi") is None else "vi needs a terminal"
        hint = "set EDITOR to your editor, for example: export EDITOR=nano"
        raise VaultError(f"no editor is named and {why}", hint)
    return command or "vi"


def edited(text: str, root: Path) -> str | None:
    """Return a text as the user saved it in an editor; None if nothing was saved. Raises VaultError."""
    command = command_of(root)
    try:
        return click.edit(text, editor=command, extension=".md")
    except click.ClickException as error:
        raise VaultError(f"the editor {command!r} failed: {error.message}", "set EDITOR") from None
