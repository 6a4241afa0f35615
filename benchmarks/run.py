"""Measure speed, memory and quality, print one table, and write it as JSON.

    python -m benchmarks.run                # everything, some minutes
    python -m benchmarks.run --short        # what CI runs
    python -m benchmarks.run --json out.json

Uses the evaluation set in ../shared/eval when it is there, else the repo's own lessons with the
prompts they carry. Every figure is measured in this run; times are of this machine.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks import cold, first_prompt, instruments, journal, watching
from vault_index.edit import add, init
from vault_index.embed import download
from vault_index.index import reconcile
from vault_index.lesson import parse
from vault_index.retrieval import entries, evaluate
from vault_index.retrieval.evaluate import LabelledPrompt
from vault_index.retrieval.measuring import quantile
from vault_index.retrieval.query import find
from vault_index.text import foreign
from vault_index.vault import Vault, open_vault

REPO = Path(__file__).resolve().parent.parent
EVAL = REPO.parent / "shared" / "eval"
HOOK = Path(sys.executable).parent / "lessons-hook"
MANY = 10_000
PROMPT = "our build dies with heap out of memory"

Row = tuple[str, Any, str]  # what, figure, unit


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description="Measure speed, memory and quality.")
    parser.add_argument("--short", action="store_true", help="fewer repeats, no floors on parts")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="lessons-benchmark-") as scratch:
        os.environ.setdefault("LESSONS_HOME", str(Path(scratch) / "home"))
        download.fetch(Path(os.environ["LESSONS_HOME"]))
        rows = list(instruments.shown(measure(Path(scratch), options.short)))
    if options.json:
        figures = {what: {"value": figure, "unit": unit} for what, figure, unit in rows}
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


def measure(scratch: Path, short: bool) -> Iterator[Row]:
    """Return the rows of the table."""
    vault, prompts = _vault(scratch / "eval")
    with _timed() as took:
        stats = reconcile.sync(vault)
    yield "lessons", stats.added, ""
    yield "index from nothing", took(), "s"
    yield "index throughput", stats.embedded / took(), "passages/s"
    yield "reconcile, nothing changed", _reconcile(vault), "s"
    changed = vault.lessons_dir / vault.files()[0][0].path
    changed.write_text(changed.read_text("utf-8") + "\nzyzzyva\n", "utf-8")
    with _timed() as took:
        reconcile.sync(vault)
    yield "one changed file indexed, in process", took(), "s"
    yield from _queries(vault, [one.query for one in prompts][: 50 if short else 400])
    yield from _quality(vault, prompts)
    yield from _hook(vault, 5 if short else 20)
    yield from cold.measure(vault, 5 if short else 15)
    yield from first_prompt.measure(vault, scratch, short)
    shutil.copytree(vault.root, scratch / "watched")
    asked = [one.query for one in prompts]
    yield from watching.measure(open_vault(scratch / "watched"), scratch, asked, short)
    yield from journal.measure(scratch / "journal", short)
    if not short:
        yield from _parts(vault, prompts)
    yield from _many(scratch / "many")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield "peak memory of this process", peak / (1024 if sys.platform == "linux" else 1024**2), "MB"


def _vault(root: Path) -> tuple[Vault, list[LabelledPrompt]]:
    init(root)
    vault = open_vault(root)
    if (EVAL / "lessons.jsonl").is_file():
        add.from_json_lines(vault, evaluate.read_lines(EVAL / "lessons.jsonl"))
        return vault, evaluate.load(EVAL / "queries.jsonl")
    for file in (REPO / "lessons").rglob("*.md"):
        copy = vault.lessons_dir / file.relative_to(REPO / "lessons")
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(file.read_bytes())
    # read from the files: the index is made later, and timed
    lessons = [
        lesson
        for file in vault.files()[0]
        for lesson in parse.parse_file((vault.lessons_dir / file.path).read_bytes(), file.path)
    ]
    prompts = [
        LabelledPrompt(prompt, frozenset([lesson.id]), "own")
        for lesson in lessons
        for prompt in lesson.fires_on
    ]
    others = foreign.prompts()
    return vault, prompts + [LabelledPrompt(prompt, frozenset(), "foreign") for prompt in others]


def _reconcile(vault: Vault) -> float:
    reconcile.sync(vault)
    with _timed() as took:
        reconcile.sync(vault)
    return took()


def _queries(vault: Vault, queries: list[str]) -> Iterator[Row]:
    times = []
    for query in queries:
        with _timed() as took:
            find(vault, query, k=3)
        times.append(1000 * took())
    yield "query in process, p50", statistics.median(times), "ms"
    yield "query in process, p90", quantile(times, 0.9), "ms"


def _quality(vault: Vault, prompts: list[LabelledPrompt]) -> Iterator[Row]:
    figures = evaluate.measure(vault, prompts)
    names = ("recall@1", "recall@3", "recall@5", "mrr@10", "auc", "recall@3_fi2", "recall@3_fi5")
    for name in (*names, "floor"):
        yield name, figures[name], ""
    for name, share in figures["at_floor"].items():
        yield f"at the floor: {name}", share, ""


def _hook(vault: Vault, repeats: int) -> Iterator[Row]:
    """Time the whole hook process, turn by turn with a Python that does nothing."""
    event = {"hook_event_name": "UserPromptSubmit", "prompt": PROMPT, "cwd": str(vault.root)}
    environment = {**os.environ, "LESSONS_VAULT": str(vault.root), "LESSONS_DEADLINE_MS": "20000"}
    environment["LESSONS_WATCH_AUTOSTART"] = "false"
    chatter = {**event, "prompt": "thanks, looks good"}
    bare: list[float] = []
    hook: list[float] = []
    silent: list[float] = []
    for _ in range(repeats):
        for command, given, into in (
            ([sys.executable, "-c", "pass"], {}, bare),
            ([str(HOOK)], event, hook),
            ([str(HOOK)], chatter, silent),
        ):
            with _timed() as took:
                subprocess.run(
                    command, input=json.dumps(given), text=True, env=environment,
                    capture_output=True, check=True,
                )  # fmt: skip
            into.append(took())
    ten = [_ten_at_once(event, environment) for _ in range(max(1, repeats // 5))]
    base = statistics.median(bare)
    yield "python -c pass, p50", 1000 * base, "ms"
    yield "hook, whole process, cold, p50", 1000 * statistics.median(hook), "ms"
    yield "hook, whole process, cold, max", 1000 * max(hook), "ms"
    yield "hook, cold, as a multiple of python -c pass", statistics.median(hook) / base, "x"
    yield "hook on chatter as a multiple of python -c pass", statistics.median(silent) / base, "x"
    yield "ten cold hooks at once, the last of them, p50", 1000 * statistics.median(ten), "ms"


def _ten_at_once(event: dict[str, str], environment: dict[str, str]) -> float:
    """Return the seconds until the last of ten hooks without a watcher has answered."""
    with _timed() as took:
        hooks = [
            subprocess.Popen(
                [str(HOOK)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
            )
            for _ in range(10)
        ]
        for hook in hooks:
            assert hook.stdin is not None
            hook.stdin.write(json.dumps(event).encode())
            hook.stdin.close()
        for hook in hooks:
            hook.wait()
    return took()


def _parts(vault: Vault, prompts: list[LabelledPrompt]) -> Iterator[Row]:
    """Look whether the floor holds on halves and tenths of the vault."""
    chance = random.Random(7)
    files = [file.path for file in vault.files()[0]]
    for share in (0.5, 0.1):
        kept = set(chance.sample(files, int(share * len(files))))
        for path in files:
            if path not in kept:
                (vault.lessons_dir / path).unlink(missing_ok=True)
        reconcile.sync(vault)
        present = {entry.id for entry in entries.entries(vault)}
        figures = evaluate.measure(vault, [_narrowed(one, present) for one in prompts])
        orphans = [one for one in prompts if one.relevant and not one.relevant & present]
        got = [_gets_something(vault, one.query) for one in orphans]
        name = f"{share:.0%} of the lessons"
        yield f"{name}: floor", figures["floor"], ""
        yield f"{name}: right lesson at the floor", figures["at_floor"]["hit"], ""
        plain = [one for one in prompts if not one.relevant]
        false = [_gets_something(vault, one.query) for one in plain]
        yield f"{name}: false at the floor", sum(false) / len(false), ""
        yield f"{name}: orphans that get something", sum(got) / max(1, len(got)), ""
        files = sorted(kept)


def _narrowed(prompt: LabelledPrompt, present: set[str]) -> LabelledPrompt:
    return LabelledPrompt(prompt.query, prompt.relevant & present, prompt.kind)


def _gets_something(vault: Vault, query: str) -> bool:
    from vault_index.recall import select

    return bool(select.for_prompt(vault, query).hits)


def _many(root: Path) -> Iterator[Row]:
    """Time a reconcile of 10,000 lessons; it does not depend on the embedder, so there is none."""
    init(root)
    vault = open_vault(root, environ={"LESSONS_HOME": str(root)}, embedder="none")
    for number in range(MANY):
        folder = vault.lessons_dir / f"area-{number % 40}"
        folder.mkdir(exist_ok=True)
        text = f"---\ntitle: Lesson {number}\n---\nWhat number {number} taught us.\n"
        (folder / f"{number}.md").write_text(text)
    time.sleep(2.1)  # files this young are read again
    reconcile.sync(vault)
    yield f"reconcile of {MANY} unchanged lessons", _reconcile(vault), "s"


@contextmanager
def _timed() -> Iterator[Callable[[], float]]:
    started = time.perf_counter()
    ended = 0.0
    yield lambda: ended
    ended = time.perf_counter() - started


if __name__ == "__main__":
    main()
