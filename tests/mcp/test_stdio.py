"""`lessons mcp` as an agent starts it: a thin process that asks the watcher, whatever happens to that."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client

from tests.support.files import MakeVault
from tests.support.indexed import kept_on
from tests.support.mcp_servers import AUTOSTART, WORDS, call, over_stdio
from tests.support.proposing import ENTRY
from tests.support.three_lessons import FILES
from tests.support.watchers import watchers_of
from vault_index.hotpath.start import RESTART_SECONDS
from vault_index.vault import Vault
from vault_index.watch import launch

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.no_arithmetic]
HEAP = "our build dies with heap out of memory"
NATIVE = ("lancedb", "pyarrow", "numpy", "ctranslate2", "tokenizers")


@pytest.fixture
def team(make_vault: MakeVault, with_model: Path, shelves: Path, tmp_path: Path) -> Iterator[Vault]:
    """A vault of three lessons with the real model, indexed; whatever watches it is ended."""
    make = partial(make_vault, FILES, name="first")
    vault = kept_on(shelves / "for-mcp-stdio", make, tmp_path / "team")
    yield vault
    if vault.index_dir.is_dir():
        launch.stop()


def server_of(folder: Path) -> int:
    """Return the process of the server that works in a folder."""
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                words = (process / "cmdline").read_bytes().split(b"\0")
                if b"mcp" in words and (process / "cwd").readlink() == folder:
                    return int(process.name)
            except OSError:
                continue
    raise AssertionError("no server")


def loaded(pid: int) -> set[str]:
    """Return which of the heavy libraries a process has loaded."""
    maps = Path(f"/proc/{pid}/maps").read_text()
    return {name for name in NATIVE if f"/{name}" in maps}


async def test_the_server_stays_thin_while_a_watcher_can_run(team: Vault) -> None:
    async with Client(over_stdio(team.root, **AUTOSTART), mode="legacy") as client:
        assert "Node runs out of memory" in await call(client, "learn_search", query=HEAP)
        assert launch.is_running()
        await call(client, "learn_get", id="devops/docker/layers")
        await call(client, "learn_status")
        server = server_of(team.root)
        assert not loaded(server)
        await call(client, "propose", entries=[ENTRY])
        assert loaded(server) <= {"numpy"}  # drafts are compared with what waits
        assert loaded(watchers_of(team.root)[0])


async def test_a_watcher_that_is_killed_while_it_answers(team: Vault) -> None:
    async with Client(over_stdio(team.root, **AUTOSTART)) as client:
        await call(client, "learn_search", query=HEAP)
        [watcher] = watchers_of(team.root)
        started = (launch.folder() / launch.LOCK).stat().st_mtime
        while time.time() < started + RESTART_SECONDS:  # one that dies sooner is not started again
            await anyio.sleep(0.1)
        os.kill(watcher, signal.SIGSTOP)
        answers: list[str] = []

        async def ask() -> None:
            answers.append(await call(client, "learn_search", query=HEAP))

        async with anyio.create_task_group() as group:
            group.start_soon(ask)
            await anyio.sleep(0.5)
            os.kill(watcher, signal.SIGKILL)
        assert "Node runs out of memory" in answers[0]
        assert not loaded(server_of(team.root))


async def test_the_agent_says_where_its_project_is(team: Vault, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    where = {"CLAUDE_PROJECT_DIR": str(team.root / "lessons")}
    async with Client(over_stdio(elsewhere, **where)) as client:
        assert "Docker" in await call(client, "learn_get", id="devops/docker/layers")


class Raw:
    """A server whose lines a test reads and writes itself."""

    def __init__(self, folder: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, *WORDS, "mcp"], cwd=folder, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        asked = {"protocolVersion": "2025-06-18", "capabilities": {},
                 "clientInfo": {"name": "test", "version": "1"}}  # fmt: skip
        self.hello = self.ask("initialize", asked)
        self.send({"method": "notifications/initialized"})

    def send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.process.stdin.flush()

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        assert self.process.stdout
        self.send({"id": 1, "method": method, "params": params})
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())["result"]
        return answer

    def end(self) -> tuple[int, str, str]:
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, out, err


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_server_without_a_word(team: Vault, how: signal.Signals) -> None:
    server = Raw(team.root)
    server.process.send_signal(how)
    assert server.process.wait(60) == -how
    assert server.end() == (-how, "", "")


def test_lines_that_are_no_messages_do_not_end_it(team: Vault) -> None:
    server = Raw(team.root)
    assert server.process.stdin
    server.process.stdin.write("not JSON\n[1,2]\n\0\n" + "x" * 100_000 + "\n")
    server.process.stdin.flush()
    server.send({"id": 7, "method": "tools/list", "params": {}})
    assert server.process.stdout
    for line in server.process.stdout:
        if json.loads(line).get("id") == 7:
            break
    code, _, err = server.end()
    assert code == 0
    assert "Traceback" not in err
