"""A small real server that speaks Ollama's API of embeddings, and can misbehave on demand."""

from __future__ import annotations

import gzip
import hashlib
import json
import socket
import threading
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


class OllamaServer(LocalServer):
    """Serves on loopback while the `with` block runs; `inputs` are the texts of each request.

    `keys` are the Authorization of each.
    `fault` is "" or one of: missing, broken, busy, page, list, cut, dimension, few, garbage, nan, and
    elsewhere: it redirects there; long: a text of more than 500 characters is refused; word: one of a
    freezer; endless: an answer without an end; packed: one that unpacks to 10 MB.
    It begins after `fault_from` requests. Every answer is `delay` seconds late.
    """

    def __init__(self, dimension: int = DIMENSION) -> None:
        self.inputs: list[list[str]] = []
        self.keys: list[str | None] = []
        self.fault = ""
        self.fault_from = 0
        self.elsewhere = ""  # an address
        self.delay = 0.0
        self.is_left = threading.Event()
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
                requests = len(server.inputs)
                time.sleep(server.delay)
                fault = server.fault if requests > server.fault_from else ""
                if fault == "missing":
                    said = f'model "{body["model"]}" not found, try pulling it first'
                    self._send(404, {"error": said})
                elif fault == "broken":
                    self._send(500, {"error": "llama runner process has terminated"})
                elif fault == "busy":
                    self._send(503, {"error": "server busy, please try again"})
                elif fault == "cut":
                    self.connection.shutdown(socket.SHUT_RDWR)
                elif fault == "page":  # of a proxy in between
                    self._send(502, b"<html>\n<h1>Bad gateway</h1>\n</html>")
                elif fault == "list":
                    self._send(500, ["not an object"])
                elif fault == "garbage":
                    self._send(200, b"no vectors today")
                elif fault == "elsewhere":
                    self._send(307, b"", Location=server.elsewhere + self.path)
                elif fault == "endless":
                    endless = streams.forever(b"x" * 1_000_000)
                    if not streams.send(self, "application/json", endless([])):
                        server.is_left.set()
                else:
                    self._embed(body, fault)

            def _embed(self, body: dict[str, Any], fault: str) -> None:
                texts = _texts(body)
                if fault == "long" and any(len(text) > LONG for text in texts):
                    self._send(400, {"error": "the input length exceeds the context length"})
                    return
                if fault == "word" and any("freezer" in text for text in texts):
                    said = "failed to encode response: json: unsupported value: NaN"
                    self._send(500, {"error": said})
                    return
                size = dimension + 1 if fault == "dimension" else dimension
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
