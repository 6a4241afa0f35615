"""Clients that send what no client of ours does: the server answers the next one, and tells nothing."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from io import TextIOWrapper
from pathlib import Path
from typing import IO, Any, BinaryIO

import httpx
import pytest

from tests.mcp.test_http import HEADERS, secret
from tests.mcp.test_stdio import Raw
from tests.support.files import MakeVault, write
from tests.support.mcp_servers import over_http
from tests.support.three_lessons import FILES

pytestmark = pytest.mark.slow
SECRET, MAX_ANSWER = "nobody's business", 10_000
NEXT = json.dumps({"jsonrpc": "2.0", "id": "next", "method": "ping"}).encode()


def call(name: Any = "learn_search", arguments: Any = None, id: Any = 1) -> bytes:
    params = {"name": name, "arguments": {"query": "heap"} if arguments is None else arguments}
    asked = {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}
    return json.dumps(asked).encode()


def read(uri: Any) -> bytes:
    asked = {"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": uri}}
    return json.dumps(asked).encode()


NESTED = b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": ' + b"[" * 50_000 + b"]" * 50_000
MESSAGES: Mapping[str, bytes] = {
    "half a message": b"{",
    "deep nesting": NESTED + b"}",
    "nesting that JSON allows": call(arguments={"query": json.loads("[" * 120 + "]" * 120)}),
    "half a character": call(arguments={"query": "\ud800"}),
    "half a character as a tool": call("\ud800"),
    "half a character as an id": call(id="\ud800"),
    "bytes of no text": b'{"jsonrpc": "2.0", "id": 1, "method": "\xff"}',
    "NUL in a lesson's id": call("learn_get", {"id": "a\0b"}),
    "an object as text": call(arguments={"query": {"a": 1}}),
    "a list of arguments": call(arguments=[1]),
    "text as parameters": b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": "x"}',
    "a number of 400 digits": call(arguments={"query": "heap", "limit": 10**400}),
    "no number": call(arguments={"query": "heap", "limit": float("nan")}),
    "5,000 empty entries": call("propose", {"entries": [{}] * 5_000}),
    "entries of no kind": call("propose", {"entries": {"a": [[[]]]}}),
    "a fraction as an id": call(id=1.5),
    "null as an id": call(id=None),
    "an object as an id": call(id={"a": 1}),
    "a batch": b"[" + call() + b"," + call() + b"]",
    "an empty batch": b"[]",
    "a number": b"1",
    "nothing": b"",
    "no method": b'{"jsonrpc": "2.0", "id": 1}',
    "another protocol": b'{"jsonrpc": "1.0", "id": 1, "method": "ping"}',
    "an answer to no question": b'{"jsonrpc": "2.0", "id": 1, "result": {}}',
    "a cancel of what was never asked":
        b'{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": [1]}}',
    "a lesson outside": call("learn_get", {"id": "../../secret"}),
    "a resource outside": read("lesson://..%2f..%2fsecret"),
    "a file as a resource": read("file:///etc/passwd"),
    "NUL in a resource": read("lesson://%00"),
    "a number as a resource": read(5),
}  # fmt: skip


@pytest.fixture
def folder(make_vault: MakeVault, tmp_path: Path, text_only: None) -> Path:
    write(tmp_path / "secret.md", f"# Secret\n\n{SECRET}\n")
    return make_vault(FILES).root


def test_over_http(folder: Path, own_world: Path) -> None:
    with over_http(folder) as address, httpx.Client(headers=HEADERS, timeout=60) as http:
        http.headers["Authorization"] = f"Bearer {secret(own_world)}"
        for name, message in MESSAGES.items():
            answer = http.post(address, content=message)
            assert answer.status_code in (200, 202, 400), name
            assert len(answer.content) < MAX_ANSWER, name
            assert SECRET not in answer.text, name
            assert http.post(address, content=NEXT).status_code == 200, name


def started(folder: Path) -> tuple[Raw, BinaryIO, IO[str]]:
    """Start a server; return it with the bytes that it reads and the text that it writes."""
    server = Raw(folder)
    assert isinstance(server.process.stdin, TextIOWrapper)
    assert server.process.stdout
    return server, server.process.stdin.buffer, server.process.stdout


def test_over_stdio(folder: Path) -> None:
    server, stdin, stdout = started(folder)
    for name, message in MESSAGES.items():
        stdin.write(message + b"\n" + NEXT + b"\n")
        stdin.flush()
        for line in stdout:
            assert len(line) < MAX_ANSWER, name
            assert SECRET not in line, name
            if '"next"' in line:
                break
        else:
            pytest.fail(f"it ended at {name}")
    assert server.end()[0] == 0


def test_a_thousand_that_are_cancelled_do_not_end_it(folder: Path) -> None:
    server, stdin, stdout = started(folder)

    def ask() -> None:
        for id in range(1_000):
            about = {"jsonrpc": "2.0", "method": "notifications/cancelled"}
            cancel = json.dumps({**about, "params": {"requestId": id}}).encode()
            stdin.write(call(id=id) + b"\n" + cancel + b"\n")
        stdin.write(NEXT + b"\n")
        stdin.flush()

    asking = threading.Thread(target=ask)
    asking.start()
    assert any('"next"' in line for line in stdout)
    asking.join()
    assert server.end()[0] == 0
