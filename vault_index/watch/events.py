"""File events of a vault, gathered into bursts.

Editors save by rename, write twice and leave swap files; a checkout touches hundreds of files. So an
event only says that something changed; comparing stats shows which files did.
"""

from __future__ import annotations

import errno
import fcntl
import os
import sys
import termios
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from vault_index import state

if TYPE_CHECKING:
    from watchdog.observers.api import BaseObserver
    from watchdog.observers.inotify_c import InotifyFD

DEBOUNCE_SECONDS = 0.1  # without an event: editors write twice within 50 ms
MAX_BURST_SECONDS = 2.0  # after the first event, however many follow
RETRY_SECONDS = 30.0  # between two tries whether the system gives enough watches
WATCHES, INSTANCES = "fs.inotify.max_user_watches", "fs.inotify.max_user_instances"
BEHIND_SECONDS = 0.1  # for the system's events to be read; a thread does it at once


class FileEvents:
    """Watches a folder tree between `arm` and `close`; `wait` returns when a burst of changes is over.

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
        self._failed = ""  # why the thread that hears ended

    def arm(self) -> bool:
        """Watch the folder that has the name now. False if it is watched already, or is away.

        It is watched again if the thread that hears died.
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
        why = state.network_of(self.folder)  # which reports no changes made on another machine
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
        self._stop_observing()
        failed, self._failed = self._failed, ""
        if sys.platform == "linux" and not failed:
            try:
                self._start_inotify()
                return
            except OSError:  # the system's limits
                raise
            except Exception as error:  # noqa: BLE001  # a class that is not documented may fail with any
                self._stop_observing()
                self._say(f"watchdog's own observer hears, as {type(error).__name__}: {error}")
        self._start_observer()

    def _start_inotify(self) -> None:
        """Hear by a class of watchdog that is not documented, tried with its release 7.1.

        It says when all was read, and watches no folder twice. Raises OSError, and in another release
        any error.
        """
        from watchdog.observers import inotify_c
        from watchdog.observers.inotify_c import InotifyConstants as Kind

        watcher = self
        changes = Kind.IN_CREATE | Kind.IN_MODIFY | Kind.IN_CLOSE_WRITE | Kind.IN_DELETE
        changes |= Kind.IN_MOVE | Kind.IN_DELETE_SELF | Kind.IN_ONLYDIR | Kind.IN_DONT_FOLLOW
        arrived = Kind.IN_CREATE | Kind.IN_MOVED_TO

        class Inotify(inotify_c.InotifyFD):
            """The folders of the tree, each watched; an event only says that something changed."""

            is_reading, top = False, -1

            def watch(self) -> None:
                """Watch the folders that are there; `_lacks_watches` sees if that is not all."""
                handle, mask = self._inotify_fd, inotify_c.Mask(changes)
                add = inotify_c.inotify_add_watch
                folders = [os.fsencode(folder) for folder, _, _ in os.walk(watcher.folder)]
                self.top, *_ = [*(add(handle, folder, mask) for folder in folders), -1]

            def run(self) -> None:
                try:
                    super().run()
                except Exception as error:  # noqa: BLE001  # it is watched again
                    watcher.lost(f"{type(error).__name__}: {error}")

            def _check_inotify_fd(self) -> bool:
                self.is_reading = False
                self.is_reading = super()._check_inotify_fd()
                return self.is_reading

            def handle_event(self, event: inotify_c.InotifyEvent) -> None:
                if event.is_queue_overflow or (event.is_directory and event.mask & arrived):
                    self.watch()
                if event.is_delete_self and event.wd == self.top:
                    watcher.gone()
                watcher.hear(os.fsdecode(event.name), event.is_directory or event.is_queue_overflow)

        self._inotify = Inotify()
        self._inotify.watch()
        self._inotify.start()

    def _start_observer(self) -> None:
        from watchdog import events
        from watchdog.observers import Observer

        changes: list[type[events.FileSystemEvent]] = [  # we open and read files ourselves
            *(events.FileCreatedEvent, events.FileModifiedEvent, events.FileMovedEvent),
            *(events.FileDeletedEvent, events.FileClosedEvent),
            *(events.DirCreatedEvent, events.DirMovedEvent, events.DirDeletedEvent),
        ]

        def hear(event: events.FileSystemEvent) -> None:
            if event.event_type == "deleted" and event.src_path == str(self.folder):
                self.gone()
            for name in (event.src_path, event.dest_path):
                self.hear(str(name), event.is_directory)

        handler = events.FileSystemEventHandler()
        handler.on_any_event = hear  # type: ignore[method-assign]
        self._observer = Observer()
        self._observer.schedule(handler, str(self.folder), recursive=True, event_filter=changes)
        self._observer.start()

    def _stop_observing(self) -> None:
        observer, inotify = self._observer, self._inotify
        self._observer = self._inotify = None
        if observer is not None:
            observer.stop()
        if inotify is not None:
            inotify.stop()

    def hear(self, name: str, is_folder: bool) -> None:
        if is_folder or name.endswith((".md", ".toml")):
            self.happened()

    def gone(self) -> None:
        """Note that the folder was deleted: the next of this name may get the same inode."""
        self._armed = None

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

    def lost(self, failed: str) -> None:
        self._failed = failed
        self.happened()

    def _watches(self) -> float:
        """Return the number of watched folders; infinity where the system does not show it."""
        try:
            handle = self._inotify._inotify_fd  # type: ignore[union-attr]
            return Path(f"/proc/self/fdinfo/{handle}").read_text().count("inotify wd:")
        except (OSError, AttributeError):
            return float("inf")

    def happened(self) -> None:
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
        self._stop_observing()
