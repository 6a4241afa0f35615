"""The labelled cases of outcomes: lessons, what followed them, and what a reader calls it."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from typing import Any

from tests.support.places import TESTS
from vault_index.recall.outcome import judge, story, words
from vault_index.recall.outcome.judge import Verdict
from vault_index.recall.outcome.story import Step

FILE = TESTS / "labelled" / "outcomes.toml"
LABELLED = tomllib.loads(FILE.read_text("utf-8"))
KINDS = {
    **{"said": story.SAID, "ran": story.RAN, "read": story.LOOKED, "seen": story.SEEN},
    "prompt": story.TYPED,
}


def cases(half: str = "") -> list[dict[str, Any]]:
    """Return the cases, or those of one half: `tuned` or `held`."""
    return [case for case in LABELLED["case"] if half in ("", case["half"])]


def judged(case: dict[str, Any]) -> Verdict:
    """Return the verdict about a case."""
    lesson = LABELLED["lessons"][case["lesson"]]
    marks = words.marks_of(lesson["text"])
    before = [Step(story.SAID, text) for text in case.get("before", ())]
    had = judge.words_before([*before, Step(story.TYPED, case["prompt"])])
    return judge.judge(marks, had, steps(case["after"]))


def steps(after: Sequence[Sequence[str]]) -> list[Step]:
    """Return the steps that a case writes down."""
    made: list[Step] = []
    for kind, text, *more in after:
        if kind == "edited":
            made.append(Step(story.WROTE, f"{text}\n{story.new_lines(more[0], more[1])}"))
        elif kind == "failed":
            made += [Step(story.RAN, text), Step(story.FAILED, more[0])]
        elif kind == "refused":
            made += [Step(story.REFUSED, text), Step(story.TYPED, more[0], origin="refusal")]
        else:
            made.append(Step(KINDS[kind], text))
    return made
