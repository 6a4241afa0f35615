"""Measure one vault that grows from 1,000 to 1,000,000 lessons, and the engines of its vectors.

    python -m benchmarks.growth                   # 1,000 to 100,000 lessons
    python -m benchmarks.growth --count 1000000   # takes some ten minutes, 4 GB of memory and a disk
    python -m benchmarks.growth --json FILE --svg docs/pictures/growth.svg  # draws what FILE has

Vectors are synthetic: directions of a falling spectrum around 2,000 centres. So it asks no model, and
what it says of an engine is of such vectors. Up to 100,000 lessons are files with rows, of more there are
vectors alone. Times are of a processor, as other programs run.
"""

from __future__ import annotations

import argparse
import functools
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import instruments
from tests.support.files import write
from vault_index.edit import init
from vault_index.files import stamp_of
from vault_index.index import reconcile, rows
from vault_index.lesson import parse
from vault_index.lesson.file import hash_of, hash_of_file
from vault_index.retrieval import query
from vault_index.store import manifest
from vault_index.store.lance import Table
from vault_index.vault import Vault, open_vault
from vault_index.watch import current

SIZES = (1_000, 10_000, 100_000)
WITH_FILES = 100_000  # lessons at most that are files, too
DIMENSION, CENTRES, NOISE = 384, 2_000, 0.4
FORMS = 500  # texts that differ by more than a word
NEAREST = 10
_BATCH = 20_000


def main() -> None:
    """Measure each size in a process of its own, and print a table."""
    parser = argparse.ArgumentParser(description="Measure one vault that grows.")
    parser.add_argument("--count", type=int, action="append", help="lessons")
    parser.add_argument("--json", type=Path, help="keep the figures of sizes here, and add to them")
    parser.add_argument("--svg", type=Path, help="draw the plot of the figures")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.here:
        with tempfile.TemporaryDirectory(prefix="lessons-growth-") as name:
            os.environ["LESSONS_HOME"] = f"{name}/home"
            figures = dict(one_size(Path(name) / "vault", options.count[0]))
            print(json.dumps(figures))  # noqa: T201  # the process that started this one reads it
    else:
        sizes = options.count or (() if options.svg else SIZES)
        growth(sizes, options.json, options.svg)


class Made:
    """An embedder without a model: the vector of a text is one of the synthetic ones."""

    name, dimension = "minilm-l6-v2-int8", DIMENSION

    def embed_documents(self, texts: Sequence[str]) -> np.ndarray:
        """Return a vector near a centre for each text, by what it says."""
        return np.stack([vectors(1, zlib.crc32(text.encode()))[0] for text in texts])

    embed_queries = embed_documents

    def knows(self, _text: str) -> bool:
        """Return true: its vectors mean what its texts say."""
        return True


SPECTRUM = (1 / np.sqrt(1 + np.arange(DIMENSION))).astype(np.float32)


@functools.cache
def _centres() -> np.ndarray:
    dice = np.random.default_rng(0)
    centres = dice.standard_normal((CENTRES, DIMENSION), np.float32) * SPECTRUM
    unit: np.ndarray = centres / np.linalg.norm(centres, axis=1, keepdims=True)
    return unit


def vectors(count: int, seed: int) -> np.ndarray:
    """Return synthetic unit vectors, float32[count, DIMENSION]: around centres of a falling spectrum."""
    dice = np.random.default_rng(seed)
    noise = dice.standard_normal((count, DIMENSION), np.float32) * SPECTRUM
    noise *= NOISE / np.linalg.norm(noise, axis=1, keepdims=True)
    some: np.ndarray = _centres()[dice.integers(0, CENTRES, count)] + noise
    unit: np.ndarray = some / np.linalg.norm(some, axis=1, keepdims=True)
    return unit


def growth(sizes: Sequence[int], kept: Path | None, svg: Path | None) -> None:
    """Measure each size in a process of its own, and print a table."""
    figures: dict[str, dict[str, float]] = {}
    if kept and kept.exists():
        figures = json.loads(kept.read_text())
    for size in sizes:
        words = [sys.executable, "-m", "benchmarks.growth", "--here", "--count", str(size)]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        figures[str(size)] = json.loads(done.stdout)
        figures_of_size = figures[str(size)].items()
        list(
            instruments.shown(
                (f"{size:,} lessons: {what}", each, "") for what, each in figures_of_size
            )
        )
        if kept:
            kept.write_text(json.dumps(figures, indent=1) + "\n")
    if svg:
        svg.write_text(plot({int(size): each for size, each in figures.items()}))


def one_size(root: Path, count: int) -> Iterator[tuple[str, float]]:
    """Measure a vault of so many lessons."""
    if count > WITH_FILES:
        yield from _engines(_alone(root, count), count)
        return
    init(root)
    vault = open_vault(root)
    vault.__dict__["embedder"] = Made()
    began = time.process_time()
    table = _written(vault, count)
    yield "rows written, s", time.process_time() - began
    yield (
        "index folder, MB",
        sum(f.stat().st_size for f in table.index.rglob("*") if f.is_file()) / 1e6,
    )
    time.sleep(2.1)  # files this young are read again
    reconcile.sync(vault)
    yield "reconcile, nothing changed, s", _seconds(lambda: reconcile.sync(vault))
    file = vault.lessons_dir / "forms/1/1.md"
    file.write_text(file.read_text() + "\nOne more sentence.\n")
    yield (
        "a saved lesson is in the index, s",
        _seconds(lambda: reconcile.at_once(vault, full=False)),
    )
    yield "tables loaded for searches, s", _seconds(lambda: current.load_tables(vault))
    yield "a search, ms", _milliseconds(lambda n: query.find(vault, _words(n), k=3))
    yield from _engines(table.index, count)


def _written(vault: Vault, count: int) -> Table:
    """Write so many lessons, and their rows and vectors past the embedder."""
    lessons = reconcile.LessonSource(vault)
    vault.index_dir.mkdir(mode=0o700, exist_ok=True)
    reconcile.sync(vault)
    index = manifest.current(vault.index_dir)
    assert index is not None
    known, table = manifest.load(index), lessons.table(index, DIMENSION)
    text = [
        f"# About {_words(form)[:40]}\n\n{_words(form)} {_words(form + 7)}\n"
        for form in range(FORMS)
    ]
    parsed = [parse.parse_file(each.encode(), "a.md") for each in text]
    forms = [rows.of_file(each, "lessons/a.md", None)[0] for each in parsed]
    files: dict[str, manifest.FileEntry] = {}
    for start in range(0, count, _BATCH):
        batch = []
        for number, vector in enumerate(vectors(min(_BATCH, count - start), start), start):
            id, form = f"forms/{number % 100}/{number}", number % FORMS
            row: dict[str, Any] = {
                **forms[form],
                "id": f"{id}@0",
                "lesson_id": id,
                "vector": vector,
            }
            data = f"{text[form]}\nForm {number}.\n".encode()
            row |= {"path": f"lessons/{id}.md", "content_hash": hash_of(str(number))}
            row |= {"file_hash": hash_of_file(data)}
            batch.append(row)
            stamp = list(stamp_of(write(vault.lessons_dir / f"{id}.md", data).lstat()))
            files[f"{id}.md"] = manifest.FileEntry(row["file_hash"], stamp, 1)
        table.replace(batch, [])
    table.fold()
    manifest.save(index, manifest.Manifest(known.schema, known.embedder, DIMENSION, files=files))
    return table


def _alone(root: Path, count: int) -> Path:
    """Write a table of ids and vectors, and nothing else."""
    import lancedb
    import pyarrow as pa

    table = None
    for start in range(0, count, _BATCH):
        some = vectors(_BATCH, start)
        ids = [f"forms/{number % 100}/{number}" for number in range(start, start + _BATCH)]
        listed = pa.FixedSizeListArray.from_arrays(pa.array(some.ravel()), DIMENSION)
        batch = pa.table({"lesson_id": ids, "vector": listed})
        if table is None:
            table = lancedb.connect(str(root)).create_table("lessons", batch)
        else:
            table.add(batch)
    return root


def _engines(index: Path, count: int) -> Iterator[tuple[str, float]]:
    """Compare the ways to the nearest vectors: all multiplied, by LanceDB's index."""
    import lancedb

    all_vectors = np.concatenate(
        [vectors(min(_BATCH, count - start), start) for start in range(0, count, _BATCH)]
    )
    asked = [vectors(1, 10**7 + number)[0] for number in range(20)]
    exact = [
        set((-(all_vectors @ vector)).argpartition(NEAREST)[:NEAREST].tolist()) for vector in asked
    ]
    yield (
        "exact scan, ms",
        _milliseconds(lambda n: (-(all_vectors @ asked[n])).argpartition(NEAREST)),
    )
    yield "exact scan, MB", all_vectors.nbytes / 1e6
    opened = lancedb.connect(str(index)).open_table("lessons")
    began = time.process_time()
    is_quick = count >= WITH_FILES  # the usual training takes half an hour
    opened.create_index(
        metric="cosine",
        vector_column_name="vector",
        num_partitions=int(math.sqrt(count)),
        max_iterations=5 if is_quick else 50,
        sample_rate=32 if is_quick else 256,
    )
    yield "IVF-PQ built, s", time.process_time() - began

    def by_index(number: int) -> set[int]:
        search = opened.search(asked[number], vector_column_name="vector").metric("cosine")
        found = search.nprobes(20).refine_factor(20).limit(NEAREST).select(["lesson_id"]).to_list()
        return {int(row["lesson_id"].rpartition("/")[2]) for row in found}

    yield "IVF-PQ, ms", _milliseconds(by_index)
    yield "IVF-PQ, recall of ten", _recall(exact, by_index)


def _words(number: int) -> str:
    """Return some words of this repository's lessons, by a number."""
    words = instruments.WORDS
    return " ".join(words[(number * 613 + at * 97) % len(words)] for at in range(12)).replace(
        ":", ""
    )


def _recall(exact: Sequence[set[int]], find: Callable[[int], set[int]]) -> float:
    return statistics.mean(len(right & find(n)) / NEAREST for n, right in enumerate(exact))


def _seconds(do: Callable[[], object]) -> float:
    began = time.process_time()
    do()
    return time.process_time() - began


def _milliseconds(do: Callable[[int], object], times: int = 20) -> float:
    """Return the milliseconds of a processor that something takes, the median, after a first time."""
    do(0)
    return 1000 * statistics.median(_seconds(partial(do, number)) for number in range(times))


LINES = {
    "a search, ms": ("#333", "a whole search"),
    "exact scan, ms": ("#c33", "vectors: exact scan"),
    "IVF-PQ, ms": ("#2a2", "vectors: IVF-PQ"),
}
_WIDTH, _HEIGHT, _LEFT, _TOP = 640, 360, 60, 20


def plot(figures: dict[int, dict[str, float]]) -> str:
    """Draw the milliseconds of a processor by the number of lessons, both logarithmic, as SVG."""
    across, down = _WIDTH - _LEFT - 40, _HEIGHT - _TOP - 50

    def place(lessons: float, milliseconds: float) -> tuple[float, float]:
        x = _LEFT + across * (math.log10(lessons) - 3) / 3
        return x, _TOP + down * (3 - math.log10(max(0.01, milliseconds))) / 5

    drawn = []
    for tenth in range(6):
        milliseconds = 10 ** (tenth - 2)
        y = place(1000, milliseconds)[1]
        drawn.append(f'<path d="M{_LEFT} {y:.0f}h{across}" stroke="#ddd"/>')
        drawn.append(
            f'<text x="{_LEFT - 6}" y="{y + 4:.0f}" text-anchor="end">{milliseconds:g} ms</text>'
        )
    for power in range(3, 7):
        x = place(10**power, 1)[0]
        at = f'x="{x:.0f}" y="{_TOP + down + 18}" text-anchor="middle"'
        drawn.append(f"<text {at}>{10**power:,}</text>")
    for number, (what, (color, name)) in enumerate(LINES.items()):
        points = [place(size, each[what]) for size, each in sorted(figures.items()) if what in each]
        line = " ".join(f"{x:.0f},{y:.0f}" for x, y in points)
        drawn.append(f'<polyline points="{line}" fill="none" stroke="{color}" stroke-width="2"/>')
        at = f'x="{_LEFT + 8}" y="{_TOP + 14 + 16 * number}" fill="{color}"'
        drawn.append(f"<text {at}>{name}</text>")
    title = f'<text x="{_LEFT}" y="{_HEIGHT - 8}">lessons, and milliseconds of a processor</text>'
    size = f'width="{_WIDTH}" height="{_HEIGHT}" viewBox="0 0 {_WIDTH} {_HEIGHT}"'
    style = 'font-family="sans-serif" font-size="12"'
    background = '<rect width="100%" height="100%" fill="#fff"/>'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>',
            background,
            *drawn,
            title,
            "</svg>\n",
        ]
    )


if __name__ == "__main__":
    main()
