"""The warm process of a user: it answers for all vaults and the journal, on one socket.

Each vault has a thread, a queue and an index of its own (`vault_watch`), so that a vault that is slow,
hostile or broken delays no other; the embedder and the journal are shared. A vault is opened by its
first question and closed after a day without use, or an hour where others are used.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import queue
import signal
import socket
import socketserver
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from vault_index import features, files, native, state
from vault_index.errors import VaultError, WriteError
from vault_index.hotpath import protocol
from vault_index.watch import schedule
from vault_index.watch.current import AT_ONCE, SharedEmbedder, stamp_package
from vault_index.watch.vault_watch import VaultWatch

FIRST_SECONDS = 10.0  # for the first vault to open; then others are answered all the same
LOOK_SECONDS = 2.0  # between two looks at what no event reports
LINGER_SECONDS = 3.0  # without an open vault: another may be asked about
UPGRADED = "another version of lessons-vault was installed"
MAX_PACE_SECONDS = 1.0  # of an answer that counts: one may have waited for a save
NEW_SHARE, TOLD_SHARE = 0.1, 0.2  # of the latest in the usual time; of a change that hooks are told
CLOSE_SECONDS = 2.0  # for the vaults to close; whatever goes on then ends with the process
OPEN_FILES = 4096  # six for each vault that was used within an hour
# How long a pass may hold the interpreter while a prompt waits for it: a prompt asks for it ten times,
# after each wait for LanceDB or the model. Python's own 5 ms come to longer than the prompt takes.
SWITCH_SECONDS = 0.0005


class Watcher:
    """Runs until it is stopped or has no vault open. The caller holds the user's lock."""

    def __init__(self, root: Path, say: Callable[[str], None]) -> None:
        self.settings = protocol.settings_of(os.environ)
        self._root = os.path.realpath(root)
        self._say = say
        self._package = stamp_package()
        self._embedder = SharedEmbedder()
        self._pace = Pace()
        self._vaults: dict[str, VaultWatch] = {}
        self._opening = threading.Lock()
        parts = (feature.watch(self._embedder, say) for feature in features.FEATURES)
        self._others = [part for part in parts if part]
        self._began = self._used = time.monotonic()
        self._woken = threading.Event()
        self._stop = ""

    def run(self) -> str:
        """Watch the first vault, and others when they are asked for; return the reason for the end."""
        native.limit_memory(AT_ONCE)
        native.allow_open_files(OPEN_FILES)
        sys.setswitchinterval(SWITCH_SECONDS)
        first, _ = self._open(self._root, wanted=True)
        first.ready.wait(FIRST_SECONDS)
        self._server = _listen(self._answer)
        self._server.start()
        try:
            signal.alarm(0)  # see entrypoints.background: this start did not hang
            gc.freeze()  # what is loaded stays, and is no longer looked through
            gc.enable()
            for other in self._others:
                other.start()
            reason = self._loop()
        finally:
            self._server.close()
            until = time.monotonic() + CLOSE_SECONDS
            for watch in self._open_vaults():
                watch.end("the watcher ends")
            for watch in self._open_vaults():
                watch.ended.wait(max(0.0, until - time.monotonic()))
        self._say(f"ended: {reason}")
        return reason

    def end(self, reason: str) -> None:
        """Make `run` return; may be called from a signal handler or another thread."""
        self._stop = self._stop or reason
        self._woken.set()

    def _loop(self) -> str:
        while not (reason := self._reason_to_stop()):
            for other in self._others:
                other.look()
            self._close_unused()
            self._drop_closed()
            self._woken.wait(LOOK_SECONDS)
        return reason

    def _reason_to_stop(self) -> str:
        if self._stop:
            return self._stop
        if not self._server.is_reachable():
            return "its socket is gone"
        if stamp_package() != self._package:
            return UPGRADED
        if self._open_vaults():
            self._used = time.monotonic()
        elif time.monotonic() - self._used > LINGER_SECONDS:
            return "no vault is open"
        return ""

    # the vaults

    def _open_vaults(self) -> list[VaultWatch]:
        return [watch for watch in tuple(self._vaults.values()) if not watch.ended.is_set()]

    def _close_unused(self) -> None:
        vaults = {str(watch.root): watch for watch in self._open_vaults()}
        used = {root: watch.used for root, watch in vaults.items()}
        for root in schedule.unused(used, time.monotonic()):
            vaults[root].end("an hour without a question or a change, and others are used")

    def _drop_closed(self) -> None:
        with self._opening:
            for root, watch in tuple(self._vaults.items()):
                if watch.may_open_again:
                    del self._vaults[root]

    def _open(self, root: str, *, wanted: bool) -> tuple[VaultWatch, bool]:
        closing = self._vaults.get(root)
        if (
            closing is not None and closing.is_ending
        ):  # before the lock: others are opened meanwhile
            closing.ended.wait(CLOSE_SECONDS)
        with self._opening:
            watch = self._vaults.get(root)
            refused = watch is not None and watch.is_unwanted and wanted
            if watch is not None and not refused and not watch.may_open_again:
                return watch, False
            watch = VaultWatch(Path(root), self._say, self._embedder, wanted=wanted)
            self._vaults[root] = watch
            watch.start()
            return watch, True

    # what it answers

    def _answer(self, question: Mapping[str, Any]) -> Mapping[str, Any]:
        began = time.monotonic()
        try:
            answer = self._answered(question)
        finally:  # whatever it says
            self._pace.found(str(question.get("vault") or ""))
        if question.get("ask") == "hook" and "answer" in answer:
            self._pace.note(time.monotonic() - began)
        return answer

    def _answered(self, question: Mapping[str, Any]) -> Mapping[str, Any]:
        if question.get("protocol") != protocol.PROTOCOL:
            return {"declined": "another version of the protocol"}
        name, root = str(question.get("ask")), str(question.get("vault") or "")
        if name == "ping":
            return {}
        if name == "stop":
            self.end("asked to")
            return {}
        if name in ("status", "look"):  # neither opens a vault
            watch = self._vaults.get(root)
            if watch is None or watch.ended.is_set() or not watch.ready.is_set():
                return {"closed": True}
            if name == "status":
                return self._status(watch)
            watch.events.hurry()  # git changed something
            return {}
        if question.get("settings") != self.settings:
            return {"declined": "the watcher was started with other settings"}
        for other in self._others:
            if name.startswith(other.questions):
                answer: Mapping[str, Any] = other.answer(question)
                return answer
        if not root:
            return {"declined": "the question names no vault"}
        watch, opened = self._open(root, wanted=name == "open")
        if name == "open":
            return {"opened": opened, **watch.answer(question)}
        return watch.answer(question)

    def _status(self, watch: VaultWatch) -> dict[str, Any]:
        from importlib import metadata  # takes as long to load as all of Python

        return {
            "pid": os.getpid(),
            "version": metadata.version("lessons-vault"),
            "socket": self._server.path,
            **watch.status(),
            "vaults": sorted(str(each.root) for each in self._open_vaults()),
            "seconds": round(time.monotonic() - self._began),
        }


class Pace:
    """The time that an answer usually takes, and that there are answers, for hooks: see `protocol`."""

    def __init__(self) -> None:
        self._usual = self._published = 0.0  # milliseconds
        self._folder = Path(protocol.folder())
        for file in self._folder.glob(f"{protocol.LOST}*"):  # who waited in vain waited for another
            file.unlink(missing_ok=True)

    def found(self, root: str) -> None:
        """Note that there was an answer about a vault."""
        with contextlib.suppress(OSError):
            os.unlink(protocol.lost(root))  # noqa: PTH108  # at every prompt

    def note(self, seconds: float) -> None:
        """Note that a hook was answered in so many seconds."""
        latest = 1000 * min(seconds, MAX_PACE_SECONDS)
        self._usual += (latest - self._usual) * (NEW_SHARE if self._usual else 1.0)
        if abs(self._usual - self._published) > TOLD_SHARE * self._published:
            self._published = self._usual
            with contextlib.suppress(WriteError):
                files.replace_file(self._folder / protocol.PACE, b"%d" % max(1, round(self._usual)))


# connections that wait to be accepted: a hundred hooks in a second are no reason to refuse
QUEUE = 256
PATIENCE_SECONDS = 2.0  # for a question to arrive
MAX_CONNECTIONS = 512  # at work; more wait in the queue; of one vault, `vault_watch.MAX_WAITING`
IDLE_SECONDS = 60.0  # that a thread waits for another question
FULL_SECONDS = 0.05  # between two tries to accept where no file descriptor is left
POLL_SECONDS = 3600.0  # between two looks of `socketserver` whether to stop: it is never asked to

Answer = Callable[[Mapping[str, Any]], Mapping[str, Any]]


class Workers:
    """Threads that do one job after another: each keeps its connection to the state open."""

    def __init__(self) -> None:
        self.idle = 0  # threads that wait for a job which is not on its way to them
        self._counting = threading.Lock()
        self._jobs: queue.SimpleQueue[Callable[[], object]] = queue.SimpleQueue()

    def do(self, job: Callable[[], object]) -> None:
        """Have an idle thread do a job, or a new one. The job raises nothing."""
        with self._counting:
            has_idle = self.idle > 0
            self.idle -= has_idle
        self._jobs.put(job)
        if not has_idle:
            threading.Thread(target=self._work, daemon=True, name="answer").start()

    def _work(self) -> None:
        while True:
            try:
                job = self._jobs.get(timeout=IDLE_SECONDS)
            except queue.Empty:
                with self._counting:
                    is_surplus = self.idle > 0
                    self.idle -= is_surplus
                if is_surplus:
                    state.close()
                    return
                continue
            job()
            with self._counting:
                self.idle += 1


class Server(socketserver.UnixStreamServer):
    """Listens on the user's socket, mode 0600, and answers each question in a thread."""

    request_queue_size = QUEUE

    def __init__(self, path: str, answer: Answer) -> None:
        self.path = path
        self.answer = answer
        self._free = threading.BoundedSemaphore(MAX_CONNECTIONS)
        self._workers = Workers()
        super().__init__(path, _Handler)
        self._inode = Path(path).lstat().st_ino

    def start(self) -> None:
        """Begin to accept; connections made earlier waited."""
        serve = self.serve_forever
        threading.Thread(target=serve, args=(POLL_SECONDS,), daemon=True, name="accept").start()

    def is_reachable(self) -> bool:
        """Whether the socket is still the one at its path."""
        try:
            return Path(self.path).lstat().st_ino == self._inode
        except OSError:
            return False

    def close(self) -> None:
        """Stop listening; the socket's name goes, unless it is another socket's by now."""
        if self.is_reachable():
            with contextlib.suppress(OSError):
                Path(self.path).unlink()
        self.socket.close()

    def server_activate(self) -> None:
        Path(self.path).chmod(0o600)  # before anyone can connect
        super().server_activate()

    def get_request(self) -> tuple[socket.socket, Any]:
        try:
            return super().get_request()
        except OSError:
            time.sleep(FULL_SECONDS)
            raise

    def verify_request(self, request: Any, _address: Any) -> bool:
        return not protocol.is_other_user(request)

    def process_request(self, request: Any, client_address: Any) -> None:
        self._free.acquire()
        try:
            self._workers.do(lambda: self._finish(request, client_address))
        except BaseException:  # no thread could be started
            self._free.release()
            raise

    def _finish(self, request: Any, client_address: Any) -> None:
        try:
            self.finish_request(request, client_address)
        except Exception:  # noqa: BLE001  # the caller falls back; the thread lives on
            self.handle_error(request, client_address)
        finally:
            self.shutdown_request(request)
            self._free.release()

    def handle_error(self, _request: Any, _address: Any) -> None:
        return


class _Handler(socketserver.BaseRequestHandler):
    server: Server

    def handle(self) -> None:
        with contextlib.suppress(OSError, ValueError):  # gone before the answer
            data = protocol.receive(self.request, time.monotonic() + PATIENCE_SECONDS)
            if data:
                self.request.settimeout(PATIENCE_SECONDS)
                reply = _reply(data, self.server.answer)
                self.request.sendall(json.dumps(reply).encode() + b"\n")


def _reply(data: bytes, answer: Answer) -> dict[str, Any]:
    try:
        question = json.loads(data)
        if not isinstance(question, dict):
            raise ValueError("not an object")
    except ValueError as error:
        return {"protocol": protocol.PROTOCOL, "declined": f"not a question: {error}"}
    try:
        return {"protocol": protocol.PROTOCOL, **answer(question)}
    except VaultError as error:
        reply = {"refused": error.message, "hint": error.hint}
    except Exception as error:  # noqa: BLE001  # the caller falls back; the watcher lives on
        reply = {"declined": f"{type(error).__name__}: {error}"}
    return {"protocol": protocol.PROTOCOL, **reply}


def _listen(answer: Answer) -> Server:
    problem: OSError | WriteError | None = None
    for path in protocol.places():
        try:
            files.make_folder(Path(path).parent)
            Path(path).unlink(missing_ok=True)
            return Server(path, answer)
        except (OSError, WriteError) as error:
            problem = error
    raise WriteError(
        f"no socket can be made in {protocol.folder()}: {problem}", "check its permissions"
    )
