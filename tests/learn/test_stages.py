"""Four stages or one: what is asked, how much is sent, and when an analysis ends early."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.materials import ScriptedModel, a_material, an_entry, good_answer
from vault_index.config import Config
from vault_index.errors import ModelAnswerError, ModelRefusedError
from vault_index.learn import stages


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return Config(home=tmp_path)


def run(model: ScriptedModel, config: Config, names: tuple[str, ...]) -> list[str]:
    entries = stages.run(model, a_material(), config, names, lambda _done, _of: None)
    return [entry.title for entry in entries]


@pytest.mark.parametrize("names", [stages.FOUR, stages.ONE])
@pytest.mark.parametrize("tokens", [8_000, 12_000, 40_000])
def test_it_sends_no_more_than_it_planned_and_the_budget_allows(
    config: Config, names: tuple[str, ...], tokens: int
) -> None:
    config = replace(config, learn=replace(config.learn, tokens=tokens))
    code = "".join(f"+    total_{n} = price_{n} * count_{n}\n" for n in range(20_000))
    material = a_material(diff=f"--- a/m.py\n+++ b/m.py\n@@ -1 +1,20000 @@\n{code}")
    model = ScriptedModel.that_says(an_entry())
    planned = stages.plan(material, config, names).calls
    stages.run(model, material, config, names, lambda _done, _of: None)
    assert [stage for stage, _, _ in model.asked] == list(names)
    for call, (_, system, asked) in zip(planned, model.asked, strict=True):
        assert len(system) + len(asked) <= call.chars
    assert sum(call.tokens for call in planned) <= tokens + len(names)
    assert model.sent > 0.5 * 4 * tokens


def test_later_stages_get_the_answers_before_and_less_of_the_material(config: Config) -> None:
    model = ScriptedModel.that_says(an_entry())
    assert run(model, config, stages.FOUR) == ["after_login() must pass the query string on"]
    prompts = {stage: asked for stage, _, asked in model.asked}
    assert "The answer to the step" not in prompts["what"]
    assert "a rewrite rule in nginx.conf" in prompts["patterns"]  # of the step before
    assert "diff --git" not in prompts["why"]
    assert "AssertionError: /home" in prompts["knowledge"]  # quotes come from the material


def test_the_settings_choose_the_stages_else_the_model_does(config: Config) -> None:
    quick, slow = ScriptedModel(str), ScriptedModel(str, starts_slowly=True)
    assert stages.names(config, quick) == stages.FOUR
    assert stages.names(config, slow) == stages.ONE
    assert stages.names(replace(config, learn=replace(config.learn, stages=4)), slow) == stages.FOUR
    assert stages.names(replace(config, learn=replace(config.learn, stages=1)), quick) == stages.ONE
    assert (
        stages.names(replace(config, learn=replace(config.learn, tokens=3_000)), quick)
        == stages.ONE
    )


def test_an_answer_that_does_not_fit_is_asked_for_once_more(config: Config) -> None:
    answers = iter(["no idea", *(json.dumps(good_answer(stage)) for stage in stages.FOUR)])
    model = ScriptedModel(lambda _: next(answers))
    assert run(model, config, stages.FOUR) == []
    assert [stage for stage, _, _ in model.asked] == ["what", *stages.FOUR]
    assert "could not be used: scripted:model did not answer with JSON" in model.asked[1][2]


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ("rubbish", "did not answer with JSON"),
        ('{"summary": 3}', "'summary' is not of type string"),
        (json.dumps({**good_answer("what"), "summary": " "}), "its summary is empty"),
    ],
)
def test_rubbish_ends_the_analysis_at_its_stage(config: Config, answer: str, problem: str) -> None:
    model = ScriptedModel(lambda _: answer)
    with pytest.raises(ModelAnswerError) as error:
        run(model, config, stages.FOUR)
    assert error.value.message.startswith("what: ")
    assert problem in error.value.message
    assert len(model.asked) == 2
    assert model.usage.calls == 2


def test_a_refusal_is_not_asked_again(config: Config) -> None:
    model = ScriptedModel(lambda _: "I'm sorry, but I can't help with that.")
    with pytest.raises(ModelRefusedError, match="what: "):
        run(model, config, stages.FOUR)
    assert len(model.asked) == 1


def test_headings_in_an_answer_begin_no_other_lesson(config: Config) -> None:
    model = ScriptedModel.that_says(
        an_entry(explanation="## Lesson: Two\nText.\n\n## Problem\nNo.")
    )
    (entry,) = stages.run(model, a_material(), config, stages.ONE, lambda _done, _of: None)
    assert entry.parts.explanation.startswith("### Lesson: Two")
    assert "\n## " not in entry.parts.explanation
