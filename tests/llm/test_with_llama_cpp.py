"""With a real model behind a real llama.cpp server: schema, time-outs, counts and streams hold."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.llm.llama_server import shared_model
from tests.support.homes import shared_folder
from vault_index import llm
from vault_index.config import Config, LlmTable
from vault_index.llm.backend import ASSISTANT, TOOL, ModelQuestion, ToolCall, Turn, schema_of
from vault_index.llm.metered import Allowance

pytestmark = [pytest.mark.language_model, pytest.mark.timeout(600)]

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
    with shared_model(shared_folder(tmp_path_factory) / "language-model") as address:
        yield address


@pytest.fixture
def config(url: str, tmp_path: Path) -> Config:
    return Config(home=tmp_path, llm=LlmTable(openai_url=url))


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


NEW: dict[str, dict[str, Any]] = {"is_new": {"type": "boolean"}}


def test_the_pieces_of_a_conversation_are_its_text(config: Config) -> None:
    call = ToolCall("call_1", "search_lessons", {"query": "heap"})
    after = (Turn(ASSISTANT, "", (call,)), Turn(TOOL, "[1] The heap was new.", call="call_1"))
    model = llm.open_model("openai:gemma", config)
    pieces: list[str] = []
    reply = model.converse(
        ModelQuestion("Be brief.", "Is it new?", schema_of(NEW), after=after), pieces.append
    )
    assert len(pieces) > 2
    assert "".join(pieces) == reply.text
    assert json.loads(reply.text)["is_new"] in (True, False)
    assert reply.input_tokens is not None  # it counts them in the stream
    assert model.usage.input_tokens == reply.input_tokens > 20
