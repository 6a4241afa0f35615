"""The background index: who starts it, how many run, and when the next may start."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.files import MakeVault, lesson_text, write
from tests.support.watchers import rows, soon
from vault_index.vault import Vault
from vault_index.watch import background_index
from vault_index.watch.background_index import Job


@pytest.fixture
def team(make_vault: MakeVault) -> Vault:
    """A vault of one lesson, indexed, and a second lesson that was saved since."""
    vault = make_vault({"heap.md": lesson_text("Raise the heap", "Zyzzyva.")}, indexed=True)
    write(vault.lessons_dir / "new.md", lesson_text("New", "Xylophone."))
    return vault


def ended(job: Job | None) -> Job:
    """Wait for the end of a job that must have started."""
    assert job is not None
    soon(lambda: job.succeeded is not None)
    return job


def log(vault: Vault) -> Path:
    return vault.index_dir / background_index.INDEX_LOG


@pytest.mark.slow
def test_it_indexes_and_logs_that(team: Vault) -> None:
    job = ended(background_index.start_index(team))
    assert job.succeeded
    assert len(rows(team)) == 2
    assert "1 added" in job.close()
    text = log(team).read_text()
    assert " lessons index --no-fetch --no-wait\n" in text
    assert "1 added" in text


@pytest.mark.slow
def test_ten_that_want_one_start_one(team: Vault) -> None:
    with ThreadPoolExecutor(10) as pool:
        jobs = list(pool.map(lambda _: background_index.start_index(team), range(10)))
    started = [job for job in jobs if job is not None]
    assert len(started) == 1
    ended(started[0])
    assert background_index.start_index(team) is None, "nobody took its end, so it may have failed"


@pytest.mark.slow
def test_after_one_that_failed_the_next_waits(team: Vault) -> None:
    job = ended(background_index.start_index(team, "--no-such-option"))
    assert not job.succeeded
    assert "--no-such-option" in job.close()
    assert background_index.start_index(team, "--no-such-option") is None
    then = time.time() - background_index.INDEX_PAUSE_SECONDS
    os.utime(log(team), (then, then))
    ended(background_index.start_index(team, "--no-such-option")).close()


@pytest.mark.slow
def test_one_that_failed_keeps_no_other_from_starting(team: Vault) -> None:
    failed = ended(background_index.start_index(team, "--no-such-option"))
    failed.close()  # which frees the log
    assert not failed.succeeded
    assert ended(background_index.start_index(team)).succeeded
