"""The lessons that agents received, in the database of this machine: looked up and summed up.

`delivery` writes the rows. The prompt is not in one, only its hash. A hook that got no answer has no
time to write: the line in the hooks' log counts instead, and comes into the record when somebody looks.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from vault_index import state
from vault_index.errors import WriteError, unreadable
from vault_index.hotpath import index_files, log, protocol
from vault_index.hotpath.hook_event import FAILURE, HOOKS, PROMPT
from vault_index.hotpath.log import HOOK_LOG
from vault_index.store.delivery import (
    COLUMNS,
    LINE,
    NEAR,
    SKILL,
    WHOLE,
    Delivery,
    Given,
    iso_time,
    record,
    session_key,
)

SEARCH, READ = "LearnSearch", "LearnGet"  # what an agent looks up by itself, over MCP or at a shell
ANSWERED, SILENT = "answered", "silent"
SAME_SECONDS = 10  # between the answers of two hooks to one prompt
SHOWN = 5  # lessons of the most and of the never used
WEEKS = 4  # of which use is summed up
MAX_MS = 86_400_000.0  # of a search: a line that says more is not ours
MAX_LOG_BYTES = 4 * log.MAX_BYTES  # a writer that has it open may go beyond its limit


@dataclass(frozen=True, slots=True)
class RecordFilter:
    """Which records are wanted; an empty value is no condition."""

    session: str = ""  # the beginning of its id
    lesson: str = ""  # its id, or a part of that
    only: str = ""  # ANSWERED | SILENT
    since: str = ""  # ISO 8601
    events: Sequence[str] = ()

    def where(self, root: Path) -> tuple[str, list[Any]]:
        """Return the condition on a row `i` of a vault's injections, with its values."""
        parts, values = ["i.vault = ?"], [state.vault_of(root)]
        if self.session:
            parts.append("substr(i.session, 1, length(?)) = ?")
            values += [self.session, self.session]
        if self.lesson:
            parts.append(f"EXISTS ({_GIVEN} AND form <> '{SKILL}' AND instr(lesson, ?))")
            values.append(self.lesson)
        if self.only:
            not_ = "NOT " if self.only == SILENT else ""
            parts.append(f"{not_}EXISTS ({_GIVEN} AND form <> '{NEAR}')")
        if self.since:
            parts.append("i.time >= ?")
            values.append(self.since[:19])
        if self.events:
            parts.append(f"i.event IN ({state.slots(self.events)})")
            values += self.events
        return " AND ".join(parts), values


_GIVEN = "SELECT 1 FROM given g WHERE g.injection = i.id"
_LESSONS = f"form IN ('{WHOLE}', '{LINE}')"
_LATER = (  # the same failure in the same session
    "SELECT 1 FROM injection l WHERE l.vault = i.vault AND l.session = i.session"
    " AND l.prompt = i.prompt AND l.event = i.event AND l.id > i.id"
)
_REPLIED = f"i.event = '{FAILURE}' AND EXISTS ({_GIVEN} AND {_LESSONS})"


def records(
    home: Path, root: Path, chosen: RecordFilter = RecordFilter(), limit: int = -1, offset: int = 0
) -> list[Delivery]:
    """Return the records that are wanted, the latest first.

    Those from before the clock was put back, which are of a time to come, are the last.
    """
    where, values = chosen.where(root)
    values += [iso_time(time.time() + 1), limit, offset]
    query = (
        f"SELECT id, CASE WHEN {_REPLIED} THEN EXISTS ({_LATER}) END, {COLUMNS}"
        f" FROM injection i WHERE {where} ORDER BY time > ?, time DESC, id DESC LIMIT ? OFFSET ?"
    )
    of_it = "WHERE injection = ? ORDER BY place"
    found = []
    with state.reading(home) as db:
        for id, again, *row in db.execute(query, values).fetchall():
            columns: dict[str, Any] = dict(zip(COLUMNS.split(", "), row, strict=True))
            columns["missed"] = bool(columns["missed"])
            columns["came_again"] = None if again is None else bool(again)
            given = tuple(state.select(db, "given", Given, of_it, [id]))
            found.append(Delivery(**columns, given=given))
    return found


@dataclass(frozen=True, slots=True)
class Total:
    """The sum of records: prompts since the first one, and failed commands.

    A prompt or failure was taught to leave `marked` lessons out. `searches` and `reads` are an agent's
    own. `p50_ms` and `p90_ms` are of prompts.
    """

    since: str | None
    prompts: int
    answered: int
    missed: int
    failures: int
    failures_answered: int
    came_again: int
    searches: int
    reads: int
    marked: int
    p50_ms: float | None
    p90_ms: float | None


def total(home: Path, root: Path, chosen: RecordFilter = RecordFilter()) -> Total:
    """Sum up the records that are wanted."""
    where, values = chosen.where(root)
    is_prompt = f"i.event = '{PROMPT}'"
    counted = {
        "prompts": is_prompt,
        "answered": f"{is_prompt} AND EXISTS ({_GIVEN} AND form <> '{NEAR}')",
        "missed": "missed",
        "failures": f"i.event = '{FAILURE}'",
        "failures_answered": _REPLIED,
        "came_again": f"{_REPLIED} AND EXISTS ({_LATER})",
        "searches": f"i.event = '{SEARCH}'",
        "reads": f"i.event = '{READ}'",
    }
    sums = [f"min(time) FILTER (WHERE {is_prompt})"]
    sums += [f"count(*) FILTER (WHERE {each})" for each in counted.values()]
    marked = (
        "SELECT count(*) FROM injection i JOIN given g ON g.injection = i.id"
        " JOIN mark m ON m.vault = i.vault AND m.session = i.session AND m.prompt = i.prompt"
        f" AND m.lesson = g.lesson WHERE {where} AND {_LESSONS} AND kind LIKE 'silent_on%'"
    )
    took = f"SELECT ms FROM injection i WHERE {where} AND {is_prompt} AND ms NOTNULL ORDER BY ms"
    with state.reading(home) as db:
        row = db.execute(f"SELECT {', '.join(sums)} FROM injection i WHERE {where}", values)
        summed = dict(zip(("since", *counted), row.fetchone(), strict=True))
        summed["marked"] = db.execute(marked, values).fetchone()[0]
        ordered = [ms for (ms,) in db.execute(took, values)]
    for name, part in (("p50_ms", 0.5), ("p90_ms", 0.9)):
        summed[name] = ordered[int(part * len(ordered))] if ordered else None
    return Total(**summed)


@dataclass(frozen=True, slots=True)
class Week:
    """The use of seven days: how often lessons `came` by hooks, and an agent searched and read."""

    since: str  # ISO 8601
    came: int
    searches: int
    reads: int

    @property
    def is_used(self) -> bool:
        return bool(self.came or self.searches or self.reads)


def weeks(home: Path, root: Path) -> tuple[Week, ...]:
    """Return the use of the last weeks, the one that ends now first."""
    hooks = ", ".join(f"'{event}'" for event in HOOKS)
    counted = [f"i.event IN ({hooks}) AND EXISTS ({_GIVEN} AND {_LESSONS})"]
    counted += [f"i.event = '{SEARCH}'", f"i.event = '{READ}'"]
    sums = ", ".join(f"count(*) FILTER (WHERE {each})" for each in counted)
    query = f"SELECT {sums} FROM injection i WHERE vault = ? AND time >= ? AND time < ?"
    now = time.time() + 1
    ends = [iso_time(now - 7 * 86_400 * number) for number in range(WEEKS + 1)]
    with state.reading(home) as db:
        return tuple(
            Week(since, *db.execute(query, [state.vault_of(root), since, until]).fetchone())
            for until, since in pairwise(ends)
        )


@dataclass(frozen=True, slots=True)
class Summary(Total):
    """The sum of a vault's record, and how often its lessons were given, the most and the last first."""

    most_used: list[tuple[str, int]]
    last_used: list[tuple[str, str]]
    never_used: int
    some_never_used: list[str]
    weeks: tuple[Week, ...]


def summary(home: Path, root: Path, ids: Sequence[str]) -> Summary:
    """Sum up a vault's record; `ids` are its lessons, used or not, sorted."""
    take_in_misses(home, root)
    used = uses(home, root)
    last = (
        "SELECT lesson, max(time) AS last FROM given g JOIN injection i ON i.id = g.injection"
        f" WHERE g.vault = ? AND {_LESSONS} AND time <= ?"
        " GROUP BY lesson ORDER BY last DESC, lesson DESC LIMIT ?"
    )
    now = iso_time(time.time() + 1)
    with state.reading(home) as db:
        lately = db.execute(last, [state.vault_of(root), now, SHOWN]).fetchall()
    never = [id for id in ids if id not in used]
    return Summary(
        **asdict(total(home, root)),
        most_used=used.most_common(SHOWN),
        last_used=lately,
        never_used=len(never),
        some_never_used=never[:SHOWN],
        weeks=weeks(home, root),
    )


def uses(home: Path, root: Path, ids: Collection[str] | None = None) -> Counter[str]:
    """Count how often agents were given each lesson of a vault, of all or of some ids."""
    some = "" if ids is None else f" AND lesson IN ({state.slots(ids)})"
    query = (
        f"SELECT lesson, count(*) FROM given WHERE vault = ? AND {_LESSONS}{some} GROUP BY lesson"
    )
    with state.reading(home) as db:
        return Counter(dict(db.execute(query, [state.vault_of(root), *(ids or ())])))


def last_use(home: Path, root: Path, lesson: str) -> str:
    """Return the time at which agents got a lesson last, in ISO 8601; "" for never."""
    query = (
        "SELECT max(time) FROM given g JOIN injection i ON i.id = g.injection"
        f" WHERE g.vault = ? AND lesson = ? AND {_LESSONS}"
    )
    with state.reading(home) as db:
        return db.execute(query, [state.vault_of(root), lesson]).fetchone()[0] or ""


Key = tuple[str, str, str]  # session, hash of the prompt, lesson


@dataclass(frozen=True, slots=True)
class Teaching:
    """A lesson that was taught about a prompt.

    `kind` is the list of the lesson that the prompt went into, `written` the hash of what was written,
    `moved` whether it left the other list.
    """

    kind: str
    written: str
    moved: bool = False


def mark(home: Path, root: Path, key: Key, new: Teaching | None) -> None:
    """Record a teaching of a lesson about a prompt; None takes it back. Raises WriteError."""
    session, prompt, lesson = key
    about = [*session_key(root, session), prompt, lesson]
    with state.writing(home) as db:
        db.execute(
            "DELETE FROM mark WHERE vault = ? AND session = ? AND prompt = ? AND lesson = ?", about
        )
        if new is not None:
            values = [*about, new.kind, new.written, new.moved]
            db.execute("INSERT INTO mark VALUES (?, ?, ?, ?, ?, ?, ?)", values)


def marks(home: Path, root: Path) -> dict[Key, Teaching]:
    """Return the teachings about prompts that were not taken back."""
    query = "SELECT session, prompt, lesson, kind, written, moved FROM mark WHERE vault = ?"
    with state.reading(home) as db:
        rows = db.execute(query, [state.vault_of(root)])
        return {(row[0], row[1], row[2]): Teaching(row[3], row[4], bool(row[5])) for row in rows}


def rename(home: Path, root: Path, renamed: Mapping[str, str]) -> None:
    """Note that lessons have other ids now, old to new, so that their use still counts. Never raises.

    Sections go with their files.
    """
    if not renamed:
        return
    vault, moved = state.vault_of(root), "\x01"  # before new ids: they may be old ones of others
    with suppress(WriteError), state.writing(home) as db:
        for table in ("given", "mark", "word"):
            for old, new in renamed.items():
                db.execute(
                    f"UPDATE OR REPLACE {table} SET lesson = ? || substr(lesson, length(?) + 1)"
                    " WHERE vault = ? AND (lesson = ? OR substr(lesson, 1, length(?) + 1) = ?)",
                    [moved + new, old, vault, old, old, f"{old}#"],
                )
            db.execute(
                f"UPDATE OR REPLACE {table} SET lesson = substr(lesson, 2)"
                " WHERE vault = ? AND substr(lesson, 1, 1) = ?",
                [vault, moved],
            )


def complaints_of(root: Path, home: Path, within: float | None = None) -> list[dict[str, Any]]:
    """Return the lines about a vault, the oldest first: all, or those of the last seconds.

    A line that is as far in the future counts too: the clock may have been put back.
    """
    found: list[dict[str, Any]] = []
    for name in (f"{HOOK_LOG}.old", HOOK_LOG):
        try:
            lines = index_files.read(home / name, MAX_LOG_BYTES).decode("utf-8", "replace")
        except FileNotFoundError:
            continue
        except OSError as error:
            message = unreadable(home / name, error).message
            found.append({"time": iso_time(time.time()), "event": "", "message": message})
            continue
        entries = filter(None, map(_entry, lines.split("\n")))
        found += [each for each in entries if _is_about(each, root)]
    if within is None:
        return found
    first, last = (iso_time(time.time() + seconds) for seconds in (-within, within))
    return [each for each in found if first <= each["time"] <= last]


def _entry(line: str) -> dict[str, Any] | None:
    """Parse a line of the hooks' log; None for half a line and other texts."""
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(entry, dict) or not {"time", "event", "message"} <= entry.keys():
        return None
    texts = {key: text for key, text in entry.items() if isinstance(text, str)}
    entry["time"] = str(entry["time"])
    return {**entry, **{key: protocol.whole_characters(text) for key, text in texts.items()}}


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


def take_in_misses(home: Path, root: Path) -> None:
    """Record the searches without an answer that the hooks' log has of a vault. Never raises.

    Two hooks may ask about one prompt: that counts once, as answered if either was.
    """
    missed = [line for line in complaints_of(root, home) if line.get("missed") is True]
    if not missed:
        return
    same = (
        "SELECT 1 FROM injection WHERE vault = ? AND event = ? AND session = ? AND prompt = ?"
        " AND (time = ? OR abs(julianday(time) - julianday(?)) * 86400 < ?)"
    )
    with suppress(WriteError), state.writing(home) as db:
        for miss in map(_miss, missed):
            about = [state.vault_of(root), miss.event, miss.session, miss.prompt, miss.time]
            if not db.execute(same, [*about, miss.time, SAME_SECONDS]).fetchone():
                record(home, root, miss)


def _miss(line: Mapping[str, Any]) -> Delivery:
    ms = line.get("ms")
    return Delivery(
        event=str(line["event"]),
        session=str(line.get("session") or ""),
        prompt=str(line.get("prompt") or ""),
        ms=float(ms) if isinstance(ms, (int, float)) and 0 <= ms < MAX_MS else None,
        by="hook",
        silent=str(line["message"]),
        missed=True,
        time=str(line["time"]),
    )
