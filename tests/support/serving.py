"""Answers of `lessons serve`, in this process or another."""

from __future__ import annotations

import os
import re
import select
import signal
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi.testclient import TestClient

from tests.support.commands import BIN
from vault_index.entrypoints.token import load_token
from vault_index.entrypoints.web import server
from vault_index.entrypoints.web.vault_client import VaultClient
from vault_index.vault import open_vault

START_SECONDS = 60  # of a busy machine


@dataclass(frozen=True)
class Answering:
    """The application behind its guard, in this process: for what is answered, not how it is served."""

    root: Path
    url: str
    token: str
    notes: list[str]  # lines about bugs
    client: TestClient
    env: Mapping[str, str]

    def ask(self, method: str, path: str, *, token: bool = True, **options: Any) -> Any:
        """Send a request, with the token unless it is left out."""
        headers = {"authorization": f"Bearer {self.token}"} if token else {}
        headers |= options.pop("headers", {})
        with pytest.MonkeyPatch.context() as patch:
            for name in [name for name in os.environ if name.startswith("GIT_")]:
                patch.delenv(name)  # who serves has git's own settings
            for name, value in self.env.items():
                patch.setenv(name, value)
            return self.client.request(method, path, headers=headers, **options)


@contextmanager
def answering(root: Path, home: Path, **env: str) -> Iterator[Answering]:
    """Answer for the vault at a folder in this process, for a user with this home."""
    env = _environ(home) | env
    token, notes = load_token(home), list[str]()
    vault = VaultClient(open_vault(root, environ=env))
    guarded = server.guarded(vault, "127.0.0.1", 7731, token, notes.append)
    url = "http://127.0.0.1:7731"
    with TestClient(guarded, base_url=url, raise_server_exceptions=False) as client:
        yield Answering(root, url, token, notes, client, env)


@dataclass(frozen=True)
class Serving:
    """A server that listens: where, with which token, and its process."""

    root: Path
    url: str
    token: str
    token_file: Path
    process: subprocess.Popen[str]

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def ask(self, method: str, path: str, *, token: bool = True, **options: Any) -> httpx.Response:
        """Send a request, with the token unless it is left out."""
        headers = {"authorization": f"Bearer {self.token}"} if token else {}
        headers |= options.pop("headers", {})
        # the world of a test has no proxy: none is looked up for this machine
        with httpx.Client(trust_env=False, timeout=60) as client:
            return client.request(method, self.url + path, headers=headers, **options)

    def send(self, *parts: bytes) -> bytes:
        """Send bytes as they are, and return what comes back until the server closes."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=60) as line:
            answer = b""
            with suppress(OSError):  # it has heard enough
                for part in parts:
                    line.sendall(part)
            with suppress(ConnectionResetError):
                while part := line.recv(65536):
                    answer += part
            return answer

    def stop(self) -> int:
        """End it as a service manager does; return its exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=60)


@contextmanager
def serving(root: Path, home: Path, *words: str, **env: str) -> Iterator[Serving]:
    """Serve the vault at a folder on a free port, for a user with this home, in a process of its own."""
    process = subprocess.Popen(
        [BIN / "lessons", "--vault", root, "serve", "--port", "0", *words],
        cwd=root, env=_environ(home) | env,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        select.select([process.stdout], [], [], START_SECONDS)
        line = process.stdout.readline()
        address = re.search(r"http://\S+:\d+", line)
        assert address, line + process.stderr.read()
        file = home / "token"
        url = address.group().replace("0.0.0.0", "127.0.0.1")
        yield Serving(root, url, file.read_text().strip(), file, process)
    finally:
        if process.poll() is None:
            process.terminate()
        try:
            process.wait(timeout=60)
        finally:
            process.kill()
            process.stdout.close()
            process.stderr.close()


def _environ(home: Path) -> dict[str, str]:
    variables = {"HOME": str(home), "LESSONS_HOME": str(home), "LESSONS_WATCH_AUTOSTART": "false"}
    return {"PATH": f"{BIN}:/usr/bin:/bin", **variables}


def tree_of(*folders: Path) -> Mapping[str, bytes]:
    """Return the contents of folders, file by file: links by their targets, without the index."""
    tree = {}
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if ".vault_index" in path.parts:
                continue
            if path.is_symlink():
                tree[str(path)] = b"-> " + bytes(path.readlink())
            else:
                tree[str(path)] = path.read_bytes() if path.is_file() else b"a folder"
    return tree
