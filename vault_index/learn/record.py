"""The runs of learning: from which material, when, by what, and what it took.

    ~/.lessons/learn/               0700
      runs.jsonl                    0600; a run a line, the latest last, at most `MAX_RUNS`

A run is written before a model is asked, so that a process that dies in it is not followed by another
that asks again. No text of a session is in it.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from vault_index import files
from vault_index.config import Config
from vault_index.features import LearnTable
from vault_index.journal.journal import held
from vault_index.llm.backend import Usage
from vault_index.proposals import review
from vault_index.vault import Vault

FOLDER, FILE = "learn", "runs.jsonl"
MAX_RUNS = 1000
MAX_TROUBLE_CHARS = 200

# the status of a run; those of a first kind end what there is to learn from a material
PROPOSED, NOTHING, REFUSED = "proposed", "nothing new", "refused"
NOT_WORTH, LEARNED, DRY = "not worth it", "learned already", "dry run"
AWAY, BUDGET, FAILED = "model away", "budget used up", "no valid answer"
FULL, RUNNING = "too many proposals wait", "running already"
BEGUN, STOPPED = "begun", "stopped"
ENDING = (PROPOSED, NOTHING, REFUSED)
LATER = (AWAY, BUDGET, FULL)  # it may go well another time
TROUBLED = (REFUSED, AWAY, BUDGET, FAILED, FULL)
MAX_SECONDS = 3600.0  # of a run: one that began earlier has died

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
    at = datetime.now(UTC).isoformat(timespec="microseconds")
    begun = replace(run, at=at, pid=os.getpid())
    with held(folder_of(config)):
        if any(_is_same(each, run) and _is_running(each) for each in runs(config)):
            return None
        _write(config, begun)
    return begun


def _is_same(run: Run, other: Run) -> bool:
    return (run.vault, run.digest, run.by) == (other.vault, other.digest, other.by)


def _is_running(run: Run) -> bool:
    if run.status != BEGUN or run.pid <= 0:
        return False
    try:
        began = datetime.fromisoformat(run.at)
        os.kill(run.pid, 0)
    except (ValueError, OSError):  # also where another user has its number now: ours has ended
        return False
    return (datetime.now(UTC) - began).total_seconds() < MAX_SECONDS


def end(config: Config, run: Run) -> None:
    """Write what came of a run that began. Raises WriteError."""
    ended = replace(run, trouble=" ".join(run.trouble.split())[:MAX_TROUBLE_CHARS])
    with held(folder_of(config)):
        _write(config, ended)


def runs(config: Config) -> list[Run]:
    """Return the runs that are kept, oldest first; lines that are damaged are left out."""

    def make(values: Any) -> Run:
        return Run(**{**values, "proposals": tuple(values["proposals"])})

    return files.read_json_lines(folder_of(config) / FILE, make)


def is_learned(config: Config, run: Run) -> bool:
    """Whether the same was learned from the same material, for the same vault."""
    return any(_is_same(each, run) and each.status in ENDING for each in runs(config))


def was_analysed(config: Config, vault: str, session: str) -> bool:
    """Whether a session was analysed at its end, or that began, and not in vain."""
    return any(
        (each.vault, each.session, each.asked_by) == (vault, session, NOBODY)
        and each.status not in LATER
        for each in runs(config)
    )


def state(vault: Vault) -> dict[str, Any]:
    """Return the proposals that wait and what was learned, for `lessons status`."""
    return {
        "proposals": review.count(vault),
        "learning": summary(vault.config, str(vault.root)),
    }


def summary(config: Config, vault: str = "") -> dict[str, Any]:
    """Sum up the runs, of one vault or all: how many, `by_status`, what they made and took.

    `last` is the time of the last one, `trouble` what went wrong in it; `failed` counts those in which
    something did, or that died. The cost is what models said it was, else by the user's `[llm.prices]`.
    """
    there = [each for each in runs(config) if vault in ("", each.vault)]
    usage = sum((_priced(config, each) for each in there), Usage())
    last = there[-1] if there else None
    return {
        "runs": len(there),
        "by_status": dict(Counter(each.status for each in there)),
        "failed": sum(
            each.status in TROUBLED or (each.status == BEGUN and not _is_running(each))
            for each in there
        ),
        "proposed": sum(len(each.proposals) for each in there),
        "dropped": dict(sum((Counter(each.dropped) for each in there), Counter[str]())),
        "usage": asdict(usage),
        "last": last.at if last else "",
        "trouble": last.trouble if last and last.status in TROUBLED else "",
        "auto": config[LearnTable].auto,
        "model": config[LearnTable].model,
    }


def folder_of(config: Config) -> Path:
    """Return the folder of the record."""
    return config.home / FOLDER


def _priced(config: Config, run: Run) -> Usage:
    """Return what a run took; without a cost of its own, at the price of its model, if that is set."""
    names = Usage.__dataclass_fields__
    usage = Usage(**{name: value for name, value in run.usage.items() if name in names})
    price = config.llm.prices.get(run.by)
    if usage.cost is not None or price is None:
        return usage
    dollars = usage.input_tokens * price["input"] + usage.output_tokens * price["output"]
    return replace(usage, cost=dollars / 1e6)


def _write(config: Config, run: Run) -> None:
    """Write a run in place of the one of its time, else at the end. The caller holds the folder."""
    others = [each for each in runs(config) if each.at != run.at]
    kept = [*others, run][-MAX_RUNS:]  # as they were written: a clock may go back
    files.write_json_lines(folder_of(config) / FILE, kept)
