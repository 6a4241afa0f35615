"""The injections that agents got, and what a person teaches about them."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from vault_index import api
from vault_index.api.question import Caller, command, recorded
from vault_index.errors import VaultError, WriteError
from vault_index.hotpath import hook_event
from vault_index.hotpath.log import MAX_SESSION_CHARS
from vault_index.retrieval.hit import Named
from vault_index.store import delivery, filters, injections
from vault_index.store.delivery import LINE, SKILL, WHOLE, Delivery, Given
from vault_index.store.injections import RecordFilter

if TYPE_CHECKING:
    from vault_index.journal.record import Session
    from vault_index.recall.outdated import Reason
    from vault_index.transcripts.moments import Moment
    from vault_index.vault import Vault

MAX_WHY_CHARS = 300  # of what somebody says of a lesson
FAILED = "failed"  # commands
_KINDS = {hook_event.FAILURE: "error", hook_event.EDIT: "file"}  # of others it is "prompt"


@dataclass(frozen=True, slots=True)
class NamedLesson(Named):
    """A lesson of a record, if it is still there, and what it was `taught` about the prompt."""

    is_there: bool
    taught: str


@dataclass(frozen=True, slots=True)
class Near(NamedLesson):
    """The lesson that was nearest to the floor in a silence."""

    score: float | None
    by_words: bool = False  # whether words alone were searched


@dataclass(frozen=True, slots=True)
class GivenLesson(NamedLesson):
    """A lesson that an agent got, with the last `word` on it; `is_line`: its line alone."""

    score: float
    word: str
    is_taught: bool
    is_line: bool
    by_words: bool  # whether words alone found it


@dataclass(frozen=True, slots=True)
class GivenSkill:
    """A skill that was suggested to an agent."""

    name: str
    score: float
    by_words: bool = False


@dataclass(frozen=True, slots=True)
class Injection:
    """The lessons that an agent got at a prompt, failure or edit; `prompt` is the hash of its `text`.

    The text is there if a file still has it. `others` are lessons that it was taught about.
    """

    time: str
    event: str
    session: str
    project: str
    is_kept: bool
    prompt: str
    kind: str  # prompt | error | file
    text: str
    came_again: bool | None
    lessons: tuple[GivenLesson, ...]
    skills: tuple[GivenSkill, ...]
    floor: float | None
    silent: str
    missed: bool
    near: Near | None
    others: tuple[NamedLesson, ...]
    ms: float | None
    by: str

    @property
    def came(self) -> bool:
        return bool(self.lessons or self.skills)

    @property
    def can_be_marked(self) -> bool:
        """Whether a lesson can be taught about it."""
        return bool(self.prompt and self.text) and self.kind != "file"

    @property
    def fires(self) -> str:
        return "fires_on_error" if self.kind == "error" else "fires_on"

    @property
    def silences(self) -> str:
        return "silent_on_error" if self.kind == "error" else "silent_on"


@dataclass(frozen=True, slots=True)
class Injections:
    """Some records, the latest first, whether there are `more`, and the sums of all."""

    records: tuple[Injection, ...]
    more: bool
    totals: injections.Total


@recorded
def select(
    vault: Vault,
    session: str = "",
    lesson: str = "",
    only: str = "",
    since: str = "",
    only_prompts: bool = False,
    limit: int = 50,
    offset: int = 0,
) -> Injections:
    """Return the prompts of agents with the lessons that each got.

    `session` is the beginning of an id and `lesson` a part of one; `only` is "answered", "silent"
    or "failed", `since` ISO 8601; `only_prompts` leaves out the starts of sessions.
    """
    if only not in ("", injections.ANSWERED, injections.SILENT, FAILED):
        raise VaultError(f"no kind of record {only!r:.40}", "choose answered, silent or failed")
    hooks = [event for event in hook_event.HOOKS if not only_prompts or event != hook_event.START]
    hooks, only = ([hook_event.FAILURE], "") if only == FAILED else (hooks, only)
    chosen = RecordFilter(session, lesson, only, since, hooks)
    home, root, limit = vault.config.home, vault.root, max(1, limit)
    injections.take_in_misses(home, root)
    some = injections.records(home, root, chosen, limit + 1, max(0, offset))
    shown = tuple(map(_Details(vault, some[:limit]).of, some[:limit]))
    counted = replace(chosen, events=[*hooks, injections.SEARCH, injections.READ])
    return Injections(shown, len(some) > limit, injections.total(home, root, counted))


class _Details:
    """More about some records: titles, texts of prompts."""

    def __init__(self, vault: Vault, some: Sequence[Delivery]) -> None:
        from vault_index.recall import ratings

        self._marks = injections.marks(vault.config.home, vault.root)
        given_ids = {given.lesson for each in some for given in each.given if given.form != SKILL}
        prompts = {(each.session, each.prompt) for each in some}
        taught = {lesson for *prompt, lesson in self._marks if (*prompt,) in prompts}
        ids = sorted(given_ids | taught)
        self._titles: dict[str, str] = {}  # of those that there are; of a withheld one its id
        with suppress(VaultError):
            columns = ("lesson_id", "title", "withheld")
            rows = vault.open_index().store.rows(columns, filters.wholes_of(ids)) if ids else []
            self._titles = {
                row["lesson_id"]: row["lesson_id" if row["withheld"] else "title"] for row in rows
            }
        self._texts = _Texts(vault)
        self._words = ratings.last_of(vault)

    def of(self, record: Delivery) -> Injection:
        """Return a record with all that is known of it."""
        session, key, near = record.session, record.prompt, record.near
        in_journal = self._texts.in_journal(session)
        lesson_ids = [each.lesson for each in record.given]
        return Injection(
            time=record.time,
            event=record.event,
            session=session,
            project=in_journal.project if in_journal else "",
            is_kept=in_journal is not None,
            prompt=key,
            kind=_KINDS.get(record.event, "prompt"),
            text=record.said or self._texts.of(session, key),
            came_again=record.came_again,
            lessons=tuple(
                GivenLesson(
                    **self._named(record, each.lesson),
                    score=each.score or 0.0,
                    word=str(self._words.get(each.lesson, "")),
                    is_taught=each.taught,
                    is_line=each.form == LINE,
                    by_words=each.by_words,
                )
                for each in record.given
                if each.form in (WHOLE, LINE)
            ),
            skills=tuple(
                GivenSkill(each.lesson.partition(":")[2], each.score or 0.0, each.by_words)
                for each in record.given
                if each.form == SKILL
            ),
            floor=record.floor,
            silent=record.silent,
            missed=record.missed,
            near=self._near(record, near) if near else None,
            others=tuple(
                NamedLesson(**self._named(record, lesson))
                for *prompt, lesson in sorted(self._marks)
                if prompt == [session, key] and lesson not in lesson_ids
            ),
            ms=record.ms,
            by=record.by,
        )

    def _near(self, record: Delivery, given: Given) -> Near:
        named = self._named(record, given.lesson)
        return Near(**named, score=given.score, by_words=given.by_words)

    def _named(self, record: Delivery, id: str) -> dict[str, Any]:
        """Return the fields of a `NamedLesson`."""
        mark = self._marks.get((record.session, record.prompt, id))
        return {
            "id": id,
            "title": self._titles.get(id, ""),
            "is_there": id in self._titles,
            "taught": mark.kind if mark else "",
        }


class _Texts:
    """The texts of prompts by their hashes: of the journal, else of agents."""

    def __init__(self, vault: Vault) -> None:
        from vault_index.journal.journal import Journal

        self._journal = Journal(vault.config)
        self.in_journal = functools.cache(self._in_journal)
        self._prompts_of = functools.cache(self._prompts)

    def of(self, session: str, key: str) -> str:
        return self._prompts_of(session).get(key, "") if session and key else ""

    def _in_journal(self, id: str) -> Session | None:
        from vault_index.journal import archive

        return archive.named(self._journal, id[:MAX_SESSION_CHARS]) if id else None

    def _prompts(self, id: str) -> dict[str, str]:
        from vault_index.journal import archive
        from vault_index.transcripts.moments import PERSON

        session = self.in_journal(id)
        moments = archive.moments_of(self._journal, session) if session else self._of_agent(id)
        return {delivery.key_of(each.text): each.text for each in moments if each.kind == PERSON}

    def _of_agent(self, id: str) -> Iterable[Moment]:
        """Return a session as the agent's transcript has it; nothing of one that was forgotten."""
        from vault_index.journal import archive, capture
        from vault_index.transcripts import reading

        if archive.is_forgotten(self._journal, id):
            return ()
        for each in reading.transcripts():
            if each.path.stem.endswith(id):
                with suppress(VaultError):
                    return capture.read(each.path, each.agent).moments
        return ()


@dataclass(frozen=True, slots=True)
class TeachResult:
    """A lesson that was taught a prompt, in the list `kind` of its file.

    Whether it `acts`: whether an agent would get the lesson for it now, or not, as taught; `silent` says
    why it does not act.
    """

    id: str
    title: str
    path: str
    prompt: str  # as written
    kind: str
    changed: bool
    acts: bool
    silent: str


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
) -> TeachResult:
    """Write into a lesson that it fires at a prompt, or stays out; with `undo` take that back.

    `kind` is fires_on or silent_on, or for a line of a failed command fires_on_error or
    silent_on_error. The prompt or line is `prompt` or, in the record of a `session`, the one with
    the hash `key`, as far as its text was kept.
    """
    from vault_index.edit import teach

    is_error = kind in teach.ERRORS
    if not is_error and kind not in teach.PROMPTS:
        kinds = ", ".join((*teach.PROMPTS, *teach.ERRORS))
        raise VaultError(f"no list of prompts {kind!r:.40}", f"choose one of {kinds}")
    entry = caller.ask(api.lesson.show(name=name))
    home, marked = vault.config.home, (session[:MAX_SESSION_CHARS], key or _key(prompt), entry.id)
    mark = injections.marks(home, vault.root).get(marked) if undo else None
    if mark and not prompt.strip():
        prompt = next((each for each in getattr(entry, kind) if _key(each) == mark.written), "")
    prompt = prompt if prompt.strip() else _prompt_of(vault, session, key)
    if not prompt.strip():
        raise VaultError("the text of this prompt was not kept", "type the prompt, or words of it")
    if undo:
        change = teach.undo(vault, entry, prompt, kind, moved=bool(mark and mark.moved))
    else:
        change = teach.write(vault, entry, prompt, kind)
    new = None if undo else injections.Teaching(kind, _key(change.prompt), change.moved)
    with suppress(WriteError):
        injections.mark(home, vault.root, (session, key or _key(prompt), entry.id), new)
    comes, silent = _comes(vault, caller, entry.id, change.prompt, is_error=is_error)
    wanted = kind in (teach.FIRES, teach.FIRES_ON_ERROR)
    return TeachResult(
        id=entry.id,
        title=entry.title,
        path=str(change.file),
        prompt=change.prompt,
        kind=kind,
        changed=change.changed,
        acts=undo or comes is wanted,
        silent=silent or ("others come before it" if wanted else "the lesson still comes"),
    )


def _comes(
    vault: Vault, caller: Caller, lesson: str, prompt: str, *, is_error: bool
) -> tuple[bool, str]:
    """Whether a lesson comes at a prompt or line now; if nothing does, also the reason."""
    from vault_index.api import search
    from vault_index.text import failure

    if is_error:
        now = search.failure_recalled(vault, caller, failure.read("", prompt))
    else:
        now = caller.ask(api.search.recall(query=prompt), settled=True)
    return lesson in [hit.lesson_id for hit in now.hits], now.silent


def _prompt_of(vault: Vault, session: str, key: str) -> str:
    """Return the text of a prompt by its hash, redacted; "" where nothing has it any more."""
    chosen = RecordFilter(session=session[:MAX_SESSION_CHARS])
    for each in injections.records(vault.config.home, vault.root, chosen):
        if each.said and each.prompt == key:
            return each.said
    return _Texts(vault).of(session, key)


def _key(prompt: str) -> str:
    return delivery.key_of(" ".join(prompt.split()))


@dataclass(frozen=True, slots=True)
class Rated:
    """A word on a lesson, and whether hooks leave the lesson out now."""

    id: str
    title: str
    word: str
    by: str
    is_left_out: bool


@command
def useful(
    vault: Vault, caller: Caller, name: str, word: str, why: str = "", by: str = "person"
) -> Rated:
    """Note whether a lesson was useful: `word` is yes, no or wrong, `by` is person or agent."""
    from vault_index.recall import ratings
    from vault_index.retrieval import above

    if word not in ratings.WORDS or by not in ratings.SPEAKERS:
        raise VaultError(f"no word {word!r:.40}", "choose yes, no or wrong")
    entry = caller.ask(api.lesson.show(name=name))
    elsewhere = above.named(vault, entry.id)
    other, id = elsewhere[1:] if elsewhere else (vault, entry.id)
    caller.index(other)
    ratings.say(other, id, word, by, " ".join(why.split())[:MAX_WHY_CHARS])
    wrong = ratings.wrong(other, [id]).get(id)
    return Rated(entry.id, entry.title, word, by, bool(wrong and wrong.withholds))


@dataclass(frozen=True, slots=True)
class Stale:
    """Why lessons should be looked at again, and how many they are."""

    reasons: list[Reason]
    lessons: int


@command
def stale_lessons(vault: Vault, caller: Caller, only_wrong: bool = False) -> Stale:
    """List the reasons to look at lessons again; with `only_wrong` of those that were called wrong."""
    from vault_index.recall import outdated, ratings

    caller.index(vault)
    reasons = [*ratings.reasons(vault), *(() if only_wrong else outdated.reasons(vault))]
    return Stale(reasons, len({reason.lesson for reason in reasons}))


@dataclass(frozen=True, slots=True)
class ConfirmedLesson:
    """A lesson that holds: whether its file changed, and whether agents get it again.

    `harmless` are lines that looked like a secret and are noted as none.
    """

    id: str
    path: str
    changed: bool
    released: bool
    harmless: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Confirmation:
    """The lessons that were confirmed on a day, and why others could not be written."""

    confirmed: list[ConfirmedLesson]
    date: str
    failed: list[str]


@command
def confirm(vault: Vault, caller: Caller, names: Sequence[str], by: str = "person") -> Confirmation:
    """Write into lessons that they hold as of today.

    A lesson that `check` holds back is released to this user's agents. So is one that was called wrong,
    unless an agent confirms what a person called so. A text that looks like a secret is noted
    as harmless, in the file; a name may be the fingerprint of such a text, which is then harmless in
    every file.
    """
    from vault_index.check import harmless
    from vault_index.edit import confirm, update

    today = datetime.now(UTC).date()
    fingerprints = [name for name in names if harmless.FINGERPRINT.fullmatch(name)]
    if fingerprints and by == "agent":
        raise VaultError(update.ONLY_PERSONS, f"ask a person to confirm {fingerprints[0]}")
    harmless.say(fingerprints, vault.config.home)
    lessons = [name for name in names if name not in fingerprints]
    entries = [caller.ask(api.lesson.show(name=name)) for name in lessons]
    confirmed: list[ConfirmedLesson] = []
    failed: list[str] = []
    for entry in {each.id: each for each in entries}.values():
        try:
            result = confirm.confirm(vault, entry, today, by)
        except VaultError as error:
            failed.append(error.message)
            continue
        is_cleared = _clear_wrong(vault, entry.id, by)
        released = result.is_released or is_cleared
        lines = [each.line for each in result.harmless]
        confirmed.append(
            ConfirmedLesson(entry.id, str(result.file), result.is_changed, released, lines)
        )
    if any(each.released for each in confirmed):
        caller.index(vault, or_stale=True)  # no file need have changed
    return Confirmation(confirmed, today.isoformat(), failed)


def _clear_wrong(vault: Vault, id: str, by: str) -> bool:
    from vault_index.recall import ratings

    if id not in ratings.wrong(vault, [id]):
        return False
    ratings.say(vault, id, ratings.YES, by, "confirmed")
    return id not in ratings.wrong(vault, [id])
