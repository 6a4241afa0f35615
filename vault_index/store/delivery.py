"""Deliveries to agents at their events: noted, remembered for the session, and made once.

A session is not given twice what it has, an event is answered once, and the note for a subagent is
handed over once.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from vault_index import state
from vault_index.hotpath import log
from vault_index.hotpath.hook_event import START, Event
from vault_index.hotpath.log import MAX_SESSION_CHARS

WHOLE, LINE, SKILL = "whole", "line", "skill"  # the form in which an agent got it
NEAR = "near"  # what came nearest to the floor where nothing was given
CLAIM_SECONDS = 7 * 86_400  # to remember that an event was answered
HOOK_SECONDS = 0.3  # to wait for another process that writes
NOTE_SECONDS = 60.0  # an agent that was refused never takes its note
key_of = log.key_of  # the hash by which a record knows a prompt


@dataclass(frozen=True, slots=True)
class Given:
    """A lesson or skill of a record.

    `taught`: whether a taught prompt fired it, `by_words`: whether words alone found it.
    """

    lesson: str
    score: float | None = None
    form: str = WHOLE
    taught: bool = False
    by_words: bool = False


@dataclass(frozen=True, slots=True)
class Delivery:
    """A search for an agent. Without anything given it was silent, for the reason `silent`.

    `prompt` is the hash of the prompt, or of a failure's signature or a file, of which `said` is a
    redacted line. `ms` is from the start to the answer, `by` the process that gave it: watcher, process,
    learn, hook. `missed`: the agent got no answer. `came_again` is of an answered failure alone.
    """

    event: str
    session: str = ""
    agent: str = ""  # the subagent that it was for
    prompt: str = ""
    said: str = ""
    floor: float | None = None
    ms: float | None = None
    by: str = ""
    silent: str = ""
    missed: bool = False
    time: str = ""  # ISO 8601
    given: tuple[Given, ...] = ()
    came_again: bool | None = None

    @property
    def lessons(self) -> list[str]:
        return [each.lesson for each in self.given if each.form in (WHOLE, LINE)]

    @property
    def near(self) -> Given | None:
        return next((each for each in self.given if each.form == NEAR), None)


@dataclass(frozen=True, slots=True)
class HookReply:
    """The text that an agent gets, "" for silence, and the record of it."""

    text: str
    record: Delivery


COLUMNS = "event, session, agent, prompt, said, floor, ms, by, silent, missed, time"


def record(home: Path, root: Path, new: Delivery) -> None:
    """Note a search for an agent. Raises WriteError."""
    when = new.time or iso_time(time.time())
    new = replace(new, time=when, session=new.session[:MAX_SESSION_CHARS])
    values = [getattr(new, name) for name in COLUMNS.split(", ")]
    vault = state.vault_of(root)
    with state.writing(home) as db:
        insert = f"INSERT INTO injection (vault, {COLUMNS}) VALUES ({state.slots([0, *values])})"
        id = db.execute(insert, [vault, *values]).lastrowid
        for position, each in enumerate(new.given):
            state.insert(db, "given", each, injection=id, place=position, vault=vault)


def received(home: Path, root: Path, session: str, agent: str = "") -> tuple[list[str], list[str]]:
    """Return the lessons that a session or its subagent got whole, the latest last, and as a line.

    They are ids of what it has not lost since. A subagent has a context of its own.
    """
    query = (
        "SELECT lesson, form FROM injection i JOIN given g ON g.injection = i.id"
        " WHERE i.vault = ? AND i.session = ? AND NOT i.is_lost"
        " AND (i.agent = ? OR i.agent = '' AND i.id <= (SELECT heard FROM fork f"
        " WHERE f.vault = i.vault AND f.session = i.session AND f.agent = ?))"
        " GROUP BY lesson, form ORDER BY max(i.id), place"
    )
    if not session:
        return [], []
    with state.reading(home) as db:
        found = db.execute(query, [*session_key(root, session), agent, agent]).fetchall()
    whole = [id for id, form in found if form in (WHOLE, SKILL)]
    return whole, [id for id, form in found if form == LINE]


def session_key(root: Path, session: str) -> list[str]:
    """Return the columns by which rows name a vault and a session."""
    return [state.vault_of(root), session[:MAX_SESSION_CHARS]]


def inherit(home: Path, root: Path, event: Event) -> None:
    """Note that a subagent has what its session received until now. Raises WriteError."""
    fork = "INSERT INTO fork SELECT ?, ?, ?, max(id) FROM injection"
    with state.writing(home) as db:
        db.execute(fork, [*session_key(root, event.session_id), event.agent_id])


def forget_given(home: Path, root: Path, session: str, agent: str = "") -> None:
    """Note that a session, or a subagent of it alone, has lost what it received. Raises WriteError."""
    of_agent = "WHERE vault = ? AND session = ? AND agent = ?"
    with state.writing(home, HOOK_SECONDS) as db:
        for lost in (
            f"UPDATE injection SET is_lost = 1 {of_agent}",
            f"DELETE FROM fork {of_agent}",
        ):
            db.execute(lost, [*session_key(root, session), agent])


def told_about(home: Path, root: Path, event: Event, about: str) -> list[list[str]]:
    """Return the lessons that the agent of an event got at the same failure or file, each time.

    Only what it has not lost since counts.
    """
    query = (
        "SELECT i.id, lesson FROM injection i JOIN given g ON g.injection = i.id"
        " WHERE i.vault = ? AND session = ? AND agent = ? AND event = ? AND prompt = ?"
        f" AND NOT is_lost AND form <> '{NEAR}' ORDER BY i.id, place"
    )
    of = [*session_key(root, event.session_id), event.agent_id, event.hook_event_name, about]
    by_injection: dict[int, list[str]] = {}
    with state.reading(home) as db:
        for id, lesson in db.execute(query, of):
            by_injection.setdefault(id, []).append(lesson)
    return [*by_injection.values()]


# An agent starts the hooks of an event side by side and waits for them: a user's and a project's settings
# may both have ours. So an equal event that was answered after this hook's process began is this event,
# unless the agent's ids of its prompts say otherwise; a prompt that is typed again has a later process.
_IDENTIFYING = (
    *("hook_event_name", "source", "prompt_id", "prompt"),
    *("agent_id", "tool_use_id", "command", "error"),
)


def claim(home: Path, root: Path, event: Event) -> bool:
    """Whether this process may answer an event of a session: no other has since its hook began.

    A hook that did not get the watcher's answer in time, and has its own, holds the claim that the
    watcher made for its `pid`. Raises WriteError.
    """
    identity = "\0".join(getattr(event, key) for key in _IDENTIFYING)
    name = hashlib.sha256(identity.encode("utf-8", "replace")).hexdigest()[:16]
    ours = str(event.pid or os.urandom(8).hex())
    about = [*session_key(root, event.session_id), name]
    holder = (
        "SELECT owner FROM claim WHERE vault = ? AND session = ? AND event = ?"
        " AND at BETWEEN ? AND ? ORDER BY at LIMIT 1"
    )
    with state.writing(home, HOOK_SECONDS) as db:
        # a long prompt may be compacted twice
        is_once = event.prompt_id and event.hook_event_name != START
        now = time.time()
        # one later than now was made before the clock was put back
        period = (0.0, math.inf) if is_once else (event.began, now)
        claimed = db.execute(holder, [*about, *period]).fetchone()
        if claimed is None:
            db.execute("INSERT INTO claim VALUES (?, ?, ?, ?, ?)", [*about, now, ours])
            db.execute("DELETE FROM claim WHERE abs(at - ?) > ?", [now, CLAIM_SECONDS])
    return claimed is None or claimed[0] == ours


def leave_note(home: Path, root: Path, event: Event, reply: HookReply) -> None:
    """Leave a reply for a subagent, which takes it when it has started. Raises WriteError.

    Claude Code tells the prompt to the hook before the tool that starts a subagent, whose answer goes to
    the caller. The subagent reads the answer of `SubagentStart`, which is not told the prompt, and so
    takes the oldest note of its session and kind of agent. A note has only the hash of the prompt.
    """
    with state.writing(home) as db:
        agent_key = [*session_key(root, event.session_id), event.agent_type]
        note = [*agent_key, time.time(), json.dumps(asdict(reply))]
        db.execute("INSERT INTO note VALUES (?, ?, ?, ?, ?)", note)


def take_note(home: Path, root: Path, event: Event) -> HookReply | None:
    """Return the note that waits for a subagent; only one process gets it. Raises WriteError."""
    first = (
        "SELECT rowid, told FROM note WHERE vault = ? AND session = ? AND agent = ?"
        " ORDER BY rowid LIMIT 1"
    )
    with state.writing(home) as db:
        db.execute("DELETE FROM note WHERE abs(at - ?) > ?", [time.time(), NOTE_SECONDS])
        agent_key = [*session_key(root, event.session_id), event.agent_type]
        found = db.execute(first, agent_key).fetchone()
        if found is None:
            return None
        db.execute("DELETE FROM note WHERE rowid = ?", found[:1])
    values = json.loads(found[1])
    given = tuple(Given(**each) for each in values["record"].pop("given"))
    return HookReply(values["text"], Delivery(**values["record"], given=given))


def iso_time(seconds: float) -> str:
    """Return a time (seconds since 1970) as a record has it."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
