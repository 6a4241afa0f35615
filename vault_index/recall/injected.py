"""What agents were given, for people: the record of injections with what else is known of each.

Of a lesson its title and what the agent did with it, of a prompt its text: where the journal has it
under the same hash. Reads only, but for the ledger of outcomes, which goes on as for any reader.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vault_index import files
from vault_index.errors import VaultError
from vault_index.hotpath import grown
from vault_index.journal import places, session_file
from vault_index.journal.journal import Journal
from vault_index.journal.record import PROMPT, Session
from vault_index.recall import outcome
from vault_index.store import filters, injections

if TYPE_CHECKING:
    from vault_index.vault import Vault

START = "SessionStart"
SHOWN = (injections.PROMPT, START)  # what hooks asked; lookups of agents are no injections
ANSWERED, SILENT = "answered", "silent"
ONLY = ("", ANSWERED, SILENT)
MAX_TIMES = 500  # searches, the latest, of which the time is returned
_JUDGING_SECONDS = 0.5  # of somebody who waits for a page: the other sessions wait for the next
_Key = tuple[str, str, str]  # session, hash of the prompt, lesson


@dataclass(frozen=True, slots=True)
class Chosen:
    """Which records are wanted; an empty value is no condition."""

    session: str = ""  # the beginning of its id
    lesson: str = ""  # its id, or a part of that
    only: str = ""  # one of ONLY
    since: str = ""  # ISO 8601

    def has(self, record: Mapping[str, Any]) -> bool:
        """Whether a record is wanted."""
        lessons = [*record["lessons"], str(record.get("near") or "")]
        is_silent = not (record["lessons"] or record.get("skills"))
        return (
            str(record.get("session") or "").startswith(self.session)
            and any(self.lesson in lesson for lesson in lessons)
            and self.only in ("", SILENT if is_silent else ANSWERED)
            and str(record.get("time") or "") >= self.since[:19]
        )


def page(vault: Vault, chosen: Chosen, limit: int, offset: int) -> dict[str, Any]:
    """Return some of the records that are wanted, the latest first, with `totals` of all of them.

    `times` are those of the latest searches, oldest first, as [time, milliseconds, whether something
    came]; `more` is whether records follow.
    """
    kept = injections.with_names_of_now(_kept(vault))
    marks = _marks(kept)
    wanted = [each for each in kept if each.get("event") in SHOWN and chosen.has(each)]
    wanted.reverse()
    some = wanted[offset : offset + limit]
    known = _Known(vault, some, marks)
    prompts = [each for each in wanted if each["event"] == injections.PROMPT]
    return {
        "records": [known.shown(each) for each in some],
        "more": len(wanted) > offset + limit,
        "totals": {**_totals(prompts, marks), "missed": sum("missed" in each for each in wanted)},
        "times": _times(prompts[:MAX_TIMES]),
        "journal": grown.is_on(),
    }


def prompt_of(vault: Vault, session: str, key: str) -> str:
    """Return the text of a prompt by its hash; "" where the journal is off or has it not."""
    return _prompts(_session(vault, session)).get(key, "") if grown.is_on() else ""


def written_for(vault: Vault, lesson: str, session: str, key: str) -> str:
    """Return the hash of the prompt that a lesson's file got when it was marked; "" if it is not."""
    marks = _marks(injections.with_names_of_now(_kept(vault)))
    return marks.get((session[:80], key, lesson), "")


def _kept(vault: Vault) -> list[dict[str, Any]]:
    try:
        return injections.with_misses(vault.index_dir)
    except VaultError:  # somebody else made the folder
        return []


def _marks(kept: Iterable[Mapping[str, Any]]) -> dict[_Key, str]:
    """Return the injections that are marked false, each with the hash of what the lesson got."""
    marks: dict[_Key, str] = {}
    for line in kept:
        if line.get("event") == injections.MARK:
            key = (str(line.get("session")), str(line.get("prompt")), str(line.get("lesson")))
            marks[key] = str(line.get("written") or "")
    return {key: written for key, written in marks.items() if written}


def _totals(prompts: Sequence[Mapping[str, Any]], marks: Mapping[_Key, str]) -> dict[str, Any]:
    summed = injections.total(prompts[::-1], [])
    times = [ms for ms in (each.get("ms") for each in prompts) if isinstance(ms, (int, float))]
    marked = sum(
        (str(each.get("session")), str(each.get("prompt")), lesson) in marks
        for each in prompts
        for lesson in each["lessons"]
    )
    names = ("since", "prompts", "answered", "p50_ms", "p90_ms")
    return {
        **{name: summed[name] for name in names},
        "silent": summed["prompts"] - summed["answered"],
        "marked": marked,
        "slowest_ms": max(times, default=None),
    }


def _times(prompts: Iterable[Mapping[str, Any]]) -> list[list[Any]]:
    times = [
        [
            str(each.get("time") or ""),
            float(each["ms"]),
            bool(each["lessons"] or each.get("skills")),
        ]
        for each in prompts
        if isinstance(each.get("ms"), (int, float))
    ]
    return times[::-1]


class _Known:
    """What else is known of some records: titles, outcomes, texts of prompts."""

    def __init__(
        self, vault: Vault, some: Sequence[Mapping[str, Any]], marks: Mapping[_Key, str]
    ) -> None:
        self._vault = vault
        self._marks = marks
        near = {str(each.get("near") or "") for each in some}
        ids = sorted({lesson for each in some for lesson in each["lessons"]} | near - {""})
        self._titles = _titles(vault, ids)
        self._verdicts = _verdicts(vault) if any(each["lessons"] for each in some) else {}
        self._sessions: dict[str, Session | None] = {}
        self._has_journal = grown.is_on()

    def shown(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """Return a record with all that is known of it."""
        session, key = str(record.get("session") or ""), str(record.get("prompt") or "")
        if self._has_journal and session not in self._sessions:
            self._sessions[session] = _session(self._vault, session)
        kept = self._sessions.get(session)
        time, floor, ms = str(record.get("time") or ""), record.get("floor"), record.get("ms")
        scores = [score for score in record.get("scores") or () if isinstance(score, float)]
        lessons = record["lessons"]
        skills = [str(skill) for skill in record.get("skills") or ()]
        scores += [0.0] * (len(lessons) + len(skills) - len(scores))
        near = str(record.get("near") or "")
        nearest = {**self._lesson(near), "score": record.get("near_score")} if near else None
        return {
            "time": time,
            "event": str(record["event"]),
            "session": session,
            "project": kept.project if kept else "",
            "is_kept": kept is not None,
            "prompt": key,
            "text": _prompts(kept).get(key, ""),
            "lessons": [
                {
                    **self._lesson(lesson),
                    "score": score,
                    "outcome": self._verdicts.get((time, session, key, lesson), ""),
                    "is_marked": (session, key, lesson) in self._marks,
                }
                for lesson, score in zip(lessons, scores, strict=False)
            ],
            "skills": [
                {"name": name, "score": score}
                for name, score in zip(skills, scores[len(lessons) :], strict=False)
            ],
            "floor": floor if isinstance(floor, float) else None,
            "silent": str(record.get("silent") or ""),
            "missed": record.get("missed") is True,
            "near": nearest,
            "ms": ms if isinstance(ms, (int, float)) else None,
            "by": str(record.get("by") or ""),
        }

    def _lesson(self, id: str) -> dict[str, Any]:
        return {"id": id, "title": self._titles.get(id, ""), "is_there": id in self._titles}


def _titles(vault: Vault, ids: Sequence[str]) -> dict[str, str]:
    """Return the titles of those lessons that there are; of one that is withheld its id."""
    with suppress(VaultError):
        columns = ("lesson_id", "title", "withheld")
        rows = vault.open_index().store.rows(columns, filters.wholes_of(ids)) if ids else []
        return {row["lesson_id"]: row["lesson_id" if row["withheld"] else "title"] for row in rows}
    return dict.fromkeys(ids, "")


def _verdicts(vault: Vault) -> dict[tuple[str, str, str, str], str]:
    """Return what agents did with each injected lesson, as far as the ledger has it by itself."""
    entries = outcome.of(vault, _JUDGING_SECONDS).ledger.open.values()
    return {
        (entry.time, entry.session, entry.prompt, lesson): verdict
        for entry in entries
        for lesson, verdict in zip(entry.lessons, entry.verdicts, strict=True)
        if verdict
    }


def _session(vault: Vault, id: str) -> Session | None:
    """Return a session that the journal has, by its whole id."""
    if not id:
        return None
    folder = Journal(vault.config).folder
    for file in places.session_files(folder, named=places.file_name(id)):
        with suppress(VaultError):
            session = session_file.parse(files.read_file(file), file)
            if session.id[:80] == id[:80]:
                return session
    return None


def _prompts(session: Session | None) -> dict[str, str]:
    """Return the texts of a session's prompts by their hashes."""
    records = session.records if session else ()
    return {injections.key_of(each.text): each.text for each in records if each.kind == PROMPT}
