"""Transcripts as Claude Code writes them, small."""

from __future__ import annotations

import json
import os
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

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
    ids = [str(uuid.uuid5(_NAMES, f"{name}/{number}/{step}")) for step in range(6)]
    file = run.get("file", "login.py")
    result = {
        "type": "tool_result",
        "tool_use_id": f"t{number}a",
        "content": run.get("output", "ok"),
        "is_error": run.get("status", "0") != "0",
    }
    edit = {"file_path": f"{folder}/{file}", "old_string": "a", "new_string": "b"}
    contents: list[tuple[str, Any]] = [
        ("user", prompt),
        ("assistant", [{"type": "tool_use", "id": f"t{number}a", "name": "Bash",
                        "input": {"command": run.get("command", "make test")}}]),
        ("user", [result]),
        ("assistant", [{"type": "tool_use", "id": f"t{number}b", "name": "Edit", "input": edit}]),
        ("user", [{"type": "tool_result", "tool_use_id": f"t{number}b", "content": "done"}]),
        ("assistant", [{"type": "text", "text": run.get("answer", "The redirect works now.")}]),
    ]  # fmt: skip
    return [
        {
            "type": role,
            "uuid": ids[step],
            "parentUuid": ids[step - 1] if step else None,
            "timestamp": f"{DAY}T{10 + number // 60:02}:{number % 60:02}:{step:02}.000Z",
            "sessionId": session_id(name),
            "cwd": folder,
            "gitBranch": "main",
            "version": "2.1.329",
            "message": {"role": role, "content": content},
        }
        for step, (role, content) in enumerate(contents)
    ]


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
