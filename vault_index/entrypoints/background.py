"""The processes that run beside what people type, with no command line loaded: click takes its time.

python -m vault_index --vault ROOT watch --lock DESCRIPTOR   the watcher, as a hook starts it;
                         `watch --after PROCESS --lock ...`  once that process, its parent, has ended
python -m vault_index --vault ROOT serve PORT --lock DESCRIPTOR   `lessons serve --background`
python -m vault_index journal-take --lock DESCRIPTOR         transcripts grew: capture them

After the capture the second learns from the sessions that ended, if the user's settings want that:
`[learn] auto`.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from vault_index.errors import VaultError
from vault_index.hotpath import index_files, log, protocol, start
from vault_index.text.quote import visible_line

# The system ends a process that hangs longer: on a dead network drive, or with a lock that keeps
# others out.
HANG_SECONDS = 60  # of the watcher's start
CAPTURE_SECONDS = 1800
LEARN_SECONDS = 3600  # a small model is slow, and nobody waits
SETTLE_SECONDS = 1.0  # an agent writes the end of a turn after its hook began
CALLER_SECONDS, POLL_SECONDS = 2.0, 0.02  # the deadline of a hook; of whether it has ended
PRIORITY = 10  # of a capture: lower than what people wait for

Say = Callable[[str], None]


def main(words: list[str]) -> int | None:
    """Run the process that the words name and return its exit status; None for a command."""
    if len(words) == 7 and words[2] == "watch" and words[3] == start.AFTER:
        _wait_for(int(words[4]))
        del words[3:5]
    if len(words) == 5 and words[0] == "--vault" and words[2:4] == ["watch", "--lock"]:
        gc.disable()  # looking through what is loaded, which stays, takes a tenth of the start
        return _run(HANG_SECONDS, lambda: _watch_on(words))
    if len(words) == 6 and words[0] == "--vault" and (words[2], words[4]) == ("serve", "--lock"):
        return _run(HANG_SECONDS, lambda: _serve_on(words))
    if len(words) == 3 and words[:2] == [start.COMMAND, "--lock"]:
        return _run(CAPTURE_SECONDS, lambda: _capture(int(words[2])))
    return None


def _run(seconds: int, work: Callable[[], None]) -> int:
    """Leave the terminal and the folder of whoever started this, and work."""
    signal.alarm(seconds)  # whatever Python does, the system sends it
    os.chdir("/")
    if os.getsid(0) != os.getpid():
        os.setsid()
    # More would be no quicker, and spin for 20 ms after each product on a core others need.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        work()
    except VaultError as error:
        _say(f"error: {error.message}")
        return 1
    except Exception as error:  # noqa: BLE001  # a bug
        from vault_index.entrypoints import bug

        _say(f"error: {bug.line(error)}")
        return 1
    return 0


def _wait_for(caller: int) -> None:
    """Wait until the process that started this one has ended, as a hook soon does."""
    until = time.monotonic() + CALLER_SECONDS
    while os.getppid() == caller and time.monotonic() < until:
        time.sleep(POLL_SECONDS)


def _watch_on(words: list[str]) -> None:
    watch(Path(words[1]), int(words[4]), _log)


def _serve_on(words: list[str]) -> None:
    from vault_index.entrypoints import serving

    signal.alarm(0)  # it serves until it is told to end
    serving.run(words, _say)


def watch(root: Path, lock: int, say: Say) -> str:
    """Watch a vault, and others on demand; return the reason for the end. Raises VaultError."""
    from vault_index.watch.watcher import Watcher

    os.set_inheritable(lock, False)
    start.note_pid(lock, os.getpid())
    watcher = Watcher(root, say)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda got, _frame: watcher.end(signal.Signals(got).name))
    return watcher.run()  # it takes the alarm back


def _capture(lock: int) -> None:
    """Capture what waits, under the lock that was taken for it, and once more what grew since."""
    with contextlib.suppress(OSError):
        os.nice(PRIORITY)
    from vault_index import config, files
    from vault_index.journal import backlog, index, waiting
    from vault_index.journal.journal import Journal

    os.set_inheritable(lock, False)
    journal = Journal(config.load())
    grew = [note.transcript for note in backlog.waiting(journal)]
    before = {file: files.stamp(file) for file in grew}
    waiting.catch_up(journal, _say, lock=lock)
    time.sleep(SETTLE_SECONDS)
    if later := [file for file in grew if files.stamp(file) != before[file]]:
        backlog.add(journal, later)
        waiting.catch_up(journal, _say)
    index.complete(journal)
    if backlog.ended(journal):
        from vault_index.learn import at_end

        signal.alarm(LEARN_SECONDS)
        at_end.run_ended(journal, _learn, _say)


def _learn(root: str, values: dict[str, Any]) -> tuple[str, str]:
    from vault_index import api, client

    answer = client.ask(root, api.learn.learn(**values), client.Options(fetch=False))
    return answer.status, answer.trouble


def _say(message: str) -> None:
    stamp = time.strftime("%Y-%m-%d %H:%M:%S")
    lines = [f"{stamp} {visible_line(line)}\n" for line in message.splitlines()]
    os.write(1, "".join(lines).encode("utf-8", "replace"))


def _log(message: str) -> None:
    if os.fstat(1).st_size > log.MAX_BYTES:
        _begin_new_log()
    _say(message)


def _begin_new_log() -> None:
    try:
        folder = index_files.open_or_make(protocol.folder())
        try:
            output = log.open_for_appending(folder, start.LOG)
        finally:
            os.close(folder)
    except OSError:  # the user's folder is gone, and soon the watcher
        return
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(output)
