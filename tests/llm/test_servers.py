"""Models over plain HTTP, `anthropic` and `openai`: servers that answer, dawdle, refuse and break."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.llm.conftest import KEY, TEXT, model_at
from tests.support.files import write
from tests.support.model_server import ModelServer, Response
from vault_index import llm
from vault_index.config import Config, LlmTable, load
from vault_index.errors import ModelAwayError, ModelCallError, SettingsError
from vault_index.llm.backend import ModelQuestion
from vault_index.llm.metered import Model
from vault_index.llm.server import PassingError, events_in

KEYS: dict[str, dict[str, Any]] = {
    "title": {"type": "string"},
    "parts": {
        "type": "array",
        "items": {"type": "object", "properties": {"id": {"type": "integer"}}},
    },
}
GOOD = {"title": "Heap", "parts": [{"id": 1}]}
SECRET = "the words of an answer"


def caught_from(model: Model) -> ModelCallError:
    with pytest.raises(ModelCallError) as caught:
        model.complete_json("Be exact.", "What was it?", KEYS)
    error = caught.value
    assert not isinstance(error, PassingError)
    assert error.message.startswith(model.name)
    assert error.hint
    assert "\n" not in error.message + error.hint
    assert SECRET not in error.message + error.hint
    assert KEY not in error.message + error.hint
    return error


def test_anthropic_is_asked_as_its_api_says(
    server: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", f"{server.url}/")
    model = llm.open_model("anthropic:claude-opus-5", Config(home=tmp_path))
    assert model.converse(ModelQuestion("Be brief.", "Hello?")).text == TEXT
    assert model.converse(ModelQuestion("", "Hello?")).text == TEXT
    first, second = server.requests
    assert first.path == "/v1/messages"
    assert first.headers["x-api-key"] == KEY
    assert first.headers["anthropic-version"] == "2023-06-01"
    assert first.body["system"] == "Be brief."
    assert first.body["messages"] == [{"role": "user", "content": "Hello?"}]
    assert first.body["model"] == "claude-opus-5"
    assert "system" not in second.body
    usage = model.usage
    assert (usage.calls, usage.input_tokens, usage.output_tokens, usage.cost) == (2, 84, 14, None)


def test_tokens_temperature_and_the_key_are_settings(
    server: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEAM_KEY", KEY)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
    write(
        tmp_path / "config.toml",
        f'[llm]\nopenai_url = "{server.url}/v1"\nmax_tokens = 700\ntemperature = 0.4\n'
        'openai_key_variable = "TEAM_KEY"\nanthropic_key_variable = "TEAM_KEY"\n',
    )
    config = load(environ={"LESSONS_HOME": str(tmp_path)})
    for name in ("openai:m", "anthropic:m"):
        assert llm.open_model(name, config).converse(ModelQuestion("", "Hello?")).text == TEXT
    for request in server.requests:
        assert (request.body["max_tokens"], request.body["temperature"]) == (700, 0.4)
    first, second = server.requests
    assert first.headers["authorization"] == f"Bearer {KEY}"
    assert second.headers["x-api-key"] == KEY
    monkeypatch.delenv("TEAM_KEY")
    with pytest.raises(ModelCallError) as caught:
        llm.open_model("anthropic:m", config).converse(ModelQuestion("", "Hello?"))
    assert caught.value.hint == "set TEAM_KEY in the environment"
    write(tmp_path / "config.toml", '[llm]\nopenai_key_variable = "sk-abc"\n')
    with pytest.raises(SettingsError, match="must be the name of a variable"):
        load(environ={"LESSONS_HOME": str(tmp_path)})


def test_an_openai_compatible_server_is_asked_as_its_api_says(
    server: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = Config(home=tmp_path, llm=LlmTable(openai_url=f"{server.url}/v1/"))
    server.answer = lambda _: json.dumps(GOOD)
    local = llm.open_model("openai:qwen3:4b", config)
    assert local.complete_json("Be exact.", "What was it?", KEYS) == GOOD
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    llm.open_model("openai:qwen3:4b", config).converse(ModelQuestion("", "Hello?"))
    first, second = server.requests
    assert first.path == "/v1/chat/completions"
    assert "authorization" not in first.headers
    assert second.headers["authorization"] == f"Bearer {KEY}"
    assert [message["role"] for message in first.body["messages"]] == ["system", "user"]
    assert [message["role"] for message in second.body["messages"]] == ["user"]
    assert (first.body["model"], first.body["temperature"]) == ("qwen3:4b", 0)
    schema = first.body["response_format"]["json_schema"]["schema"]
    assert schema["required"] == ["title", "parts"]
    assert schema["additionalProperties"] is False
    assert schema["properties"]["parts"]["items"]["additionalProperties"] is False
    assert "response_format" not in second.body
    usage = local.usage
    counted = (usage.calls, usage.input_tokens, usage.output_tokens, usage.cost)
    assert counted == (1, server.count(first.body), 7, None)


@pytest.mark.parametrize(
    ("refuses", "param", "left"),
    [
        ("response_format", None, {"temperature", "max_tokens"}),
        ("max_tokens", "max_tokens", {"temperature", "max_completion_tokens", "response_format"}),
        ("temperature", "temperature", {"max_tokens", "response_format"}),
    ],
)
def test_a_server_that_does_not_know_an_option_is_asked_without_it(
    server: ModelServer, tmp_path: Path, refuses: str, param: str | None, left: set[str]
) -> None:
    said = {"error": {"message": f"Unsupported: {refuses}", "param": param}}
    server.judge = lambda body: Response(400, said) if refuses in body else None
    server.answer = lambda _: json.dumps(GOOD)
    model = model_at("openai", server.url, tmp_path, [])
    for _ in range(2):
        assert model.complete_json("", "What was it?", KEYS) == GOOD
    assert len(server.requests) == 3  # the second question knows it
    assert set(server.requests[-1].body) == {"model", "messages"} | left
    assert model.usage.calls == 2


@pytest.mark.parametrize("status", [429, 500, 502, 503, 529])
def test_what_may_pass_is_tried_again_three_times(
    server: ModelServer, model: Model, pauses: list[float], status: int
) -> None:
    server.instead = [Response(status, {"error": {"message": "busy"}})] * 3
    assert model.converse(ModelQuestion("", "Hello?")).text == TEXT
    assert [round(pause / base, 2) for pause, base in zip(pauses, (0.5, 1, 2), strict=True)] == (
        pytest.approx([1.25] * 3, abs=0.26)
    )
    server.instead = [Response(status, {"error": {"message": "busy"}})] * 9
    error = caught_from(model)
    assert f"status {status}: busy" in error.message
    assert isinstance(error, ModelAwayError) == (status in (429, 503, 529))
    assert len(server.requests) == 4 + 4


@pytest.mark.parametrize(("after", "waits"), [("7", [7.0] * 3), ("3600", []), ("soon", None)])
def test_a_server_says_how_long_to_wait(
    server: ModelServer, model: Model, pauses: list[float], after: str, waits: list[float] | None
) -> None:
    server.instead = [Response(429, {}, {"Retry-After": after})] * 4
    assert isinstance(caught_from(model), ModelAwayError)
    assert len(pauses) == 3 if waits is None else pauses == waits


@pytest.mark.parametrize(
    ("status", "hint", "away"),
    [
        (400, "choose another model", False),
        (401, "_API_KEY", True),
        (403, "_API_KEY", True),
        (404, "name of the model", True),
        (413, "takes more text", False),
    ],
)
def test_what_does_not_pass_is_not_tried_again(
    server: ModelServer, model: Model, pauses: list[float], status: int, hint: str, away: bool
) -> None:
    said = f"no, {KEY} \x1b[31mis wrong\n{SECRET}"
    server.judge = lambda _: Response(status, {"error": {"type": "x", "message": said}})
    error = caught_from(model)
    assert f"status {status}: no, [key]" in error.message
    assert "\x1b" not in error.message
    assert hint in error.hint
    assert isinstance(error, ModelAwayError) == away
    assert not pauses


ODD = {
    "an HTML page": Response(body=f"<html><h1>{SECRET}</h1></html>".encode()),
    "a page of a proxy": Response(403, f"<html>{SECRET}</html>".encode()),
    "no object": Response(body=[SECRET]),
    "an error": Response(body={"error": {"type": "x", "message": SECRET}}),
    "an error in words": Response(body={"error": SECRET}),
    "deep": Response(body=b"[" * 100_000),
    "not text": Response(body=b"\xff\xfe" + SECRET.encode()),
    "no choices": Response(body={"choices": [], "content": []}),
    "a stream": Response(body=f"data: {SECRET}\n\ndata: [DONE]\n\n".encode()),
    "null": Response(body={"choices": [{"message": None}], "content": None}),
    "megabytes": Response(body=(SECRET * 300_000).encode()),
}


@pytest.mark.parametrize("odd", list(ODD))
def test_what_is_no_answer_is_a_clear_error(
    server: ModelServer, model: Model, pauses: list[float], odd: str
) -> None:
    server.instead = [ODD[odd]]
    caught_from(model)
    assert len(server.requests) == 1
    assert not pauses


def test_an_answer_that_was_cut_off_on_its_way(
    server: ModelServer, model: Model, pauses: list[float]
) -> None:
    server.instead = [Response(body={"content": SECRET}, is_cut=True)] * 3
    assert model.converse(ModelQuestion("", "Hello?")).text == TEXT
    server.instead = [Response(body={"content": SECRET}, is_cut=True)] * 4
    assert "ended the connection" in caught_from(model).message
    assert len(pauses) == 6


@pytest.mark.slow
def test_a_server_that_dawdles_is_asked_once(
    kind: str, server: ModelServer, tmp_path: Path, pauses: list[float]
) -> None:
    server.delay = 1
    error = caught_from(model_at(kind, server.url, tmp_path, pauses, timeout=0.3))
    assert "did not answer in 0.3 s" in error.message
    assert not isinstance(error, ModelAwayError)
    assert not pauses


def test_nobody_there(kind: str, tmp_path: Path, pauses: list[float]) -> None:
    error = caught_from(model_at(kind, "http://127.0.0.1:9", tmp_path, pauses))
    assert isinstance(error, ModelAwayError)
    assert "http://127.0.0.1:9 cannot be reached" in error.message
    assert len(pauses) == 3


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_no_redirect_is_followed_with_the_key(
    server: ModelServer, model: Model, status: int
) -> None:
    with ModelServer() as other:
        server.judge = lambda _: Response(status, b"", {"Location": f"{other.url}/v1/messages"})
        assert "leads elsewhere" in caught_from(model).message
        assert not other.requests
    assert len(server.requests) == 1


def test_a_proxy_is_not_asked_for_a_server_of_this_machine(
    server: ModelServer, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ModelServer() as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        monkeypatch.setenv("ALL_PROXY", proxy.url)
        assert model.converse(ModelQuestion("", "Hello?")).text == TEXT
        assert not proxy.requests


@pytest.mark.parametrize("url", ["http://models.example/v1", "http://192.168.1.7:8080/v1"])
def test_no_key_is_sent_in_the_clear(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = Config(home=tmp_path, llm=LlmTable(openai_url=url))
    llm.open_model("openai:opus", config)  # without a key there is nothing to lose
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", url)
    for name in ("openai:opus", "anthropic:opus"):
        with pytest.raises(SettingsError, match="not sent in the clear") as caught:
            llm.open_model(name, config)
        assert caught.value.hint.startswith("use an https address")
        assert KEY not in caught.value.message + caught.value.hint
    for usable in ("https://models.example/v1", "http://[::1]:8080/v1", "http://localhost:1/v1"):
        llm.open_model("openai:opus", replace(config, llm=replace(config.llm, openai_url=usable)))


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="no server is named") as caught:
        llm.open_model("openai:opus", Config(home=tmp_path))
    assert "openai_url = " in caught.value.hint
    with pytest.raises(ModelAwayError, match="there is no key") as away:
        llm.open_model("anthropic:opus", Config(home=tmp_path)).converse(
            ModelQuestion("", "Hello?")
        )
    assert "ANTHROPIC_API_KEY" in away.value.hint


# server-sent events


LINES = [
    'data: {"a": "ä\N{ROCKET}"}',
    "",
    ": still there",
    "",
    "event: x",
    'data: {"b":',
    "data:  2}",
]
READ: list[dict[str, Any]] = [{"a": "ä\N{ROCKET}"}, {"b": 2}, {}]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_events_are_the_same_wherever_the_bytes_are_split(end: str) -> None:
    data = end.join([*LINES, "", "data: [DONE]", "", ""]).encode()
    for place in range(len(data) + 1):
        assert read(data[:place], data[place:]) == READ
    assert read(*(data[place : place + 1] for place in range(len(data)))) == READ


def read(*pieces: bytes) -> list[dict[str, Any]]:
    return [*events_in(pieces)]
