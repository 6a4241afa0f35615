"""Language models on an Ollama server, and the form of a model's answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.llm.conftest import TEXT
from tests.support.model_server import ModelServer
from vault_index import llm
from vault_index.config import Config
from vault_index.errors import ModelAnswerError, ModelCallError, ModelRefusedError, SettingsError
from vault_index.llm.backend import ModelQuestion, is_refusal
from vault_index.llm.metered import Allowance, Model
from vault_index.llm.openai import OllamaBackend, ollama_url

KEYS: dict[str, dict[str, Any]] = {
    "title": {"type": "string"},
    "count": {"type": "integer"},
    "parts": {"type": "array", "items": {"type": "object", "properties": {"id": {}}}},
}
GOOD = {"title": "Heap", "count": 3, "parts": [{"id": "a"}]}


@pytest.fixture
def model(server: ModelServer, tmp_path: Path) -> Model:
    config = Config(home=tmp_path, ollama_host=f"127.0.0.1:{server.port}")
    return Model(OllamaBackend("llama3.2", config, {}, 30), Allowance(config), lambda _: None)


def test_a_model_is_opened_by_the_name_in_the_settings(server: ModelServer, tmp_path: Path) -> None:
    config = Config(home=tmp_path, ollama_host=server.url)
    opened = llm.open_model("ollama:llama3.2:3b", config)
    assert opened.name == "ollama:llama3.2:3b"
    assert opened.converse(ModelQuestion("Be brief.", "Hello?")).text == TEXT
    assert server.chats[0]["model"] == "llama3.2:3b"


@pytest.mark.parametrize("name", ["", "llama3.2", "ollama:", "ollama: ", "gpt:4", "claude3"])
def test_a_model_that_no_door_leads_to(name: str, tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as caught:
        llm.open_model(name, Config(home=tmp_path))
    choices = "choose ollama:MODEL or claude or anthropic:MODEL or openai:MODEL"
    assert caught.value.hint.startswith(choices)


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ("The build was slow.", "did not answer with JSON"),
        ('{"title": "Heap", "count": 3, "parts": [', "did not answer with JSON"),
        ("[1, 2]", "did not answer with JSON"),
        ("{" * 100_000, "did not answer with JSON"),
        (json.dumps({"title": "Heap"}), "has no 'count'"),
        (json.dumps({**GOOD, "count": True}), "'count' is not of type integer"),
        (json.dumps({**GOOD, "parts": [{"id": 1}, {"no": 1}]}), "a part of 'parts' has no 'id'"),
        ("", "answered with nothing"),
    ],
)
def test_an_answer_in_another_form(
    server: ModelServer, model: Model, said: str, problem: str
) -> None:
    server.answer = lambda _: said
    with pytest.raises(ModelCallError, match=problem) as caught:
        model.complete_json("", "", KEYS)
    assert type(caught.value) in (ModelCallError, ModelAnswerError)
    assert caught.value.hint
    assert "The build" not in caught.value.message


REFUSALS = (
    "I'm sorry, but I can't assist with that.",
    "I\u2019m sorry, I cannot summarize this conversation.",
    "I cannot help with this request.",
    "Sorry, I am not able to process that.",
    "As an AI language model, I can't discuss this.",
)


@pytest.mark.parametrize("said", REFUSALS)
def test_a_refusal_is_told_from_other_answers(server: ModelServer, model: Model, said: str) -> None:
    server.answer = lambda _: said
    with pytest.raises(ModelRefusedError):
        model.complete_json("", "", KEYS)


def test_what_is_no_refusal() -> None:
    for text in (
        "The server can't reach the database.",
        "I can confirm that the build passes.",
        "Apologies were added to the error page.",
        "Sorry state of the cache was repaired by a rebuild.",
    ):
        assert not is_refusal(text), text


def test_a_question_that_the_server_cut_is_an_error(server: ModelServer, model: Model) -> None:
    """Ollama reads as much as its context holds, and says so in the count of tokens alone."""
    server.context = 42
    with pytest.raises(ModelCallError, match="read only 42 tokens of the question") as caught:
        model.converse(ModelQuestion("", "words " * 5000))
    assert "OLLAMA_CONTEXT_LENGTH" in caught.value.hint


def test_what_ollama_host_may_hold() -> None:
    for host, url in (
        ("127.0.0.1:11434", "http://127.0.0.1:11434"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        (":8000", "http://127.0.0.1:8000"),
        ("gpu.lan", "http://gpu.lan:11434"),
        ("[::1]:80", "http://[::1]:80"),
        ("https://ollama.example/", "https://ollama.example"),
    ):
        assert ollama_url(host) == url
    with pytest.raises(SettingsError, match="OLLAMA_HOST is no address"):
        ollama_url("gpu:lan")


def test_its_key_goes_to_this_machine_and_over_https_only(tmp_path: Path) -> None:
    for host, key in (("127.0.0.1", "k"), ("https://ollama.com", "k"), ("gpu.lan", "")):
        config = Config(home=tmp_path, ollama_host=host)
        assert OllamaBackend("m", config, {"OLLAMA_API_KEY": "k"}).key == key
