"""The page from the user's one warm process: asked for, after a restart, at login, and ended."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

import vault_index
from tests.support.commands import run
from tests.support.files import MakeVault, lesson_text, write
from tests.support.watchers import soon
from vault_index.edit import init
from vault_index.entrypoints import guard
from vault_index.hotpath import protocol
from vault_index.vault import Vault, open_vault
from vault_index.watch import launch, page

pytestmark = pytest.mark.slow


@pytest.fixture
def team(make_vault: MakeVault, monkeypatch: pytest.MonkeyPatch) -> Iterator[Vault]:
    monkeypatch.setenv("LESSONS_EMBEDDER", "none")
    yield make_vault({"heap.md": lesson_text("Raise the heap", "To 4 GB.")})
    launch.stop()


def served(vault: Vault) -> str:
    """Serve a vault in the background on a free port, and return its address."""
    said = run("lessons", "serve", "--background", "--port", "0", cwd=vault.root).out
    assert said.startswith(f"serving {vault.root} on http://127.0.0.1:")
    (port,) = [wanted.port for wanted in page.wishes() if wanted.root == str(vault.root)]
    return f"http://127.0.0.1:{port}"


def answers(address: str) -> bool:
    try:
        return httpx.get(f"{address}/api/health", trust_env=False, timeout=60).is_success
    except httpx.TransportError:
        return False


def test_it_serves_until_it_is_stopped(team: Vault) -> None:
    address = served(team)
    assert answers(address)
    port = address.rpartition(":")[2]
    again = run("lessons", "serve", "--background", "--port", port, cwd=team.root)
    assert again.out.startswith(f"already serving {team.root} on {address}")
    assert f"serves {address}" in run("lessons", "watch", "--status", cwd=team.root).out
    refused = run("lessons", "serve", "--background", cwd=team.root, check=False)
    assert refused.code == 1
    assert refused.err.splitlines() == [
        f"Error: {team.root} is served on {address}", "Try: end that: lessons serve --stop",
    ]  # fmt: skip
    assert answers(address)
    assert run("lessons", "serve", "--stop", cwd=team.root).out == f"stopped serving {address}\n"
    assert not answers(address)
    nothing = run("lessons", "serve", "--stop", cwd=team.root).out
    assert nothing == "nothing is served in the background\n"
    assert launch.is_running(), "the watcher goes on"


def test_two_vaults_are_served_and_a_page_leads_to_the_other_with_its_key(
    team: Vault, tmp_path: Path
) -> None:
    root = tmp_path / "sand"
    init.init(root)
    write(root / "lessons/sieve.md", lesson_text("Sieve the sand", "Twice."))
    addresses = served(team), served(open_vault(root))
    assert all(map(answers, addresses))
    assert addresses[1] in run("lessons", "watch", "--status", cwd=root).out
    token = (Path(os.environ["LESSONS_HOME"]) / "token").read_text().strip()
    path = "/page/private/vaults"
    with httpx.Client(trust_env=False, timeout=60, base_url=addresses[0]) as page_of_team:
        assert page_of_team.get(path).status_code == 401
        page_of_team.headers["authorization"] = f"Bearer {token}"
        menu = page_of_team.get(path).text
        assert re.findall(r">\s*([\w]+)\s*<small", menu) == ["sand"]
        (other,) = re.findall(r'data-vault="(\w+)"', menu)
        assert page_of_team.post(path, json={"vault": "0" * 12}).status_code == 404
        went = page_of_team.post(path, json={"vault": other}).json()["address"]
    assert went.startswith(f"{addresses[1]}/#once=")
    code = went.partition("=")[2]
    with httpx.Client(trust_env=False, timeout=60, base_url=addresses[1]) as page_of_sand:
        key = page_of_sand.post("/page/key", json={"code": code}).json()["key"]
        page_of_sand.headers["authorization"] = f"Bearer {key}"
        assert page_of_sand.get("/page/private/today").is_success
        assert "<title>Today · sand</title>" in page_of_sand.get("/").text
    assert (
        "<title>Today · team</title>" in httpx.get(addresses[0], trust_env=False, timeout=60).text
    )
    stopped = run("lessons", "serve", "--stop", cwd=team.root).out
    assert stopped == f"stopped serving {', '.join(addresses)}\n"


def test_the_next_watcher_serves_again(team: Vault) -> None:
    address = served(team)
    state = launch.status(team.root)
    assert state is not None
    os.kill(state["pid"], 9)
    soon(lambda: not launch.is_running())
    run("lessons", "watch", "--background", cwd=team.root)
    soon(lambda: answers(address))
    stopped = run("lessons", "watch", "--stop", cwd=team.root)
    assert (stopped.out, "lessons serve --stop" in stopped.err) == ("stopped\n", True)
    assert not answers(address)
    assert run("lessons", "serve", "--stop", cwd=team.root).out == f"stopped serving {address}\n"
    assert page.wishes() == []


def test_it_goes_on_after_an_upgrade(
    team: Vault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(Path(vault_index.__file__).parent, tmp_path / "lib/vault_index")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "lib"))
    start = [sys.executable, "-m", "vault_index", "serve", "--background", "--port", "0"]
    subprocess.run(start, cwd=team.root, check=True, capture_output=True)
    (wanted,), before = page.wishes(), launch.status(team.root)
    with (tmp_path / "lib/vault_index/errors.py").open("a") as newer:
        newer.write("# another version\n")
    log = launch.folder() / launch.LOG
    soon(lambda: log.read_text().count(f"serving {team.root} on") == 2)
    after = launch.status(team.root)
    assert before is not None
    assert after is not None
    assert after["pid"] == before["pid"], "it went on in its place"
    assert answers(f"http://127.0.0.1:{wanted.port}")


def test_a_busy_port_is_an_error_and_no_wish(team: Vault) -> None:
    with guard.listening("127.0.0.1", 0) as busy:
        port = busy.getsockname()[1]
        words = ("lessons", "serve", "--background", "--port", str(port))
        refused = run(*words, cwd=team.root, check=False)
    assert refused.code == 1
    assert refused.err.startswith(
        f"Error: cannot listen on 127.0.0.1:{port}: address already in use"
    )
    assert page.wishes() == []


def test_a_vault_that_cannot_be_served_leaves_the_others() -> None:
    file = Path(protocol.folder()) / page.FILE
    values = [{"root": name, "port": 8_000} for name in ("/odd", "/team")]
    write(file, json.dumps({"served": values}))

    def open_(root: Path, port: int) -> page.Served:
        if root == Path("/odd"):
            raise PermissionError(13, "Permission denied", str(root))
        return Opened(f"http://127.0.0.1:{port}")

    said: list[str] = []
    pages = page.Page(open_, said.append)
    for _ in range(2):
        pages.look()
    assert pages.addresses() == {"/team": "http://127.0.0.1:8000"}
    assert [line for line in said if "Permission denied" in line] == said[:1]
    write(file, "[]")
    assert page.wishes() == []


@dataclass
class Opened:
    """A server that only has an address."""

    address: str

    def close(self) -> None:
        """End nothing."""


@pytest.mark.skipif(sys.platform != "linux", reason="systemd")
def test_at_login_shows_writes_and_removes_a_unit(
    team: Vault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "my $configs"))
    unit = tmp_path / "my $configs/systemd/user/lessons.service"
    programs, calls = tmp_path / "programs", tmp_path / "calls"
    programs.mkdir()
    control = programs / "systemctl"
    control.write_text("#!/bin/sh\necho 'Failed to connect to bus' >&2; exit 1\n")
    control.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    written = run("lessons", "serve", "--at-login", cwd=team.root)
    text = unit.read_text()
    assert [line.strip() for line in written.out.splitlines()] == [f"{unit}:", *text.splitlines()]
    assert "systemctl --user enable --now lessons.service" in written.err
    assert f'"--vault" "{team.root}" "serve" --background --port 7731\n' in text

    control.write_text(f"#!/bin/sh\necho $@ >> '{calls}'\n")
    assert "now and at each login" in run("lessons", "serve", "--at-login", cwd=team.root).out
    assert "--user enable --now lessons.service" in calls.read_text()
    removed = run("lessons", "serve", "--at-login", "--remove", cwd=team.root).out
    assert removed == f"removed {unit}\n"
    assert "--user disable --now lessons.service" in calls.read_text()
    assert not unit.exists()
    assert "there is no" in run("lessons", "serve", "--at-login", "--remove", cwd=team.root).out


def test_what_does_not_go_together(team: Vault) -> None:
    for words in (["--background", "--host", "0.0.0.0"], ["--remove"]):
        refused = run("lessons", "serve", *words, cwd=team.root, check=False)
        assert refused.code == 2
