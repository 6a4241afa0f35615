"""Conversations with Claude Code, written as the agent writes them: a transcript that grows by turns."""

from __future__ import annotations

import json
import os
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5


class Conversation:
    """A session in a folder; each method appends to its transcript. Times go on by ten seconds."""

    def __init__(
        self, folder: Path, name: str, *, branch: str = "main", began: datetime | None = None
    ) -> None:
        self.folder = folder
        self.branch = branch
        self.id = str(uuid5(NAMESPACE_URL, f"{folder.name}/{name}"))
        self._at = began or datetime.now(UTC) - timedelta(hours=1)
        self._last: str | None = None
        self._lines = 0
        home = os.environ.get("CLAUDE_CONFIG_DIR") or f"{os.environ['HOME']}/.claude"
        encoded = re.sub(r"[^A-Za-z0-9]", "-", str(folder))
        self.file = Path(home, "projects", encoded, f"{self.id}.jsonl")
        self.file.parent.mkdir(parents=True, exist_ok=True)

    def asks(self, prompt: str) -> Conversation:
        """A person types a prompt."""
        return self._append("user", {"role": "user", "content": prompt}, promptSource="user")

    def says(self, text: str) -> Conversation:
        """The agent answers."""
        return self._assistant({"type": "text", "text": text})

    def runs(self, command: str, output: str, *, failed: bool = False) -> Conversation:
        """The agent runs a command in the shell."""
        return self._tool("Bash", {"command": command}, output, failed)

    def edits(self, path: str, old: str, new: str) -> Conversation:
        """The agent changes a file."""
        values = {"file_path": str(self.folder / path), "old_string": old, "new_string": new}
        return self._tool("Edit", values, f"The file {path} has been updated.", failed=False)

    def calls(self, tool: str, output: str) -> Conversation:
        """The agent calls a tool of a server, which answers with a text."""
        return self._tool(tool, {}, output, failed=False)

    def event(self, name: str, **more: Any) -> dict[str, Any]:
        """Return what a hook of the agent gets on stdin."""
        return {
            "hook_event_name": name,
            "session_id": self.id,
            "transcript_path": str(self.file),
            "cwd": str(self.folder),
            **more,
        }

    def _tool(self, name: str, values: dict[str, Any], output: str, failed: bool) -> Conversation:
        call = f"toolu_{self._lines:04d}"
        self._assistant({"type": "tool_use", "id": call, "name": name, "input": values})
        result = {"type": "tool_result", "tool_use_id": call, "content": output}
        content = [{**result, "is_error": failed}]
        return self._append("user", {"role": "user", "content": content})

    def _assistant(self, block: dict[str, Any]) -> Conversation:
        message = {"id": f"msg_{self._lines:04d}", "role": "assistant", "content": [block]}
        return self._append("assistant", message)

    def _append(self, type: str, message: dict[str, Any], **more: Any) -> Conversation:
        self._at += timedelta(seconds=10)
        self._lines += 1
        uuid = str(uuid5(NAMESPACE_URL, f"{self.id}/{self._lines}"))
        record = {
            "parentUuid": self._last,
            "isSidechain": False,
            "userType": "external",
            "cwd": str(self.folder),
            "sessionId": self.id,
            "version": "2.1.329",
            "gitBranch": self.branch,
            "type": type,
            "message": message,
            "uuid": uuid,
            "timestamp": self._at.strftime("%Y-%m-%dT%H:%M:%S.000Z"),
            **more,
        }
        self._last = uuid
        with self.file.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(record) + "\n")
        return self


def about_redirects(folder: Path, **options: Any) -> Conversation:
    """A finished session: a bug, a failing test, the correction, the test that passes."""
    talk = Conversation(folder, "redirects", **options)
    talk.asks("The login redirect loses the query string, please correct that")
    talk.runs("pytest tests/test_login.py", "FAILED test_redirect_keeps_query", failed=True)
    talk.edits("store/login.py", "redirect(path)", "redirect(path + query)")
    talk.runs("pytest tests/test_login.py", "1 passed")
    return talk.says("The redirect dropped the query because it was built from the path alone.")


def about_retries(folder: Path, **options: Any) -> Conversation:
    """A session that decided something."""
    talk = Conversation(folder, "retries", **options)
    talk.asks("How many times should the uploader retry?")
    talk.says("Three retries with exponential backoff would be usual. Shall I do that?")
    talk.asks("No, use five retries with a fixed pause of two seconds")
    talk.edits("store/upload.py", "RETRIES = 3", "RETRIES = 5")
    return talk.says("The uploader retries five times with a fixed pause of two seconds.")
