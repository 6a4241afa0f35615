"""The runs of learning: from which material, when, by what, and what it took.

A run is written before a model is asked, so that a process that dies in it is not followed by another
that asks again. No text of a session is in it.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from vault_index import state
from vault_index.config import Config
from vault_index.errors import VaultError
from vault_index.features import LearnTable
from vault_index.hotpath import clock
from vault_index.llm.backend import Usage
from vault_index.proposals import review
from vault_index.store import filters
from vault_index.vault import Vault

MAX_TROUBLE_CHARS = 200

# the status of a run; the `ENDING` ones end what there is to learn from a material
PROPOSED, NOTHING, REFUSED = "proposed", "nothing new", "refused"
NOT_WORTH, LEARNED, DRY = "not worth it", "learned already", "dry run"
AWAY, BUDGET, FAILED = "model away", "budget used up", "no valid answer"
FULL, RUNNING = "too many proposals wait", "running already"
BEGUN, STOPPED = "begun", "stopped"
ENDING = (PROPOSED, NOTHING, REFUSED)
LATER = (AWAY, BUDGET, FULL)  # it may go well another time
TROUBLED = (REFUSED, AWAY, BUDGET, FAILED, FULL)
MAX_SECONDS = 3600.0  # of a run: one that began earlier has died

NUDGES_SECONDS, FOLLOWED_SECONDS = 90 * 86_400, 86_400  # that lines are counted, and followed
PERSON, AGENT, NOBODY = "person", "agent", "nobody"  # who asks; nobody at the end of a session


@dataclass(frozen=True, slots=True)
class Run:
    """A run of `learn`. `by` is the model, or "rules"; `proposals` are ids, `dropped` counts reasons."""

    vault: str  # the path of its root
    scope: str
    target: str
    digest: str  # of the material
    by: str
    session: str = ""
    at: str = ""  # ISO 8601
    status: str = BEGUN
    points: int = 0
    proposals: tuple[str, ...] = ()
    dropped: Mapping[str, int] = field(default_factory=dict)
    usage: Mapping[str, Any] = field(default_factory=lambda: asdict(Usage()))
    trouble: str = ""
    asked_by: str = PERSON
    pid: int = 0  # of the process that runs it


def begin(config: Config, run: Run) -> Run | None:
    """Write that a run begins, and return it with its time; None if another does the same now.

    Raises WriteError.
    """
    now = datetime.now(UTC).isoformat(timespec="microseconds")
    begun = replace(run, at=now, pid=os.getpid())
    with state.writing(config.home) as db:
        if any(map(_is_running, _same(config, run))):
            return None
        state.insert(db, "run", begun)
    return begun


def _same(config: Config, run: Run) -> list[Run]:
    of = "WHERE vault = ? AND digest = ? AND by = ?"
    return _select(config, of, [run.vault, run.digest, run.by])


def _is_running(run: Run) -> bool:
    if run.status != BEGUN or run.pid <= 0:
        return False
    try:
        began = datetime.fromisoformat(run.at)
        os.kill(run.pid, 0)
    except (ValueError, OSError):  # also where another user has its number now: ours has ended
        return False
    return clock.is_near(began.timestamp(), MAX_SECONDS)


def end(config: Config, run: Run) -> None:
    """Write the outcome of a run that began. Raises WriteError."""
    ended = replace(run, trouble=" ".join(run.trouble.split())[:MAX_TROUBLE_CHARS])
    with state.writing(config.home) as db:
        db.execute("DELETE FROM run WHERE at = ? AND pid = ?", [ended.at, ended.pid])
        state.insert(db, "run", ended)


def runs(config: Config, vault: str = "") -> list[Run]:
    """Return the runs, of one vault or all, in the order in which they ended."""
    return _select(config, "WHERE ? IN ('', vault) ORDER BY rowid", [vault])


def _select(config: Config, rest: str, values: Sequence[str]) -> list[Run]:
    with state.reading(config.home) as db:
        return state.select(db, "run", Run, rest, values)


def is_learned(config: Config, run: Run) -> bool:
    """Whether the same was learned from the same material, for the same vault."""
    return any(each.status in ENDING for each in _same(config, run))


def was_analysed(config: Config, vault: str, session: str) -> bool:
    """Whether a session was analysed at its end, or that began, and not in vain."""
    where = "WHERE vault = ? AND session = ? AND asked_by = ?"
    found = _select(config, where, [vault, session, NOBODY])
    return any(each.status not in LATER for each in found)


def has_proposed(config: Config, session: str) -> bool:
    """Whether something was proposed from a session."""
    return any(each.proposals for each in _select(config, "WHERE session = ?", [session]))


@dataclass(frozen=True, slots=True)
class Learning:
    """The totals of runs; the cost as the models reported it."""

    runs: int
    by_status: Mapping[str, int]
    failed: int  # something went wrong in them, or they died
    proposed: int
    dropped: Mapping[str, int]
    usage: Usage
    last: str  # the time of the last one
    trouble: str  # what went wrong in the last one
    auto: bool
    model: str


@dataclass(frozen=True, slots=True)
class Nudges:
    """The times that the line was `shown`, and that somebody learned within a day."""

    shown: int = 0
    followed: int = 0


@dataclass(frozen=True, slots=True)
class LearnStatus:
    """The proposals that wait and what was learned, for `lessons status`.

    `unfound` proposals add a prompt to a lesson that a session was taught without it.
    """

    proposals: int
    learning: Learning
    unfound: int = 0
    nudges: Nudges = Nudges()
    lessons: int = 0
    with_prompts: int = 0


def in_status(vault: Vault) -> LearnStatus:
    """Count the proposals of a vault and its lessons with prompts, and sum up its runs."""
    with_prompts, lessons = count_prompts(vault)
    learned = summary(vault.config, str(vault.root))
    unfound = sum(each.only_prompts and not each.batch for each in review.waiting(vault))
    return LearnStatus(review.count(vault), learned, unfound, nudges(vault), lessons, with_prompts)


def count_prompts(vault: Vault) -> tuple[int, int]:
    """Count the lessons with prompts, and all lessons; 0 without an index."""
    try:
        store = vault.open_index().store
    except VaultError:  # the state of the index says so
        return 0, 0
    with_prompts = filters.all_of(filters.WHOLE, filters.HAS_PROMPTS)
    return store.count(with_prompts), store.count(filters.WHOLE)


def note_nudge(vault: Vault) -> None:
    """Note that the line was shown. Raises WriteError."""
    home, now = vault.config.home, time.time()
    shown = [when for when in _shown(vault) if now - when < NUDGES_SECONDS]
    state.keep_fact(home, _nudges_of(vault), [*shown, now])


def nudges(vault: Vault) -> Nudges:
    """Count the lines of the last 90 days, and after how many somebody learned within a day."""
    shown = _shown(vault)
    ran = [
        datetime.fromisoformat(each.at).timestamp()
        for each in runs(vault.config, str(vault.root))
        if each.at and each.asked_by != NOBODY
    ] if shown else []  # fmt: skip
    followed = sum(any(0 <= when - one <= FOLLOWED_SECONDS for when in ran) for one in shown)
    return Nudges(len(shown), followed)


def _shown(vault: Vault) -> list[float]:
    return [float(when) for when in state.fact(vault.config.home, _nudges_of(vault)) or ()]


def _nudges_of(vault: Vault) -> str:
    return f"nudges shown in {state.vault_of(vault.root)}"


def summary(config: Config, vault: str = "") -> Learning:
    """Sum up the runs, of one vault or all."""
    all_runs = runs(config, vault)
    last = all_runs[-1] if all_runs else None
    return Learning(
        runs=len(all_runs),
        by_status=dict(Counter(each.status for each in all_runs)),
        failed=sum(
            each.status in TROUBLED or (each.status == BEGUN and not _is_running(each))
            for each in all_runs
        ),
        proposed=sum(len(each.proposals) for each in all_runs),
        dropped=dict(sum((Counter(each.dropped) for each in all_runs), Counter[str]())),
        usage=sum((Usage(**each.usage) for each in all_runs), Usage()),
        last=last.at if last else "",
        trouble=last.trouble if last and last.status in TROUBLED else "",
        auto=config[LearnTable].auto,
        model=config[LearnTable].model,
    )
