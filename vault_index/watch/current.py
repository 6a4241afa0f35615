"""The vault as its settings are now, opened and warm: its questions, and the passes that keep them fresh.

A question right after a save finds what was saved: a `fresh` one waits for a pass that begins after it,
a hook for one that begins after the last event of the file system. The watcher declines a question,
so that the caller answers it itself, if the settings have just named another embedder, or if the index
is damaged. It declines no hook: a hook has no time to index, so it gets an answer from the files, or
the problem to log.

Python loads modules when they are needed, the embedder its model at the first text, and LanceDB a
table and the words of its text index when they are read: all of it is loaded before a question.
"""

from __future__ import annotations

import contextlib
import math
import os
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import vault_index
import vault_index.api.search  # `api` would load it at the first prompt
from vault_index import api, embed, files
from vault_index.embed import Embedder, download
from vault_index.errors import EmbedderError, IndexStateError, VaultError
from vault_index.hotpath import hook_event
from vault_index.index import reconcile, skills, words
from vault_index.journal.journal import Journal
from vault_index.recall import allowed
from vault_index.recall.respond import WITHOUT_INDEX, respond
from vault_index.retrieval import above, failures, floor, query
from vault_index.store import manifest
from vault_index.store.completing import Completed
from vault_index.store.sync import Stats
from vault_index.text.words import count
from vault_index.vault import OpenIndex, Vault, open_vault, stamp_settings
from vault_index.watch import background_index
from vault_index.watch.events import FileEvents

AT_ONCE = (os.cpu_count() or 1) + 1  # searches: more of them only get in each other's way
PATIENCE_SECONDS = 3.0  # that a question waits while another process writes
OWN_PATIENCE_SECONDS = 8.0  # and while this one does; the command that asks waits for ten
ANSWER_SECONDS = 0.3  # that a hook's answer takes at most, after a save was taken in
POLL_SECONDS = 0.2  # between two looks whether another process is to be waited for

_NO_VECTORS = "warning: full text only: "

Answer = Mapping[str, Any]
Place = TypeVar("Place", Vault, Journal)
T = TypeVar("T")


class Progress:
    """The passes that began and ended, and their outcome. `last` and `trouble` are for people."""

    def __init__(self, say: Callable[[str], None], events: FileEvents) -> None:
        self.last = ""  # what the last pass that wrote did
        self.trouble = ""  # why the last pass failed
        self.problems: list[str] = []  # files that are not in the index as they are
        self.finished = 0  # passes
        self.waits_for_others = False  # another process writes, which may take long
        self._no_vectors = ""  # why not, as it was said last
        self._begun = 0
        self._event_count = 0.0  # events, before the last pass began
        self._say = say
        self._events = events
        self._started = time.monotonic()
        self._changed = threading.Condition()

    def begin(self, event_count: int) -> None:
        with self._changed:
            self._begun += 1
            self._event_count = event_count

    def finish(self) -> None:
        """Note that the last pass took in all that was saved before it began, or cannot."""
        with self._changed:
            self.finished = self._begun
            self._changed.notify_all()

    def wait_for(self, event_count: float, hook_seconds: float | None = None) -> bool:
        """Wait for a pass that began after the first `event_count` events, and call for one if need be.

        Whether it ended in time. A hook waits for `hook_seconds`, and not where that may be in vain.
        """
        with self._changed:
            wanted = self._begun  # one that runs now may have looked too early
            if self._event_count < event_count:
                wanted += 1
                self._events.hurry()
            began = time.monotonic()
            while self.finished < wanted:
                seconds = PATIENCE_SECONDS if self.waits_for_others else OWN_PATIENCE_SECONDS
                if hook_seconds is not None:
                    seconds = 0.0 if self.waits_for_others or self.trouble else hook_seconds
                remaining = began + seconds - time.monotonic()
                if remaining <= 0:
                    return False
                self._changed.wait(min(remaining, POLL_SECONDS))
        return True

    def take(self, stats: Stats) -> None:
        problems = [f"{each.path}:{each.line}: {each.message}" for each in stats.problems]
        if not stats.busy and not stats.pending:
            self.trouble = ""
            self.problems = [f"warning: {problem}" for problem in problems]
            self._take_reason(stats.no_vectors or (self._no_vectors if stats.lacking else ""))
        if stats.wrote:
            self.last = f"{stats} in {stats.seconds:.2f} s"
            self._say("\n".join([self.last, *problems]))

    def _take_reason(self, no_vectors: str) -> None:
        """Say once why saved files are found by words alone, and tell whoever asks."""
        if no_vectors:
            self.problems.append(f"{_NO_VECTORS}{no_vectors}")
            if no_vectors != self._no_vectors:
                self._say(self.problems[-1])
        self._no_vectors = no_vectors

    def take_vectors(self, completed: Completed) -> None:
        """Say how many vectors were made for rows that lacked theirs."""
        self.problems = [each for each in self.problems if not each.startswith(_NO_VECTORS)]
        self._take_reason(completed.why)
        if completed.embedded:
            self.last = f"{count(completed.embedded, 'vector')} made"
            self._say(self.last)

    def take_printed(self, printed: str, *, succeeded: bool) -> None:
        self._say(printed)
        self.last = printed.rpartition("\n")[2] or self.last
        self.trouble = "" if succeeded else self.last

    def complain(self, message: str) -> None:
        if message != self.trouble:
            self._say(f"error: {message}")
        self.trouble = message

    def as_json(self) -> dict[str, Any]:
        seconds = round(time.monotonic() - self._started)
        return {"seconds": seconds, "last": self.last, "trouble": self.trouble}


class CurrentVault:
    """The loop opens `vault` again when its embedder changes; each question reads it in its thread.

    `unusable` is why the settings as they are now are not in force; `asked` counts the questions.
    """

    def __init__(
        self,
        root: Path,
        say: Callable[[str], None],
        embedder: SharedEmbedder,
        progress: Progress,
        events: FileEvents,
    ) -> None:
        self.root = root
        self.questions = 0
        self._full_asked = False  # a question needs what only a full pass refreshes
        self._index_damaged = False  # a search showed it
        self._progress = progress
        self._events = events
        self._slots = threading.BoundedSemaphore(AT_ONCE)
        self._embedder = embedder
        self._in_force = self._seen = stamp_settings(self.root)  # by questions, by the loop
        self._taking = threading.Lock()
        self.vault = embedder.lend(open_vault(root))
        self._embedding = _embedding(self.vault)
        self.unusable: VaultError | None = None
        self._waited_for: dict[str, list[int]] = {}  # stamps of skills
        self._say = say
        self._warn()

    def _take_settings(self) -> None:
        """Put the settings as they are now in force, at a question; broken ones change nothing.

        The index and the embedder stay open. Another embedder is opened by the loop.
        """
        with self._taking:
            now = stamp_settings(self.root)
            if now == self._in_force:
                return
            try:
                config = open_vault(self.root).config
            except VaultError as error:
                self.unusable = error
                self._say(f"error: {error.message}")
            else:
                self.unusable = None
                if config != self.vault.config:
                    self.vault.config = config
                    self._warn()
            self._in_force = now

    def reopen(self) -> None:
        self._seen = stamp_settings(self.root)
        self._take_settings()
        if not self._changes_embedder and not self._lacks_model():
            return
        with contextlib.suppress(VaultError):  # a server that embeds may be away
            opened = self._embedder.lend(open_vault(self.root))
            embedding = _embedding(opened)
            with contextlib.suppress(VaultError):
                warm_up(opened)
            with self._taking:
                opened.config = self.vault.config  # may be newer
                self.vault, self._embedding = opened, embedding

    @property
    def _changes_embedder(self) -> bool:
        return _embedding(self.vault) != self._embedding

    def _warn(self) -> None:
        for line in self.vault.config.warnings():
            self._say(line)

    def has_index(self) -> bool:
        """Whether there is an index to ask, of whatever version."""
        return manifest.current(self.vault.index_dir) is not None

    def is_outdated(self) -> bool:
        """Whether the settings changed, or the built-in model came."""
        came = self._lacks_model() and download.is_ready(self.vault.config.home)
        return came or stamp_settings(self.root) != self._seen

    def model_is_due(self) -> bool:
        return self._lacks_model() and download.is_due(self.vault.config)

    def skills_changed(self) -> bool:
        """Whether a SKILL.md was saved: they are few, so comparing all of them will do."""
        with contextlib.suppress(VaultError):
            return skills.stamps(self.vault) != self.vault.open_index().known_skills
        return False

    def _skill_saved(self) -> bool:
        """Whether a SKILL.md was saved and no question has waited for it."""
        with contextlib.suppress(VaultError):
            now = skills.stamps(self.vault)
            before, self._waited_for = self._waited_for, now
            return now != before and now != self.vault.open_index().known_skills
        return False

    def _lacks_model(self) -> bool:
        return self.vault.config.is_built_in and self.vault.embedder is None

    # what it answers

    def answer(self, question: Answer) -> Answer:
        """Answer or decline a question. Raises VaultError, which is part of the answer."""
        self.questions += 1
        is_waiting = self._progress.waits_for_others
        is_fresh = question.get("fresh") or (not is_waiting and self._skill_saved())
        notes = self._catch_up(bool(question.get("settled"))) if is_fresh else []
        self._take_settings()
        if question["ask"] == "hook":
            return self._answer_hook(question["with"])
        notes = [*self.vault.config.warnings(), *notes]
        if self._changes_embedder:
            return {"declined": "the settings have just changed", "for_now": True}
        if self.unusable:
            raise self.unusable
        try:
            answered = self._searched(partial(api.answer_on_wire, request=question))
            return {"notes": notes, **answered}
        except IndexStateError as error:  # the command builds one and shows how far it is
            return {"declined": error.message, "for_now": not error.newer}

    def take_calls(self) -> tuple[bool, bool]:
        """Return, once, whether questions called for a full pass, and whether the index is damaged."""
        full, damaged = self._full_asked, self._index_damaged
        if full:  # one more question meanwhile gets the same pass
            self._full_asked = False
        if damaged:
            self._index_damaged = False
        return full, damaged

    def _answer_hook(self, request: Answer) -> Answer:
        event, until = hook_event.Event.of(request["event"]), request["until"]
        # what was saved a moment ago, if it comes in time for the answer
        seconds = min(until - time.monotonic() - ANSWER_SECONDS, OWN_PATIENCE_SECONDS)
        if self.has_index():  # the files are as they are
            self._progress.wait_for(self._events.count(), seconds)
        unusable = self.unusable
        answer = partial(respond, event=event, by="watcher", ms=request["ms"], until=until)
        try:
            problem = unusable.message if unusable else ""
            return {"answer": self._searched(answer), "problem": problem}
        except VaultError as error:
            is_damaged = isinstance(error, IndexStateError) and not error.newer
            if not is_damaged or event.hook_event_name not in WITHOUT_INDEX:
                return {"answer": None, "problem": error.message}
            problem = f"{error.message}; the lesson files were searched"
        found = answer(self.vault, from_files=True)
        return {"answer": found, "problem": problem, "missed": False}

    def _searched(self, answer: Callable[..., T]) -> T:
        """Return an answer of the vault. Raises VaultError.

        The version of the index that was open may be gone, after a laptop slept: so it is tried twice.
        """
        with self._slots:
            with contextlib.suppress(IndexStateError):
                return answer(self.vault)
            try:
                return answer(self.vault)
            except IndexStateError as error:
                if not error.newer and self._progress.finished:
                    self._index_damaged = True
                    self._events.wake()
                raise

    def _catch_up(self, full: bool) -> list[str]:
        """Wait until saved files, with `full` all that follows, are indexed; return the notes."""
        if full:
            self._full_asked = True
        notes = []
        if not self._progress.wait_for(math.inf):
            notes.append("note: another process is indexing; searching the index as it is")
        if self._progress.trouble:
            notes.append(f"warning: {self._progress.trouble}; searching the index as it is")
        return notes + self._progress.problems


def _embedding(vault: Vault) -> tuple[str, ...]:
    config = vault.config
    return config.embedder, config.ollama_model, config.ollama_host


class SharedEmbedder:
    """The one built-in embedder in memory, for all vaults and the journal."""

    def __init__(self) -> None:
        self._opened: dict[str, Embedder | None] = {}
        self._opening = threading.Lock()

    def lend(self, owner: Place) -> Place:
        """Return a vault or journal with the shared embedder, if its settings want that."""
        if owner.config.is_built_in:
            with self._opening:
                name = owner.config.embedder
                opened = self._opened.get(name)
                with contextlib.suppress(EmbedderError):  # not installed: each use says so
                    opened = self._opened[name] = opened or embed.open_embedder(owner.config)
            if opened is not None:
                owner.__dict__["embedder"] = opened
        return owner


def stamp_package() -> list[tuple[str, tuple[int, ...]]]:
    """Return a stamp that an upgrade of this package changes: sizes and mtimes. A backup sets ctimes."""
    folder = Path(vault_index.__file__).parent
    return sorted((str(file), files.stamp(file)[:2]) for file in folder.rglob("*.py"))


SAMPLE = "load the model"  # any text will do: the first makes CTranslate2 allocate
SAMPLE_CHARS = 200  # of a row, to search for


def warm_up(vault: Vault, first: Callable[[], object] = lambda: None) -> None:
    """Load the model, the tables and the modules that the first prompt needs.

    `first` is done before the tables are opened, while the model loads. Raises IndexStateError without
    an index.
    """
    with query.embedding(vault, SAMPLE):
        first()
        load_tables(vault)
    if not vault.config.is_built_in:  # the server loads its model, too
        query.embed_ahead(vault, SAMPLE)


_loaded: WeakKeyDictionary[Vault, OpenIndex] = WeakKeyDictionary()


def load_tables(vault: Vault) -> None:
    """Open the tables that a prompt searches and read all that a search needs of them, unless it was.

    A commit alone opens the index again, as its manifest has the head, and so does another process that
    writes. The tables that were open before keep the old version on disk. Raises IndexStateError
    without an index.
    """
    opened = vault.open_index()
    if _loaded.get(vault) is opened:
        return
    for table in (opened.store, opened.skills):
        if table.exists():
            table.load(warm=True)
            for row in table.take(range(table.count())[:1]):
                # LanceDB reads its text indexes when words are searched for
                table.matches(str(row["text"])[:SAMPLE_CHARS])
                if table.schema.exact_text:
                    table.identified(SAMPLE, None)
    allowed.load(opened.store)
    failures.taught_lines(opened.store)
    words.of(vault)
    _loaded[vault] = opened


def keep_loaded(vault: Vault) -> None:
    """Load the tables of a vault and of those above it, where somebody wrote an index since."""
    for one in (vault, *(other for _, other in above.opened(vault))):
        with contextlib.suppress(VaultError):
            load_tables(one)


def take_in_above(vault: Vault) -> None:
    """Bring the indexes of the vaults above up to date, and keep them loaded."""
    for _, other in above.opened(vault):
        with contextlib.suppress(VaultError):
            stats = reconcile.at_once(other, full=True)
            is_behind = stats.pending or stats.unbuilt or stats.is_unfinished
            if is_behind or floor.is_unmeasured(other):
                background_index.start_index(other)
            load_tables(other)
