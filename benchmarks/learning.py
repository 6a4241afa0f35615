"""Measure `lessons learn` without a model, on a session of 500 tool calls in a repository of 300 files.

    python -m benchmarks.learning

The whole command is timed, in a process of its own: reading the transcript, the diff from the commit at
the session's start, the significance, the entries by rule, their comparison with the vault's lessons.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from benchmarks import instruments
from benchmarks.instruments import Row
from tests.support.conversations import Conversation
from tests.support.files import write
from tests.support.projects import a_project, a_vault, taken

TURNS, EDITS = 50, 7  # with three commands a turn: 500 tool calls
FILES = 300
REPEATS = 5


def main() -> None:
    """Run the measurement and print the rows."""
    with tempfile.TemporaryDirectory(prefix="lessons-sessions-") as scratch:
        home = Path(scratch) / "home"
        home.mkdir()
        person = {"AUTHOR": "Ada", "COMMITTER": "Ada"}
        os.environ |= {f"GIT_{role}_NAME": name for role, name in person.items()}
        os.environ |= {f"GIT_{role}_EMAIL": "ada@example.org" for role in person}
        os.environ |= {"HOME": str(home), "LESSONS_HOME": str(home / ".lessons")}
        os.environ |= {"LESSONS_WATCH_AUTOSTART": "false", "LESSONS_EMBEDDER": "none"}
        list(instruments.shown(rows(Path(scratch))))


def rows(scratch: Path) -> Iterator[Row]:
    """Time the command on a long session."""
    contents = {f"src/m{number}.py": "x = 1\n" * 200 for number in range(FILES)}
    project = a_project(scratch / "shop", contents)
    vault = a_vault(project)
    talk = _long_session(project)
    for number in range(FILES * 2 // 3):
        write(project / f"src/m{number}.py", "y = 2\n" * 100 + "x = 1\n" * 100)
    session = taken(talk)
    command = [sys.executable, "-m", "vault_index", "learn", "--session", session, "--dry-run"]
    command += ["--json"]
    subprocess.run([sys.executable, "-m", "vault_index", "index"], cwd=vault.root, check=True,
                   capture_output=True)  # fmt: skip
    times = [_seconds(command, project) for _ in range(REPEATS)]
    bare = [_seconds([sys.executable, "-c", "pass"], project) for _ in range(REPEATS)]
    done = subprocess.run(command, cwd=project, check=True, capture_output=True, text=True)
    points = json.loads(done.stdout)["significance"]["points"]
    yield "significance of the session", points, "points"
    yield "lessons learn --dry-run, 500 tool calls: median", statistics.median(times), "s"
    yield "the same, in starts of Python", statistics.median(times) / statistics.median(bare), ""
    times = [_seconds([*command[:-2], "--again"], project) for _ in range(REPEATS)]
    yield "lessons learn, with its proposals: median", statistics.median(times), "s"
    yield "the same, in starts of Python", statistics.median(times) / statistics.median(bare), ""


def _seconds(command: list[str], folder: Path) -> float:
    began = time.perf_counter()
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return time.perf_counter() - began


def _long_session(project: Path) -> Conversation:
    talk = Conversation(project, "long", began=datetime.now(UTC))
    for turn in range(TURNS):
        talk.asks(f"Improve module {turn} of the shop: it fails when the cart is empty")
        talk.says("I look at the module and its tests first. " * 10)
        failing = "Error: wrong total\n" + "a line of output that is long enough\n" * 200
        talk.runs("pytest -q tests", failing, failed=True)
        for edit in range(EDITS):
            path = f"src/m{(turn * EDITS + edit) % FILES}.py"
            talk.edits(path, "x = 1\n" * 40, "y = 2\n" * 40)
        talk.runs("cat src/m1.py", "x = 1\n" * 400)
        talk.runs("pytest -q tests", "1 passed\n" * 200)
        talk.says("`total()` ignores the tax, as `RATE` is read before the settings. " * 3)
    return talk


if __name__ == "__main__":
    main()
