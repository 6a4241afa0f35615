"""The warm process of a vault: it reindexes on save and keeps everything that a search needs loaded.

Small changes are indexed here. Many at once, a rebuild and the floor are left to a `lessons index`
of lower priority: the embedder's whole use of the processors and LanceDB's memory are then not those
of the process that answers.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from vault_index import floor, git, index, locate, ownership, search, skills
from vault_index.embed import fetching, models
from vault_index.errors import IndexStateError, VaultError
from vault_index.vault import open_vault
from vault_index.watch import line, memory, state, warming
from vault_index.watch.child import Child
from vault_index.watch.events import FileEvents
from vault_index.watch.serve import Server
from vault_index.watch.state import State, stamp
from vault_index.watch.warming import Question

FIRST_SECONDS = 0.5  # for who waited for the start: their questions come before all else
TICK_SECONDS = 2.0  # between two looks at what no event tells
AGAIN_SECONDS = 0.2  # between two tries to write while another process does
SWEEP_SECONDS = 180.0  # between two comparisons with the disk, events or none
POLL_SHARE = 0.05  # of the time, at most, goes into comparing where there are no events
FILES_AT_ONCE = 8  # changed files that are indexed in this process: about 0.2 s
UNSETTLED_ROUNDS = 50  # reconciles in a row without a pause, before one is made
TIDY_SECONDS = 30.0  # of quiet before old versions are cleaned away
LOST_SECONDS = 60.0  # a `lessons/` that is gone may come back: a checkout, an editor's undo
IDLE_SECONDS = 86_400.0  # without a question or a change
PATIENCE_SECONDS = 3.0  # that a question waits while another process writes
OWN_PATIENCE_SECONDS = 8.0  # and while this one does; the command that asks waits for ten
AT_ONCE = (os.cpu_count() or 1) + 1  # searches; more of them only get in each other's way


class Watcher:
    """Runs until it is stopped or has no reason to go on. The caller holds the vault's lock."""

    def __init__(self, root: Path, answer: Question, say: Callable[[str], None]) -> None:
        self.root = root
        self._answer = answer
        self._say = say
        self._vault = open_vault(root)
        self._settings = self._settings_now()
        self._environment = line.settings_of(os.environ)
        self._package = state.package()
        self._events = FileEvents(self._vault.folder, say)
        self._state = State()
        self._finished = threading.Condition()  # a reconcile is
        self._slots = threading.BoundedSemaphore(AT_ONCE)
        self._stop = ""
        self._child = Child(root, "index --no-fetch", self._events.wake, say)
        self._fetch = Child(root, "model fetch", self._events.wake, say)
        self._again = False  # somebody else was writing to the index
        self._much = False  # there is more to index than is done in this process
        self._hectic = 0  # reconciles since it was quiet
        self._settle_now = False  # somebody asks for what follows from the lessons
        self._listens = False
        self._damaged = False  # a question found it out
        self._unusable: VaultError | None = None  # why settings as they are now are not in force
        self._head: object = None  # the state of the repository that git was asked about
        self._asked: object = None  # the same, whatever was saved since
        self._reflog: Path | None = None
        self._seen = time.monotonic()  # when `lessons/` was last there

    def run(self) -> str:
        """Do the whole of the job; give the reason for the end."""
        self._warm_up()
        with self._listening():
            signal.alarm(0)  # see entrypoints.watcher: this start did not hang
            gc.freeze()  # what is loaded stays, and is no longer looked through
            gc.enable()
            changed = self._events.wait(FIRST_SECONDS)
            self._events.arm()  # what was saved until now, the first turn looks for
            self._say(f"watching {self._vault.folder}")
            while not (reason := self._reason_to_end()):
                try:
                    self._turn(changed)
                except Exception as error:  # noqa: BLE001  # the next turn may go well
                    self._complain(f"{type(error).__name__}: {error}")
                changed = self._events.wait(AGAIN_SECONDS if self._again else TICK_SECONDS)
        self._say(f"ended: {reason}")
        return reason

    def end(self, reason: str) -> None:
        """Make `run` return; may be called from a signal handler or another thread."""
        self._stop = self._stop or reason
        self._events.wake()

    @contextlib.contextmanager
    def _listening(self) -> Iterator[None]:
        self._server = Server(str(self.root), self._reply)
        self._server.start()
        self._listens = True
        try:
            yield
        finally:
            self._server.close()
            self._events.close()
            self._child.stop()
            self._fetch.stop()

    def _turn(self, changed: bool) -> None:
        """Do what is due after a burst of changes, a tick, or the end of a child."""
        now = time.monotonic()
        if self._settings_now() != self._settings:
            self._reopen()
            changed = True
        if self._events.arm():  # the folder is another one
            changed = True
        if self._damaged:
            self._damaged = False
            self._child.start("--rebuild")
        well = self._child.take_end()
        if well is not None:
            self._child_ended(well=well)
        model_came = self._look_for_model()
        changed = changed or self._again or well is not None or model_came
        pulled = self._head_now() != self._asked  # a search right after shows who wrote what came
        if changed and self._hectic < UNSETTLED_ROUNDS and not (self._settle_now or pulled):
            self._state.active = now
            self._hectic += 1
            self._reconcile(quiet=False)
            self._head = None  # ask git and settle as soon as it is quiet
        elif (
            changed
            or self._head_now() != self._head
            or self._sweep_is_due(now)
            or self._skills_differ()
        ):
            self._hectic = 0
            self._settle_now = False
            self._reflog = git.reflog(self.root)
            self._head = self._asked = self._head_now()
            self._events.check()
            self._reconcile(quiet=True)
        elif self._state.wrote is not None and now - self._state.wrote > TIDY_SECONDS:
            self._tidy()

    def _look_for_model(self) -> bool:
        """Fetch the built-in model in the background if it is missing; True once it has come."""
        self._fetch.take_end()
        config = self._vault.config
        if config.embedder != "minilm" or self._vault.embedder is not None:
            return False
        if models.is_ready(config.home):  # whoever fetched it
            self._reopen()
            return self._vault.embedder is not None
        if not self._fetch.runs and fetching.is_due(config):
            self._say("fetching the embedding model; full text only until it is here")
            self._fetch.start()
        return False

    def _skills_differ(self) -> bool:
        """Whether a SKILL.md was saved: they are few, so a look each tick will do."""
        with contextlib.suppress(VaultError):
            return skills.differ(self._vault, self._vault.open_index().known_skills)
        return False

    def _sweep_is_due(self, now: float) -> bool:
        polled = max(TICK_SECONDS, self._state.sweep_took / POLL_SHARE)
        return now - self._state.swept > (polled if self._events.polling else SWEEP_SECONDS)

    def _reconcile(self, *, quiet: bool) -> None:
        """Bring the index up to date, here or in a child; when `quiet`, do what can wait, too."""
        started = time.monotonic()
        self._state.begun += 1
        if not self._vault.folder.is_dir():  # it may come back
            self._again = False
            self._finish()
            return
        done, self._much, unfitted = False, False, False
        try:
            stats = index.sync(
                self._vault, at_most=FILES_AT_ONCE, wait=False, ask_git=quiet, settle=quiet
            )
            self._again = stats.busy
            done = not stats.busy and not stats.pending
            self._much = bool(stats.pending)
            unfitted = done and floor.is_stale(self._vault)
            for said in self._state.take(stats):
                self._say(said)
            if stats.wrote:  # load it now and not when somebody waits; the old version is free then
                search.load_ahead(self._vault, rows=True)
                search.run(self._vault, "what was written", 1)
        except IndexStateError as error:
            self._much = not error.newer
            self._complain(error.message)
        except VaultError as error:
            self._complain(error.message)
        memory.give_back()
        self._state.swept = time.monotonic()
        self._state.sweep_took = self._state.swept - started
        if not self._listens:  # the first turn comes to the same: a child would be in the way now
            pass
        elif self._much:
            self._child.start()
        elif unfitted:  # without a sync: it would hold the lock when the next file is saved
            self._child.start("--floor")
        if done or not (self._child.runs or self._again):  # no use in waiting for what failed
            self._finish()

    def _complain(self, message: str) -> None:
        if message != self._state.trouble:
            self._say(f"error: {message}")
        self._state.trouble = message

    def _finish(self) -> None:
        with self._finished:
            self._state.finished = self._state.begun
            self._finished.notify_all()

    def _child_ended(self, *, well: bool) -> None:
        self._state.last = self._child.said or self._state.last
        self._state.trouble = "" if well else self._state.last
        self._state.wrote = time.monotonic()
        self._reopen()

    def _tidy(self) -> None:
        """Clean old versions away; what is too young for it, later."""
        self._state.wrote = time.monotonic()
        with contextlib.suppress(VaultError):
            if index.tidy(self._vault):
                self._state.wrote = None

    # what ends it

    def _reason_to_end(self) -> str:
        now = time.monotonic()
        if self._stop:
            return self._stop
        try:
            folder = self._vault.index_folder
        except VaultError as error:  # a pull brought another one
            return error.message
        if not folder.is_dir():
            return "the vault or its index folder is gone"
        if not ownership.is_ours(folder):
            return "its index folder is no longer ours"
        if not self._server.is_reachable():
            return "its socket is gone"
        if self._vault.folder.is_dir():
            self._seen = now
        elif now - self._seen > LOST_SECONDS:
            return f"{self._vault.folder} is gone"
        if state.package() != self._package:
            return "another version of vault-index was installed"
        if now - self._state.active > IDLE_SECONDS:
            return "a day without a question or a change"
        return ""

    # what it answers

    def _reply(self, question: Mapping[str, Any]) -> Mapping[str, Any]:
        if question.get("protocol") != line.PROTOCOL:
            return {"stranger": "another version of the protocol"}
        asked = question.get("ask")
        if asked == "status":
            return self._status()
        if asked == "stop":
            self.end("asked to")
            return {}
        if asked == "look":  # git changed something
            self._head = None
            self._events.hurry()
            return {}
        if question.get("settings") != self._environment:
            return {"stranger": "the watcher was started with other settings"}
        self._state.questions += 1
        self._state.active = time.monotonic()
        notes = self._catch_up(bool(question.get("settled"))) if question.get("fresh") else []
        if asked != "hook" and self._settings_now() != self._settings:  # since the turn looked
            return {"stranger": "the settings have just changed"}
        unusable = {"problem": self._unusable.message} if self._unusable else {}
        try:
            if self._unusable and asked != "hook":  # a hook goes by the settings of before
                raise self._unusable
            with self._slots:
                return {**self._answer_or_retry(question), "notes": notes, **unusable}
        except IndexStateError as error:
            if not error.newer and self._state.finished:
                self._damaged = True
                self._events.wake()
            if asked != "hook":  # the command builds one and shows how far it is
                return {"stranger": error.message}
            problem = error.message
        except VaultError as error:
            if asked != "hook":
                raise
            problem = error.message
        return {"answer": None, "problem": problem}

    def _answer_or_retry(self, question: Mapping[str, Any]) -> Mapping[str, Any]:
        try:
            return self._answer(self._vault, question)
        except IndexStateError:  # a laptop that slept in the middle of a query: its version is gone
            return self._answer(self._vault, question)

    def _catch_up(self, settled: bool) -> list[str]:
        """Wait until what was saved before this question is in the index, if that is soon.

        `settled`: also what follows from it.
        """
        notes = []
        with self._finished:
            self._settle_now = self._settle_now or settled
            wanted = self._state.begun + 1  # one that is under way may have looked too early
            self._events.hurry()
            until = time.monotonic() + PATIENCE_SECONDS
            own_until = time.monotonic() + OWN_PATIENCE_SECONDS
            while not (soon := self._state.finished >= wanted):
                now = time.monotonic()
                end = until if self._again or self._much else own_until
                if now >= end:
                    break
                self._finished.wait(min(end, now + AGAIN_SECONDS) - now)
        if not soon:
            notes.append("note: another process is indexing; searching the index as it is")
        if self._state.trouble:
            notes.append(f"warning: {self._state.trouble}; searching the index as it is")
        return notes + self._state.problems

    def _status(self) -> dict[str, Any]:
        from importlib import metadata  # takes as long to load as all of Python

        lessons: int | None = None
        with contextlib.suppress(VaultError):
            lessons = self._vault.open_index().lessons
        return {
            "pid": os.getpid(),
            "version": metadata.version("vault-index"),
            "vault": str(self.root),
            "socket": self._server.place,
            "lessons": lessons,
            "indexing": self._child.runs,
            "events": "polling" if self._events.polling else "events",
            **self._state.as_json(),
            **({"trouble": self._unusable.message} if self._unusable else {}),
        }

    # what it keeps open

    def _warm_up(self) -> None:
        """Take in what was saved, and load all that the first question would have to wait for."""
        memory.spare(AT_ONCE)
        with warming.embedding(self._vault):
            self._reconcile(quiet=False)
            with contextlib.suppress(VaultError):
                search.load_ahead(self._vault, rows=True)
        warming.ask_itself(self._vault, self._answer)

    def _reopen(self) -> None:
        """Read the settings and open the embedder again; until then commands answer themselves."""
        settings = self._settings_now()
        try:
            opened = open_vault(self.root)
            self._unusable = None
            with contextlib.suppress(VaultError):  # an embedder may be away
                if opened.config == self._vault.config and self._vault.embedder is not None:
                    opened = self._vault
                else:
                    warming.ask_itself(opened, self._answer)
            self._vault = opened
        except VaultError as error:
            self._unusable = error
            self._say(f"error: {error.message}")
        self._settings = settings

    def _settings_now(self) -> object:
        home = locate.home_folder(os.environ)
        return [stamp(self._vault.folder / locate.SETTINGS), stamp(Path(home) / "config.toml")]

    def _head_now(self) -> object:
        """Give what changes with each commit, checkout and reset, without asking git."""
        return () if self._reflog is None else stamp(self._reflog)
