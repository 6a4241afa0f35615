"""The harness of `benchmarks.uplift`: its traps catch who was not told."""

from __future__ import annotations

import subprocess
import tomllib
from pathlib import Path

import pytest

from benchmarks import uplift
from tests.support.files import write

TASKS = tomllib.loads(uplift.TASKS.read_text("utf-8"))["task"]


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task["name"])
def test_a_trap_catches_who_was_not_told(task: dict[str, str], tmp_path: Path) -> None:
    passes = {}
    for typed in ("right", "wrong"):
        folder = tmp_path / typed
        write(folder / "do", f"#!/bin/sh\n{task['script']}\n").chmod(0o755)
        for words in (task[typed], task["check"]):
            done = subprocess.run(["sh", "-c", words], cwd=folder, check=False)
        passes[typed] = done.returncode == 0
    assert passes == {"right": True, "wrong": False}
