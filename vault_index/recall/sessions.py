"""The lessons that a session received, who answers an event of it, and what waits for subagents."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from vault_index import state
from vault_index.hotpath.log import MAX_SESSION_CHARS
from vault_index.store import injections
from vault_index.store.injections import LINE, SKILL, WHOLE, Given, Record
from vault_index.vault import Vault

CLAIM_DAYS = 7  # days to remember that an event was answered
HOOK_SECONDS = 0.3  # to wait for another process that writes


@dataclass(frozen=True, slots=True)
class Event:
    """An event, in the names of Claude Code; "" is a field that it lacks."""

    hook_event_name: str
    session_id: str = ""
    prompt_id: str = ""
    cwd: str = "."
    source: str = "startup"  # of a session's start
    prompt: str = ""
    agent_id: str = ""  # of a subagent, whose context is its own
    agent_type: str = ""
    tool_use_id: str = ""
    command: str = ""  # that failed
    error: str = ""  # what it printed
    file: str = ""  # that is edited
    pid: int = 0  # of the hook
    began: float = field(default_factory=time.time)  # when the hook did, in seconds since 1970

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Event:
        """Return the event that a hook sent; other keys are not read."""
        return cls(**{each.name: values[each.name] for each in fields(cls) if each.name in values})

    @property
    def is_fork(self) -> bool:
        """Whether a subagent has the whole conversation of its session: it heard the lessons."""
        return self.agent_type == "fork"


def received(vault: Vault, session: str, agent: str = "") -> tuple[list[str], list[str]]:
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
    with state.reading(vault.config.home) as db:
        found = db.execute(query, [*_place(vault, session), agent, agent]).fetchall()
    whole = [id for id, form in found if form in (WHOLE, SKILL)]
    return whole, [id for id, form in found if form == LINE]


def _place(vault: Vault, session: str) -> list[str]:
    return [state.vault_of(vault.root), session[:MAX_SESSION_CHARS]]


def inherit(vault: Vault, event: Event) -> None:
    """Note that a subagent has what its session received until now. Raises WriteError."""
    fork = "INSERT INTO fork SELECT ?, ?, ?, max(id) FROM injection"
    with state.writing(vault.config.home, HOOK_SECONDS) as db:
        db.execute(fork, [*_place(vault, event.session_id), event.agent_id])


def forget_given(vault: Vault, session: str) -> None:
    """Note that a session has lost what it received. Raises WriteError."""
    lost = "UPDATE injection SET is_lost = 1 WHERE vault = ? AND session = ? AND agent = ''"
    with state.writing(vault.config.home, HOOK_SECONDS) as db:
        db.execute(lost, _place(vault, session))


def times_told(vault: Vault, event: Event, about: str) -> int:
    """Return how often the agent of an event was told something about a failure or a file."""
    query = (
        "SELECT count(*) FROM injection i WHERE vault = ? AND session = ? AND agent = ?"
        " AND event = ? AND prompt = ?"
        f" AND EXISTS (SELECT 1 FROM given WHERE injection = i.id AND form <> '{injections.NEAR}')"
    )
    of = [*_place(vault, event.session_id), event.agent_id, event.hook_event_name, about]
    with state.reading(vault.config.home) as db:
        return int(db.execute(query, of).fetchone()[0])


# Answer an event once, however many hooks ask: a user's and a project's settings may both have ours.
#
# An agent starts the hooks of an event side by side and waits for them. So an equal event that was
# answered after this hook's process began is this event, unless the agent's own ids of its prompts say
# otherwise; a prompt that is typed again has a later process.

_IDENTIFYING = (
    *("hook_event_name", "source", "prompt_id", "prompt"),
    *("agent_id", "tool_use_id", "command", "error"),
)


def claim(home: Path, vault: str, event: Event) -> bool:
    """Whether this process may answer an event of a session: no other has since its hook began.

    A hook that did not get the watcher's answer in time, and has its own, holds the claim that the
    watcher made for its `pid`. Raises WriteError.
    """
    identity = "\0".join(getattr(event, key) for key in _IDENTIFYING)
    name = hashlib.sha256(identity.encode("utf-8", "replace")).hexdigest()[:16]
    ours = str(event.pid or os.urandom(8).hex())
    about = [vault, event.session_id[:MAX_SESSION_CHARS], name]
    holder = (
        "SELECT owner FROM claim WHERE vault = ? AND session = ? AND event = ? AND at >= ?"
        " ORDER BY at LIMIT 1"
    )
    with state.writing(home, HOOK_SECONDS) as db:
        since = 0.0 if event.prompt_id else event.began
        held = db.execute(holder, [*about, since]).fetchone()
        if held is None:
            now = time.time()
            db.execute("INSERT INTO claim VALUES (?, ?, ?, ?, ?)", [*about, now, ours])
            db.execute("DELETE FROM claim WHERE at < ?", [now - CLAIM_DAYS * 86_400])
    return held is None or held[0] == ours


# Lessons for the prompt of a subagent: searched for before it starts, handed over when it has started.
#
# Claude Code tells the prompt to the hook before the tool that starts a subagent, whose answer goes to
# the caller. The subagent reads the answer of `SubagentStart`, which is not told the prompt. So the
# first leaves a note, and the second takes the oldest note of its session and kind of agent. A note
# holds what was found, and of the prompt only the hash.

ASKED = "PreToolUse"
NOTE_SECONDS = 60.0  # an agent that was refused never takes its note


@dataclass(frozen=True, slots=True)
class Told:
    """The text that an agent gets, "" for silence, and the record of it."""

    text: str
    record: Record


def leave_note(vault: Vault, event: Event, told: Told) -> None:
    """Leave a note of what the subagent should be told that an event is about to start."""
    values = [*_place(vault, event.session_id), event.agent_type, time.time()]
    with state.writing(vault.config.home, HOOK_SECONDS) as db:
        note = [*values, json.dumps(asdict(told))]
        db.execute("INSERT INTO note VALUES (?, ?, ?, ?, ?)", note)


def take_note(vault: Vault, event: Event) -> Told | None:
    """Return what waits for a subagent; only one process gets it. Raises WriteError."""
    first = (
        "SELECT rowid, told FROM note WHERE vault = ? AND session = ? AND agent = ?"
        " ORDER BY rowid LIMIT 1"
    )
    with state.writing(vault.config.home, HOOK_SECONDS) as db:
        db.execute("DELETE FROM note WHERE at < ?", [time.time() - NOTE_SECONDS])
        place = [*_place(vault, event.session_id), event.agent_type]
        found = db.execute(first, place).fetchone()
        if found is None:
            return None
        db.execute("DELETE FROM note WHERE rowid = ?", found[:1])
    values = json.loads(found[1])
    given = tuple(Given(**each) for each in values["record"].pop("given"))
    return Told(values["text"], Record(**values["record"], given=given))
