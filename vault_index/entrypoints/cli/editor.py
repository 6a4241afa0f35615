"""The user's editor, for a file or for a text."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import click

from vault_index.errors import VaultError


def named_editor() -> str:
    """Return the editor that the environment names; "" without one."""
    named = (os.environ.get(name, "").strip() for name in ("VISUAL", "EDITOR"))
    return next(filter(None, named), "")


def _editor(root: Path) -> str:
    from vault_index import git

    chosen = named_editor() or git.editor(root)
    if not chosen and (shutil.which("vi") is None or not sys.stdin.isatty()):
        why = "vi is not installed" if shutil.which("vi") is None else "vi needs a terminal"
        hint = "set EDITOR to your editor, for example: export EDITOR=nano"
        raise VaultError(f"no editor is named and {why}", hint)
    return chosen or "vi"


def edit_file(file: Path, root: Path) -> None:
    """Open a file in the user's editor and wait until that ends. Raises VaultError."""
    chosen = _editor(root)
    try:
        done = subprocess.run([*shlex.split(chosen), str(file)], check=False)
    except (OSError, ValueError) as error:
        raise VaultError(f"cannot run the editor {chosen!r}: {error}", "set EDITOR") from None
    if done.returncode != 0:
        raise VaultError(f"the editor {chosen!r} ended with {done.returncode}")


def edit_text(text: str, root: Path) -> str | None:
    """Return a text as the user saved it in an editor; None if nothing was saved. Raises VaultError."""
    chosen = _editor(root)
    try:
        return click.edit(text, editor=chosen, extension=".md")
    except click.ClickException as error:
        raise VaultError(f"the editor {chosen!r} failed: {error.message}", "set EDITOR") from None
