"""A conversation with a model: its answer in pieces, and all that breaks it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.llm.conftest import CALL, KINDS, PLAIN, QUESTION, TEXT, model_at
from tests.support import streams
from tests.support.model_server import ModelServer
from vault_index.errors import ModelAwayError, ModelCallError, ModelRefusedError
from vault_index.llm.metered import Model


@pytest.mark.parametrize(
    "play",
    [list, streams.in_bytes(3), streams.in_bytes(5, b"\r\n"), streams.in_bytes(10**6)],
    ids=["events", "bytes", "returns", "at once"],
)
def test_the_pieces_are_the_text_however_the_bytes_come(
    server: ModelServer, model: Model, play: streams.Play, used: Callable[[], tuple[int, int]]
) -> None:
    server.play = play
    pieces: list[str] = []
    reply = model.converse(PLAIN, pieces.append)
    # a silent second of a busy machine is a piece without text
    assert [*filter(None, pieces)] == streams.pieces_of(TEXT, streams.TEXT_CHARS)
    assert (reply.text, reply.calls) == (TEXT, ())
    assert (model.usage.calls, model.usage.input_tokens) == (1, reply.input_tokens)
    assert used() == (1, model.usage.input_tokens + model.usage.output_tokens)
    assert reply.output_tokens in (1, 7)  # as the server counts them


def test_a_stream_that_breaks_after_words_is_not_tried_again(
    server: ModelServer, model: Model, used: Callable[[], tuple[int, int]]
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
    assert len(server.chats) == 2
    assert (model.usage.calls, used()[0]) == (2, 2)


def test_a_stream_that_breaks_before_the_first_word_is_tried_again(
    server: ModelServer, model: Model
) -> None:
    plays = [streams.cut_after(0), streams.cut_after(0), list]
    server.play = lambda events: plays.pop(0)(events)
    pieces: list[str] = []
    assert model.converse(PLAIN, pieces.append).text == TEXT == "".join(pieces)
    assert len(server.chats) == 3


ERRORS = {
    "anthropic": b'event: error\ndata: {"type": "error", "error": {"type": "overloaded_error", '
    b'"message": "Overloaded"}}\n\n',
    "openai": b'data: {"error": {"code": 529, "message": "Overloaded"}}\n\n',
    "llama.cpp": b'error: {"code": 529, "message": "Overloaded", "type": "server_error"}\n\n',
}


@pytest.mark.parametrize(
    ("kind", "said"), [*((name, name) for name in KINDS), ("openai", "llama.cpp")]
)
def test_an_error_in_the_stream(server: ModelServer, model: Model, said: str) -> None:
    server.play = lambda events: [*events[:5], ERRORS[said]]
    pieces: list[str] = []
    with pytest.raises(ModelCallError, match=r"in the middle of its answer: .*Overloaded$"):
        model.converse(PLAIN, pieces.append)
    assert len(server.chats) == 1
    assert pieces
    server.play = lambda _: [ERRORS[said]]
    with pytest.raises(ModelCallError, match=r"Overloaded$") as caught:
        model.converse(PLAIN, pieces.append)
    assert len(server.chats) == 1 + 4
    assert isinstance(caught.value, ModelAwayError)


@pytest.mark.slow
def test_a_server_that_only_keeps_the_connection_alive(
    kind: str, server: ModelServer, tmp_path: Path
) -> None:
    drop = b":\n\n"
    server.play = streams.forever(drop, pause=0.02)
    model = model_at(kind, server.url, tmp_path, [], timeout=2)
    with pytest.raises(ModelCallError, match=r"did not answer in 2 s"):
        model.converse(PLAIN, lambda _: None)
    assert len(server.chats) == 1
    assert server.is_left.wait(60)
    server.play = streams.forever(drop, pause=0.02, after=5)
    with pytest.raises(ModelCallError, match=r"in the middle of its answer: .* in 2 s"):
        model.converse(PLAIN, lambda _: None)


def test_an_answer_without_an_end_is_read_no_further(
    kind: str, server: ModelServer, model: Model, used: Callable[[], tuple[int, int]]
) -> None:
    server.answer = lambda _: "x" * 3 * streams.TEXT_CHARS
    server.play = lambda events: streams.forever(piece_of(kind, "x" * 999), after=3)(events)
    pieces: list[str] = []
    with pytest.raises(ModelCallError, match="with more than 100,000 characters"):
        model.converse(PLAIN, pieces.append)
    assert "".join(pieces) == "x" * 100_000
    assert server.is_left.wait(60)
    assert len(server.chats) == 1
    assert used()[0] == model.usage.calls == 1
    assert 24_000 < model.usage.output_tokens < 26_000


def piece_of(kind: str, text: str) -> bytes:
    """Return one more piece of an answer."""
    if kind == "anthropic":
        delta = {"type": "text_delta", "text": text}
        event = {"type": "content_block_delta", "index": 0, "delta": delta}
    else:
        event = {"choices": [{"index": 0, "delta": {"content": text}}]}
    return f"data: {json.dumps(event)}\n\n".encode()


@pytest.mark.parametrize(
    "error", [ValueError("mine"), BrokenPipeError("mine"), TypeError("mine"), KeyboardInterrupt()]
)
def test_whoever_takes_the_pieces_goes_away(
    server: ModelServer, model: Model, error: BaseException, used: Callable[[], tuple[int, int]]
) -> None:
    server.play = lambda events: streams.forever(events[2], pause=0.01, after=4)(events)

    def take(_: str) -> None:
        raise error

    with pytest.raises(type(error)) as caught:
        model.converse(PLAIN, take)
    assert caught.value is error
    assert server.is_left.wait(60)
    assert len(server.chats) == 1
    assert used()[0] == 1


def test_a_refusal_and_an_end_that_is_none(kind: str, server: ModelServer, model: Model) -> None:
    pieces: list[str] = []
    server.answer = lambda _: "I'm sorry, but I can't help with that."
    assert model.converse(PLAIN, pieces.append).text == "".join(pieces)  # whoever asked judges it
    with pytest.raises(ModelRefusedError):
        model.complete_json("", "", {})
    server.calls = lambda _: [CALL]  # it says so of the lessons, and searches
    assert model.converse(QUESTION, pieces.append).calls
    server.answer = lambda _: " \n"
    with pytest.raises(ModelCallError, match="answered with nothing"):
        model.converse(PLAIN, pieces.append)
    server.end = "max_tokens" if kind == "anthropic" else "length"
    with pytest.raises(ModelCallError, match=r"did not come to an end in \d tokens"):
        model.converse(QUESTION, pieces.append)


def test_what_a_model_thinks_is_no_text(kind: str, server: ModelServer, model: Model) -> None:
    thought = {
        "anthropic": b'data: {"type": "content_block_start", "index": 9, "content_block": '
        b'{"type": "thinking", "thinking": ""}}\n\ndata: {"type": "content_block_delta", '
        b'"index": 9, "delta": {"type": "thinking_delta", "thinking": "Hm."}}\n\n',
        "openai": b'data: {"choices": [{"delta": {"reasoning_content": "Hm."}}]}\n\n',
    }[kind]
    server.play = lambda events: [*events[:1], thought, *events[1:]]
    pieces: list[str] = []
    assert model.converse(PLAIN, pieces.append).text == TEXT == "".join(pieces)
