"""All transcripts of this machine are taken in: interrupted or not, the same is there after it."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.journal.agent_files import DAY, turn, write_transcript
from tests.support.journals import sessions
from vault_index import state
from vault_index.journal import importing
from vault_index.journal.journal import Journal

NOW = int(time.time())
IMPORT = """
from vault_index import config
from vault_index.journal import importing
from vault_index.journal.journal import Journal
importing.import_all(Journal(config.load()), since=0)
"""


def test_it_is_quick_and_safe_to_repeat(journal: Journal, own_world: Path) -> None:
    for number in range(4):
        name = f"s{number}"
        write_transcript(own_world, name, turn(name, 1, "Fix it"), mtime=NOW - number * 86400 * 20)
    rollout = own_world / ".codex" / "sessions" / "2026" / "11" / "20"
    rollout.mkdir(parents=True)
    meta = {"id": "0198c0de-0000-7000-8000-00000000abcd", "cwd": "/code/api"}
    asked = {"type": "user_message", "message": "Why does the build fail?"}
    lines = [("session_meta", meta), ("event_msg", asked)]
    (rollout / "rollout-2026-11-20T10-00-00-0198c0de-0000-7000-8000-00000000abcd.jsonl").write_text(
        "".join(
            json.dumps({"timestamp": f"{DAY}T10:00:00Z", "type": kind, "payload": payload}) + "\n"
            for kind, payload in lines
        )
    )
    seen: list[tuple[int, int]] = []
    dry = importing.import_all(journal, dry_run=True)
    assert sessions(journal) == {}
    done = importing.import_all(journal, progress=lambda *step: seen.append(step))
    assert (done.sessions, done.older, done.projects) == (3, 2, {"shop": 2, "api": 1})
    assert (dry.sessions, dry.prompts, dry.projects) == (done.sessions, done.prompts, done.projects)
    assert seen[-1][0] == seen[-1][1] == done.bytes
    before = sessions(journal)
    assert importing.import_all(journal).unchanged == 3
    assert importing.import_all(journal, since=0).sessions == 2
    assert before.items() <= sessions(journal).items()
    name = "s9"
    write_transcript(own_world, name, turn(name, 1, "Fix it", "/code/other"), mtime=NOW)
    assert importing.import_all(journal, project="shop").sessions == 0
    assert importing.import_all(journal, project="other").projects == {"other": 1}


@pytest.mark.slow
def test_killed_at_any_moment_it_ends_as_if_it_never_was(journal: Journal, own_world: Path) -> None:
    for number in range(40):
        name = f"s{number}"
        turns = [turn(name, each, f"Do step {each} of {name}") for each in range(1, 9)]
        write_transcript(own_world, name, *turns, mtime=NOW - 4000 + number)
    command = [sys.executable, "-c", IMPORT]
    began = time.monotonic()
    subprocess.run(command, check=True)
    seconds = time.monotonic() - began
    whole = sessions(journal)
    assert len(whole) == 40
    (own_world / state.FILE).unlink()
    chance = random.Random(7)
    for _ in range(int(os.environ.get("KILLS", "4"))):
        started = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        time.sleep(chance.uniform(0.2, seconds))
        started.kill()
        started.wait()
        assert sessions(journal).items() <= whole.items()
    subprocess.run(command, check=True)
    assert sessions(journal) == whole
