"""Which `claude` is the user's, and how that version is started without all that it can do beside."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from vault_index import files
from vault_index.errors import ModelAwayError, WriteError

FILE = "claude.json"
HELP_SECONDS = 30.0
# where its installers put it: programs of a desktop have a short PATH
_PLACES = (".local/bin/claude", ".claude/local/claude")
_ALWAYS = ("--tools", "--system-prompt", "--strict-mcp-config", "--no-session-persistence")
_LEAN = ("--tools=", "--strict-mcp-config", "--no-session-persistence")
# The first keeps a login that the user's settings name; both leave out hooks and CLAUDE.md.
_WITHOUT_HOOKS = {"--safe-mode": "--safe-mode", "--setting-sources": "--setting-sources="}


def find(environ: Mapping[str, str]) -> Path | None:
    """Return the user's claude, None without one.

    Only whole paths of the `PATH` count: the others lead into the folder that someone works in.
    """
    folders = environ.get("PATH", os.defpath).split(os.pathsep)
    path = os.pathsep.join(folder for folder in folders if folder.startswith(os.sep))
    named = shutil.which("claude", path=path) if path else None
    if named:
        return Path(named)
    home = Path(environ.get("HOME") or Path.home())
    return next((home / place for place in _PLACES if os.access(home / place, os.X_OK)), None)


def lean(program: Path, environ: Mapping[str, str], folder: Path) -> list[str]:
    """Return the options that leave only a question and its answer, by the program's own help.

    They are kept in the private folder, since asking for help takes as long as a start. Raises
    ModelAwayError for a version that lacks one.
    """
    kept = _kept(folder / FILE)
    if kept.get("program") == _stamp(program) and kept.get("switch") in _WITHOUT_HOOKS.values():
        return [*_LEAN, str(kept["switch"])]
    switch = _switch(program, environ, folder)
    remember(program, switch, folder)
    return [*_LEAN, switch]


def remember(program: Path, switch: str, folder: Path) -> None:
    """Note which option leaves out hooks, for this version of the program."""
    data = json.dumps({"program": _stamp(program), "switch": switch}).encode()
    try:
        with files.writing(folder / FILE):
            files.replace_file(folder / FILE, data)
    except WriteError:  # then the help is read each time
        pass


def _stamp(program: Path) -> list[str | int]:
    """Return what is different after an update. Raises ModelAwayError."""
    try:
        program = program.resolve()
        now = program.stat()
    except OSError:
        raise _unusable("cannot be started", "reinstall Claude Code") from None
    return [str(program), now.st_size, now.st_mtime_ns]


def _switch(program: Path, environ: Mapping[str, str], folder: Path) -> str:
    """Return the option that leaves out hooks. Raises ModelAwayError."""
    try:
        done = subprocess.run(
            [program, "--help"],
            cwd=folder,
            env=environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=HELP_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        raise _unusable("cannot be started", "reinstall Claude Code") from None
    options = set(re.findall(r"--[a-z][a-z-]+", done.stdout.decode("utf-8", "replace")))
    if done.returncode or not options:
        raise _unusable("does not start", "run `claude --help` to see why")
    missing = [option for option in _ALWAYS if option not in options]
    switches = [switch for option, switch in _WITHOUT_HOOKS.items() if option in options]
    if missing or not switches:
        lacks = missing[0] if missing else "--safe-mode"
        raise _unusable(f"is too old: it lacks {lacks}", "run `claude update`")
    return switches[0]


def _kept(file: Path) -> dict[str, object]:
    try:
        kept = json.loads(file.read_bytes())
    except (OSError, ValueError):
        return {}
    return kept if isinstance(kept, dict) else {}


def _unusable(problem: str, hint: str) -> ModelAwayError:
    return ModelAwayError(f"claude {problem}", hint)
