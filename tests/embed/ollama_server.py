"""A small real server that speaks Ollama's API of embeddings, and can misbehave on demand."""

from __future__ import annotations

import gzip
import hashlib
import json
import socket
import time
from typing import Any

from tests.support import streams
from tests.support.local_server import Handler, LocalServer

DIMENSION = 8
LONG = 500  # characters


def vector(text: str, dimension: int = DIMENSION) -> list[float]:
    """Return a text's vector: a bag of its words, each hashed to a place; not of unit length."""
    values = [0.1] * dimension
    for word in text.lower().split():
        values[hashlib.sha256(word.encode()).digest()[0] % dimension] += 2.0
    return values


def _texts(body: dict[str, Any]) -> list[str]:
    given = body["input"]
    return given if isinstance(given, list) else [given]


# what is answered in the place of vectors, with its status
FAULTS: dict[str, tuple[int, Any]] = {
    "missing": (404, {"error": "the model is not found, try pulling it first"}),
    "broken": (500, {"error": "llama runner process has terminated"}),
    "page": (502, b"<html>\n<h1>Bad gateway</h1>\n</html>"),  # of a proxy in between
    "list": (500, ["not an object"]),
    "garbage": (200, b"no vectors today"),
}


class OllamaServer(LocalServer):
    """Serves on loopback while the `with` block runs; `inputs` are the texts of each request.

    `keys` are the Authorization of each. `fault` is "", one of `FAULTS`, or one of: cut, dimension, few,
    nan, and elsewhere: it redirects there; long: a text of more than 500 characters is refused; endless:
    an answer without an end; packed: one that unpacks to 10 MB. Every answer is `delay` seconds late.
    """

    def __init__(self) -> None:
        self.inputs: list[list[str]] = []
        self.keys: list[str | None] = []
        self.fault = ""
        self.elsewhere = ""  # an address
        self.delay = 0.0
        server = self

        class Answering(Handler):
            def do_GET(self) -> None:
                if self.path == "/api/tags":
                    self._send(200, {"models": [{"model": "nomic-embed-text:latest"}]})
                elif self.path == "/api/version":
                    self._send(200, {"version": "0.33.0"})
                else:
                    self._send(404, {"error": "not found"})

            def do_POST(self) -> None:
                body = self.body()
                server.keys.append(self.headers["Authorization"])
                server.inputs.append(_texts(body))
                time.sleep(server.delay)
                if server.fault in FAULTS:
                    self._send(*FAULTS[server.fault])
                elif server.fault == "cut":
                    self.connection.shutdown(socket.SHUT_RDWR)
                elif server.fault == "elsewhere":
                    self._send(307, b"", Location=server.elsewhere + self.path)
                elif server.fault == "endless":
                    endless = streams.forever(b"x" * 1_000_000)
                    streams.send(self, "application/json", endless([]))
                else:
                    self._embed(body, server.fault)

            def _embed(self, body: dict[str, Any], fault: str) -> None:
                texts = _texts(body)
                if fault == "long" and any(len(text) > LONG for text in texts):
                    self._send(400, {"error": "the input length exceeds the context length"})
                    return
                size = DIMENSION + 1 if fault == "dimension" else DIMENSION
                vectors = [vector(text, size) for text in texts]
                vectors = vectors[1:] if fault == "few" else vectors
                vectors = [[float("nan")] * size] * len(texts) if fault == "nan" else vectors
                self._send(200, {"model": body["model"], "embeddings": vectors})

            def _send(self, status: int, answer: Any, **headers: str) -> None:
                if server.fault == "packed":
                    answer = gzip.compress(json.dumps(answer).encode() + b" " * 10_000_000)
                    headers = {"Content-Encoding": "gzip"}
                self.send(answer, status, headers={**headers, "Connection": "close"})

        super().__init__(Answering)
