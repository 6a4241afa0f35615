"""With the real agent: what `lessons install claude` wires up reaches the model, whole.

The CLI comes from npm; the messages API is a stub on loopback, so nothing leaves the machine.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support import claude_code
from tests.support.commands import run
from tests.support.files import commit, lesson_text
from tests.support.messages_api import MessagesApi
from vault_index.vault import Vault
from vault_index.watch import launch

pytestmark = [pytest.mark.claude_code, pytest.mark.slow, pytest.mark.slow, pytest.mark.timeout(600)]

FILES = {
    "devops/ci-cd/node-heap.md": lesson_text(
        "Node runs out of memory in the CI build",
        "When the build dies with heap out of memory, raise the heap:\n"
        "`NODE_OPTIONS=--max-old-space-size=4096`.",
    ),
    "devops/docker/layers.md": lesson_text(
        "Docker rebuilds every layer because of one COPY",
        "Copy the lock file and install before you copy the sources, so that the layer is cached.",
    ),
    "conventions/dates.md": lesson_text("Dates are UTC", "Store dates in UTC, show local ones."),
}


@pytest.fixture
def team(make_vault: Callable[..., Vault], with_model: Path) -> Iterator[Vault]:
    """A vault in a repository whose last commit is about Docker's layers, indexed, hooks installed."""
    vault = make_vault(FILES)
    commit(vault.root, "docker: stop rebuilding every layer when one source file changes")
    run("lessons", "index", cwd=vault.root)
    run("lessons", "install", "claude", cwd=vault.root)
    yield vault
    launch.stop()  # the hooks started a watcher, as they should


def ask(claude: Path, api: MessagesApi, folder: Path, home: Path, prompt: str) -> str:
    """Run one turn in a world made from nothing; return all that the model was sent."""
    environment = claude_code.environment(api, home)
    clean = dict.fromkeys(os.environ, "") | environment
    done = run("env", "-i", *(f"{k}={v}" for k, v in environment.items()), claude, "-p", prompt,
               cwd=folder, env=clean, timeout=120)  # fmt: skip
    assert done.out.strip() == "ok"
    turns = [request for request in api.requests if prompt in json.dumps(request["messages"])]
    assert turns, "the prompt never reached the model"
    return "\n".join(claude_code.texts([turns[0]["messages"], turns[0].get("system", [])]))


def test_a_session_starts_with_what_the_project_is_doing(
    claude: Path, api: MessagesApi, team: Vault, with_model: Path
) -> None:
    sent = ask(claude, api, team.root, with_model, "thanks, looks good")
    assert sent.count("<lessons>") == 1  # of the session's start; the prompt itself gets nothing
    block = sent.partition("<lessons>")[2].partition("</lessons>")[0]
    assert "lessons/devops/docker/layers.md" in block
    assert "Copy the lock file and install before you copy the sources" in block
