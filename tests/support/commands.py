"""The real command line and hook, through their entry points."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.places import REPO
from tests.support.warm import WarmProcess

BIN = Path(sys.executable).parent
WARM = WarmProcess()


@dataclass(frozen=True)
class Ran:
    """What a command printed and how it ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def run(
    *command: str | Path,
    cwd: Path,
    stdin: str = "",
    env: Mapping[str, str] | None = None,
    check: bool = True,
    timeout: float = 120,
) -> Ran:
    """Run a program with a clean environment; `lessons` and `lessons-hook` are the installed ones.

    `lessons` is a fork of a warm process, unless what it does at its start matters to the test.
    """
    words = [str(word) for word in command]
    if words[0] in ("lessons", "lessons-hook"):
        words[0] = str(BIN / words[0])
    environ = {**os.environ, **(env or {})}
    if command[0] == "lessons" and not _needs_own_start(words, env or {}):
        done = WARM.run(words, cwd=cwd, stdin=stdin, env=environ, timeout=timeout)
    else:
        done = subprocess.run(
            words,
            cwd=cwd,
            input=stdin,
            env=environ,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=timeout,
            check=False,
        )
    if check:
        assert done.returncode == 0, (
            f"{words} ended with {done.returncode}: {done.stderr or done.stdout}"
        )
    return Ran(done.returncode, done.stdout, done.stderr)


def run_python(code: str, *words: str | Path, stdin: str = "") -> Ran:
    """Run code as `python -c` does, in a fork of the warm process: what it imports is there."""
    command = [sys.executable, "-c", code, *map(str, words)]
    done = WARM.run(command, cwd=REPO, stdin=stdin, env=os.environ, timeout=120)
    return Ran(done.returncode, done.stdout, done.stderr)


def path_with_forks() -> str:
    """Return a `PATH` in which `lessons` is a fork of the warm process, and `lessons-hook` the real one.

    For shells, git and terminals in tests of what a command does, not of how it starts.
    """
    return f"{WARM.bin(BIN / 'lessons')}:{BIN}:/usr/bin:/bin"


def _needs_own_start(words: Sequence[str], env: Mapping[str, str]) -> bool:
    """Whether a command stays in the background, or what it reads at its start is another."""
    return "watch" in words or any(
        name == "PATH" or name.startswith(("PYTHON", "LC_", "LANG")) for name in env
    )
