"""What happens to the files of a vault, gathered into bursts.

Editors save by rename, write twice and leave swap files; a checkout touches hundreds of files. So
the only thing taken from an event is that something happened: what it was, a stat comparison says.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
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

SETTLE_SECONDS = 0.1  # without an event: editors write twice within 50 ms
MOST_SECONDS = 2.0  # after the first event, however many follow

# no events of changes made on another machine
_REMOTE = frozenset("nfs nfs4 cifs smb3 smbfs 9p afs ceph vboxsf virtiofs drvfs fuse.sshfs".split())


class FileEvents:
    """Watches a folder tree; `wait` says when a burst of changes is over.

    `polling` is true where the system gives no events: then somebody has to look now and then.
    """

    def __init__(self, folder: Path, say: Callable[[str], None]) -> None:
        self.folder = folder
        self.polling = False
        self._say = say
        self._condition = threading.Condition()
        self._first: float | None = None  # monotonic times of the burst's events
        self._last = 0.0
        self._hurry = False
        self._woken = False
        self._observer: BaseObserver | None = None
        self._inotify: InotifyFD | None = None
        self._armed: int | None = None  # the inode of the folder that is watched
        self._lost = _Lost(self.happened)
        logging.getLogger("watchdog").addHandler(self._lost)
        self._failed = ""  # why a thread of watchdog ended
        self._excepthook = threading.excepthook
        threading.excepthook = self._on_thread_error

    def arm(self) -> bool:
        """Watch the folder that is there now. False if it was watched already, or is not there.

        It is watched anew if a thread of watchdog died: moves and deletions of folders that come
        in quick succession end it with a KeyError (watchdog 7.1).
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
        if self.polling:
            return True
        why = _remote(self.folder)
        if not why:
            try:
                self._observe()
                self.check()
                return True
            except OSError as error:  # the limit on instances
                why = str(error)
        self._poll(why)
        return True

    def check(self) -> None:
        """Turn to polling if some folder is not watched: watchdog does not tell of the limit."""
        if not self.polling and _watches() < _folders(self.folder):
            self._poll("the system's limit on watches is reached")

    def _poll(self, why: str) -> None:
        self.polling = True
        self._say(f"no file events ({why}): looking every few seconds instead")

    def _observe(self) -> None:
        from watchdog import events

        changes: list[type[FileSystemEvent]] = [  # opening and reading are our own doing
            *(events.FileCreatedEvent, events.FileModifiedEvent, events.FileMovedEvent),
            *(events.FileDeletedEvent, events.FileClosedEvent),
            *(events.DirCreatedEvent, events.DirMovedEvent, events.DirDeletedEvent),
        ]
        handler = events.FileSystemEventHandler()
        handler.on_any_event = self._on_event  # type: ignore[method-assign]
        # a new folder found twice, by its event and in its parent's list, is no fault; but where
        # warnings are errors, this one ends the thread that hears
        warnings.filterwarnings("ignore", "Callback with id", RuntimeWarning)
        self._stop_observing()
        self._failed = ""
        observer = self._new_observer()
        observer.schedule(handler, str(self.folder), recursive=True, event_filter=changes)
        observer.start()
        self._observer = observer

    def _new_observer(self) -> BaseObserver:
        """Make an observer whose inotify thread can be stopped also when the observer cannot be."""
        if sys.platform != "linux":
            from watchdog.observers import Observer

            return Observer()
        from watchdog.observers.api import BaseObserver
        from watchdog.observers.inotify import InotifyEmitter
        from watchdog.observers.inotify_c import InotifyFD

        self._inotify = InotifyFD()
        self._inotify.start()
        return BaseObserver(InotifyEmitter, inotify_fd=self._inotify)

    def _stop_observing(self) -> None:
        observer, inotify = self._observer, self._inotify
        self._observer = self._inotify = None
        # watchdog's books of folders that moved may be wrong; then an idle thread stays behind
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
        if event.is_directory or any(name.endswith((".md", ".toml")) for name in names):
            self.happened()

    def _on_thread_error(self, args: threading.ExceptHookArgs) -> None:
        if type(args.thread).__module__.startswith("watchdog."):
            self._failed = f"{args.exc_type.__name__}: {args.exc_value}"
            self.happened()
        else:
            self._excepthook(args)

    def happened(self) -> None:
        """Note that something changed."""
        with self._condition:
            self._last = time.monotonic()
            if self._first is None:
                self._first = self._last
                self._condition.notify()

    def hurry(self) -> None:
        """End the burst now: somebody is waiting for it."""
        with self._condition:
            self._hurry = True
            self._condition.notify()

    def wake(self) -> None:
        """End `wait` for another reason than a burst."""
        with self._condition:
            self._woken = True
            self._condition.notify()

    def wait(self, seconds: float) -> bool:
        """Wait for the end of a burst: True; or for `wake` or so many seconds: False."""
        until = time.monotonic() + seconds
        with self._condition:
            while True:
                now = time.monotonic()
                over = until
                if self._first is not None:
                    over = min(self._last + SETTLE_SECONDS, self._first + MOST_SECONDS)
                if self._hurry or (self._first is not None and now >= over):
                    self._first, self._hurry = None, False
                    return True
                if self._woken or now >= until:
                    self._woken = False
                    return False
                self._condition.wait(min(over, until) - now)

    def close(self) -> None:
        """Stop watching."""
        logging.getLogger("watchdog").removeHandler(self._lost)
        threading.excepthook = self._excepthook
        self._stop_observing()


class _Lost(logging.Handler):
    """Hears watchdog say that the system dropped events: it tells nobody else."""

    def __init__(self, happened: Callable[[], None]) -> None:
        super().__init__(logging.WARNING)
        self._happened = happened

    def emit(self, record: logging.LogRecord) -> None:  # noqa: ARG002
        self._happened()


def _watches() -> float:
    """Count the folders that this process watches; where that is not to be seen, enough of them."""
    try:
        files = list(Path("/proc/self/fdinfo").iterdir())
    except OSError:
        return float("inf")
    count = 0
    for file in files:
        with contextlib.suppress(OSError):  # closed since, as is the one that listed them
            count += file.read_text().count("inotify wd:")
    return count


def _folders(folder: Path) -> int:
    return sum(1 for _ in os.walk(folder))


def _remote(folder: Path) -> str:
    """Name the file system of a folder if it is one that other machines write to."""
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
