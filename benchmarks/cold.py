"""Time the hook and the commands cold, as whole processes, in multiples of a Python that does nothing.

    python -m benchmarks.cold [--repeats 15] [--against FOLDER]

Turn by turn with `python -c pass`, on the evaluation set, without a watcher. Machines differ by
three and other work disturbs the wall clock, so both wall and processor time are given, as medians
of the pairs' ratios. `--against` is the root of another checkout, to compare it in the same run.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from benchmarks import instruments
from benchmarks.instruments import Row
from vault_index.embed import download
from vault_index.retrieval import query
from vault_index.vault import Vault

BARE = [sys.executable, "-c", "pass"]
HOOK = "from vault_index.entrypoints.hook.client import main; main()"
COMMAND = "from vault_index.entrypoints.cli import main; main()"
PROMPTS = (
    "tmux copy mode select with v and yank with y like vim",
    "our build dies with heap out of memory",
    "a migration waits for a lock on the table",
)


def main() -> None:
    """Run the measurement and print it."""
    parser = argparse.ArgumentParser(description="Time cold processes.")
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--against", type=Path, help="another checkout, measured in the same run")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="lessons-cold-") as scratch:
        os.environ.setdefault("LESSONS_HOME", str(Path(scratch) / "home"))
        download.fetch(Path(os.environ["LESSONS_HOME"]))
        vault = instruments.eval_vault(Path(scratch) / "eval")
        list(instruments.shown(measure(vault, options.repeats, options.against)))


def measure(vault: Vault, repeats: int, against: Path | None = None) -> Iterator[Row]:
    """Return the rows of the table: wall and processor time in multiples of bare Python's."""
    prompt = next((one for one in PROMPTS if query.find(vault, one, k=1)), PROMPTS[0])
    id = query.find(vault, prompt, k=1)[0].lesson_id
    event = {"hook_event_name": "UserPromptSubmit", "prompt": prompt, "cwd": str(vault.root)}
    asked = {"hook": ("lessons-hook", [sys.executable, "-c", HOOK], json.dumps(event))}
    for words in (
        ["--help"], ["search", prompt], ["recall", prompt], ["list"], ["show", id],
        ["categories"], ["index"], ["status"], ["check"],
    ):  # fmt: skip
        command = [sys.executable, "-c", COMMAND, "--vault", str(vault.root), *words]
        asked[words[0]] = (f"lessons {words[0]}", command, "")
    environment = {**os.environ, "LESSONS_VAULT": str(vault.root)}
    environment |= {"LESSONS_WATCH_AUTOSTART": "false", "LESSONS_DEADLINE_MS": "120000"}
    checkouts = {"": environment}
    if against is not None:
        checkouts["before: "] = environment | {"PYTHONPATH": str(against)}
    for what, command, stdin in asked.values():
        for label, where in checkouts.items():
            turns = repeats
            if what == "lessons check":
                turns = 1  # it takes half a minute, and needs nothing warm
            else:
                _spent(command, stdin, where)  # once for the page cache and compiled Python
            pairs = [(_spent(BARE, "", where), _spent(command, stdin, where)) for _ in range(turns)]
            for number, kind in enumerate(("wall", "processor")):
                ratios = [spent[number] / bare[number] for bare, spent in pairs]
                seconds = statistics.median(spent[number] for _, spent in pairs)
                yield f"{label}{what}, cold, {kind}", 1000 * seconds, "ms"
                yield (
                    f"{label}{what}, cold, {kind}, of python -c pass",
                    statistics.median(ratios),
                    "x",
                )


def _spent(command: list[str], stdin: str, environment: Mapping[str, str]) -> tuple[float, float]:
    """Return the seconds of the wall clock and of processors that a process took."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    subprocess.run(
        command, input=stdin, text=True, env=dict(environment), capture_output=True, check=False
    )
    wall = time.perf_counter() - began
    now = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime


if __name__ == "__main__":
    main()
