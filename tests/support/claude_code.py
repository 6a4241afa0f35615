"""The real Claude Code, from npm, in a world made from nothing; its model is a stub on loopback."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.support import npm
from tests.support.commands import Ran, run
from tests.support.messages_api import MessagesApi
from tests.support.places import REPO

CLAUDE = "@anthropic-ai/claude-code@2.1.329"


def installed(folder: Path) -> Path:
    """Return the real command, installed once into a folder."""
    if named := os.environ.get("LESSONS_TEST_CLAUDE"):
        return Path(named)
    return npm.program("claude", CLAUDE, folder)


def environment(api: MessagesApi, home: Path) -> dict[str, str]:
    """Return all that the agent sees of the world."""
    places = [str(Path(sys.executable).parent), str(Path(shutil.which("node") or "").parent)]
    return {
        "PATH": os.pathsep.join([*places, "/usr/bin", "/bin"]),
        "HOME": str(home),
        "LESSONS_HOME": str(home),
        # a busy CI machine is no reason to be silent; the agent itself waits for five seconds
        "LESSONS_DEADLINE_MS": "5000",
        "LESSONS_FAILURE_DEADLINE_MS": "5000",
        "ANTHROPIC_API_KEY": "sk-ant-dummy",
        "ANTHROPIC_BASE_URL": api.url,
        "DISABLE_TELEMETRY": "1",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_ERROR_REPORTING": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }


def install_plugin(claude: Path, environ: dict[str, str], folder: Path) -> None:
    """Install the plugin of this repository, as the README says, from its folder as the marketplace."""
    run_in(environ, claude, "plugin", "marketplace", "add", REPO, cwd=folder)
    run_in(environ, claude, "plugin", "install", "lessons@lessons-vault", cwd=folder)


def run_in(environ: dict[str, str], *command: str | Path, cwd: Path, timeout: float = 120) -> Ran:
    """Run a program that sees nothing of the world but an environment."""
    variables = [f"{name}={value}" for name, value in environ.items()]
    return run("env", "-i", *variables, *command, cwd=cwd, timeout=timeout)


class OpenSession:
    """A session that stays open for prompts: `claude -p` that reads them from a pipe, line by line.

    `records` are the lines that it printed. `options` follow the tools that need no permission.
    """

    def __init__(self, claude: Path, folder: Path, environ: dict[str, str], *options: str) -> None:
        self.records: list[dict[str, Any]] = []
        words = ("--input-format", "stream-json", "--output-format", "stream-json", "--verbose")
        self.process = subprocess.Popen(
            [claude, "-p", *words, "--allowedTools", "Bash", *options],
            cwd=folder,
            env=environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def say(self, prompt: str) -> None:
        """Send a prompt, and wait for nothing."""
        assert self.process.stdin is not None
        message = {"type": "user", "message": {"role": "user", "content": prompt}}
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def answer(self) -> str:
        """Return the agent's answer, when the turn is over."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            record: dict[str, Any] = json.loads(line)
            self.records.append(record)
            if record.get("type") == "result":
                return str(record.get("result"))
        raise AssertionError("the agent ended without an answer")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the session as a user does."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait(60)
        self.process.stdout.close()


def texts(value: Any) -> Iterator[str]:
    """Yield all texts that a model was sent."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from (text for inner in value.values() for text in texts(inner))
    elif isinstance(value, list):
        yield from (text for inner in value for text in texts(inner))
