"""A bug of the server is one line on stderr, wherever it is, and never the text of the error."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

pytestmark = pytest.mark.slow

SERVER = """
import asyncio, os, sys
from pathlib import Path
from vault_index.entrypoints import guard
from vault_index.entrypoints.web import server
from vault_index.vault import open_vault

async def broken(*_):
    raise {error}("a secret")

guard._body = broken
server.serve(
    open_vault(Path(sys.argv[1])), "127.0.0.1", 0, "t" * 20,
    lambda address, code: print(address, flush=True), lambda line: print(line, file=sys.stderr),
)
sys.stderr.flush()
os._exit(0)  # as `lessons serve` ends: a library would abort where Python ends its threads
"""


@pytest.mark.parametrize("error", ["RuntimeError", "asyncio.CancelledError"])
def test_an_error_outside_of_the_application_is_noted(tmp_path: Path, error: str) -> None:
    (tmp_path / "lessons").mkdir()
    (tmp_path / "lessons" / "vault.toml").touch()
    code = SERVER.format(error=error)
    with subprocess.Popen(
        [sys.executable, "-c", code, tmp_path],
        env={"LESSONS_HOME": str(tmp_path / "home"), "LESSONS_WATCH_AUTOSTART": "false"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        with httpx.Client(trust_env=False, timeout=60) as client:
            assert client.get(f"{address}/api/health").status_code == 500
        process.terminate()
        _, noted = process.communicate(timeout=60)
    assert process.returncode == 0
    name = error.rpartition(".")[2]
    said = (
        rf"error: a bug of lessons: {name} in broken:\d+; report it with the end of \S+/bugs.log\n"
    )
    assert re.fullmatch(said, noted)
