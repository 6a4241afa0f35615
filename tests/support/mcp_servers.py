"""Real processes of `lessons mcp`, and what a client of them needs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters
from mcp_types import CallToolResult, TextContent

WORDS = ["-m", "vault_index"]
AUTOSTART = {"LESSONS_WATCH_AUTOSTART": "true"}


def over_stdio(folder: Path, *words: str, **env: str) -> StdioServerParameters:
    """Return the command of a server that an agent starts in a folder."""
    environ = {**os.environ, **env}
    return StdioServerParameters(
        command=sys.executable, args=[*WORDS, "mcp", *words], cwd=folder, env=environ
    )


@contextmanager
def over_http(folder: Path, *words: str, **env: str) -> Iterator[str]:
    """Run a server on a free port; gives its address. It ends as the user ends it, without a word."""
    process = subprocess.Popen(
        [sys.executable, *WORDS, "mcp", "--http", "--port", "0", *words],
        cwd=folder,
        env={**os.environ, **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield process.stdout.readline().split()[-1]
    finally:
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (0, "", "")


async def call(client: Client, tool: str, **arguments: Any) -> str:
    """Call a tool and return its text; an error fails."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, text_of(result)
    return text_of(result)


async def refusal(client: Client, tool: str, **arguments: Any) -> str:
    """Call a tool that answers with an error, and return its text."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error, text_of(result)
    return text_of(result)


def text_of(result: CallToolResult) -> str:
    """Return the one text of a result. It has no structure: Claude Code would show only that."""
    assert result.structured_content is None
    [content] = result.content
    assert isinstance(content, TextContent)
    return content.text
