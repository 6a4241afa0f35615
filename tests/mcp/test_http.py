"""`lessons mcp --http`: on loopback, behind the guard; more than the vault's lessons needs the token."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import mcp_types
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp_types.methods import SPEC_CLIENT_METHODS

from tests.support.commands import run
from tests.support.conversations import about_redirects
from tests.support.files import MakeVault, write
from tests.support.mcp_servers import call, over_http, refusal
from tests.support.three_lessons import FILES

pytestmark = [pytest.mark.anyio, pytest.mark.slow]
TOKEN = "a-token-that-nobody-guesses"
PROPOSAL = {"title": "Quokkas", "text": "Feed the quokkas at noon."}
HEADERS = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
LIST = b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}'


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


def status(
    address: str, body: bytes | None = LIST, method: str = "POST", **headers: str
) -> tuple[int, str]:
    """Send a request with other headers; return the status and what comes back."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    request = urllib.request.Request(address, body, {**HEADERS, **named}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_reading_lessons_needs_no_token_and_all_else_does(
    address: str, own_world: Path, mode: str
) -> None:
    async with connected(address, mode=mode) as client:
        assert "Docker" in await call(client, "learn_get", id="devops/docker/layers")
        for tool, arguments in (
            ("remember", PROPOSAL),
            ("learn_trigger", {}),
            ("search_user_prompts", {"query": "heap"}),
            ("learn_search", {"query": "heap", "project": "shop"}),
        ):
            said = await refusal(client, tool, **arguments)
            assert f"over HTTP, {tool} needs the token" in said
    async with connected(address, "wrong", mode) as client:
        assert "needs the token" in await refusal(client, "remember", **PROPOSAL)
    token = (own_world / "token").read_text().strip()
    assert (own_world / "token").stat().st_mode & 0o777 == 0o600
    async with connected(address, token, mode) as client:
        assert "proposals waiting: 0" in await call(client, "learn_status")
        assert "Proposed as" in await call(client, "remember", **PROPOSAL)


class Walk:
    """Raw requests of one revision of the protocol, and all that came back."""

    def __init__(self, address: str, revision: str, token: str = "") -> None:
        self.heard = ""
        self._address = address
        self._revision = revision
        self._token = {"Authorization": f"Bearer {token}"} if token else {}

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Return the answer to a method: `result` or `error`."""
        headers = {**self._token, "MCP-Protocol-Version": self._revision, "Mcp-Method": method}
        if name := params.get("name") or params.get("uri"):
            headers["Mcp-Name"] = name
        if self._revision > "2026":
            meta = {mcp_types.PROTOCOL_VERSION_META_KEY: self._revision}
            params["_meta"] = {**meta, mcp_types.CLIENT_CAPABILITIES_META_KEY: {}}
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        text = status(self._address, json.dumps(body).encode(), **headers)[1]
        self.heard += text
        lines = [line for line in text.splitlines() if line.startswith(("data: ", "{"))]
        answer: dict[str, Any] = json.loads(lines[-1].removeprefix("data: "))
        return answer

    def is_answered(self, method: str, **params: Any) -> bool:
        """Whether a method has a result that is no error."""
        result = self.ask(method, **params).get("result")
        return result is not None and not result.get("isError")


METHODS: dict[str, dict[str, Any]] = {  # of the protocol, with parameters that each takes
    "initialize": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "x", "version": "1"},
    },
    "completion/complete": {
        "ref": {"type": "ref/prompt", "name": "remember"},
        "argument": {"name": "what", "value": "q"},
    },
    "logging/setLevel": {"level": "debug"},
    "prompts/get": {"name": "review_proposals"},
    "resources/read": {"uri": "lesson://devops/docker/layers"},
    "resources/subscribe": {"uri": "lesson://devops/docker/layers"},
    "resources/unsubscribe": {"uri": "lesson://devops/docker/layers"},
    "subscriptions/listen": {"notifications": {"toolsListChanged": True}},
    "tools/call": {"name": "learn_get", "arguments": {"id": "devops/docker/layers"}},
}
LISTS = {"tools/list", "prompts/list", "resources/list", "resources/templates/list"}
PRIVATE = [  # of the proposal, the record of uses and the journal
    *("Quokkas", "Feed the quokkas", "proposals waiting", "most used: ", "never used: "),
    *("journal: ", "the private journal", "store/login.py"),
]
OPEN = {"tools/call", "resources/read"} | LISTS
TOOLS: dict[str, dict[str, Any]] = {
    "learn_search": {"query": "layers"},
    "learn_get": {"id": "devops/docker/layers"},
    "learn_status": {},
    "remember": PROPOSAL,
    "get_context_timeline": {"anchor": "yesterday 14:00"},
    "find_by_concept": {"concept": "gotcha"},
    "find_by_file": {"file": "login.py", "since": "all"},
    "find_by_type": {"type": "bugfix"},
}


@pytest.fixture
def private(folder: Path, own_world: Path) -> Path:
    """The vault, and a session in the journal, which is on."""
    about_redirects(folder)
    run("lessons", "journal", "import", "--since", "all", cwd=folder)
    write(own_world / "journal" / "recorded", f"{folder}\n")  # it is on
    return folder


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_only_what_is_listed_as_open_answers_without_the_token(
    private: Path, own_world: Path, revision: str
) -> None:
    with over_http(private) as address:
        owner = Walk(address, revision, (own_world / "token").read_text().strip())
        anyone = Walk(address, revision)
        for tool in ("remember", "learn_get", "learn_status", "find_by_file", "learn_search"):
            assert owner.is_answered("tools/call", name=tool, arguments=TOOLS[tool]), tool
        assert owner.is_answered("prompts/get", name="review_proposals")

        for_all: dict[str, dict[str, Any]]
        for_all = {name: {} for name in SPEC_CLIENT_METHODS | {"lessons/secrets"}} | METHODS
        answered = {name for name, params in for_all.items() if anyone.is_answered(name, **params)}
        first = {"server/discover"} if revision > "2026" else {"initialize", "ping"}
        assert answered == OPEN | first

        tools = [tool["name"] for tool in owner.ask("tools/list")["result"]["tools"]]
        for tool in [*tools, *TOOLS, "a tool that comes later"]:
            values = TOOLS.get(tool, {"query": "redirect"})
            assert anyone.is_answered("tools/call", name=tool, arguments=values) == (
                tool in ("learn_search", "learn_get", "learn_status")
            ), tool
            values = {**values, "project": "shop"}
            assert not anyone.is_answered("tools/call", name=tool, arguments=values), tool
        prompts = [prompt["name"] for prompt in owner.ask("prompts/list")["result"]["prompts"]]
        assert prompts == ["review_proposals", "remember"]
        assert not any(anyone.is_answered("prompts/get", name=name) for name in prompts)
        for uri in ("proposal://x", "file:///etc/passwd", "lesson:x"):
            assert not anyone.is_answered("resources/read", uri=uri)

        shown = [tool["name"] for tool in anyone.ask("tools/list")["result"]["tools"]]
        assert shown == ["learn_search", "learn_get", "learn_status"]
        assert anyone.ask("prompts/list")["result"]["prompts"] == []
    assert "lessons: 3" in anyone.heard
    for word in PRIVATE:
        assert word in owner.heard
        assert word not in anyone.heard


def test_nobody_takes_the_room_of_the_tokens_owner(address: str, own_world: Path) -> None:
    anyone = Walk(address, "2025-11-25")
    for _ in range(300):  # there was room for 256 sessions
        assert anyone.is_answered("initialize", **METHODS["initialize"])
    owner = Walk(address, "2025-11-25", (own_world / "token").read_text().strip())
    assert owner.is_answered("initialize", **METHODS["initialize"])
    assert owner.is_answered("tools/call", name="learn_status", arguments={})


def test_no_stream_is_kept_open_for_anybody(address: str) -> None:
    for method in ("GET", "DELETE", "PUT"):
        assert status(address, None, method)[0] == 405


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
    assert status(address)[0] == 200


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
