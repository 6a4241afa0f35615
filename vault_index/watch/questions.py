"""Which questions the watcher answers, and how fresh the answers are.

A search right after saving finds what was saved: a `fresh` question waits for a pass that begins after
it. The watcher declines a question, so that the caller answers it itself, if the settings have just
changed, or if the index is damaged. It declines no hook for the second: a hook has no time to index, so
it gets an answer from the files, or the problem to log.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from typing import Any

from vault_index import api
from vault_index.errors import IndexStateError, VaultError
from vault_index.store import injections
from vault_index.watch.current import CurrentVault
from vault_index.watch.events import FileEvents
from vault_index.watch.progress import Progress

AT_ONCE = (os.cpu_count() or 1) + 1  # searches: more of them only get in each other's way

Answer = Mapping[str, Any]


class Questions:
    """Answers questions, each in a thread, and keeps for the loop what they call for.

    `asked` counts them.
    """

    def __init__(
        self,
        current: CurrentVault,
        progress: Progress,
        events: FileEvents,
        waits_for_others: Callable[[], bool],
    ) -> None:
        self.asked = 0
        self._full_asked = False  # a question needs what only a full pass refreshes
        self._index_damaged = False  # a search showed it
        self._current = current
        self._progress = progress
        self._events = events
        self._waits_for_others = waits_for_others
        self._slots = threading.BoundedSemaphore(AT_ONCE)

    def answer(self, question: Answer) -> Answer:
        """Answer or decline a question of `api`. Raises VaultError, which is part of the answer."""
        self.asked += 1
        notes = self._catch_up(bool(question.get("settled"))) if question.get("fresh") else []
        is_hook = question.get("ask") == "hook"
        if is_hook and self._current.settings_changed():  # they are in force at once
            self._events.wake()
            return {"declined": "the settings have just changed"}
        if is_hook:
            return {"notes": notes, **self._answer_hook(question)}
        notes = [*self._current.vault.config.warnings(), *notes]
        if self._current.settings_changed():  # since the loop looked
            return {"declined": "the settings have just changed", "for_now": True}
        if self._current.unusable:
            raise self._current.unusable
        try:
            return {"notes": notes, **self._search(question)}
        except IndexStateError as error:  # the command builds one and shows how far it is
            self._report(error)
            return {"declined": error.message, "for_now": not error.newer}

    def take_calls(self) -> tuple[bool, bool]:
        """Return, once, whether questions called for a full pass, and whether the index is damaged."""
        full, damaged = self._full_asked, self._index_damaged
        if full:  # one more question meanwhile gets the same pass
            self._full_asked = False
        if damaged:
            self._index_damaged = False
        return full, damaged

    def _answer_hook(self, question: Answer) -> Answer:
        unusable = self._current.unusable
        problem = {"problem": unusable.message} if unusable else {}
        try:
            return {**problem, **self._search(question)}
        except VaultError as error:
            if not isinstance(error, IndexStateError):
                return {"answer": None, "problem": error.message}
            self._report(error)
            is_prompt = question["with"]["event"]["hook_event_name"] == injections.PROMPT
            if error.newer or not is_prompt:
                return {"answer": None, "problem": error.message}
            problem["problem"] = f"{error.message}; the lesson files were searched"
        with_files = {**question, "with": {**question["with"], "from_files": True}}
        return {**problem, "missed": False, **self._search(with_files)}

    def _search(self, question: Answer) -> Answer:
        with self._slots:
            try:
                return api.answer(self._current.vault, question)
            except IndexStateError:  # a laptop slept in the middle of a query: its version is gone
                return api.answer(self._current.vault, question)

    def _report(self, error: IndexStateError) -> None:
        if not error.newer and self._progress.has_finished_any:
            self._index_damaged = True
            self._events.wake()

    def _catch_up(self, full: bool) -> list[str]:
        """Wait until what was saved before this question is in the index, if that is soon.

        With `full`, also what follows from it. Return what there is to say of the index as it is.
        """
        if full:
            self._full_asked = True
        notes = []
        if not self._progress.wait_for_next(self._events.hurry, self._waits_for_others):
            notes.append("note: another process is indexing; searching the index as it is")
        if self._progress.trouble:
            notes.append(f"warning: {self._progress.trouble}; searching the index as it is")
        return notes + self._progress.problems
