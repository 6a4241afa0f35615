"""Learn from the first half of a project's sessions, and fire at the prompts and errors of the second.

    python -m benchmarks.learned_half FOLDER

FOLDER has recorded sessions, a folder for each project. In the order of time, `learn` proposes by rule
from the first half, all proposals are accepted, and each prompt and failed command of the second half is
searched for as a hook would. A lesson that fires comes before the repair if a check that had failed
passes later, after an edit; whether it says how is for a reader: `--show` prints the pairs.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks import instruments
from benchmarks.instruments import LESSONS, Row
from vault_index.edit import init
from vault_index.errors import VaultError
from vault_index.learn import gather, run, timeline
from vault_index.learn.material import SESSION, Material
from vault_index.proposals import review
from vault_index.recall import calls, select
from vault_index.recall.outcome import judge, story, words
from vault_index.recall.outcome.story import FAILED, RAN, TYPED, WROTE, Step
from vault_index.search import failures
from vault_index.text import failure
from vault_index.transcripts import events, reading, tools
from vault_index.vault import Vault, open_vault

LEAST_SESSIONS = 2


@dataclass(frozen=True)
class Recorded:
    """A session of an agent."""

    file: Path
    agent: str
    began: str


def main() -> None:
    """Print the counts of each project and of all."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--show", action="store_true", help="print each lesson and where it fired")
    asked = parser.parse_args()
    sums = Counter[str]()
    with tempfile.TemporaryDirectory(prefix="lessons-half-") as scratch:
        os.environ |= {"HOME": scratch, "LESSONS_HOME": f"{scratch}/home"}
        os.environ |= {"LESSONS_WATCH_AUTOSTART": "false"}
        for folder in sorted(each for each in asked.folder.iterdir() if each.is_dir()):
            sessions = sessions_in(folder)
            if len(sessions) >= LEAST_SESSIONS:
                counts = of_project(Path(scratch) / folder.name, sessions, asked.show)
                sums.update(counts)
                list(instruments.shown(rows(folder.name, counts)))
    list(instruments.shown(rows("all", sums)))


def rows(name: str, counts: Counter[str]) -> Iterator[Row]:
    """Yield counts as rows."""
    for what, number in counts.items():
        yield f"{name}: {what}", number, ""


def sessions_in(folder: Path) -> list[Recorded]:
    """Return the sessions of a project in which a person typed, in the order of time."""
    found = []
    for file in folder.rglob("*.jsonl"):
        if file.parent.name == "subagents":
            continue
        agent = reading.agent_of(file)
        times = [
            event.at for event in reading.read_events(file, agent) if event.kind in events.TYPED
        ]
        if times:
            found.append(Recorded(file, agent, min(times)))
    return sorted(found, key=lambda each: each.began)


def of_project(root: Path, sessions: Sequence[Recorded], show: bool) -> Counter[str]:
    """Learn from the first half, and count what fires in the second."""
    half = len(sessions) // 2
    init.init(root)
    vault = open_vault(root)
    counts = Counter({"sessions": len(sessions), "learned from": half})
    for number, session in enumerate(sessions[:half]):
        counts["proposals"] += _learn(vault, session, number)
    ids = [each.id for each in review.waiting(vault)]
    if ids:
        subprocess.run(
            [LESSONS, "review", "accept", *ids], cwd=root, check=True, capture_output=True
        )
    subprocess.run([LESSONS, "index"], cwd=root, check=True, capture_output=True)
    vault = open_vault(root)
    if ids:
        failures.fit(vault)
    for session in sessions[half:]:
        steps = list(story.steps_in(reading.read_events(session.file, session.agent)))
        counts.update(_fired(vault, steps, show) if ids else _asked(steps))
    return counts


def _learn(vault: Vault, session: Recorded, number: int) -> int:
    turns = gather.replay(session.file, session.agent).turns
    moments = tuple(moment for _, turn in turns for moment in turn)
    name = f"{session.file.stem}-{number}"
    material = Material(SESSION, name, moments=timeline.without_orders(moments)[0], session=name,
                        began=session.began)  # fmt: skip
    caller = run.Caller(lambda _: None, lambda _what, _done, _all: None, _no_index)
    return len(run.learn_from(vault, caller, material, force=True)["proposals"])


def _no_index(name: str, _values: object) -> dict[str, object]:
    raise VaultError(f"there is no index to ask {name}")


def _asked(steps: Sequence[Step]) -> Counter[str]:
    kinds = Counter(step.kind for step in steps)
    return Counter(
        {"prompts of the second half": kinds[TYPED], "errors of the second half": kinds[FAILED]}
    )


def _fired(vault: Vault, steps: Sequence[Step], show: bool) -> Counter[str]:
    """Count what fires at the steps of a session, each lesson once at prompts and once at errors."""
    counts, had = _asked(steps), set[tuple[str, str]]()
    for place, step in enumerate(steps):
        if step.kind == TYPED:
            given = [id for kind, id in had if kind == TYPED]
            hits = select.for_prompt(vault, step.text, given=given).hits
        elif step.kind == FAILED:
            command = steps[place - 1].text if place and steps[place - 1].kind == RAN else ""
            hits = calls.for_failure(vault, failure.read(command, step.text)).hits
        else:
            continue
        for hit in hits:
            if (step.kind, hit.lesson_id) in had:
                continue
            had.add((step.kind, hit.lesson_id))
            after = steps[place + 1 :]
            is_before = is_repaired(steps, place)
            before = judge.words_before(steps[:place])
            done = judge.is_done(
                words.marks_of(hit.text), before, judge.turns_after(steps, place + 1)
            )
            kind = "prompts" if step.kind == TYPED else "errors"
            counts[f"fired at {kind}"] += 1
            counts[f"fired at {kind}, before a repair"] += is_before
            counts[f"fired at {kind}, what it advises is done later"] += bool(done and after)
            if show:
                sys.stdout.write(
                    f"  {kind}: {step.text[:160]!r}\n    {hit.title}: {hit.text[:240]!r}\n"
                )
    return counts


def is_repaired(steps: Sequence[Step], place: int) -> bool:
    """Whether a check that failed at a place or after it passes later, with an edit between."""
    waiting: dict[str, bool] = {}  # check -> whether a file was edited since it failed
    for at in range(max(0, place - 1), len(steps)):
        step = steps[at]
        if step.kind == WROTE:
            waiting = dict.fromkeys(waiting, True)
        elif step.kind == RAN and tools.is_check(step.text):
            check = tools.same_as(step.text)
            if at + 1 < len(steps) and steps[at + 1].kind == FAILED:
                waiting[check] = False
            elif waiting.pop(check, False):
                return True
    return False


if __name__ == "__main__":
    main()
