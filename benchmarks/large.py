"""Measure what grows with an organisation: prompts that search several vaults.

python -m benchmarks.large vaults              # a warm prompt with one vault and with five
python -m benchmarks.large ray                 # publishing by this process, and by two workers of Ray
python -m benchmarks.large watched             # 200 vaults, one watcher
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks import instruments
from benchmarks.instruments import HOOK, LESSONS, Row
from tests.support.files import write
from vault_index.api import silent
from vault_index.client import local
from vault_index.edit import add, init
from vault_index.hotpath import protocol
from vault_index.retrieval import evaluate
from vault_index.retrieval.measuring import quantile
from vault_index.text.words import count
from vault_index.vault import Vault, open_vault

PROMPTS = 120
ABOVE = 4
WATCHED, SMALL = 200, 10  # vaults, and lessons in each


def main() -> None:
    """Run a measurement and print it."""
    parser = argparse.ArgumentParser(description="Measure what grows with an organisation.")
    parser.add_argument("what", choices=["vaults", "ray", "watched"])
    parser.add_argument(
        "--kept", type=Path, help="a folder that keeps the vaults for the next time"
    )
    options = parser.parse_args()
    measure = {"vaults": several_vaults, "ray": on_ray, "watched": many_watched}[options.what]
    with tempfile.TemporaryDirectory(prefix="lessons-large-") as name:
        list(instruments.shown(measure(options.kept or Path(name))))


def made(root: Path, number: int) -> Vault:
    """Make an indexed vault of the evaluation set, unless it is there; each has other texts."""
    if not root.exists():
        init(root)
        lines = evaluate.read_lines(instruments.EVAL / "lessons.jsonl")
        if number:
            note = f"\n\nNoted by team {number}."
            lines = [(at, {**each, "text": each["text"] + note}) for at, each in lines]
        add.from_json_lines(open_vault(root), lines)
    vault = open_vault(root)
    local.bring_up_to_date(vault, silent, silent)
    return vault


def several_vaults(scratch: Path) -> Iterator[Row]:
    """Time the hook's whole process with a warm watcher: of a user with a vault, and with five."""
    alone, *others = [made(scratch / f"vault-{number}", number) for number in range(ABOVE + 1)]
    lines = evaluate.read_lines(instruments.EVAL / "queries.jsonl")
    prompts = [each["query"] for _, each in lines][:PROMPTS]
    medians = []
    for above in ([], [str(vault.root) for vault in others]):
        os.environ["LESSONS_HOME"] = str(a_home(scratch / f"home-{len(above)}"))
        write(
            Path(os.environ["LESSONS_HOME"], "config.toml"), f"vaults.above = {json.dumps(above)}\n"
        )
        vault = open_vault(alone.root)
        local.bring_up_to_date(vault, silent, silent)
        with instruments.watched(vault):
            instruments.quiet(vault)
            question = {"ask": "search.recall", "with": {"query": prompts[0]}, "settled": True}
            protocol.ask(str(vault.root), question, 60)
            spent = [
                instruments.process([HOOK], instruments.event(vault, prompts, number))[0]
                for number in range(-5, PROMPTS)
            ][5:]
        name = f"a warm prompt, {count(len(above) + 1, 'vault')}"
        yield f"{name}: p50", statistics.median(spent), "ms"
        yield f"{name}: p95", statistics.quantiles(spent, n=20)[-1], "ms"
        medians.append(statistics.median(spent))
    yield f"{ABOVE + 1} vaults, of one", medians[1] / medians[0], "x"


def a_home(folder: Path) -> Path:
    """Make the folder of a new user, with the models of this one."""
    models = Path(os.environ.get("LESSONS_HOME") or Path.home() / ".lessons") / "models"
    folder.mkdir()
    (folder / "models").symlink_to(models.resolve())
    return folder


def many_watched(scratch: Path) -> Iterator[Row]:
    """Ask one watcher about each of many small vaults, then about any of them, and look at its size.

    A vault that nobody asked of for an hour is closed: all of these are open.
    """
    os.environ["LESSONS_HOME"] = str(a_home(scratch / "home"))
    lines = evaluate.read_lines(instruments.EVAL / "lessons.jsonl")
    prompts = [each["query"] for _, each in evaluate.read_lines(instruments.EVAL / "queries.jsonl")]
    vaults = [
        _small(scratch / f"small-{at}", lines[SMALL * at % 1800 :][:SMALL]) for at in range(WATCHED)
    ]
    with instruments.watched(vaults[0]):
        first = [_hook(vault, prompts, at) for at, vault in enumerate(vaults)]
        chance = random.Random(7)
        bare, hooks = [], []
        for number in range(WATCHED):
            bare.append(instruments.process([sys.executable, "-c", "pass"], b"")[0])
            hooks.append(_hook(chance.choice(vaults), prompts, number))
        files, memory, _ = instruments.usage(vaults[0])
        threads = len(list(Path(f"/proc/{instruments.pid()}/task").iterdir()))
    base = statistics.median(bare)
    yield "load of the machine at the end", os.getloadavg()[0], ""
    yield "python -c pass, p50", base, "ms"
    yield f"the first prompt in each of {WATCHED} vaults: p50", statistics.median(first), "ms"
    yield "a prompt in any of them: p50", statistics.median(hooks), "ms"
    yield "a prompt in any of them: p50, of python -c pass", statistics.median(hooks) / base, "x"
    yield "a prompt in any of them: p95, of python -c pass", quantile(hooks, 0.95) / base, "x"
    yield "memory of the watcher", memory, "MB"
    yield "its threads", threads, ""
    yield "its open files", files, ""


def _small(root: Path, lines: Sequence[tuple[int, dict[str, Any]]]) -> Vault:
    init(root)
    vault = open_vault(root)
    add.from_json_lines(vault, lines)
    local.bring_up_to_date(vault, silent, silent)
    return vault


def _hook(vault: Vault, prompts: list[str], number: int) -> float:
    return instruments.process([HOOK], instruments.event(vault, prompts, number))[0]


def on_ray(scratch: Path) -> Iterator[Row]:
    """Time publishing the notes of the evaluation set from nothing, each time for a new user."""
    lines = evaluate.read_lines(instruments.EVAL / "lessons.jsonl")
    for engine in ("", "ray"):
        root, home = scratch / f"vault{engine}", a_home(scratch / f"home{engine}")
        init(root)
        add.from_json_lines(open_vault(root), lines)
        shared = f"LESSONS_INDEX_SHARED={scratch / f'shared{engine}'}"
        command = ["env", f"LESSONS_HOME={home}", shared, LESSONS, "index", "--publish", str(root)]
        command += ["--engine", engine] if engine else []
        seconds = instruments.process(command, b"")[0] / 1e3
        yield f"publishing by {engine or 'this process'}", len(lines) / seconds, "lessons/s"


if __name__ == "__main__":
    main()
