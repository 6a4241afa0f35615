"""Transcripts as Claude Code writes them, small."""

from __future__ import annotations

import json
import os
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.support.conversations import Talk

DAY = (datetime.now(UTC) - timedelta(days=3)).strftime("%Y-%m-%d")  # of all turns
_NAMES = uuid.UUID("0b3a2b91-7c4d-4e5f-8a6b-1c2d3e4f5a6b")


def session_id(name: str) -> str:
    """Return the id of a session that a test calls by a name."""
    return str(uuid.uuid5(_NAMES, name))


def turn(
    name: str, number: int, prompt: str, folder: str = "/code/shop", **run: str
) -> list[dict[str, Any]]:
    """Return the records of a turn: a prompt, a command with its output, an edit, the last words.

    `run` may name `command`, `output`, `status` ("1" for a failure), `file`, `answer`.
    """
    began = datetime.fromisoformat(f"{DAY}T10:00:00+00:00") + timedelta(minutes=number)
    talk = Talk(session_id(name), folder, began=began, uuid=(f"{name}/{number}/" + "{}").format)
    talk.prompt(prompt)
    command, failed = run.get("command", "make test"), run.get("status", "0") != "0"
    talk.calls("Bash", run.get("output", "ok"), is_error=failed, command=command)
    talk.edits(run.get("file", "login.py"))
    talk.says(run.get("answer", "The redirect works now."))
    return [json.loads(line) for line in talk.lines]


def write_transcript(home: Path, name: str, *turns: list[dict[str, Any]], mtime: int = 0) -> Path:
    """Write turns as the transcript of a session, and return its path."""
    file = home / ".claude" / "projects" / "-code-shop" / f"{session_id(name)}.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(record) for records in turns for record in records]
    file.write_text("".join(f"{line}\n" for line in lines))
    if mtime:
        os.utime(file, (mtime, mtime))
    return file


def bytes_below(folder: Path) -> dict[str, bytes]:
    """Return all files below a folder: path -> bytes."""
    return {
        str(file): file.read_bytes()
        for file in sorted(folder.rglob("*"))
        if file.is_file() and not file.is_symlink()
    }
