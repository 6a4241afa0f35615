"""Measure outcomes and stale lessons: are they right, what `status` waits for, all lessons against git.

    python -m benchmarks.outcomes            # 1,000 sessions, 5,000 injections, 10,000 lessons
    python -m benchmarks.outcomes --short    # a tenth of it
    python -m benchmarks.outcomes --labels   # only the labelled injections

The labels of `outcome_labels/` were written down by a reader before the rules ran: of each injection its
session in ../shared/transcripts, the number of its prompt or failure, the lesson, and what became of it.
Half of the sessions is held: the rules were made without looking at what they say there. The lessons are
the notes of ../shared/eval and `lessons.jsonl`. Of the other parts the sessions are made here, each with
its transcript; the lessons of the last one cite files, names and versions of a repository of 2,000 files
and 200 days of commits.
"""

from __future__ import annotations

import argparse
import csv
import math
import os
import random
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Set
from datetime import UTC, datetime, timedelta
from pathlib import Path

from benchmarks import instruments
from benchmarks.instruments import Row
from tests.support.conversations import Conversation
from vault_index.edit import init
from vault_index.index import reconcile
from vault_index.journal import capture
from vault_index.journal.journal import Journal
from vault_index.recall import outcome
from vault_index.recall.outcome import judge, ledger, stale, story, words
from vault_index.search import evaluate
from vault_index.store import injections
from vault_index.transcripts import reading
from vault_index.vault import Vault, open_vault

SESSIONS, INJECTIONS, LESSONS = 1000, 5, 10_000
FILES, DAYS = 2000, 200
FOREIGN = 400  # notes, each beside every session
TRANSCRIPTS = instruments.REPO.parent / "shared" / "transcripts"
LABELLED = Path(__file__).parent / "outcome_labels"
LABELS = (judge.TAKEN, judge.CONTRADICTED, judge.UNKNOWN)


def main() -> None:
    """Run this benchmark."""
    parser = argparse.ArgumentParser(description="Measure outcomes and stale lessons.")
    parser.add_argument("--short", action="store_true", help="a tenth of all")
    parser.add_argument("--labels", action="store_true", help="only the labelled injections")
    options = parser.parse_args()
    if options.labels:
        list(instruments.shown(labelled()))
        return
    with tempfile.TemporaryDirectory(prefix="lessons-outcomes-") as scratch:
        home = Path(scratch, "home")
        home.mkdir()
        os.environ |= {"LESSONS_HOME": str(home), "HOME": str(home), "LESSONS_EMBEDDER": "none"}
        for who in ("AUTHOR", "COMMITTER"):
            os.environ |= {f"GIT_{who}_NAME": "Ada", f"GIT_{who}_EMAIL": "ada@example.org"}
        list(instruments.shown(measure(Path(scratch), 10 if options.short else 1)))


def measure(scratch: Path, part: int) -> Iterator[Row]:
    """Yield the rows of both parts, each of one `part`th of its size."""
    yield from labelled()
    yield from outcomes(scratch / "counted", SESSIONS // part)
    yield from stale_lessons(scratch / "cited", LESSONS // part, DAYS // part)


def labelled() -> Iterator[Row]:
    """Compare the verdicts with a reader's labels: precision with its 95% interval, and recall.

    Then with notes that have nothing to do with the sessions. Needs ../shared; nothing is measured
    without it.
    """
    if not TRANSCRIPTS.is_dir():
        return
    with (LABELLED / "labels.tsv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    there = _Sessions({row["session"] for row in rows})
    counts: Counter[tuple[str, str, str]] = Counter()
    for row in rows:
        at = there.place(row["session"], row["event"], int(row["number"]))
        verdict = there.verdict(row["session"], at, row["lesson"])
        counts[row["half"], row["label"], verdict] += 1
    for half in ("tuned", "held"):
        every = sum(count for key, count in counts.items() if key[0] == half)
        yield f"labelled injections, {half}", every, ""
        for called in (judge.TAKEN, judge.CONTRADICTED):
            right = counts[half, called, called]
            so = sum(counts[half, label, called] for label in LABELS)
            seen = sum(counts[half, called, verdict] for verdict in judge.OUTCOMES)
            low, high = _interval(right, so)
            yield f"  {called}: right, of {so} called so ({low:.2f} to {high:.2f})", right, ""
            yield f"  {called}: seen, of {seen}", right, ""
    notes = random.Random(5).sample(there.notes, FOREIGN)
    foreign = Counter(
        there.verdict(name, there.place(name, "prompt", 0), note)
        for name in there.steps
        for note in notes
    )
    yield "notes beside sessions that they have nothing to do with", sum(foreign.values()), ""
    yield "  called taken", foreign[judge.TAKEN], ""
    yield "  called contradicted", foreign[judge.CONTRADICTED], ""


class _Sessions:
    """The sessions of ../shared, and verdicts about lessons in them as if they had been injected."""

    def __init__(self, names: Set[str]) -> None:
        self.steps = {name: _steps(name) for name in sorted(names)}
        self._had = {
            name: judge.words_before(step for step in steps if step.kind != story.SEEN)
            for name, steps in self.steps.items()
        }
        notes = [values for _, values in evaluate.read_lines(instruments.EVAL / "lessons.jsonl")]
        ours = [values for _, values in evaluate.read_lines(LABELLED / "lessons.jsonl")]
        self.notes = [str(each["id"]) for each in notes]
        texts = {str(each["id"]): str(each["text"]) for each in (*notes, *ours)}
        sample = [*texts.values()][:: max(1, len(texts) // ledger.SAMPLE)]
        usual = words.usual_in(sample)
        self._marks = {id: words.marks_of(text).without(usual) for id, text in texts.items()}

    def place(self, name: str, event: str, number: int) -> int:
        """Return the place of a prompt or failure among the steps of a session."""
        kind = story.TYPED if event == "prompt" else story.FAILED
        places = [at for at, step in enumerate(self.steps[name]) if step.kind == kind]
        return places[number]

    def verdict(self, name: str, at: int, lesson: str) -> str:
        """Return what became of a lesson that a session was given at a step."""
        steps = self.steps[name]
        project = f"{name.partition('/')[0]}/"
        others = [
            had for other, had in self._had.items() if other != name and other.startswith(project)
        ]
        marks = self._marks[lesson]
        marks = marks.without(judge.common(marks.signs, others))
        failure = steps[at].key if steps[at].kind == story.FAILED else ""
        had = judge.words_before(steps[: at + 1])
        return judge.judge(marks, had, judge.turns_after(steps, at + 1), failure).outcome


def _steps(session: str) -> list[story.Step]:
    agent = reading.CODEX if session.partition("/")[2].startswith("codex") else reading.CLAUDE
    return list(story.steps_in(reading.read_events(TRANSCRIPTS / session, agent)))


def _interval(right: int, of: int) -> tuple[float, float]:
    """Return the 95% interval of a share (Wilson)."""
    if not of:
        return 0.0, 1.0
    z = 1.96
    middle = (right + z * z / 2) / (of + z * z)
    width = z * math.sqrt(right * (of - right) / of + z * z / 4) / (of + z * z)
    return middle - width, middle + width


def outcomes(root: Path, sessions: int) -> Iterator[Row]:
    """Measure judging sessions once, and counting what is judged."""
    init.init(root)
    for number in range(50):
        text = f"Call `helper_{number}_of_shop(part={number})` of `shop/part_{number}.py`.\n"
        (root / "lessons" / f"l{number}.md").write_text(f"# Lesson {number}\n\n{text}")
    vault = open_vault(root)
    reconcile.sync(vault)
    for number in range(sessions):
        _session(vault, number)
    began = time.perf_counter()
    judged = ledger.update(vault, 3600)
    seconds = time.perf_counter() - began
    yield f"judge {sessions:,} sessions with 5 injections each", round(seconds, 1), "s"
    taken = sum(tally.taken for tally in judged.tallies().values())
    yield f"  injections taken, of {INJECTIONS * sessions:,}", taken, ""
    times = []
    for _ in range(7):
        began = time.perf_counter()
        outcome.tally(vault)
        times.append(1000 * (time.perf_counter() - began))
    yield f"tally of {INJECTIONS * sessions:,} injections, warm", round(sorted(times)[3]), "ms"


def _session(vault: Vault, number: int) -> None:
    began = datetime.now(UTC) - timedelta(days=20) + timedelta(minutes=20 * number)
    talk = Conversation(vault.root, f"session {number}", began=began)
    for turn in range(INJECTIONS):
        prompt = f"please look after part {number} of the shop, step {turn}"
        talk.asks(prompt)
        lesson = (number + turn) % 50
        hits = [(f"l{lesson}", 0.9)]
        injections.record(
            vault.index_dir, injections.PROMPT, talk.id, prompt, hits, [], 0.5, 9.0, "process"
        )
        new = f"helper_{lesson}_of_shop(part={lesson})" if turn % 2 else "something_else()"
        talk.edits(f"shop/part_{number}.py", "pass", new).runs("pytest -q", "1 passed")
        talk.says("It is done, and the tests of this part of the shop pass once more.")
    capture.capture(Journal(vault.config), talk.file, reading.CLAUDE, force=True)


def stale_lessons(root: Path, lessons: int, days: int) -> Iterator[Row]:
    """Measure the comparison of all lessons with the repository as it was when they were written."""
    init.init(root)
    dice = random.Random(1)
    first = datetime(2026, 1, 1, 12, tzinfo=UTC)
    for number in range(FILES):
        _write(root, number, 0)
    _commit(root, first)
    for day in range(1, days + 1):
        for number in range(lessons * (day - 1) // days, lessons * day // days):
            cited = dice.randrange(FILES)
            text = f"Use `function_{cited}_0(value)` of `src/part{cited % 40}/file{cited}.py`.\n"
            file = root / "lessons" / f"part{cited % 40}" / f"l{number}.md"
            file.parent.mkdir(exist_ok=True)
            file.write_text(f"# Lesson {number}\n\n{text}{' '.join(instruments.WORDS[:60])}\n")
        for number in dice.sample(range(FILES), 3):
            _write(root, number, day)
        _commit(root, first + timedelta(days=day))
    vault = open_vault(root)
    reconcile.sync(vault)
    began = time.perf_counter()
    reasons = stale.reasons(vault, lambda _: {})
    seconds = time.perf_counter() - began
    yield f"{lessons:,} lessons against {days} days of a repository", round(seconds, 1), "s"
    yield "  reasons to look at one", len(reasons), ""


def _write(root: Path, number: int, version: int) -> None:
    file = root / "src" / f"part{number % 40}" / f"file{number}.py"
    file.parent.mkdir(parents=True, exist_ok=True)
    body = "".join(f"    value += {version * line}\n" for line in range(60))
    file.write_text(f"def function_{number}_{version}(value):\n{body}    return value\n")


def _commit(root: Path, when: datetime) -> None:
    env = {
        **os.environ,
        "GIT_AUTHOR_DATE": when.isoformat(),
        "GIT_COMMITTER_DATE": when.isoformat(),
    }
    for command in (("add", "-A"), ("commit", "-q", "--no-verify", "-m", "a day")):
        subprocess.run(["git", *command], cwd=root, env=env, check=True)


if __name__ == "__main__":
    main()
