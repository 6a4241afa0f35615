"""A model behind chat completions that searches once for what it is asked, and then writes in pieces."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from tests.support import streams
from tests.support.model_server import ModelServer, Response

Body = dict[str, Any]
PATIENCE_SECONDS = 60


class ChatServer(ModelServer):
    """Serves on loopback while the `with` block runs.

    `search` makes the arguments of the model's search from a question; None: it answers without one.
    `words` makes the pieces of its answer. Before the last piece it waits for `release`.
    """

    def __init__(self) -> None:
        super().__init__()
        self.release = threading.Event()
        self.begin()
        self.context = 42
        self.play = iter
        self.calls = self._calls
        self.answer = lambda body: "" if self.wanted(body) else "".join(self._pieces(body))
        refused = {"error": {"message": "no model is loaded"}}
        self.judge = lambda _: Response(self.status, refused) if self.status != 200 else None

    def begin(self) -> None:
        """Begin a new script: a search for the question, an answer that cites it, no waiting."""
        self.requests.clear()
        self.search: Callable[[str], Body | None] = lambda asked: {"query": asked}
        self.words: Callable[[Body], Iterable[str]] = lambda _: ["It is ", "so [1]."]
        self.status = 200
        self.release.set()
        self.is_left.clear()

    def configure(self, home: Path, more: str = "") -> None:
        """Name this server and a model of it in the settings of a user."""
        url = f'[llm]\nopenai_url = "{self.url}/v1"\n'
        ask = f'[ask]\nmodel = "openai:scripted"\n{more}'
        (home / "config.toml").write_text(url + ask, "utf-8")

    def events(self, path: str, body: Body) -> Iterator[bytes]:
        """Return an answer as events, each as soon as it is written."""
        del path
        calls = self.wanted(body)
        pieces = () if calls else self._pieces(body)
        end = "tool_calls" if calls else "stop"
        return streams.openai_events(body["model"], pieces, calls, end, None)

    def _calls(self, body: Body) -> list[streams.Call]:
        last = body["messages"][-1]
        wanted = self.search(last["content"]) if last["role"] == "user" else None
        name = body["tools"][0]["function"]["name"]
        return [] if wanted is None else [(name, json.dumps(wanted))]

    def _pieces(self, body: Body) -> Iterator[str]:
        before = ""
        for word in self.words(body):
            if before:
                yield before
            before = word
        assert self.release.wait(PATIENCE_SECONDS), "nobody released the last piece"
        yield before
