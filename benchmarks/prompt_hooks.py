"""Compare hooks of a prompt in open sessions of the real Claude Code: a process, or an MCP server's tool.

    python -m benchmarks.prompt_hooks                # some minutes
    python -m benchmarks.prompt_hooks --short        # one session of a kind

A session is `claude -p` that reads prompts from a pipe; the messages API is a stub on loopback. What is
measured is the time from a prompt to its request at the stub, without hooks and with each kind of hook,
in turn, so that all kinds have the same machine. The watcher runs, each prompt has one lesson, and
the first prompt of a session is apart from the others: the server may not be connected yet.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks import instruments
from benchmarks.instruments import HOOK, LESSONS, Row
from tests.support import claude_code
from tests.support.files import lesson_text, write
from tests.support.indexed import full_text_vault
from tests.support.messages_api import Blocks, MessagesApi, text
from tests.support.places import PLUGIN
from vault_index.vault import Vault, open_vault

SERVED = ", server connected"
KINDS = ("no hooks", "command", f"no hooks{SERVED}", f"command by sh{SERVED}")
SUBJECTS = "invoice parser,telescope mount,harbour crane,violin tuner,glacier probe,bakery oven,"
SUBJECTS += "parking meter,tulip nursery,ferry timetable,chess engine"


def main() -> None:
    """Run the measurement and print it."""
    parser = argparse.ArgumentParser(description="Compare the hooks of a prompt.")
    parser.add_argument("--short", action="store_true", help="one session of a kind, not four")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="lessons-hooks-") as name:
        scratch = Path(name)
        home = scratch / "home"
        home.mkdir()
        os.environ |= {"LESSONS_HOME": str(home), "LESSONS_EMBEDDER": "none"}
        claude = claude_code.installed(Path(tempfile.gettempdir()) / "lessons-claude-code")
        lessons = {f"{number}.md": lesson_text(one.title(), f"{prompt(one)}: restart it twice.")
                   for number, one in enumerate(SUBJECTS.split(","))}  # fmt: skip
        vault = open_vault(full_text_vault(scratch / "team", lessons))
        with instruments.watched(vault), MessagesApi() as api:
            list(instruments.shown(measure(vault, claude, api, home, 1 if options.short else 4)))


def prompt(subject: str) -> str:
    """Return a prompt that one lesson answers."""
    return f"the {subject} hangs after its update"


def measure(vault: Vault, claude: Path, api: MessagesApi, home: Path, rounds: int) -> Iterator[Row]:
    """Return the rows of the table."""
    first, later = defaultdict[str, list[float]](list), defaultdict[str, list[float]](list)
    served = defaultdict[str, int](int)
    bare = []
    _session(KINDS[-1], vault, claude, api, home)  # once for the page cache
    for _ in range(rounds):
        for kind in KINDS:
            bare.append(_seconds_of([sys.executable, "-c", "pass"]))
            seconds, answered = _session(kind, vault, claude, api, home)
            first[kind].append(seconds[0])
            later[kind] += seconds[1:]
            served[f"{kind}: first prompts"] += answered[0]
            served[f"{kind}: other prompts"] += sum(answered[1:])
    base = statistics.median(bare)
    yield "python -c pass, p50", 1000 * base, "ms"
    for kind in KINDS:
        for name, times in (("first prompt", first[kind]), ("other prompts", later[kind])):
            yield f"{kind}, {name}: p50", 1000 * statistics.median(times), "ms"
            of_none = statistics.median((first if times is first[kind] else later)["no hooks"])
            added = statistics.median(times) - of_none
            yield f"{kind}, {name}: beyond no hooks, of python -c pass", added / base, "x"
    for name, count in served.items():
        of = rounds * (1 if name.endswith("first prompts") else len(SUBJECTS.split(",")) - 1)
        yield f"{name} with a lesson, of {of}", count, ""


def _session(
    kind: str, vault: Vault, claude: Path, api: MessagesApi, home: Path
) -> tuple[list[float], list[bool]]:
    """Return the seconds from each prompt to its request, and whether a lesson came with it."""
    environ = claude_code.environment(api, home) | {"LESSONS_EMBEDDER": "none"}
    shutil.rmtree(home / ".claude", ignore_errors=True)
    write(home / ".claude" / "settings.json", json.dumps(_settings(kind)))
    arrived: list[tuple[float, int, str]] = []

    def answer(request: dict[str, Any]) -> Blocks:
        words = json.dumps(request["messages"])
        arrived.append((time.monotonic(), words.count("<lessons>"), words))
        return [text("ok")]

    api.answer = answer
    seconds, answered, before = [], [], 0
    with claude_code.OpenSession(claude, vault.root, environ, *_options(kind, home)) as session:
        for subject in SUBJECTS.split(","):
            began = time.monotonic()
            session.say(prompt(subject))
            session.answer()
            came, blocks, _ = next(one for one in arrived if one[0] > began and subject in one[2])
            seconds.append(came - began)
            answered.append(blocks > before)
            before = blocks
    return seconds, answered


def _settings(kind: str) -> dict[str, Any]:
    hook: dict[str, Any] = {"type": "command", "command": str(HOOK), "args": [], "timeout": 5}
    if kind.startswith("command by sh"):  # as the plugin has it
        hook |= {"command": "sh", "args": [str(PLUGIN / "run.sh"), "prompt"]}
    return (
        {} if kind.startswith("no hooks") else {"hooks": {"UserPromptSubmit": [{"hooks": [hook]}]}}
    )


def _options(kind: str, home: Path) -> list[str]:
    if not kind.endswith(SERVED):
        return []
    servers = {"mcpServers": {"lessons": {"command": str(LESSONS), "args": ["mcp"]}}}
    return ["--mcp-config", str(write(home / "servers.json", json.dumps(servers)))]


def _seconds_of(command: list[str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, check=True)
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
