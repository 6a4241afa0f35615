"""The hook beside a watcher: it asks it, starts it, and never waits for one that does not answer."""

from __future__ import annotations

import json
import os
import random
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.hook.test_first_prompt import bound, by
from tests.support.commands import Ran, run
from tests.support.files import lesson_text, write
from tests.support.three_lessons import HEAP
from tests.support.watchers import (
    assert_same_as_a_rebuild,
    soon,
    soon_same_as_a_rebuild,
    watched,
    watchers_of,
)
from vault_index.hotpath import protocol
from vault_index.vault import Vault
from vault_index.watch import launch

pytestmark = pytest.mark.slow

AUTOSTART = {"LESSONS_WATCH_AUTOSTART": "true"}


def hook(vault: Vault, env: dict[str, str] | None = None, **event: Any) -> Ran:
    """Send one event to a real hook process; it must end with 0 and complain to nobody."""
    event = {"hook_event_name": "UserPromptSubmit", "session_id": "", "prompt": HEAP} | event
    event.setdefault("cwd", str(vault.root))
    done = run("lessons-hook", cwd=vault.root.parent, stdin=json.dumps(event), env=env)
    assert done.err == ""
    return done


def test_the_watcher_and_the_hook_itself_give_the_same(team: Vault) -> None:
    alone = hook(team).out
    assert "node-heap.md" in alone
    with watched(team):
        assert hook(team).out == alone
        assert hook(team, prompt="what is the weather like in Lisbon next weekend").out == ""
        assert hook(team, prompt="thanks, looks good").out == ""
        start = hook(team, hook_event_name="SessionStart", source="startup", prompt=None)
        assert "This team keeps 3 lessons" in start.out
        compacted = hook(team, hook_event_name="SessionStart", source="compact")
        assert compacted.out == start.out
    assert by(team) == ["process", "watcher", "watcher", "watcher", "watcher"]


def test_a_prompt_right_after_a_save_gets_what_was_saved(team: Vault) -> None:
    with watched(team):
        soon(lambda: f"watching {team.lessons_dir}" in (launch.folder() / launch.LOG).read_text())
        for number in range(8):
            prompt = f"what does the zyzzyva of shelf {number} eat"
            head = f'---\ntitle: Shelf {number}\nfires_on: ["{prompt}"]\n---\n'
            write(team.lessons_dir / "devops" / "shelf.md", f"{head}Version {number}.\n")
            assert f"Version {number}." in hook(team, prompt=prompt).out
    assert by(team) == ["watcher"] * 8


def test_no_prompt_is_silent_while_the_index_is_built_again(team: Vault) -> None:
    manifest = next(team.index_dir.glob("*/manifest.json"))
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"schema": 1}))
    asked = 0
    with watched(team):
        while by(team)[-1:] != ["watcher"] or asked < 10:
            assert "node-heap.md" in hook(team, session_id=f"session {asked}").out
            asked += 1


# when it does not answer


def test_a_hung_watcher_is_not_waited_for(team: Vault, own_world: Path) -> None:
    with watched(team) as state:
        os.kill(state["pid"], signal.SIGSTOP)
        hurried = {"LESSONS_DEADLINE_MS": "12000"}  # nearly half of it is the watcher's
        answer = hook(team, hurried).out  # comes at all, though the watcher never answers
        os.kill(state["pid"], signal.SIGCONT)
    assert "the watcher did not answer" in (own_world / "hook.log").read_text()
    assert answer == "" or "node-heap.md" in answer
    assert by(team)[0] == "process"


def prompts_beside(team: Vault, environ: dict[str, str]) -> list[bool]:
    """Ask six prompts in sessions of their own; return which of them got the lesson."""
    some = len(by(team))
    sessions = (f"session {number}" for number in range(some, some + 6))
    return ["node-heap.md" in hook(team, environ, session_id=each).out for each in sessions]


def test_no_prompt_is_lost_while_the_watcher_hangs_and_one_at_most_waits_for_it(
    team: Vault, own_world: Path
) -> None:
    log = own_world / "hook.log"
    with watched(team) as state:
        assert all(prompts_beside(team, {}))
        assert int((launch.folder() / protocol.PACE).read_text()) > 0
        os.kill(state["pid"], signal.SIGSTOP)
        assert all(prompts_beside(team, {"LESSONS_DEADLINE_MS": "12000"}))
        assert by(team)[-6:] == ["process"] * 6
        said = [json.loads(line)["message"] for line in log.read_text().splitlines()]
        assert sum("timed out" in each for each in said) == 1
        assert sum("has not answered since" in each for each in said) == 5
        os.kill(state["pid"], signal.SIGCONT)  # it answers what waits, and is asked again
        soon(lambda: not Path(protocol.lost(str(team.root))).exists())
        assert all(prompts_beside(team, {}))
        assert by(team)[-6:] == ["watcher"] * 6


def test_no_prompt_is_lost_while_the_watcher_is_killed(team: Vault) -> None:
    with watched(team) as state:
        os.kill(state["pid"], signal.SIGSTOP)
        hook(team, {"LESSONS_DEADLINE_MS": "12000"})
        assert Path(protocol.lost(str(team.root))).exists()
        os.kill(state["pid"], signal.SIGKILL)
        environ = {"LESSONS_DEADLINE_MS": "12000", **AUTOSTART}
        assert all(prompts_beside(team, environ))
        soon(lambda: not Path(protocol.lost(str(team.root))).exists())
        hook(team, environ, session_id="last")
        assert by(team)[-1] == "watcher"


def test_a_command_notices_within_a_second_that_the_watcher_hangs(team: Vault) -> None:
    root = str(team.root)
    question = {"ask": "search.find", "with": {"query": {"text": HEAP}}}
    with watched(team) as state:
        assert protocol.ask_alive(root, question)["answer"]["hits"]
        os.kill(state["pid"], signal.SIGSTOP)
        for _ in range(2):  # the second time nobody is asked
            assert "node-heap.md" in run("lessons", "search", HEAP, cwd=team.root).out
            with pytest.raises(protocol.NoAnswer, match="has not answered since"):
                protocol.ask_alive(root, question)
        os.kill(state["pid"], signal.SIGCONT)
        assert "node-heap.md" in hook(team).out
        os.utime(protocol.lost(root), (0, 0))  # a minute later it is asked again
        assert protocol.ask_alive(root, question)["answer"]["hits"]
        assert not Path(protocol.lost(root)).exists()


def test_an_answer_that_comes_too_late_was_not_given(team: Vault) -> None:
    with watched(team) as state:
        os.kill(state["pid"], signal.SIGSTOP)
        hook(team, {"LESSONS_DEADLINE_MS": "200"}, session_id="one")
        os.kill(state["pid"], signal.SIGCONT)
        assert run("lessons", "search", HEAP, cwd=team.root).code == 0  # it has answered by now
        assert by(team) == []
        assert "node-heap.md" in hook(team, session_id="one").out


@pytest.mark.parametrize(
    "said",
    [
        b'{"protocol": 999, "answer": {"x": 1}}\n',
        b"garbage\n",
        b"",
    ],
)
def test_whatever_else_listens_there_the_hook_answers_itself(team: Vault, said: bytes) -> None:
    """A watcher of another version, or no watcher at all."""
    listening = bound()
    listening.listen()

    def answer() -> None:
        connection, _ = listening.accept()
        with connection:
            protocol.receive(connection, time.monotonic() + 5)
            connection.sendall(said)

    other = threading.Thread(target=answer)
    other.start()
    assert "node-heap.md" in hook(team).out
    other.join()
    listening.close()
    assert by(team) == ["process"]


def test_killed_at_random_moments_no_hook_fails_and_the_index_is_right(team: Vault) -> None:
    """The short form of what benchmarks/ does for a minute."""
    chance = random.Random(5)
    over = threading.Event()
    ended: list[tuple[int, str]] = []

    def ask(number: int) -> None:
        event = {"hook_event_name": "UserPromptSubmit", "prompt": HEAP, "cwd": str(team.root)}
        while not over.is_set():
            done = run("lessons-hook", cwd=team.root, stdin=json.dumps(event), env=AUTOSTART)
            ended.append((done.code, done.err))

    def change() -> None:
        while not over.is_set():
            number = chance.randrange(20)
            file = team.lessons_dir / f"area/{number}.md"
            if file.exists() and chance.random() < 0.3:
                file.unlink()
            else:
                write(file, lesson_text(f"Lesson {number}", f"Version {chance.random()}."))
            time.sleep(chance.random() * 0.3)

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(2)]
    threads.append(threading.Thread(target=change))
    for thread in threads:
        thread.start()
    for _ in range(4):
        soon(lambda: watchers_of(team.root), seconds=120)
        time.sleep(chance.random() * 4)  # any moment of its work
        for pid in watchers_of(team.root):
            os.kill(pid, signal.SIGKILL)
    over.set()
    for thread in threads:
        thread.join()
    assert set(ended) == {(0, "")}
    with watched(team):
        soon_same_as_a_rebuild(team)
    assert_same_as_a_rebuild(team)
