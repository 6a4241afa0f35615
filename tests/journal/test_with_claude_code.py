"""With the real agent: a session is found when it ended, and when it was killed.

The CLI comes from npm; its model is a stub on loopback, so nothing leaves the machine.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.support.claude_code import OpenSession, environment
from tests.support.commands import run
from tests.support.files import commit, lesson_text
from tests.support.journals import a_journal, sessions
from tests.support.messages_api import Blocks, MessagesApi, last_text, text, tool_use
from tests.support.watchers import soon
from vault_index.vault import Vault
from vault_index.watch import launch

pytestmark = [pytest.mark.claude_code, pytest.mark.timeout(900)]

HEAP = "our build dies with heap out of memory, raise the heap"
RETRIES = "uploads should be retried five times, with a pause that doubles"
RAISED = (
    "Raised the heap of the build to 4096 MB in build.env: webpack needed more than the default."
)
DECIDED = "Uploads are now retried five times; the pause between two attempts doubles."
BY_MEANING = {
    "node process was killed because the machine had too little RAM": "heap",
    "how many attempts does a file transfer get before it is given up": "retried",
}


def answer(request: dict[str, Any]) -> Blocks:
    """Answer as a model that raises the heap with a tool, and then decides on retries."""
    last = last_text(request)
    if "retried five times" in last:
        return [text(DECIDED)]
    if "tool_result" in last:
        return [text(RAISED)]
    if "raise the heap" in last:
        command = "echo NODE_OPTIONS=--max-old-space-size=4096 > build.env"
        return [text("The heap is set in build.env."), tool_use("Bash", command=command)]
    return [text("ok")]


@pytest.fixture
def project(make_vault: Callable[..., Vault], with_model: Path) -> Iterator[Vault]:
    """A vault in a repository whose sessions are recorded."""
    lesson = lesson_text("Dates are UTC", "Store dates in UTC, show local ones.")
    vault = make_vault({"conventions/dates.md": lesson})
    commit(vault.root, "dates are stored in UTC")
    run("lessons", "index", cwd=vault.root)
    run("lessons", "install", "claude", "--journal", cwd=vault.root)
    yield vault
    launch.stop()  # the hooks started a watcher, as they should


@pytest.fixture
def world(api: MessagesApi, with_model: Path) -> dict[str, str]:
    """What the agent sees of the world; its model answers."""
    api.answer = answer
    return environment(api, with_model)


def search(folder: Path, query: str) -> list[dict[str, Any]]:
    printed = run("lessons", "journal", "search", query, "--json", cwd=folder).json
    hits: list[dict[str, Any]] = printed["hits"]
    return hits


def is_found(folder: Path, query: str, word: str) -> bool:
    """Whether a record with a word is among the first three hits."""
    return any(word in json.dumps(hit) for hit in search(folder, query)[:3])


def transcripts(home: Path) -> set[Path]:
    return set((home / ".claude" / "projects").rglob("*.jsonl"))


def is_written(home: Path, prompt: str) -> bool:
    """Whether a prompt is in a transcript as something that was said."""
    lines = (line for file in transcripts(home) for line in file.read_text("utf-8").splitlines())
    records = (json.loads(line) for line in lines if prompt in line)
    return any(record["type"] == "user" for record in records)


def two_prompts(claude: Path, folder: Path, world: dict[str, str]) -> None:
    """Hold a session of two prompts, with a tool call in between, and end it."""
    with OpenSession(claude, folder, world) as session:
        session.say(HEAP)
        assert session.answer() == RAISED
        session.say(RETRIES)
        assert session.answer() == DECIDED
    assert (folder / "build.env").exists(), "the tool was not called"


def test_a_session_is_found_by_meaning_and_the_next_one_begins_with_it(
    claude: Path, api: MessagesApi, project: Vault, with_model: Path, world: dict[str, str]
) -> None:
    two_prompts(claude, project.root, world)
    for query, word in BY_MEANING.items():
        soon(partial(is_found, project.root, query, word), 120)
    hits = search(project.root, next(iter(BY_MEANING)))
    assert {hit["kind"] for hit in hits} <= {"prompt", "observation", "summary"}
    assert all(hit["uuids"] for hit in hits)
    (session,) = sessions(a_journal(with_model)).values()
    assert "build.env" in str(session.records)

    api.requests.clear()
    with OpenSession(claude, project.root, world) as opened:
        opened.say("thanks, what is next?")
        assert opened.answer() == "ok"
    sent = json.dumps([api.requests[0]["messages"], api.requests[0].get("system", [])])
    block = sent.partition("<lessons>")[2].partition("</lessons>")[0]
    assert "retried five times" in block
    assert "heap" in block


def test_a_session_that_was_killed_is_there_too(
    claude: Path, api: MessagesApi, project: Vault, with_model: Path, world: dict[str, str]
) -> None:
    api.held = lambda request: "retried five times" in last_text(request)
    session = OpenSession(claude, project.root, world)
    try:
        with session:
            session.say(HEAP)
            assert session.answer() == RAISED
            session.say(RETRIES)
            soon(lambda: any(api.held(request) for request in api.requests))
            soon(lambda: is_written(with_model, RETRIES))  # the agent writes a moment later
            session.process.kill()  # in the middle of a turn: no hook says anything
            session.process.wait()
    finally:
        api.release.set()
    for query, word in BY_MEANING.items():
        soon(partial(is_found, project.root, query, word), 120)
