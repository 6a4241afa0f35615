"""A process that reads transcripts for an import, while others are written: `python -m` this module.

It reads a request a line, JSON `[transcript, agent, session file or null]`, and writes an answer for
each: its length in eight bytes, then a pickled (session, session as its file had it) or a VaultError. It
ends with its input, so that it never outlives who started it.
"""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from vault_index.errors import VaultError
from vault_index.journal import take
from vault_index.journal.record import Session

Answer = tuple[Session, Session | None]


class Worker:
    """The other side: one per thread of the import, each with a process of its own."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__, "go"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is for the import, which closes the pipe
        )
        self._lock = threading.Lock()

    def read(self, file: Path, agent: str, session_file: Path | None) -> Answer:
        """Return what `take.read` returns. Raises VaultError, also if the process ended."""
        request = [str(file), agent, str(session_file) if session_file else None]
        with self._lock:
            assert self._process.stdin
            assert self._process.stdout
            try:
                self._process.stdin.write(json.dumps(request).encode() + b"\n")
                self._process.stdin.flush()
                size = int.from_bytes(self._process.stdout.read(8), "big")
                data = self._process.stdout.read(size)
            except (OSError, ValueError):  # it was ended meanwhile
                size, data = 0, b""
        if not size or len(data) < size:
            raise VaultError(f"{file} cannot be read: the process that read it ended")
        answer = pickle.loads(data)  # of our own process
        if isinstance(answer, VaultError):
            raise answer
        return answer  # type: ignore[no-any-return]

    def end(self) -> None:
        """End the process, whatever it is doing."""
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """Close the pipes, when nobody waits for an answer any more."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe:
                with suppress(OSError):  # what was not sent
                    pipe.close()


def answered(request: bytes, read: Callable[[Path, str, Path | None], Answer]) -> bytes:
    """Return the pickled answer to a request."""
    file, agent, session_file = json.loads(request)
    try:
        answer = read(Path(file), agent, Path(session_file) if session_file else None)
    except VaultError as error:
        return pickle.dumps(VaultError(error.message, error.hint))
    except (OSError, ValueError, RecursionError, MemoryError) as error:
        return pickle.dumps(VaultError(f"{file} cannot be read: {error}"))
    return pickle.dumps(answer, pickle.HIGHEST_PROTOCOL)


def main() -> None:
    """Answer until there are no more requests."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    output = sys.stdout.buffer
    try:
        for line in sys.stdin.buffer:
            data = answered(line, take.read)
            output.write(len(data).to_bytes(8, "big") + data)
            output.flush()
    except BrokenPipeError:  # the import was killed
        os._exit(1)


if __name__ == "__main__" and sys.argv[1:] == ["go"]:
    main()
