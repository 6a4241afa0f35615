"""The runs of learning summed up: those that failed, and what they took."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path

from vault_index import state
from vault_index.config import load
from vault_index.learn import runs
from vault_index.llm.backend import Usage


def ran(
    status: str, by: str = "openai:large", cost: float | None = None, vault: str = "/team"
) -> None:
    """Write a run of 100,000 tokens in and 10,000 out."""
    config = load()
    usage = asdict(Usage(1, 100_000, 10_000, 2.0, cost))
    one = runs.Run(vault, "session", "s", f"{status}-{by}-{cost}", by, usage=usage)
    begun = runs.begin(config, one)
    assert begun
    if status != runs.BEGUN:
        runs.end(config, replace(begun, status=status))


def test_failed_runs_and_money_are_counted() -> None:
    for status in (runs.PROPOSED, runs.AWAY, runs.FAILED, runs.NOTHING):
        ran(status)
    ran(runs.PROPOSED, "claude:haiku", cost=0.5)
    there = runs.summary(load(), "/team")
    assert (there.runs, there.failed, there.usage.cost) == (5, 2, 0.5)


def test_a_run_whose_process_died_has_failed(own_world: Path) -> None:
    ran(runs.BEGUN)
    assert runs.summary(load()).failed == 0  # it runs: in this process
    with state.writing(own_world) as db:
        db.execute("UPDATE run SET pid = 0")
    assert runs.summary(load()).failed == 1
