"""The record of what agents received: `.vault_index/injections.jsonl`, a line for each search.

The prompt is not in it, only its hash. It stays on this machine and two files of a megabyte are
kept at most.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from vault_index.hotpath import index_files, log
from vault_index.store import ownership

FILE, OLD_FILE = "injections.jsonl", "injections.old.jsonl"
MAX_BYTES = 1024 * 1024
PROMPT = "UserPromptSubmit"
RENAME = "Rename"  # the event of a record that is no search
SHOWN = 5  # lessons of the most and of the never used


@dataclass(frozen=True, slots=True)
class Record:
    """One search for an agent. `lessons` is empty for silence; `ms` is from its start to the answer."""

    time: str  # ISO 8601, UTC
    event: str  # UserPromptSubmit | SessionStart | LearnSearch | LearnGet
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
    search = Record(
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
    data = json.dumps(asdict(search), ensure_ascii=False).encode("utf-8", "replace") + b"\n"
    try:
        _append(folder / FILE, data)
    except OSError:
        return


def rename(folder: Path, renamed: Mapping[str, str]) -> None:
    """Note that lessons have other ids now, old to new, so that their use still counts. Never raises."""
    if not renamed:
        return
    when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    line = {"time": when, "event": RENAME, "lessons": [], "renamed": dict(renamed)}
    with suppress(OSError):
        _append(folder / FILE, json.dumps(line).encode() + b"\n")


def _append(path: Path, data: bytes) -> None:
    folder = index_files.open_folder(str(path.parent))
    try:
        log.append(folder, FILE, data, max_bytes=MAX_BYTES, old=OLD_FILE)
    finally:
        os.close(folder)


def records(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the records that are kept, oldest first; lines that are no record are left out."""
    for path in (folder / OLD_FILE, folder / FILE):
        try:
            with os.fdopen(ownership.open_file(path), encoding="utf-8", errors="replace") as file:
                lines = file.read().splitlines()
        except OSError:
            continue
        for line in lines:
            try:
                values = json.loads(line)
            except ValueError:
                continue
            if isinstance(values, dict) and isinstance(values.get("lessons"), list):
                yield values


def summary(folder: Path, known: Sequence[str]) -> dict[str, Any]:
    """Sum the records up. `known` are the ids of the vault's lessons, used or not, sorted."""
    return total(list(records(folder)), known)


def uses(folder: Path) -> Counter[str]:
    """Count how often agents were given each lesson, under the id that it has now."""
    return _used(list(records(folder)))


def _used(kept: Sequence[dict[str, Any]]) -> Counter[str]:
    """Count how often each lesson was given, under the id that it has now."""
    used: Counter[str] = Counter()
    for search in kept:
        used.update(str(lesson) for lesson in search["lessons"])
        renamed = search.get("renamed")
        for old, new in renamed.items() if isinstance(renamed, dict) else ():
            for id in [id for id in used if id == old or id.startswith(f"{old}#")]:
                used[str(new) + id[len(old) :]] += used.pop(id)
    return used


def total(kept: Sequence[dict[str, Any]], known: Sequence[str]) -> dict[str, Any]:
    """Sum up records, oldest first; `known` as for `summary`."""
    prompts = [search for search in kept if search.get("event") == PROMPT]
    times = sorted(search["ms"] for search in prompts if isinstance(search.get("ms"), (int, float)))
    used = _used(kept)
    never = [id for id in known if id not in used]
    return {
        "since": next((line.get("time") for line in kept if line.get("event") != RENAME), None),
        "prompts": len(prompts),
        "answered": sum(bool(search["lessons"] or search.get("skills")) for search in prompts),
        "p50_ms": times[len(times) // 2] if times else None,
        "p90_ms": times[int(0.9 * len(times))] if times else None,
        "most_used": used.most_common(SHOWN),
        "never_used": len(never),
        "some_never_used": never[:SHOWN],
    }
