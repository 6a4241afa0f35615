"""A small real server that speaks Ollama's API for embeddings, and can misbehave on demand."""

from __future__ import annotations

import hashlib
import json
import socket
import time
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.support.local_server import LocalServer

DIMENSION = 8


def vector(text: str, dimension: int = DIMENSION) -> list[float]:
    """Return a text's vector: a bag of its words, each hashed to a place; not of unit length."""
    values = [0.1] * dimension
    for word in text.lower().split():
        values[hashlib.sha256(word.encode()).digest()[0] % dimension] += 2.0
    return values


class OllamaServer(LocalServer):
    """Serves on loopback while the `with` block runs; `inputs` are the texts of each request.

    `fault` is "" or one of: missing, broken, page, list, cut, dimension, few, garbage, nan. It
    begins after `fault_from` requests. Every answer is `delay` seconds late.
    """

    def __init__(self, dimension: int = DIMENSION) -> None:
        self.inputs: list[list[str]] = []
        self.fault = ""
        self.fault_from = 0
        self.delay = 0.0
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if self.path == "/api/tags":
                    self._send(200, {"models": [{"model": "nomic-embed-text:latest"}]})
                elif self.path == "/api/version":
                    self._send(200, {"version": "0.33.0"})
                else:
                    self._send(404, {"error": "not found"})

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                texts = body["input"] if isinstance(body["input"], list) else [body["input"]]
                server.inputs.append(texts)
                time.sleep(server.delay)
                fault = server.fault if len(server.inputs) > server.fault_from else ""
                if fault == "missing":
                    said = f'model "{body["model"]}" not found, try pulling it first'
                    self._send(404, {"error": said})
                elif fault == "broken":
                    self._send(500, {"error": "llama runner process has terminated"})
                elif fault == "cut":
                    self.connection.shutdown(socket.SHUT_RDWR)
                elif fault == "page":  # of a proxy in between
                    self._send(502, b"<html>\n<h1>Bad gateway</h1>\n</html>")
                elif fault == "list":
                    self._send(500, ["not an object"])
                elif fault == "garbage":
                    self._send(200, b"no vectors today")
                else:
                    size = dimension + 1 if fault == "dimension" else dimension
                    vectors = [vector(text, size) for text in texts]
                    vectors = vectors[1:] if fault == "few" else vectors
                    vectors = [[float("nan")] * size] * len(texts) if fault == "nan" else vectors
                    self._send(200, {"model": body["model"], "embeddings": vectors})

            def _send(self, status: int, answer: Any) -> None:
                data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
                try:
                    self.send_response(status)
                    self.send_header("Content-Type", "application/json")
                    self.send_header("Content-Length", str(len(data)))
                    self.end_headers()
                    self.wfile.write(data)
                except (BrokenPipeError, ConnectionResetError):
                    return  # the client gave up waiting

            def log_message(self, format: str, *args: Any) -> None:
                """Print nothing."""

        super().__init__(Handler)
