"""Tools that a model may call: its calls in pieces, odd ones, what comes of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.llm.conftest import CALL, PLAIN, QUESTION, SEARCH, TEXT, WANTED
from tests.support.model_server import ModelServer, Response
from vault_index.errors import ModelToolsError
from vault_index.llm.backend import ASSISTANT, TOOL, USER, ModelQuestion, ToolCall, Turn
from vault_index.llm.metered import Model


def refuse(server: ModelServer, status: int, message: str) -> None:
    """Answer each question that has tools with an error."""
    said = {"error": {"message": message, "type": "invalid_request_error"}}
    server.judge = lambda body: Response(status, said) if body.get("tools") else None


def test_calls_of_tools_come_in_pieces_too(server: ModelServer, model: Model) -> None:
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
    kind: str, server: ModelServer, model: Model
) -> None:
    before = (Turn(USER, "Hello?"), Turn(ASSISTANT, "Hello."))
    calls = (ToolCall("toolu_1", SEARCH.name, WANTED), ToolCall("toolu_2", SEARCH.name, None))
    after = (
        Turn(ASSISTANT, "", calls),
        Turn(TOOL, "[1] 4 GB", call="toolu_1"),
        Turn(TOOL, "No more searches.", call="toolu_2"),
    )
    model.converse(ModelQuestion("", "What was it?", before=before, after=after), lambda _: None)
    messages = server.chats[0]["messages"][-6:]
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
        assert server.chats[0]["tool_choice"] == {"type": "none"}
        assert server.chats[0]["tools"][0]["name"] == SEARCH.name
        return
    roles = ["user", "assistant", "user", "assistant", "tool", "tool"]
    assert [message["role"] for message in messages] == roles
    arguments = [call["function"]["arguments"] for call in messages[3]["tool_calls"]]
    assert [json.loads(written) for written in arguments] == [WANTED, {}]
    assert messages[4]["tool_call_id"] == "toolu_1"
    assert messages[3]["tool_calls"][1]["id"] == "toolu_2"
    assert messages[4]["content"] == "[1] 4 GB"


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
    server: ModelServer, model: Model, take: Any, status: int, message: str,
    used: Callable[[], tuple[int, int]],
) -> None:  # fmt: skip
    refuse(server, status, message)
    assert model.can_call_tools
    with pytest.raises(ModelToolsError, match=r"takes no tools") as caught:
        model.converse(QUESTION, take)
    assert caught.value.hint
    assert len(server.chats) == 1
    assert not model.can_call_tools
    assert used() == (0, 0)
    assert model.converse(PLAIN, take).text == TEXT


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
