"""The real command line and hook, through their entry points."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from vault_index.entrypoints.cli import main
from vault_index.entrypoints.cli.context import Console

BIN = Path(sys.executable).parent
PATH = f"{BIN}:/usr/bin:/bin"  # of shells, git and terminals: both programs are in it
# they serve, or go on in the background
OF_A_PROCESS = {"hook", "mcp", "open", "serve", "watch"}


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

    `lessons` runs in this process: one of its own takes a third of a second to start, and a second
    to load LanceDB.
    """
    words, more = [str(word) for word in command], env or {}
    if words[0] in ("lessons", "lessons-hook"):
        words[0] = str(BIN / words[0])
    if command[0] == "lessons" and not _needs_a_process(words, more):
        done = _run_here(words, cwd, stdin, more)
    else:
        ended = subprocess.run(
            words, cwd=cwd, input=stdin, env={**os.environ, **more}, capture_output=True,
            text=True, encoding="utf-8", timeout=timeout, check=False,
        )  # fmt: skip
        done = Ran(ended.returncode, ended.stdout, ended.stderr)
    assert not (check and done.code), f"{words} ended with {done.code}: {done.err or done.out}"
    return done


def typed(line: str, *, cwd: Path, check: bool = True) -> Ran:
    """Run a line as a shell does; `lessons` needs none, by itself or with a text from `echo`."""
    if alone := re.fullmatch(r"(?:(echo .+) \| )?(lessons\b[^|<>&$~*`]*)", line):
        stdin = run("bash", "-c", alone[1], cwd=cwd).out if alone[1] else ""
        return run(*shlex.split(alone[2]), cwd=cwd, stdin=stdin, check=check)
    return run("bash", "-c", f'PATH="{BIN}:$PATH"; {line}', cwd=cwd, check=check)


def lessons(*words: str | Path, stdin: str = "", code: int = 0) -> Result:
    """Type `lessons ...` in the current folder of this process, and check how it ends."""
    result = CliRunner().invoke(main, [str(word) for word in words], input=stdin)
    assert result.exit_code == code, result.output
    return result


def _needs_a_process(words: Sequence[str], env: Mapping[str, str]) -> bool:
    """Whether a command goes on, runs beside others, or reads something else at its start."""
    is_beside = threading.current_thread() is not threading.main_thread()
    reads_at_start = any(name.startswith(("PATH", "PYTHON", "LC_", "LANG")) for name in env)
    return is_beside or reads_at_start or not OF_A_PROCESS.isdisjoint(words)


def _run_here(words: list[str], cwd: Path, stdin: str, env: Mapping[str, str]) -> Ran:
    """Run `lessons` in this process, with a folder, an environment and streams of its own."""
    given = io.TextIOWrapper(io.BytesIO(stdin.encode()), encoding="utf-8")
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    with pytest.MonkeyPatch.context() as patch, contextlib.chdir(cwd):
        for name, value in env.items():
            patch.setenv(name, value)
        for name, stream in (("stdin", given), ("stdout", out), ("stderr", err), ("argv", words)):
            patch.setattr(sys, name, stream)
        patch.setattr(threading, "excepthook", threading.excepthook)  # which `main` sets
        patch.setattr(Console, "noted", set())  # of one command
        with pytest.raises(SystemExit) as ended:
            main(words[1:], prog_name="lessons")
    printed = []
    for stream in (out, err):
        stream.flush()
        stream.seek(0)
        printed.append(stream.read())
    return Ran(int(ended.value.code or 0), *printed)
