"""Asking over HTTP: whole, as events, without a model; and that it holds up nobody."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from tests.support.chat_server import ChatServer
from tests.support.files import lesson_text
from tests.support.places import TESTS
from tests.support.serving import Serving, serving
from tests.support.shown_vaults import TEXT_ONLY, shown_vault
from tests.support.watchers import soon

pytestmark = pytest.mark.slow

COURSE = TESTS / "courses" / "introduction_to_ai.txt"
ROLLBACK = "Roll back a staging deploy with `make rollback TAG=previous`. Then tell the channel."
FILES = {
    "devops/rollback.md": lesson_text("Staging rollbacks", ROLLBACK),
    "devops/heap.md": lesson_text("Heap", "Raise the heap when the build runs out of memory."),
}


@pytest.fixture(scope="module")
def chat() -> Iterator[ChatServer]:
    with ChatServer() as server:
        yield server


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, chat: ChatServer) -> Iterator[Serving]:
    """A vault of two lessons and a course, served for full text alone; a model answers."""
    shown = shown_vault(tmp_path_factory.mktemp("asked"), FILES)
    shown.run("import", str(COURSE), "--write")
    chat.configure(shown.home)
    with serving(shown.root, shown.home, **TEXT_ONLY) as server:
        yield server


@pytest.fixture(autouse=True)
def scripted(chat: ChatServer) -> Iterator[None]:
    """Let each test begin with a model that searches for the question, and does not wait."""
    chat.begin()
    yield
    chat.release.set()


def ask(server: Serving, query: str, **more: Any) -> dict[str, Any]:
    """Return the whole answer to a question."""
    answer = server.ask("POST", "/api/ask", json={"query": query, **more})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def events_of(lines: Iterator[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield events as their names and values."""
    name = ""
    for line in lines:
        kind, _, value = line.partition(": ")
        if kind == "event":
            name = value
        elif kind == "data":
            yield name, json.loads(value)


def streaming(server: Serving, query: str) -> Any:
    """Open a stream of the events of an answer."""
    headers = {"authorization": f"Bearer {server.token}", "accept": "text/event-stream"}
    url = f"{server.url}/api/ask"
    return httpx.stream("POST", url, json={"query": query}, headers=headers, trust_env=False,
                        timeout=60)  # fmt: skip


def test_as_events_it_comes_as_it_is_written(served: Serving, chat: ChatServer) -> None:
    chat.release.clear()
    chat.words = lambda _: ["Run ", "`make ", "rollback` ", "[1]. ", "Then ", "wait."]
    with streaming(served, "how do we roll back a staging deploy?") as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        seen: list[tuple[str, dict[str, Any]]] = []
        for event in events_of(answer.iter_lines()):
            seen.append(event)
            if event[0] == "piece":
                chat.release.set()  # the model ends only after its first words arrived here
    assert [name for name, _ in seen[:2]] == ["search", "passages"]
    assert seen[-1][0] == "done"
    pieces = "".join(values["text"] for name, values in seen if name == "piece")
    assert pieces == seen[-1][1]["answer"] == "Run `make rollback` [1]. Then wait."


def test_searches_are_answered_while_four_answers_and_more_are_written(
    served: Serving, chat: ChatServer
) -> None:
    chat.release.clear()
    chat.words = lambda _: ["It ", "takes ", "long [1]."]
    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(ask, served, "how do we roll back staging?") for _ in range(6)]
        soon(lambda: sum(each["messages"][-1]["role"] == "tool" for each in chat.chats) >= 4)
        for _ in range(20):
            answer = served.ask("POST", "/api/query", json={"prompt": "heap memory"})
            assert [each["id"] for each in answer.json()["lessons"]] == ["devops/heap"]
        assert not any(each.done() for each in asked)
        assert (
            sum(each["messages"][-1]["role"] == "tool" for each in chat.chats) == 4
        )  # the others wait
        chat.release.set()
        assert {each.result(60)["status"] for each in asked} == {"answered"}


def endless() -> Iterator[str]:
    while True:
        time.sleep(0.01)
        yield "word "


def test_a_client_that_goes_away_stops_its_model(served: Serving, chat: ChatServer) -> None:
    chat.words = lambda _: endless()
    with streaming(served, "how do we roll back a staging deploy?") as answer:
        next(event for event in events_of(answer.iter_lines()) if event[0] == "piece")
    assert chat.is_left.wait(60)
    chat.is_left.clear()

    body = json.dumps({"query": "how do we roll back a staging deploy?"})
    head = f"POST /api/ask HTTP/1.1\r\nHost: 127.0.0.1:{served.port}\r\n"
    head += "Content-Type: application/json\r\n"
    head += f"Authorization: Bearer {served.token}\r\nContent-Length: {len(body)}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", served.port)) as line:
        line.sendall((head + body).encode())
        soon(lambda: sum(each["messages"][-1]["role"] == "tool" for each in chat.chats) == 2)
    assert chat.is_left.wait(60)


def test_silent_models_hold_no_place_when_their_clients_are_gone(
    served: Serving, chat: ChatServer
) -> None:
    stuck, quick = threading.Event(), iter([False] * 4)

    def words(_: object) -> list[str]:
        if not next(quick, True):
            stuck.wait(60)  # the model thinks, and the connection is silent
        return ["It is so [1]."]

    chat.words = words
    with contextlib.ExitStack() as streams:
        for _ in range(4):
            answer = streams.enter_context(streaming(served, "how do we roll back staging?"))
            assert ": waiting" in answer.iter_lines()  # each second, for proxies between us
    assert ask(served, "how do we roll back a staging deploy?")["status"] == "answered"
    assert not stuck.is_set()
    stuck.set()


def test_a_request_does_not_choose_the_model(served: Serving, chat: ChatServer) -> None:
    asked = {"query": "how do we roll back staging?", "model": "anthropic:dearest"}
    refused = served.ask("POST", "/api/ask", json=asked)
    assert refused.status_code == 422
    assert "no field 'model'" in refused.json()["error"]
    assert chat.chats == []
