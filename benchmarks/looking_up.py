"""Measure what learning costs: agents that look lessons up, and the building of skills.

    python -m benchmarks.looking_up                      # everything, some ten minutes
    python -m benchmarks.looking_up --only skills
    python -m benchmarks.looking_up --only entries --count 100000

Entries are the notes of the evaluation set in ../shared/eval in varied forms. The first are indexed as
any; the rows of their forms, with vectors near theirs, go into the table directly, as checking and
embedding 100,000 takes half an hour. Bars are for a machine where `python -c pass` takes 10 ms, so times
are also shown as multiples of it, measured in the same run.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import instruments
from benchmarks.instruments import Row
from vault_index.edit import init
from vault_index.embed import download
from vault_index.files import stamp_of
from vault_index.hotpath import hook_event, protocol
from vault_index.index import reconcile
from vault_index.learn.skills import build
from vault_index.lesson.file import hash_of, hash_of_file
from vault_index.retrieval import evaluate
from vault_index.retrieval.measuring import quantile
from vault_index.store import delivery, manifest
from vault_index.store.delivery import Delivery, Given
from vault_index.store.lance import Table
from vault_index.store.schema import LESSONS, LessonRow
from vault_index.vault import Vault, open_vault

CLIENTS = 10
ASKED = 20  # times by each client
CLUSTERS, A_CLUSTER = 50, 8  # tags, and lessons of each
NOISE = 0.4  # length of what is added to a vector: the cosine with the first is then .93
_BATCH = 5_000


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description="Measure what learning costs.")
    parser.add_argument("--only", choices=("entries", "skills"), help="one part")
    parser.add_argument("--count", type=int, action="append", help="entries (10000 and 100000)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="lessons-learning-") as scratch:
        os.environ.setdefault("LESSONS_HOME", f"{scratch}/home")
        os.environ["LESSONS_WATCH_AUTOSTART"] = "false"
        download.fetch(Path(os.environ["LESSONS_HOME"]))
        if options.only != "entries":
            list(instruments.shown(skills(Path(scratch))))
        for count in options.count or (10_000, 100_000):
            if options.only != "skills":
                list(instruments.shown(entries(Path(scratch), count)))


def skills(scratch: Path) -> Iterator[Row]:
    """Build the skills of 50 tags, and again when nothing changed."""
    init(scratch / "skills")
    vault = open_vault(scratch / "skills", embedder="none")
    notes = [values for _, values in evaluate.read_lines(instruments.EVAL / "lessons.jsonl")]
    for number in range(CLUSTERS * A_CLUSTER):
        note, tag = notes[number * 4], number % CLUSTERS
        text = (
            f"---\ntitle: {note['title']!r}\ntags: [tag-{tag}]\ntype: code_pattern\nconfidence: 5\n"
            f"fires_on: [{note['title'].lower()!r}]\n---\n{note['text']}\n"
        )
        (vault.lessons_dir / f"{number}.md").write_text(text)
    reconcile.sync(vault)
    given = tuple(Given(str(number)) for number in range(CLUSTERS * A_CLUSTER))
    for _ in range(2):
        delivery.record(vault.config.home, vault.root, Delivery(hook_event.PROMPT, given=given))
    base = _python()
    for name in ("from nothing", "nothing changed"):
        began, busy = time.perf_counter(), time.process_time()
        built = build.build(vault)
        took, of_processor = time.perf_counter() - began, time.process_time() - busy
        states = sorted({each.state for each in built})
        yield f"skills build, {len(built)} clusters, {name} ({', '.join(states)})", took, "s"
        yield "  of processor time", of_processor, "s"
        yield "  processor time as a multiple of python -c pass", of_processor / base, "x"


def entries(scratch: Path, count: int) -> Iterator[Row]:
    """Ask as agents do, one client alone and ten at once, the watcher among so many entries."""
    vault, queries = _many(scratch / f"entries-{count}", count)
    ids = [f"forms/{number % 100}/{number}" for number in range(0, count - 2000, 97)]
    questions: dict[str, Callable[[int], dict[str, Any]]] = {
        "learn.search": lambda n: {"query": queries[n % len(queries)]},
        "learn.get": lambda n: {"name": ids[n % len(ids)]},
        "learn.status": lambda _: {},
    }
    with instruments.watched(vault):
        instruments.quiet(vault)
        for name, values in questions.items():
            ask = _asking(vault, name, values)
            for number in range(3):  # the first of a kind loads what the others need
                ask(number)
            alone = [ask(number) for number in range(ASKED)]
            with ThreadPoolExecutor(CLIENTS) as threads:
                at_once = list(threads.map(ask, range(CLIENTS * ASKED)))
            base = _python()
            for how, times in (("one client", alone), (f"{CLIENTS} at once", at_once)):
                p90 = quantile(times, 0.9)
                yield f"{count:,} entries, {name}, {how}: p50", statistics.median(times), "ms"
                yield f"{count:,} entries, {name}, {how}: p90", p90, "ms"
                yield "  as a multiple of python -c pass", p90 / 1000 / base, "x"
        yield f"{count:,} entries: memory of the watcher", instruments.memory(), "MB"


def _asking(
    vault: Vault, name: str, values: Callable[[int], dict[str, Any]]
) -> Callable[[int], float]:
    def ask(number: int) -> float:
        """Return the milliseconds of the answer."""
        began = time.perf_counter()
        answer = protocol.ask(str(vault.root), {"ask": name, "with": values(number)}, 60)
        assert "refused" not in answer, answer
        return 1000 * (time.perf_counter() - began)

    return ask


def _many(root: Path, count: int) -> tuple[Vault, list[str]]:
    """Make a vault of the notes and forms of them, so many in all; return it and prompts."""
    vault = instruments.eval_vault(root)
    reconcile.sync(vault)
    prompts = [one.query for one in evaluate.load(instruments.EVAL / "queries.jsonl")]
    opened = vault.open_index()
    table = Table(opened.store.index, opened.store.dimension)
    kept = manifest.load(table.index)
    rows, vectors = table.rows_and_vectors([*(set(LESSONS.columns()) - {"vector"})], "is_whole")
    assert vectors is not None
    chance = random.Random(7)
    noise = np.random.default_rng(7)
    files = dict(kept.files)
    forms: list[LessonRow] = []
    for number in range(count - len(rows)):
        at = number % len(rows)
        row, name = _form(rows[at], number, chance), f"forms/{number % 100}/{number}.md"
        vector = vectors[at] + NOISE * _unit(noise.standard_normal(len(vectors[at])))
        row["vector"] = _unit(vector).astype(np.float32)
        file = vault.lessons_dir / name
        file.parent.mkdir(parents=True, exist_ok=True)
        data = f"# {row['title']}\n\n{row['text']}\n".encode()
        file.write_bytes(data)
        hash = row["file_hash"] = hash_of_file(data)
        files[name] = manifest.FileEntry(hash, list(stamp_of(file.lstat())), 1)
        forms.append(row)
        if len(forms) == _BATCH:
            table.replace(forms, [])
            forms.clear()
    table.replace(forms, [])
    table.fold()
    changed = manifest.Manifest(
        kept.schema, kept.embedder, kept.dimension, kept.head, files=files, skills=kept.skills
    )
    manifest.save(table.index, changed)
    reconcile.sync(vault)
    assert vault.open_index().lessons == count
    return vault, prompts


def _form(row: dict[str, Any], number: int, chance: random.Random) -> LessonRow:
    """Return a row with other words in another order: the sentences of a note are shuffled."""
    sentences = row["text"].split(". ")
    chance.shuffle(sentences)
    words = " ".join(chance.sample(instruments.WORDS, 8))
    text = f"{'. '.join(sentences)}\n\n{words}"
    title = f"{row['title']}, form {number // 1000}"
    id = f"forms/{number % 100}/{number}"
    form: Any = {**row, "id": f"{id}@0", "lesson_id": id, "path": f"lessons/{id}.md"}
    form |= {"title": title, "document": title, "text": text, "position": 0}
    form |= {"fulltext": f"{title}\n{title}\n{text}", "content_hash": hash_of(title, text)}
    given: LessonRow = form
    return given


def _unit(vector: np.ndarray) -> np.ndarray:
    scaled: np.ndarray = vector / np.linalg.norm(vector)
    return scaled


def _python() -> float:
    """Return the seconds that a Python that does nothing takes, the median of some."""
    times = []
    for _ in range(15):
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", "pass"], check=True)
        times.append(time.perf_counter() - began)
    return statistics.median(times)


if __name__ == "__main__":
    main()
