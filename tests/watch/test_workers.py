"""The threads that answer: as many as questions wait at once, each for one question after another."""

from __future__ import annotations

import threading

from tests.support.watchers import soon
from vault_index.watch.watcher import Workers

PATIENCE = 30.0  # seconds


def test_questions_one_after_another_are_answered_by_one_thread() -> None:
    """It keeps its connection to the state open: to open one takes longer than to search."""
    workers, threads = Workers(), list[int]()
    for _ in range(20):
        workers.do(lambda: threads.append(threading.get_ident()))
        soon(lambda: workers.idle == 1)
    assert len(threads) == 20
    assert len(set(threads)) == 1


def test_a_question_that_waits_holds_up_no_other() -> None:
    workers, goes_on, answered = Workers(), threading.Event(), threading.Semaphore(0)

    def wait() -> None:
        goes_on.wait(PATIENCE)
        answered.release()

    for _ in range(3):
        workers.do(wait)
    workers.do(answered.release)
    assert answered.acquire(timeout=PATIENCE)
    goes_on.set()
    assert all(answered.acquire(timeout=PATIENCE) for _ in range(3))
