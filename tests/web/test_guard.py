"""The guard before HTTP doors: what it lets through, and what it refuses with which status."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from vault_index.entrypoints import token
from vault_index.entrypoints.guard import Guard, Message, Receive, Rules, Scope, Send, rules_for
from vault_index.errors import VaultError

TOKEN = "a-token-of-these-tests"
HERE = replace(rules_for("127.0.0.1", 7731, TOKEN), max_body=1000)
OWN = {"Host": "127.0.0.1:7731"}
JSON = {"Content-Type": "application/json"}
BEARER = {"Authorization": f"Bearer {TOKEN}"}


class Door:
    """An application that keeps the bodies that reach it."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []

    async def __call__(self, _scope: Scope, receive: Receive, send: Send) -> None:
        message = await receive()
        assert not message["more_body"]
        self.bodies.append(message["body"])
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"{}"})


def asked(
    headers: dict[str, str],
    *,
    method: str = "GET",
    parts: Iterable[bytes] = (b"",),
    rules: Rules = HERE,
    door: Door | None = None,
) -> tuple[int, dict[str, Any]]:
    """Return the status and the JSON that a request gets."""
    sent: list[Message] = []
    coming = list(parts)

    async def receive() -> Message:
        return {"type": "http.request", "body": coming.pop(0), "more_body": bool(coming)}

    async def send(message: Message) -> None:
        sent.append(message)

    raw = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "method": method, "path": "/", "headers": raw}
    asyncio.run(Guard(door or Door(), rules)(scope, receive, send))
    assert not [name for name, _ in sent[0]["headers"] if name.startswith(b"access-control")]
    return sent[0]["status"], json.loads(sent[1]["body"])


@pytest.mark.parametrize(
    "host", ["127.0.0.1:7731", "localhost:7731", "LOCALHOST:7731", "[::1]:7731"]
)
def test_a_read_under_a_name_of_this_machine_passes(host: str) -> None:
    assert asked({"Host": host})[0] == 200


@pytest.mark.parametrize(
    "host", ["evil.example:7731", "127.0.0.1", "127.0.0.1:80", "127.0.0.1.evil.example:7731", ""]
)
def test_a_foreign_host_is_refused(host: str) -> None:
    status, answer = asked({"Host": host})
    assert status == 421
    assert answer["error"]
    assert answer["hint"]


@pytest.mark.parametrize(
    "origin",
    ["http://evil.example", "null", "http://127.0.0.1:80", "file://", "http://localhost:7731"],
)
def test_a_page_of_another_origin_is_refused(origin: str) -> None:
    assert asked({**OWN, "Origin": origin})[0] == 403


def test_a_page_of_our_own_passes() -> None:
    assert asked({**OWN, "Origin": "http://127.0.0.1:7731"})[0] == 200


@pytest.mark.parametrize(
    "given", [{}, {"Authorization": "Bearer wrong"}, {"Authorization": f"Basic {TOKEN}"},
              {"Authorization": "Bearer"}, {"Authorization": f"Bearer {TOKEN}x"}]
)  # fmt: skip
def test_a_write_needs_the_token(given: dict[str, str]) -> None:
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        assert asked({**OWN, **JSON, **given}, method=method)[0] == 401
    assert asked({**OWN, **JSON, **BEARER}, method="POST")[0] == 200


def test_no_token_is_matched_by_none() -> None:
    rules = rules_for("127.0.0.1", 7731, "")
    assert asked({**OWN, "Authorization": "Bearer "}, method="DELETE", rules=rules)[0] == 401


def test_the_application_says_which_requests_need_the_token() -> None:
    rules = replace(HERE, needs_token=lambda scope: scope["path"] == "/")
    assert asked(OWN, rules=rules)[0] == 401
    assert asked({**OWN, **BEARER}, rules=rules)[0] == 200


@pytest.mark.parametrize(
    "kind",
    ["text/plain", "application/x-www-form-urlencoded", "", "application/json; charset=latin1"],
)
def test_a_body_has_to_be_json(kind: str) -> None:
    headers = {**OWN, **BEARER, "Content-Type": kind, "Content-Length": "2"}
    assert asked(headers, method="POST", parts=[b"{}"])[0] == 415


def test_a_body_says_its_length_and_is_not_too_large() -> None:
    door, headers = Door(), {**OWN, **JSON, **BEARER}
    for more, status in (
        ({"Content-Length": "1001"}, 413),
        ({"Transfer-Encoding": "chunked"}, 411),
        ({"Content-Length": "1000"}, 200),
    ):
        parts = [b"x" * 1000]
        assert asked({**headers, **more}, method="POST", parts=parts, door=door)[0] == status
    assert door.bodies == [b"x" * 1000]


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "lessons.example"])
def test_other_machines_need_the_token_for_each_request(host: str) -> None:
    with pytest.raises(VaultError, match="needs a token"):
        rules_for(host, 7731, "")
    rules = rules_for(host, 7731, TOKEN)
    named = {"Host": f"{host}:7731"}
    assert asked(named, rules=rules)[0] == 401
    assert asked({**named, **BEARER}, rules=rules)[0] == 200


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_what_other_sites_embed_is_refused_and_a_link_is_followed(site: str) -> None:
    """An image or a frame comes without Origin; browsers say which page asks for it."""
    told = {**OWN, "Sec-Fetch-Site": site}
    for kind in ("image", "script", "iframe", "object", "empty"):
        assert asked({**told, "Sec-Fetch-Dest": kind})[0] == 403
    assert asked(told)[0] == 403
    assert asked({**told, "Sec-Fetch-Dest": "document"})[0] == 200
    written = {**told, **BEARER, "Sec-Fetch-Dest": "document"}
    assert asked(written, method="POST")[0] == 403
    for own in ("same-origin", "none"):
        assert asked({**OWN, "Sec-Fetch-Site": own, "Sec-Fetch-Dest": "image"})[0] == 200


def test_an_address_has_its_own_name_only() -> None:
    rules = rules_for("192.168.1.5", 7731, TOKEN)
    assert asked({**BEARER, "Host": "evil.example:7731"}, rules=rules)[0] == 421


def test_the_default_port_of_http_may_be_left_out() -> None:
    assert asked({"Host": "localhost"}, rules=rules_for("127.0.0.1", 80, TOKEN))[0] == 200


# the token


def test_a_token_is_made_once(tmp_path: Path) -> None:
    home = tmp_path / "new"
    with ThreadPoolExecutor(8) as threads:
        (made,) = set(threads.map(token.load_token, [home] * 16))
    assert len(made) >= 32
    assert (home / "token").read_text() == f"{made}\n"
    assert (home / "token").stat().st_mode & 0o777 == 0o600


def test_a_token_that_others_could_read_is_taken_from_them(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("chosen-by-its-user")
    (tmp_path / "token").chmod(0o644)
    assert token.load_token(tmp_path) == "chosen-by-its-user"
    assert (tmp_path / "token").stat().st_mode & 0o777 == 0o600


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("0123456789abcdef")
    (tmp_path / "token").symlink_to("elsewhere")
    with pytest.raises(VaultError, match="cannot write"):
        token.load_token(tmp_path)
    (tmp_path / "token").unlink()
    os.link(tmp_path / "elsewhere", tmp_path / "token")
    with pytest.raises(VaultError, match="cannot write"):
        token.load_token(tmp_path)
    assert (tmp_path / "elsewhere").read_text() == "0123456789abcdef"


@pytest.mark.parametrize("written", ["short", "two words that are long", "x" * 300, "é" * 20])
def test_a_file_that_holds_something_else_is_left_alone(tmp_path: Path, written: str) -> None:
    (tmp_path / "token").write_text(written)
    with pytest.raises(VaultError, match="holds no token"):
        token.load_token(tmp_path)
    with pytest.raises(VaultError, match="holds no token"):
        token.read_token(tmp_path / "token")
    assert (tmp_path / "token").read_text() == written


def test_a_named_file_may_be_anywhere(tmp_path: Path) -> None:
    (tmp_path / "of-the-team").write_text("a-token-for-the-team\n")
    assert token.read_token(tmp_path / "of-the-team") == "a-token-for-the-team"
    with pytest.raises(VaultError, match="cannot be read"):
        token.read_token(tmp_path / "missing")
