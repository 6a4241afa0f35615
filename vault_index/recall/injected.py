"""The record of injections for people, with what else is known of each.

It adds each lesson's title, and the prompt's text if the journal or the agent's own transcript has it
under the same hash. Reads only.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from vault_index.errors import VaultError
from vault_index.hotpath import spool
from vault_index.hotpath.log import MAX_SESSION_CHARS
from vault_index.journal import archive, transcript
from vault_index.journal.journal import Journal
from vault_index.journal.record import Session
from vault_index.recall import words
from vault_index.store import filters, injections
from vault_index.store.injections import LINE, SKILL, WHOLE, Chosen, Record
from vault_index.transcripts import reading
from vault_index.transcripts.moments import PERSON, Moment

if TYPE_CHECKING:
    from vault_index.vault import Vault

_KINDS = {injections.FAILURE: "error", injections.EDIT: "file"}  # of others it is "prompt"
ONLY = ("", injections.ANSWERED, injections.SILENT)


def page(vault: Vault, chosen: Chosen, limit: int, offset: int) -> dict[str, Any]:
    """Return some of the records that are wanted, the latest first, with `totals` of all of them.

    `more` is whether records follow.
    """
    home, root = vault.config.home, vault.root
    injections.take_in_misses(home, root)
    some = injections.records(home, root, chosen, limit + 1, offset)
    details = _Details(vault, some[:limit])
    totals = injections.total(home, root, chosen)
    return {
        "records": [details.of(each) for each in some[:limit]],
        "more": len(some) > limit,
        "totals": {**totals, "silent": totals["prompts"] - totals["answered"]},
        "journal": spool.is_on(),
    }


def prompt_of(vault: Vault, session: str, key: str) -> str:
    """Return the text of a prompt by its hash, redacted; "" where no file has it any more."""
    asked = Chosen(session=session[:MAX_SESSION_CHARS])
    for each in injections.records(vault.config.home, vault.root, asked):
        if each.said and each.prompt == key:
            return each.said
    return _Texts(vault).of(session, key)


class _Details:
    """More about some records: titles, texts of prompts."""

    def __init__(self, vault: Vault, some: Sequence[Record]) -> None:
        self._marks = injections.marks(vault.config.home, vault.root)
        shown = {given.lesson for each in some for given in each.given if given.form != SKILL}
        asked = {(each.session, each.prompt) for each in some}
        taught = {lesson for *prompt, lesson in self._marks if (*prompt,) in asked}
        ids = sorted(shown | taught)
        self._titles: dict[str, str] = {}  # of those that there are; of a withheld one its id
        with suppress(VaultError):
            columns = ("lesson_id", "title", "withheld")
            rows = vault.open_index().store.rows(columns, filters.wholes_of(ids)) if ids else []
            self._titles = {
                row["lesson_id"]: row["lesson_id" if row["withheld"] else "title"] for row in rows
            }
        self._texts = _Texts(vault)
        self._words = words.last_of(vault)

    def of(self, record: Record) -> dict[str, Any]:
        """Return a record with all that is known of it."""
        session, key = record.session, record.prompt
        in_journal = self._texts.in_journal(session)
        return {
            "time": record.time,
            "event": record.event,
            "session": session,
            "project": in_journal.project if in_journal else "",
            "is_kept": in_journal is not None,
            "prompt": key,
            "kind": _KINDS.get(record.event, "prompt"),
            "text": record.said or self._texts.of(session, key),
            "came_again": record.came_again,
            "lessons": [
                {
                    **self._lesson(record, each.lesson),
                    "score": each.score or 0.0,
                    "word": str(self._words.get(each.lesson, "")),
                    "is_taught": each.taught,
                    "is_line": each.form == LINE,  # the agent got its line alone
                }
                for each in record.given
                if each.form in (WHOLE, LINE)
            ],
            "skills": [
                {"name": each.lesson.partition(":")[2], "score": each.score}
                for each in record.given
                if each.form == SKILL
            ],
            "floor": record.floor,
            "silent": record.silent,
            "missed": record.missed,
            "near": {**self._lesson(record, record.near.lesson), "score": record.near.score}
            if record.near
            else None,
            "others": [  # that the prompt was taught about
                self._lesson(record, lesson)
                for *prompt, lesson in sorted(self._marks)
                if prompt == [session, key] and lesson not in [g.lesson for g in record.given]
            ],
            "ms": record.ms,
            "by": record.by,
        }

    def _lesson(self, record: Record, id: str) -> dict[str, Any]:
        mark = self._marks.get((record.session, record.prompt, id))
        known = {"id": id, "title": self._titles.get(id, ""), "is_there": id in self._titles}
        return known | {"taught": mark.kind if mark else ""}


class _Texts:
    """The texts of prompts by their hashes: of the journal, else of agents."""

    def __init__(self, vault: Vault) -> None:
        self._journal = Journal(vault.config)
        self.in_journal = functools.cache(self._in_journal)
        self._known = functools.cache(self._prompts)

    def of(self, session: str, key: str) -> str:
        """Return the text of a prompt, redacted; "" where nothing has it."""
        return self._known(session).get(key, "") if session and key else ""

    def _in_journal(self, id: str) -> Session | None:
        with suppress(VaultError):
            return archive.named(self._journal, id[:MAX_SESSION_CHARS]) if id else None
        return None

    def _prompts(self, id: str) -> dict[str, str]:
        kept = self.in_journal(id)
        there = archive.moments_of(self._journal, kept) if kept else self._of_agent(id)
        return {injections.key_of(each.text): each.text for each in there if each.kind == PERSON}

    def _of_agent(self, id: str) -> Iterable[Moment]:
        """Return a session as the agent's transcript has it; nothing of one that was forgotten."""
        if archive.is_forgotten(self._journal, id):
            return ()
        for each in reading.transcripts():
            if each.path.stem.endswith(id):
                with suppress(VaultError):
                    return transcript.read(each.path, each.agent).moments
        return ()
