"""Measure the hook at failed commands: a real watcher and real processes, with an answer and without.

    python -m benchmarks.failed_commands             # 60 of each kind
    python -m benchmarks.failed_commands --short     # 12

Before each hook runs a Python that does nothing: how long both take moves with the load of the machine,
their ratio less so. A hook that is late is killed by its own limit of a second and counts as `late`; the
rest of what was not answered is silence. Uses ../shared/eval, whose vault takes some minutes to index;
`$LESSONS_BENCHMARK_VAULT` names one that is.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import instruments
from benchmarks.instruments import EVAL, HOOK, Row
from vault_index.embed import download
from vault_index.hotpath import hook_event
from vault_index.index import reconcile
from vault_index.retrieval import failures
from vault_index.store import injections
from vault_index.text import failure
from vault_index.vault import Vault

WITH, WITHOUT = "with an answer", "without one"
MAX_RATIOS = 3.0, 6.0  # of p50 and p95 to the p50 of `python -c pass`


def main() -> None:
    """Run the measurement and print it."""
    parser = argparse.ArgumentParser(description="Measure the hook at failed commands.")
    parser.add_argument("--short", action="store_true", help="12 failures of a kind, not 60")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="lessons-failed-") as scratch:
        os.environ.setdefault("LESSONS_HOME", str(Path(scratch) / "home"))
        download.fetch(Path(os.environ["LESSONS_HOME"]))
        vault = instruments.eval_vault(Path(scratch) / "eval")
        reconcile.sync(vault)  # a copy that was made elsewhere has no index of its own
        list(instruments.shown(measure(vault, 12 if options.short else 60)))


def measure(vault: Vault, count: int) -> Iterator[Row]:
    """Return the rows of the table, for an indexed vault."""
    kinds = _failures(vault, count)
    bare: list[float] = []
    hooks: dict[str, list[float]] = {WITH: [], WITHOUT: []}
    answered = dict.fromkeys(hooks, 0)
    began = time.time()
    with instruments.watched(vault):
        cold = _ask(vault, kinds[WITH][0], "cold")
        yield "the first failure of a watcher", cold[0], "ms"
        for number, (kind, each) in enumerate(_in_turn(kinds)):
            bare.append(instruments.process([sys.executable, "-c", "pass"], b"")[0])
            ms, printed = _ask(vault, each, f"s{number}")
            hooks[kind].append(ms)
            answered[kind] += bool(printed)
    base = statistics.median(bare)
    yield "python -c pass: p50", base, "ms"
    yield "python -c pass: p95", _quantile(bare, 0.95), "ms"
    for kind, times in hooks.items():
        yield f"failures {kind}", len(times), ""
        yield f"failures {kind}: told", answered[kind], ""
        for share, limit in zip((0.5, 0.95), MAX_RATIOS, strict=True):
            figure = _quantile(times, share)
            yield f"failures {kind}: p{100 * share:.0f}", figure, "ms"
            yield f"failures {kind}: p{100 * share:.0f}, at most {limit:.0f}", figure / base, "x"
    complaints = injections.complaints_of(vault.root, vault.config.home, began)
    yield "late: no answer within the limit", len(complaints), ""
    records = injections.records(vault.config.home, vault.root)
    kept = [each.ms or 0.0 for each in records if each.session.endswith(f"-{os.getpid()}")]
    yield "until the watcher had an answer: p50", _quantile(kept, 0.5), "ms"


def _failures(vault: Vault, count: int) -> dict[str, list[Mapping[str, Any]]]:
    """Return failures that hooks answer in this vault, and as many without a lesson."""
    events = [json.loads(line) for line in (EVAL / "failures.jsonl").read_text().splitlines()]
    found: dict[str, list[Mapping[str, Any]]] = {WITH: [], WITHOUT: []}
    for event in events:
        kind = WITH if event["relevant"] else WITHOUT
        if len(found[kind]) == count or event["kind"] == "near-miss":
            continue
        failed = failure.read(event["command"], event["error"])
        if failures.find(vault, failed).is_above is (kind == WITH):
            found[kind].append(event)
    return found


def _in_turn(
    kinds: Mapping[str, Sequence[Mapping[str, Any]]],
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for pair in zip(*kinds.values(), strict=False):
        yield from zip(kinds, pair, strict=True)


def _ask(vault: Vault, failed: Mapping[str, Any], session: str) -> tuple[float, bytes]:
    """Run a hook as an agent does, in a session of its own; return its time and what it printed."""
    event = {
        "hook_event_name": hook_event.FAILURE,
        "session_id": f"{session}-{os.getpid()}",
        "cwd": str(vault.root),
        "tool_name": "Bash",
        "tool_input": {"command": failed["command"]},
        "error": failed["error"],
        "tool_use_id": f"toolu_{session}",
        "is_interrupt": False,
    }
    return instruments.process([HOOK], json.dumps(event).encode())


def _quantile(values: Sequence[float], share: float) -> float:
    return sorted(values)[int(share * len(values))]


if __name__ == "__main__":
    main()
