"""Measure the check: what it reports, refuses and holds back, with the learned scorer and without.

    python -m benchmarks.checks

Sentences of operations were written by two authors before either had read a rule. Of the first 200
(`operations.txt`) 17 were refused then. The rules for the last two, a header's id and a field's name,
were changed since. Of the second 200 none was refused, and no rule was made after them. The other
texts are of ../shared: secrets, orders to an agent and harmless notes, all written before any rule was
read (`cases/corpora`), and 1,870 real notes (`eval`).
The scorer stays while, without it, the orders that are reported or held back fall by more than 3 points.
When that was decided, before patterns were made of what it missed, it was 28 and 27 of 31 orders with the
scorer, 26 and 22 without it; real notes held back went from 1 to 5. Decoders of rot13 and leet found no
order more, and went.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

from benchmarks import instruments
from benchmarks.instruments import Row
from vault_index.check import ERROR, Candidate, Finding, of_text, prompt_injection

OPERATIONS = [Path(__file__).parent / f"{name}.txt" for name in ("operations", "operations_second")]
CORPORA = [
    *(instruments.EVAL.parent / "cases/corpora" / f"{name}.jsonl"
      for name in ("secrets", "injections", "harmless")),
    instruments.EVAL / "lessons.jsonl",
]  # fmt: skip


def main() -> None:
    """Run this benchmark."""
    list(instruments.shown(measure("")))
    with mock.patch.multiple(prompt_injection, _scores=lambda _: [], _GATED=()):
        list(instruments.shown(measure(" without the scorer")))


def measure(how: str) -> Iterator[Row]:
    """Yield what the check says of each corpus: of its texts, how many are reported, and what follows."""
    for file in (*OPERATIONS, *CORPORA):
        lines = file.read_text("utf-8").splitlines()
        texts = lines if file in OPERATIONS else [json.loads(line)["text"] for line in lines]
        checked = [_findings(text) for text in texts]
        yield f"{file.stem}{how}, of {len(texts):,}: reported", sum(map(bool, checked)), ""
        yield "  refused", sum(map(_is_refused, checked)), ""
        held = (not _is_refused(each) and any(one.holds for one in each) for each in checked)
        yield "  held back", sum(held), ""


def _findings(text: str) -> list[Finding]:
    findings = of_text(Candidate("a/note.md", f"# A note\n\n{text}\n".encode()))
    return [each for each in findings if each.rule in ("secret", prompt_injection.RULE)]


def _is_refused(findings: list[Finding]) -> bool:
    return any(each.severity == ERROR for each in findings)


if __name__ == "__main__":
    main()
