"""The record of what agents received: `.vault_index/injections.jsonl`, a line for each search.

The prompt is not in it, only its hash. It stays on this machine and two files of a megabyte are
kept at most. A hook that got no answer has no time for it, and a new vault no such folder yet: the line
in the hooks' log counts instead (`with_misses`).
"""

from __future__ import annotations

import heapq
import json
import os
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from vault_index.errors import WriteError
from vault_index.hotpath import index_files, log
from vault_index.hotpath.log import HOOK_LOG, MAX_SESSION_CHARS
from vault_index.store import ownership

# The complaints of hooks: the lines of their log that are about a vault.


def complaints_of(root: Path, home: Path, since: float = 0.0) -> list[dict[str, Any]]:
    """Return the lines about a vault since a time (seconds since 1970), oldest first."""
    lines: list[str] = []
    for name in (f"{HOOK_LOG}.old", HOOK_LOG):
        with suppress(OSError):
            lines += (home / name).read_text("utf-8", "replace").split("\n")
    from_then = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(since))
    return [
        entry
        for entry in _objects(lines)
        if {"time", "event", "message"} <= {*entry}
        and str(entry["time"]) >= from_then
        and _is_about(entry, root)
    ]


def _is_about(entry: dict[str, Any], root: Path) -> bool:
    """Whether a line of the hooks' log is about this vault; a line without a folder may be."""
    folder, vault = str(entry.get("cwd") or ""), entry.get("vault")
    if not folder and not vault:
        return True
    if not vault:  # as the hook finds it: around the folder, else the user's default
        with suppress(ValueError, OSError):
            vault = index_files.find(None, folder, {**os.environ, "LESSONS_VAULT": ""})
    if not isinstance(vault, str):
        return False
    return os.path.realpath(vault) == os.path.realpath(root)


def _objects(lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects that are a line each; anything else, such as half a line, is left out."""
    for line in lines:
        with suppress(ValueError, RecursionError):
            if isinstance(values := json.loads(line), dict):
                yield values


FILE, OLD_FILE = "injections.jsonl", "injections.old.jsonl"
MAX_BYTES = 1024 * 1024
PROMPT, FAILURE = "UserPromptSubmit", "PostToolUseFailure"
EDIT = "FileEdit"  # an agent is about to edit a file; `said` is its path
SUBAGENT = "SubagentStart"  # with the prompt of the agent that starts it
RENAME, MARK = "Rename", "Mark"  # the events of records that are no search
_NAMES, _WORDS = (FILE, OLD_FILE), ("words.jsonl", "words.old.jsonl")
key_of = log.key_of  # the hash by which a record knows a prompt
SHOWN = 5  # lessons of the most and of the never used
Key = tuple[str, str, str]  # of a failure: time, session, signature


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
    silent: str = "",
    near: tuple[str, float] | None = None,
    taught: Sequence[str] = (),
    said: str = "",
    key: str = "",
    lines: Sequence[str] = (),
) -> None:
    """Note a search for an agent. Never raises: a read-only vault has no record.

    `hits` and `skills` have scores; both are empty for silence, which `silent` explains, and `near` is
    the lesson that came nearest to the `floor`. `ms` is from the start to the answer, `by` the process
    that gave it: watcher, process, learn. `taught` are the lessons that a taught prompt fired, `lines`
    those of which the agent got the line alone, and `said` is a redacted line of what a failure
    printed, whose signature `prompt` is. `key` is the hash of a
    prompt, where only that is known.
    """
    optional = {
        "silent": silent,
        "near": near[0] if near else "",
        "near_score": round(near[1], 4) if near else None,
        "taught": list(taught),
        "lines": list(lines),
        "said": said,
    }
    values = {
        "session": session[:MAX_SESSION_CHARS],
        "prompt": key or key_of(prompt),
        "lessons": [lesson for lesson, _ in hits],
        "scores": [round(score, 4) for _, score in [*hits, *skills]],
        "skills": [skill for skill, _ in skills],
        "floor": None if floor is None else round(floor, 4),
        "ms": round(ms, 1),
        "by": by,
    }
    _note(folder, event, values | {name: value for name, value in optional.items() if value})


def mark(
    folder: Path,
    lesson: str,
    session: str,
    prompt: str,
    written: str,
    kind: str = "silent_on",
    moved: bool = False,
) -> None:
    """Note what somebody taught a lesson about a prompt; `written` "" takes it back. Never raises.

    `prompt` is its hash, `written` that of the prompt that the lesson's file got, `kind` the list
    that it is in, and `moved` whether it left the other list.
    """
    about = {"session": session[:MAX_SESSION_CHARS], "prompt": prompt, "lesson": lesson}
    done = {"written": written, "kind": kind, "moved": moved}
    _note(folder, MARK, {"lessons": [], **about, **done})


def rename(folder: Path, renamed: Mapping[str, str]) -> None:
    """Note that lessons have other ids now, old to new, so that their use still counts. Never raises."""
    if renamed:
        _note(folder, RENAME, {"lessons": [], "renamed": dict(renamed)})
        if (folder / _WORDS[0]).exists():
            _note(folder, RENAME, {"renamed": dict(renamed)}, _WORDS)


def say(folder: Path, lesson: str, word: str, by: str, why: str, hash: str) -> None:
    """Note what somebody said of a lesson, whose content has this hash. Raises WriteError."""
    about = {"lesson": lesson, "word": word, "by": by, "why": why, "hash": hash}
    if not _note(folder, "Word", about, _WORDS):
        raise WriteError(f"cannot write {folder / _WORDS[0]}", "make the folder writable")


def words(folder: Path) -> list[dict[str, Any]]:
    """Return what was said of lessons, oldest first, under the ids that they have now."""
    return with_names_of_now(_lines(folder, *reversed(_WORDS)))


def _note(
    folder: Path, event: str, values: Mapping[str, Any], names: tuple[str, str] = _NAMES
) -> bool:
    """Append a line, with the time. Whether it could be written: in a read-only vault none is."""
    line = {"time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "event": event, **values}
    data = json.dumps(line, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
    with suppress(OSError), ownership.opened(folder) as handle:
        log.append(handle, names[0], data, max_bytes=MAX_BYTES, old=names[1])
        return True
    return False


def records(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the records that are kept, oldest first; lines that are no record are left out."""
    for values in _lines(folder, OLD_FILE, FILE):
        if isinstance(values.get("lessons"), list):
            yield values


def _lines(folder: Path, *names: str) -> Iterator[dict[str, Any]]:
    for path in (folder / name for name in names):
        try:
            with os.fdopen(ownership.open_file(path), encoding="utf-8", errors="replace") as file:
                lines = file.read().splitlines()
        except OSError:
            continue
        yield from _objects(lines)


def with_misses(folder: Path, root: Path) -> list[dict[str, Any]]:
    """Return the records with one more for each search that had no answer, `missed`; oldest first.

    `folder` is that of the index of the vault at `root`.
    Two hooks may ask about one prompt: that counts once, as answered if either was.
    """
    home = Path(index_files.home_folder(os.environ))
    lines = [line for line in complaints_of(root, home) if line.get("missed") is True]
    noted = list(records(folder))
    spans: defaultdict[tuple[str, ...], list[tuple[float, float]]] = defaultdict(list)
    for each in noted:
        spans[_identity(each)].append(_span(each))
    misses = []
    for line in lines:
        (began, ended), others = _span(line), spans[_identity(line)]
        if not any(start <= ended and began <= end for start, end in others):
            others.append((began, ended))
            misses.append(_miss(line))
    return list(heapq.merge(noted, misses, key=lambda each: str(each.get("time") or "")))


def _identity(line: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(str(line.get(name) or "") for name in ("event", "session", "prompt"))


def _span(line: Mapping[str, Any]) -> tuple[float, float]:
    """Return when a search began and ended, in seconds since 1970; a record has whole seconds."""
    try:
        ended = datetime.fromisoformat(str(line.get("time"))).timestamp()
    except ValueError:
        ended = 0.0
    ms = line.get("ms")
    return ended - (ms / 1000 if isinstance(ms, (int, float)) else 0), ended + 1


def _miss(line: Mapping[str, Any]) -> dict[str, Any]:
    """Return a line of the hooks' log as a record."""
    return {
        **{name: str(line.get(name) or "") for name in ("time", "event", "session", "prompt")},
        **{"lessons": [], "scores": [], "skills": [], "floor": None, "ms": line.get("ms")},
        **{"by": "hook", "silent": str(line["message"]), "missed": True},
    }


def renamed(lesson: str, names: Mapping[str, str]) -> str:
    """Return the id that a lesson has after a change of names, old to new; sections go with files."""
    if lesson in names:
        return names[lesson]
    file, mark, section = lesson.partition("#")
    return names.get(file, file) + mark + section


def with_names_of_now(noted: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the records but those of renames, with the ids that their lessons have now."""
    names: dict[str, str] = {}
    current: list[dict[str, Any]] = []
    for line in reversed([*noted]):
        changes = line.get("renamed")
        if isinstance(changes, dict):
            names |= {str(old): renamed(str(new), names) for old, new in changes.items()}
            continue
        now = dict(line)
        if isinstance(line.get("lessons"), list):
            now["lessons"] = [renamed(str(lesson), names) for lesson in line["lessons"]]
        for name in ("near", "lesson"):
            if isinstance(line.get(name), str):
                now[name] = renamed(line[name], names)
        current.append(now)
    return current[::-1]


def summary(folder: Path, root: Path, ids: Sequence[str]) -> dict[str, Any]:
    """Sum the records up. `ids` are those of the vault's lessons, used or not, sorted."""
    return total(with_misses(folder, root), ids)


def uses(folder: Path) -> Counter[str]:
    """Count how often agents were given each lesson, under the id that it has now."""
    return _used(with_names_of_now(records(folder)))


def times_of(folder: Path) -> dict[str, tuple[str, str]]:
    """Return when agents first and last got each lesson, in ISO 8601, as far as the record goes."""
    return _times(with_names_of_now(records(folder)))


def _times(lines: Sequence[Mapping[str, Any]]) -> dict[str, tuple[str, str]]:
    times: dict[str, tuple[str, str]] = {}
    for line in lines:
        at = str(line.get("time") or "")
        for lesson in line["lessons"]:
            first, last = times.get(lesson, (at, at))
            times[lesson] = min(first, at), max(last, at)
    return times


def _used(lines: Iterable[Mapping[str, Any]]) -> Counter[str]:
    return Counter(lesson for line in lines for lesson in line["lessons"])


def came_again(failed: Sequence[Mapping[str, Any]]) -> dict[Key, bool]:
    """Return for each answered failure whether it came again after; `failed` is oldest first."""
    later: set[tuple[str, str]] = set()
    result: dict[Key, bool] = {}
    for each in reversed(failed):
        same = str(each.get("session") or ""), str(each.get("prompt") or "")
        if each["lessons"]:
            key = str(each.get("time") or ""), *same
            result[key] = same in later
        later.add(same)
    return result


def total(noted: Sequence[Mapping[str, Any]], ids: Sequence[str]) -> dict[str, Any]:
    """Sum up records, oldest first; `ids` as for `summary`."""
    prompts = [search for search in noted if search.get("event") == PROMPT]
    took = sorted(search["ms"] for search in prompts if isinstance(search.get("ms"), (int, float)))
    now = with_names_of_now(noted)
    used = _used(now)
    lately = sorted(((last, id) for id, (_, last) in _times(now).items()), reverse=True)
    never = [id for id in ids if id not in used]
    failed = [search for search in noted if search.get("event") == FAILURE]
    searches = (line for line in noted if line.get("event") not in (RENAME, MARK))
    return {
        "since": next((search.get("time") for search in searches), None),
        "prompts": len(prompts),
        "missed": sum(search.get("missed") is True for search in noted),
        "answered": sum(bool(search["lessons"] or search.get("skills")) for search in prompts),
        "failures": len(failed),
        "failures_answered": sum(bool(search["lessons"]) for search in failed),
        "came_again": sum(came_again(failed).values()),
        "p50_ms": took[len(took) // 2] if took else None,
        "p90_ms": took[int(0.9 * len(took))] if took else None,
        "most_used": used.most_common(SHOWN),
        "last_used": [(id, last) for last, id in lately[:SHOWN]],
        "never_used": len(never),
        "some_never_used": never[:SHOWN],
    }
