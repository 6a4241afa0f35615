"""Language models on an Ollama server: a real HTTP server that answers, dawdles, refuses and breaks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.ollama_server import OllamaServer
from vault_index import llm
from vault_index.config import Config, LlmTable
from vault_index.errors import (
    ModelAnswerError,
    ModelAwayError,
    ModelCallError,
    ModelRefusedError,
    SettingsError,
)
from vault_index.llm.backend import Question, is_refusal
from vault_index.llm.metered import Allowance, Model
from vault_index.llm.ollama import OllamaBackend
from vault_index.llm.server import Sleep

KEYS: dict[str, dict[str, Any]] = {
    "title": {"type": "string"},
    "count": {"type": "integer"},
    "parts": {"type": "array", "items": {"type": "object", "properties": {"id": {}}}},
}
GOOD = {"title": "Heap", "count": 3, "parts": [{"id": "a"}]}


@pytest.fixture
def server() -> Iterator[OllamaServer]:
    with OllamaServer() as serving:
        yield serving


@pytest.fixture
def model(server: OllamaServer, tmp_path: Path) -> Model:
    return model_at(f"127.0.0.1:{server.port}", tmp_path)


def model_at(host: str, home: Path, sleep: Sleep = lambda _: None, timeout: float = 30) -> Model:
    config = Config(home=home, ollama_host=host)
    backend = OllamaBackend("llama3.2", config, {}, timeout)
    return Model(backend, Allowance(config), sleep)


def test_a_model_is_opened_by_the_name_in_the_settings(
    server: OllamaServer, tmp_path: Path
) -> None:
    config = Config(home=tmp_path, ollama_host=server.url)
    opened = llm.open_model("ollama:llama3.2:3b", config)
    assert opened.name == "ollama:llama3.2:3b"
    assert opened.converse(Question("Be brief.", "Hello?")).text == "ok"
    assert server.chats[0]["model"] == "llama3.2:3b"


@pytest.mark.parametrize("name", ["", "llama3.2", "ollama:", "ollama: ", "gpt:4", "claude3"])
def test_a_model_that_no_door_leads_to(name: str, tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as caught:
        llm.open_model(name, Config(home=tmp_path))
    assert caught.value.hint == "choose ollama:MODEL or claude or anthropic:MODEL or openai:MODEL"


def test_a_call_is_one_whole_repeatable_request(server: OllamaServer, model: Model) -> None:
    model.converse(Question("Be brief.", "words " * 5000))
    (chat,) = server.chats
    assert [message["role"] for message in chat["messages"]] == ["system", "user"]
    assert chat["stream"] is False
    assert chat["think"] is False
    assert chat["options"]["temperature"] == 0
    assert chat["options"]["num_ctx"] > 30_000 / 4 + chat["options"]["num_predict"]
    assert not chat["tools"]


def test_tokens_and_temperature_are_settings(server: OllamaServer, tmp_path: Path) -> None:
    settings = LlmTable(max_tokens=700, temperature=0.4)
    config = Config(home=tmp_path, ollama_host=server.url, llm=settings)
    llm.open_model("ollama:llama3.2", config).converse(Question("Be brief.", "Hello?"))
    options = server.chats[0]["options"]
    assert (options["num_predict"], options["temperature"]) == (700, 0.4)


def test_an_object_has_the_keys_asked_for_and_no_others(server: OllamaServer, model: Model) -> None:
    server.answer = lambda _: json.dumps({**GOOD, "mood": "fine", "parts": [{"id": "a", "x": 1}]})
    assert model.complete_json("Be exact.", "What was it?", KEYS) == GOOD
    (chat,) = server.chats
    assert chat["format"]["required"] == ["title", "count", "parts"]
    assert json.dumps(chat["format"]) in chat["messages"][1]["content"]


@pytest.mark.parametrize("around", ["```json\n{}\n```", "Here it is {{}}:\n{}\nAnything else?"])
def test_words_around_an_object_do_no_harm(server: OllamaServer, model: Model, around: str) -> None:
    server.answer = lambda _: around.replace("{}", json.dumps(GOOD), 1)
    assert model.complete_json("", "", KEYS) == GOOD


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
    server: OllamaServer, model: Model, said: str, problem: str
) -> None:
    server.answer = lambda _: said
    with pytest.raises(ModelCallError, match=problem) as caught:
        model.complete_json("", "", KEYS)
    assert type(caught.value) in (ModelCallError, ModelAnswerError)
    assert caught.value.hint
    assert "The build" not in caught.value.message


def test_an_answer_that_was_cut(server: OllamaServer, model: Model) -> None:
    server.done_reason = "length"
    with pytest.raises(ModelCallError, match="did not come to an end"):
        model.converse(Question("", ""))


REFUSALS = (
    "I'm sorry, but I can't assist with that.",
    "I\u2019m sorry, I cannot summarize this conversation.",
    "I cannot help with this request.",
    "Sorry, I am not able to process that.",
    "As an AI language model, I can't discuss this.",
)


@pytest.mark.parametrize("said", REFUSALS)
def test_a_refusal_is_told_from_other_answers(
    server: OllamaServer, model: Model, said: str
) -> None:
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


@pytest.mark.parametrize(
    ("fault", "said", "hint", "kind"),
    [
        ("missing", "not found", "ollama pull llama3.2", ModelAwayError),
        ("busy", "server busy", "ollama serve", ModelAwayError),
        ("broken", "llama runner process has terminated", "ollama serve", ModelCallError),
        ("cut", "cannot be reached", "ollama serve", ModelCallError),
        ("page", ": <html>", "ollama serve", ModelCallError),
        ("list", "answered oddly", "OLLAMA_HOST", ModelCallError),
        ("garbage", "answered oddly", "OLLAMA_HOST", ModelCallError),
        ("endless", "larger than 8 MB", "OLLAMA_HOST", ModelCallError),
        ("packed", "answered oddly", "OLLAMA_HOST", ModelCallError),
    ],
)
def test_every_fault_is_one_line_that_says_what_to_do(
    server: OllamaServer, model: Model, fault: str, said: str, hint: str, kind: type[ModelCallError]
) -> None:
    server.fault = fault
    with pytest.raises(ModelCallError) as caught:
        model.converse(Question("", "text"))
    assert type(caught.value) is kind
    assert said in caught.value.message
    assert hint in caught.value.hint
    assert "\n" not in caught.value.message + caught.value.hint


@pytest.mark.slow
def test_a_server_that_dawdles_may_have_worked(server: OllamaServer, tmp_path: Path) -> None:
    server.delay = 1
    model = model_at(f"127.0.0.1:{server.port}", tmp_path, timeout=0.5)
    with pytest.raises(ModelCallError, match=r"did not answer in 0\.5 s") as caught:
        model.converse(Question("", "text"))
    assert not isinstance(caught.value, ModelAwayError)


def test_nobody_there(tmp_path: Path) -> None:
    pauses: list[float] = []
    with pytest.raises(ModelAwayError, match="cannot be reached") as caught:
        model_at("127.0.0.1:9", tmp_path, pauses.append).converse(Question("", "text"))
    assert "ollama serve" in caught.value.hint
    assert len(pauses) == 3


@pytest.mark.parametrize(
    ("fault", "requests"),
    [("missing", 1), ("garbage", 1), ("endless", 1), ("broken", 4), ("busy", 4), ("cut", 4)],
)
def test_only_what_may_pass_is_tried_again(
    server: OllamaServer, model: Model, fault: str, requests: int
) -> None:
    server.fault = fault
    with pytest.raises(ModelCallError):
        model.converse(Question("", "text"))
    assert len(server.chats) == requests


def test_no_redirect_is_followed_with_a_question(server: OllamaServer, model: Model) -> None:
    question = Question("", "Hello?")
    with OllamaServer() as other:
        server.fault, server.elsewhere = "elsewhere", other.url
        for ask in (
            model.converse,
            lambda question, _: model.converse(Question("", question.prompt)),
        ):
            with pytest.raises(ModelCallError, match="leads elsewhere, where no text") as caught:
                ask(question, lambda _: None)
            assert "OLLAMA_HOST" in caught.value.hint
        assert not other.chats
    assert len(server.chats) == 2


def test_a_proxy_is_not_asked_for_a_server_of_this_machine(
    server: OllamaServer, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    with OllamaServer() as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        monkeypatch.setenv("ALL_PROXY", proxy.url)
        assert model.converse(Question("", "Hello?")).text == "ok"
        assert not proxy.chats


def test_an_address_that_cannot_be_asked_is_not_asked_again(tmp_path: Path) -> None:
    pauses: list[float] = []
    with pytest.raises(ModelAwayError, match="cannot be"):
        model_at("gopher://127.0.0.1:9", tmp_path, pauses.append).converse(Question("", "text"))
    assert not pauses


def test_the_tokens_that_the_server_counted(server: OllamaServer, model: Model) -> None:
    model.converse(Question("Be brief.", "words " * 5000))
    assert (model.usage.calls, model.usage.input_tokens, model.usage.output_tokens) == (1, 1, 1)
    assert model.usage.cost is None
