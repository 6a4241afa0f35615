"""Recall and false injections over labelled prompts: does the right lesson come, and only it?

Definitions, as in information retrieval: recall@k is the share of answerable prompts with a right
lesson among the first k; MRR@10 the mean of 1/rank, 0 beyond ten; AUC the chance that an answerable
prompt's best score exceeds an unanswerable one's.
"""

from __future__ import annotations

import json
from collections.abc import Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vault_index import files
from vault_index.errors import VaultError
from vault_index.hotpath import chatter
from vault_index.retrieval import entries, failures, floor, query
from vault_index.retrieval.floor import Floors
from vault_index.retrieval.hit import Query
from vault_index.text import failure
from vault_index.text.failure import Failure

if TYPE_CHECKING:
    from vault_index.store.sync import Progress
    from vault_index.vault import Vault

DEPTH = 10  # hits looked at for each prompt
INJECTED = 3
NEAR_MISS = "near-miss"  # the kind of failures on the subject of a lesson that does not help

_AT_FLOOR = (
    "of what a hook gives; hit: a right lesson comes whole, found: whole or as its line, false: a lesson"
    " comes whole where silence is right, false_line: at most a line; orphan, orphan_line: the same for"
    " prompts whose lessons were left out; wrong: another lesson comes whole, and no right one"
)
EXPLAINED = {
    "prompts": "that some lesson answers",
    "recall@1": "share of them with a right lesson first",
    "recall@3": "among the first 3, as many as a hook injects",
    "recall@5": "among the first 5",
    "mrr@10": "mean of 1/rank of the first right lesson; 0 beyond 10",
    "auc": "chance that a prompt with an answer has more evidence than one without",
    "recall@3_fi2": "recall@3 above the floor that 2% of the prompts without an answer pass",
    "recall@3_fi5": "the same at 5%",
    "floor": "evidence from which on a lesson comes whole",
    "line_floor": "evidence from which on its line comes",
    "at_floor": _AT_FLOOR,
    "by_kind": "the same for each kind; injected: anything comes; recall counts answered prompts",
}


@dataclass(frozen=True, slots=True)
class LabelledPrompt:
    """A prompt and the ids of the lessons that answer it; none means that silence is right.

    With `failed` it is a failed command. No lesson of `borderline` that comes counts as false.
    """

    query: str
    relevant: frozenset[str]
    kind: str
    line: int = 0  # in the file; 0 without a file
    failed: Failure | None = None
    borderline: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class _Outcome:
    """The result of searching a prompt. Evidence is -1 where its form or a taught line decides."""

    prompt: LabelledPrompt
    rank: int | None  # of the first right lesson, from 0
    best: float  # the most evidence of a hit
    right: float  # the most evidence of a right lesson among the first three
    first: str  # id of the first hit; "" without
    whole: frozenset[str]  # ids that a hook injects
    lines: frozenset[str]  # ids whose lines it injects

    @property
    def is_missed(self) -> bool:
        return self.rank is None or self.rank >= INJECTED


def load(path: Path, *, errors: bool = False) -> list[LabelledPrompt]:
    """Read labelled prompts: JSON lines with `query`, `relevant` (ids) and `kind`.

    With `errors` they are failed commands, with `command` and `error`, and `borderline` (ids) if known.
    Raises VaultError with the line for anything else.
    """
    what, text = ("failed command", "error") if errors else ("labelled prompt", "query")
    prompts = []
    for number, values in read_lines(path):
        relevant = values.get("relevant") or []
        if not isinstance(values.get(text), str) or not isinstance(relevant, list):
            hint = f'write it like {{"{text}": "...", "relevant": ["id"], "kind": "..."}}'
            raise VaultError(f"{path}:{number}: not a {what}", hint)
        failed = failure.read(str(values.get("command") or ""), values[text]) if errors else None
        prompts.append(
            LabelledPrompt(
                failed.queries[0] if failed else values[text],
                frozenset(map(str, relevant)),
                str(values.get("kind") or ""),
                number,
                failed,
                frozenset(values.get("borderline") or ()),
            )
        )
    return prompts


def read_lines(path: Path) -> list[tuple[int, dict[str, Any]]]:
    """Read a file of JSON objects, one a line, with their line numbers. Raises VaultError."""
    values = []
    try:
        lines = files.read_named(path).decode("utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise VaultError(f"{path} cannot be read: {error}") from None
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                value = json.loads(line)
            except ValueError:
                value = None
            if not isinstance(value, dict):
                raise VaultError(f"{path}:{number}: not a JSON object")
            values.append((number, value))
    return values


def measure(
    vault: Vault,
    prompts: Sequence[LabelledPrompt],
    progress: Progress = lambda _done, _all: None,
    *,
    left_out: bool = False,
) -> dict[str, Any]:
    """Search every prompt and return the figures, shares 0..1, under the keys of `lessons eval --json`.

    With `left_out`, lessons that the prompts name were taken out: a prompt without any left is an
    orphan. Raises IndexStateError without an index.
    """
    ids = {lesson.id for lesson in entries.entries(vault)}
    outcomes = []
    for number, prompt in enumerate(prompts, start=1):
        outcomes.append((_look_up if prompt.failed else _look)(vault, prompt))
        progress(number, len(prompts))
    orphans = [each for each in outcomes if left_out and _is_orphan(each.prompt, ids)]
    answerable = [each for each in outcomes if each.prompt.relevant and each not in orphans]
    silent = [each for each in outcomes if not each.prompt.relevant]
    floors = _floors(vault, of_failures=any(prompt.failed for prompt in prompts))
    return {
        **_ranking(answerable),
        **_separation(answerable, silent),
        "floor": floors and floors.whole,
        "line_floor": floors and floors.line,
        "at_floor": _hits_of(answerable) | _came_to(silent, "false") | _came_to(orphans, "orphan"),
        "by_kind": _by_kind(outcomes, orphans),
        "unknown": [] if left_out else _unknown(prompts, ids),
        "missed": [_shown(each) for each in answerable if each.is_missed],
        "injected_falsely": [_shown(each) for each in [*silent, *orphans] if each.whole],
    }


def _separation(answerable: Sequence[_Outcome], silent: Sequence[_Outcome]) -> dict[str, Any]:
    """Measure how well evidence tells prompts with an answer from those without one."""
    far = [each for each in silent if each.prompt.kind != NEAR_MISS] or silent
    best_of_far = [each.best for each in far]
    figures = {"auc": _auc([each.best for each in answerable], best_of_far)}
    for percent in (2, 5):
        least = _floor_for(best_of_far, int(percent / 100 * len(far)))
        figures[f"recall@3_fi{percent}"] = _share([each.right > least for each in answerable])
    return figures


def _by_kind(outcomes: Sequence[_Outcome], orphans: Sequence[_Outcome]) -> dict[str, Any]:
    return {
        kind: _of_kind([each for each in outcomes if each.prompt.kind == kind], orphans)
        for kind in sorted({each.prompt.kind for each in outcomes})
    }


def _unknown(prompts: Sequence[LabelledPrompt], ids: Set[str]) -> list[dict[str, Any]]:
    """Return the ids that no lesson has: their prompts count as missed."""
    return [
        {"line": prompt.line, "id": id}
        for prompt in prompts
        for id in sorted(prompt.relevant - ids)
    ]


def _floors(vault: Vault, *, of_failures: bool) -> Floors | None:
    text_only = query.embedder_for(vault, vault.open_index())[0] is None
    if of_failures:
        return floor.for_failures(vault, text_only=text_only)
    return floor.in_force(vault, text_only=text_only)


def _is_orphan(prompt: LabelledPrompt, ids: Set[str]) -> bool:
    return bool(prompt.relevant) and not prompt.relevant & ids


def _hits_of(answerable: Sequence[_Outcome]) -> dict[str, Any]:
    return {
        "hit": _share([bool(each.prompt.relevant & each.whole) for each in answerable]),
        "found": _share(
            [bool(each.prompt.relevant & (each.whole | each.lines)) for each in answerable]
        ),
        "wrong": _share(
            [
                each.whole.isdisjoint(each.prompt.relevant) and bool(each.whole)
                for each in answerable
            ]
        ),
    }


def _came_to(silent: Sequence[_Outcome], name: str) -> dict[str, Any]:
    return {
        name: _share([bool(each.whole) for each in silent]),
        f"{name}_line": _share([bool(each.lines) and not each.whole for each in silent]),
    }


def _shown(outcome: _Outcome) -> dict[str, Any]:
    prompt = outcome.prompt
    return {
        "line": prompt.line,
        "query": prompt.query,
        "relevant": sorted(prompt.relevant),
        "rank": None if outcome.rank is None else outcome.rank + 1,
        "first": outcome.first,
        "score": round(outcome.best, 4),
    }


def _look(vault: Vault, prompt: LabelledPrompt) -> _Outcome:
    wanted = Query(prompt.query, DEPTH + len(prompt.relevant), weighted=True)
    hits = query.run(vault, wanted).hits
    rank = next((n for n, hit in enumerate(hits) if hit.lesson_id in prompt.relevant), None)
    first = hits[0].lesson_id if hits else ""
    is_chatter = bool(chatter.why_skipped(prompt.query))
    scored = [] if is_chatter else hits
    right = [hit for hit in scored[:INJECTED] if hit.lesson_id in prompt.relevant]
    best, of_right = (max((hit.reason for hit in some), default=-1.0) for some in (scored, right))
    came = [] if is_chatter else floor.lessons_above(vault, Query(prompt.query, INJECTED))[0].hits
    whole, lines = (
        frozenset(hit.lesson_id for hit in came if hit.as_line is kind) for kind in (False, True)
    )
    return _Outcome(prompt, rank, best, of_right, first, whole, lines)


def _look_up(vault: Vault, prompt: LabelledPrompt) -> _Outcome:
    assert prompt.failed is not None
    found = failures.find(vault, prompt.failed, DEPTH)
    ids = [hit.lesson_id for hit in found.hits]
    rank = next((number for number, id in enumerate(ids) if id in prompt.relevant), None)
    first = ids[0] if ids else ""
    if found.why_silent or (first in prompt.borderline and not prompt.relevant):
        return _Outcome(prompt, rank, -1.0, -1.0, first, frozenset(), frozenset())
    whole, lines = (
        frozenset(ids[:1] if comes else ()) for comes in (found.is_above, found.is_line)
    )
    right = found.strength if rank == 0 else -1.0
    return _Outcome(prompt, rank, found.strength, right, first, whole, lines)


def _ranking(answerable: Sequence[_Outcome]) -> dict[str, Any]:
    ranks = [outcome.rank for outcome in answerable]
    figures: dict[str, Any] = {"prompts": len(answerable)}
    for k in (1, 3, 5):
        figures[f"recall@{k}"] = _share([rank is not None and rank < k for rank in ranks])
    reciprocals = [1 / (rank + 1) for rank in ranks if rank is not None and rank < DEPTH]
    figures["mrr@10"] = sum(reciprocals) / len(ranks) if ranks else None
    return figures


def _of_kind(outcomes: Sequence[_Outcome], orphans: Sequence[_Outcome]) -> dict[str, Any]:
    answered = [each for each in outcomes if each.prompt.relevant and each not in orphans]
    if not answered:
        return {"prompts": len(outcomes), **_came_to(outcomes, "false")}
    injected = _share([bool(each.whole or each.lines) for each in outcomes])
    return {**_ranking(answered), **_hits_of(answered), "injected": injected}


def _floor_for(scores: Sequence[float], allowed: int) -> float:
    return sorted(scores, reverse=True)[allowed] if allowed < len(scores) else -1.0


def _auc(positive: Sequence[float], negative: Sequence[float]) -> float | None:
    pairs = len(positive) * len(negative)
    won = sum((a > b) + 0.5 * (a == b) for a in positive for b in negative)
    return won / pairs if pairs else None


def _share(truths: Sequence[bool]) -> float | None:
    return sum(truths) / len(truths) if truths else None
