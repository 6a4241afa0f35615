"""Does an agent fall into fewer traps with lessons? Four arms, your own agent, twelve repositories.

    python -m benchmarks.uplift FOLDER --agent claude     # or codex; --rounds 3
    python -m benchmarks.uplift FOLDER --agent claude --scripted

Each repository of `uplift_tasks/tasks.toml` has a trap that a lesson describes, and a script that says
whether the agent fell into it. The arms: no lessons; a vault of all twelve behind the hooks; the same
twelve pasted into CLAUDE.md (AGENTS.md for codex); the vault again, but lines alone. Runs and what they
may cost are shown before the first; FOLDER keeps each run's result, so that a second call goes on where
the first ended.

With `--scripted` the model behind the real agent is a stub: it obeys a lesson that it was told and
repeats its mistake otherwise. That tests this harness, and is no figure about lessons.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import instruments
from benchmarks.instruments import LESSONS, Row

TASKS = Path(__file__).parent / "uplift_tasks" / "tasks.toml"
NONE, HOOKS, PASTED, LINES = ARMS = (
    *("no lessons", "lessons by hooks", "all in CLAUDE.md", "their lines by hooks"),
)
COMMANDS = {
    "claude": ("claude", "-p", "{prompt}", "--allowedTools", "Bash", "--output-format", "json"),
    "codex": (
        *("codex", "exec", "-c", 'projects={{"{folder}"={{trust_level="trusted"}}}}'),
        # the hooks are those that this harness has written a moment ago
        *("--sandbox", "workspace-write", "--dangerously-bypass-hook-trust", "{prompt}"),
    ),
}
PASTED_IN = {"claude": "CLAUDE.md", "codex": "AGENTS.md"}
ASSUMED_DOLLARS = 0.10  # of a run, until some were measured
MINUTES = 10  # of a run, at most
DRAWS, LEVEL = 10_000, 90
NOTE = "Work in this folder alone."


@dataclass(frozen=True)
class Run:
    """A task, an arm and a round, by which its result is kept."""

    task: Mapping[str, str]
    arm: str
    round: int

    @property
    def name(self) -> str:
        """The name of its folder and its result."""
        return f"{self.task['name']}-{ARMS.index(self.arm)}-{self.round}"


def main() -> None:
    """Run what is missing, and print the table."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--agent", choices=sorted(COMMANDS), default="claude")
    parser.add_argument("--program", help="the agent's program, where it is not on PATH")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--tasks", type=int, default=12, help="only the first so many")
    parser.add_argument("--scripted", action="store_true", help="a stub in place of a model")
    parser.add_argument("--yes", action="store_true", help="do not ask before the first run")
    asked = parser.parse_args()
    tasks = tomllib.loads(TASKS.read_text())["task"][: asked.tasks]
    runs = [Run(task, arm, n) for n in range(asked.rounds) for task in tasks for arm in ARMS]
    asked.folder.mkdir(parents=True, exist_ok=True)
    finished = results(asked.folder)
    missing = [run for run in runs if run.name not in finished]
    if missing and not (asked.scripted or asked.yes) and not agreed(missing, finished, asked.agent):
        return
    none: dict[str, str] = {}
    model: contextlib.AbstractContextManager[dict[str, str]] = contextlib.nullcontext(none)
    scripted = {"claude": scripted_claude, "codex": scripted_codex}[asked.agent]
    with scripted(tasks) if asked.scripted else model as variables:
        for run in missing:
            done = carry_out(asked.folder, tasks, run, asked.agent, asked.program, variables)
            with (asked.folder / "results.jsonl").open("a") as file:
                file.write(json.dumps({"run": run.name, "arm": run.arm, **done}) + "\n")
    list(instruments.shown(table(results(asked.folder), {run.name for run in runs})))


def results(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the results that a folder keeps, by the names of their runs."""
    file = folder / "results.jsonl"
    lines = file.read_text().splitlines() if file.exists() else []
    return {each["run"]: each for each in map(json.loads, lines)}


def agreed(missing: Sequence[Run], finished: Mapping[str, Mapping[str, Any]], agent: str) -> bool:
    """Show what the runs may cost, and ask."""
    measured = [each["dollars"] for each in finished.values() if each["dollars"]]
    each = sum(measured) / len(measured) if measured else ASSUMED_DOLLARS
    how = f"as {len(measured)} runs did" if measured else "an assumption"
    sys.stdout.write(
        f"{len(missing)} runs of {COMMANDS[agent][0]} on your account, up to {MINUTES} minutes each.\n"
        f"At ${each:.2f} a run, {how}, that is ${len(missing) * each:.2f}. Go on? [y/N] "
    )
    sys.stdout.flush()
    return sys.stdin.readline().strip().lower() == "y"


def carry_out(
    folder: Path,
    tasks: Sequence[Mapping[str, str]],
    run: Run,
    agent: str,
    program: str | None,
    variables: Mapping[str, str],
) -> dict[str, Any]:
    """Make the repository of a run, have the agent work in it, and check what it did."""
    run_folder = folder.absolute() / "runs" / run.name
    shutil.rmtree(run_folder, ignore_errors=True)  # what an interrupted run left
    repository, vault = run_folder / "repository", run_folder / "vault"
    _write(repository / "do", f"#!/bin/sh\n{run.task['script']}\n").chmod(0o755)
    _write(repository / "README.md", f"{run.task['name']}\n\n{NOTE}\n")
    world = {**os.environ, "LESSONS_VAULT": str(vault), "LESSONS_INTERNAL": "1"}  # in no journal
    if variables:  # nobody's account is needed
        home = str(run_folder / "home")
        world |= {**variables, "HOME": home, "LESSONS_HOME": home}
    world["PATH"] = os.pathsep.join([str(LESSONS.parent), world["PATH"]])
    _call(LESSONS, "init", vault, cwd=run_folder, env=world)
    for task in tasks if run.arm in (HOOKS, LINES) else ():
        file = vault / "lessons" / f"{task['name']}.md"
        _write(file, f"---\ntitle: {task['title']}\n---\n{task['text']}\n")
    _call(LESSONS, "index", cwd=vault, env=world)
    _call("git", "init", "-q", cwd=repository, env=world)
    if run.arm == LINES:
        _write(vault / "lessons" / "vault.toml", "prompt_lessons = 0\n")
    if run.arm in (HOOKS, LINES):
        _call(LESSONS, "install", agent, "--project", cwd=repository, env=world)
    if run.arm == PASTED:
        notes = [f"## {task['title']}\n\n{task['text']}\n" for task in tasks]
        _write(repository / PASTED_IN[agent], "\n".join(notes))
    words = [word.format(prompt=run.task["prompt"], folder=repository) for word in COMMANDS[agent]]
    words[0] = program or words[0]
    if variables and agent == "codex":  # its sandbox needs rights that CI may not have
        words[words.index("workspace-write")] = "danger-full-access"
        stub = f'name = "stub"\nbase_url = "{variables["STUB"]}/v1"\nwire_api = "responses"\n'
        provider = f'model = "m"\nmodel_provider = "stub"\n\n[model_providers.stub]\n{stub}'
        _write(run_folder / "home" / ".codex" / "config.toml", provider)
    try:
        done = subprocess.run(
            words, cwd=repository, env=world, capture_output=True, text=True, timeout=60 * MINUTES,
            stdin=subprocess.DEVNULL, check=False,
        )  # fmt: skip
        printed = done.stdout
    except subprocess.TimeoutExpired:
        printed = ""
    if variables:  # the watcher is this run's own
        subprocess.run(
            [LESSONS, "watch", "--stop"], cwd=vault, env=world, capture_output=True, check=False
        )
    passed = subprocess.run(
        ["sh", "-c", run.task["check"]], cwd=repository, capture_output=True, check=False
    )
    return {"passed": passed.returncode == 0, "ended": bool(printed), "dollars": _dollars(printed)}


def _write(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def _call(*words: str | Path, cwd: Path, env: Mapping[str, str]) -> None:
    subprocess.run(words, cwd=cwd, env=env, capture_output=True, check=True)


def _dollars(printed: str) -> float:
    """Return the cost of a run by Claude Code's own figure; 0 where nobody says."""
    try:
        return float(json.loads(printed)["total_cost_usd"])
    except (ValueError, KeyError, TypeError):
        return 0.0


def typed(tasks: Sequence[Mapping[str, str]], request: Any, result: str) -> str:
    """Return the command of a model that obeys a lesson if it got one, and else falls into the trap.

    "" where the request asks for no task, or has the result of a command.
    """
    sent = json.dumps(request)
    task = next((each for each in tasks if each["prompt"] in sent), None)
    if task is None:
        return ""
    read = f"lessons show {task['name']}"
    is_told = json.dumps(task["text"])[1:-1] in sent.replace("\\n> ", " ")
    if result in sent:  # of reading its lesson, or of the last command
        return task["right"] if is_told and sent.count(result) == 1 and read in sent else ""
    if not is_told and f"(ID {task['name']})" in sent:
        return read
    return task["right" if is_told else "wrong"]


@contextlib.contextmanager
def scripted_claude(tasks: Sequence[Mapping[str, str]]) -> Iterator[dict[str, str]]:
    """Serve a model for Claude Code, see `typed`; yield the variables by which it is asked."""
    from tests.support.messages_api import MessagesApi, text, tool_use

    def answer(request: dict[str, Any]) -> list[dict[str, Any]]:
        command = typed(tasks, [request["messages"], request.get("system", "")], '"tool_result"')
        return [tool_use("Bash", command=command, description="do it") if command else text("done")]

    with MessagesApi() as api:
        api.answer = answer
        yield {
            "ANTHROPIC_BASE_URL": api.url,
            "ANTHROPIC_API_KEY": "sk-ant-dummy",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "LESSONS_DEADLINE_MS": "15000",
        }


@contextlib.contextmanager
def scripted_codex(tasks: Sequence[Mapping[str, str]]) -> Iterator[dict[str, str]]:
    """Serve a model for Codex, see `typed`."""
    from tests.agents.model_apis import ModelApis

    with ModelApis() as api:
        api.command = lambda request: typed(tasks, request["input"], '"function_call_output"')
        yield {"STUB": api.url, "LESSONS_DEADLINE_MS": "15000"}


def table(outcomes: Mapping[str, Mapping[str, Any]], wanted: set[str]) -> Iterator[Row]:
    """Yield for each arm how many runs passed, and by how many points more than without lessons."""
    shares = {arm: _by_task(outcomes, wanted, arm) for arm in ARMS}
    for arm, by_task in shares.items():
        passed = [value for values in by_task.values() for value in values]
        yield f"{arm}: passed of {len(passed)} runs", sum(passed), "runs"
    for arm in (HOOKS, LINES, PASTED):
        both = sorted(shares[arm].keys() & shares[NONE].keys())
        more = np.array([np.mean(shares[arm][task]) - np.mean(shares[NONE][task]) for task in both])
        if len(both) > 1:
            low, high = interval(more)
            what = f"{arm}: more than without, {LEVEL}% {100 * low:.0f} to {100 * high:.0f}"
            yield what, 100 * float(more.mean()), "points"
    yield "cost, as the agent says", sum(each["dollars"] for each in outcomes.values()), "dollars"


def _by_task(
    outcomes: Mapping[str, Mapping[str, Any]], wanted: set[str], arm: str
) -> dict[str, list[bool]]:
    by_task: dict[str, list[bool]] = {}
    for name, each in outcomes.items():
        if name in wanted and each["arm"] == arm:
            by_task.setdefault(name.split("-")[0], []).append(each["passed"])
    return by_task


def interval(values: np.ndarray) -> tuple[float, float]:
    """Return the interval of a mean over tasks: a Bayesian bootstrap, with a task of -1 and one of 1."""
    several = np.concatenate([values, [-1.0, 1.0]])
    drawn = np.random.default_rng(30).dirichlet(np.ones(len(several)), DRAWS) @ several
    low, high = np.percentile(drawn, [(100 - LEVEL) / 2, (100 + LEVEL) / 2])
    return float(low), float(high)


if __name__ == "__main__":
    main()
