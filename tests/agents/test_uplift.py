"""The harness of `benchmarks.uplift`: its traps catch, its arms differ, and it goes on where it ended."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
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
    assert (
        task["wrong"] not in task["text"] or task["right"] in task["text"] or "&&" in task["right"]
    )


def test_twelve_tasks_have_names_and_prompts_of_their_own() -> None:
    assert len(TASKS) == 12
    assert len({task["name"] for task in TASKS}) == len({task["prompt"] for task in TASKS}) == 12


def test_the_table_compares_tasks_and_leaves_out_other_runs() -> None:
    there = {
        f"{task}-{arm}-0": {"arm": uplift.ARMS[arm], "passed": arm > 0, "dollars": 0.5}
        for task in ("a", "b", "c")
        for arm in range(3)
    }
    wanted = {name for name in there if name[0] != "c"}
    rows = {what: figure for what, figure, _ in uplift.table(there, wanted)}
    assert rows["no lessons: passed of 2 runs"] == 0
    assert rows["lessons by hooks: passed of 2 runs"] == 2
    assert any("more than without" in what and figure == 100 for what, figure in rows.items())


def test_an_interval_over_tasks_narrows_and_holds_what_is_in_doubt() -> None:
    few, many = (uplift.interval(np.array([1.0, 0.0] * n)) for n in (2, 40))
    assert few[0] < many[0] < 0.5 < many[1] < few[1]
    assert uplift.interval(np.zeros(12))[0] < 0 < uplift.interval(np.zeros(12))[1]


@pytest.mark.claude_code
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_run_with_the_real_agent_goes_on_where_it_ended(claude: Path, tmp_path: Path) -> None:
    for _ in range(2):
        said = one_task("claude", claude, tmp_path)
        assert len((tmp_path / "results.jsonl").read_text().splitlines()) == 3
    assert "more than without" not in said  # one task has no interval


def one_task(agent: str, program: Path, folder: Path) -> str:
    """Run the three arms of the first task; return what is printed."""
    words = ["--agent", agent, "--program", str(program), "--scripted", "--tasks", "1"]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.uplift", str(folder), *words],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    lines = (folder / "results.jsonl").read_text().splitlines()
    passed = {each["arm"]: each["passed"] for each in map(json.loads, lines)}
    assert passed == {uplift.NONE: False, uplift.HOOKS: True, uplift.PASTED: True}
    return done.stdout
