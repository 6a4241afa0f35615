"""`lessons watch` in the background: a hook starts it without the command line around it.

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

from vault_index.hotpath import log, start
from vault_index.text.quote import visible_line

HANG_SECONDS = 60  # the system ends a start that hangs longer, on a dead network drive


def is_asked_for(words: list[str]) -> bool:
    """Whether the words of a command are those with which a hook starts a watcher."""
    return len(words) == 5 and words[0] == "--vault" and words[2:4] == ["watch", "--lock"]


def main(words: list[str]) -> int:
    """Run the watcher of the vault that is named, with the lock that the starting process took."""
    # whatever Python does, the system sends it; `Watcher.run` takes it back
    signal.alarm(HANG_SECONDS)
    gc.disable()  # what is loaded stays; looking through it again and again takes a tenth of the start
    os.chdir("/")
    if os.getsid(0) != os.getpid():
        os.setsid()
    # More would be no quicker, and spin for 20 ms after each product on a core others need.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from vault_index.errors import VaultError

    root = Path(words[1])

    try:
        run(root, int(words[4]), _log)
    except VaultError as error:
        _log(f"error: {error.message}")
        return 1
    return 0


def run(root: Path, lock: int, say: Callable[[str], None]) -> None:
    """Watch a vault, and others on demand, until there is a reason to end. Raises VaultError."""
    from vault_index.watch.watcher import Watcher

    os.set_inheritable(lock, False)
    start.note_pid(lock, os.getpid())
    watcher = Watcher(root, say)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda got, _frame: watcher.end(signal.Signals(got).name))
    watcher.run()


def _log(message: str) -> None:
    """Write lines to the log that is our output, and go on in a new file when it is full."""
    if os.fstat(1).st_size > log.MAX_BYTES:
        _begin_new_log()
    stamp = time.strftime("%Y-%m-%d %H:%M:%S")
    lines = [f"{stamp} {visible_line(line)}\n" for line in message.splitlines()]
    os.write(1, "".join(lines).encode("utf-8", "replace"))


def _begin_new_log() -> None:
    try:
        folder = start.open_folder()
        try:
            output = log.open_for_appending(folder, start.LOG)
        finally:
            os.close(folder)
    except OSError:  # the user's folder is gone, and soon the watcher
        return
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(output)
