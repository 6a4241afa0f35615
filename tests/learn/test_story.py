"""The whole loop with the real agent: a session teaches, a person accepts, the next session is better.

Claude Code comes from npm; its model is a stub on loopback. It fails a build, is corrected, and makes it
pass. At the end of the session a model, a stub too, proposes a lesson. It is accepted at a terminal, is
in the context of the next session's matching prompt, and counts as used.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.learn.materials import an_entry, good_answer
from tests.support.claude_code import OpenSession, environment
from tests.support.commands import run
from tests.support.files import commit, lesson_text, write
from tests.support.messages_api import Blocks, MessagesApi, last_text, text, tool_use
from tests.support.model_server import ModelServer
from tests.support.terminals import at_terminal
from tests.support.watchers import soon
from vault_index.vault import Vault
from vault_index.watch import launch

pytestmark = [pytest.mark.claude_code, pytest.mark.slow, pytest.mark.timeout(900)]

ASKED = "our production build dies with heap out of memory, make ./build.sh pass"
CORRECTED = (
    "no, never touch machine.cfg: build.sh reads NODE_OPTIONS from build.env only, so set"
    " --max-old-space-size=4096 there"
)
LATER = "the production build dies with heap out of memory again"
LEARNED = an_entry(
    title="Set NODE_OPTIONS in build.env, never in machine.cfg",
    summary="When the production build dies with heap out of memory, set"
    " `NODE_OPTIONS=--max-old-space-size=4096` in build.env: `build.sh` reads nothing else.",
    explanation="",
    problem="",
    fires_on=["build.sh runs out of heap in production"],
    silent_on=[],
    quotes=[CORRECTED],
)
RAISE = "echo NODE_OPTIONS=--max-old-space-size=4096 > build.env"
BUILD = """\
#!/bin/sh
. ./build.env
if [ "$NODE_OPTIONS" != "--max-old-space-size=4096" ]; then
  echo "FATAL ERROR: Reached heap limit: JavaScript heap out of memory" >&2
  exit 134
fi
echo "build passed"
"""


def answer(request: dict[str, Any]) -> Blocks:
    """Answer as a model that first raises the wrong limit, and then the right one."""
    last = last_text(request)
    said = json.dumps(request["messages"])
    if "build passed" in last:
        return [text("The build passes: build.env sets NODE_OPTIONS, which is all that it reads.")]
    if "heap limit" in last and CORRECTED not in said and LATER not in said:
        return [tool_use("Bash", command="echo memory=8192 > machine.cfg")]
    if "tool_result" in last and "memory=8192" in said and CORRECTED not in said:
        return [text("I raised the memory of the machine to 8192 MB in machine.cfg.")]
    if "tool_result" in last and "heap limit" not in last:
        return [tool_use("Bash", command="./build.sh")]
    if CORRECTED in last or LATER in last:
        return [text("I set NODE_OPTIONS in build.env."), tool_use("Bash", command=RAISE)]
    if ASKED in last:
        return [tool_use("Bash", command="./build.sh")]
    return [text("ok")]


@pytest.fixture
def clone(make_vault: Callable[..., Vault], with_model: Path, tmp_path: Path) -> Iterator[Vault]:
    """A fresh clone of a team's repository, whose sessions are recorded and learned from."""
    team = make_vault({"conventions/dates.md": lesson_text("Dates are UTC", "Store dates in UTC.")})
    write(team.root / "build.sh", BUILD).chmod(0o755)
    write(team.root / "build.env", "NODE_OPTIONS=\n")
    write(team.lessons_dir / "vault.toml", "session_sources = []\n")  # so that prompts get all
    commit(team.root, "A build")
    folder = tmp_path / "clone"
    run("git", "clone", "-q", team.root, folder, cwd=tmp_path)
    write(with_model / "config.toml", '[learn]\nauto = true\nmodel = "ollama:small"\n')
    run("lessons", "index", cwd=folder)
    run("lessons", "install", "claude", "--journal", cwd=folder)
    vault = Vault(folder, team.config)
    yield vault
    launch.stop()  # the hooks started a watcher, as they should


def hold_session(claude: Path, folder: Path, world: dict[str, str], *prompts: str) -> None:
    with OpenSession(claude, folder, world) as session:
        for prompt in prompts:
            session.say(prompt)
            session.answer()


def proposals(folder: Path) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = run("lessons", "review", "list", "--json", cwd=folder).json
    return listed


def test_a_session_becomes_a_lesson_that_the_next_session_takes(
    claude: Path, api: MessagesApi, clone: Vault, with_model: Path
) -> None:
    api.answer = answer
    with ModelServer() as server:
        server.answer = lambda _: json.dumps(good_answer("entries", LEARNED))
        world = environment(api, with_model) | {"OLLAMA_HOST": server.url}
        hold_session(claude, clone.root, world, ASKED, CORRECTED)
        assert "build passed" in run("./build.sh", cwd=clone.root).out
        soon(lambda: proposals(clone.root), seconds=120)  # at the end of the session, unasked
    (proposal,) = proposals(clone.root)
    assert proposal["quotes"] == [CORRECTED]

    code, shown = at_terminal(
        *("lessons", "review", proposal["id"], "--commit"),
        cwd=clone.root,
        typed=[("[q]uit", "a")],
        size=(50, 100),
    )
    assert code == 0, shown
    assert "build.env" in shown
    body = run("git", "log", "-1", "--format=%B", cwd=clone.root).out
    assert "Learned-From: session" in body
    (path,) = run("git", "show", "--name-only", "--format=", "HEAD", cwd=clone.root).out.split()
    lesson = path.removeprefix("lessons/").removesuffix(".md")
    assert "source: session" in (clone.root / path).read_text("utf-8")
    run("git", "checkout", "-q", "build.env", cwd=clone.root)

    soon(
        lambda: (launch.status(clone.root) or {}).get("lessons") == 2
    )  # a person is slower than the watcher

    api.requests.clear()
    hold_session(claude, clone.root, world, LATER)
    sent = next(each for each in api.requests if LATER in json.dumps(each["messages"]))
    blocks = json.dumps(sent["messages"]).split("hook additional context: <lessons>")[1:]
    assert any(path in block and "build.env" in block for block in blocks)
    assert "build passed" in run("./build.sh", cwd=clone.root).out

    entry = run("lessons", "show", lesson, "--json", cwd=clone.root).json
    assert entry["uses"] >= 1
