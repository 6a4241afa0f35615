"""Transcripts of Claude Code, written by hand: a `Talk` adds a record a line."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

SESSION = "3f2a91c0-7c1e-4a53-9d0b-2f6f0f5f9a11"
FOLDER = "/home/ada/code/shop"


class Talk:
    """A session as its transcript. Each step takes a second; `lines` are the transcript's."""

    def __init__(self, session: str = SESSION, folder: str = FOLDER, **values: Any) -> None:
        self._values = {
            "sessionId": session,
            "cwd": folder,
            "gitBranch": "main",
            "version": "2.1.30",
        }
        self._values |= values
        self._count = itertools.count(1)
        self.lines: list[bytes] = []

    def add(self, record: dict[str, Any], **values: Any) -> str:
        """Add a record; return its uuid."""
        number = next(self._count)
        at = f"2026-11-20T20:{number // 60:02}:{number % 60:02}.000Z"
        record = {"uuid": f"u{number}", "timestamp": at} | self._values | record | values
        self.lines.append(json.dumps(record, ensure_ascii=False).encode() + b"\n")
        return str(record["uuid"])

    def prompt(self, content: Any, **values: Any) -> str:
        """Add what a person typed."""
        return self.add({"type": "user", "message": {"role": "user", "content": content}}, **values)

    def says(self, text: str, **values: Any) -> str:
        """Add a text of the agent."""
        return self._block({"type": "text", "text": text}, **values)

    def calls(
        self, tool: str, result: str | None = "", *, is_error: bool = False, **given: Any
    ) -> str:
        """Add a call of a tool with its result, none if that is None; return the uuid of the call."""
        call = f"t{len(self.lines)}"
        uuid = self._block({"type": "tool_use", "id": call, "name": tool, "input": given})
        if result is not None:
            block = {"type": "tool_result", "tool_use_id": call, "content": result}
            self.prompt([block | ({"is_error": True} if is_error else {})])
        return uuid

    def runs(self, command: str, output: str = "", *, status: int = 0) -> str:
        """Add a command of the shell."""
        output = f"Exit code {status}\n{output}" if status else output
        return self.calls("Bash", output, is_error=status != 0, command=command)

    def edits(self, path: str, old: str = "a", new: str = "b") -> str:
        """Add a change of a file of the folder."""
        file = f"{self._values['cwd']}/{path}"
        return self.calls("Edit", "updated", file_path=file, old_string=old, new_string=new)

    def write(self, file: Path) -> Path:
        """Write the transcript."""
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"".join(self.lines))
        return file

    def _block(self, block: dict[str, Any], **values: Any) -> str:
        return self.add({"type": "assistant", "message": {"content": [block]}}, **values)
