"""The injections that agents got, and what a person teaches about them."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from vault_index import api
from vault_index.api.question import Caller, command, question
from vault_index.api.search import failure_recalled
from vault_index.edit import teach, update
from vault_index.errors import VaultError, WriteError
from vault_index.hotpath import spool
from vault_index.hotpath.log import MAX_SESSION_CHARS
from vault_index.journal import archive, capture
from vault_index.journal.journal import Journal
from vault_index.journal.record import Session
from vault_index.recall import anchors, words
from vault_index.search import above
from vault_index.store import filters, injections
from vault_index.store.injections import LINE, SKILL, WHOLE, Chosen, Record
from vault_index.text import failure
from vault_index.transcripts import reading
from vault_index.transcripts.moments import PERSON, Moment
from vault_index.vault import Vault

MAX_WHY_CHARS = 300  # of what somebody says of a lesson
FAILED = "failed"  # commands
_KINDS = {injections.FAILURE: "error", injections.EDIT: "file"}  # of others it is "prompt"


@question
def select(
    vault: Vault,
    session: str = "",
    lesson: str = "",
    only: str = "",
    since: str = "",
    only_prompts: bool = False,
    limit: int = 50,
    offset: int = 0,
) -> dict[str, Any]:
    """Return what agents got at which prompt, the latest first: `records`, `totals`, `more`.

    `session` is the beginning of an id and `lesson` a part of one; `only` is "answered", "silent"
    or "failed", `since` ISO 8601; `only_prompts` leaves out the starts of sessions. A record's `text`
    is the prompt if a file still has it; the `near` of a silence is the lesson nearest to the `floor`.
    """
    if only not in ("", injections.ANSWERED, injections.SILENT, FAILED):
        raise VaultError(f"no kind of record {only!r:.40}", "choose answered, silent or failed")
    hooks = [event for event in injections.HOOKS if not only_prompts or event != injections.START]
    hooks, only = ([injections.FAILURE], "") if only == FAILED else (hooks, only)
    chosen = Chosen(session, lesson, only, since, hooks)
    home, root, limit = vault.config.home, vault.root, max(1, limit)
    injections.take_in_misses(home, root)
    some = injections.records(home, root, chosen, limit + 1, max(0, offset))
    details = _Details(vault, some[:limit])
    totals = injections.total(home, root, chosen)
    return {
        "records": [details.of(each) for each in some[:limit]],
        "more": len(some) > limit,
        "totals": {**totals, "silent": totals["prompts"] - totals["answered"]},
        "journal": spool.is_on(),
    }


class _Details:
    """More about some records: titles, texts of prompts."""

    def __init__(self, vault: Vault, some: Sequence[Record]) -> None:
        self._marks = injections.marks(vault.config.home, vault.root)
        given_ids = {given.lesson for each in some for given in each.given if given.form != SKILL}
        asked = {(each.session, each.prompt) for each in some}
        taught = {lesson for *prompt, lesson in self._marks if (*prompt,) in asked}
        ids = sorted(given_ids | taught)
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
        return self._known(session).get(key, "") if session and key else ""

    def _in_journal(self, id: str) -> Session | None:
        with suppress(VaultError):
            return archive.named(self._journal, id[:MAX_SESSION_CHARS]) if id else None
        return None

    def _prompts(self, id: str) -> dict[str, str]:
        kept = self.in_journal(id)
        moments = archive.moments_of(self._journal, kept) if kept else self._of_agent(id)
        return {injections.key_of(each.text): each.text for each in moments if each.kind == PERSON}

    def _of_agent(self, id: str) -> Iterable[Moment]:
        """Return a session as the agent's transcript has it; nothing of one that was forgotten."""
        if archive.is_forgotten(self._journal, id):
            return ()
        for each in reading.transcripts():
            if each.path.stem.endswith(id):
                with suppress(VaultError):
                    return capture.read(each.path, each.agent).moments
        return ()


@command
def teach_lesson(
    vault: Vault,
    caller: Caller,
    name: str,
    kind: str,
    prompt: str = "",
    session: str = "",
    key: str = "",
    undo: bool = False,
) -> dict[str, Any]:
    """Write into a lesson that it fires at a prompt, or stays out; with `undo` take that back.

    `kind` is fires_on or silent_on, or for a line of a failed command fires_on_error or
    silent_on_error. The prompt or line is `prompt` or, of a record, that of the `session` with
    the hash `key`, as far as its text was kept. The answer: `id`, `title`, `path`, the `prompt` as
    written, `kind`, `changed`, and whether it `acts`: whether an agent would get the lesson for
    it now, or not, as taught; `silent` says why it does not act.
    """
    is_error = kind in teach.ERRORS
    if not is_error and kind not in teach.PROMPTS:
        every = ", ".join((*teach.PROMPTS, *teach.ERRORS))
        raise VaultError(f"no list of prompts {kind!r:.40}", f"choose one of {every}")
    entry: Any = caller.ask(api.lesson.show(name=name))["entry"]
    home, at = vault.config.home, (session[:MAX_SESSION_CHARS], key or _key(prompt), entry["id"])
    mark = injections.marks(home, vault.root).get(at) if undo else None
    if mark and not prompt.strip():
        prompt = next((each for each in entry[kind] if _key(each) == mark.written), "")
    prompt = prompt if prompt.strip() else _prompt_of(vault, session, key)
    if not prompt.strip():
        raise VaultError("the text of this prompt was not kept", "type the prompt, or words of it")
    if undo:
        change = teach.undo(vault, entry, prompt, kind, moved=bool(mark and mark.moved))
    else:
        change = teach.write(vault, entry, prompt, kind)
    new = None if undo else injections.Mark(kind, _key(change.prompt), change.moved)
    with suppress(WriteError):
        injections.mark(home, vault.root, (session, key or _key(prompt), entry["id"]), new)
    if is_error:
        now = failure_recalled(vault, caller, failure.read("", change.prompt))
    else:
        now = caller.ask(api.search.recall(query=change.prompt), settled=True)
    comes = entry["id"] in [hit.lesson_id for hit in now.hits]
    wanted = kind in (teach.FIRES, teach.FIRES_ON_ERROR)
    acts = undo or comes is wanted
    why = now.silent or ("others come before it" if wanted else "the lesson still comes")
    about = {"id": entry["id"], "title": entry["title"], "path": str(change.file)}
    done = {"prompt": change.prompt, "kind": kind, "changed": change.changed}
    return {**about, **done, "acts": acts, "silent": why}


def _prompt_of(vault: Vault, session: str, key: str) -> str:
    """Return the text of a prompt by its hash, redacted; "" where nothing has it any more."""
    asked = Chosen(session=session[:MAX_SESSION_CHARS])
    for each in injections.records(vault.config.home, vault.root, asked):
        if each.said and each.prompt == key:
            return each.said
    return _Texts(vault).of(session, key)


def _key(prompt: str) -> str:
    return injections.key_of(" ".join(prompt.split()))


@command
def useful(
    vault: Vault, caller: Caller, name: str, word: str, why: str = "", by: str = words.PERSON
) -> dict[str, Any]:
    """Note whether a lesson was useful: `word` is yes, no or wrong, `by` is person or agent.

    The answer: `id`, `title`, `word`, `by`, and whether hooks leave the lesson out now: `is_left_out`.
    """
    if word not in words.WORDS or by not in words.SPEAKERS:
        raise VaultError(f"no word {word!r:.40}", "choose yes, no or wrong")
    entry: Any = caller.ask(api.lesson.show(name=name))["entry"]
    elsewhere = above.named(vault, entry["id"])
    other, id = elsewhere[1:] if elsewhere else (vault, entry["id"])
    caller.index(other)
    words.say(other, id, word, by, " ".join(why.split())[:MAX_WHY_CHARS])
    wrong = words.wrong(other, [id]).get(id)
    about = {"id": entry["id"], "title": entry["title"], "word": word, "by": by}
    return {**about, "is_left_out": bool(wrong and wrong.withholds)}


# Lessons that need another look, and their confirmation.


@command
def stale_lessons(vault: Vault, caller: Caller, only_wrong: bool = False) -> dict[str, Any]:
    """List why lessons should be looked at again: `reasons`, each with what to `do`, and `lessons`.

    Each has `lesson`, `title`, `path`, `why` and `kind` (wrong | anchor | file); with `only_wrong` no
    more than those that were called wrong.
    """
    caller.index(vault)
    reasons = [*words.reasons(vault), *(() if only_wrong else anchors.reasons(vault))]
    return {
        "reasons": [asdict(reason) for reason in reasons],
        "lessons": len({reason.lesson for reason in reasons}),
    }


@command
def confirm(
    vault: Vault, caller: Caller, names: Sequence[str], by: str = words.PERSON
) -> dict[str, Any]:
    """Write into lessons that they hold as of today: `confirmed`: `id`, `path`, `changed`, `released`.

    A lesson that `check` holds back is `released` to this user's agents. So is one that was called wrong,
    unless an agent confirms what a person called so. `failed` has what could not be written.
    """
    today = datetime.now(UTC).date()
    asked = [caller.ask(api.lesson.show(name=name)) for name in names]
    done: list[Mapping[str, Any]] = []
    failed: list[str] = []
    for entry in {answer["entry"]["id"]: answer["entry"] for answer in asked}.values():
        try:
            made = update.confirm(vault, entry, today)
        except VaultError as error:
            failed.append(error.message)
            continue
        about = {"id": entry["id"], "path": str(made.file)}
        is_cleared = _clear_wrong(vault, entry["id"], by)
        released = made.is_released or is_cleared
        done.append({**about, "changed": made.is_changed, "released": released})
    if any(each["released"] for each in done):
        caller.index(vault, or_stale=True)  # no file need have changed
    return {"confirmed": done, "date": today.isoformat(), "failed": failed}


def _clear_wrong(vault: Vault, id: str, by: str) -> bool:
    if id not in words.wrong(vault, [id]):
        return False
    words.say(vault, id, words.YES, by, "confirmed")
    return id not in words.wrong(vault, [id])
