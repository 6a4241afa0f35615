"""Measure every command of the command line, cold and warm, in multiples of a Python that does nothing.

    python -m benchmarks.commands [--repeats 7] [--against FOLDER] [--vault FOLDER]

Processor time of the command's own process (user and system; the watcher's is not in it), as medians
of the ratios to `python -c pass`, turn by turn with it. Cold is without a watcher, warm with one, on
the evaluation set. `--against` is the root of another checkout, measured in the same run; `--vault`
a vault that was indexed before, so that it need not be built. Both checkouts need an index of their
own, for each may build another one: the vault is copied for each.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from benchmarks import instruments
from benchmarks.cold import BARE, COMMAND, PROMPTS, _spent
from vault_index.embed import download

LESSON = "jbranchaud/til/ack/ack-bar"
COMMANDS: tuple[tuple[str, ...], ...] = (
    ("list",), ("show", LESSON), ("categories",), ("search", PROMPTS[1]), ("log", LESSON),
    ("edit", LESSON), ("rm", LESSON), ("list", "--json"), ("list", "-c", "git"),
    ("show", LESSON, "--json"), ("recall", PROMPTS[1]), ("--help",), ("--version",),
    ("index",), ("status",), ("categories", "propose"),
    ("categories", "rename", "git", "version-control"),
    ("model", "show"), ("watch", "--status"), ("check", "lessons/jbranchaud/til/ack/ack-bar.md"),
)  # fmt: skip


def main() -> None:
    """Run the measurement and print the table."""
    parser = argparse.ArgumentParser(description="Time each command.")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--against", type=Path, help="another checkout, measured in the same run")
    parser.add_argument("--vault", type=Path, help="a vault of the evaluation set, to be copied")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="lessons-commands-") as scratch:
        os.environ.setdefault("LESSONS_HOME", str(Path(scratch) / "home"))
        download.fetch(Path(os.environ["LESSONS_HOME"]))
        source = options.vault or instruments.eval_vault(Path(scratch) / "eval").root
        checkouts = {"now": instruments.REPO}
        if options.against:
            checkouts = {"before": options.against.resolve(), **checkouts}
        worlds = {}
        for label, checkout in checkouts.items():
            root = Path(scratch) / label
            shutil.copytree(source, root, ignore=shutil.ignore_patterns(".vault_index"))
            worlds[label] = _world(checkout, root)
            _run(worlds[label], root, "index")
            _run(worlds[label], root, "list")
        _table(worlds, Path(scratch), options.repeats)


def _world(checkout: Path, root: Path) -> dict[str, str]:
    """Return the environment in which a checkout's command line runs on its own vault."""
    added = {"PYTHONPATH": str(checkout), "LESSONS_VAULT": str(root), "EDITOR": "true"}
    world = {**os.environ, **added, "LESSONS_WATCH_AUTOSTART": "false"}
    world.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package is compiled
    return world


def _table(worlds: Mapping[str, dict[str, str]], scratch: Path, repeats: int) -> None:
    """Print a line for each command, first cold, then warm, with a column for each checkout."""
    for state in ("cold", "warm"):
        heads = "".join(f"{label:>10}" for label in worlds)
        print(f"{state + ', times python -c pass, processor':<50}{heads}")  # noqa: T201
        with contextlib.ExitStack() as watchers:
            for label, world in worlds.items() if state == "warm" else ():
                _run(world, scratch / label, "watch", "--background")
                watchers.callback(_run, world, scratch / label, "watch", "--stop")
            for words in COMMANDS:
                named = " ".join(words)[:40]
                ratios = [_ratio(worlds[one], scratch / one, words, repeats) for one in worlds]
                figures = "".join(f"{ratio:>10.1f}" for ratio in ratios)
                print(f"lessons {named:<42}{figures}", flush=True)  # noqa: T201


def _ratio(world: Mapping[str, str], root: Path, words: tuple[str, ...], repeats: int) -> float:
    command = [sys.executable, "-c", f"import os; os.chdir({str(root)!r}); {COMMAND}", *words]
    _spent(command, "", world)  # once for the page cache and compiled Python
    pairs = [(_spent(BARE, "", world)[1], _spent(command, "", world)[1]) for _ in range(repeats)]
    return statistics.median(spent / bare for bare, spent in pairs)


def _run(world: Mapping[str, str], root: Path, *words: str) -> None:
    subprocess.run(
        [sys.executable, "-c", COMMAND, *words],
        env=dict(world), cwd=root, check=True, capture_output=True,
    )  # fmt: skip


if __name__ == "__main__":
    main()
