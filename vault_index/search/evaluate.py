"""Recall and false injections over labelled prompts: does the right lesson come, and only it?

Definitions, as in information retrieval: recall@k is the share of answerable prompts with a right
lesson among the first k; MRR@10 the mean of 1/rank, 0 beyond ten; AUC the chance that an answerable
prompt's best score exceeds an unanswerable one's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vault_index.errors import VaultError
from vault_index.hotpath import chatter
from vault_index.search import entries, failures, floor, query
from vault_index.search.query import Query
from vault_index.text import failure

if TYPE_CHECKING:
    from vault_index.store.sync import Progress
    from vault_index.vault import Vault

DEPTH = 10  # hits looked at for each prompt
INJECTED = 3
NEAR_MISS = "near-miss"  # the kind of failures on the subject of a lesson that does not help

_AT_FLOOR = (
    "of what a hook gives; hit: a right lesson comes whole, found: whole or as its line, false: a lesson"
    " comes whole where silence is right, false_line: at most a line; orphan, orphan_line: the same for"
    " prompts whose lessons were left out"
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
    "by_kind": "the same for each kind; injected: anything comes; recall is that of answered prompts",
}


ERRORS_EXPLAINED = {
    "failures": "that some lesson helps with",
    "hit@1": "share of them with a right lesson first",
    "hit@3": "among the first 3",
    "right_at_2%": "with a right lesson above the floor that 2% of the unanswered ones pass",
    "floor": "strength from which on a lesson comes whole",
    "line_floor": "strength from which on its line comes",
    "at_floor": _AT_FLOOR + "; wrong: another lesson comes whole",
    "by_kind": "share of the failures of each kind at which anything comes",
}


@dataclass(frozen=True, slots=True)
class LabelledPrompt:
    """A prompt and the ids of the lessons that answer it; none means that silence is right."""

    query: str
    relevant: frozenset[str]
    kind: str
    line: int = 0  # in the file; 0 without a file


@dataclass(frozen=True, slots=True)
class _Outcome:
    """The result of searching a prompt. Evidence is -1 where the form of the prompt decides."""

    prompt: LabelledPrompt
    rank: int | None  # of the first right lesson, from 0
    best: float  # the most evidence of a hit
    right: float  # the most evidence of a right lesson among the first three
    first: str  # id of the first hit; "" without
    whole: frozenset[str]  # ids that a hook injects
    lines: frozenset[str]  # ids whose lines it injects


def load(path: Path) -> list[LabelledPrompt]:
    """Read labelled prompts: JSON lines with `query`, `relevant` (ids) and `kind`.

    Raises VaultError with the line for anything else.
    """
    prompts = []
    for number, values in read_lines(path):
        query, relevant = values.get("query"), values.get("relevant", [])
        if not isinstance(query, str) or not isinstance(relevant, list):
            hint = 'write it like {"query": "...", "relevant": ["id"], "kind": "..."}'
            raise VaultError(f"{path}:{number}: not a labelled prompt", hint)
        kind = str(values.get("kind", ""))
        prompts.append(LabelledPrompt(query, frozenset(map(str, relevant)), kind, number))
    return prompts


def read_lines(path: Path) -> list[tuple[int, dict[str, Any]]]:
    """Read a file of JSON objects, one a line, with their line numbers. Raises VaultError."""
    values = []
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
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
    ids = {lesson["id"] for lesson in entries.entries(vault)}
    outcomes = []
    for number, prompt in enumerate(prompts, start=1):
        outcomes.append(_look(vault, prompt))
        progress(number, len(prompts))
    orphans = [each for each in outcomes if left_out and _is_orphan(each.prompt, ids)]
    answerable = [each for each in outcomes if each.prompt.relevant and each not in orphans]
    others = [each for each in outcomes if not each.prompt.relevant]
    best_of_others = [outcome.best for outcome in others]
    text_only = query.embedder_for(vault, vault.open_index())[0] is None
    floors = floor.in_force(vault, text_only=text_only)
    figures = _ranking(answerable)
    figures["auc"] = _auc([outcome.best for outcome in answerable], best_of_others)
    for percent in (2, 5):
        least = _floor_for(best_of_others, int(percent / 100 * len(others)))
        figures[f"recall@3_fi{percent}"] = _share([outcome.right > least for outcome in answerable])
    return figures | {
        "floor": floors and floors.whole,
        "line_floor": floors and floors.line,
        "at_floor": _hits_of(answerable) | _came_to(others, "false") | _came_to(orphans, "orphan"),
        "by_kind": {
            kind: _of_kind([each for each in outcomes if each.prompt.kind == kind], orphans)
            for kind in sorted({outcome.prompt.kind for outcome in outcomes})
        },
        "unknown": [  # ids that no lesson has: their prompts count as missed
            {"line": prompt.line, "id": id}
            for prompt in prompts
            for id in sorted(prompt.relevant - ids)
            if not left_out
        ],
        "missed": [
            _shown(outcome)
            for outcome in answerable
            if outcome.rank is None or outcome.rank >= INJECTED
        ],
        "injected_falsely": [_shown(outcome) for outcome in [*others, *orphans] if outcome.whole],
    }


def _is_orphan(prompt: LabelledPrompt, ids: Set[str]) -> bool:
    return bool(prompt.relevant) and not prompt.relevant & ids


def _hits_of(answerable: Sequence[_Outcome]) -> dict[str, Any]:
    return {
        "hit": _share([bool(each.prompt.relevant & each.whole) for each in answerable]),
        "found": _share(
            [bool(each.prompt.relevant & (each.whole | each.lines)) for each in answerable]
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
    asked = Query(prompt.query, DEPTH + len(prompt.relevant), weighted=True)
    hits = query.run(vault, asked).hits
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


def measure_failures(
    vault: Vault,
    path: Path,
    progress: Progress = lambda _done, _all: None,
    *,
    left_out: bool = False,
) -> dict[str, Any]:
    """Look every failed command of a file up and return the figures of `ERRORS_EXPLAINED`.

    JSON lines with `command`, `error`, `relevant` and, if known, `borderline` (ids) and `kind`. Raises
    VaultError, IndexStateError without an index.
    """
    lines = read_lines(path)
    ids = {lesson["id"] for lesson in entries.entries(vault)}
    outcomes = []
    for number, (line, values) in enumerate(lines, start=1):
        if not isinstance(values.get("error"), str):
            hint = 'write it like {"command": "...", "error": "...", "relevant": ["id"]}'
            raise VaultError(f"{path}:{line}: not a failed command", hint)
        outcomes.append(_look_up(vault, line, values))
        progress(number, len(lines))
    named = [each for each in outcomes if each["relevant"]]
    orphans = [each for each in named if left_out and not ids & {*each["relevant"]}]
    answerable = [each for each in named if each not in orphans]
    others = [each for each in outcomes if not each["relevant"]]
    unanswered = [each for each in others if each["kind"] != NEAR_MISS] or others
    false = [each["strength"] for each in unanswered if not each["neutral"]]
    least = _floor_for(false, int(0.02 * len(unanswered)))
    fitted = failures.load(vault)
    text_only = query.embedder_for(vault, vault.open_index())[0] is None
    floors = fitted and fitted.floors(text_only=text_only)
    return {
        "failures": len(answerable),
        "hit@1": _share([each["rank"] == 1 for each in answerable]),
        "hit@3": _share([each["rank"] in (1, 2, 3) for each in answerable]),
        "right_at_2%": _share(
            [each["rank"] == 1 and each["strength"] > least for each in answerable]
        ),
        "floor": floors and floors.whole,
        "line_floor": floors and floors.line,
        "at_floor": _failures_at_floor(answerable, others, orphans),
        "by_kind": {
            kind: _share([each["came"] for each in outcomes if each["kind"] == kind])
            for kind in sorted({each["kind"] for each in outcomes})
        },
        "missed": [each for each in answerable if each["rank"] not in (1, 2, 3)],
        "injected_falsely": [each for each in others if each["is_false"]],
        "unknown": [],
    }


def _failures_at_floor(
    answerable: Sequence[Mapping[str, Any]],
    others: Sequence[Mapping[str, Any]],
    orphans: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    return {
        "hit": _share([each["injected"] and each["rank"] == 1 for each in answerable]),
        "found": _share([each["came"] and each["rank"] == 1 for each in answerable]),
        "wrong": _share([each["injected"] and each["rank"] != 1 for each in answerable]),
        "false": _share([each["is_false"] for each in others]),
        "false_line": _share([each["is_false_line"] for each in others]),
        "orphan": _share([each["injected"] for each in orphans]),
        "orphan_line": _share([each["came"] and not each["injected"] for each in orphans]),
    }


def _look_up(vault: Vault, line: int, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a failed command finds; `rank` counts from 1."""
    failed = failure.read(str(values.get("command") or ""), values["error"])
    found = failures.find(vault, failed, DEPTH)
    ids = [hit.lesson_id for hit in found.hits]
    relevant = set(map(str, values.get("relevant") or ()))
    neutral = bool(ids) and ids[0] in (values.get("borderline") or ())
    return {
        "line": line,
        "query": failed.queries[0],
        "relevant": sorted(relevant),
        "kind": str(values.get("kind") or ""),
        "rank": next((place for place, id in enumerate(ids, start=1) if id in relevant), None),
        "first": ids[0] if ids else "",
        "strength": found.strength if not found.why_silent else -1.0,
        "score": round(found.strength, 4),
        "injected": found.is_above,
        "neutral": neutral,
        "came": found.is_above or found.is_line,
        "is_false": found.is_above and not relevant and not neutral,
        "is_false_line": found.is_line and not relevant and not neutral,
    }
