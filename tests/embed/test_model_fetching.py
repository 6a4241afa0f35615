"""No model yet: hooks answer by full text, the watcher fetches it, and everybody says how it stands."""

from __future__ import annotations

import fcntl
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hook.test_first_prompt import AUTOSTART, Hook, by
from tests.support.commands import run
from tests.support.files import MakeVault, lesson_text, write
from tests.support.local_server import Handler, LocalServer
from tests.support.watchers import soon, status, watched, watchers_of
from vault_index import config
from vault_index.embed import download
from vault_index.index import reconcile
from vault_index.vault import Vault, open_vault
from vault_index.watch import launch

SUBJECTS = "dates locks pipes layers tokens quotas caches queues routes fonts themes mails".split()
FILES = {
    f"{subject}/{number}.md": lesson_text(f"{subject} {number}", f"About {subject}, {number}.")
    for subject in SUBJECTS
    for number in range(10)
}
FILES["devops/node-heap.md"] = lesson_text(
    "Node runs out of memory in the CI build",
    "When the build dies with heap out of memory, raise the heap: NODE_OPTIONS.",
)


class Hub(LocalServer):
    """A server in the place of the hub and of the package index that has nothing, and counts."""

    def __init__(self) -> None:
        hub = self
        self.asked = 0

        class Answering(Handler):
            def do_GET(self) -> None:
                hub.asked += 1
                self.send_error(404)

            do_HEAD = do_GET

        super().__init__(Answering)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """All that a fetch may ask, for this process and those it starts."""
    hub = Hub()
    monkeypatch.setenv("HF_ENDPOINT", hub.url)
    monkeypatch.setenv("PIP_INDEX_URL", hub.url)
    for name, value in (("EXTRA_INDEX_URL", ""), ("CONFIG_FILE", "/dev/null"), ("FIND_LINKS", "")):
        monkeypatch.setenv(f"PIP_{name}", value)
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "PIP_NO_INDEX"):
        monkeypatch.delenv(name, raising=False)
    with hub:
        yield hub


@pytest.fixture
def record(own_world: Path) -> Path:
    """The record of attempts, of which there was none."""
    record = own_world / "models" / download.RECORD
    record.unlink()
    return record


@pytest.fixture
def team(make_vault: MakeVault) -> Iterator[Vault]:
    """A vault without an index; whatever watches it at the end is ended."""
    vault = make_vault(FILES)
    yield vault
    if vault.index_dir.is_dir():
        launch.stop()
    for pid in watchers_of(vault.root):
        os.kill(pid, signal.SIGKILL)


def log(vault: Vault) -> str:
    return (launch.folder() / launch.LOG).read_text()


def embedder_line(root: Path) -> str:
    lines = run("lessons", "status", cwd=root).out.splitlines()
    return next(line for line in lines if line.startswith("embedder "))


@pytest.mark.slow
def test_the_first_prompt_is_answered_by_full_text(team: Vault, record: Path, hub: Hub) -> None:
    """While the model is not there."""
    reconcile.sync(team)
    assert "node-heap.md" in Hook(team, AUTOSTART).answer()
    assert by(team) == ["watcher"]


@pytest.mark.slow
def test_the_watcher_indexes_at_once_and_tries_once_an_hour(
    team: Vault, record: Path, hub: Hub
) -> None:
    with watched(team):
        soon(lambda: any(team.index_dir.glob("*/manifest.json")) and record.exists(), seconds=120)
        soon(lambda: "could not be fetched" in record.read_text(), seconds=120)
        asked = hub.asked
        assert asked > 0
    assert log(team).count("fetching the embedding model") == 1
    with watched(team):
        soon(lambda: status(team)["lessons"] == len(FILES), seconds=120)
        run("lessons", "search", "heap", cwd=team.root)
    assert log(team).count("fetching the embedding model") == 1
    assert hub.asked == asked
    assert "; the last attempt failed " in embedder_line(team.root)
    long_ago = time.time() - download.RETRY_SECONDS - 1
    os.utime(record, (long_ago, long_ago))
    assert download.is_due(open_vault(team.root).config)


@pytest.mark.slow
def test_without_a_watcher_hooks_fetch_nothing(team: Vault, record: Path, hub: Hub) -> None:
    reconcile.sync(team)
    env = {"LESSONS_WATCH_AUTOSTART": "false"}
    assert "node-heap.md" in Hook(team, env).answer()
    assert not record.exists()
    assert hub.asked == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", ["HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"])
def test_who_says_to_stay_off_the_network_is_obeyed(
    team: Vault, record: Path, hub: Hub, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, "1")
    ran = run("lessons", "model", "fetch", cwd=team.root, check=False)
    assert f"the Hugging Face hub: {name} is set" in ran.err
    record.unlink()
    assert not download.is_due(config.load())
    assert name in embedder_line(team.root)
    assert hub.asked == 0
    monkeypatch.setenv(name, "0")
    assert download.is_due(config.load())


@pytest.mark.slow
def test_status_says_how_it_stands(team: Vault, own_world: Path, record: Path) -> None:
    assert "run `lessons model fetch`" in embedder_line(team.root)
    write(record, "the hub is on fire\n")
    then = time.time() - 30
    os.utime(record, (then, then))
    assert " seconds ago: the hub is on fire" in embedder_line(team.root)
    lock = os.open(download.lock_file(own_world), os.O_RDWR | os.O_CREAT)
    fcntl.flock(lock, fcntl.LOCK_EX)
    assert "the model is being fetched" in embedder_line(team.root)
    state = run("lessons", "status", "--json", cwd=team.root).json["model"]
    assert state["state"] == "being fetched"
    assert "being fetched" in run("lessons", "model", cwd=team.root).out
    os.close(lock)


def test_init_and_install_say_that_it_will_be_fetched(own_world: Path, record: Path) -> None:
    for words in (("init",), ("install", "claude")):
        lines = run("lessons", *words, cwd=own_world).err.splitlines()
        said = [line for line in lines if "lessons model fetch" in line]
        assert len(said) == 1
        assert "will be fetched in the background" in said[0]


class Proxy(LocalServer):
    """A proxy that answers everything with the page where one logs in."""

    def __init__(self) -> None:
        page = b"<html><head><title>Login &amp; policy</title></head><body>Log in.</body></html>"

        class Answering(Handler):
            def do_GET(self) -> None:
                self.send_response(200)
                self.send_header("content-type", "text/html")
                self.send_header("content-length", str(len(page)))
                self.end_headers()
                self.wfile.write(page)

        super().__init__(Answering)


@pytest.mark.slow
def test_the_page_of_a_proxy_is_named_as_the_cause(
    own_world: Path, record: Path, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pip says "No matching distribution" of it, and the hub's library the name of an exception."""
    with Proxy() as proxy:
        monkeypatch.setenv("HF_ENDPOINT", proxy.url)
        monkeypatch.setenv("PIP_INDEX_URL", f"{proxy.url}/simple")
        ran = run("lessons", "model", "fetch", cwd=own_world, check=False)
    assert "No matching distribution" not in ran.err
    assert ran.err.count("answers with the page 'Login & policy': is a proxy in the way?") == 2


@pytest.mark.slow
def test_an_index_without_the_wheel_is_not_called_a_proxy(
    own_world: Path, record: Path, hub: Hub
) -> None:
    ran = run("lessons", "model", "fetch", cwd=own_world, check=False)
    assert "is a proxy in the way" not in ran.err
    assert "No matching distribution" in ran.err
