"""What agents did with a lesson, against what a reader calls it: labelled cases, and each rule."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tests.support.outcomes import cases, judged, steps
from vault_index.recall.outcome import citations, judge, words
from vault_index.recall.outcome.judge import (
    CONTRADICTED,
    IGNORED,
    OUTCOMES,
    TAKEN,
    UNKNOWN,
)

LEAST = 0.9  # of the cases that the rules were tuned on, and of the others


@pytest.mark.parametrize("case", cases("tuned"), ids=lambda case: case["name"])
def test_a_case_that_the_rules_were_tuned_on(case: dict[str, Any]) -> None:
    assert judged(case).outcome == case["outcome"], judged(case)


def test_cases_that_the_rules_were_not_tuned_on() -> None:
    held = cases("held")
    wrong = {case["name"]: judged(case) for case in held if judged(case).outcome != case["outcome"]}
    assert len(wrong) <= (1 - LEAST) * len(held), wrong


@pytest.mark.parametrize("outcome", [TAKEN, CONTRADICTED])
def test_precision_and_recall_of_what_people_act_on(outcome: str) -> None:
    counts = Counter((case["outcome"], judged(case).outcome) for case in cases("held"))
    right = counts[outcome, outcome]
    called = sum(counts[other, outcome] for other in OUTCOMES)
    there = sum(counts[outcome, other] for other in OUTCOMES)
    assert right / called >= LEAST
    assert right / there >= LEAST


def test_all_outcomes_have_cases_in_both_halves() -> None:
    assert len(cases()) >= 40
    for half in ("tuned", "held"):
        assert {case["outcome"] for case in cases(half)} == set(OUTCOMES)


def marks(text: str, title: str = "A lesson") -> words.Marks:
    return words.marks_of(title, text)


def outcome(text: str, *after: tuple[str, ...], had: str = "") -> str:
    return judge.judge(marks(text), words.words_in(had), steps(after)).outcome


def test_what_a_lesson_warns_of_is_no_advice() -> None:
    own = marks("Use `retry_with_jitter`, not `retry_forever`.")
    assert "retry_with_jitter" in own.advice
    assert "retry_forever" not in own.advice
    assert "retry_forever" in own.against


def test_what_a_failure_is_called_is_no_advice() -> None:
    own = marks("When the build dies with `ERR_OSSL_EVP`, set `NODE_OPENSSL=legacy_provider`.")
    assert "err_ossl_evp" not in own.advice
    assert {"node_openssl", "legacy_provider"} & own.advice.keys()


def test_code_under_a_line_that_refuses_it_is_no_advice() -> None:
    text = "Never write:\n\n```python\nload_everything()\n```\n\nUse `load_in_pages()`.\n"
    assert "load_everything" not in marks(text).advice
    assert "load_in_pages" in marks(text).advice


def test_the_parts_of_a_learned_lesson() -> None:
    text = (
        "Set `pool_pre_ping`.\n\n## Problem\n\n`dead_connection` in the log.\n\n"
        "## When not to apply\n\nWith `sqlite_memory`.\n"
    )
    assert marks(text).advice.keys() >= {"pool_pre_ping"}
    assert not marks(text).advice.keys() & {"dead_connection", "sqlite_memory"}


def test_common_commands_show_nothing() -> None:
    text = "Look with `git status` and `ls`, then run `pytest`."
    assert outcome(text, ("ran", "git status"), ("ran", "pytest -q"), ("ran", "ls")) == UNKNOWN


def test_a_word_of_many_lessons_counts_less() -> None:
    own = marks("Use `rare_name` and `usual_name`.")
    rare = words.by_rarity(own, {"rare_name": 1, "usual_name": 60}, 100)
    assert rare.advice["rare_name"] == 1.0
    assert rare.advice["usual_name"] < 0.2


def test_a_quotation_of_the_lesson_is_no_deed() -> None:
    text = "Set `pool_pre_ping`."
    assert outcome(
        text, ("said", "> Set `pool_pre_ping`.\n\nI look at the log."), ("ran", "ls x")
    ) == (IGNORED)


def test_words_that_are_taken_away_are_not_used() -> None:
    change = ("edited", "a.py", "engine(pool_pre_ping=True, url)", "engine(url)")
    assert outcome("Set `pool_pre_ping`.", change) == IGNORED


@pytest.mark.parametrize(
    "piece", ["`", "```a\n", "a/", "a.", "` ", "`` ` ", "~", ", use ", "not ", "a@"]
)
def test_a_hostile_text_takes_no_longer_than_another(piece: str) -> None:
    text = piece * (100_000 // len(piece)) + "*"
    assert marks(text).advice.keys() | citations.cited_in(text).paths is not None


def test_a_correction_three_turns_later_counts_only_if_it_names_the_advice() -> None:
    used = ("edited", "a.py", "", "pool_pre_ping=True")
    later = ("prompt", "and now the readme, please"), ("edited", "README.md", "", "text")
    text = "Set `pool_pre_ping`."
    assert outcome(text, used, *later, ("prompt", "revert that")) == TAKEN
    assert outcome(text, used, *later, ("prompt", "no, remove pool_pre_ping again")) == CONTRADICTED
