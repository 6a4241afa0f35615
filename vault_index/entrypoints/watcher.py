"""`lessons watch` in the background: what a hook starts, without the command line around it.

`python -m vault_index --vault ROOT watch --lock DESCRIPTOR` comes here; click takes as long to load
as all that indexes and searches.
"""

from __future__ import annotations

import gc
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from vault_index.characters import visible_line
from vault_index.watch.starting import LOG_BYTES

HANG_SECONDS = 60  # a start that hangs longer, on a dead network drive, is ended by the system


def is_asked_for(words: list[str]) -> bool:
    """Whether the words of a command are those with which a hook starts a watcher."""
    return len(words) == 5 and words[0] == "--vault" and words[2:4] == ["watch", "--lock"]


def main(words: list[str]) -> int:
    """Run the watcher of the vault that is named, with the lock that whoever started it holds."""
    signal.alarm(
        HANG_SECONDS
    )  # the system does it, whatever Python does; `Watcher.run` takes it back
    gc.disable()  # what is loaded stays; looking through it again and again takes a tenth of the start
    os.chdir("/")
    if os.getsid(0) != os.getpid():
        os.setsid()
    # More would be no quicker, and spin for 20 ms after each product on a core others need.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from vault_index.errors import VaultError

    try:
        run(Path(words[1]), int(words[4]), _log)
    except VaultError as error:
        _log(f"error: {error.message}")
        return 1
    return 0


def run(root: Path, lock: int, say: Callable[[str], None]) -> None:
    """Watch a vault until there is a reason to end. Raises VaultError."""
    from vault_index.entrypoints import requests
    from vault_index.watch import starting
    from vault_index.watch.process import Watcher

    os.set_inheritable(lock, False)
    starting.note_pid(lock, os.getpid())
    watcher = Watcher(root, requests.answer, say)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda got, _frame: watcher.end(signal.Signals(got).name))
    watcher.run()


def _log(message: str) -> None:
    """Say it into the file that stdout is, which does not grow for ever."""
    if os.fstat(1).st_size > LOG_BYTES:
        os.ftruncate(1, 0)
    stamp = time.strftime("%Y-%m-%d %H:%M:%S")
    lines = [f"{stamp} {visible_line(line)}\n" for line in message.splitlines()]
    os.write(1, "".join(lines).encode("utf-8", "replace"))
