"""Measure the floors of an embedder once, by lessons and prompts that come with the package.

Its cosines have a scale of their own. The lessons are divided into two halves. Each half is asked what
the other one answers, what no lesson answers, and failures of both kinds. The floors are as far above the
evidence for these as the built-in model's are.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vault_index.errors import EmbedderError
from vault_index.retrieval import failures, query
from vault_index.retrieval.floor import BUILT_IN, Floors, OfEmbedder
from vault_index.retrieval.hit import Query
from vault_index.text import failure, foreign

if TYPE_CHECKING:
    from vault_index.store.sync import Progress
    from vault_index.text.failure import Failure
    from vault_index.vault import Vault

# Where the built-in model's floors are beside what it has for these texts: for prompts and skills in
# distances from the median (0) to what 2% pass (1); none of the texts passes the upper floor, so there is
# no share to match. The strength for a failure is mostly of words, so its floors are moved as these
# places are.
HIGH = 0.98
PROMPTS, SKILLS = Floors(1.46, 0.84), 1.01
FAILURES, FAILURES_MEDIAN, FAILURES_HIGH = BUILT_IN.failures, 0.320, 0.406
SOME = 3  # each third of the prompts and failures that no lesson answers: 20 s of a server
HALVES = 2

_FILE = Path(__file__).with_name("labelled.jsonl")


@dataclass(frozen=True, slots=True)
class Unanswered:
    """The values of the first lesson for each text that none of half of the lessons answers.

    The evidence for prompts, the same as skills have it, and the strength for failures.
    """

    reasons: Sequence[float]
    scores: Sequence[float]
    strengths: Sequence[float]


def lessons(half: int) -> list[dict[str, Any]]:
    """Return the lessons of a half, 0 or 1, as `edit.add.from_json_lines` takes them."""
    return [
        {"id": f"lesson-{number}", "title": values["title"], "text": values["text"]}
        for number, values in enumerate(_labelled())
        if number % HALVES == half
    ]


def ask(vault: Vault, half: int, progress: Progress) -> Unanswered:
    """Ask the vault of a half, which is indexed, what it does not answer. Raises EmbedderError."""
    others = [each for number, each in enumerate(_labelled()) if number % HALVES != half]
    prompts = [prompt for each in others for prompt in each["prompts"]]
    prompts += foreign.prompts()[half::SOME]
    failed = [_failure(each["failure"]) for each in others if "failure" in each]
    failed += foreign.failures()[half::SOME]
    count = len(prompts) + len(failed)
    reasons, scores, strengths = [], [], []
    for number, prompt in enumerate(prompts, start=1):
        results = query.run(vault, Query(prompt, 5))
        if results.text_only:
            raise EmbedderError(results.text_only)
        hits = results.hits
        reasons.append(max((hit.reason for hit in hits), default=0.0))
        scores.append(max((hit.cosine + hit.full_text for hit in hits), default=0.0))
        progress(number, count)
    for number, each in enumerate(failed, start=len(prompts) + 1):
        strengths.append(failures.strength(vault, each))
        progress(number, count)
    return Unanswered(reasons, scores, strengths)


def floors_of(halves: Sequence[Unanswered]) -> OfEmbedder:
    """Return the floors of the embedder by which the halves answered."""
    reasons = _Scale([value for half in halves for value in half.reasons])
    scores = _Scale([value for half in halves for value in half.scores])
    strengths = _Scale([value for half in halves for value in half.strengths])
    median, high = strengths.at(0) - FAILURES_MEDIAN, strengths.at(1) - FAILURES_HIGH
    return OfEmbedder(
        prompts=Floors(reasons.at(PROMPTS.whole), reasons.at(PROMPTS.line)),
        failures=Floors(FAILURES.whole + (median + high) / 2, FAILURES.line + median),
        skills=scores.at(SKILLS),
    )


class _Scale:
    """Some values as a scale: 0 is their median, 1 what 2% of them exceed."""

    def __init__(self, values: Sequence[float]) -> None:
        self._median = quantile(values, 0.5)
        self._unit = quantile(values, HIGH) - self._median

    def at(self, position: float) -> float:
        return self._median + position * self._unit


def quantile(values: Sequence[float], share: float) -> float:
    """Return the value that `share` of the values do not exceed, interpolated; 0.0 for none."""
    import numpy as np

    return float(np.quantile(values, share)) if values else 0.0


def _labelled() -> list[dict[str, Any]]:
    return [json.loads(line) for line in _FILE.read_text("utf-8").splitlines()]


def _failure(values: dict[str, str]) -> Failure:
    return failure.read(values["command"], values["error"])
