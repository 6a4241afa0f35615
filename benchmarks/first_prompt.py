"""Measure the first prompt in a vault: nobody listens yet, on an idle and on a busy machine.

    python -m benchmarks.first_prompt            # ten vaults for each case, a few minutes
    python -m benchmarks.first_prompt --short    # three

A case is some copies of an indexed vault, each asked once, one after the other, at the deadline that
users have. Watchers that were started stay, as they do for users. Busy: as many other processes as
there are processors take all they can get. Beside each case is a Python that does nothing, measured
between its prompts, for machines differ and so does what else they do.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks import cold, instruments
from benchmarks.instruments import Row
from vault_index.embed import download
from vault_index.hotpath import protocol
from vault_index.index import reconcile
from vault_index.retrieval import floor, query
from vault_index.store import ownership
from vault_index.vault import Vault, open_vault
from vault_index.watch import launch

SESSIONS = 10


def main() -> None:
    """Run the measurement and print it."""
    parser = argparse.ArgumentParser(description="Measure the first prompt in a vault.")
    parser.add_argument("--short", action="store_true", help="three vaults a case, not ten")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="lessons-first-") as scratch:
        os.environ.setdefault("LESSONS_HOME", str(Path(scratch) / "home"))
        download.fetch(Path(os.environ["LESSONS_HOME"]))
        vault = instruments.eval_vault(Path(scratch) / "eval")
        list(instruments.shown(measure(vault, Path(scratch), options.short)))


def measure(vault: Vault, scratch: Path, short: bool) -> Iterator[Row]:
    """Return the rows of the table, for an indexed vault."""
    count = 3 if short else 10
    prompt = next(one for one in cold.PROMPTS if _is_answered(vault, one))
    by_words, without_model = _without_model(vault, scratch)
    cases: tuple[tuple[str, Vault, dict[str, str]], ...] = (
        ("starts the watcher", vault, {}),
        ("autostart = false", vault, {"LESSONS_WATCH_AUTOSTART": "false"}),
        ("no model", by_words, without_model),
    )
    for machine in ("idle", "busy"):
        for case, source, environ in cases:
            folder = scratch / "first"
            with _environment(environ):
                copies = _copies(source, folder, count + 1)
                try:
                    with _others() if machine == "busy" else contextlib.nullcontext():
                        yield from _first_prompts(f"{machine}, {case}", copies[:count], prompt)
                        if case == "starts the watcher":
                            yield from _ten_first(f"{machine}, {case}", copies[count], prompt)
                finally:
                    launch.stop()
                    shutil.rmtree(folder, ignore_errors=True)  # a background index may end later
    with instruments.watched(vault):
        yield from _same_millisecond(vault, prompt, 2 if short else 10)


def _is_answered(vault: Vault, prompt: str) -> bool:
    hits = query.find(vault, prompt, k=1)
    floors = floor.in_force(vault)
    return bool(hits) and hits[0].is_above(floors.line if floors else None)


def _first_prompts(case: str, vaults: list[Vault], prompt: str) -> Iterator[Row]:
    """Ask each vault its first prompt, then a second; each beside a Python that does nothing."""
    bare, first, second = [], [], []
    answered = 0
    for vault in vaults:
        bare.append(_took([sys.executable, "-c", "pass"], "")[0])
        took, out = _hook(vault, prompt)
        first.append(took)
        answered += "additionalContext" in out
        second.append(_hook(vault, prompt)[0])
    base = statistics.median(bare)
    yield f"first prompt, {case}: answered of {len(vaults)}", answered, ""
    yield f"first prompt, {case}: p50", 1000 * statistics.median(first), "ms"
    yield f"first prompt, {case}: max", 1000 * max(first), "ms"
    yield f"first prompt, {case}: python -c pass, p50", 1000 * base, "ms"
    yield f"first prompt, {case}: p50 of python -c pass", statistics.median(first) / base, "x"
    yield f"second prompt, {case}: p50 of python -c pass", statistics.median(second) / base, "x"


def _ten_first(case: str, vault: Vault, prompt: str) -> Iterator[Row]:
    """Ask one vault ten first prompts at once: one watcher starts, and ten answers come."""
    with ThreadPoolExecutor(SESSIONS) as pool:
        asked = list(pool.map(lambda _: _hook(vault, prompt), range(SESSIONS)))
    answered = sum("additionalContext" in out for _, out in asked)
    yield f"ten first prompts at once, {case}: answered", answered, ""
    yield f"ten first prompts at once, {case}: max", 1000 * max(took for took, _ in asked), "ms"


def _same_millisecond(vault: Vault, prompt: str, rounds: int) -> Iterator[Row]:
    """Compare ten sessions that ask in the same millisecond with one alone: hooks, and answers.

    Ten Pythons that do nothing, against one, are what the processors make of ten of anything.
    """
    event = json.loads(instruments.event(vault, [prompt], 0))

    def answer() -> None:
        asked = {"event": event, "ms": 0.0, "until": time.monotonic() + 30}
        protocol.ask(str(vault.root), {"ask": "hook", "with": asked}, 30)

    kinds = {
        "python -c pass": lambda: _took([sys.executable, "-c", "pass"], ""),
        "hook": lambda: _hook(vault, prompt),
        "watcher's answer": answer,
    }
    alone: dict[str, list[float]] = {kind: [] for kind in kinds}
    last: dict[str, list[float]] = {kind: [] for kind in kinds}
    for _ in range(rounds):
        for kind, ask in kinds.items():
            for _ in range(3):
                alone[kind].append(_together(ask, 1)[0])
            last[kind].append(max(_together(ask, SESSIONS)))
    for kind in kinds:
        base, ten = statistics.median(alone[kind]), statistics.median(last[kind])
        yield f"{kind}, one alone, p50", 1000 * base, "ms"
        yield f"{kind}, the last of ten in the same millisecond, p50", 1000 * ten, "ms"
        yield f"{kind}, the last of ten, of one alone", ten / base, "x"


def _together(ask: object, count: int) -> list[float]:
    """Call something from as many threads at once; return what each call took."""
    assert callable(ask)
    barrier = threading.Barrier(count)

    def call(_: int) -> float:
        barrier.wait()
        began = time.perf_counter()
        ask()
        return time.perf_counter() - began

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(call, range(count)))


def _hook(vault: Vault, prompt: str) -> tuple[float, str]:
    event = {"hook_event_name": "UserPromptSubmit", "prompt": prompt, "cwd": str(vault.root)}
    return _took([str(instruments.HOOK)], json.dumps(event))


def _took(command: list[str], stdin: str) -> tuple[float, str]:
    environ = {**os.environ}
    environ.pop("PYTHONDONTWRITEBYTECODE", None)  # users have compiled modules
    began = time.perf_counter()
    done = subprocess.run(
        command, input=stdin, text=True, env=environ, capture_output=True, check=True
    )
    return time.perf_counter() - began, done.stdout


@contextlib.contextmanager
def _others() -> Iterator[None]:
    """Keep every processor busy."""
    others = [
        subprocess.Popen(["yes"], stdout=subprocess.DEVNULL) for _ in range(os.cpu_count() or 1)
    ]
    try:
        yield
    finally:
        for process in others:
            process.kill()
            process.wait()


def _without_model(vault: Vault, scratch: Path) -> tuple[Vault, dict[str, str]]:
    """Copy a vault into a world without the model, indexed by full text; nothing is fetched there."""
    home = scratch / "home-without-model"
    home.mkdir()
    environ = {"LESSONS_HOME": str(home), "HF_HUB_OFFLINE": "1"}
    root = scratch / "without-model"
    shutil.copytree(vault.root, root, ignore=shutil.ignore_patterns(".vault_index"))
    with _environment(environ):
        copy = open_vault(root)
        reconcile.sync(copy)
        return copy, environ


def _copies(vault: Vault, folder: Path, count: int) -> list[Vault]:
    """Copy a vault with its index, which is ours in its new place, too."""
    copies = []
    for number in range(count):
        root = folder / f"vault-{number}"
        shutil.copytree(vault.root, root, ignore=shutil.ignore_patterns(".vault_index"))
        ownership.claim(root / ".vault_index")
        shutil.copytree(
            vault.index_dir,
            root / ".vault_index",
            ignore=shutil.ignore_patterns("owner", "watch.*"),
            dirs_exist_ok=True,
        )
        copies.append(open_vault(root))
        reconcile.sync(copies[-1])  # copied files have other stamps
    return copies


@contextlib.contextmanager
def _environment(environ: Mapping[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update(environ)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


if __name__ == "__main__":
    main()
