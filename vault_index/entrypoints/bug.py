"""The last line of defence: a bug is a sentence for people, and its traceback is in a log of theirs.

A traceback repeats lines of code and what a file says: no terminal, agent or client gets it.
"""

from __future__ import annotations

import logging
import os
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from vault_index.errors import VaultError
from vault_index.hotpath import index_files, log

LOG = "bugs.log"
MAX_CHARS = 20_000  # of a traceback, from its end

Say = Callable[[str], None]


def caught(error: BaseException) -> VaultError:
    """Log the traceback of a bug, without secrets, and return the message for its user."""
    file = Path(index_files.home_folder(os.environ), LOG)
    try:
        from vault_index.check.redact import redact

        written = redact("".join(traceback.format_exception(error))[-MAX_CHARS:])
        folder = index_files.open_or_make(str(file.parent))
        try:
            stamp = time.strftime("%Y-%m-%d %H:%M:%S")
            log.append(folder, LOG, f"{stamp}\n{written}\n".encode("utf-8", "replace"))
        finally:
            os.close(folder)
    except Exception:  # noqa: BLE001  # a full disk: the sentence is told all the same
        return VaultError(f"a bug of lessons: {place_of(error)}", "report it")
    return VaultError(f"a bug of lessons: {place_of(error)}", f"report it with the end of {file}")


def line(error: BaseException) -> str:
    """Do the same, and return it as a line."""
    bug = caught(error)
    return f"{bug.message}; {bug.hint}"


def place_of(error: BaseException) -> str:
    """Return the kind of an error, and the function and line that raised it; never its text."""
    while error.__cause__ is not None:
        error = error.__cause__
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    line = f"{trace.tb_frame.f_code.co_name}:{trace.tb_lineno}" if trace else "?"
    return f"{type(error).__name__} in {line}"


class Handler(logging.Handler):
    """Says in a line each what libraries log: of an error its place, and where its traceback is."""

    def __init__(self, say: Say, level: int = logging.WARNING) -> None:
        super().__init__(level)
        self._say = say

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        self._say(f"error: {line(error)}" if error else record.getMessage())
