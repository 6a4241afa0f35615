"""Decide the next step for a vault from events and outcomes: pure, without clock or thread.

    events -> heard -> state -> next -> what is due; the watcher does it -> after -> state

A *quick pass* takes in what was saved, at once. A *full pass* also does what can wait: it asks git for
authors, folds new rows into the text index, and refreshes what follows from the lessons. The states:

                     saved                     quiet for QUIET_SECONDS
    SETTLED ----> quick pass ----> CHANGED ----> full pass ----> SETTLED
                      |              |               |
                      |              +<-- saved -----+
        another process writes: BLOCKED, and the pass is repeated every RETRY_SECONDS
        too many files: DELEGATED to the background index; a quick pass follows when it ends

A full pass comes without a pause after MAX_QUICK_PASSES quick ones, when the repository's head moved
(a search right after a pull shows the authors), and when a question needs what only it refreshes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum

FIRST_SECONDS = 0.5  # before the first full pass: questions that waited for the start come first
LOOK_SECONDS = 2.0  # between two looks at what no event reports
QUIET_SECONDS = 2.0  # without a change, before a full pass
RETRY_SECONDS = 0.2  # between two tries to write while another process writes
SWEEP_SECONDS = 180.0  # between two comparisons with the disk, events or not
OWED_SECONDS = 10.0  # before another full pass, if the last one has more to do
DELEGATED_SECONDS = 20.0  # before a full pass looks whether the background index ran at all
POLL_SHARE = 0.05  # at most this share of the time goes into comparing where there are no events
MAX_QUICK_PASSES = 50  # force a full pass after this many quick ones in a row
TIDY_SECONDS = 30.0  # without a write, before old versions are cleaned away
LOST_SECONDS = 60.0  # a `lessons/` that is gone may come back: a checkout, an editor's undo
IDLE_SECONDS = 86_400.0  # without a question or a change
# The same where others are used: an open vault takes two threads and seven open files.
CLOSE_SECONDS, STAY_OPEN = 3600.0, 4  # the vaults that were used last stay open for a day


class Phase(Enum):
    """The state of the index beside the files, as far as the watcher knows."""

    SETTLED = "settled"  # nothing is owed until something happens
    CHANGED = "changed"  # quick passes only since the last full one, which is owed
    BLOCKED = "blocked"  # another process was writing; the pass is owed again
    DELEGATED = "delegated"  # too much for a pass: the background index does it


class Outcome(Enum):
    """The end of a pass."""

    DONE = "done"
    BUSY = "busy"  # another process is writing
    TOO_MUCH = "too much"  # more files than one pass takes, or an index to be rebuilt
    FAILED = "failed"  # it will fail again until something changes


class Task(Enum):
    """Work for the watcher. Long work gets a process of its own, of lower priority."""

    QUICK_PASS = "take in what was saved"
    FULL_PASS = "take in what was saved, and do all that can wait"
    BACKGROUND_INDEX = "index in such a process, since there is much to do"
    REBUILD = "build a new index in such a process, since this one is damaged"
    FETCH_MODEL = "fetch the built-in model in such a process"
    REOPEN = "read the settings again, and open the embedder and the index that they name"
    TIDY = "clean old versions of the tables away"


PASSES = (Task.QUICK_PASS, Task.FULL_PASS)


@dataclass(frozen=True, slots=True)
class Stop:
    """Close the vault."""

    reason: str


@dataclass(frozen=True, slots=True)
class Wait:
    """Wait for an event, for so many seconds at most."""

    seconds: float


Due = Task | Stop | Wait


@dataclass(frozen=True, slots=True)
class Events:
    """The events since the last look.

    `wants_full`: a question, or a skill, needs what only a full pass refreshes. `reopens`: the settings
    changed, or the built-in model is on disk and not in use; `model_due`: it is missing, and may be
    fetched now. `index_ended` is whether a background index ended, well or not. `head` differs after
    each commit, checkout and reset. `stop` is a reason to end, or "".
    """

    saved: bool = False
    asked: bool = False
    wants_full: bool = False
    reopens: bool = False
    index_damaged: bool = False
    index_ended: bool = False
    model_due: bool = False
    lessons_gone: bool = False
    polling: bool = False
    head: object = None
    stop: str = ""


@dataclass(frozen=True, slots=True)
class Passed:
    """The result of a pass, with the repository's `head` before it and the `seconds` it took."""

    outcome: Outcome
    wrote: bool = False
    wants_index: bool = False  # in the background: floors to measure, or vectors to make
    owes: bool = False  # a full pass that has more to do of what can wait
    seconds: float = 0.0
    head: object = None


@dataclass(frozen=True, slots=True)
class ScheduleState:
    """The work owed, and when things happened last. All times are seconds of one monotonic clock."""

    phase: Phase
    full_due: float  # when a full pass is due, in CHANGED and DELEGATED
    active: float  # the last question or change
    present: float  # when `lessons/` was last seen
    swept: float  # the last comparison with the disk
    sweep_seconds: float = 0.0  # and how long it took
    not_before: float = 0.0  # when a pass may be tried again
    wrote: float | None = None  # the last write since old versions were cleaned away
    quick_passes: int = 0  # since the last full pass
    head: object = None  # of the repository, at the last full pass
    polling: bool = False
    saved: bool = False  # something was, and no pass took it in
    wants_full: bool = False  # at once, quiet or not
    wants_reopen: bool = False
    wants: tuple[Task, ...] = ()  # what is to be started
    stop: str = ""

    @property
    def waits_for_others(self) -> bool:
        """Whether the index waits for another process, which may take long."""
        return self.phase in (Phase.BLOCKED, Phase.DELEGATED)


def started(now: float) -> ScheduleState:
    """Return the state of a watcher that is about to listen, after its first quick pass."""
    return ScheduleState(Phase.CHANGED, now + FIRST_SECONDS, active=now, present=now, swept=now)


def heard(state: ScheduleState, now: float, events: Events) -> ScheduleState:
    """Return the state that also owes the work that these events call for."""
    changed = events.reopens or events.index_ended
    saved = events.saved or changed
    called_for = {Task.REBUILD: events.index_damaged, Task.FETCH_MODEL: events.model_due}
    return replace(
        state,
        active=now if events.asked or saved else state.active,
        present=state.present if events.lessons_gone else now,
        not_before=now if saved else state.not_before,
        wrote=now if events.index_ended else state.wrote,
        polling=events.polling,
        saved=state.saved or saved,
        wants_full=state.wants_full or events.wants_full or events.head != state.head,
        wants_reopen=state.wants_reopen or changed,
        wants=_with(state.wants, called_for),
        stop=state.stop or events.stop,
    )


def next(state: ScheduleState, now: float) -> Due:  # read as `schedule.next`
    """Return the action that is due; else `Wait`."""
    reason = _reason_to_stop(state, now)
    if reason:
        return Stop(reason)
    if state.wants_reopen:
        return Task.REOPEN
    if state.wants:
        return state.wants[0]
    later: list[float] = []
    for when, due in _appointments(state):
        if when <= now:
            return due
        later.append(when)
    return Wait(min([LOOK_SECONDS, *(when - now for when in later)]))


def after(
    state: ScheduleState, now: float, due: Due, passed: Passed | None = None
) -> ScheduleState:
    """Return the state after a task; `passed` is the result of a pass or of tidying."""
    if due is Task.REOPEN:
        return replace(state, wants_reopen=False)
    if due is Task.TIDY:
        is_tidy = passed is not None and passed.outcome is Outcome.DONE
        return replace(state, wrote=None if is_tidy else now)
    if due in PASSES and passed is not None:
        return _after_pass(state, now, due is Task.FULL_PASS, passed)
    return replace(state, wants=tuple(other for other in state.wants if other != due))


def _after_pass(state: ScheduleState, now: float, full: bool, passed: Passed) -> ScheduleState:
    swept = replace(
        state, swept=now, sweep_seconds=passed.seconds, wrote=now if passed.wrote else state.wrote
    )
    if passed.outcome is Outcome.BUSY:  # whatever was owed still is
        return replace(swept, phase=Phase.BLOCKED, saved=True, not_before=now + RETRY_SECONDS)
    is_much = passed.outcome is Outcome.TOO_MUCH
    owed = max(OWED_SECONDS, passed.seconds / POLL_SHARE) if passed.owes else QUIET_SECONDS
    is_settled = full and not passed.owes
    called_for = {Task.BACKGROUND_INDEX: is_much or passed.wants_index}
    return replace(
        swept,
        phase=Phase.DELEGATED if is_much else Phase.SETTLED if is_settled else Phase.CHANGED,
        full_due=now + (DELEGATED_SECONDS if is_much else owed),
        quick_passes=0 if full else state.quick_passes + 1,
        head=passed.head if full else state.head,
        saved=False,
        wants_full=state.wants_full and not full,
        wants=_with(state.wants, called_for),
    )


def _appointments(state: ScheduleState) -> list[tuple[float, Due]]:
    """Return the tasks with the times from which they are due, the most urgent first."""
    due: list[tuple[float, Due]] = []
    is_forced = state.saved and state.quick_passes >= MAX_QUICK_PASSES
    if state.wants_full or is_forced:
        return [(state.not_before, Task.FULL_PASS)]
    if state.saved:
        return [(state.not_before, Task.QUICK_PASS)]
    if state.phase is not Phase.SETTLED:
        due.append((state.full_due, Task.FULL_PASS))
    polled = max(LOOK_SECONDS, state.sweep_seconds / POLL_SHARE)
    due.append((state.swept + (polled if state.polling else SWEEP_SECONDS), Task.FULL_PASS))
    if state.phase is Phase.SETTLED and state.wrote is not None:
        due.append((state.wrote + TIDY_SECONDS, Task.TIDY))
    return due


def _reason_to_stop(state: ScheduleState, now: float) -> str:
    if state.stop:
        return state.stop
    if now - state.present > LOST_SECONDS:
        return "the folder with the lessons is gone"
    if now - state.active > IDLE_SECONDS:
        return "a day without a question or a change"
    return ""


def _with(wants: tuple[Task, ...], called_for: Mapping[Task, bool]) -> tuple[Task, ...]:
    return wants + tuple(task for task in called_for if called_for[task] and task not in wants)


def unused(used: Mapping[str, float], now: float) -> list[str]:
    """Return the vaults to close, of open ones with the time of the last question or change of each.

    A save in a closed vault is taken in when the next question opens it.
    """
    latest_first = sorted(used, key=lambda root: -used[root])
    return [root for root in latest_first[STAY_OPEN:] if now - used[root] > CLOSE_SECONDS]
