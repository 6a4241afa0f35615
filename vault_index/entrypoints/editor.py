"""The user's editor: for a file at a terminal, beside a server, or for a text."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import click

from vault_index import git
from vault_index.errors import VaultError

# editors with a window of their own; any other needs the terminal that a server does not have
WITH_WINDOW = frozenset(
    "bbedit code code-insiders codium cursor gedit geany gnome-text-editor gvim idea kate kwrite leafpad"
    " mate mousepad mvim notepadqq pluma pycharm subl sublime_text windsurf xed zed zeditor".split()
)


def command(root: Path) -> str:
    """Return the command of the user's editor. Raises VaultError without one."""
    named = (os.environ.get(name, "").strip() for name in ("VISUAL", "EDITOR"))
    chosen = next(filter(None, named), "") or git.editor(root)
    if not chosen and (shutil.which("vi") is None or not sys.stdin.isatty()):
        why = "vi is not installed" if shutil.which("vi") is None else "vi needs a terminal"
        hint = "set EDITOR to your editor, for example: export EDITOR=nano"
        raise VaultError(f"no editor is named and {why}", hint)
    return chosen or "vi"


def edit_file(file: Path, root: Path) -> None:
    """Open a file in the user's editor and wait until that ends. Raises VaultError."""
    chosen = command(root)
    try:
        done = subprocess.run([*shlex.split(chosen), str(file)], check=False)
    except (OSError, ValueError) as error:
        raise VaultError(f"cannot run the editor {chosen!r}: {error}", "set EDITOR") from None
    if done.returncode != 0:
        raise VaultError(f"the editor {chosen!r} ended with {done.returncode}")


def open_window(file: Path, root: Path) -> bool:
    """Open a file in the user's editor beside this process; False where that needs a terminal."""
    try:
        words = shlex.split(command(root))
        if not words or Path(words[0]).name not in WITH_WINDOW:
            return False
        nowhere: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
        process = subprocess.Popen([*words, str(file)], start_new_session=True, **nowhere)
    except (VaultError, OSError, ValueError):
        return False
    threading.Thread(target=process.wait, daemon=True, name="editor").start()
    return True


def edit(text: str, root: Path) -> str | None:
    """Return a text as the user saved it in an editor; None if nothing was saved. Raises VaultError."""
    chosen = command(root)
    try:
        return click.edit(text, editor=chosen, extension=".md")
    except click.ClickException as error:
        raise VaultError(f"the editor {chosen!r} failed: {error.message}", "set EDITOR") from None
