"""With a real model behind a real llama.cpp server: schema, time-outs and counts hold."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.support.homes import locked, shared_folder
from tests.support.llama_server import llama_server, model_file
from vault_index import llm
from vault_index.config import Config
from vault_index.errors import ModelAwayError, ModelCallError
from vault_index.llm.allowance import Allowance
from vault_index.llm.counted import CountedModel
from vault_index.llm.openai import OpenAIDoor

pytestmark = [pytest.mark.language_model, pytest.mark.slow, pytest.mark.timeout(600)]

KEYS: dict[str, dict[str, Any]] = {
    "type": {"type": "string", "enum": ["code_pattern", "bug_fix"]},
    "is_new": {"type": "boolean"},
    "tags": {
        "type": "array",
        "maxItems": 2,
        "items": {"type": "object", "properties": {"tag": {"type": "string", "enum": ["ci"]}}},
    },
}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = shared_folder(tmp_path_factory) / "language-model"
    folder.mkdir(exist_ok=True)
    with ExitStack() as stack:
        with locked(folder):
            file = model_file(folder)
            address = stack.enter_context(llama_server(file))
            file.unlink()  # 250 MB; the server has it open
        yield f"{address}/v1"


@pytest.fixture
def config(url: str, tmp_path: Path) -> Config:
    return Config(home=tmp_path, llm_openai_url=url)


def test_a_model_that_knows_nothing_obeys_the_schema(config: Config) -> None:
    model = llm.open_model("openai:gemma", config)
    answer = model.complete_json("Classify lessons.", "The build ran out of memory.", KEYS)
    assert list(answer) == ["type", "is_new", "tags"]
    assert answer["type"] in KEYS["type"]["enum"]
    assert answer["is_new"] in (True, False)
    assert all(tag == {"tag": "ci"} for tag in answer["tags"])
    assert model.usage.calls == 1
    assert 50 < model.usage.input_tokens < 500
    assert 10 < model.usage.output_tokens < 100
    used = Allowance(config).used()
    assert used.tokens == model.usage.input_tokens + model.usage.output_tokens


def test_a_call_that_takes_too_long_ends_and_the_server_lives_on(config: Config) -> None:
    door = OpenAIDoor("gemma", config, {}, timeout=0.3)
    hurried = CountedModel(door, Allowance(config), lambda _: None)
    with pytest.raises(ModelCallError, match=r"did not answer in 0\.3 s") as caught:
        hurried.complete("Ramble.", "Tell a long story, and then another one.")
    assert not isinstance(caught.value, ModelAwayError)
    model = llm.open_model("openai:gemma", config)
    assert model.complete_json("", "Is it new?", {"is_new": {"type": "boolean"}})


def test_a_question_that_is_longer_than_its_context_is_a_clear_error(config: Config) -> None:
    model = llm.open_model("openai:gemma", config)
    with pytest.raises(ModelCallError, match=r"status 400: .*context"):
        model.complete("", "words and more words " * 2000)
