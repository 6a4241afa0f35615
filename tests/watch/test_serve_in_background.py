"""The server of `lessons serve --background`: one a user; an upgrade, a login, and its end."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

import vault_index
from tests.support import serving as servers
from tests.support.commands import run
from tests.support.files import MakeVault, lesson_text
from tests.support.watchers import soon
from vault_index.edit import init
from vault_index.entrypoints import at_login, guard, serving
from vault_index.entrypoints.cli.servers import HTTP_PORT
from vault_index.errors import VaultError
from vault_index.vault import Vault
from vault_index.watch import launch

pytestmark = pytest.mark.slow


@pytest.fixture
def team(make_vault: MakeVault, text_only: None) -> Iterator[Vault]:
    yield make_vault({"heap.md": lesson_text("Raise the heap", "To 4 GB.")})
    serving.stop()
    launch.stop()


def served(vault: Vault) -> str:
    """Serve a vault in the background on a free port, and return its address."""
    said = run("lessons", "serve", "--background", "--port", "0", cwd=vault.root).out
    assert said.startswith(f"serving {vault.root} on http://127.0.0.1:")
    return said.removeprefix(f"serving {vault.root} on ").partition(",")[0]


def answers(address: str) -> bool:
    try:
        return httpx.get(f"{address}/api/health", trust_env=False, timeout=60).is_success
    except httpx.TransportError:
        return False


def test_it_serves_until_it_is_stopped(team: Vault) -> None:
    address = served(team)
    assert answers(address)
    for words in (["--port", address.rpartition(":")[2]], []):  # whatever port is named now
        again = run("lessons", "serve", "--background", *words, cwd=team.root)
        assert again.out.startswith(f"already serving {team.root} on {address}")
    run("lessons", "watch", "--stop", cwd=team.root)
    assert answers(address), "it is a process of its own"
    assert run("lessons", "serve", "--stop", cwd=team.root).out == f"stopped serving {address}\n"
    assert not answers(address)
    nothing = run("lessons", "serve", "--stop", cwd=team.root).out
    assert nothing == "nothing is served in the background\n"


def test_a_user_has_one_server(team: Vault, tmp_path: Path) -> None:
    address = served(team)
    root = tmp_path / "sand"
    init(root)
    refused = run("lessons", "serve", "--background", "--port", "0", cwd=root, check=False)
    assert refused.code == 1
    assert refused.err.splitlines() == [
        f"Error: {team.root} is served on {address}", "Try: end that: lessons serve --stop",
    ]  # fmt: skip
    assert answers(address)


def test_uninstalling_all_ends_it(team: Vault) -> None:
    address = served(team)
    removed = run("lessons", "uninstall", "--all", "--yes", cwd=team.root)
    assert "the server of `lessons serve --background`" in removed.out
    assert not answers(address)
    assert not serving.is_running()


def test_a_killed_server_leaves_nothing_in_the_way(team: Vault) -> None:
    served(team)
    os.kill(int((serving_folder() / "lock").read_text()), 9)
    soon(lambda: not serving.is_running())
    assert answers(served(team))


def test_it_goes_on_after_an_upgrade(
    team: Vault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(Path(vault_index.__file__).parent, tmp_path / "lib/vault_index")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "lib"))
    start = [sys.executable, "-m", "vault_index", "serve", "--background", "--port", "0"]
    subprocess.run(start, cwd=team.root, check=True, capture_output=True)
    before = (serving_folder() / "lock").read_text()
    with (tmp_path / "lib/vault_index/errors.py").open("a") as newer:
        newer.write("# another version\n")
    log = serving_folder() / "log"
    soon(lambda: log.read_text().count(f"serving {team.root} on") == 2)
    assert (serving_folder() / "lock").read_text() == before, "it went on in its place"
    address = json.loads((serving_folder() / "state.json").read_text())["address"]
    assert answers(address)


def test_what_a_terminal_serves_is_not_served_twice(team: Vault, own_world: Path) -> None:
    with servers.serving(team.root, own_world) as front:
        words = ("lessons", "serve", "--background", "--port", str(front.port))
        again = run(*words, cwd=team.root)
        assert again.out == f"already serving {team.root} on {front.url}, at a terminal\n"
        assert not serving.is_running()
    with guard.listening("127.0.0.1", front.port):
        assert "cannot listen" in run(*words, cwd=team.root, check=False).err


def test_open_takes_a_free_port_where_another_user_has_ours(
    team: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue 54, item 7: the error named `--port`, which `open` does not have."""
    monkeypatch.setenv("BROWSER", "true")
    with _taken(HTTP_PORT):
        opened = run("lessons", "open", cwd=team.root)
        served_on = re.match(r"serving \S+ on (http://127\.0\.0\.1:(\d+)), until", opened.out)
        assert served_on, opened
        assert served_on[2] != str(HTTP_PORT)
        assert answers(served_on[1])
        again = run("lessons", "open", cwd=team.root)
        assert again.out.startswith(f"already serving {team.root} on {served_on[1]}")


@contextlib.contextmanager
def _taken(port: int) -> Iterator[None]:
    """Have a port taken, by this test or by whoever has it already."""
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(VaultError):
            stack.enter_context(guard.listening("127.0.0.1", port))
        yield


def serving_folder() -> Path:
    return Path(os.environ["LESSONS_HOME"]) / "serve"


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


@pytest.mark.skipif(sys.platform != "linux", reason="systemd")
def test_nothing_of_a_path_is_raw_in_a_unit(monkeypatch: pytest.MonkeyPatch) -> None:
    root = Path('/tmp/a "b" $HOME ${X} %h \\x41 ü\udce9\u2028\nExecStart=/bin/evil\t')
    monkeypatch.setenv("OLLAMA_HOST", str(root))
    text = at_login.login_file(root, 7731).text
    lines = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    assert text.isascii()
    assert text.count("\nExecStart=") == 1

    def read(value: str) -> list[bytes]:
        words = re.findall(r'"([^"]*)"', value)
        return [re.sub(rb"\\x(..)", lambda hex: bytes.fromhex(hex[1].decode()),
                       word.encode().replace(b"%%", b"%")) for word in words]  # fmt: skip

    assert lines["ExecStart"].startswith(':"'), "no variable is put in"
    assert os.fsencode(root) in read(lines["ExecStart"])
    assert os.fsencode(root) in read(lines["ExecStop"])
    assert b"OLLAMA_HOST=" + os.fsencode(root) in read(lines["Environment"])
