"""The first prompt in a vault: one watcher starts, whoever asks waits for it, and nobody in vain."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.commands import BIN, run
from tests.support.files import write
from tests.support.given import records
from tests.support.three_lessons import FILES, HEAP
from tests.support.watchers import soon, status, watchers_of
from vault_index import api, client
from vault_index.entrypoints import background
from vault_index.entrypoints.hook.client import autostart
from vault_index.hotpath import protocol, start
from vault_index.store import manifest, ownership
from vault_index.vault import Vault
from vault_index.watch import background_index, launch, vault_watch
from vault_index.watch.current import SharedEmbedder

AUTOSTART = {"LESSONS_WATCH_AUTOSTART": "true"}
OLD = 600  # seconds: no watcher takes so long to start


class Hook:
    """A hook process that was sent a prompt."""

    def __init__(self, vault: Vault, env: dict[str, str] | None = None, **fields: str) -> None:
        event = {"hook_event_name": "UserPromptSubmit", "prompt": HEAP, "cwd": str(vault.root)}
        event |= fields
        self._process = subprocess.Popen(
            [BIN / "lessons-hook"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | (env or {}),
            text=True,
        )
        assert self._process.stdin
        self._process.stdin.write(json.dumps(event))
        self._process.stdin.close()
        self._process.stdin = None

    def waits(self) -> bool:
        """Whether it has the folder open that it waits in."""
        assert self._process.poll() is None
        folder = Path(f"/proc/{self._process.pid}/fd")
        for handle in folder.iterdir():
            with suppress(FileNotFoundError):  # closed meanwhile
                if str(handle.readlink()).endswith("/watch"):
                    return True
        return False

    def answer(self) -> str:
        out, _ = self._process.communicate(timeout=120)
        assert self._process.returncode == 0
        return out


@contextmanager
def starting_watcher(vault: Vault, age: float = 0) -> Iterator[int]:
    """Hold the lock as a watcher does that began so many seconds ago and does not listen yet."""
    lock = launch.take_lock()
    assert lock is not None
    start.note_pid(lock, os.getpid())
    then = time.time() - age
    os.utime(launch.folder() / launch.LOCK, (then, then))
    try:
        yield lock
    finally:
        os.close(lock)


def by(vault: Vault) -> list[str]:
    """Return who answered, from the record."""
    return [one.by for one in records(vault)]


@pytest.mark.slow
def test_what_was_saved_while_nobody_watched_is_in_the_first_answer(team: Vault) -> None:
    path = team.lessons_dir / "devops/ci-cd/node-heap.md"
    write(path, FILES["devops/ci-cd/node-heap.md"] + "\nUse 6 GB.\n")
    assert "Use 6 GB." in Hook(team, AUTOSTART).answer()


@pytest.mark.slow
def test_ten_first_prompts_at_once_start_one_watcher_and_get_ten_answers(team: Vault) -> None:
    with ThreadPoolExecutor(10) as pool:
        answers = list(pool.map(lambda _: Hook(team, AUTOSTART).answer(), range(10)))
    assert all("node-heap.md" in answer for answer in answers)
    assert len(by(team)) == 10
    assert "watcher" in by(team)
    assert len(watchers_of(team.root)) == 1
    assert (launch.folder() / launch.LOG).read_text().count(" watching ") <= 1


def bound() -> socket.socket:
    """Return a socket where a watcher's is; with a long path that is a folder which outlives a test."""
    place = protocol.places()[0]
    Path(place).parent.mkdir(0o700, exist_ok=True)
    Path(place).unlink(missing_ok=True)
    own = socket.socket(socket.AF_UNIX)
    own.bind(place)
    return own


@pytest.mark.slow
def test_a_watcher_that_starts_is_waited_for(team: Vault) -> None:
    with starting_watcher(team):
        hook = Hook(team)
        soon(hook.waits)
        listening = bound()
        listening.listen()
        connection, _ = listening.accept()
        with connection, listening:
            protocol.receive(connection, time.monotonic() + 60)
            reply = {"protocol": protocol.PROTOCOL, "answer": {"from": "the watcher"}}
            connection.sendall(json.dumps(reply).encode() + b"\n")
        assert json.loads(hook.answer()) == {"from": "the watcher"}
    assert by(team) == []


@pytest.mark.slow
def test_a_watcher_that_dies_while_it_starts_is_not_waited_for(team: Vault) -> None:
    with starting_watcher(team):
        hook = Hook(team)
        soon(hook.waits)
    assert "node-heap.md" in hook.answer()
    assert by(team) == ["process"]


@pytest.mark.slow
def test_without_an_index_a_prompt_is_answered_from_the_files_and_a_start_says_so(
    make_vault: Callable[..., Vault], own_world: Path
) -> None:
    vault = make_vault(FILES)
    ownership.claim(vault.index_dir)
    with starting_watcher(vault):
        hooks = [
            Hook(vault, session_id="s1", hook_event_name="SessionStart", source="startup"),
            Hook(vault, session_id="s1", prompt_id="p1"),
            Hook(
                vault, session_id="s1", prompt_id="p1"
            ),  # of a second scope, however late it starts
        ]
        started, *prompts = (hook.answer() for hook in hooks)
        assert "This team keeps 3 lessons" in started
        assert "Indexing, a few seconds." in started
        assert sum("node-heap.md" in answer for answer in prompts) == 1
    log = (own_world / "hook.log").read_text()
    assert "the index is not built yet" in log
    assert "heap" not in log
    page = client.ask(vault, api.injection.select())
    assert (page.totals.missed, page.totals.prompts) == (0, 1)


@pytest.mark.slow
def test_a_vault_without_lessons_has_an_index_at_once(
    make_vault: Callable[..., Vault], text_only: None
) -> None:
    vault = make_vault()
    assert Hook(vault, AUTOSTART, hook_event_name="SessionStart", source="startup").answer() == ""
    soon(lambda: status(vault).get("lessons") == 0, seconds=background_index.INDEX_PAUSE_SECONDS)
    launch.stop()


def test_the_watcher_of_a_vault_without_an_index_waits_for_the_end_of_the_hook(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Issue 54, "Must show": both at once on busy cores answered no first prompt of a clone."""
    assert start.watch_words("/v", has_index=True) == ["--vault", "/v", "watch"]
    words = start.watch_words("/v", has_index=False)
    assert words == ["--vault", "/v", "watch", start.AFTER, str(os.getpid())]
    steps: list[str] = []
    parents = iter([os.getpid(), os.getpid(), 1])
    monkeypatch.setattr(os, "getppid", lambda: next(parents))
    monkeypatch.setattr(time, "sleep", lambda _: steps.append("wait"))

    def starts(_seconds: int, _work: object) -> int:
        steps.append("start")
        return 0

    monkeypatch.setattr(background, "_run", starts)
    assert background.main([*words, "--lock", "3"]) == 0
    assert steps == ["wait", "wait", "start"]


@pytest.mark.slow
def test_a_watcher_loads_the_model_when_there_is_an_index(
    make_vault: Callable[..., Vault], text_only: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    vault, loaded = make_vault(FILES), list[bool]()

    def warm_up(vault: Vault, _first: object = None) -> None:
        loaded.append(manifest.current(vault.index_dir) is not None)

    monkeypatch.setattr(vault_watch, "warm_up", warm_up)
    watch = vault_watch.VaultWatch(vault.root, lambda _: None, SharedEmbedder(), wanted=True)
    watch.start()
    soon(lambda: loaded)
    watch.end("the test is over")
    assert watch.ended.wait(60)
    assert loaded == [True]


@pytest.mark.slow
def test_what_a_watcher_that_was_killed_left_says_nothing(team: Vault) -> None:
    bound().close()
    with starting_watcher(team, OLD):
        pass
    assert "node-heap.md" in Hook(team, AUTOSTART).answer()
    assert by(team) == ["watcher"]


@pytest.mark.slow
def test_one_that_cannot_start_leaves_the_answer_to_the_hook(team: Vault, tmp_path: Path) -> None:
    """Such as one of a version that does not run: it says why in its log, and frees the lock."""
    write(tmp_path / "site" / "sitecustomize.py", "import os, sys\n"
          "'--lock' in sys.orig_argv and sys.exit(os.write(2, b'broken\\n'))\n")  # fmt: skip
    env = AUTOSTART | {"PYTHONPATH": str(tmp_path / "site")}
    assert "node-heap.md" in Hook(team, env).answer()
    assert by(team) == ["process"]
    assert "broken" in (launch.folder() / launch.LOG).read_text()


@pytest.mark.parametrize(
    ("vault", "user", "environ", "wanted"),
    [
        ("", "", "", True),
        ("[watch]\nautostart = false\n", "", "", False),
        ('[watch]\n"\\u0061utostart" = false\n', "", "", False),
        ("", "[watch]\nautostart = false\n", "", False),
        ("[watch]\nautostart = false\n", "[watch]\nautostart = true\n", "", True),
        ("", "", "false", False),
    ],
)
def test_hooks_start_none_where_none_is_wanted(
    team: Vault,
    own_world: Path,
    monkeypatch: pytest.MonkeyPatch,
    vault: str,
    user: str,
    environ: str,
    wanted: bool,
) -> None:
    write(team.lessons_dir / "vault.toml", vault)
    write(own_world / "config.toml", user)
    monkeypatch.setenv("LESSONS_WATCH_AUTOSTART", environ)
    begun: list[bool] = []
    monkeypatch.setattr(start, "spawn", lambda *_: begun.append(True))
    start.ask(str(team.root), {}, time.monotonic() + 1, autostart)
    assert begun == [True] * wanted


@pytest.mark.slow
def test_a_watcher_that_hangs_while_it_starts_is_ended_by_the_system(team: Vault) -> None:
    code = "from vault_index.entrypoints import background; background.HANG_SECONDS = 1; "
    code += "background.watch = lambda *_: __import__('threading').Event().wait(); "
    code += f"background.main(['--vault', {str(team.root)!r}, 'watch', '--lock', '0'])"
    done = subprocess.run([sys.executable, "-c", code], timeout=60, check=False)
    assert done.returncode == -signal.SIGALRM


LOADED = (
    "import sys; at_start = set(sys.modules)\n"  # an editable install loads a finder of its own
)


@pytest.mark.slow
def test_a_warm_hook_loads_little(team: Vault) -> None:
    run("lessons", "watch", "--background", cwd=team.root)
    event = {"hook_event_name": "UserPromptSubmit", "prompt": HEAP, "cwd": str(team.root)}
    code = (
        f"{LOADED}import os; end, loaded = os._exit, lambda: set(sys.modules) - at_start\n"
        "os._exit = lambda code: (print('\\n', *loaded()), sys.stdout.flush(), end(code))\n"
        "from vault_index.entrypoints.hook.client import main; main()"
    )
    done = run(sys.executable, "-c", code, cwd=team.root, stdin=json.dumps(event))
    answer, loaded = done.out.split("\n", 1)
    assert "node-heap.md" in answer
    assert not {"json", "socket", "threading", "pathlib", "typing"} & set(loaded.split())
    assert status(team)["questions"] == 1


TEXT = st.text(st.characters(), max_size=9)  # halves of characters, too
NUMBER = st.integers() | st.floats(allow_nan=False)
VALUES: st.SearchStrategy[object] = st.recursive(
    st.none() | st.booleans() | NUMBER | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
WORDS = ["", "{", "[1,", "{} x", '"a', "nul", '{"a" 1}', "\0", " \n[1]\t", '{"a":1,"a":2}', "NaN"]
WORDS += ["[1 2]", '"\\ud83d\\ude00"', "1" * 30, "-Infinity", "{'a': 1}", "\ufeff1", "[" * 99_999]


@given(VALUES)
def test_small_json_writes_what_json_writes(value: object) -> None:
    assert protocol.dumps(value) == json.dumps(value)
    assert protocol.loads(protocol.dumps(value)) == value
    with pytest.raises(TypeError):
        protocol.dumps([value, {1, 2}])


@given(st.sampled_from(WORDS) | st.text('[]{},:"\\ud8 0-1.eE+\ntrufalsn', max_size=12))
def test_small_json_reads_what_json_reads(text: str) -> None:
    def read(loads: Callable[[str], object]) -> str:
        try:
            return repr(loads(text))
        except (ValueError, RecursionError) as error:
            return "not read" if isinstance(error, ValueError) else "too deep"

    assert read(protocol.loads) == read(json.loads)
