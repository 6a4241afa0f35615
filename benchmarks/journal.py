"""Measure the journal: import, search and timeline among many records, the Stop hook, a turn's way.

    python -m benchmarks.journal                                  # some minutes
    python -m benchmarks.journal --short                          # what CI runs
    python -m benchmarks.journal --transcripts FOLDER --megabytes 1000 --records 100000

Transcripts are those below the folder, repeated under new ids until there are so many megabytes; without
a folder, small ones that are made here. Records for the search are made of sentences of this
repository's lessons: their vectors are those of the sentences, added up, so that 100,000 take a minute.
Times are of this machine; beside them is a Python that does nothing.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks import instruments
from benchmarks.instruments import LESSONS, REPO, Row
from tests.support.conversations import Conversation
from vault_index import config, state
from vault_index.edit import init
from vault_index.embed import Embedder, download
from vault_index.hotpath import protocol
from vault_index.journal import archive, index
from vault_index.journal.journal import Journal
from vault_index.journal.record import FIELDS, OBSERVATION, PROMPT, SUMMARY, Record, Session
from vault_index.retrieval.measuring import quantile
from vault_index.vault import Vault, open_vault

if TYPE_CHECKING:
    import numpy as np

MEGABYTES, RECORDS = 100, 10_000
SHORT_MEGABYTES, SHORT_RECORDS = 3, 600
_A_SESSION = 20  # records
_UUID = re.compile(rb"\b[0-9a-f]{8}(?=-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b)")


def main() -> None:
    """Run this part of the benchmark by itself."""
    parser = argparse.ArgumentParser(description="Measure the journal.")
    parser.add_argument("--short", action="store_true", help="few megabytes, records and repeats")
    parser.add_argument("--transcripts", type=Path, help="a folder with real ones to repeat")
    parser.add_argument("--megabytes", type=int, help=f"of transcripts (default: {MEGABYTES})")
    parser.add_argument("--records", type=int, help=f"to search among (default: {RECORDS})")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="lessons-journal-") as scratch:
        os.environ.setdefault("LESSONS_HOME", f"{scratch}/home")
        download.fetch(Path(os.environ["LESSONS_HOME"]))
        rows = measure(
            Path(scratch), options.short, options.transcripts, options.megabytes, options.records
        )
        list(instruments.shown(rows))


def measure(
    scratch: Path,
    short: bool,
    transcripts: Path | None = None,
    megabytes: int | None = None,
    records: int | None = None,
) -> Iterator[Row]:
    """Return the rows of the table. The user's folder, `$LESSONS_HOME`, has the model."""
    megabytes = megabytes or (SHORT_MEGABYTES if short else MEGABYTES)
    records = records or (SHORT_RECORDS if short else RECORDS)
    model = Path(os.environ["LESSONS_HOME"]) / "models"
    with _world(scratch / "reading", model):
        yield from _reading(scratch / "reading", transcripts, megabytes)
    with _world(scratch / "embedding", model):
        yield from _embedding(scratch / "embedding", 3 if short else 40)
    with _world(scratch / "searching", model):
        yield from _searching(scratch / "searching", records, 20 if short else 200)


@contextlib.contextmanager
def _world(home: Path, model: Path) -> Iterator[None]:
    """Have a user of its own, with the model and nothing else."""
    home.mkdir(parents=True)
    (home / "models").symlink_to(model)
    before = dict(os.environ)
    os.environ.update(LESSONS_HOME=str(home), CLAUDE_CONFIG_DIR=str(home / "agent"))
    os.environ.update(CODEX_HOME=str(home / "codex"))
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


# import


def _reading(home: Path, transcripts: Path | None, megabytes: int) -> Iterator[Row]:
    """Import transcripts without embedding, then once more; the second time nothing is read."""
    files = sorted(transcripts.rglob("*.jsonl")) if transcripts else []
    sources = [file.read_bytes() for file in files if _is_of_claude(file)] or list(_made(home))
    size = _repeat(sources, home / "agent" / "projects" / "repeated", megabytes * 1_000_000)
    seconds, busy, memory = _import(LESSONS_EMBEDDER="none")
    journal = Journal(config.load())
    kept = archive.latest(journal, limit=-1)
    records = sum(len(session.records) for session in kept)
    yield "import: transcripts", size / 1e6, "MB"
    yield "import: sessions", len(kept), ""
    yield "import: records", records, ""
    yield "import: prompts", sum(session.prompts for session in kept), ""
    yield "import without embedding, whole process", seconds, "s"
    yield "import: reading and full text", size / 1e6 / seconds, "MB/s"
    yield "import: reading and full text, of processor time", size / 1e6 / busy, "MB/s"
    yield "import: peak memory", memory, "MB"
    yield "import again, nothing grew", _import(LESSONS_EMBEDDER="none")[0], "s"


def _is_of_claude(file: Path) -> bool:
    with file.open("rb") as lines:
        return b'"sessionId"' in lines.read(4096)


def _salted(salt: int, match: re.Match[bytes]) -> bytes:
    return b"%08x" % (int(match[0], 16) ^ salt)


def _repeat(sources: Sequence[bytes], folder: Path, size: int) -> int:
    """Write transcripts under new ids until there are so many bytes; return how many there are."""
    folder.mkdir(parents=True)
    written = number = 0
    while written < size:
        salt = (number // len(sources)) * 2_654_435_761 & 0xFFFFFFFF
        data = _UUID.sub(partial(_salted, salt), sources[number % len(sources)])
        session = re.search(rb'"sessionId": ?"([^"]+)"', data)
        name = session[1].decode() if session else "unnamed"
        (folder / f"{name}-{number}.jsonl").write_bytes(data)
        written += len(data)
        number += 1
    return written


def _made(home: Path) -> Iterator[bytes]:
    """Yield the bytes of small transcripts, with as much output of tools as agents have."""
    for number in range(8):
        talk = _talk(home / "made", f"made {number}", 12, output_lines=60)
        yield talk.file.read_bytes()
        talk.file.unlink()


def _talk(folder: Path, name: str, turns: int, output_lines: int) -> Conversation:
    """Hold a conversation of random sentences: a prompt, tools, an answer each turn."""
    chance = random.Random(name)
    sentences = _sentences()
    began = datetime.now(UTC) - timedelta(days=chance.randrange(1, 20))
    talk = Conversation(folder, name, began=began)
    for turn in range(turns):
        talk.asks(" ".join(chance.sample(sentences, 2)))
        output = "\n".join(chance.choices(sentences, k=output_lines))
        talk.runs(f"pytest tests/test_{turn}.py", output, failed=chance.random() < 0.3)
        talk.edits(f"src/part_{turn}.py", *chance.sample(sentences, 2))
        talk.says(" ".join(chance.sample(sentences, 5)))
    return talk


def _embedding(home: Path, sessions: int) -> Iterator[Row]:
    """Import sessions whose every text is new, with the model: what a first import costs."""
    for number in range(sessions):
        _talk(home / "project", f"new {number}", 10, output_lines=5)
    seconds, busy, memory = _import()
    journal = Journal(config.load())
    kept = archive.latest(journal, limit=-1)
    records = sum(len(session.records) for session in kept)
    yield "import with embedding: records", records, ""
    yield "import with embedding, whole process", seconds, "s"
    yield "import with embedding", records / seconds, "records/s"
    yield "import with embedding, of processor time", records / busy, "records/s"
    yield "import with embedding: peak memory", memory, "MB"


def _import(**environ: str) -> tuple[float, float, float]:
    """Run `lessons journal import`; return its seconds, those of processors, and peak memory in MB."""
    began = time.perf_counter()
    process = subprocess.Popen(
        [LESSONS, "journal", "import", "--since", "all"],
        env={**os.environ, **environ},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(process.pid, 0)
    assert status == 0, "the import failed"
    process.returncode = 0
    unit = 1024 if sys.platform == "linux" else 1024**2
    busy = usage.ru_utime + usage.ru_stime
    return time.perf_counter() - began, busy, usage.ru_maxrss / unit


# search


class OfSentences:
    """Vectors of texts that are made of a few sentences: those of the sentences, added up.

    It has the name of the embedder that made the sentences' vectors, so a watcher searches them.
    """

    def __init__(self, real: Embedder, sentences: Sequence[str]) -> None:
        self._real = real
        self.name = real.name
        self.dimension = real.dimension
        self._vectors = dict(zip(sentences, real.embed_documents(sentences), strict=True))

    def embed_documents(self, texts: Sequence[str]) -> np.ndarray:
        """Return unit vectors float32[len(texts), dimension]."""
        import numpy as np

        vectors = np.zeros((len(texts), self.dimension), np.float32)
        for vector, text in zip(vectors, texts, strict=True):
            for part in text.split("\n"):
                vector += self._vectors.get(part, 0)
        vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
        return vectors

    def embed_queries(self, texts: Sequence[str]) -> np.ndarray:
        """Return unit vectors of queries, float32[len(texts), dimension]."""
        return self._real.embed_queries(texts)

    def knows(self, _text: str) -> bool:
        """Return true: its vectors mean what its texts say."""
        return True


def _sentences() -> list[str]:
    """Return the sentences of this repository's lessons."""
    text = " ".join(path.read_text("utf-8") for path in sorted((REPO / "lessons").rglob("*.md")))
    parts = (" ".join(part.split()) for part in re.split(r"(?<=[.!?:])\s|\n\n|^[-#] ", text))
    return sorted({part for part in parts if 20 < len(part) < 200 and part.isprintable()})


def _searching(home: Path, records: int, repeats: int) -> Iterator[Row]:
    vault = _vault(home / "shop")
    journal = Journal(config.load())
    sentences = _sentences()
    began = time.perf_counter()
    written = sum(_write(journal, vault, sentences, n) for n in range(-(-records // _A_SESSION)))
    yield "session files written", written / (time.perf_counter() - began), "records/s"
    assert journal.embedder is not None
    stats = index.sync(Journal(journal.config, OfSentences(journal.embedder, sentences)))
    yield f"{written} records: rows", stats.rows, ""
    yield f"{written} records: index, vectors at hand", stats.seconds, "s"
    subprocess.run([LESSONS, "install", "claude", "--journal"], cwd=vault.root, check=True,
                   capture_output=True)  # fmt: skip
    base = statistics.median(
        instruments.process([sys.executable, "-c", "pass"], b"")[0] for _ in range(15)
    )
    yield "python -c pass, p50", base, "ms"
    with instruments.watched(vault):
        for what, times in _questions(vault, sentences, repeats).items():
            yield f"{written} records: {what} in the watcher, p50", statistics.median(times), "ms"
            yield f"{written} records: {what} in the watcher, p90", quantile(times, 0.9), "ms"
            yield f"{written} records: {what}, p90 of python -c pass", (
                quantile(times, 0.9) / base
            ), "x"  # fmt: skip
        yield f"{written} records: memory of the watcher", instruments.memory(), "MB"
        yield from _turns(vault, base, max(3, repeats // 10))


def _vault(root: Path) -> Vault:
    init(root)
    vault = open_vault(root)
    (vault.lessons_dir / "dates.md").write_text("---\ntitle: Dates\n---\nStore dates in UTC.\n")
    subprocess.run([LESSONS, "index"], cwd=root, check=True, capture_output=True)
    return vault


def _write(journal: Journal, vault: Vault, sentences: Sequence[str], number: int) -> int:
    """Keep a made session; return how many records it has."""
    chance = random.Random(number)
    id = f"{chance.getrandbits(32):08x}-0000-4000-8000-{number:012x}"
    began = datetime.now(UTC) - timedelta(hours=2 + number % 2000)

    def record(position: int) -> Record:
        kind = PROMPT if position % 2 == 0 else OBSERVATION
        turn = position // 2 + 1
        return Record(
            id=f"{id[:8]}-{kind[0]}{turn}",
            kind=kind,
            number=turn,
            at=(began + timedelta(minutes=position)).isoformat(),
            title=chance.choice(sentences),
            text="\n".join(chance.sample(sentences, 2 if kind == PROMPT else 3)),
            uuids=(f"{chance.getrandbits(32):08x}",),
            type="" if kind == PROMPT else chance.choice(("bugfix", "change", "discovery")),
            facts=() if kind == PROMPT else (chance.choice(sentences),),
            files_modified=() if kind == PROMPT else (f"src/part_{chance.randrange(500)}.py",),
        )

    records = [record(position) for position in range(_A_SESSION - 1)]
    fields = {name: chance.choice(sentences) for name in FIELDS[:4]}
    summary = Record(f"{id[:8]}-s", SUMMARY, 0, records[-1].at, records[0].title, "", fields=fields)
    session = Session(
        id=id,
        agent="claude",
        transcript=f"/agent/{id}.jsonl",
        project="shop",
        folder=str(vault.root),
        branch="main",
        began=began.isoformat(),
        ended=records[-1].at,
        prompts=_A_SESSION // 2,
        records=(*records, summary),
    )
    with state.writing(journal.home) as db:
        short = archive.free_short(db, session.id)  # another may have the same eight characters
        archive.write(db, replace(session, short=short, written=time.time_ns()))
    return len(session.records)


def _questions(vault: Vault, sentences: Sequence[str], repeats: int) -> dict[str, list[float]]:
    """Ask the watcher; return what each round trip took, in milliseconds."""
    chance = random.Random(5)
    times: dict[str, list[float]] = {"search": [], "search, --file": [], "timeline": []}
    for number in range(repeats + 5):
        words = chance.choice(sentences).split()
        query = " ".join(words[: chance.randrange(4, 12)])
        hits: list[dict[str, Any]] = []
        for what, ask, asked in (
            ("search", "journal.search", {"text": query, "k": 5}),
            ("search, --file", "journal.search", {"text": query, "file": "part_7.py", "k": 5}),
            ("timeline", "journal.timeline", {}),
        ):
            if what == "timeline":
                asked = {"anchor": hits[0]["id"]} if hits else {"anchor": query}
            began = time.perf_counter()
            answer = protocol.ask(str(vault.root), {"ask": ask, "with": asked}, 120)["answer"]
            if number >= 5:  # warm
                times[what].append(1000 * (time.perf_counter() - began))
            hits = hits or answer.get("hits", [])
    return times


# a turn's end


def _turns(vault: Vault, base: float, turns: int) -> Iterator[Row]:
    """Time the Stop hook, and how long after it a turn is found."""
    talk = Conversation(vault.root, "live", began=datetime.now(UTC) - timedelta(minutes=5))
    prompt = instruments.event(vault, ["our build dies with heap out of memory"], 0)
    stop = json.dumps(talk.event("Stop", stop_hook_active=False)).encode()
    hooks: dict[str, list[float]] = {"prompt": [], "Stop": []}
    waits: list[float] = []
    for turn in range(turns):
        word = f"zyzzyva{turn}qux"
        talk.asks(f"why does the {word} service refuse connections?").runs("ls", "a\nb")
        talk.says(f"The {word} service listened on another port.")
        began = time.perf_counter()
        hooks["Stop"].append(instruments.process([instruments.HOOK], stop)[0])
        while not _finds(vault, word):
            assert time.perf_counter() - began < 60, "a turn is not found"
            time.sleep(0.02)
        waits.append(time.perf_counter() - began)
        hooks["prompt"].append(instruments.process([instruments.HOOK], prompt)[0])
    for event, times in hooks.items():
        yield f"{event} hook, warm, whole process, p50", statistics.median(times), "ms"
        yield f"{event} hook, warm, of python -c pass", statistics.median(times) / base, "x"
    yield "a turn is found after its Stop hook, p50", statistics.median(waits), "s"
    yield "a turn is found after its Stop hook, p95", quantile(waits, 0.95), "s"


def _finds(vault: Vault, word: str) -> bool:
    question = {"ask": "journal.search", "with": {"text": word, "k": 5}}
    hits = protocol.ask(str(vault.root), question, 30)["answer"]["hits"]
    return any(word in hit["text"] for hit in hits)


if __name__ == "__main__":
    main()
