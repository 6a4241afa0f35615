"""The program that agents run for us: where it is, and whether they will find it."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path

from vault_index.errors import SettingsError

COMMAND = "lessons-hook"


def why_not_found(command: str) -> str:
    """Return why an agent or git may not find a command; "" if it will.

    They start from anywhere, so the PATH of an active virtual environment does not count.
    """
    active = os.environ.get("VIRTUAL_ENV")
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    lasting = [folder for folder in folders if not active or Path(folder).parent != Path(active)]
    if shutil.which(command, path=os.pathsep.join(lasting)):
        return ""
    if shutil.which(command):
        return f"{command} is on the PATH only while the environment {active} is active"
    return f"{command} is not on the PATH"


def path_command() -> str:
    """Return the shell command that puts our commands on the PATH for good."""
    here = Path(sys.argv[0]).absolute().parent
    here = here if (here / COMMAND).is_file() else Path(sys.executable).parent
    own = Path.home() / ".local" / "bin"
    linked = " ".join(shlex.quote(str(here / name)) for name in ("lessons", COMMAND))
    link = f"mkdir -p {shlex.quote(str(own))} && ln -sf {linked} {shlex.quote(str(own))}/"
    on_path = str(own) in os.environ.get("PATH", "").split(os.pathsep)
    return link if on_path else f'{link} && export PATH="{own}:$PATH"'


def hook_command(shared: bool) -> str:
    """Return the command that agents should run: its name if it is `shared` and on the PATH.

    Otherwise its full path, which is found from any environment.
    """
    beside = Path(sys.argv[0]).absolute().parent / COMMAND
    on_path = shutil.which(COMMAND)
    if shared and on_path:
        return COMMAND
    script = (
        str(beside) if beside.is_file() else on_path or str(Path(sys.executable).parent / COMMAND)
    )
    if not Path(script).is_file():
        raise SettingsError(
            f"{COMMAND} is not installed beside this command", "reinstall the package"
        )
    return script
