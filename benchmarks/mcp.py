"""Ten MCP servers at once over one vault: their memory, how soon they answer, how quick a search is.

    python -m benchmarks.mcp

Each server is a process as an agent starts it; all ask the one watcher. Times are also shown as
multiples of `python -c pass`, measured in the same run.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

from benchmarks import instruments
from benchmarks.instruments import REPO, Row
from vault_index.edit import add, init
from vault_index.embed import download
from vault_index.hotpath import protocol
from vault_index.index import reconcile
from vault_index.vault import Vault, open_vault

SERVERS = 10
SEARCHES = 30  # of each server
PROMPTS = (
    "our build dies with heap out of memory",
    "the container is killed without a message",
    "a test fails only in CI",
    "how do we name durations",
    "two processes write the same index",
)


class Server:
    """A server process and its client: a line of JSON there, one back."""

    def __init__(self, folder: Path) -> None:
        began = time.perf_counter()
        self.process = subprocess.Popen(
            [instruments.LESSONS, "mcp"], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}}
        self.ask("initialize", {**hello, "clientInfo": {"name": "benchmark", "version": "1"}})
        self.seconds = time.perf_counter() - began
        self._send({"method": "notifications/initialized"})

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to a request."""
        self._send({"id": 1, "method": method, "params": params})
        assert self.process.stdout
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())["result"]
        return answer

    def search(self, number: int) -> float:
        """Search, and return how many milliseconds that took."""
        query = PROMPTS[number % len(PROMPTS)]
        began = time.perf_counter()
        answer = self.ask("tools/call", {"name": "learn_search", "arguments": {"query": query}})
        assert "id: " in answer["content"][0]["text"]
        return 1000 * (time.perf_counter() - began)

    def megabytes(self, what: str) -> float:
        """Return the memory of the process: `Rss`, or `Pss`, with its share of what others have, too."""
        lines = Path(f"/proc/{self.process.pid}/smaps_rollup").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith(f"{what}:")) / 1024

    def _send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.process.stdin.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.communicate(timeout=30)


def main() -> None:
    """Measure on this repository's lessons, and on 10,000."""
    with tempfile.TemporaryDirectory(prefix="lessons-benchmark-") as scratch:
        os.environ.setdefault("LESSONS_HOME", str(Path(scratch) / "home"))
        download.fetch(Path(os.environ["LESSONS_HOME"]))
        for vault in (of_this_repository(Path(scratch) / "team"), many(Path(scratch) / "many")):
            with instruments.watched(vault):
                instruments.quiet(vault)
                list(instruments.shown(measure(vault)))


def measure(vault: Vault) -> Iterator[Row]:
    """Return the rows of the table for a vault that is watched."""
    count = len(vault.files()[0])
    name = f"{count:,} lessons, {SERVERS} MCP servers"
    starts = [_starts(vault) for _ in range(7)]  # in turn: the machine may be busy
    python, server = (statistics.median(each) for each in zip(*starts, strict=True))
    yield f"{name}: start of bare Python", 1000 * python, "ms"
    yield f"{name}: `initialize` is answered, one alone", server, "s"
    yield f"{name}: the same, times bare Python", server / python, ""
    with Server(vault.root) as alone:
        alone.search(0)
        pairs = [(alone.search(n), _from_watcher(vault, n)) for n in range(SEARCHES)]
        searches, answers = zip(*pairs, strict=True)
        yield f"{name}: a search, one server, median", statistics.median(searches), "ms"
        yield f"{name}: a search, one server, p90", _p90(searches), "ms"
        yield f"{name}: of it the watcher's answer, p90", _p90(answers), "ms"
    with ExitStack() as stack, ThreadPoolExecutor(SERVERS) as threads:
        servers = list(threads.map(lambda _: Server(vault.root), range(SERVERS)))
        for server in servers:
            stack.enter_context(server)
        yield f"{name}: the last of ten that start at once", max(s.seconds for s in servers), "s"
        in_turn = sorted(server.search(n) for n in range(SEARCHES // 3) for server in servers)
        yield f"{name}: a search, all connected, p90", in_turn[int(0.9 * len(in_turn))], "ms"
        at_once = [ms for times in threads.map(_searches, servers) for ms in times]
        yield (
            f"{name}: a search, all ten at once, p90",
            sorted(at_once)[int(0.9 * len(at_once))],
            "ms",
        )
        yield f"{name}: memory of the largest", max(s.megabytes("Rss") for s in servers), "MB"
        yield (
            f"{name}: of it not shared with others",
            max(s.megabytes("Pss") for s in servers),
            "MB",
        )


def of_this_repository(root: Path) -> Vault:
    """Make a vault of this repository's lessons, indexed."""
    init(root)
    subprocess.run(["cp", "-r", f"{REPO}/lessons", root], check=True)
    return _indexed(open_vault(root))


def many(root: Path, count: int = 10_000) -> Vault:
    """Make a vault of many lessons: words of this repository's, and those themselves."""
    init(root)
    words = instruments.WORDS
    subprocess.run(["cp", "-r", f"{REPO}/lessons", root], check=True)
    vault = open_vault(root)
    lines: list[tuple[int, dict[str, Any]]] = []
    for number in range(count - len(vault.files()[0])):
        title = " ".join(words[(number * 7 + index) % len(words)] for index in range(5))
        text = " ".join(words[(number * 31 + index * 13) % len(words)] for index in range(25))
        lines.append((number, {"id": f"many/{number}", "title": title, "text": text}))
    add.from_json_lines(vault, lines)
    return _indexed(vault)


def _indexed(vault: Vault) -> Vault:
    reconcile.sync(vault)
    return vault


def _searches(server: Server) -> list[float]:
    return [server.search(number) for number in range(SEARCHES)]


def _starts(vault: Vault) -> tuple[float, float]:
    """Return the seconds until bare Python has ended, and until a server has answered."""
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", "pass"], check=True)
    python = time.perf_counter() - began
    with Server(vault.root) as server:
        return python, server.seconds


def _from_watcher(vault: Vault, number: int) -> float:
    """Return the milliseconds that the watcher takes for the same question."""
    began = time.perf_counter()
    asked = {"ask": "learn.search", "with": {"query": PROMPTS[number % len(PROMPTS)]}}
    protocol.ask(str(vault.root), asked, 60)
    return 1000 * (time.perf_counter() - began)


def _p90(times: Sequence[float]) -> float:
    return sorted(times)[int(0.9 * len(times))]


if __name__ == "__main__":
    main()
