"""`lessons serve` as a process: how it starts and ends, and that what it acknowledged is on the disk."""

from __future__ import annotations

import os
import pty
import re
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.support.commands import BIN, run
from tests.support.files import MakeVault, lesson_text, write
from tests.support.serving import Serving, serving
from tests.support.watchers import soon
from vault_index.vault import Vault
from vault_index.watch import launch

pytestmark = pytest.mark.slow

ROUNDS = 3  # of kill -9, with four clients that write
HEAP = {"devops/heap.md": lesson_text("Heap", "Raise the heap when the build runs out of memory.")}


@pytest.fixture
def vault(make_vault: MakeVault, text_only: None) -> Vault:
    """A vault of one lesson, for full text alone."""
    return make_vault(HEAP)


@pytest.fixture
def served(vault: Vault, own_world: Path) -> Iterator[Serving]:
    """A server without a watcher."""
    with serving(vault.root, own_world, LESSONS_EMBEDDER="none") as server:
        yield server


def found(server: Serving, prompt: str) -> list[str]:
    """Return the ids that a query finds."""
    answer = server.ask("POST", "/api/query", json={"prompt": prompt}, token=False)
    assert answer.status_code == 200, answer.text
    return [lesson["id"] for lesson in answer.json()["lessons"]]


def test_a_second_server_says_that_the_port_is_taken(served: Serving, vault: Vault) -> None:
    second = run("lessons", "serve", "--port", str(served.port), cwd=vault.root, check=False)
    assert second.code == 1
    assert second.out == ""
    assert second.err.startswith(f"Error: cannot listen on 127.0.0.1:{served.port}: address")
    assert second.err.count("\n") == 2
    assert found(served, "heap memory") == ["devops/heap"]


def test_it_prints_its_address_at_a_terminal_and_nothing_in_a_pipe(vault: Vault) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    ours, theirs = pty.openpty()
    command = [str(BIN / "lessons"), "serve", "--port", str(port)]
    for at_terminal in (True, False):
        out = theirs if at_terminal else subprocess.PIPE
        process = subprocess.Popen(command, cwd=vault.root, stdout=out, stderr=out)
        try:
            soon(lambda: _listens(port), 60)
        finally:
            process.send_signal(signal.SIGINT)
            piped = process.communicate(timeout=60)
        assert process.returncode == 0
        if at_terminal:
            line = os.read(ours, 1000).decode()
            assert re.search(rf"serving .*http://127\.0\.0\.1:{port}", line.replace("\r\n", " "))
            assert f"http://127.0.0.1:{port}/#once=" in line  # nobody else sees this terminal
        else:
            assert piped == (b"", b"")
    os.close(ours)
    os.close(theirs)


def test_what_it_takes_is_found_at_once_and_a_save_soon(vault: Vault, own_world: Path) -> None:
    with serving(
        vault.root, own_world, LESSONS_EMBEDDER="none", LESSONS_WATCH_AUTOSTART="true"
    ) as server:
        try:
            assert found(server, "heap memory") == ["devops/heap"]
            text = {"id": "lock", "text": "Migrations wait for a lock."}
            assert server.ask("POST", "/api/ingest", json=text).status_code == 200
            assert found(server, "migrations lock") == ["lock"]
            write(vault.lessons_dir / "pipe.md", lesson_text("Pipe", "A closed pipe raises."))
            soon(lambda: found(server, "closed pipe") == ["pipe"])
            state = launch.status(vault.root)
            assert state is not None
            os.kill(state["pid"], signal.SIGKILL)
            assert found(server, "migrations lock") == ["lock"]  # the next watcher answers
            (vault.lessons_dir / "vault.toml").write_text("token_budget = \n")
            soon(lambda: server.ask("GET", "/api/health").status_code == 503)
            reason = server.ask("GET", "/api/health").json()["reason"]
            assert "not TOML" in reason
            assert str(vault.root.parent) not in reason
        finally:
            (vault.lessons_dir / "vault.toml").write_text("")
            launch.stop()


def test_a_kill_loses_nothing_that_was_acknowledged(vault: Vault, own_world: Path) -> None:
    for number in range(ROUNDS):
        acknowledged: list[str] = []
        enough = threading.Event()
        with (
            serving(vault.root, own_world, LESSONS_EMBEDDER="none") as server,
            ThreadPoolExecutor(4) as clients,
        ):
            for client in range(4):
                clients.submit(_write_on, server, f"{number}-{client}", acknowledged, enough)
            assert enough.wait(60)
            server.process.kill()
        for name in acknowledged:
            text = (vault.lessons_dir / f"{name}.md").read_text()
            assert text.endswith(f"---\nText {name.removeprefix('kept/text-')}.\n")
        for file in (vault.lessons_dir / "kept").glob("*.md"):  # and no half of another
            assert file.read_text().endswith(f"---\nText {file.stem.removeprefix('text-')}.\n")


def _write_on(server: Serving, name: str, acknowledged: list[str], enough: threading.Event) -> None:
    """Send lessons one after the other until the server is gone."""
    headers = {"authorization": f"Bearer {server.token}"}
    with httpx.Client(trust_env=False, timeout=60, headers=headers) as client:
        for number in range(1000):
            body = {"text": f"Text {name}-{number}.", "categories": ["kept"]}
            try:
                answer = client.post(f"{server.url}/api/ingest", json=body)
            except httpx.TransportError:
                return
            if answer.status_code == 200:
                acknowledged.append(answer.json()["id"])
                if len(acknowledged) > 30:
                    enough.set()


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True
