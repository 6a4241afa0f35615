"""Measure what organises a vault: the classifier, import, category filters, names, skills.

    python -m benchmarks.organising                # everything, some five minutes
    python -m benchmarks.organising --only import
    python -m benchmarks.organising --json out.json

The classifier and the import use the evaluation set in ../shared/eval; names and skills the sets in
tests/labelled. Every figure is measured in this run; times are of this machine.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks import instruments
from vault_index.edit import add, init
from vault_index.embed import download
from vault_index.index import classifier, reconcile
from vault_index.lesson.category import DEFAULT_TAXONOMY, UNCATEGORIZED, slugify
from vault_index.recall import select
from vault_index.retrieval import documents, evaluate
from vault_index.retrieval.measuring import quantile
from vault_index.retrieval.query import find
from vault_index.store.filters import WHOLE
from vault_index.vault import Vault, open_vault

REPO = Path(__file__).resolve().parent.parent
EVAL = REPO.parent / "shared" / "eval" / "lessons.jsonl"
QUERIES = REPO.parent / "shared" / "eval" / "queries.jsonl"
LABELLED = REPO / "tests" / "labelled"
MANY = 10_000
FOLDS = 5
NEW = 150  # lessons for each vault of some size
MIN_LESSONS = 10  # of a category that the classifier is tested on

Row = tuple[str, Any, str]


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description="Measure what organises a vault.")
    parser.add_argument("--only", choices=sorted(PARTS), help="one part")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    options = parser.parse_args()
    chosen = [PARTS[options.only]] if options.only else list(PARTS.values())
    with tempfile.TemporaryDirectory(prefix="lessons-organising-") as scratch:
        os.environ.setdefault("LESSONS_HOME", f"{scratch}/home")
        os.environ["HOME"] = scratch  # whose skills these are
        os.environ["LESSONS_WATCH_AUTOSTART"] = "false"
        download.fetch(Path(os.environ["LESSONS_HOME"]))
        rows = [row for part in chosen for row in instruments.shown(part(Path(scratch)))]
    if options.json:
        figures = {what: {"value": figure, "unit": unit} for what, figure, unit in rows}
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


def classification(scratch: Path) -> Iterator[Row]:
    """Five-fold, the evaluation set's folders are the labels."""
    vault = _vault(scratch / "classified")
    add.from_json_lines(vault, evaluate.read_lines(EVAL))
    reconcile.sync(vault)
    columns = ("id", "title", "text", "categories")
    rows, vectors = vault.open_index().store.rows_and_vectors(columns, WHOLE)
    assert vectors is not None
    assert vault.embedder is not None
    embed = vault.embedder.embed_documents
    label = [row["categories"][0] for row in rows]
    counts = Counter(label)
    chosen = [number for number, one in enumerate(label) if counts[one] >= MIN_LESSONS]
    yield "lessons in categories of ten or more", len(chosen), ""
    for name, of_all in (("among these categories", False), ("among all 76", True)):
        learned = range(len(rows)) if of_all else chosen
        yield from _folds(name, chosen, learned, rows, vectors, label, embed)
    yield from _sizes(rows, vectors, label, embed)


def _sizes(rows: Any, vectors: Any, label: list[str], embed: Any) -> Iterator[Row]:
    """Vaults of some of the notes, and others of them as new lessons: what is placed, and how sure."""
    for size, rounds in ((20, 20), (40, 12), (200, 4), (len(rows) - NEW, 3)):
        verdicts = []
        for number in range(rounds):
            order = random.Random(number).sample(range(len(rows)), len(rows))
            known, new = order[:size], order[size : size + NEW]
            judge = _judge(known, rows, vectors, label, embed)
            for one in new:
                found = judge.classify(rows[one]["title"], rows[one]["text"], vectors[one])
                verdicts.append((found, f"{label[one]}/".startswith(f"{found.categories[0]}/")))
        placed = [
            (each.sure, right) for each, right in verdicts if each.categories[0] != UNCATEGORIZED
        ]
        right = sum(is_right for _, is_right in placed) / len(placed)
        yield f"in a vault of {size}: share placed", len(placed) / len(verdicts), ""
        yield f"in a vault of {size}: share of it that is right", right, ""
        mean = sum(sure for sure, _ in placed) / len(placed)
        yield f"in a vault of {size}: said to be right", mean, ""


def _judge(
    known: list[int], rows: Any, vectors: Any, label: list[str], embed: Any
) -> classifier.Classifier:
    titles = [rows[number]["title"] for number in known]
    filed = [[label[number]] for number in known]
    taxonomy = DEFAULT_TAXONOMY  # as `lessons init` writes it
    return classifier.Classifier(vectors[known], filed, titles, taxonomy=taxonomy, embed=embed)


def _folds(
    name: str,
    chosen: list[int],
    learned: Any,
    rows: Any,
    vectors: Any,
    label: list[str],
    embed: Any,
) -> Iterator[Row]:
    shuffled = random.Random(0).sample(chosen, len(chosen))
    for made_to in (True, False):
        sure = classifier.MIN_CERTAINTY
        if made_to:
            classifier.MIN_CERTAINTY = 0.0
        called = right = 0
        for fold in range(FOLDS):
            held = set(shuffled[fold::FOLDS])
            known = [number for number in learned if number not in held]
            judge = _judge(known, rows, vectors, label, embed)
            for number in held:
                verdict = judge.classify(
                    rows[number]["title"], rows[number]["text"], vectors[number]
                )
                if verdict.categories[0] != UNCATEGORIZED:
                    called += 1
                    right += verdict.categories[0] == label[number]
        classifier.MIN_CERTAINTY = sure
        if made_to:
            yield f"{name}: accuracy@1 when made to call all", right / len(chosen), ""
        else:
            yield f"{name}: accuracy@1 of what it calls", right / called, ""
            yield f"{name}: share it declines to call", 1 - called / len(chosen), ""


def importing(scratch: Path) -> Iterator[Row]:
    """Bring 10,000 lessons in from JSON lines, by the command: look, write, index."""
    root = scratch / "imported"
    _vault(root)
    source = scratch / "many.jsonl"
    lines = _many_lessons(MANY)
    source.write_text("".join(json.dumps(one) + "\n" for one in lines), "utf-8")
    yield "characters of a lesson, mean", sum(len(str(one["text"])) for one in lines) / MANY, ""
    for name in ("import, nothing embedded before", "import, a second time"):
        began = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-m", "vault_index", "import", str(source), "--write"],
            cwd=root, capture_output=True, text=True, check=True,
        )  # fmt: skip
        yield name, time.perf_counter() - began, "s"
        yield f"{name}: it says", done.stdout.splitlines()[-1], ""


def _many_lessons(count: int) -> list[dict[str, object]]:
    """Make lessons of the paragraphs of the evaluation set: as long as those, none like another."""
    chance = random.Random(1)
    notes = [values for _, values in evaluate.read_lines(EVAL)]
    paragraphs = [p for note in notes for p in str(note["text"]).split("\n\n") if len(p) > 40]
    titles = [str(note["title"]).split() for note in notes]
    lessons: list[dict[str, object]] = []
    for number in range(count):
        words = chance.choice(titles)[:4] + chance.choice(titles)[-4:]
        text = "\n\n".join(chance.sample(paragraphs, 5))
        if text.count("```") % 2:
            text = text.replace("```", "")
        lessons.append(
            {"title": f"{' '.join(words)} {number}", "text": text, "category": f"a{number % 100}/b"}
        )
    return lessons


def filters(scratch: Path) -> Iterator[Row]:
    """Search 10,000 lessons, all of them and a branch with 1% and with half of them."""
    vault = _vault(scratch / "filtered")
    for number, one in enumerate(_many_lessons(MANY)):
        folder = "rare/one" if number % 100 == 0 else "half/of" if number % 2 else "rest"
        file = vault.lessons_dir / folder / f"{number}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"---\ntitle: {json.dumps(one['title'])}\n---\n{one['text']}\n")
    began = time.perf_counter()
    reconcile.sync(vault)
    yield "index of 10,000, from nothing", time.perf_counter() - began, "s"
    prompts = [one.query for one in evaluate.load(QUERIES)]
    times: dict[str, float] = {}
    for name, only in (("all", []), ("a branch of 1%", ["rare"]), ("one of half", ["half"])):
        asked = [_timed(vault, query, only) for query in prompts]
        times[name] = quantile(asked, 0.9)
        yield f"query in {name}, p50", quantile(asked, 0.5), "ms"
        yield f"query in {name}, p90", times[name], "ms"
    yield "p90 of 1% as a multiple of all", times["a branch of 1%"] / times["all"], "x"
    full = [len(find(vault, query, 100, ["rare"])) for query in prompts]
    yield "fewest hits when 100 are asked for of a branch of 100", min(full), ""


def _timed(vault: Vault, query: str, only: list[str]) -> float:
    vault.query_vectors = {}  # each prompt is embedded, as it would be
    began = time.perf_counter()
    find(vault, query, 5, only)
    return 1000 * (time.perf_counter() - began)


def names(scratch: Path) -> Iterator[Row]:
    """Resolve sixty half-remembered names among sixty documents."""
    vault = _vault(scratch / "named")
    for one in _labelled("documents.jsonl"):
        text = f"---\ntitle: {json.dumps(one['title'])}\nauthor: {one['author']}\n---\n"
        text += "## Lesson: Start\n\nBegin.\n\n## Lesson: End\n\nEnd.\n"
        (vault.lessons_dir / f"{slugify(one['title'])}.md").write_text(text)
    reconcile.sync(vault)
    asked = _labelled("names.jsonl")
    times: list[float] = []
    for half, some in (("misspelt", asked[:30]), ("partial or abbreviated", asked[30:])):
        right = 0
        for name in some:
            began = time.perf_counter()
            best = documents.near(vault, name["asked"])[0]
            times.append(1000 * (time.perf_counter() - began))
            right += best.title == name["title"] and best.likeness >= documents.MIN_LIKENESS
        yield f"names {half}: right of 30", right, ""
    yield "a name resolved, p50", quantile(times, 0.5), "ms"


def skills(scratch: Path) -> Iterator[Row]:
    """Suggest one of forty skills for 120 prompts, or none."""
    vault = _vault(scratch / "skilled")
    for one in _labelled("skills.jsonl"):
        file = vault.root / "skills" / one["name"] / "SKILL.md"
        file.parent.mkdir(parents=True)
        says = f"name: {one['name']}\ndescription: {json.dumps(one['description'])}"
        file.write_text(f"---\n{says}\n---\n{one['body']}\n")
    reconcile.sync(vault)
    counts: Counter[str] = Counter()
    for one in _labelled("skill_prompts.jsonl"):
        suggested = [hit.title for hit in select.for_prompt(vault, one["prompt"]).skills]
        counts[f"{one['kind']}, all"] += 1
        if one["skill"]:
            counts["the right one"] += suggested == [one["skill"]]
            counts["a wrong one instead"] += bool(suggested) and suggested != [one["skill"]]
        else:
            counts[one["kind"]] += bool(suggested)
    yield "prompts with a skill", counts["right, all"], ""
    yield "of these: the right one suggested", counts["the right one"], ""
    yield "of these: a wrong one", counts["a wrong one instead"], ""
    for kind in ("near", "other", "chatter"):
        yield f"a skill for {counts[f'{kind}, all']} prompts {kind}", counts[kind], ""


def _vault(root: Path) -> Vault:
    init(root)
    return open_vault(root)


def _labelled(name: str) -> list[dict[str, str]]:
    lines = (LABELLED / name).read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


PARTS: dict[str, Callable[[Path], Iterator[Row]]] = {
    "classifier": classification,
    "filters": filters,
    "import": importing,
    "names": names,
    "skills": skills,
}

if __name__ == "__main__":
    main()
