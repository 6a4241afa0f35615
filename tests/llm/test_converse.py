"""A conversation with a model: its answer in pieces, its calls of tools, and all that breaks them."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import streams
from tests.support.model_server import ModelServer, Response
from tests.support.ollama_server import OllamaServer
from tests.support.watchers import soon
from vault_index.config import Config
from vault_index.errors import (
    ModelAwayError,
    ModelCallError,
    ModelRefusedError,
    ModelToolsError,
)
from vault_index.llm import Model
from vault_index.llm.allowance import Allowance
from vault_index.llm.anthropic import AnthropicDoor
from vault_index.llm.counted import CountedModel
from vault_index.llm.door import ASSISTANT, TOOL, USER, Door, Question, Tool, ToolCall, Turn
from vault_index.llm.ollama import OllamaDoor
from vault_index.llm.openai import OpenAIDoor

TEXT = "Erhöhe den Heap auf 4 GB \N{EM DASH} dann baut es. \N{ROCKET} \U0001f9d1\u200d\U0001f4bb"
SEARCH = Tool(
    "search_lessons",
    "Search the lessons of the vault.",
    {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
)
WANTED = {"query": "größerer Heap"}
CALL = ("search_lessons", json.dumps(WANTED, ensure_ascii=False))
PLAIN = Question("Be brief.", "What was it?")
QUESTION = Question("Be brief.", "What was it?", tools=(SEARCH,))
KINDS = ("anthropic", "openai", "ollama")
Server = ModelServer | OllamaServer


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def server(kind: str) -> Iterator[Server]:
    with OllamaServer() if kind == "ollama" else ModelServer() as serving:
        serving.answer = lambda _: TEXT
        yield serving


@pytest.fixture
def model(kind: str, server: Server, tmp_path: Path) -> Model:
    return model_at(kind, server, tmp_path)


@pytest.fixture
def used(tmp_path: Path) -> Callable[[], tuple[int, int]]:
    """The calls and tokens that the day's allowance has lost."""

    def used() -> tuple[int, int]:
        day = Allowance(Config(home=tmp_path)).used()
        return day.calls, day.tokens

    return used


def model_at(kind: str, server: Server, home: Path, timeout: float = 20) -> Model:
    config = Config(home=home, llm_openai_url=f"{server.url}/v1")
    environ = {"ANTHROPIC_API_KEY": "sk-made-up", "ANTHROPIC_BASE_URL": server.url}
    door: Door
    if kind == "ollama":
        door = OllamaDoor("opus", server.url, timeout)
    elif kind == "anthropic":
        door = AnthropicDoor("opus", environ, timeout)
    else:
        door = OpenAIDoor("opus", config, environ, timeout)
    return CountedModel(door, Allowance(config), lambda _: None)


def bodies(server: Server) -> list[dict[str, Any]]:
    if isinstance(server, OllamaServer):
        return server.chats
    return [request.body for request in server.requests]


def refuse(server: Server, status: int, message: str) -> None:
    """Answer each question that has tools with an error."""
    if isinstance(server, OllamaServer):
        server.fault = "no tools"
        return
    said = {"error": {"message": message, "type": "invalid_request_error"}}
    server.judge = lambda body: Response(status, said) if body.get("tools") else None


@pytest.mark.parametrize(
    "play",
    [list, streams.in_bytes(3), streams.in_bytes(5, b"\r\n"), streams.in_bytes(10**6)],
    ids=["events", "bytes", "returns", "at once"],
)
def test_the_pieces_are_the_text_however_the_bytes_come(
    server: Server, model: Model, play: streams.Play, used: Callable[[], tuple[int, int]]
) -> None:
    server.play = play
    pieces: list[str] = []
    reply = model.converse(PLAIN, pieces.append)
    assert pieces == streams.pieces_of(TEXT, streams.TEXT_CHARS)
    assert (reply.text, reply.calls) == (TEXT, ())
    assert (model.usage.calls, model.usage.input_tokens) == (1, reply.input_tokens)
    assert used() == (1, model.usage.input_tokens + model.usage.output_tokens)
    assert reply.output_tokens in (1, 7)  # as the server counts them


def test_without_a_taker_nothing_is_streamed(server: Server, model: Model) -> None:
    assert model.converse(PLAIN).text == TEXT
    assert model.complete("Be brief.", "What was it?") == TEXT
    assert not any(body.get("stream") for body in bodies(server))


def test_calls_of_tools_come_in_pieces_too(server: Server, model: Model) -> None:
    server.answer = lambda _: "Let me look."
    server.calls = lambda _: [CALL, ("search_lessons", "{}")]
    pieces: list[str] = []
    for take in (pieces.append, None):
        reply = model.converse(QUESTION, take)
        assert reply.text == "Let me look."
        first, second = reply.calls
        assert (first.name, first.arguments, second.arguments) == (SEARCH.name, WANTED, {})
        assert first.id != second.id
    assert "".join(pieces) == "Let me look."
    server.answer = lambda _: ""
    assert [call.arguments for call in model.converse(QUESTION, pieces.append).calls] == [
        WANTED,
        {},
    ]


def test_the_result_of_a_call_goes_back_to_the_model(
    kind: str, server: Server, model: Model
) -> None:
    before = (Turn(USER, "Hello?"), Turn(ASSISTANT, "Hello."))
    calls = (ToolCall("toolu_1", SEARCH.name, WANTED), ToolCall("toolu_2", SEARCH.name, None))
    after = (
        Turn(ASSISTANT, "", calls),
        Turn(TOOL, "[1] 4 GB", call="toolu_1"),
        Turn(TOOL, "No more searches.", call="toolu_2"),
    )
    model.converse(Question("", "What was it?", before=before, after=after), lambda _: None)
    messages = bodies(server)[0]["messages"][-6:]
    if kind == "anthropic":
        assert [message["role"] for message in messages] == ["user", "assistant"] * 2 + ["user"]
        assert messages[3]["content"] == [
            {"type": "tool_use", "id": "toolu_1", "name": SEARCH.name, "input": WANTED},
            {"type": "tool_use", "id": "toolu_2", "name": SEARCH.name, "input": {}},
        ]
        assert messages[4]["content"][0] == {
            "type": "tool_result",
            "tool_use_id": "toolu_1",
            "content": "[1] 4 GB",
        }
        assert bodies(server)[0]["tool_choice"] == {"type": "none"}
        assert bodies(server)[0]["tools"][0]["name"] == SEARCH.name
        return
    roles = ["user", "assistant", "user", "assistant", "tool", "tool"]
    assert [message["role"] for message in messages] == roles
    arguments = [call["function"]["arguments"] for call in messages[3]["tool_calls"]]
    if kind == "openai":
        assert [json.loads(written) for written in arguments] == [WANTED, {}]
        assert messages[4]["tool_call_id"] == "toolu_1"
        assert messages[3]["tool_calls"][1]["id"] == "toolu_2"
    else:
        assert arguments == [WANTED, {}]
        assert messages[4]["tool_name"] == SEARCH.name
    assert messages[4]["content"] == "[1] 4 GB"


def test_a_server_that_does_not_stream_is_heard_all_the_same(server: Server, model: Model) -> None:
    server.streams = False
    server.calls = lambda _: [CALL]
    pieces: list[str] = []
    reply = model.converse(QUESTION, pieces.append)
    assert pieces == [TEXT] == [reply.text]
    assert [call.arguments for call in reply.calls] == [WANTED]


@pytest.mark.parametrize("kind", ["anthropic", "openai"])
@pytest.mark.parametrize("arguments", ["heap", '{"query": "he', '["heap"]', "[" * 20_000])
def test_arguments_that_are_no_object(server: ModelServer, model: Model, arguments: str) -> None:
    server.calls = lambda _: [(SEARCH.name, arguments)]
    (call,) = model.converse(QUESTION, lambda _: None).calls
    assert (call.name, call.arguments) == (SEARCH.name, None)


@pytest.mark.parametrize("take", [None, lambda _: None], ids=["whole", "stream"])
@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "registry.ollama.ai/library/gemma3 does not support tools"),
        (400, '"auto" tool choice requires --enable-auto-tool-choice to be set'),
        (404, "No endpoints found that support tool use."),
        (500, "tools param requires --jinja flag"),
        (400, "`tool calling` is not supported with this model"),
        (422, "body.tools: Extra inputs are not permitted"),
    ],
)
def test_a_model_that_takes_no_tools_is_asked_again_without(
    kind: str, server: Server, model: Model, take: Any, status: int, message: str,
    used: Callable[[], tuple[int, int]],
) -> None:  # fmt: skip
    if kind == "ollama" and "ollama" not in message:
        return
    refuse(server, status, message)
    assert model.can_call_tools
    with pytest.raises(ModelToolsError, match=r"takes no tools") as caught:
        model.converse(QUESTION, take)
    assert caught.value.hint
    assert len(bodies(server)) == 1
    assert not model.can_call_tools
    assert used() == (0, 0)
    assert model.converse(PLAIN, take).text == TEXT


def test_a_stream_that_breaks_after_words_is_not_tried_again(
    server: Server, model: Model, used: Callable[[], tuple[int, int]]
) -> None:
    for play in (streams.cut_after(5), lambda events: events[:5]):  # or ends as if it were whole
        server.play = play
        pieces: list[str] = []
        with pytest.raises(ModelCallError, match="ended in the middle of its answer") as caught:
            model.converse(PLAIN, pieces.append)
        assert type(caught.value) is ModelCallError
        assert caught.value.hint
        assert "\n" not in caught.value.message
        assert pieces
        assert TEXT.startswith("".join(pieces))
    assert len(bodies(server)) == 2
    assert (model.usage.calls, used()[0]) == (2, 2)


def test_a_stream_that_breaks_before_the_first_word_is_tried_again(
    server: Server, model: Model
) -> None:
    plays = [streams.cut_after(0), streams.cut_after(0), list]
    server.play = lambda events: plays.pop(0)(events)
    pieces: list[str] = []
    assert model.converse(PLAIN, pieces.append).text == TEXT == "".join(pieces)
    assert len(bodies(server)) == 3


ERRORS = {
    "anthropic": b'event: error\ndata: {"type": "error", "error": {"type": "overloaded_error", '
    b'"message": "Overloaded"}}\n\n',
    "openai": b'data: {"error": {"code": 529, "message": "Overloaded"}}\n\n',
    "llama.cpp": b'error: {"code": 529, "message": "Overloaded", "type": "server_error"}\n\n',
    "ollama": b'{"error": "Overloaded"}\n',
}


@pytest.mark.parametrize(
    ("kind", "said"), [*((name, name) for name in KINDS), ("openai", "llama.cpp")]
)
def test_an_error_in_the_stream(server: Server, model: Model, said: str) -> None:
    server.play = lambda events: [*events[:5], ERRORS[said]]
    pieces: list[str] = []
    with pytest.raises(ModelCallError, match=r"in the middle of its answer: .*Overloaded$"):
        model.converse(PLAIN, pieces.append)
    assert len(bodies(server)) == 1
    assert pieces
    server.play = lambda _: [ERRORS[said]]
    with pytest.raises(ModelCallError, match=r"Overloaded$") as caught:
        model.converse(PLAIN, pieces.append)
    assert len(bodies(server)) == 1 + 4
    assert isinstance(caught.value, ModelAwayError) == (said != "ollama")


@pytest.mark.slow
def test_a_server_that_only_keeps_the_connection_alive(
    kind: str, server: Server, tmp_path: Path
) -> None:
    drop = b'{"message": {"role": "assistant"}, "done": false}\n' if kind == "ollama" else b":\n\n"
    server.play = streams.forever(drop, pause=0.02)
    model = model_at(kind, server, tmp_path, timeout=0.6)
    with pytest.raises(ModelCallError, match=r"did not answer in 0\.6 s"):
        model.converse(PLAIN, lambda _: None)
    assert len(bodies(server)) == 1
    assert server.is_left.wait(20)
    server.play = streams.forever(drop, pause=0.02, after=5)
    with pytest.raises(ModelCallError, match=r"in the middle of its answer: .* in 0\.6 s"):
        model.converse(PLAIN, lambda _: None)


def test_an_answer_without_an_end_is_read_no_further(
    kind: str, server: Server, model: Model, used: Callable[[], tuple[int, int]]
) -> None:
    server.answer = lambda _: "x" * 3 * streams.TEXT_CHARS
    server.play = lambda events: streams.forever(piece_of(kind, "x" * 999), after=3)(events)
    pieces: list[str] = []
    with pytest.raises(ModelCallError, match="with more than 100,000 characters"):
        model.converse(PLAIN, pieces.append)
    assert "".join(pieces) == "x" * 100_000
    assert server.is_left.wait(20)
    assert len(bodies(server)) == 1
    assert used()[0] == model.usage.calls == 1
    assert 24_000 < model.usage.output_tokens < 26_000


def piece_of(kind: str, text: str) -> bytes:
    """Return one more piece of an answer."""
    if kind == "ollama":
        return streams.ollama_lines("opus", text, [], "")[0].replace(b"x" * 5, b"x" * 999)
    if kind == "anthropic":
        delta = {"type": "text_delta", "text": text}
        event = {"type": "content_block_delta", "index": 0, "delta": delta}
    else:
        event = {"choices": [{"index": 0, "delta": {"content": text}}]}
    return f"data: {json.dumps(event)}\n\n".encode()


@pytest.mark.parametrize("kind", ["anthropic", "openai"])
def test_arguments_without_an_end(server: ModelServer, model: Model) -> None:
    server.calls = lambda _: [(SEARCH.name, json.dumps({"query": "x" * 100_000}))]
    server.streams = False
    with pytest.raises(ModelCallError, match="with more than 100,000 characters"):
        model.converse(QUESTION, lambda _: None)


@pytest.mark.parametrize("kind", ["anthropic", "openai"])
def test_megabytes_that_are_no_answer_are_not_kept(server: ModelServer, model: Model) -> None:
    server.play = streams.forever(b"x" * 100_000)
    with pytest.raises(ModelCallError, match="larger than 4 MB"):
        model.converse(PLAIN, lambda _: None)
    assert server.is_left.wait(20)


@pytest.mark.parametrize(
    "error", [ValueError("mine"), BrokenPipeError("mine"), TypeError("mine"), KeyboardInterrupt()]
)
def test_whoever_takes_the_pieces_goes_away(
    server: Server, model: Model, error: BaseException, used: Callable[[], tuple[int, int]]
) -> None:
    server.play = lambda events: streams.forever(events[2], pause=0.01, after=4)(events)

    def take(_: str) -> None:
        raise error

    with pytest.raises(type(error)) as caught:
        model.converse(PLAIN, take)
    assert caught.value is error
    assert server.is_left.wait(20)
    assert len(bodies(server)) == 1
    assert used()[0] == 1


def test_a_silent_model_is_ended_at_the_next_beat(
    kind: str, server: Server, model: Model, used: Callable[[], tuple[int, int]]
) -> None:
    hanging = threading.Event()

    def play(_: Any) -> Iterator[bytes]:
        hanging.wait(30)
        yield from ()

    server.play = play
    error = KeyError("the client has gone")

    def take(piece: str) -> None:
        if not piece:
            raise error

    with pytest.raises(KeyError) as caught:
        model.converse(PLAIN, take)
    assert caught.value is error
    soon(lambda: not any(each.name == "model" for each in threading.enumerate()))
    hanging.set()
    assert used()[0] == 1


def test_a_refusal_and_an_end_that_is_none(kind: str, server: Server, model: Model) -> None:
    pieces: list[str] = []
    server.answer = lambda _: "I'm sorry, but I can't help with that."
    assert model.converse(PLAIN, pieces.append).text == "".join(pieces)  # whoever asked judges it
    with pytest.raises(ModelRefusedError):
        model.complete("", "")
    server.calls = lambda _: [CALL]  # it says so of the lessons, and searches
    assert model.converse(QUESTION, pieces.append).calls
    server.answer = lambda _: " \n"
    with pytest.raises(ModelCallError, match="answered with nothing"):
        model.converse(PLAIN, pieces.append)
    if isinstance(server, OllamaServer):
        server.done_reason = "length"
    else:
        server.end = "max_tokens" if kind == "anthropic" else "length"
    with pytest.raises(ModelCallError, match="did not come to an end in 4000 tokens"):
        model.converse(QUESTION, pieces.append)


def test_what_a_model_thinks_is_no_text(kind: str, server: Server, model: Model) -> None:
    thought = {
        "anthropic": b'data: {"type": "content_block_start", "index": 9, "content_block": '
        b'{"type": "thinking", "thinking": ""}}\n\ndata: {"type": "content_block_delta", '
        b'"index": 9, "delta": {"type": "thinking_delta", "thinking": "Hm."}}\n\n',
        "openai": b'data: {"choices": [{"delta": {"reasoning_content": "Hm."}}]}\n\n',
        "ollama": b'{"message": {"role": "assistant", "content": "", "thinking": "Hm."}}\n',
    }[kind]
    server.play = lambda events: [*events[:1], thought, *events[1:]]
    pieces: list[str] = []
    assert model.converse(PLAIN, pieces.append).text == TEXT == "".join(pieces)


@pytest.mark.parametrize("kind", ["openai"])
@pytest.mark.parametrize(
    ("option", "param", "requests"),
    [("stream_options", None, 3), ("stream_options", "stream_options", 3), ("stream", "stream", 3)],
)
def test_a_server_that_does_not_know_an_option_of_streams(
    server: ModelServer, model: Model, option: str, param: str | None, requests: int
) -> None:
    said = {"error": {"message": "Bad request", "param": param}}
    server.judge = lambda body: Response(400, said) if option in body else None
    for _ in range(2):
        pieces: list[str] = []
        assert model.converse(QUESTION, pieces.append).text == TEXT == "".join(pieces)
    assert len(server.requests) == requests  # the second question knows it
    assert model.usage.calls == 2


ODD_CALLS: dict[str, list[Any]] = {
    "an empty id and name in later pieces": [
        {"index": 0, "id": "a", "function": {"name": "search_lessons", "arguments": ""}},
        {"index": 0, "id": "", "function": {"name": "", "arguments": '{"query": '}},
        {"index": 0, "id": None, "function": {"name": None, "arguments": '"heap"}'}},
    ],
    "no id at all": [
        {"index": 0, "function": {"name": "search_lessons", "arguments": '{"query": '}},
        {"index": 0, "function": {"arguments": '"heap"}'}},
    ],
    "the name in each piece": [
        {"index": 0, "id": "a", "function": {"name": "search_lessons", "arguments": '{"query": '}},
        {"index": 0, "id": "a", "function": {"name": "search_lessons", "arguments": '"heap"}'}},
    ],
    "no index": [{"id": "", "function": {"name": "search_lessons", "arguments": '{"query": "heap"}'}}],
    "an object": [
        {"index": 0, "id": "a", "function": {"name": "search_lessons", "arguments": {"query": "heap"}}}
    ],
    "one index for all": [
        {"index": 0, "id": name, "function": {"name": "search_lessons", "arguments": arguments}}
        for name, arguments in (("a", '{"query": "heap"}'), ("b", '{"query": "heap"}'))
    ],
    "things beside": [
        "x",
        {"index": 7, "function": None},
        {"index": 0, "id": 3, "function": {"name": "search_lessons", "arguments": '{"query": "heap"}'}},
    ],
}  # fmt: skip


@pytest.mark.parametrize("kind", ["openai"])
@pytest.mark.parametrize("odd", list(ODD_CALLS))
def test_servers_number_their_calls_in_many_ways(
    server: ModelServer, model: Model, odd: str
) -> None:
    server.play = lambda events: [
        *(
            f"data: {json.dumps({'choices': [{'delta': {'tool_calls': [call]}}]})}\n\n".encode()
            for call in ODD_CALLS[odd]
        ),
        *events[-2:],
    ]
    calls = model.converse(QUESTION, lambda _: None).calls
    assert [(call.name, call.arguments) for call in calls] == (
        [(SEARCH.name, {"query": "heap"})] * (2 if odd == "one index for all" else 1)
    )
    assert all(call.id for call in calls)
    assert len({call.id for call in calls}) == len(calls)


@pytest.mark.parametrize("kind", ["anthropic", "openai"])
def test_a_stream_of_odd_things(kind: str, server: ModelServer, model: Model) -> None:
    odd = [
        b": a comment\n\n",
        b"retry: 100\n\n",
        b"data: no JSON\n\n",
        b'data: ["no object"]\n\n',
        b"data: {}\n\n",
        b'data: {"type": "new_event", "index": 3, "choices": "x"}\n\n',
        b'data: {"type": "content_block_delta", "index": 3, "choices": [[]], "delta": {}}\n\n',
        b'data: {"type": "content_block_start", "choices": [{"delta": 3}], "content_block": 3}\n\n',
        b"data:\n\n",
        b"\xff\xfe\n\n",
    ]
    server.play = lambda events: [piece for event in events for piece in (*odd, event)]
    pieces: list[str] = []
    assert model.converse(PLAIN, pieces.append).text == TEXT == "".join(pieces)


@pytest.mark.parametrize("kind", ["anthropic", "openai"])
def test_the_connection_may_stay_open_after_the_end(server: ModelServer, model: Model) -> None:
    server.play = streams.forever(b": more\n\n", pause=0.05, after=1000)
    began = time.monotonic()
    assert model.converse(PLAIN, lambda _: None).text == TEXT
    assert time.monotonic() - began < 15  # of the 20 it waits for more


FINISH = b'data: {"choices": [{"delta": {}, "finish_reason": "stop"}]}\n\n'


@pytest.mark.parametrize("kind", ["openai"])
@pytest.mark.parametrize("last", [b"data: [DONE]", b"data:[DONE]\r\n", FINISH])
def test_not_every_server_marks_the_end_alike(
    server: ModelServer, model: Model, last: bytes
) -> None:
    server.play = lambda events: [*events[:-3], last]  # no reason, no counts, no mark of its own
    assert model.converse(PLAIN, lambda _: None).text == TEXT


@pytest.mark.parametrize("kind", ["anthropic", "openai"])
def test_no_redirect_is_followed_with_a_question(server: ModelServer, model: Model) -> None:
    with ModelServer() as other:
        server.judge = lambda _: Response(307, b"", {"Location": other.url})
        with pytest.raises(ModelCallError, match="leads elsewhere"):
            model.converse(QUESTION, lambda _: None)
        assert not other.requests


def test_a_question_is_as_long_as_all_that_a_model_reads() -> None:
    call = Turn(ASSISTANT, "", (ToolCall("a", SEARCH.name, {"query": "x" * 1000}),))
    longer = Question("", "Hi?", before=(Turn(USER, "y" * 1000),), after=(call,), tools=(SEARCH,))
    assert 2000 + len(json.dumps(SEARCH.parameters)) < longer.chars < 2500
