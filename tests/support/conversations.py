"""Sessions with Claude Code, as it writes them: a `Talk` holds its lines, a `Conversation` its file."""

from __future__ import annotations

import itertools
import json
import os
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

SESSION = "3f2a91c0-7c1e-4a53-9d0b-2f6f0f5f9a11"
FOLDER = "/home/ada/code/shop"
BEGAN = datetime(2026, 11, 20, 20, tzinfo=UTC)


class Talk:
    """A session as its transcript. `lines` are the transcript's, each `step` seconds after another."""

    def __init__(
        self,
        session: str = SESSION,
        folder: str = FOLDER,
        *,
        began: datetime = BEGAN,
        step: int = 1,
        uuid: Callable[[int], str] = "u{}".format,
        **values: Any,
    ) -> None:
        usual = {"sessionId": session, "cwd": folder, "gitBranch": "main", "version": "2.1.329"}
        self.values, self._began, self._step, self._uuid = usual | values, began, step, uuid
        self._count = itertools.count(1)
        self.lines: list[bytes] = []

    def add(self, record: dict[str, Any], **values: Any) -> str:
        """Add a record; return its uuid."""
        number = next(self._count)
        at = self._began + timedelta(seconds=number * self._step)
        stamps = {"uuid": self._uuid(number), "timestamp": f"{at:%Y-%m-%dT%H:%M:%S}.000Z"}
        record = stamps | self.values | record | values
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
        call = f"toolu_{self._uuid(len(self.lines))}"
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
        file = f"{self.values['cwd']}/{path}"
        return self.calls("Edit", "updated", file_path=file, old_string=old, new_string=new)

    def write(self, file: Path) -> Path:
        """Write the transcript."""
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"".join(self.lines))
        return file

    def _block(self, block: dict[str, Any], **values: Any) -> str:
        return self.add({"type": "assistant", "message": {"content": [block]}}, **values)


class Conversation:
    """A session in a folder; each step is written to the transcript where the agent keeps it."""

    def __init__(self, folder: Path, name: str, *, began: datetime | None = None) -> None:
        self.folder = folder
        self.id = str(uuid5(NAMESPACE_URL, f"{folder.name}/{name}"))
        began = began or datetime.now(UTC) - timedelta(hours=1)
        self._talk = Talk(
            self.id, str(folder), began=began, step=10,
            uuid=lambda number: str(uuid5(NAMESPACE_URL, f"{self.id}/{number}")),
        )  # fmt: skip
        home = os.environ.get("CLAUDE_CONFIG_DIR") or f"{os.environ['HOME']}/.claude"
        encoded = re.sub(r"[^A-Za-z0-9]", "-", str(folder))
        self.file = Path(home, "projects", encoded, f"{self.id}.jsonl")

    def asks(self, prompt: str) -> Conversation:
        """A person types a prompt."""
        return self._after(self._talk.prompt(prompt, promptSource="user"))

    def says(self, text: str) -> Conversation:
        """The agent answers."""
        return self._after(self._talk.says(text))

    def runs(self, command: str, output: str, *, failed: bool = False) -> Conversation:
        """The agent runs a command in the shell."""
        return self._after(self._talk.calls("Bash", output, is_error=failed, command=command))

    def edits(self, path: str, old: str, new: str) -> Conversation:
        """The agent changes a file."""
        return self._after(self._talk.edits(path, old, new))

    def calls(self, tool: str, output: str) -> Conversation:
        """The agent calls a tool of a server, which answers with a text."""
        return self._after(self._talk.calls(tool, output))

    def event(self, name: str, **more: Any) -> dict[str, Any]:
        """Return the event that a hook of the agent gets on stdin."""
        about = {"session_id": self.id, "transcript_path": str(self.file), "cwd": str(self.folder)}
        return {"hook_event_name": name, **about, **more}

    def _after(self, _added: str) -> Conversation:
        self._talk.write(self.file)
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
