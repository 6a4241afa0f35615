"""Hooks in the settings of a user and of a project: one event, two processes, one answer."""

from __future__ import annotations

import json
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import BIN
from tests.support.files import lesson_text
from tests.support.indexed import copy_of
from tests.support.watchers import watched
from vault_index.hotpath.hook_event import Event
from vault_index.recall import respond
from vault_index.store import delivery
from vault_index.vault import Vault

HEAP = "our webpack build dies with heap out of memory at hashing chunks and sourcemaps"
FILES = {f"devops/heap-{n}.md": lesson_text(f"Heap {n}", f"{HEAP}: raise it, {n}.") for n in "abcd"}
FILES |= {f"ops/{n}.md": lesson_text(f"Rotate {n}", f"Rotate the logs of {n}.") for n in range(20)}
BEGAN = time.time()  # the process of a hook


@pytest.fixture
def team(shelf: Path, tmp_path: Path, text_only: None) -> Vault:
    return copy_of(shelf, tmp_path / "team")


def event(vault: Vault, **values: Any) -> dict[str, Any]:
    asked = {"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": HEAP}
    return asked | {"cwd": str(vault.root), "began": BEGAN} | values


def side_by_side(vault: Vault, asked: dict[str, Any]) -> list[str]:
    """Start two hooks as an agent does, all before the first has ended; give what each printed."""
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    started = [subprocess.Popen([BIN / "lessons-hook"], cwd=vault.root, **pipes) for _ in range(2)]
    with ThreadPoolExecutor(2) as pool:  # each gets its event at once
        data = json.dumps(asked)
        return list(pool.map(lambda hook: str(hook.communicate(data, timeout=120)[0]), started))


def answered(vault: Vault, asked: dict[str, Any]) -> bool:
    return respond.respond(vault, Event(**asked), by="process", ms=0) is not None


@pytest.mark.slow
def test_two_real_hooks_of_one_prompt_inject_once(team: Vault) -> None:
    with watched(team):
        counts = [
            sum(map(bool, side_by_side(team, event(team, session_id=f"watched-{number}"))))
            for number in range(3)
        ]
    # none where a busy machine has the watcher answer too late
    assert set(counts) <= {0, 1}
    assert sum(counts)


@pytest.mark.slow
def test_two_real_hooks_without_a_watcher_inject_once(team: Vault) -> None:
    assert sum(map(bool, side_by_side(team, event(team)))) == 1


@pytest.mark.slow
def test_a_prompt_that_is_typed_again_later_is_answered(team: Vault) -> None:
    assert answered(team, event(team))
    assert answered(team, event(team, began=time.time()))  # with the lesson that it has not had
    assert not answered(team, event(team, began=time.time()))  # nothing new


def test_a_hook_that_comes_to_its_own_answer_has_the_watchers_claim(team: Vault) -> None:
    home, root = team.config.home, team.root
    asked = Event(**event(team, pid=123))
    assert delivery.claim(home, root, asked)  # by the watcher, whose answer came too late
    assert delivery.claim(home, root, asked)
    assert not delivery.claim(home, root, Event(**event(team, pid=124)))


def test_the_agents_own_id_tells_prompts_apart(team: Vault) -> None:
    assert answered(team, event(team, prompt_id="one"))
    assert not answered(team, event(team, prompt_id="one", began=time.time() + 9))
    assert answered(team, event(team, prompt_id="two"))
