"""What the watcher does next, by its schedule alone: no thread, no clock, no wait."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from vault_index.watch import journal, schedule
from vault_index.watch.schedule import (
    Due,
    Events,
    Outcome,
    Passed,
    Phase,
    ScheduleState,
    Stop,
    Task,
    Wait,
)

HEAD = "head"
NOW = 0.0
SAVED = Events(saved=True, head=HEAD)
NOTHING = Events(head=HEAD)
DONE = Passed(Outcome.DONE, head=HEAD)
BUSY = Passed(Outcome.BUSY, head=HEAD)
TOO_MUCH = Passed(Outcome.TOO_MUCH, head=HEAD)
FAILED = Passed(Outcome.FAILED, head=HEAD)

settled = ScheduleState(Phase.SETTLED, NOW, active=NOW, present=NOW, swept=NOW, head=HEAD)
changed = replace(settled, phase=Phase.CHANGED, full_due=NOW + schedule.QUIET_SECONDS)
blocked = replace(settled, phase=Phase.BLOCKED, saved=True, not_before=NOW + schedule.RETRY_SECONDS)
delegated = replace(
    settled, phase=Phase.DELEGATED, full_due=NOW + schedule.DELEGATED_SECONDS, quick_passes=1
)
wrote = replace(settled, wrote=NOW)
LATER = NOW + 1.0


@pytest.mark.parametrize(
    ("state", "after", "events", "due"),
    [
        # nothing happens
        (settled, 0.0, NOTHING, Wait(schedule.LOOK_SECONDS)),
        (settled, schedule.SWEEP_SECONDS, NOTHING, Task.FULL_PASS),
        (settled, schedule.SWEEP_SECONDS - 1, NOTHING, Wait(1.0)),
        (settled, schedule.IDLE_SECONDS + 1, NOTHING, Stop("a day without a question or a change")),
        (settled, schedule.IDLE_SECONDS + 1, Events(asked=True, head=HEAD), Task.FULL_PASS),
        # files are saved
        (settled, 1.0, SAVED, Task.QUICK_PASS),
        (changed, 0.5, NOTHING, Wait(schedule.QUIET_SECONDS - 0.5)),
        (changed, 1.0, SAVED, Task.QUICK_PASS),
        (changed, schedule.QUIET_SECONDS, NOTHING, Task.FULL_PASS),
        (changed, schedule.QUIET_SECONDS, SAVED, Task.QUICK_PASS),
        (replace(changed, quick_passes=schedule.MAX_QUICK_PASSES), 0.0, SAVED, Task.FULL_PASS),
        (settled, 0.0, Events(wants_full=True, head=HEAD), Task.FULL_PASS),
        # a pull, a question about what follows from the lessons
        (settled, 0.0, Events(head="other"), Task.FULL_PASS),
        (settled, 0.0, Events(saved=True, head="other"), Task.FULL_PASS),
        (changed, 0.0, Events(wants_full=True, head=HEAD), Task.FULL_PASS),
        # where the system gives no events
        (settled, schedule.LOOK_SECONDS, Events(polling=True, head=HEAD), Task.FULL_PASS),
        (replace(settled, sweep_seconds=0.5), 9.0, Events(polling=True, head=HEAD), Wait(1.0)),
        # another process writes
        (blocked, 0.0, NOTHING, Wait(schedule.RETRY_SECONDS)),
        (blocked, schedule.RETRY_SECONDS, NOTHING, Task.QUICK_PASS),
        (blocked, 0.0, SAVED, Task.QUICK_PASS),
        # the background index works
        (delegated, 3.0, NOTHING, Wait(schedule.LOOK_SECONDS)),
        (delegated, 3.0, SAVED, Task.QUICK_PASS),
        (delegated, 3.0, Events(index_ended=True, head=HEAD), Task.REOPEN),
        (delegated, schedule.DELEGATED_SECONDS, NOTHING, Task.FULL_PASS),
        (settled, 0.0, Events(index_damaged=True, head=HEAD), Task.REBUILD),
        # settings, and the model
        (settled, 0.0, Events(reopens=True, head=HEAD), Task.REOPEN),
        (changed, 0.0, Events(saved=True, reopens=True, head=HEAD), Task.REOPEN),
        (settled, 0.0, Events(model_due=True, head=HEAD), Task.FETCH_MODEL),
        # old versions
        (wrote, schedule.TIDY_SECONDS, NOTHING, Task.TIDY),
        (wrote, schedule.TIDY_SECONDS, SAVED, Task.QUICK_PASS),
        (replace(changed, wrote=NOW), 1.0, NOTHING, Wait(1.0)),
        # the end
        (settled, 0.0, Events(stop="asked to", head=HEAD), Stop("asked to")),
        (settled, 3.0, Events(lessons_gone=True, head=HEAD), Wait(schedule.LOOK_SECONDS)),
        (
            settled,
            schedule.LOST_SECONDS + 1,
            Events(lessons_gone=True, head=HEAD),
            Stop("the folder with the lessons is gone"),
        ),
    ],
)
def test_what_is_due(state: ScheduleState, after: float, events: Events, due: Due) -> None:
    now = NOW + after
    assert schedule.next(schedule.heard(state, now, events), now) == due


@pytest.mark.parametrize(
    ("due", "passed", "phase", "wants"),
    [
        (Task.QUICK_PASS, DONE, Phase.CHANGED, ()),
        (Task.QUICK_PASS, FAILED, Phase.CHANGED, ()),
        (Task.QUICK_PASS, BUSY, Phase.BLOCKED, ()),
        (Task.QUICK_PASS, TOO_MUCH, Phase.DELEGATED, (Task.BACKGROUND_INDEX,)),
        (Task.FULL_PASS, replace(DONE, wants_index=True), Phase.SETTLED, (Task.BACKGROUND_INDEX,)),
        (Task.FULL_PASS, DONE, Phase.SETTLED, ()),
        (Task.FULL_PASS, replace(DONE, owes=True), Phase.CHANGED, ()),
        (Task.FULL_PASS, FAILED, Phase.SETTLED, ()),
        (Task.FULL_PASS, BUSY, Phase.BLOCKED, ()),
        (Task.FULL_PASS, TOO_MUCH, Phase.DELEGATED, (Task.BACKGROUND_INDEX,)),
    ],
)
def test_what_a_pass_leads_to(
    due: Due, passed: Passed, phase: Phase, wants: tuple[Due, ...]
) -> None:
    state = schedule.after(schedule.heard(settled, LATER, SAVED), LATER, due, passed)
    assert state.phase is phase
    assert state.wants == wants
    assert state.saved == (passed is BUSY)
    assert state.waits_for_others == (phase in (Phase.BLOCKED, Phase.DELEGATED))


def test_the_start_leaves_time_for_questions_and_then_asks_git() -> None:
    state = schedule.started(NOW)
    assert schedule.next(state, NOW) == Wait(schedule.FIRST_SECONDS)
    state = schedule.heard(state, NOW + schedule.FIRST_SECONDS, Events(saved=True, head=()))
    assert schedule.next(state, NOW + schedule.FIRST_SECONDS) == Task.FULL_PASS


def test_a_pass_that_was_blocked_is_owed_as_it_was() -> None:
    state = schedule.heard(settled, NOW, Events(saved=True, wants_full=True, head=HEAD))
    state = schedule.after(state, NOW, Task.FULL_PASS, BUSY)
    assert schedule.next(state, NOW + schedule.RETRY_SECONDS) == Task.FULL_PASS


def test_what_is_too_young_is_tidied_later() -> None:
    state = schedule.after(wrote, NOW, Task.TIDY, BUSY)
    assert schedule.next(state, NOW + schedule.TIDY_SECONDS) == Task.TIDY
    state = schedule.after(state, NOW, Task.TIDY, DONE)
    assert schedule.next(state, NOW + schedule.TIDY_SECONDS) == Wait(schedule.LOOK_SECONDS)


@pytest.mark.parametrize(
    ("first", "last", "now", "due"),
    [
        (0.0, 0.0, 4.9, False),
        (0.0, 0.0, 5.0, True),  # quiet for a moment: the turn may have ended
        (0.0, 57.0, 59.9, False),
        (0.0, 57.0, 60.0, True),  # it grows on and on
    ],
)
def test_transcripts_that_grew_without_a_hook_are_taken_in_when_they_are_quiet(
    first: float, last: float, now: float, due: bool
) -> None:
    assert journal.is_due(first, last, now) is due


# properties, of a watcher whose clock is a number


@dataclass
class Simulated:
    """A watcher that does what is due in no time, or in `pass_seconds`."""

    state: ScheduleState = settled
    now: float = NOW
    pass_seconds: float = 0.0
    outcomes: list[Outcome] = field(default_factory=list)  # of the next passes; then they succeed
    done: list[Due] = field(default_factory=list)

    def hear(self, events: Events) -> None:
        self.state = schedule.heard(self.state, self.now, events)

    def work(self) -> Wait | Stop:
        """Do all that is due now; return the wait, or the end."""
        for _ in range(20):
            due = schedule.next(self.state, self.now)
            if isinstance(due, Wait | Stop):
                return due
            passed = None
            if due in schedule.PASSES:
                self.now += self.pass_seconds
                passed = Passed(self.outcomes.pop(0) if self.outcomes else Outcome.DONE, head=HEAD)
            self.done.append(due)
            self.state = schedule.after(self.state, self.now, due, passed)
        raise AssertionError(f"it never waits: {self.done}")

    def rest(self, seconds: float) -> None:
        """Let time go by in which nothing happens."""
        end = self.now + seconds
        while self.now < end:
            wait = self.work()
            if isinstance(wait, Stop):
                return
            assert wait.seconds > 0
            self.now = min(end, self.now + wait.seconds)
            self.hear(NOTHING)
        self.work()

    def count(self, task: Task) -> int:
        return self.done.count(task)


outcomes = st.lists(st.sampled_from(Outcome), max_size=10)
events = st.builds(
    Events,
    saved=st.booleans(),
    asked=st.booleans(),
    wants_full=st.booleans(),
    reopens=st.booleans(),
    index_damaged=st.booleans(),
    index_ended=st.booleans(),
    model_due=st.booleans(),
    lessons_gone=st.booleans(),
    polling=st.booleans(),
    head=st.sampled_from([HEAD, "other", None]),
)
steps = st.lists(st.tuples(events, st.floats(0.0, 300.0)), max_size=20)


@pytest.mark.slow
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # a busy machine
@given(steps, outcomes)
def test_what_was_saved_is_taken_in_before_the_next_wait(
    steps: Sequence[tuple[Events, float]], outcomes: list[Outcome]
) -> None:
    watcher = Simulated(outcomes=outcomes)
    for happened, seconds in steps:
        watcher.hear(happened)
        before = len(watcher.done)
        end = watcher.work()
        new = watcher.done[before:]
        if happened.saved and not isinstance(end, Stop):
            assert any(due in schedule.PASSES for due in new)
        if not isinstance(end, Stop):
            assert not watcher.state.saved or watcher.state.phase is Phase.BLOCKED
        watcher.now += seconds


@pytest.mark.slow
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # a busy machine
@given(steps, outcomes)
def test_whatever_happens_it_settles_when_nothing_happens_any_more(
    steps: Sequence[tuple[Events, float]], outcomes: list[Outcome]
) -> None:
    watcher = Simulated(outcomes=outcomes)
    for happened, seconds in steps:
        watcher.hear(happened)
        watcher.work()
        watcher.now += seconds
    if isinstance(watcher.work(), Stop):
        return
    watcher.outcomes.clear()
    watcher.rest(2 * schedule.DELEGATED_SECONDS)
    assert watcher.state.phase is Phase.SETTLED
    assert not watcher.state.saved
    assert not watcher.state.wants_full
    before = watcher.count(Task.FULL_PASS)
    watcher.rest(schedule.SWEEP_SECONDS - 1)
    assert watcher.count(Task.FULL_PASS) <= before + 1, "only the sweep"


def test_vaults_that_nobody_asked_for_an_hour_are_closed_but_for_those_used_last() -> None:
    """With a hundred open vaults a watcher comes near the usual limit of open files."""
    long_ago = NOW - schedule.CLOSE_SECONDS - 1
    used = {f"{number}": long_ago - number for number in range(100)}
    assert schedule.unused(used, NOW) == [f"{at}" for at in range(schedule.STAY_OPEN, 100)]
    in_use = used | {"7": NOW, "70": NOW - schedule.CLOSE_SECONDS + 1}
    assert not {"7", "70"} & {*schedule.unused(in_use, NOW)}
    assert schedule.unused({"only": long_ago}, NOW) == []
