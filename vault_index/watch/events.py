"""File events of a vault, gathered into bursts.

Editors save by rename, write twice and leave swap files; a checkout touches hundreds of files. So an
event only says that something changed; comparing stats shows which files did.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import logging
import os
import sys
import termios
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from watchdog.events import FileSystemEvent
    from watchdog.observers.api import BaseObserver
    from watchdog.observers.inotify_c import InotifyFD

DEBOUNCE_SECONDS = 0.1  # without an event: editors write twice within 50 ms
MAX_BURST_SECONDS = 2.0  # after the first event, however many follow
RETRY_SECONDS = 30.0  # between two tries whether the system gives enough watches
WATCHES, INSTANCES = "fs.inotify.max_user_watches", "fs.inotify.max_user_instances"
BEHIND_SECONDS = 0.1  # for the system's events to be read; a thread does it at once

# they report no changes made on another machine
_REMOTE = frozenset("nfs nfs4 cifs smb3 smbfs 9p afs ceph vboxsf virtiofs drvfs fuse.sshfs".split())


class FileEvents:
    """Watches a folder tree between `start` and `close`; `wait` returns when a burst of changes is over.

    `polling` is true where the system gives no events: the folder must then be looked at regularly.
    """

    def __init__(self, folder: Path, say: Callable[[str], None]) -> None:
        self.folder = folder
        self.polling = False
        self.limit = ""  # the setting of the system that is too small, if that is why
        self._tried = 0.0
        self._say = say
        self._condition = threading.Condition()
        self._count = 0  # of events
        self._first: float | None = None  # monotonic times of the burst's events
        self._last = 0.0
        self._hurry = False
        self._woken = False
        self._observer: BaseObserver | None = None
        self._inotify: InotifyFD | None = None
        self._armed: int | None = None  # the inode of the folder that is watched
        self._failed = ""  # why a thread of watchdog ended

    def start(self) -> None:
        """Begin to watch the folder, if it is there."""
        _hooks.add(self)
        self.arm()

    def arm(self) -> bool:
        """Watch the folder that has the name now. False if it is watched already, or is away.

        It is watched again if a thread of watchdog died: moves and deletions of folders in quick
        succession end it with a KeyError (watchdog 7.1).
        """
        try:
            inode = self.folder.stat().st_ino
        except OSError:
            self._armed = None
            return False
        if inode == self._armed and not self._failed:
            return False
        if self._failed:
            self._say(f"watching again: {self._failed}")
        self._armed = inode
        if not self.polling or self.limit:
            self._try()
        return True

    def check(self) -> None:
        """Turn to polling if some folder is not watched, and back when the system gives enough again."""
        if self.polling:
            is_due = self.limit and time.monotonic() - self._tried >= RETRY_SECONDS
        else:
            is_due = self._lacks_watches()  # watchdog does not report the limit
        if is_due:
            self._try()

    def _try(self) -> None:
        """Have the system report changes; where it does not, the folder is looked at."""
        self._tried, self.limit = time.monotonic(), ""
        why = _remote(self.folder)
        if not why:
            try:
                self._observe()
                if self._lacks_watches():
                    self.limit, why = WATCHES, "the system's limit on watches is reached"
            except OSError as error:
                self.limit = WATCHES if error.errno == errno.ENOSPC else INSTANCES
                why = str(error)
        if bool(why) != self.polling:
            looking = f"no file events ({why}): looking every few seconds instead"
            self._say(looking if why else "file events again")
        self.polling = bool(why)

    def _lacks_watches(self) -> bool:
        return self._watches() < sum(1 for _ in os.walk(self.folder))

    def _observe(self) -> None:
        from watchdog import events

        changes: list[type[FileSystemEvent]] = [  # we open and read files ourselves
            *(events.FileCreatedEvent, events.FileModifiedEvent, events.FileMovedEvent),
            *(events.FileDeletedEvent, events.FileClosedEvent),
            *(events.DirCreatedEvent, events.DirMovedEvent, events.DirDeletedEvent),
        ]
        handler = events.FileSystemEventHandler()
        handler.on_any_event = self._on_event  # type: ignore[method-assign]
        self._stop_observing()
        self._failed = ""
        observer = self._new_observer()
        observer.schedule(handler, str(self.folder), recursive=True, event_filter=changes)
        observer.start()
        self._observer = observer

    def _new_observer(self) -> BaseObserver:
        """Make an observer whose inotify thread can be stopped even where the observer cannot be."""
        if sys.platform != "linux":
            from watchdog.observers import Observer

            return Observer()
        from watchdog.observers.api import BaseObserver
        from watchdog.observers.inotify import InotifyEmitter
        from watchdog.observers.inotify_c import InotifyEvent, InotifyFD

        hear = self._hear

        class Inotify(InotifyFD):
            """Hears an event when it is read: watchdog hands it on later, some by half a second."""

            is_reading = False

            def _check_inotify_fd(self) -> bool:
                self.is_reading = False
                self.is_reading = super()._check_inotify_fd()
                return self.is_reading

            def handle_event(self, event: InotifyEvent) -> None:
                hear(os.fsdecode(event.name), is_folder=event.is_directory)
                super().handle_event(event)

        self._inotify = Inotify()
        self._inotify.start()
        return BaseObserver(InotifyEmitter, inotify_fd=self._inotify)

    def _stop_observing(self) -> None:
        observer, inotify = self._observer, self._inotify
        self._observer = self._inotify = None
        # watchdog may have lost track of folders that moved; then an idle thread stays behind
        with contextlib.suppress(KeyError):
            if observer is not None:
                observer.unschedule_all()
                observer.stop()
        with contextlib.suppress(KeyError):
            if inotify is not None:
                inotify.stop()

    def _on_event(self, event: FileSystemEvent) -> None:
        names = (str(event.src_path), str(event.dest_path))
        if event.event_type == "deleted" and names[0] == str(self.folder):
            self._armed = None  # the next folder of this name may get the same inode
        for name in names:
            self._hear(name, is_folder=event.is_directory)

    def _hear(self, name: str, *, is_folder: bool) -> None:
        if is_folder or name.endswith((".md", ".toml")):
            self.happened()

    def count(self) -> int:
        """Count the events, on Linux all until now."""
        until = time.monotonic() + BEHIND_SECONDS
        while self._is_behind() and time.monotonic() < until:
            time.sleep(0.001)
        return self._count

    def _is_behind(self) -> bool:
        """Whether the system has events that were not read, or some that were read are not counted."""
        inotify = self._inotify
        if inotify is None:
            return False
        try:
            handle = inotify._inotify_fd
            waiting = fcntl.ioctl(handle, termios.FIONREAD, bytes(4))  # asked before `is_reading`
        except OSError:  # closed
            return False
        return any(waiting) or getattr(inotify, "is_reading", False)

    def lost(self, failed: str = "") -> None:
        """Note that events were dropped, or why a thread of watchdog died."""
        self._failed = self._failed or failed
        self.happened()

    def _watches(self) -> float:
        """Return how many folders are watched; infinity where the system does not show it."""
        try:
            handle = self._inotify._inotify_fd  # type: ignore[union-attr]
            return Path(f"/proc/self/fdinfo/{handle}").read_text().count("inotify wd:")
        except (OSError, AttributeError):
            return float("inf")

    def happened(self) -> None:
        """Note that something changed."""
        with self._condition:
            self._count += 1
            self._last = time.monotonic()
            if self._first is None:
                self._first = self._last
                self._condition.notify()

    def hurry(self) -> None:
        """End the burst now: a question waits for it."""
        with self._condition:
            self._hurry = True
            self._condition.notify()

    def wake(self) -> None:
        """End `wait` for another reason than a burst."""
        with self._condition:
            self._woken = True
            self._condition.notify()

    def wait(self, seconds: float) -> bool:
        """Wait for the end of a burst: True; or for `wake`, or for that many seconds: False."""
        until = time.monotonic() + seconds
        with self._condition:
            while True:
                now = time.monotonic()
                over = until
                if self._first is not None:
                    over = min(self._last + DEBOUNCE_SECONDS, self._first + MAX_BURST_SECONDS)
                if self._hurry or (self._first is not None and now >= over):
                    self._first, self._hurry = None, False
                    return True
                if self._woken or now >= until:
                    self._woken = False
                    return False
                self._condition.wait(min(over, until) - now)

    def close(self) -> None:
        """Stop watching, and take out what `start` put into the process."""
        self._stop_observing()
        _hooks.discard(self)


class _ProcessHooks(logging.Handler):
    """Hears in the whole process what watchdog reports nowhere else, while folders are watched.

    It logs that the system dropped events, and its threads die. Both may be of any folder.
    """

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._watching: set[FileEvents] = set()
        self._undo = contextlib.ExitStack()
        self._changing = threading.Lock()

    def add(self, events: FileEvents) -> None:
        with self._changing:
            if not self._watching:
                self._install()
            self._watching.add(events)

    def discard(self, events: FileEvents) -> None:
        with self._changing:
            self._watching.discard(events)
            if not self._watching:
                self._undo.close()

    def emit(self, record: logging.LogRecord) -> None:  # noqa: ARG002
        for events in tuple(self._watching):
            events.lost()

    def _install(self) -> None:
        logging.getLogger("watchdog").addHandler(self)
        self._undo.callback(logging.getLogger("watchdog").removeHandler, self)
        others = threading.excepthook
        self._undo.callback(setattr, threading, "excepthook", others)

        def hook(args: threading.ExceptHookArgs) -> None:
            if not type(args.thread).__module__.startswith("watchdog."):
                others(args)
                return
            for events in tuple(self._watching):
                events.lost(f"{args.exc_type.__name__}: {args.exc_value}")

        threading.excepthook = hook
        # A new folder that is found twice, by its event and in its parent's list, is no fault; but
        # where warnings are errors, this one ends the thread that hears.
        self._undo.enter_context(warnings.catch_warnings())
        warnings.filterwarnings("ignore", "Callback with id", RuntimeWarning)


_hooks = _ProcessHooks()


def _remote(folder: Path) -> str:
    """Return the type of a folder's file system if other machines may write to it; else ""."""
    try:
        mounts = [line.split() for line in Path("/proc/mounts").read_text("utf-8").splitlines()]
    except (OSError, UnicodeDecodeError):
        return ""
    here = str(folder.resolve())
    around = [
        (len(point), kind)
        for _, point, kind, *_ in mounts
        if here == point or here.startswith(point.rstrip("/") + "/")
    ]
    kind = max(around, default=(0, ""))[1]
    return kind if kind in _REMOTE else ""
