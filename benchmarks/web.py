"""The HTTP API under load: fifty clients at once over 10,000 lessons.

    python -m benchmarks.web [--seconds 60] [--clients 50] [--vault FOLDER]

Each client keeps its connection and asks again as soon as it has its answer, each time with another
prompt. A vault that is named is served as it is; without one, 10,000 lessons are made of the notes
that there are, which takes minutes: the model reads each of them. Times are also given in starts of
bare Python, measured in the same run.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.instruments import EVAL, LESSONS, REPO, Row, shown
from vault_index.edit import add, init
from vault_index.index import reconcile
from vault_index.retrieval import evaluate
from vault_index.retrieval.measuring import quantile
from vault_index.text import foreign
from vault_index.vault import Vault, open_vault
from vault_index.watch import launch

MANY = 10_000
WARM_UP_SECONDS = 3.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--vault", type=Path, help="one with an index; default: a new one")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        vault = open_vault(asked.vault) if asked.vault else many_lessons(Path(scratch) / "vault")
        list(shown(measure(vault, asked.clients, asked.seconds)))


def measure(vault: Vault, clients: int, seconds: float) -> Iterator[Row]:
    """Return the rows of the table."""
    prompts = [prompt for prompt in _prompts() if len(prompt) >= 10]
    yield "load of the machine before", os.getloadavg()[0], ""
    yield "python -c pass, p50", 1000 * (start := bare_python()), "ms"
    with served(vault) as port:
        asyncio.run(_load(port, prompts, clients, WARM_UP_SECONDS))
        one, _ = asyncio.run(_load(port, prompts, 1, WARM_UP_SECONDS))
        times, failed = asyncio.run(_load(port, prompts, clients, seconds))
    yield "python -c pass, p50, after", 1000 * bare_python(), "ms"
    yield "one client, p50", 1000 * statistics.median(one), "ms"
    yield "clients", clients, ""
    yield "requests", len(times), ""
    yield "failed", failed, ""
    yield "requests a second", len(times) / seconds, ""
    for share in (0.5, 0.9, 0.99, 1.0):
        figure = quantile(times, share)
        yield f"p{100 * share:.0f}", 1000 * figure, "ms"
        yield f"p{100 * share:.0f} as a multiple of python -c pass", figure / start, "x"
    yield "load of the machine after", os.getloadavg()[0], ""


def many_lessons(root: Path) -> Vault:
    """Make a vault of 10,000 lessons from the notes that there are, each time cut elsewhere."""
    init(root)
    vault = open_vault(root)
    notes = list(_notes())
    lines: list[tuple[int, dict[str, Any]]] = []
    for number in range(MANY):
        note, again = notes[number % len(notes)], number // len(notes)
        words = note["text"].split()
        text = f"Note {again} of {note['category']}. " + " ".join(words[again * 10 :][:80])
        lines.append((number + 1, {**note, "id": f"{note['id']}-{again}", "text": text}))
    add.from_json_lines(vault, lines)
    reconcile.sync(vault)
    return vault


@contextmanager
def served(vault: Vault) -> Iterator[int]:
    """Serve a vault, with a watcher; gives the port."""
    server = subprocess.Popen(
        [LESSONS, "--vault", vault.root, "serve", "--port", "0"], stdout=subprocess.PIPE, text=True
    )
    assert server.stdout is not None
    try:
        address = re.search(r":(\d+)", server.stdout.readline())
        assert address
        yield int(address[1])
    finally:
        server.terminate()
        server.wait()
        server.stdout.close()
        launch.stop()


def bare_python() -> float:
    """Return the seconds that a Python takes that does nothing."""
    times = []
    for _ in range(15):
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", "pass"], check=True)
        times.append(time.perf_counter() - began)
    return statistics.median(times)


async def _load(
    port: int, prompts: list[str], clients: int, seconds: float
) -> tuple[list[float], int]:
    """Return the times of answers, and how many requests got none, or another than 200."""
    until = time.monotonic() + seconds
    times: list[float] = []
    failed = 0

    async def client(number: int) -> None:
        nonlocal failed
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while time.monotonic() < until:
            began = time.perf_counter()
            try:
                writer.write(_request(port, f"{prompts[number % len(prompts)]} {number}"))
                status = await _status(reader)
            except (OSError, asyncio.IncompleteReadError):
                failed += 1
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                continue
            times.append(time.perf_counter() - began)
            failed += status != 200
            number += clients
        writer.close()

    await asyncio.gather(*map(client, range(clients)))
    return times, failed


def _request(port: int, prompt: str) -> bytes:
    body = json.dumps({"prompt": prompt}).encode()
    lines = [
        "POST /api/query HTTP/1.1",
        f"Host: 127.0.0.1:{port}",
        "Content-Type: application/json",
    ]
    return "\r\n".join([*lines, f"Content-Length: {len(body)}", "", ""]).encode() + body


async def _status(reader: asyncio.StreamReader) -> int:
    head = await reader.readuntil(b"\r\n\r\n")
    length = re.search(rb"(?i)content-length: (\d+)", head)
    if length:
        await reader.readexactly(int(length[1]))
    return int(head.split()[1])


def _prompts() -> list[str]:
    if (EVAL / "queries.jsonl").is_file():
        return [prompt.query for prompt in evaluate.load(EVAL / "queries.jsonl")]
    return foreign.prompts()


def _notes() -> Iterator[dict[str, Any]]:
    if (EVAL / "lessons.jsonl").is_file():
        yield from (values for _, values in evaluate.read_lines(EVAL / "lessons.jsonl"))
        return
    for file in sorted((REPO / "lessons").rglob("*.md")):
        name = file.relative_to(REPO / "lessons").with_suffix("")
        text = file.read_text("utf-8")
        yield {"id": str(name), "title": name.name, "text": text, "category": str(name.parent)}


if __name__ == "__main__":
    main()
