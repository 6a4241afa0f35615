"""With the real agent: each context begins with the line that tells of the vault.

The CLI comes from npm; its model is a stub on loopback, so nothing leaves the machine.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import three_lessons
from tests.support.claude_code import OpenSession, environment
from tests.support.commands import run
from tests.support.messages_api import Blocks, MessagesApi, last_text, text, tool_use
from vault_index.vault import Vault
from vault_index.watch import launch

pytestmark = [pytest.mark.claude_code, pytest.mark.timeout(900)]

FILES = three_lessons.FILES
LINE = "This team keeps 3 lessons"
DELEGATED, TASK = "have somebody else print the log", "print the log of the nightly build"


@pytest.fixture(autouse=True)
def no_watcher_stays(own_world: Path) -> Iterator[None]:
    yield
    launch.stop()


def answer(request: dict[str, Any]) -> Blocks:
    """Answer as a model that has a subagent do one of its prompts."""
    last = last_text(request)
    if DELEGATED in last and "tool_result" not in last:
        kind = {"description": "print it", "subagent_type": "general-purpose"}
        return [tool_use("Agent", prompt=TASK, **kind)]
    return [text("ok")]


def test_each_context_begins_with_it(
    claude: Path, api: MessagesApi, team: Vault, own_world: Path
) -> None:
    """Issue 54, "Must show": at startup, after a compaction, after `/clear` and in a subagent."""
    run("lessons", "install", "claude", cwd=team.root)
    api.answer = answer
    world = environment(api, own_world) | {"LESSONS_EMBEDDER": "none"}

    def contexts(prompt: str) -> list[str]:
        """Return what the model was sent with a prompt, each time that it was sent for the first."""
        return [json.dumps(one["messages"]) for one in api.requests if prompt in last_text(one)]

    with OpenSession(claude, team.root, world, "Agent") as session:
        for prompt in (
            *("print the log", "/compact", "print the next log"),
            *("/clear", "print another log", DELEGATED),
        ):
            session.say(prompt)
            session.answer()
    heard = ("print the log", "print the next log", "print another log", TASK)
    assert {prompt: contexts(prompt)[0].count(LINE) for prompt in heard} == dict.fromkeys(heard, 1)
    assert "print the log" not in contexts("print another log")[0]  # `/clear` emptied the context
    assert "another log" not in contexts(TASK)[0]
