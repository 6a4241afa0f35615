"""What agents did with a lesson, against what a reader calls it: labelled cases, and each rule."""

from __future__ import annotations

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

LEAST = 0.5  # of the cases that the rules were not tuned on


@pytest.mark.parametrize("case", cases(), ids=lambda case: case["name"])
def test_no_case_is_called_what_it_is_not(case: dict[str, Any]) -> None:
    """Unknown is always allowed: a reader sees more than a rule. What was refused may look ignored."""
    also = (UNKNOWN, IGNORED) if case["outcome"] == CONTRADICTED else (UNKNOWN,)
    assert judged(case).outcome in (case["outcome"], *also), judged(case)


@pytest.mark.parametrize("outcome", [TAKEN, CONTRADICTED])
def test_half_of_what_a_reader_sees_is_seen(outcome: str) -> None:
    of_it = [judged(case).outcome for case in cases("held") if case["outcome"] == outcome]
    assert of_it.count(outcome) >= LEAST * len(of_it), of_it


def test_all_outcomes_have_cases_in_both_halves() -> None:
    assert len(cases()) >= 40
    for half in ("tuned", "held"):
        assert {case["outcome"] for case in cases(half)} == set(OUTCOMES)


def marks(text: str) -> words.Marks:
    return words.marks_of(text)


def outcome(text: str, *after: tuple[str, ...], had: str = "") -> str:
    return judge.judge(marks(text), words.there_in(had), steps(after)).outcome


def test_what_a_lesson_warns_of_is_no_advice() -> None:
    own = marks("Use `retry_with_jitter`, not `retry_forever`.")
    assert "retry_with_jitter" in own.named
    assert "retry_forever" not in own.named


def test_what_a_failure_is_called_is_no_advice() -> None:
    own = marks("When the build dies with `ERR_OSSL_EVP`, set `NODE_OPENSSL=legacy_provider`.")
    assert "err_ossl_evp" not in own.named
    assert {"node_openssl", "legacy_provider"} & own.named


def test_code_under_a_line_that_refuses_it_is_no_advice() -> None:
    text = "Never write:\n\n```python\nload_everything()\n```\n\nUse `load_in_pages()`.\n"
    assert "load_everything" not in marks(text).named
    assert "load_in_pages" in marks(text).named


def test_the_parts_of_a_learned_lesson() -> None:
    text = (
        "Set `pool_pre_ping`.\n\n## Problem\n\n`dead_connection` in the log.\n\n"
        "## When not to apply\n\nWith `sqlite_memory`.\n"
    )
    assert marks(text).named >= {"pool_pre_ping"}
    assert not marks(text).named & {"dead_connection", "sqlite_memory"}


def test_common_commands_show_nothing() -> None:
    text = "Look with `git status` and `ls`, then run `pytest`."
    assert outcome(text, ("ran", "git status"), ("ran", "pytest -q"), ("ran", "ls")) == UNKNOWN


def test_a_word_of_many_lessons_shows_nothing() -> None:
    lessons = [f"Use `rare_name_{number}` and `usual_name`." for number in range(20)]
    own = marks(lessons[0]).without(words.usual_in(lessons))
    assert own.names == {"rare_name_0"}


def test_a_quotation_of_the_lesson_is_no_deed() -> None:
    text = "Set `pool_pre_ping=True`."
    assert outcome(
        text, ("said", "> Set `pool_pre_ping`.\n\nI look at the log."), ("ran", "ls x")
    ) == (IGNORED)


def test_words_that_are_taken_away_are_not_used() -> None:
    change = ("edited", "a.py", "engine(pool_pre_ping=True, url)", "engine(url)")
    assert outcome("Set `pool_pre_ping=True`.", change) == IGNORED


@pytest.mark.parametrize(
    "piece", ["`", "```a\n", "a/", "a.", "` ", "`` ` ", "~", ", use ", "not ", "a@"]
)
def test_a_hostile_text_takes_no_longer_than_another(piece: str) -> None:
    text = piece * (100_000 // len(piece)) + "*"
    assert marks(text).named | citations.cited_in(text).paths is not None


def test_a_correction_three_turns_later_counts_only_if_it_names_the_advice() -> None:
    used = ("edited", "a.py", "", "pool_pre_ping=True")
    later = ("prompt", "and now the readme, please"), ("edited", "README.md", "", "text")
    text = "Set `pool_pre_ping=True`."
    assert outcome(text, used, *later, ("prompt", "revert that")) == TAKEN
    assert outcome(text, used, *later, ("prompt", "no, remove pool_pre_ping again")) == CONTRADICTED


@pytest.mark.parametrize(
    ("text", "step"),
    [
        ("Compare with `git diff origin/main`.", ("ran", "git log origin/main -3")),
        ("See `src/shop/orders.py`.", ("edited", "src/shop/orders.py", "", "pass")),
        ("Use the fixture `frozen_clock`.", ("edited", "a.py", "", "def test(frozen_clock): ...")),
        ("Run `git gc --prune=now`.", ("ran", "git gc --auto")),
        ("Run `git read-tree HEAD`.", ("said", "One could run `git read-tree HEAD`.")),
        ("Set `pool_pre_ping=True`.", ("ran", "grep -rn 'pool_pre_ping=True' src")),
    ],
)
def test_what_proves_nothing(text: str, step: tuple[str, ...]) -> None:
    assert outcome(text, step) in (UNKNOWN, IGNORED)


@pytest.mark.parametrize(
    ("text", "step"),
    [
        ("Run `git read-tree HEAD`.", ("ran", "cd repo && git read-tree HEAD 2>&1")),
        ("`gh run view <id> --log-failed`", ("ran", "gh run view 26646 --log-failed | head")),
        ("`git log --follow FILE` follows.", ("ran", "git -C ~/shop log --oneline --follow a.py")),
        ("Set `pool_pre_ping=True`.", ("edited", "a.py", "", "engine(pool_pre_ping = True)")),
        ("`retry_at_once` of `ShopClient`", ("edited", "a.py", "", "ShopClient().retry_at_once()")),
    ],
)
def test_what_proves_that_a_lesson_was_taken(text: str, step: tuple[str, ...]) -> None:
    assert outcome(text, step) == TAKEN


def test_what_the_agent_read_there_is_not_from_the_lesson() -> None:
    change = ("edited", "b.py", "", "engine(pool_pre_ping=True)")
    assert outcome("Set `pool_pre_ping=True`.", ("seen", "pool_pre_ping=True"), change) == UNKNOWN


def test_a_setting_that_got_another_value_was_not_taken() -> None:
    first, second = (
        ("edited", ".env", "", "DB_PATH=./a.db"),
        ("edited", ".env", "", "DB_PATH=/a.db"),
    )
    assert outcome("Set `DB_PATH=./a.db`.", first) == TAKEN
    assert outcome("Set `DB_PATH=./a.db`.", first, second) != TAKEN


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("use pool_pre_ping and not the old option", UNKNOWN),
        ("don't forget to set pool_pre_ping", UNKNOWN),
        ("why not use pool_pre_ping here?", UNKNOWN),
        ("no, pool_pre_ping is deprecated", CONTRADICTED),
        ("do it without pool_pre_ping", CONTRADICTED),
    ],
)
def test_a_person_contradicts_only_with_the_opposite(said: str, expected: str) -> None:
    text = "Set `pool_pre_ping`, when the log says `connection lost`."
    failed = ("failed", "pytest", "E  connection lost")  # before its advice was followed
    assert outcome(text, failed, ("prompt", said), ("ran", "ls")) == expected


def test_a_person_who_uses_a_word_of_prose_speaks_of_no_lesson() -> None:
    lessons = [f"Run `stop`, then start it with `tool_{number} up`." for number in range(3)]
    usual = words.usual_in([*lessons, "Stop the server before you stop the clock."])
    said = steps([("prompt", "stop is not correct there"), ("ran", "ls")])
    assert judge.judge(marks(lessons[0]), set(), said).outcome == CONTRADICTED
    assert judge.judge(marks(lessons[0]).without(usual), set(), said).outcome != CONTRADICTED
