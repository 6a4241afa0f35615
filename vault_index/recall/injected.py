"""The record of injections for people, with what else is known of each.

It adds each lesson's title, and the prompt's text if the journal or the agent's own transcript has it
under the same hash. Reads only.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vault_index.errors import VaultError
from vault_index.hotpath import spool
from vault_index.hotpath.log import MAX_SESSION_CHARS
from vault_index.journal import archive, transcript
from vault_index.journal.journal import Journal
from vault_index.journal.record import Session
from vault_index.recall import words
from vault_index.store import filters, injections
from vault_index.transcripts import reading
from vault_index.transcripts.moments import PERSON, Moment

if TYPE_CHECKING:
    from vault_index.vault import Vault

START = "SessionStart"
SILENT_ON = "silent_on"
SHOWN = (
    injections.PROMPT,
    START,
    injections.FAILURE,
    injections.EDIT,
    injections.SUBAGENT,
)  # what hooks asked; lookups of agents are no injections
_KINDS = {injections.FAILURE: "error", injections.EDIT: "file"}  # of others it is "prompt"
ANSWERED, SILENT = "answered", "silent"
ONLY = ("", ANSWERED, SILENT)
_SUMMED = ("prompts", "answered", "p50_ms", "p90_ms", "missed", "failures", "failures_answered")
_Key = tuple[str, str, str]  # session, hash of the prompt, lesson
_Record = Mapping[str, Any]
_Marks = Mapping[_Key, _Record]
_Again = Mapping[injections.Key, bool]


@dataclass(frozen=True, slots=True)
class Chosen:
    """Which records are wanted; an empty value is no condition."""

    session: str = ""  # the beginning of its id
    lesson: str = ""  # its id, or a part of that
    only: str = ""  # one of ONLY
    since: str = ""  # ISO 8601
    prompts: bool = False  # without the starts of sessions

    def has(self, record: _Record) -> bool:
        """Whether a record is wanted."""
        lessons = [*record["lessons"], str(record.get("near") or "")]
        return (
            str(record.get("session") or "").startswith(self.session)
            and not (self.prompts and record["event"] == START)
            and any(self.lesson in lesson for lesson in lessons)
            and self.only in ("", SILENT if _is_silent(record) else ANSWERED)
            and str(record.get("time") or "") >= self.since[:19]
        )


def page(vault: Vault, chosen: Chosen, limit: int, offset: int) -> dict[str, Any]:
    """Return some of the records that are wanted, the latest first, with `totals` of all of them.

    `more` is whether records follow.
    """
    lines = injections.with_names_of_now(_recorded(vault))
    marks = _marks(lines)
    wanted = [each for each in lines if each.get("event") in SHOWN and chosen.has(each)]
    wanted.reverse()
    some = wanted[offset : offset + limit]
    failures = [each for each in lines if each.get("event") == injections.FAILURE]
    again = injections.came_again(failures)
    details = _Details(vault, some, marks, again)
    prompts = [each for each in wanted if each["event"] == injections.PROMPT]
    return {
        "records": [details.of(each) for each in some],
        "more": len(wanted) > offset + limit,
        "totals": _totals(wanted, prompts, marks, again),
        "journal": spool.is_on(),
    }


def prompt_of(vault: Vault, session: str, key: str) -> str:
    """Return the text of a prompt by its hash, redacted; "" where no file has it any more."""
    for each in reversed(_recorded(vault)):
        if each.get("said") and _prompt_of(each) == (session[:MAX_SESSION_CHARS], key):
            return str(each["said"])
    return _Texts(vault).of(session, key)


def mark_of(vault: Vault, lesson: str, session: str, key: str) -> Mapping[str, Any] | None:
    """Return what somebody taught a lesson about a prompt: `kind`, `written`, `moved`, or None."""
    marks = _marks(injections.with_names_of_now(_recorded(vault)))
    return marks.get((session[:MAX_SESSION_CHARS], key, lesson))


def _recorded(vault: Vault) -> list[dict[str, Any]]:
    try:
        return injections.with_misses(vault.index_dir, vault.root)
    except VaultError:  # somebody else made the folder
        return []


def _marks(lines: Iterable[_Record]) -> dict[_Key, _Record]:
    """Return what was taught about prompts of the record, and not taken back since."""
    marks: dict[_Key, _Record] = {}
    for line in lines:
        if line.get("event") == injections.MARK:
            key = (str(line.get("session")), str(line.get("prompt")), str(line.get("lesson")))
            marks[key] = line
    return {key: line for key, line in marks.items() if line.get("written")}


def _is_silent(record: _Record) -> bool:
    return not (record["lessons"] or record.get("skills"))


def _totals(
    wanted: Sequence[_Record], prompts: Sequence[_Record], marks: _Marks, again: _Again
) -> dict[str, Any]:
    summed = injections.total(wanted[::-1], [])
    marked = sum(
        _taught(marks, *_prompt_of(each), lesson).startswith(SILENT_ON)  # or silent_on_error
        for each in wanted
        for lesson in each["lessons"]
    )
    keys = [(str(each.get("time") or ""), *_prompt_of(each)) for each in wanted]
    return {
        "since": prompts[-1].get("time") if prompts else None,
        **{name: summed[name] for name in _SUMMED},
        "silent": summed["prompts"] - summed["answered"],
        "marked": marked,
        "came_again": sum(again.get(key, False) for key in keys),
    }


class _Details:
    """More about some records: titles, texts of prompts."""

    def __init__(self, vault: Vault, some: Sequence[_Record], marks: _Marks, again: _Again) -> None:
        self._marks, self._came_again = marks, again
        near = {str(each.get("near") or "") for each in some}
        shown = {lesson for each in some for lesson in each["lessons"]}
        asked = {_prompt_of(each) for each in some}
        taught = {lesson for session, key, lesson in marks if (session, key) in asked}
        ids = sorted((shown | near | taught) - {""})
        self._titles = dict.fromkeys(ids, "")  # of those that there are; of a withheld one its id
        with suppress(VaultError):
            columns = ("lesson_id", "title", "withheld")
            rows = vault.open_index().store.rows(columns, filters.wholes_of(ids)) if ids else []
            self._titles = {
                row["lesson_id"]: row["lesson_id" if row["withheld"] else "title"] for row in rows
            }
        self._texts = _Texts(vault)
        self._words = words.last_of(vault)

    def of(self, record: _Record) -> dict[str, Any]:
        """Return a record with all that is known of it."""
        session, key = _prompt_of(record)
        in_journal = self._texts.in_journal(session)
        time, floor, ms = str(record.get("time") or ""), record.get("floor"), record.get("ms")
        scores = [score for score in record.get("scores") or () if isinstance(score, float)]
        lessons = record["lessons"]
        skills = [str(skill) for skill in record.get("skills") or ()]
        scores += [0.0] * (len(lessons) + len(skills) - len(scores))
        named = zip(skills, scores[len(lessons) :], strict=False)
        near = str(record.get("near") or "")
        taught = functools.partial(_taught, self._marks, session, key)
        nearest = {**self._lesson(near), "score": record.get("near_score"), "taught": taught(near)}
        return {
            "time": time,
            "event": str(record["event"]),
            "session": session,
            "project": in_journal.project if in_journal else "",
            "is_kept": in_journal is not None,
            "prompt": key,
            "kind": _KINDS.get(record["event"], "prompt"),
            "text": str(record.get("said") or "") or self._texts.of(session, key),
            "came_again": self._came_again.get((time, session, key)),
            "lessons": [
                {
                    **self._lesson(lesson),
                    "score": score,
                    "taught": taught(lesson),
                    "word": str(self._words.get(lesson, "")),
                    "is_taught": lesson in (record.get("taught") or ()),
                    "is_line": lesson
                    in (record.get("lines") or ()),  # the agent got its line alone
                }
                for lesson, score in zip(lessons, scores, strict=False)
            ],
            "skills": [{"name": name, "score": score} for name, score in named],
            "floor": floor if isinstance(floor, float) else None,
            "silent": str(record.get("silent") or ""),
            "missed": record.get("missed") is True,
            "near": nearest if near else None,
            "others": [  # that the prompt was taught about
                {**self._lesson(lesson), "taught": taught(lesson)}
                for *of_prompt, lesson in sorted(self._marks)
                if of_prompt == [session[:MAX_SESSION_CHARS], key]
                and lesson not in {*lessons, near}
            ],
            "ms": ms if isinstance(ms, (int, float)) else None,
            "by": str(record.get("by") or ""),
        }

    def _lesson(self, id: str) -> dict[str, Any]:
        return {"id": id, "title": self._titles.get(id, ""), "is_there": id in self._titles}


def _prompt_of(record: _Record) -> tuple[str, str]:
    return str(record.get("session") or ""), str(record.get("prompt") or "")


def _taught(marks: _Marks, session: str, prompt: str, lesson: str) -> str:
    """Return the list that a prompt of the record went into: fires_on | silent_on, "" for none."""
    mark = marks.get((session[:MAX_SESSION_CHARS], prompt, lesson))
    return str(mark.get("kind") or SILENT_ON) if mark else ""


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
