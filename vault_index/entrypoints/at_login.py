"""The file by which systemd (Linux) or launchd (macOS) has the page served from the login on.

It starts `lessons serve --background`, and ends that server when it is taken out of force.
"""

from __future__ import annotations

import os
import plistlib
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from vault_index import files
from vault_index.errors import VaultError
from vault_index.hotpath import protocol

UNIT, LABEL = "lessons.service", "lessons-vault.lessons"
ASK_SECONDS = 60  # for a service manager to start the server


@dataclass(frozen=True, slots=True)
class LoginFile:
    """A file of the user's service manager, and the commands that put it in force and out of it."""

    path: Path
    text: str
    enable: tuple[tuple[str, ...], ...]
    disable: tuple[str, ...]

    def write(self) -> None:
        with files.writing(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            files.replace_file(self.path, self.text.encode())

    def remove(self) -> bool:
        """Remove it, out of force first. Whether it was there. Raises WriteError."""
        if not os.path.lexists(self.path):
            return False
        if works():
            _run(self.disable)
        with files.writing(self.path):
            self.path.unlink()
        return True

    def put_in_force(self) -> str:
        """Have the service manager start it now and at each login; return why not, or ""."""
        if not works():
            return "no service manager of yours answers here"
        for words in self.enable:
            if trouble := _run(words):
                return trouble
        return ""


def login_file(root: Path, port: int) -> LoginFile:
    """Return the file for a vault. Raises VaultError on a system that has neither manager."""
    words = [sys.executable, "-P", "-m", "vault_index", "--vault", str(root), "serve"]
    environ = protocol.settings_of(os.environ)
    if sys.platform == "darwin":
        path = Path.home() / "Library/LaunchAgents" / f"{LABEL}.plist"
        domain = f"gui/{os.getuid()}"
        text = plistlib.dumps(
            {
                "Label": LABEL,
                "ProgramArguments": [*words, "--background", "--port", str(port)],
                "EnvironmentVariables": environ,
                "RunAtLoad": True,
                "AbandonProcessGroup": True,  # the server goes on when the command has ended
            }
        ).decode()
        enable = (("launchctl", "bootstrap", domain, str(path)),)
        return LoginFile(path, text, enable, ("launchctl", "bootout", f"{domain}/{LABEL}"))
    if sys.platform != "linux":
        hint = "run `lessons serve --background` at login"
        raise VaultError(f"--at-login knows no service manager of {sys.platform}", hint)
    folder = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    control = ("systemctl", "--user")
    return LoginFile(
        folder / "systemd/user" / UNIT,
        _unit(words, environ, port),
        ((*control, "daemon-reload"), (*control, "enable", "--now", UNIT)),
        (*control, "disable", "--now", UNIT),
    )


def _unit(words: list[str], environ: dict[str, str], port: int) -> str:
    """Return a unit that is over once the server listens, and stays in force; see systemd.service(5)."""
    command = ":" + " ".join(map(_quoted, words))  # with the colon a dollar is a dollar
    settings = [f"Environment={_quoted(f'{name}={value}')}" for name, value in environ.items()]
    lines = [
        "[Unit]",
        "Description=The page of a vault of lessons",
        "",
        "[Service]",
        "Type=oneshot",
        "RemainAfterExit=yes",
        "KillMode=process",  # ExecStop ends the server
        *settings,
        f"ExecStart={command} --background --port {port}",
        f"ExecStop={command} --stop",
        "",
        "[Install]",
        "WantedBy=default.target",
    ]
    return "".join(f"{line}\n" for line in lines)


def _quoted(word: str) -> str:
    def escaped(found: re.Match[str]) -> str:
        return "".join(f"\\x{byte:02x}" for byte in os.fsencode(found[0]))

    return '"' + re.sub(r"[^ !#-\[\]-~]", escaped, word).replace("%", "%%") + '"'


def works() -> bool:
    """Whether the user's service manager answers, which a container lacks."""
    if sys.platform == "darwin":
        return shutil.which("launchctl") is not None
    asked = ("systemctl", "--user", "show-environment")
    return shutil.which("systemctl") is not None and not _run(asked)


def _run(words: tuple[str, ...]) -> str:
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, check=False, timeout=ASK_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    printed = (done.stderr or done.stdout).strip()
    return "" if done.returncode == 0 else printed or f"{words[0]} ended with {done.returncode}"
