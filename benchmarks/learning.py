"""Measure `lessons learn`: its time without a model, and how much of real sessions a model is sent.

    python -m benchmarks.learning
    python -m benchmarks.learning --points FOLDER

The first times the whole command in a process of its own, on a session of 500 tool calls in a repository
of 300 files: the transcript, the diff from the commit at the session's start, the significance, the
entries by rule, their comparison with the vault's lessons.

The second looks for the points of `learning_points.json` in what a model would be sent of the transcripts
below a folder. They are 99 points that 23 published sessions of coding agents teach (MIT, Apache-2.0 and
ISC; not in this repository), each with the few words that must stand there: its symptom, its cause or
the person's decision. A reader wrote them down from the raw transcripts before the rules were made.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks import instruments
from benchmarks.instruments import Row
from tests.learn.projects import a_project, a_vault, taken
from tests.support.conversations import Conversation
from tests.support.files import write
from vault_index.config import Config
from vault_index.errors import VaultError
from vault_index.features import LearnTable
from vault_index.journal import capture
from vault_index.learn import gate, grounding, stages, timeline
from vault_index.learn.material import SESSION, LearnedLesson, Material
from vault_index.learn.orders import without_orders
from vault_index.learn.stages import Request
from vault_index.lesson.passages import Parts
from vault_index.transcripts import reading

TURNS, EDITS = 50, 7  # with three commands a turn: 500 tool calls
FILES = 300
REPEATS = 5
BUDGETS = (4_000, 7_000, 12_000)


def main() -> None:
    """Run a measurement and print its rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=Path, metavar="FOLDER", help="a folder with transcripts")
    if folder := parser.parse_args().points:
        list(instruments.shown(points_sent(folder)))
        return
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


def points_sent(folder: Path) -> Iterator[Row]:
    """Count the points of which all words stand in what a model is sent, by the budget."""
    points = json.loads(Path(__file__).with_name("learning_points.json").read_text("utf-8"))
    files = {file.stem: file for file in folder.rglob("*.jsonl") if file.parent.name != "subagents"}
    sessions = {}
    for name in points:
        file = next(file for stem, file in files.items() if stem.startswith(name))
        moments = timeline.of_session(capture.read(file, reading.agent_of(file)).moments)
        seen, _ = without_orders(moments)
        sessions[name] = Material(SESSION, name, moments=seen)
    yield "points", sum(map(len, points.values())), f"of {len(points)} sessions"
    for tokens in BUDGETS:
        config = Config(home=folder).with_tables(LearnTable(tokens=tokens))
        found = chars = 0
        for name, material in sessions.items():
            sent = grounding.squeezed(stages.shown(material, config, Request())).casefold()
            words = [
                [grounding.squeezed(key).casefold() for key in keys] for _, *keys in points[name]
            ]
            found += sum(all(key in sent for key in keys) for keys in words)
            chars += len(sent)
        yield f"in a budget of {tokens:,} tokens, instructions included", found, "points"
        yield "characters of a session", chars // len(sessions), ""
    for why, count in _gate(points, sessions).items():
        yield f"a model that writes each point: {why}", count, "points"


def _gate(points: Mapping[str, Any], sessions: Mapping[str, Material]) -> Counter[str]:
    """Count what becomes of the points, each written as an entry that quotes what was sent."""
    outcome = Counter[str]()
    for name, material in sessions.items():
        sent = timeline.plain(timeline.fit(material.moments, BUDGETS[-1] * timeline.CHARS_A_TOKEN))
        context = gate.Context(
            material=material,
            texts=grounding.texts_of([sent]),
            given={},
            orders=(),
            waiting=(),
            lessons=gate.Lessons(_no_index, _no_index, _no_index),
            by="benchmark",
            why="",
        )
        for point, *keys in points[name]:
            entry = LearnedLesson(
                type="project_rule",
                title=" ".join([*point.split(), "in", "this", "project"][:10]),
                parts=Parts(f"{point}: {', '.join(keys)}", problem=" ".join(keys)),
                confidence=4,
                fires_on=(f"What about this: {point}?",),
                quotes=(_around(grounding.squeezed(keys[0]), grounding.squeezed(sent)),),
            )
            admitted = gate.admit(entry, context)
            outcome[admitted if isinstance(admitted, str) else "proposed"] += 1
            if isinstance(admitted, str):
                print(f"  {admitted}: {point}")  # noqa: T201  # a benchmark prints
    return outcome


def _around(key: str, sent: str) -> str:
    """Return some words of a text around a key, as a model would quote it."""
    at = max(0, sent.casefold().find(key.casefold()))
    begin, end = sent.rfind(" ", 0, max(0, at - 40)) + 1, sent.find(" ", at + len(key) + 40)
    return sent[begin:end]


def _no_index(_asked: object) -> Any:
    raise VaultError("there is no index to ask")


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
