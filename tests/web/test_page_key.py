"""The key of the pages: from the command line into one browser, and into no other."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.commands import run
from tests.support.files import MakeVault, lesson_text, write
from tests.support.serving import Answering, serving
from vault_index.entrypoints import page_code
from vault_index.entrypoints.serving import stop

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


def exchanged(server: Answering, code: str, key: str = "") -> Any:
    headers = bearer(key) if key else {}
    options: dict[str, Any] = {"json": {"code": code}, "headers": headers}
    return server.ask("POST", "/page/key", token=False, **options)


def code_of(server: Answering) -> str:
    return page_code.new_code(server.token, server.url)


def status(server: Answering, key: str, method: str = "GET", path: str = PRIVATE) -> Any:
    return server.ask(method, path, token=False, headers=bearer(key)).status_code


@pytest.mark.slow
def test_a_code_is_exchanged_for_a_key_that_reads_and_writes(answers: Answering) -> None:
    key = exchanged(answers, code_of(answers)).json()["key"]
    assert key != answers.token
    assert status(answers, key) == 200
    written = {"id": "lock", "text": "Migrations wait for a lock."}
    answer = answers.ask("POST", "/api/ingest", token=False, headers=bearer(key), json=written)
    assert answer.status_code == 200
    assert status(answers, "guess", "GET", PRIVATE) == 401


def test_a_code_that_comes_from_elsewhere_again_takes_its_key_back(answers: Answering) -> None:
    code, other = code_of(answers), exchanged(answers, code_of(answers)).json()["key"]
    key = exchanged(answers, code).json()["key"]
    assert exchanged(answers, code, key).json()["key"] == key  # the same page, opened again
    assert status(answers, key) == 200
    again = exchanged(answers, code)
    assert again.status_code == 403
    assert "opened before" in again.json()["error"]
    assert "lessons open" in again.json()["hint"]
    assert status(answers, key) == 401
    assert exchanged(answers, code, key).status_code == 403
    assert status(answers, other) == 200


def test_nobody_else_gets_a_key(answers: Answering) -> None:
    code = code_of(answers)
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
        (403, {"json": {"code": page_code.new_code(answers.token, "http://127.0.0.1:1")}}),
        (422, {"json": {"code": "x" * 101}}),
        (422, {"json": {}}),
    ):
        answer = answers.ask("POST", "/page/key", token=False, **options)
        assert answer.status_code == expected, answer.text
        assert "key" not in answer.json()
        assert "access-control-allow-origin" not in answer.headers
    assert answers.ask("PUT", "/page/key", token=False, **asked).status_code == 401
    assert exchanged(answers, code).status_code == 200  # none of these used it


def test_a_code_is_good_for_two_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    signed_for = ("a-token-of-these-tests", "http://127.0.0.1:7731")
    code = page_code.new_code(*signed_for)
    assert page_code.is_good_code(code, *signed_for)
    now = time.time()
    monkeypatch.setattr("time.time", lambda: now + 122)
    assert not page_code.is_good_code(code, *signed_for)


@pytest.mark.slow
def test_open_starts_a_browser_and_the_second_time_finds_the_server(
    make_vault: MakeVault, own_world: Path, browser_of_user: Path, text_only: None
) -> None:
    vault = make_vault(FILES)
    words = ("lessons", "serve", "--background", "--open", "--port", "0")
    try:
        assert run(*words, cwd=vault.root).out.startswith("serving")
        assert run(*words, cwd=vault.root).out.startswith("already serving")
        first, second = browser_of_user.read_text().split()
        for address in (first, second):
            place, _, code = address.partition("/#once=")
            with httpx.Client(trust_env=False, timeout=60) as page:
                answer = page.post(f"{place}/page/key", json={"code": code})
            assert answer.status_code == 200
        assert (own_world / "token").read_text().strip() not in first
    finally:
        stop()


@pytest.mark.slow
def test_pages_for_other_machines_have_no_key(make_vault: MakeVault, own_world: Path) -> None:
    vault = make_vault(FILES)
    file = write(own_world / "token", "the-token-of-the-team\n")
    done = run("lessons", "serve", "--open", "--host", "0.0.0.0", cwd=vault.root, check=False)
    assert done.code == 1
    assert done.err.startswith("Error: the page opens on this machine only, not on 0.0.0.0\nTry: ")
    words = ("--host", "0.0.0.0", "--token-file", str(file))
    with serving(vault.root, own_world, *words, LESSONS_EMBEDDER="none") as server:
        assert server.ask("POST", "/page/key", token=False, json={"code": "x"}).status_code == 401
