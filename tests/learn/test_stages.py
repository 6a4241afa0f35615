"""One call or four: what is asked, how much is sent, and when an analysis ends early."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.learn.materials import ScriptedModel, a_material, an_entry, good_answer
from vault_index.config import Config
from vault_index.errors import ModelAnswerError, ModelRefusedError
from vault_index.features import LearnTable
from vault_index.learn import stages
from vault_index.learn.stages import Request
from vault_index.transcripts.moments import AGENT, Moment

TITLE = "after_login() must pass the query string on"


def set_to(home: Path, **values: Any) -> Config:
    config = Config(home=home)
    return config.with_tables(replace(config[LearnTable], **values))


def run(model: ScriptedModel, config: Config, request: Request = Request()) -> list[str]:  # noqa: B008  # frozen
    entries = stages.run(model, a_material(), config, request, lambda _done, _of: None)
    return [entry.title for entry in entries]


def a_long_session() -> list[Moment]:
    return [
        Moment(AGENT, f"It fails because total_{n} = price_{n} * count_{n}") for n in range(4_000)
    ]


@pytest.mark.parametrize("number", [1, 4])
@pytest.mark.parametrize("tokens", [8_000, 12_000, 40_000])
def test_it_sends_no_more_than_it_planned_and_the_budget_allows(
    tmp_path: Path, number: int, tokens: int
) -> None:
    config = set_to(tmp_path, tokens=tokens, stages=number)
    material = a_material(moments=tuple(a_long_session()))
    model = ScriptedModel.that_says(an_entry())
    planned = stages.plan(material, config, Request("shop")).calls
    stages.run(model, material, config, Request("shop"), lambda _done, _of: None)
    assert [stage for stage, _, _ in model.asked] == list(stages.names(config))
    for call, (_, system, asked) in zip(planned, model.asked, strict=True):
        assert len(system) + len(asked) <= call.chars
    assert sum(call.tokens for call in planned) <= tokens + number
    assert model.sent > 0.5 * 4 * tokens


def test_what_would_be_sent_is_what_is_sent(tmp_path: Path) -> None:
    config, request = set_to(tmp_path), Request("shop", "2026-11-20")
    model = ScriptedModel.that_says(an_entry())
    (planned,) = stages.plan(a_material(), config, request).calls
    assert run(model, config, request) == [TITLE]
    ((_, system, asked),) = model.asked
    assert planned.text == f"{system}\n\n{asked}"


def test_later_steps_get_the_answers_before_and_the_last_the_most_of_the_session(
    tmp_path: Path,
) -> None:
    model = ScriptedModel.that_says(an_entry())
    material = a_material(moments=tuple(a_long_session()))
    config = set_to(tmp_path, stages=4)
    stages.run(model, material, config, Request(), lambda _done, _of: None)
    prompts = {stage: asked for stage, _, asked in model.asked}
    assert "The answer to the step" not in prompts["what"]
    assert "a rewrite rule is no cure" in prompts["patterns"]  # of the step before
    assert len(prompts["entries"]) > 2 * len(prompts["what"])


def test_a_model_is_told_project_day_language_categories_and_lessons_nearby(tmp_path: Path) -> None:
    model = ScriptedModel.that_says(an_entry())
    request = Request(
        "shop", "2026-11-20", "German", {"devops": "Wait", "web": ""}, ["Raise the heap in CI"]
    )
    run(model, set_to(tmp_path), request)
    ((_, system, asked),) = model.asked
    for told in ("shop", "2026-11-20", "German", "devops (Wait); web", "Raise the heap in CI"):
        assert told in asked
        assert told not in system


def test_an_answer_that_does_not_fit_is_asked_for_once_more(tmp_path: Path) -> None:
    answers = iter(["no idea", json.dumps(good_answer("entries"))])
    model = ScriptedModel(lambda _: next(answers))
    assert run(model, set_to(tmp_path)) == []
    assert "could not be used: scripted:model did not answer with JSON" in model.asked[1][2]


@pytest.mark.parametrize(
    ("answer", "problem"),
    [("rubbish", "did not answer with JSON"), ('{"entries": 3}', "'entries' is not of type array")],
)
def test_rubbish_ends_the_analysis(tmp_path: Path, answer: str, problem: str) -> None:
    model = ScriptedModel(lambda _: answer)
    with pytest.raises(ModelAnswerError) as error:
        run(model, set_to(tmp_path))
    assert error.value.message.startswith("entries: ")
    assert problem in error.value.message
    assert "learn.stages" in error.value.hint
    assert model.usage.calls == len(model.asked) == 2


def test_58_13_one_entry_that_does_not_fit_costs_no_other(tmp_path: Path) -> None:
    """The sources ask to skip what cannot be read and go on; it is asked for once more, and said."""
    bad = [an_entry(confidence="high"), {"title": "Half an entry"}, an_entry(type="opinion")]
    model = ScriptedModel.that_says(bad[0], an_entry(), *bad[1:])
    notes: list[str] = []
    config = set_to(tmp_path)
    (entry,) = stages.run(
        model, a_material(), config, Request(), lambda _done, _of: None, notes.append
    )
    assert entry.title == an_entry()["title"]
    assert len(model.asked) == 2
    (note,) = notes
    assert note.startswith("entries: the parts of the answer that fit are taken: scripted:model")
    assert "'confidence' is not of type integer" in note
    with pytest.raises(ModelAnswerError):
        run(ScriptedModel.that_says(*bad), config)


def test_a_refusal_is_not_asked_again(tmp_path: Path) -> None:
    model = ScriptedModel(lambda _: "I'm sorry, but I can't help with that.")
    with pytest.raises(ModelRefusedError, match="what: "):
        run(model, set_to(tmp_path, stages=4))
    assert len(model.asked) == 1
