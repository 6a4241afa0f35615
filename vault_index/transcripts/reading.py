"""The transcripts on this machine, and the one loop over each: bytes become events, line by line.

The journal reads on where it stopped.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from vault_index import files
from vault_index.hotpath import index_files
from vault_index.hotpath.agents import AGENTS, CLAUDE_CODE, Agent, load
from vault_index.transcripts import events
from vault_index.transcripts.events import TranscriptEvent, TranscriptReader

_RECORDED = {agent.name: agent for agent in AGENTS if agent.reader}
_PEEK = 256 * 1024  # bytes of a transcript in which its folder is looked for
_CWD = re.compile(rb'"cwd":\s*("(?:[^"\\]|\\.)*")')


@dataclass(frozen=True, slots=True)
class Transcript:
    """An agent's file of a session: `size` in bytes, `mtime` in nanoseconds."""

    path: Path
    agent: str
    size: int
    mtime: int


def transcripts() -> list[Transcript]:
    """Return the transcripts of all agents on this machine, those changed last at the end.

    A folder that cannot be read has none.
    """
    files = [file for agent in _RECORDED.values() for file in _transcripts_of(agent)]
    return sorted(files, key=lambda file: (file.mtime, str(file.path)))


def sessions_of(agent: Agent) -> Path:
    """Return the folder of an agent's transcripts."""
    return files.expanded(agent.of_user(agent.sessions))


def agent_of(file: Path) -> str:
    """Return the agent that writes files of such a name; Claude Code's may have any."""
    others = (agent for agent in _RECORDED.values() if agent is not CLAUDE_CODE)
    named = (each.name for each in others if re.fullmatch(each.transcript, file.name))
    return next(named, CLAUDE_CODE.name)


def folder_of(file: Path) -> str:
    """Return the folder that a transcript names first, "" if it is not near its beginning."""
    try:
        named = _CWD.search(index_files.read(file, _PEEK))
        return str(json.loads(named[1])) if named else ""
    except (OSError, ValueError):
        return ""


def _transcripts_of(agent: Agent) -> Iterator[Transcript]:
    top, form = sessions_of(agent), re.compile(agent.transcript, re.DOTALL)
    for folder, _, names in os.walk(top):
        for path in (Path(folder, name) for name in names if name.endswith(".jsonl")):
            with contextlib.suppress(OSError):  # removed meanwhile
                now = path.lstat()
                if stat.S_ISREG(now.st_mode) and form.fullmatch(str(path.relative_to(top))):
                    yield Transcript(path, agent.name, now.st_size, now.st_mtime_ns)


class Reading:
    """One reading of a transcript, from its beginning or from the `state` of an earlier one.

    While the first event of a whole line is out, `resume` is the state from which another reading can
    begin with this line, if the event opens a turn; else it is None.
    """

    def __init__(
        self,
        file: Path,
        agent: str,
        state: Mapping[str, Any] | None = None,
        unread: int = 0,
        digest: Any = None,
    ) -> None:
        kind: type[TranscriptReader] = load(_RECORDED[agent].reader)
        self.reader = kind(state, of_subagent=file.name.startswith("agent-"))
        self._digest = digest  # takes in each line when it was read
        self.reader.unread = unread
        self.bytes = 0  # of the lines that were read
        self.resume: dict[str, Any] | None = None

    def events(self, opened: BinaryIO) -> Iterator[TranscriptEvent]:
        """Yield the events of a file from where it is. A last line without its end counts if whole."""
        is_begun = False  # a line above MAX_LINE comes in pieces, and no piece is a line
        while line := opened.readline(events.MAX_LINE):
            has_end = line.endswith(b"\n")
            if is_begun or (not has_end and len(line) == events.MAX_LINE):
                self.reader.unread += has_end
            elif has_end:
                yield from self._events(line)
            else:  # it is read again when the rest of it is there
                unread = self.reader.unread
                yield from self.reader.events(line)
                self.reader.unread = unread
            is_begun = not has_end
            if self._digest is not None:
                self._digest.update(line)
            self.bytes += len(line)
        yield from self.reader.end()

    def _events(self, line: bytes) -> Iterator[TranscriptEvent]:
        if self.reader.is_quiet:
            self.resume = {"reader": self.reader.state(), "unread": self.reader.unread}
        for event in self.reader.events(line):
            yield event
            self.resume = None
        self.resume = None
