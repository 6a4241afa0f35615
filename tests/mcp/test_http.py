"""`lessons mcp --http`: on loopback, behind the guard; more than the vault's lessons needs the token."""

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

from tests.support.commands import run
from tests.support.files import MakeVault, write
from tests.support.mcp_servers import call, over_http, refusal
from tests.support.three_lessons import FILES

pytestmark = [pytest.mark.anyio, pytest.mark.slow]
TOKEN = "a-token-that-nobody-guesses"
PROPOSAL = {"title": "Quokkas", "text": "Feed the quokkas at noon."}
HEADERS = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
LIST = b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}'


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def folder(make_vault: MakeVault, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LESSONS_EMBEDDER", "none")
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


def status(address: str, body: bytes = LIST, **headers: str) -> tuple[int, str]:
    """Send a request with other headers; return the status and what comes back."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    request = urllib.request.Request(address, body, {**HEADERS, **named})
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_reading_lessons_needs_no_token_and_all_else_does(
    address: str, own_world: Path, mode: str
) -> None:
    async with connected(address, mode=mode) as client:
        assert "on_prompt" not in [tool.name for tool in (await client.list_tools()).tools]
        assert "Docker" in await call(client, "learn_get", id="devops/docker/layers")
        for tool, arguments in (
            ("remember", PROPOSAL),
            ("learn_trigger", {}),
            ("search_user_prompts", {"query": "heap"}),
            ("learn_search", {"query": "heap", "project": "shop"}),
        ):
            said = await refusal(client, tool, **arguments)
            assert f"over HTTP, {tool} needs the token" in said
        assert "no tool 'on_prompt'" in await refusal(client, "on_prompt", prompt="a long prompt")
    async with connected(address, "wrong", mode) as client:
        assert "needs the token" in await refusal(client, "remember", **PROPOSAL)
    token = (own_world / "token").read_text().strip()
    assert (own_world / "token").stat().st_mode & 0o777 == 0o600
    async with connected(address, token, mode) as client:
        assert "proposals waiting: 0" in await call(client, "learn_status")
        assert "Proposed as" in await call(client, "remember", **PROPOSAL)


async def test_a_project_has_a_name_here_and_no_folder(
    address: str, folder: Path, own_world: Path
) -> None:
    async with connected(address, (own_world / "token").read_text().strip()) as client:
        said = await refusal(client, "learn_search", query="x", project=str(folder))
        assert said == "over HTTP a project has a name, not a folder. Next: name the project."


def test_what_a_page_of_another_site_sends_is_refused(address: str) -> None:
    assert status(address, Host="evil.example:80")[0] == 421
    assert status(address, Origin="http://evil.example")[0] == 403
    assert status(address, Content_Type="text/plain")[0] == 415
    assert status(address, b" " * 2_000_000)[0] == 413
    assert status(address, b"{broken")[0] == 400
    assert status(address)[0] in (200, 400)  # ours, with or without a session


def test_other_machines_need_the_token_for_everything(folder: Path, tmp_path: Path) -> None:
    refused = run("lessons", "mcp", "--http", "--host", "0.0.0.0", cwd=folder, check=False)
    assert refused.code == 1
    assert "needs a token" in refused.err
    file = write(tmp_path / "secret", TOKEN)
    with over_http(folder, "--host", "0.0.0.0", "--token-file", str(file)) as address:
        place = address.replace("0.0.0.0", "127.0.0.1")
        code, text = status(place)
        assert (code, json.loads(text)["error"]) == (401, "this needs the token")
        assert status(place, Authorization="Bearer nonsense")[0] == 401
        assert status(place, Authorization=f"Bearer {TOKEN}")[0] != 401


def test_a_port_that_is_taken_is_a_line(folder: Path, address: str) -> None:
    port = address.split(":")[2].split("/")[0]
    taken = run("lessons", "mcp", "--http", "--port", port, cwd=folder, check=False)
    assert taken.code == 1
    assert "Try: choose another --port" in taken.err
