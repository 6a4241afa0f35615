"""Whatever goes wrong, nobody sees a traceback: a sentence, and the path of a log, at every door."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from vault_index.vault import Vault

pytestmark = pytest.mark.slow

FILES = {"heap.md": "Raise the heap.\n"}
SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
# the program, with one function of it broken: its module, its name, then the words of the command
PROGRAM = """
import importlib, runpy, sys

def broken(*_, **__):
    raise ZeroDivisionError("of SECRET")

setattr(importlib.import_module(sys.argv[1]), sys.argv[2], broken)
sys.argv[1:] = sys.argv[3:]
runpy.run_module("vault_index", run_name="__main__", alter_sys=True)
""".replace("SECRET", SECRET)


def started(vault: Vault, *words: str, fds: Sequence[int] = ()) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *words], cwd=vault.root, text=True, pass_fds=fds,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def is_noted(shown: str, home: Path) -> bool:
    """Whether what is shown is a sentence that names the log, and the log has the traceback."""
    log = home / "bugs.log"
    written = log.read_text("utf-8")
    assert "Traceback (most recent call last):" in written
    assert SECRET not in written
    assert log.stat().st_mode & 0o777 == 0o600
    assert "Traceback" not in shown
    assert SECRET not in shown
    return "a bug of lessons: ZeroDivisionError in broken:" in shown and str(log) in shown


def test_at_the_command_line(team: Vault, own_world: Path) -> None:
    words = ("vault_index.share.history", "log", "log", "heap")
    process = started(team, *words)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (1, "")
    lines = err.splitlines()
    assert [line.partition(":")[0] for line in lines] == ["Error", "Try"]
    assert is_noted(err, own_world)


def test_over_mcp(team: Vault, own_world: Path) -> None:
    with started(team, "vault_index.entrypoints.mcp.texts", "lesson", "mcp") as process:
        client = {"protocolVersion": "2025-06-18", "capabilities": {},
                  "clientInfo": {"name": "test", "version": "1"}}  # fmt: skip
        get = {"name": "learn_get", "arguments": {"id": "heap"}}
        read = {"uri": "lesson://heap"}
        asked = [("initialize", client), ("tools/call", get), ("resources/read", read)]
        said = []
        assert process.stdin
        assert process.stdout
        for id, (method, params) in enumerate(asked):
            message = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
            process.stdin.write(json.dumps(message) + "\n")
            process.stdin.flush()
            said.append(process.stdout.readline())
        process.stdin.close()
        err = process.stderr.read() if process.stderr else ""
    assert is_noted(said[1], own_world)
    assert "Next: go on without it" in said[1]
    assert "error" in json.loads(said[2])
    assert is_noted(err, own_world)
    assert err.count("\n") == 1


def test_a_server_and_its_threads(team: Vault, own_world: Path) -> None:
    words = ("vault_index.entrypoints.web.search", "prepare", "serve", "--port", "0")
    with started(team, *words) as process:
        assert process.stderr
        assert is_noted(process.stderr.readline() + process.stderr.readline(), own_world)
        process.terminate()


def test_the_watcher_says_it_in_its_log(team: Vault, own_world: Path) -> None:
    lock = os.open(own_world / "lock", os.O_CREAT | os.O_RDWR)
    try:
        words = ("--vault", str(team.root), "watch", "--lock", str(lock))
        process = started(team, "vault_index.watch.watcher", "Watcher", *words, fds=[lock])
        out, err = process.communicate(timeout=60)
    finally:
        os.close(lock)
    assert process.returncode == 1
    assert is_noted(out, own_world)
    assert err == ""
