"""A database that cannot be opened is never called empty: commands name it, hooks are silent.

On a read-only or full disk it is read, and what cannot be written is said.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from pathlib import Path

import anyio
import pytest
from mcp import Client

from tests.support import disks
from tests.support.commands import run
from tests.support.conversations import about_redirects
from tests.support.files import write
from tests.support.homes import at_home, make_home
from tests.support.mcp_servers import text_of
from tests.support.proposing import proposed
from tests.support.serving import answering
from tests.support.shown_vaults import TEXT_ONLY
from vault_index.entrypoints.mcp.agent import ServedAgent
from vault_index.entrypoints.mcp.tools import build
from vault_index.vault import open_vault

pytestmark = pytest.mark.slow

WORD = "quokkaburrow"
HEAP = f"---\ntitle: Heap of the {WORD}\n---\nRaise the heap when the {WORD} runs out of memory.\n"
ASKED = f"the {WORD} runs out of memory"
# a question, and what answers it while the database is read
QUESTIONS = {
    "status": "1 searched for since",
    "last": "Heap of the",
    "list": "heap",
    f"search {ASKED}": "Heap",
    "show heap": "a person said useful: yes",
    f"recall {ASKED}": "<lessons>",
    "review list": "Feed the quokkas",
    "journal sessions": "redirect",
    "journal show {session}": "redirect",
    "journal timeline today": "redirect",
    "journal status": "1 session",
    "check --stale": "",
    "skills build --dry-run": "",
    f"ask {ASKED}": "Raise the heap",
}
# what each of them would say of an empty database
FALSE = ("no agent has asked", "no proposals wait", "no session", "no lesson", "nothing")
WRITES = (
    "useful heap yes",
    "learn --session {session} --why",
    "journal forget --yes --session {session}",
    "journal import",
)


@dataclass(frozen=True)
class World:
    """A vault and the home of its user, in whose database there is something of all kinds."""

    root: Path
    home: Path
    session: str

    @property
    def state(self) -> Path:
        return self.home / "state.sqlite"

    @property
    def env(self) -> dict[str, str]:
        return {**at_home(self.home), "HOME": str(self.home), **TEXT_ONLY}

    def types(self, line: str) -> subprocess.CompletedProcess[str]:
        """Type a command in a process of its own: another has opened no database before."""
        words = line.replace("{session}", self.session).split()
        with pytest.MonkeyPatch.context() as patch:
            for name, value in self.env.items():
                patch.setenv(name, value)
            return subprocess.run(
                [sys.executable, "-m", "vault_index", *words], cwd=self.root,
                capture_output=True, text=True, timeout=120, check=False,
            )  # fmt: skip

    def hook(self, **event: str) -> str:
        given = {"hook_event_name": "UserPromptSubmit", "session_id": "s", "cwd": str(self.root)}
        event = {**given, "prompt": ASKED, **event}
        return run("lessons-hook", cwd=self.root, stdin=json.dumps(event), env=self.env).out


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> World:
    top = tmp_path_factory.mktemp("remembered")
    world = World(top / "team", make_home(top / "home"), "")
    write(world.home / "config.toml", "floor = 0.0\n")
    write(world.home / "journal/recorded", "*\n")
    run("lessons", "init", "team", cwd=top, env=world.env)
    write(world.root / "lessons/heap.md", HEAP)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in world.env.items():
            patch.setenv(name, value)
        session = about_redirects(world.root).id
        run("lessons", "index", cwd=world.root)
        run("lessons", "journal", "import", "--since", "all", cwd=world.root)
        proposed(open_vault(world.root), "Feed the quokkas at noon")
    world = World(world.root, world.home, session)
    assert "Raise the heap" in world.hook()
    run("lessons", "useful", "heap", "yes", cwd=world.root, env=world.env)
    return world


@pytest.fixture
def world(made: World, tmp_path: Path) -> World:
    """A copy of the home, for a test alone; the index of the vault knows it by its key."""
    home = tmp_path / "its-home"
    shutil.copytree(made.home, home, symlinks=True)
    copy = World(made.root, home, made.session)
    shutil.rmtree(home / "journal/.vault_index")  # it knows its place
    assert copy.types("journal import").returncode == 0
    assert [each.name for each in home.glob("state.*")] == ["state.sqlite"]
    return copy


def of_a_newer_version(file: Path) -> None:
    with closing(sqlite3.connect(file)) as db:
        db.execute("PRAGMA user_version = 999")


def a_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def a_dead_link(file: Path) -> None:
    file.unlink()
    file.symlink_to("/nowhere/state.sqlite")


@pytest.mark.parametrize("breaks", [of_a_newer_version, a_folder, a_dead_link])
def test_each_command_names_a_database_that_cannot_be_opened(
    world: World, breaks: Callable[[Path], None]
) -> None:
    breaks(world.state)
    for line in (*QUESTIONS, *WRITES):
        done = world.types(line)
        assert done.returncode == 1, (line, done.stdout, done.stderr)
        assert str(world.state) in done.stderr, (line, done.stdout, done.stderr)
        assert not any(each in done.stdout + done.stderr for each in FALSE), (line, done)
    assert world.hook() == ""
    assert str(world.state) in (world.home / "hook.log").read_text()


def test_so_do_http_and_mcp(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    of_a_newer_version(world.state)
    with answering(world.root, world.home, **TEXT_ONLY) as http:
        for path in ("/api/lessons/heap", "/api/journal/sessions", "/page/private/home"):
            answer = http.ask("GET", path)
            assert (answer.status_code, "newer version" in answer.text) == (503, True), path
    for name, value in world.env.items():
        monkeypatch.setenv(name, value)

    async def call(tool: str) -> tuple[bool, str]:
        async with Client(build(ServedAgent(str(world.root)))) as client:
            done = await client.call_tool(tool, {"query": WORD} if "search" in tool else {})
            return bool(done.is_error), text_of(done)

    for tool in ("search_journal", "learn_status", "learn_search"):
        is_error, said = anyio.run(call, tool)
        assert is_error
        assert "newer version" in said


@pytest.mark.parametrize("disk", [disks.read_only, disks.full])
def test_on_a_read_only_or_full_disk_it_is_read_and_nothing_is_called_done(
    world: World, disk: Callable[[Path], AbstractContextManager[None]]
) -> None:
    with disk(world.home):
        for line, answer in QUESTIONS.items():
            done = world.types(line)
            assert answer in done.stdout, (line, done.stdout, done.stderr)
            assert "Traceback" not in done.stderr
        for line in WRITES:
            done = world.types(line)
            assert done.returncode == 1, (line, done.stdout, done.stderr)
            assert done.stderr.startswith("Error: cannot write "), (line, done.stderr)
            assert not any(each in done.stdout + done.stderr for each in FALSE), (line, done)
        assert "Raise the heap" in world.hook(session_id="another")
