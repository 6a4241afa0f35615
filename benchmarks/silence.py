"""How often agents get a lesson or its line where one answers, and where none of the vault does.

    python -m benchmarks.silence FOLDER... [--half] [--lessons N ...] [--seeds 1 2 3]

A folder has `lessons.jsonl`, and labelled `queries.jsonl`, `identifiers.jsonl` or `failures.jsonl` as
`lessons eval` reads them. With `--half` half of the lessons are taken out, with `--lessons` so many are
kept, half of them such that answer a prompt: prompts whose lessons are out are then unanswered ones on
the subject of the vault. Prompts that no lesson of the whole set answers are foreign, and near misses are
what the set calls so. Figures are what hooks inject, so a release is compared with the one before by
running this file with that one's package in `PYTHONPATH`.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from vault_index.edit import add, init
from vault_index.index import reconcile
from vault_index.recall import respond, select
from vault_index.retrieval import evaluate
from vault_index.text import failure
from vault_index.vault import Vault, open_vault

FILES = ("queries.jsonl", "identifiers.jsonl", "failures.jsonl")
ON_SUBJECT = ("orphan", "alert")  # kinds of prompts that no lesson of a set answers, on its subject
Kinds = dict[str, list[tuple[bool, bool, bool, bool, int]]]


def main() -> None:
    """Measure each folder and print a table of means over the seeds."""
    parser = argparse.ArgumentParser(description="Measure silence on a vault's own subject.")
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--half", action="store_true")
    parser.add_argument("--lessons", nargs="*", type=int, default=[])
    parser.add_argument("--seeds", nargs="*", type=int, default=[1, 2, 3])
    parser.add_argument("--prompts", action="store_true", help="with prompts.jsonl")
    parser.add_argument("--kinds", default="", help="only kinds of prompts that begin like this")
    options = parser.parse_args()
    heads = " ".join(f"{head:>11}" for head in ("right", "on subject", "foreign", "near"))
    _say(f"{'set':30} {heads} tokens  prompts")
    _say(f"{'':30} {'whole  all':>11} {'whole line':>11} {'whole line':>11} {'whole line':>11}")
    sizes = options.lessons or [None]
    for folder in options.folders:
        seeds = options.seeds if options.half or options.lessons else [0]
        for size in sizes:
            found: dict[str, list[Kinds]] = defaultdict(list)
            for seed in seeds:
                more = options.prompts
                for file, kinds in measured(folder, seed, options.half, size, options.kinds, more):
                    found[file].append(kinds)
            for file, each in found.items():
                part = f"{size} of " if size else "half of " if options.half else ""
                _say(row(f"{part}{folder.name} {file.removesuffix('.jsonl')}", each))


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def measured(
    folder: Path, seed: int, half: bool, size: int | None, begins: str, with_prompts: bool
) -> Iterator[tuple[str, Kinds]]:
    """Yield what each file of labelled prompts gets from a part of a folder's lessons."""
    lessons = [values for _, values in evaluate.read_lines(folder / "lessons.jsonl")]
    asked = {
        file: [values for _, values in evaluate.read_lines(folder / file)]
        for file in FILES
        if (folder / file).is_file()
    }
    kept = part(lessons, asked, random.Random(seed), half, size)
    present = {str(lesson["id"]) for lesson in kept}
    with tempfile.TemporaryDirectory(prefix="lessons-silence-") as scratch:
        init(Path(scratch))
        vault = open_vault(scratch)
        prompts_by_id = prompts_of(folder) if with_prompts else {}
        kept = [lesson | prompts_by_id.get(str(lesson["id"]), {}) for lesson in kept]
        add.from_json_lines(vault, list(enumerate(kept, start=1)))
        reconcile.sync(vault)
        vault.open_index().store.load(warm=True)
        for file, prompts in asked.items():
            kinds: Kinds = defaultdict(list)
            for values in prompts:
                if str(values.get("kind", "")).startswith(begins):
                    kind, got = outcome(vault, values, present)
                    kinds[kind].append(got)
            yield file, kinds


def prompts_of(folder: Path) -> dict[str, dict[str, list[str]]]:
    """Return the prompts and lines of output that somebody wrote for each lesson, by its id."""
    return {
        str(each["id"]): {"prompts": each["prompts"], "fires_on_error": each.get("errors") or []}
        for _, each in evaluate.read_lines(folder / "prompts.jsonl")
    }


def part(
    lessons: Sequence[dict[str, Any]],
    asked: dict[str, list[dict[str, Any]]],
    chance: random.Random,
    half: bool,
    size: int | None,
) -> list[dict[str, Any]]:
    """Return all lessons, a random half, or so many of them."""
    if half:
        return [lesson for lesson in lessons if chance.random() < 0.5]
    if not size or size >= len(lessons):
        return list(lessons)
    named = {
        id for each in asked.values() for values in each for id in values.get("relevant") or ()
    }
    some = chance.sample([each for each in lessons if each["id"] in named], size // 2)
    subjects = {each["category"] for each in some}
    rest = [each for each in lessons if each["category"] in subjects and each not in some]
    return [*some, *chance.sample(rest, min(len(rest), size - len(some)))]


def outcome(
    vault: Vault, values: dict[str, Any], present: set[str]
) -> tuple[str, tuple[bool, bool, bool, bool, int]]:
    """Return the kind of a prompt, and what came: right whole, right, any whole, any, tokens."""
    if "error" in values:
        failed = failure.read(str(values.get("command") or ""), values["error"])
        got = respond.for_failure(vault, failed)
    else:
        got = select.for_prompt(vault, values["query"])
    whole = {hit.lesson_id for hit in got.hits if not getattr(hit, "as_line", False)}
    ids = {hit.lesson_id for hit in got.hits}
    relevant = set(map(str, values.get("relevant") or ()))
    neutral = ids & set(values.get("borderline") or ())
    any_whole, any_at_all = bool(whole - neutral), bool(ids - neutral)
    if relevant & present:
        kind = "answered"
    elif values.get("kind") == evaluate.NEAR_MISS:
        kind = "near"
    else:
        kind = "subject" if relevant or values.get("kind") in ON_SUBJECT else "foreign"
    right = bool(relevant & whole), bool(relevant & ids)
    return kind, (*right, any_whole, any_at_all, len(got.text) // 4)


def row(name: str, runs: Sequence[Kinds]) -> str:
    """Return a row of the table: means over runs."""

    def mean(kind: str, number: int, minus: int | None = None) -> str:
        shares = [
            statistics.mean(
                one[number] - (one[minus] if minus is not None else 0) for one in run[kind]
            )
            for run in runs
            if run.get(kind)
        ]
        return f"{statistics.mean(shares):.3f}"[: 5 if kind == "foreign" else 4] if shares else "-"

    pairs = [(mean("answered", 0), mean("answered", 1))]
    pairs += [(mean(kind, 2), mean(kind, 3, 2)) for kind in ("subject", "foreign", "near")]
    tokens = statistics.mean(one[4] for run in runs for each in run.values() for one in each)
    counts = "/".join(
        f"{statistics.mean(len(run.get(kind, ())) for run in runs):.0f}"
        for kind in ("answered", "subject", "foreign", "near")
    )
    return f"{name:30} {' '.join(f'{a:>5} {b:>5}' for a, b in pairs)} {tokens:6.0f}  {counts}"


if __name__ == "__main__":
    os.environ.setdefault("LESSONS_WATCH_AUTOSTART", "false")
    main()
