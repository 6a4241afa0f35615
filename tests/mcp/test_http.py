"""`lessons mcp --http`: on loopback, behind the guard and the token."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

from tests.support.files import MakeVault
from tests.support.mcp_servers import call, over_http
from tests.support.proposing import ENTRY
from tests.support.three_lessons import FILES

pytestmark = [pytest.mark.anyio, pytest.mark.slow]
HEADERS = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
LIST = b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}'


@pytest.fixture
def folder(make_vault: MakeVault, text_only: None) -> Path:
    return make_vault(FILES).root


@pytest.fixture
def address(folder: Path) -> Iterator[str]:
    with over_http(folder) as address:
        yield address


@asynccontextmanager
async def connected(address: str, token: str = "", mode: str = "auto") -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with (
        create_mcp_http_client(headers=headers) as http,
        Client(streamable_http_client(address, http_client=http), mode=mode) as client,
    ):
        yield client


def status(
    address: str, body: bytes | None = LIST, method: str = "POST", token: str = ""
) -> tuple[int, str]:
    """Send a request; return the status and what comes back."""
    headers = HEADERS | ({"Authorization": f"Bearer {token}"} if token else {})
    request = urllib.request.Request(address, body, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def secret(own_world: Path) -> str:
    """The token of this machine."""
    return (own_world / "token").read_text().strip()


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_owner_of_the_token_has_every_tool(
    address: str, own_world: Path, mode: str
) -> None:
    token = (own_world / "token").read_text().strip()
    assert (own_world / "token").stat().st_mode & 0o777 == 0o600
    async with connected(address, token, mode) as client:
        assert "Docker" in await call(client, "learn_get", id="devops/docker/layers")
        assert "proposals waiting: 0" in await call(client, "learn_status")
        assert "waits: Feed" in await call(client, "propose", entries=[ENTRY])


def test_without_the_token_nothing_is_answered(address: str, own_world: Path) -> None:
    for token in ("", "nonsense"):
        code, text = status(address, token=token)
        assert (code, json.loads(text)["error"]) == (401, "this needs the token")
    assert status(address, token=secret(own_world))[0] == 200


def test_no_stream_is_kept_open(address: str, own_world: Path) -> None:
    for method in ("GET", "DELETE", "PUT"):
        assert status(address, None, method, token=secret(own_world))[0] == 405
