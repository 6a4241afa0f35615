"""With the real agents: what `lessons install AGENT` wires up reaches the model.

The programs come from npm; their models are stubs on loopback, so nothing leaves the machine.
"""

from __future__ import annotations

import html
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.agents.conftest import PACKAGES
from tests.agents.model_apis import ModelApis
from tests.support import documents
from tests.support.claude_code import texts
from tests.support.commands import BIN, Ran, run
from tests.support.files import write
from tests.support.three_lessons import HEAP
from tests.support.watchers import soon, watched
from vault_index.vault import Vault
from vault_index.watch import launch

pytestmark = [pytest.mark.other_agents, pytest.mark.timeout(600)]


@pytest.fixture
def apis() -> Iterator[ModelApis]:
    with ModelApis() as serving:
        yield serving


@pytest.fixture
def home(team: Vault, own_world: Path) -> Iterator[Path]:
    yield own_world
    launch.stop()


def world(home: Path, **more: str) -> dict[str, str]:
    """Return all that an agent sees of the world."""
    places = [Path(sys.executable).parent, Path(shutil.which("node") or "").parent]
    return {
        "PATH": os.pathsep.join([*map(str, places), "/usr/bin", "/bin"]),
        "HOME": str(home),
        "LESSONS_HOME": str(home),
        "LESSONS_EMBEDDER": "none",
        "LESSONS_WATCH_AUTOSTART": "false",
        # a busy CI machine is no reason to be silent; the agent itself waits for five seconds
        "LESSONS_DEADLINE_MS": "5000",
        "LESSONS_FAILURE_DEADLINE_MS": "5000",
        **more,
    }


def turn(environ: dict[str, str], folder: Path, *words: str | Path) -> Ran:
    """Run one turn of an agent in a world made from nothing."""
    assigned = (f"{name}={value}" for name, value in environ.items())
    return run("env", "-i", *assigned, *words, cwd=folder, timeout=180)


def asked(apis: ModelApis, prompt: str) -> str:
    """Return all that the model was sent with a prompt, the first time."""
    everything = ["\n".join(texts(request)) for request in apis.requests]
    return next(text for text in everything if prompt in text)


def assert_injected(text: str, block: str) -> None:
    """Check that a model got the block of its prompt, and the block of the session's start."""
    assert block in text
    assert "lessons/devops/docker/layers.md" in text
    assert text.count("<lessons>") == 2


def block_of(team: Vault, prompt: str) -> str:
    block = run("lessons", "recall", prompt, cwd=team.root).out.strip()
    assert "raise the heap" in block
    return block


# Codex


@pytest.fixture
def codex(programs: dict[str, Path], apis: ModelApis, home: Path, team: Vault) -> Path:
    """Codex with our hooks and the stub as its model; nothing is trusted yet."""
    run("lessons", "install", "codex", "--journal", "--failures", cwd=team.root)
    stub = f'name = "stub"\nbase_url = "{apis.url}/v1"\nwire_api = "responses"\n'
    write(
        home / ".codex" / "config.toml",
        f'model = "m"\nmodel_provider = "stub"\n\n[model_providers.stub]\n{stub}',
    )
    return programs["codex"]


def ask_codex(codex: Path, home: Path, folder: Path, prompt: str) -> Ran:
    return turn(world(home), folder, codex, "exec", "--skip-git-repo-check", prompt)


@contextmanager
def app_server(codex: Path, home: Path, folder: Path) -> Iterator[Callable[..., Any]]:
    """Codex as an editor runs it; call a method, and wait for its answer or for a notification."""
    process = subprocess.Popen(
        [codex, "app-server"],
        cwd=folder,
        env=world(home),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    numbers = itertools.count(1)

    def call(method: str, until: str = "", **params: Any) -> Any:
        assert process.stdin
        assert process.stdout
        asked = {"id": next(numbers), "method": method, "params": params}
        process.stdin.write(json.dumps(asked) + "\n")
        process.stdin.flush()
        for answer in map(json.loads, process.stdout):
            if answer.get("method") == until or (not until and answer.get("id") == asked["id"]):
                return answer.get("result")
        return pytest.fail(f"Codex ended before it answered {method}")

    try:
        call("initialize", clientInfo={"name": "test", "version": "1"})
        yield call
    finally:
        process.kill()
        process.communicate()


def trust_hooks(codex: Path, home: Path, folder: Path) -> None:
    """Trust what Codex lists, as `/hooks` does: the hash of each hook in its settings."""
    with app_server(codex, home, folder) as call:
        hooks = call("hooks/list", cwds=[str(folder)])["data"][0]["hooks"]
    assert {hook["trustStatus"] for hook in hooks} == {"untrusted"}
    # what its dialog shows in place of "Unnamed hook" (issue 55, row 15)
    assert all(hook["statusMessage"].startswith("lessons: ") for hook in hooks)
    assert {hook["eventName"] for hook in hooks} == {
        *("userPromptSubmit", "sessionStart", "subagentStart", "stop", "postToolUse")
    }
    with (home / ".codex" / "config.toml").open("a") as settings:
        for hook in hooks:
            key, digest = json.dumps(hook["key"]), hook["currentHash"]
            settings.write(f'\n[hooks.state.{key}]\ntrusted_hash = "{digest}"\n')


def test_codex(codex: Path, apis: ModelApis, home: Path, team: Vault) -> None:
    ask_codex(codex, home, team.root, HEAP)
    assert "<lessons>" not in asked(apis, HEAP)  # skipped without a word, until somebody trusts it
    apis.requests.clear()
    trust_hooks(codex, home, team.root)
    block = block_of(team, HEAP)
    assert ask_codex(codex, home, team.root, HEAP).out.strip() == "ok"
    assert_injected(asked(apis, HEAP), block)
    apis.requests.clear()
    ask_codex(codex, home, team.root, "thanks, looks good")
    assert asked(apis, "thanks, looks good").count("<lessons>") == 1
    # the end of its turn was noted; those of a program that runs Codex are not a person's
    assert (home / "journal" / ".grown" / "lock").exists()


LINE = "This team keeps 3 lessons"


def contexts(apis: ModelApis, prompt: str) -> list[str]:
    """Return all that the model was sent each time that a prompt was the last that it got."""
    last = [request["input"][-1].get("content") for request in apis.requests]
    asked = zip(apis.requests, last, strict=True)
    return ["\n".join(texts(request)) for request, content in asked if prompt in str(content)]


def test_codex_hears_of_the_vault_whenever_a_context_begins(
    codex: Path, apis: ModelApis, home: Path, team: Vault
) -> None:
    """Issue 54, "Must show": at its start, after a compaction, after `/clear` and in a subagent."""
    trust_hooks(codex, home, team.root)
    task = "print the log of the nightly build"
    with app_server(codex, home, team.root) as call:

        def thread(source: str) -> str:
            started = call("thread/start", cwd=str(team.root), sessionStartSource=source)
            return str(started["thread"]["id"])

        def hears(id: str, prompt: str) -> int:
            typed = [{"type": "text", "text": prompt}]
            call("turn/start", until="turn/completed", threadId=id, input=typed)
            return asked(apis, prompt).count(LINE)

        first = thread("startup")
        assert hears(first, "print the log") == 1
        call("thread/compact/start", until="turn/completed", threadId=first)
        assert hears(first, "print the next log") == 1  # the earlier line is gone
        cleared = thread("clear")  # as `/clear` does
        assert hears(cleared, "print another log") == 1
        apis.subagents.append(task)
        hears(cleared, "have another print it")
        soon(lambda: len(contexts(apis, task)) == 1)
    (of_subagent,) = contexts(apis, task)
    assert of_subagent.count(LINE) == 1
    assert "print another log" not in of_subagent


CORRECTED = "No, never retry ERR_UPLOAD_409 in upload_batch(), the server has the batch already"
LOST = "FATAL: ERR_UPLOAD_409 from upload_batch"
ENTRIES = [
    {
        "title": "Never retry ERR_UPLOAD_409 in upload_batch()",
        "type": "bug_fix",
        "what_to_do": "Leave a 409 of `upload_batch()` alone, the server has taken the batch already.",
        "quotes": [CORRECTED],
    },
    {
        "title": "Read ERR_UPLOAD_409 as a success in the log",
        "type": "bug_fix",
        "what_to_do": "Count `ERR_UPLOAD_409` among the successes of `upload.log`.",
        "quotes": [LOST],
        "failing_lines": [LOST],
    },
]


def test_codex_proposes_what_its_session_taught(
    codex: Path, apis: ModelApis, home: Path, team: Vault
) -> None:
    write(home / "entries.json", json.dumps(ENTRIES))
    turns = {
        "upload the batch": f"echo '{LOST}' >&2; exit 3",
        CORRECTED: "true",
        "use $lessons-learn": f"{BIN / 'lessons'} propose {home / 'entries.json'}",
    }
    with app_server(codex, home, team.root) as call:
        unsafe = {"sandbox": "danger-full-access", "approvalPolicy": "never"}
        thread = call("thread/start", cwd=str(team.root), **unsafe)["thread"]["id"]
        for prompt, command in turns.items():
            apis.commands.append(command)
            typed = [{"type": "text", "text": prompt}]
            call("turn/start", until="turn/completed", threadId=thread, input=typed)
    assert "Call `propose` of the MCP server `lessons`" in asked(apis, "use $lessons-learn")
    listed = run("lessons", "review", "--json", cwd=team.root).json
    cards = {each["title"]: (each["quotes"], each["fires_on_error"]) for each in listed}
    never, success = (each["title"] for each in ENTRIES)
    assert cards == {never: ([CORRECTED], []), success: ([LOST], [LOST])}


MESSAGE = "greenlet_spawn has not been called"
ADVICE = "Use selectinload: a lazy attribute was read outside of the session."
COMMANDS = [
    f"echo 'sqlalchemy.exc.MissingGreenlet: {MESSAGE}' >&2; exit 3",
    f"echo 'sqlalchemy.exc.MissingGreenlet: {MESSAGE}'",
]


@contextmanager
def told_of_greenlets(team: Vault) -> Iterator[None]:
    """A watcher for a vault with a lesson about a message."""
    lesson = f"---\ntitle: Lazy loads\nfires_on_error: [{MESSAGE}]\n---\n{ADVICE}\n"
    write(team.lessons_dir / "development" / "greenlet.md", lesson)
    run("lessons", "index", cwd=team.root)
    with watched(team, LESSONS_EMBEDDER="none"):
        yield


def told(apis: ModelApis) -> bool:
    """Whether the lesson was in what the model was sent after a command, and not before."""
    asked, after = ["\n".join(texts(request)) for request in apis.requests]
    assert MESSAGE in after
    assert ADVICE not in asked
    return ADVICE in after


def test_codex_is_told_after_a_command_that_fails(
    codex: Path, apis: ModelApis, home: Path, team: Vault
) -> None:
    trust_hooks(codex, home, team.root)
    unsafe = ("--sandbox", "danger-full-access")
    with told_of_greenlets(team):
        apis.commands += COMMANDS[1:]
        calm = turn(world(home), team.root, codex, "exec", *unsafe, "print the log")
        assert not told(apis)
        apis.requests.clear()
        apis.commands += COMMANDS[:1]
        shown = turn(world(home), team.root, codex, "exec", *unsafe, "run the api tests")
        assert told(apis)
    for ran in (calm, shown):  # Codex tells the user of each run, whatever came of it
        lines = [line for line in ran.err.splitlines() if "PostToolUse" in line]
        assert lines == ["hook: PostToolUse", "hook: PostToolUse Completed"]
    assert ADVICE not in shown.out + shown.err


# Gemini CLI

GEMINI = {
    "security": {"auth": {"selectedType": "gemini-api-key"}},
    "privacy": {"usageStatisticsEnabled": False},
}


def test_gemini(programs: dict[str, Path], apis: ModelApis, home: Path, team: Vault) -> None:
    write(home / ".gemini" / "settings.json", json.dumps(GEMINI))
    run("lessons", "install", "gemini", cwd=team.root)
    block = block_of(team, HEAP)
    environ = world(home, GEMINI_API_KEY="dummy", GOOGLE_GEMINI_BASE_URL=apis.url)
    words = ("-m", "gemini-2.5-flash", "--skip-trust", "-p")
    assert turn(environ, team.root, programs["gemini"], *words, HEAP).out.strip() == "ok"
    assert_injected(html.unescape(asked(apis, HEAP)), block)  # it escapes what comes from hooks
    apis.requests.clear()
    turn(environ, team.root, programs["gemini"], *words, "thanks, looks good")
    assert html.unescape(asked(apis, "thanks, looks good")).count("<lessons>") == 1


# opencode


def test_opencode(programs: dict[str, Path], apis: ModelApis, home: Path, team: Vault) -> None:
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "stub",
        "options": {"baseURL": f"{apis.url}/v1", "apiKey": "dummy"},
        "models": {"m": {"name": "m"}},
    }
    settings = {"model": "stub/m", "provider": {"stub": provider}}
    write(home / ".config" / "opencode" / "opencode.json", json.dumps(settings))
    run("lessons", "install", "opencode", cwd=team.root)
    block = block_of(team, HEAP)
    quiet = {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"}
    environ = world(home, **quiet)
    assert turn(environ, team.root, programs["opencode"], "run", HEAP).out.strip() == "ok"
    assert_injected(asked(apis, HEAP), block)


# Copilot CLI


@pytest.fixture
def copilot(apis: ModelApis, home: Path) -> dict[str, str]:
    """The world of Copilot CLI with the stub as its model, and nothing else on the network."""
    provider = {"COPILOT_PROVIDER_BASE_URL": f"{apis.url}/v1", "COPILOT_MODEL": "m"}
    return world(home, COPILOT_OFFLINE="true", COPILOT_AUTO_UPDATE="false", **provider)


def test_copilot(
    programs: dict[str, Path], apis: ModelApis, copilot: dict[str, str], team: Vault
) -> None:
    run("lessons", "install", "copilot", cwd=team.root)
    run("lessons", "install", "claude", "--project", cwd=team.root)  # which it runs, too
    block = block_of(team, HEAP)
    words = ("--trust-folder", "-s", "-p")
    assert turn(copilot, team.root, programs["copilot"], *words, HEAP).out.strip() == "ok"
    assert_injected(asked(apis, HEAP), block)


# the MCP server, by each agent's own command


def test_the_mcp_server_is_one_line(programs: dict[str, Path], home: Path, team: Vault) -> None:
    environ = world(home, GEMINI_API_KEY="dummy", GEMINI_CLI_TRUST_WORKSPACE="true")
    lines = re.findall(r"`(\w+ mcp add [^`]+)`", documents.page("agents"))
    assert {line.split()[0] for line in lines} == set(PACKAGES)
    (home / ".codex").mkdir()
    for line in lines:
        name, *words = line.split()
        turn(environ, team.root, programs[name], *words)
    settings = (home / ".codex" / "config.toml").read_text()
    assert '[mcp_servers.lessons]\ncommand = "lessons"\nargs = ["mcp"]' in settings
    files = [folder / ".gemini" / "settings.json" for folder in (team.root, home)]
    (file,) = filter(Path.exists, files)
    added = json.loads(file.read_text())
    added["mcpServers"]["lessons"]["timeout"] = 120_000  # without it Gemini waits for five seconds
    write(file, json.dumps(added))
    listed = turn(environ, team.root, programs["gemini"], "mcp", "list")
    assert "lessons mcp (stdio) - Connected" in listed.out + listed.err
