"""The key of the pages: from the command line into one browser, and into no other."""

from __future__ import annotations

import socket
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.commands import run
from tests.support.files import MakeVault, lesson_text, write
from tests.support.local_server import Handler, LocalServer
from tests.support.serving import Serving, serving
from tests.support.watchers import soon
from vault_index.entrypoints.web import app
from vault_index.entrypoints.web.app import PageKeys
from vault_index.entrypoints.web.refusal import Refusal

FILES = {"devops/heap.md": lesson_text("Heap", "Raise the heap when the build runs out of memory.")}
PRIVATE = "/page/private/search?q=heap"


@pytest.fixture
def browser_of_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A browser that writes the addresses it is to open into the file that is returned."""
    opened = tmp_path / "opened"
    script = write(tmp_path / "browse", f'#!/bin/sh\necho "$1" >> {opened}\n')
    script.chmod(0o755)
    monkeypatch.setenv("BROWSER", f"{script} %s")
    return opened


def bearer(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}


class Relay(LocalServer):
    """Passes requests on to a server; `heard` are their headers."""

    def __init__(self, server: Serving) -> None:
        self.heard: list[str] = []
        relay = self

        class Passing(Handler):
            def do_GET(self) -> None:
                relay.heard.append(str(self.headers))
                self.send(server.ask("GET", self.path, token=False).content)

            do_POST = do_GET  # the name that the standard library looks for

        super().__init__(Passing)


def exchanged(server: Serving, code: str, key: str = "") -> httpx.Response:
    headers = bearer(key) if key else {}
    options: dict[str, Any] = {"json": {"code": code}, "headers": headers}
    return server.ask("POST", "/page/key", token=False, **options)


def code_of(server: Serving) -> str:
    return str(server.ask("POST", "/page/code").json()["code"])


def status(server: Serving, key: str, method: str = "GET", path: str = PRIVATE) -> int:
    return server.ask(method, path, token=False, headers=bearer(key)).status_code


@pytest.mark.slow
def test_a_code_is_exchanged_for_a_key_that_reads_and_writes(served: Serving) -> None:
    key = exchanged(served, code_of(served)).json()["key"]
    assert key != served.token
    assert status(served, key) == 200
    written = {"id": "lock", "text": "Migrations wait for a lock."}
    answer = served.ask("POST", "/api/ingest", token=False, headers=bearer(key), json=written)
    assert answer.status_code == 200
    assert status(served, key, "POST", "/page/code") == 401  # a page makes no other page's key
    assert status(served, "guess", "GET", PRIVATE) == 401


@pytest.mark.slow
def test_a_code_that_comes_from_elsewhere_again_takes_its_key_back(served: Serving) -> None:
    code, other = code_of(served), exchanged(served, code_of(served)).json()["key"]
    key = exchanged(served, code).json()["key"]
    assert exchanged(served, code, key).json()["key"] == key  # the same page, opened again
    assert status(served, key) == 200
    again = exchanged(served, code)
    assert again.status_code == 403
    assert "opened before" in again.json()["error"]
    assert "lessons serve --open" in again.json()["hint"]
    assert status(served, key) == 401
    assert exchanged(served, code, key).status_code == 403
    assert status(served, other) == 200


@pytest.mark.slow
def test_nobody_else_gets_a_key(served: Serving) -> None:
    code = code_of(served)
    asked = {"json": {"code": code}}
    foreign = {"headers": {"origin": "https://evil.example"}}
    rebound = {"headers": {"host": "evil.example"}}
    form = {"content": f'{{"code": "{code}"}}', "headers": {"content-type": "text/plain"}}
    for expected, options in (
        (403, asked | foreign),
        (421, asked | rebound),
        (415, form),
        (403, {"json": {"code": "guess" * 8}}),
        (403, {"json": {"code": ""}}),
        (422, {"json": {"code": "x" * 101}}),
        (422, {"json": {}}),
    ):
        answer = served.ask("POST", "/page/key", token=False, **options)
        assert answer.status_code == expected, answer.text
        assert "key" not in answer.json()
        assert "access-control-allow-origin" not in answer.headers
    assert served.ask("POST", "/page/code", token=False).status_code == 401
    assert served.ask("PUT", "/page/key", token=False, **asked).status_code == 401
    assert exchanged(served, code).status_code == 200  # none of these used it


def test_a_code_is_good_for_two_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = PageKeys("a-token-of-these-tests", "/team")
    code = keys.new_code()
    now = time.monotonic()
    monkeypatch.setattr("time.monotonic", lambda: now + 121)
    with pytest.raises(Refusal, match="too old"):
        keys.exchange(code, "")


@pytest.mark.slow
def test_open_starts_the_browser_and_the_second_time_asks_the_server_that_runs(
    make_vault: MakeVault, own_world: Path, browser_of_user: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LESSONS_EMBEDDER", "none")
    vault, other = make_vault(FILES), make_vault(FILES, name="other")
    environ = {"BROWSER": f"{browser_of_user.parent / 'browse'} %s", "LESSONS_EMBEDDER": "none"}
    with serving(vault.root, own_world, "--open", **environ) as server:
        soon(browser_of_user.exists)
        words = ("lessons", "serve", "--open", "--port", str(server.port))
        second = run(*words, cwd=vault.root)
        assert (second.code, second.out, second.err) == (0, "", "")
        addresses = browser_of_user.read_text().split()
        assert len(addresses) == 2
        for address in addresses:
            place, _, code = address.partition("/#once=")
            assert place == server.url
            assert exchanged(server, code).status_code == 200
        elsewhere = run(*words, cwd=other.root, check=False)
        assert elsewhere.code == 1
        assert elsewhere.err.startswith(f"Error: {server.url} serves {vault.root}\nTry: choose")


@pytest.mark.slow
def test_another_program_on_the_port_gets_no_token_and_opens_no_page(
    served: Serving, own_world: Path, make_vault: MakeVault, browser_of_user: Path
) -> None:
    """Also not one that passes all on to a server of ours."""
    write(own_world / "token", served.token)
    vault = make_vault(FILES)
    with Relay(served) as relay:
        words = ("lessons", "serve", "--open", "--port", str(relay.port))
        done = run(*words, cwd=vault.root, check=False)
    assert done.code == 1
    assert done.err.startswith(f"Error: cannot listen on 127.0.0.1:{relay.port}: address")
    assert len(relay.heard) == 1
    assert served.token not in relay.heard[0]
    assert not browser_of_user.exists()


def test_a_program_that_never_answers_is_not_waited_for(
    make_vault: MakeVault, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "ANSWER_SECONDS", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        assert app.ask_running(address, "a-token-of-these-tests", "/team") == ""


@pytest.mark.slow
def test_pages_for_other_machines_have_no_key(make_vault: MakeVault, own_world: Path) -> None:
    vault = make_vault(FILES)
    file = write(own_world / "token", "the-token-of-the-team\n")
    done = run("lessons", "serve", "--open", "--host", "0.0.0.0", cwd=vault.root, check=False)
    assert done.code == 1
    assert done.err.startswith("Error: the page opens on this machine only, not on 0.0.0.0\nTry: ")
    words = ("--host", "0.0.0.0", "--token-file", str(file))
    with serving(vault.root, own_world, *words, LESSONS_EMBEDDER="none") as server:
        assert server.ask("POST", "/page/code").status_code == 404
        assert exchanged(server, "guess").status_code == 401
