"""The record of what agents were given: `.vault_index/injections.jsonl`, a line for each search.

The prompt is not in it, only its hash. It stays on this machine and two files of a megabyte are
kept at most.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from vault_index import ownership

FILE = "injections.jsonl"
MOST_BYTES = 1024 * 1024
RENAME = "Rename"  # the event of a record that is no search
SHOWN = 5  # lessons of the most and of the never used


@dataclass(frozen=True, slots=True)
class Record:
    """One search for an agent. `lessons` is empty for silence; `ms` is from its start to the answer."""

    time: str  # ISO 8601, UTC
    event: str  # UserPromptSubmit | SessionStart
    session: str
    prompt: str  # 16 hexadecimal digits of its SHA-256; "" for a session's start
    lessons: tuple[str, ...]
    scores: tuple[float, ...]  # of the lessons, then of the skills
    skills: tuple[str, ...]
    floor: float | None
    ms: float
    by: str  # watcher | process


def record(
    folder: Path,
    event: str,
    session: str,
    prompt: str,
    hits: Sequence[tuple[str, float]],
    skills: Sequence[tuple[str, float]],
    floor: float | None,
    ms: float,
    by: str,
) -> None:
    """Append a record to the file in `.vault_index`. Never raises: a read-only vault has none."""
    one = Record(
        time=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        event=event,
        session=session[:80],
        prompt=sha256(prompt.encode("utf-8", "replace")).hexdigest()[:16] if prompt else "",
        lessons=tuple(lesson for lesson, _ in hits),
        scores=tuple(round(score, 4) for _, score in [*hits, *skills]),
        skills=tuple(skill for skill, _ in skills),
        floor=None if floor is None else round(floor, 4),
        ms=round(ms, 1),
        by=by,
    )
    data = json.dumps(asdict(one), ensure_ascii=False).encode("utf-8", "replace") + b"\n"
    try:
        _append(folder / FILE, data)
    except OSError:
        return


def rename(folder: Path, renamed: Mapping[str, str]) -> None:
    """Note that lessons have other ids now, old to new, so that their use still counts. Never raises."""
    if not renamed:
        return
    when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    one = {"time": when, "event": RENAME, "lessons": [], "renamed": dict(renamed)}
    with suppress(OSError):
        _append(folder / FILE, json.dumps(one).encode() + b"\n")


def _append(path: Path, data: bytes) -> None:
    descriptor = ownership.open_file(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)  # one of ten sessions moves a full file away
        if os.fstat(descriptor).st_size > MOST_BYTES:
            with suppress(FileNotFoundError):  # another moved it, and nobody has begun a new one
                if path.lstat().st_ino == os.fstat(descriptor).st_ino:
                    path.replace(path.with_suffix(".old.jsonl"))
        os.write(descriptor, data)
    finally:
        os.close(descriptor)


def records(folder: Path) -> Iterator[dict[str, Any]]:
    """Give the records that are kept, oldest first; what is no record is passed over."""
    for path in ((folder / FILE).with_suffix(".old.jsonl"), folder / FILE):
        try:
            with os.fdopen(ownership.open_file(path), encoding="utf-8", errors="replace") as file:
                lines = file.read().splitlines()
        except OSError:
            continue
        for line in lines:
            try:
                one = json.loads(line)
            except ValueError:
                continue
            if isinstance(one, dict) and isinstance(one.get("lessons"), list):
                yield one


def summary(folder: Path, known: Collection[str]) -> dict[str, Any]:
    """Sum the records up. `known` are the ids of the vault's lessons: some of them were never used."""
    return total(list(records(folder)), known)


def _used(kept: Sequence[dict[str, Any]]) -> Counter[str]:
    """Count how often each lesson was given, under the id that it has now."""
    used: Counter[str] = Counter()
    for one in kept:
        used.update(str(lesson) for lesson in one["lessons"])
        renamed = one.get("renamed")
        for old, new in renamed.items() if isinstance(renamed, dict) else ():
            for id in [id for id in used if id == old or id.startswith(f"{old}#")]:
                used[str(new) + id[len(old) :]] += used.pop(id)
    return used


def total(kept: Sequence[dict[str, Any]], known: Collection[str]) -> dict[str, Any]:
    """Sum up records, oldest first."""
    prompts = [one for one in kept if one.get("event") == "UserPromptSubmit"]
    times = sorted(one["ms"] for one in prompts if isinstance(one.get("ms"), (int, float)))
    used = _used(kept)
    never = sorted(set(known) - set(used))
    return {
        "since": next((one.get("time") for one in kept if one.get("event") != RENAME), None),
        "prompts": len(prompts),
        "answered": sum(bool(one["lessons"] or one.get("skills")) for one in prompts),
        "p50_ms": times[len(times) // 2] if times else None,
        "p90_ms": times[int(0.9 * len(times))] if times else None,
        "most_used": used.most_common(SHOWN),
        "never_used": len(never),
        "some_never_used": never[:SHOWN],
    }
