"""The one loop over a transcript: bytes of an agent's file become events, line by line.

The journal reads on where it stopped; learning and outcomes read the whole file. All see the same events.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from vault_index.transcripts import claude_code, codex, events
from vault_index.transcripts.events import Event, Unread

CLAUDE, CODEX = "claude", "codex"
AGENTS = (CLAUDE, CODEX)


class Reader(Protocol):
    """Turns lines of a transcript into events."""

    @property
    def is_quiet(self) -> bool:
        """Whether another reader can go on here with `state` alone, if a prompt follows."""

    def state(self) -> dict[str, Any]:
        """Return what another reader needs to go on, as JSON."""

    def events(self, line: bytes, unread: Unread) -> Iterator[Event]:
        """Yield the events of a line."""

    def end(self) -> Iterator[Event]:
        """Yield what only the end of the transcript decides."""


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
        self._reader: Reader = (
            codex.Reader(state or {})
            if agent == CODEX
            else claude_code.Reader(of_subagent=file.name.startswith("agent-"))
        )
        self._digest = digest  # takes in each line when it was read
        self.unread = Unread(lines=unread)
        self.bytes = 0  # of the lines that were read
        self.resume: dict[str, Any] | None = None

    def events(self, opened: BinaryIO) -> Iterator[Event]:
        """Yield the events of a file from where it is. A last line without its end counts if whole."""
        for line, is_line in events.lines(opened):
            if not is_line:
                self.unread.lines += line.endswith(b"\n")
            elif line.endswith(b"\n"):
                yield from self._events(line)
            else:
                yield from self._reader.events(line, Unread())
            if self._digest is not None:
                self._digest.update(line)
            self.bytes += len(line)
        yield from self._reader.end()

    def _events(self, line: bytes) -> Iterator[Event]:
        if self._reader.is_quiet:
            self.resume = {"reader": self._reader.state(), "unread": self.unread.count()}
        for event in self._reader.events(line, self.unread):
            yield event
            self.resume = None
        self.resume = None


def events_of(file: Path, agent: str) -> Iterator[Event]:
    """Yield the events of a whole transcript. Raises OSError."""
    with file.open("rb") as opened:
        yield from Reading(file, agent).events(opened)
