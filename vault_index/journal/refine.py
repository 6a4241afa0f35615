"""Better words for a session's records, by a language model: off until a user names one.

    ~/.lessons/journal/refine.json   the day's calls; for each session what was asked, what came of it
    ~/.lessons/journal/refine.lock   one process at a time

A session is due when it has been quiet for an hour: one call, over excerpts of what rules made of it.
A call is written down before it is made, so that no other follows if the process dies in it. When the
session goes on it is due once more. It is given up at the first refusal and after three failures. A
server that is away did nothing: that counts as no call, and everything waits for an hour. So it is
where the day's allowance of all models is used up.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from vault_index import files, llm
from vault_index.errors import (
    ModelAwayError,
    ModelBudgetError,
    ModelCallError,
    ModelRefusedError,
    VaultError,
)
from vault_index.files.private import alone
from vault_index.journal import events, excerpt, lock, places, session_file
from vault_index.journal.journal import Journal
from vault_index.journal.record import OBSERVATION, Session
from vault_index.journal.redact import redact
from vault_index.llm import Model
from vault_index.llm.server import Sleep

QUIET_SECONDS = 3600.0
MAX_FAILURES = 3
MAX_TIMES = 2  # once, and once more when the session went on
STATE, LOCK = "refine.json", "refine.lock"
REFINED, FAILED, REFUSED, AWAY = "refined", "failed", "refused", "away"
_OPEN, _CLOSE = "<excerpts>", "</excerpts>"
_PROMPT = Path(__file__).parent.parent / "prompts" / "refine.md"


@dataclass(slots=True)
class Asked:
    """What a model was asked about a session."""

    of: str = ""  # the session's end at the last call
    at: float = 0.0  # of the last call, seconds since the epoch
    outcome: str = ""  # of the last call: REFINED, FAILED or REFUSED; "" while it is not known
    times: int = 0  # states of the session that need no further call
    failures: int = 0
    gave_up: str = ""  # why


@dataclass(slots=True)
class State:
    """The content of refine.json."""

    day: str = ""  # of `calls`, in UTC
    calls: int = 0
    away_until: float = 0.0
    trouble: str = ""  # of the last call, "" if it went well
    sessions: dict[str, Asked] = field(default_factory=dict)


def due(journal: Journal, now: float) -> list[Path]:
    """Return the files of sessions to refine now, the latest first, as many as the day has calls left.

    `now` is in seconds since the epoch. None are due without a model in the user's settings.
    """
    config, state = journal.config, load(journal)
    left = config.journal_refine_a_day - (state.calls if state.day == _day(now) else 0)
    if not config.journal_refine or left <= 0 or now < state.away_until:
        return []
    latest_first = sorted(
        places.session_files(journal.folder),
        key=lambda file: (file.parent.name, file.name),
        reverse=True,
    )
    sessions: list[Path] = []
    for file in latest_first:
        head = _head_of(file)
        if head is not None and _is_due(head, state.sessions.get(head.id), now):
            sessions.append(file)
            if len(sessions) == left:
                break
    return sessions


def run(
    journal: Journal,
    now: Callable[[], float] = time.time,
    *,
    most: int = 1000,
    sleep: Sleep = time.sleep,
) -> dict[Path, str]:
    """Refine what is due; return what came of each file: REFINED, FAILED, REFUSED or AWAY.

    A call may take minutes; `most` is how many are made. Nothing is done while another process does
    it, or nothing is due. Raises SettingsError if there is no such model, and WriteError.
    """
    outcomes: dict[Path, str] = {}
    if not due(journal, now()):
        return outcomes
    with alone(journal.folder / LOCK) as is_alone:
        for file in due(journal, now())[:most] if is_alone else []:
            outcomes[file] = refine(journal, file, now(), sleep)
            if outcomes[file] == AWAY:
                break
    return outcomes


def refine(journal: Journal, file: Path, now: float, sleep: Sleep = time.sleep) -> str:
    """Ask the model about a session, once; write what it says, and return what came of it.

    The caller holds the lock of `run` and knows that the session is due. Raises VaultError.
    """
    model = llm.open_model(journal.config.journal_refine, journal.config, sleep)
    session = session_file.parse(files.read_file(file), file)
    state = load(journal)
    before = state.sessions.get(session.id, Asked())
    asked = _begin(state, before, session, now)
    _save(journal, state)
    refined, trouble = None, ""
    try:
        refined = _answered(model, session)
        asked.outcome, asked.times = REFINED, asked.times + 1
    except (ModelAwayError, ModelBudgetError) as error:
        asked.outcome, trouble = AWAY, error.message
        state.sessions[session.id] = before
        state.calls -= 1
        state.away_until = now + QUIET_SECONDS
    except ModelRefusedError as error:
        asked.outcome, trouble = REFUSED, error.message
        asked.gave_up = "it declined"
    except ModelCallError as error:
        asked.outcome, trouble = FAILED, error.message
        asked.failures += 1
        asked.gave_up = f"{MAX_FAILURES} failures" if asked.failures >= MAX_FAILURES else ""
    state.trouble = redact(trouble)[:200]
    _save(journal, state)
    if refined is not None:
        _change(journal, file, session, lambda now: excerpt.with_answer(now, refined, model.name))
    elif asked.gave_up:
        reason = f"no: {model.name}: {asked.gave_up}"
        _change(journal, file, session, lambda now: replace(now, refined=now.refined or reason))
    return asked.outcome


def load(journal: Journal) -> State:
    """Return what was asked until now. With a damaged file no call is left, whatever the day."""
    try:
        values = json.loads((journal.folder / STATE).read_bytes())
        sessions = {name: Asked(**asked) for name, asked in values.pop("sessions").items()}
        return State(**values, sessions=sessions)
    except FileNotFoundError:
        return State()
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        trouble = f"{journal.folder / STATE} is damaged: remove it"
        return State(away_until=float("inf"), trouble=trouble)


def state_of(journal: Journal, now: float) -> dict[str, Any]:
    """Return the `model`, its `calls` of today, how many `a_day` it may have, and the last `trouble`.

    Empty where the user's settings name no model.
    """
    config, state = journal.config, load(journal)
    if not config.journal_refine:
        return {}
    return {
        "model": config.journal_refine,
        "calls": state.calls if state.day == _day(now) else 0,
        "a_day": config.journal_refine_a_day,
        "trouble": state.trouble,
    }


def forget(journal: Journal, sessions: set[str]) -> None:
    """Take sessions out of what was asked. Raises WriteError."""
    state = load(journal)
    if sessions & state.sessions.keys():
        state.sessions = {id: asked for id, asked in state.sessions.items() if id not in sessions}
        _save(journal, state)


def _is_due(session: Session, asked: Asked | None, now: float) -> bool:
    """Whether a session is quiet, and was not asked about as it is."""
    if session.parent or now - _seconds(session.ended) < QUIET_SECONDS:
        return False
    if asked is None:
        return not session.refined  # else its journal came without refine.json
    if asked.gave_up or asked.times >= MAX_TIMES or now - asked.at < QUIET_SECONDS:
        return False
    return asked.of != session.ended or asked.outcome == FAILED


def _begin(state: State, before: Asked, session: Session, now: float) -> Asked:
    """Write into the state that a call begins; return what is written of it."""
    # a call that ended with its process may have been answered
    unknown = bool(before.of) and not before.outcome
    asked = replace(before, of=session.ended, at=now, outcome="", times=before.times + int(unknown))
    state.sessions[session.id] = asked
    state.calls = state.calls + 1 if state.day == _day(now) else 1
    state.day = _day(now)
    return asked


def _answered(model: Model, session: Session) -> excerpt.Answer:
    """Return what the model says of a session, checked. Raises ModelCallError."""
    seen = redact(excerpt.of(session)).replace(_CLOSE, "")
    prompt = f"{events.MARKER}\n{_OPEN}\n{seen}\n{_CLOSE}"
    answer = model.complete_json(_PROMPT.read_text("utf-8"), prompt, excerpt.KEYS)
    problem = excerpt.problem_of(answer, session, seen)
    if problem:
        raise ModelCallError(f"{model.name}: {problem}", "choose a larger model")
    return excerpt.redacted(answer, redact)


def _change(
    journal: Journal, file: Path, seen: Session, change: Callable[[Session], Session]
) -> None:
    """Change a session as it is now, since it may have gone on during the call. Raises VaultError.

    One of which something was forgotten since it was `seen` stays as it is.
    """
    with lock.held(journal.folder):
        if not file.exists():
            return
        session = session_file.parse(files.read_file(file), file)
        if {record.id for record in seen.records} <= {record.id for record in session.records}:
            with files.writing(file):
                files.replace_file(file, session_file.dump(change(session)))


def _head_of(file: Path) -> Session | None:
    """Return a session without its records; None if nothing was done in it, or it cannot be read."""
    try:
        return _head(file, files.stamp_of(file.stat()))
    except (OSError, VaultError):  # `lessons status` names it
        return None


@lru_cache(maxsize=10_000)  # the watcher looks every few minutes
def _head(file: Path, stamp: files.Stamp) -> Session | None:  # noqa: ARG001  # the key of the cache
    data = files.read_file(file)
    if f'"kind": "{OBSERVATION}"'.encode() not in data:
        return None
    return session_file.parse(data[: data.find(b"\n---\n") + 5], file)


def _save(journal: Journal, state: State) -> None:
    data = json.dumps(asdict(state), ensure_ascii=False).encode("utf-8", "replace")
    with files.writing(journal.folder / STATE):
        files.replace_file(journal.folder / STATE, data)


def _day(now: float) -> str:
    return datetime.fromtimestamp(now, UTC).date().isoformat()


def _seconds(iso: str) -> float:
    """Return a time of a transcript in seconds since the epoch; 0 for one that has none."""
    try:
        moment = datetime.fromisoformat(iso)
    except ValueError:
        return 0.0
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
