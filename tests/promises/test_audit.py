"""Each feature that the product promises, tried at its door: see the rows in `audited`."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import anyio
import pytest
from click.testing import CliRunner
from mcp import Client
from mcp_types import TextContent

from tests.promises.audited import ASKED, COMMANDS, HEAP_ID, HOOKS, HTTP, MCP, Row
from tests.support.commands import run
from tests.support.conversations import about_redirects, about_retries
from tests.support.files import commit, write
from tests.support.homes import add_model, locked, make_home, shared_folder
from tests.support.places import REPO, TESTS
from tests.support.proposing import proposed
from tests.support.serving import Answering, answering
from vault_index.edit import init
from vault_index.entrypoints.cli import main
from vault_index.entrypoints.mcp.agent import ServedAgent
from vault_index.entrypoints.mcp.tools import build
from vault_index.vault import open_vault

pytestmark = pytest.mark.slow

HEAP = """\
---
title: Node runs out of memory in the CI build
categories: [devops/ci-cd, development/frontend]
tags: [ci, node]
type: bug_fix
confidence: 5
created: 2026-03-01
fires_on: [the bundle step is killed]
silent_on: [what is a heap data structure]
fires_on_error: ["FATAL ERROR: Reached heap limit Allocation failed"]
applies_to: ["webpack/**"]
---
When the frontend build in CI dies with heap out of memory, set NODE_OPTIONS=--max-old-space-size=4096.

## Why

The runner has two gigabytes, and the bundler asks for three.

## Related

- prerequisite: Staging deploys need the VPN
"""
VPN = """\
---
title: Staging deploys need the VPN
categories: [devops/deployment]
tags: [vpn]
type: project_rule
confidence: 4
created: 2026-09-01
---
The deploy job hangs at connecting unless the runner is on the VPN: set VPN=1 in the job.

## Related

- supersedes: the old gateway
"""
PATTERN = """\
---
title: {}
categories: [backend]
tags: [retries]
type: code_pattern
confidence: 4
created: 2026-08-01
---
{}
"""
GONE = """\
---
title: The quarterly ledger is closed at noon
fires_on: [when is the quarterly ledger closed]
anchors: [store/gone.py#retry]
---
It is closed at noon, by its timer.
"""
STAGED = "---\ntitle: A key\n---\nThe key is AKIAIOSFODNN7EXAMQLE of the account.\n"
SECTIONS = """\
---
tags: [redis]
categories: [data/redis]
---
## Lesson: Redis evicts keys silently

With allkeys-lru, Redis evicts session keys under memory pressure; use volatile-lru for sessions.

## Lesson: The dashboards want UTC
categories: [ops/monitoring]
tags: [grafana]

Grafana shifts the night's figures by two hours unless the panel's time zone is UTC.
"""
SKILL = """\
---
name: release-notes
description: Write release notes from merged pull requests. Use when somebody prepares a release.
categories: [docs/releases]
---
# Release notes

List the merged pull requests since the last tag, and group them by label.
"""


@dataclass(frozen=True)
class World:
    """A vault with all kinds of content, in a user's home with a journal, and what it answers."""

    root: Path
    home: Path
    http: Answering
    records: tuple[str, ...]

    def filled(self, text: str) -> str:
        """Return a question with the ids of this world."""
        return text.replace("{session}", self.records[0][:8]).replace("{record}", self.records[0])


def settings_of_docs() -> Iterator[tuple[str, str]]:
    """Yield each setting of docs/settings.md that has a default, with it."""
    for line in (REPO / "docs" / "settings.md").read_text().splitlines():
        row = re.match(r"\| `([\w.]+)`(?: \*)? \| `(.+?)` \|", line)
        if row:
            yield row[1], row[2]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, model_home: Path) -> Iterator[World]:
    """The world of this module, which all processes that run its tests share."""
    top = shared_folder(tmp_path_factory) / "audit"
    home, root = top / "home", top / "team"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(home))
        patch.setenv("LESSONS_HOME", str(home))
        patch.setenv("LESSONS_WATCH_AUTOSTART", "false")
        with locked(top):
            if not (top / "hits.json").exists():
                add_model(make_home(home), model_home)
                patch.chdir(_folder_of_vault(root, home))
                hits = _filled(root)
                (top / "hits.json").write_text(hits)
        hits = json.loads((top / "hits.json").read_text())
        with answering(root, home) as server:
            yield World(root, home, server, tuple(hit["id"] for hit in hits["hits"]))


def _folder_of_vault(root: Path, home: Path) -> Path:
    """Write the files of the world."""
    init(root)
    run("git", "init", "-q", "-b", "main", cwd=root)
    least = "\n[skills]\nleast_lessons = 2\nleast_uses = 0\n"
    settings = root / "lessons" / "vault.toml"
    settings.write_text(settings.read_text() + least)
    for path, text in (
        (f"{HEAP_ID}.md", HEAP),
        ("devops/deployment/vpn.md", VPN),
        ("data/redis.md", SECTIONS),
        ("backend/backoff.md", PATTERN.format("Wait between tries", "Double the pause.")),
        ("backend/jitter.md", PATTERN.format("Spread the tries", "Add a random part to it.")),
        ("ops/gone.md", GONE),
        ("audit/again.md", "---\ntitle: Lyrebirds\n---\nA lyrebird sings.\n"),
    ):
        write(root / "lessons" / path, text)
    write(root / "skills" / "release-notes" / "SKILL.md", SKILL)
    asked = {"query": ASKED, "relevant": [HEAP_ID], "kind": "near"}
    write(root / "queries.jsonl", json.dumps(asked))
    failure = {"command": "npm run build", "error": "Reached heap limit", "relevant": [HEAP_ID]}
    write(root / "failures.jsonl", json.dumps({**failure, "kind": "near"}))
    write(root / "store" / "upload.py", "RETRIES = 5\n")
    write(home / "journal" / "recorded", "*\n")
    (root.parent / "mailer").mkdir()
    about_redirects(root)
    about_retries(root.parent / "mailer")
    return root


def _filled(root: Path) -> str:
    """Fill the world by the commands themselves, in this process; return a search of its journal."""

    def lessons(*words: str) -> str:
        done = CliRunner().invoke(main, words)
        assert done.exit_code == 0, done.output
        return done.stdout

    lessons("import", "--write", str(TESTS / "courses" / "introduction_to_ai.txt"))
    commit(root, "the vault")
    lessons("index")
    lessons("journal", "import", "--since", "all")
    proposed(open_vault(root), "Audit of a proposal", "Kangaroos hop.")
    event = {"session_id": "first", "cwd": str(root), "prompt": ASKED}
    run("lessons-hook", cwd=root, stdin=json.dumps(event))
    staged = write(root / "lessons" / "audit" / "staged.md", STAGED)
    run("git", "add", staged, cwd=root)
    staged.write_text("---\ntitle: A key\n---\nAsk Ada for the key.\n")  # on the disk alone
    return lessons("journal", "search", "--json", "redirect")


@pytest.fixture
def world(made: World, own_world: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setenv("HOME", str(made.home))
    monkeypatch.setenv("LESSONS_HOME", str(made.home))
    monkeypatch.chdir(made.root)
    return made


@pytest.mark.parametrize("row", COMMANDS, ids=lambda row: row.feature)
def test_the_command_line_has(row: Row, world: World) -> None:
    words = shlex.split(world.filled(row.question))
    done = CliRunner().invoke(main, words, input=row.given["stdin"])
    assert done.exit_code == row.code, done.output
    assert re.search(row.answer, done.output or "\n", re.MULTILINE), done.output


@pytest.mark.parametrize("row", HTTP, ids=lambda row: row.feature)
def test_http_has(row: Row, world: World) -> None:
    method, _, path = world.filled(row.question).partition(" ")
    done = world.http.ask(method.lstrip("!"), path, token=method[0] != "!", **row.given)
    assert done.status_code == row.code, done.text
    assert re.search(row.answer, done.text), done.text


@pytest.mark.parametrize("row", MCP, ids=lambda row: row.feature)
def test_mcp_has(row: Row, world: World) -> None:
    given = {
        key: world.filled(value) if isinstance(value, str) else value
        for key, value in row.given.items()
    }

    async def ask() -> tuple[bool, str]:
        async with Client(build(ServedAgent(str(world.root)))) as client:
            result = await client.call_tool(row.question, given)
            (content,) = result.content
            assert isinstance(content, TextContent)
            return bool(result.is_error), content.text

    is_error, text = anyio.run(ask)
    assert (is_error, bool(re.search(row.answer, text))) == (bool(row.code), True), text


@pytest.mark.parametrize("row", HOOKS, ids=lambda row: row.feature)
def test_the_hook_has(row: Row, world: World) -> None:
    event = {"session_id": row.feature, "cwd": str(world.root), **row.given}
    done = run("lessons-hook", cwd=world.root, stdin=json.dumps(event))
    assert re.search(row.answer, done.out), done


@pytest.mark.parametrize(("key", "default"), list(settings_of_docs()))
def test_a_setting_is_set_and_shown(
    key: str, default: str, made: World, own_world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(made.root)
    monkeypatch.delenv("LESSONS_WATCH_AUTOSTART")
    done = CliRunner().invoke(main, ["config", "set", key, default.strip('"')])
    assert done.exit_code == 0, done.output
    listed = json.loads(CliRunner().invoke(main, ["config", "show", "--json"]).stdout)
    (shown,) = [each for each in listed if each["name"] == key]
    assert json.dumps(shown["value"]) == default
    assert shown["origin"] == str(own_world / "config.toml")


def test_nothing_that_the_docs_list_is_left_out() -> None:
    rows = re.findall(
        r"(?m)^\| `(\S+)` \|(?:.* Also (.+)\.)?", (REPO / "docs/commands.md").read_text()
    )
    commands = [
        f"{row} {each}".strip()
        for row, also in rows
        for each in re.findall(r"[\w-]+", also) or [""]
    ]
    typed_lines = [row.question for row in COMMANDS]
    elsewhere = {
        "hook",
        "open",
        "watch",
        "config edit",
        "model remove",
        "review each",
        "review",
        "journal",
    }
    assert [
        command
        for command in commands
        if command not in elsewhere and not any(line.startswith(command) for line in typed_lines)
    ] == []
    docs = (REPO / "docs/mcp.md").read_text()
    called_with = {(row.question, key) for row in MCP for key in row.given}
    rows = re.findall(r"(?m)^\| `(\w+)` \| .+ \| (.+) \|$", docs)
    documented = {(tool, name) for tool, names in rows for name in re.findall(r"\w+", names)}
    assert documented - called_with <= {
        (tool, name)
        for tool in ("learn_get", "learn_status", "search_journal")
        for name in ("project", "cursor")
    }
