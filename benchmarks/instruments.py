"""What the benchmarks measure with: watched vaults, whole processes, their use of the machine, and
the comparison of an index with a rebuild."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from vault_index.edit import add, init
from vault_index.hotpath import protocol
from vault_index.index import reconcile
from vault_index.retrieval import evaluate
from vault_index.store import manifest
from vault_index.store.lance import Table
from vault_index.vault import Vault, open_vault
from vault_index.watch import launch

REPO = Path(__file__).resolve().parent.parent
EVAL = REPO.parent / "shared" / "eval"
HOOK = Path(sys.executable).parent / "lessons-hook"
LESSONS = Path(sys.executable).parent / "lessons"

Row = tuple[str, Any, str]  # what, figure, unit

WORDS = sorted(
    {word for path in sorted((REPO / "lessons").rglob("*.md")) for word in path.read_text().split()}
)


# what they share


@contextlib.contextmanager
def watched(vault: Vault) -> Iterator[None]:
    subprocess.run([LESSONS, "--vault", vault.root, "watch", "--background"], check=True,
                   stdout=subprocess.DEVNULL)  # fmt: skip
    try:
        yield
    finally:
        launch.stop()


def event(vault: Vault, prompts: list[str], number: int) -> bytes:
    event = {"hook_event_name": "UserPromptSubmit", "cwd": str(vault.root)}
    return json.dumps(event | {"prompt": prompts[number % len(prompts)]}).encode()


def process(command: list[Any], stdin: bytes) -> tuple[float, bytes]:
    began = time.perf_counter()
    done = subprocess.run(command, input=stdin, capture_output=True, check=True)
    return 1000 * (time.perf_counter() - began), done.stdout


def finds(vault: Vault, word: str, text: str = "") -> bool:
    """Whether a search finds a word; a word alone scores little, so `text` is what is around it."""
    question = {"ask": "search.find", "with": {"query": {"text": text or word, "k": 10}}}
    found = protocol.ask(str(vault.root), question, 30)["answer"]
    return any(word in hit["text"] for hit in found["hits"])


def quiet(vault: Vault) -> float:
    """Wait until the watcher has nothing to do; give how long that took."""
    began = time.monotonic()
    while True:
        protocol.ask(str(vault.root), {"ask": "search.recall", "with": {"query": "are you there yet"},
                                   "fresh": True}, 60)  # fmt: skip
        state = launch.status(vault.root)
        if state and not state["indexing"]:
            known = manifest.load(vault.open_index().store.index)
            if not any(one.hash == "?" for one in known.files.values()):
                return time.monotonic() - began
        time.sleep(0.2)


def pid() -> int:
    return int((launch.folder() / launch.LOCK).read_text())


def memory() -> float:
    printed = subprocess.run(["ps", "-o", "rss=", "-p", str(pid())], capture_output=True, text=True)
    return int(printed.stdout) / 1024


def usage(vault: Vault) -> tuple[int, float, float]:
    """Return open file descriptors, memory in MB, the index folder's size in MB."""
    descriptors = Path(f"/proc/{pid()}/fd")
    count = len(list(descriptors.iterdir())) if descriptors.is_dir() else 0
    size = sum(file.stat().st_size for file in vault.index_dir.rglob("*") if file.is_file())
    return count, memory(), size / 1e6


def growth(
    name: str, before: tuple[int, float, float], after: tuple[int, float, float]
) -> Iterator[Row]:
    for what, unit, old, new in zip(
        ("file descriptors", "memory", "index folder"), ("", "MB", "MB"), before, after, strict=True
    ):
        yield f"{name}: {what} before", old, unit
        yield f"{name}: {what} after", new, unit


def unlike_a_rebuild(vault: Vault) -> int:
    """Count the rows that a rebuild would write otherwise."""
    before = _rows(vault)
    reconcile.rebuild(vault)
    rebuilt = _rows(vault)
    return sum(not _alike(before.get(id), rebuilt.get(id)) for id in before.keys() | rebuilt.keys())


def _rows(vault: Vault) -> dict[str, dict[str, Any]]:
    found = manifest.current(vault.index_dir)
    assert found is not None
    store = Table(found, manifest.load(found).dimension)
    rows = store.rows([*store.schema.columns()])
    assert len({row["id"] for row in rows}) == len(rows), "an id stands twice in the table"
    return {row["id"]: row for row in rows}


def _alike(one: dict[str, Any] | None, other: dict[str, Any] | None) -> bool:
    if one is None or other is None:
        return False
    near = max(abs(a - b) for a, b in zip(one["vector"], other["vector"], strict=True)) < 1e-4
    return near and all(one[key] == other[key] for key in one if key != "vector")


def commit(vault: Vault) -> None:
    git(vault, "add", "-A")
    git(vault, "-c", "user.name=Ada", "-c", "user.email=ada@example.org", "commit", "-q",
         "--allow-empty", "-m", "a change")  # fmt: skip


def git(vault: Vault, *words: str) -> str:
    done = subprocess.run(
        ["git", *words], cwd=vault.root, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def shown(rows: Iterator[Row]) -> Iterator[Row]:
    """Print rows as they come."""
    for what, figure, unit in rows:
        printed = f"{figure:.3f}" if isinstance(figure, float) else str(figure)
        print(f"{what:<66} {printed:>10} {unit}", flush=True)  # noqa: T201  # the table of a benchmark
        yield what, figure, unit


def eval_vault(root: Path) -> Vault:
    """Make the vault of the evaluation set, indexed and committed; or copy one that was kept."""
    kept = os.environ.get("LESSONS_BENCHMARK_VAULT")
    if kept:
        shutil.copytree(kept, root, ignore=shutil.ignore_patterns("*.sock"))
        return open_vault(root)
    init(root)
    vault = open_vault(root)
    add.from_json_lines(vault, evaluate.read_lines(EVAL / "lessons.jsonl"))
    reconcile.sync(vault)
    commit(vault)
    return vault
