"""Run two suites of BrainBench on what hooks inject: know-to-ask and push.

    git clone https://github.com/garrytan/gbrain
    python -m benchmarks.brain_bench gbrain/evals/brainbench

The fixtures and the sealed gold are gbrain's (MIT; figures here are of commit 01aab110d); nothing of them
is copied. The two metrics of each suite are counted as its README and `src/eval/brainbench/metrics` say;
fixtures marked `holdout` are left out, as in its baseline. Decisions of the mapping:

- Each fixture is a vault of its own; a page of the active source is a lesson, its file as it stands.
- Each turn of the user is a prompt of one session, in order: a lesson is given once.
- What a hook would inject, at most three lessons above the floor, is what was injected.

Its suites write-back and continuity need a memory that writes by itself; here a person reviews.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vault_index.edit import init
from vault_index.embed import download
from vault_index.index import reconcile
from vault_index.recall import select
from vault_index.vault import open_vault

SUITES = ("know-to-ask", "push")
# evals/brainbench/baselines/main.json at that commit: misses, false fires, precision, recall
GBRAIN = {"claude-code": (0, 0, 1, 0.9063), "codex": (0, 0, 1, 0.5521)}


@dataclass(frozen=True, slots=True)
class Turn:
    """A prompt with what was injected at it, and the gold of it."""

    injected: tuple[str, ...]
    gold: frozenset[str]
    acceptable: frozenset[str]  # the gold, too
    should_retrieve: bool


def turns(fixture: dict[str, Any], gold: dict[str, Any], folder: Path) -> Iterator[Turn]:
    """Ask the prompts of a fixture in a vault in an empty folder, and yield those that have gold."""
    init(folder)
    vault = open_vault(folder)
    active = fixture.get("active_source", "default")
    for page in fixture.get("seed_pages", ()):
        if page.get("source_id", "default") == active:
            file = vault.lessons_dir / f"{page['slug']}.md"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(page["content"], "utf-8")
    reconcile.sync(vault)
    given: dict[str, None] = {}
    for turn in fixture["turns"]:
        if turn["role"] != "user":
            continue
        injection = select.for_prompt(vault, turn["text"], given=given)
        ids = tuple(hit.lesson_id for hit in injection.hits)
        given |= dict.fromkeys(ids)
        if known := gold["turns"].get(str(turn["turn_id"])):
            wanted = frozenset(known.get("gold_slugs") or ())
            acceptable = wanted | frozenset(known.get("acceptable_slugs") or ())
            yield Turn(ids, wanted, acceptable, bool(known.get("should_retrieve")))


def know_to_ask(turns: list[Turn]) -> tuple[float, float]:
    """Return the share of turns that missed, and of those that should be silent and were not."""
    wanted = [turn for turn in turns if turn.should_retrieve]
    quiet = [turn for turn in turns if not turn.should_retrieve]
    missed = sum(not turn.acceptable & set(turn.injected) for turn in wanted)
    fired = sum(bool(turn.injected) for turn in quiet)
    return missed / max(1, len(wanted)), fired / max(1, len(quiet))


def push(turns: list[Turn]) -> tuple[float, float]:
    """Return the precision and the recall of what was injected, summed over turns."""
    injected = sum(len(turn.injected) for turn in turns)
    relevant = sum(id in turn.acceptable for turn in turns for id in turn.injected)
    wanted = [turn for turn in turns if turn.should_retrieve]
    hit = sum(len(turn.gold & set(turn.injected)) for turn in wanted)
    gold = sum(len(turn.gold) for turn in wanted)
    return relevant / max(1, injected), hit / max(1, gold)


def run(corpus: Path, scratch: Path) -> tuple[float, float, float, float]:
    """Return misses, false fires, precision and recall of the suites of a corpus."""
    by_suite: dict[str, list[Turn]] = {suite: [] for suite in SUITES}
    for file in sorted((corpus / "fixtures").glob("*.fixture.json")):
        fixture = json.loads(file.read_text("utf-8"))
        suites = [suite for suite in SUITES if suite in fixture["suites"]]
        if fixture.get("holdout") or not suites:
            continue
        name = fixture["fixture_id"]
        gold = json.loads((corpus / "gold" / f"{name}.gold.json").read_text("utf-8"))
        asked = list(turns(fixture, gold, scratch / name))
        for suite in suites:
            by_suite[suite] += asked
    return *know_to_ask(by_suite[SUITES[0]]), *push(by_suite[SUITES[1]])


def main() -> None:
    """Run the suites and print our figures beside those of gbrain's baseline."""
    parser = argparse.ArgumentParser(description="Run two suites of BrainBench.")
    parser.add_argument("corpus", type=Path, help="the folder evals/brainbench of a clone")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="lessons-brain-") as scratch:
        os.environ.setdefault("LESSONS_HOME", str(Path(scratch) / "home"))
        download.fetch(Path(os.environ["LESSONS_HOME"]))
        ours = run(options.corpus, Path(scratch))
    named = {"ours": ours, **{f"gbrain, {name}": figures for name, figures in GBRAIN.items()}}
    for name, (missed, fired, precision, recall) in named.items():
        pushed = f"precision {precision:.2f}  recall {recall:.2f}"
        sys.stdout.write(f"{name:20} missed {missed:.2f}  false fires {fired:.2f}  {pushed}\n")


if __name__ == "__main__":
    main()
