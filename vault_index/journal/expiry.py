"""Whether things may go because of their age, and where they stay for a week after they went.

    ~/.lessons/expired/                    0700, like all below it
      clock.json                           since when the clock ran without a jump, when it was last read
      <day>/<place below ~/.lessons>       what went on that day

A clock that is wrong must not erase anything. It is trusted once it ran for a day without a jump while
the latest session and the latest transcript are of these days, or for a month whatever they say. A jump,
ahead or back, begins the count again. Commands that only read neither expire nor write here.
"""

from __future__ import annotations

import json
import shutil
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from vault_index import files
from vault_index.errors import VaultError
from vault_index.files.private import make_folder
from vault_index.hotpath import spool
from vault_index.journal import archive
from vault_index.transcripts import reading

FOLDER, CLOCK = "expired", "clock.json"
KEPT = timedelta(days=7)  # after something went
# more between two readings, or since the last session, may be a wrong clock
NEAR = timedelta(days=7)
TRIAL = timedelta(days=1)  # after a jump: somebody has seen a wrong date by then
STEADY = timedelta(days=30)  # where no agent was used meanwhile
_READ_AGAIN = timedelta(hours=1)  # the record is not written for each look


@dataclass(frozen=True, slots=True)
class _Clock:
    """How the clock ran, in ISO 8601: without a jump from `since` to `last`; whether it was trusted."""

    since: str
    last: str
    trusted: bool = False


def oldest(home: Path, days: int) -> datetime | None:
    """Return the time before which things are older than so many days; None if none may go now.

    None may where `days` is 0 or the clock is not trusted. For commands that write: what expired more
    than a week ago is erased here. `home` is the user's private folder.
    """
    if not days:
        return None
    now = datetime.now(UTC)
    try:
        limit = now - timedelta(days=days)
        if not _look(home, now):
            return None
        last = (now - KEPT).date().isoformat()
        for day in sorted((home / FOLDER).iterdir()):
            if day.name < last and day.is_dir() and not day.is_symlink():
                shutil.rmtree(day)
    except (OverflowError, VaultError, OSError):  # before the year 1; a full disk
        return None
    return limit


def put_away(home: Path, file: Path) -> None:
    """Move an expired file below `home` to where it stays for a week. Raises WriteError."""
    place = home / FOLDER / datetime.now(UTC).date().isoformat() / file.relative_to(home)
    make_folder(place.parent)
    with files.writing(place), suppress(FileNotFoundError):
        file.replace(place)


def told(home: Path, what: str) -> str:
    """Return a line for people about what was put away."""
    return f"{what} went; kept until {datetime.now(UTC).date() + KEPT} in {home / FOLDER}"


def put_away_in(home: Path, kind: str) -> list[Path]:
    """Return the folders of a kind, such as `journal`, that hold what expired: one for each day."""
    try:
        days = sorted((home / FOLDER).iterdir())
    except OSError:
        return []
    return [day / kind for day in days if (day / kind).is_dir() and not day.is_symlink()]


def _look(home: Path, now: datetime) -> bool:
    """Read the clock, write down how it ran, and return whether it is trusted. Raises WriteError."""
    file = home / FOLDER / CLOCK
    before = _read(file)
    if before is None:  # the first look: what agents wrote is all there is to compare with
        since = now - TRIAL
    elif _is_near(before.last, now):
        since = datetime.fromisoformat(before.since)
    else:
        since = now
    ran = now - since
    trusted = ran >= STEADY or (ran >= TRIAL and _agents_agree(home, now))
    clock = _Clock(since.isoformat(), now.isoformat(), trusted)
    is_same = before and before == replace(clock, last=before.last)
    if not (before and is_same) or abs(now - datetime.fromisoformat(before.last)) > _READ_AGAIN:
        make_folder(file.parent)
        files.replace_file(file, json.dumps(asdict(clock)).encode())
    return trusted


def _agents_agree(home: Path, now: datetime) -> bool:
    """Whether the latest session and the latest transcript are of these days, those that there are."""
    said = []
    latest = next(archive.months(home / spool.JOURNAL), [])
    if day := max(map(archive.day_of, latest), default=""):
        said.append(f"{day}T12:00:00+00:00")
    for transcript in reading.transcripts()[-1:]:
        said.append(datetime.fromtimestamp(transcript.mtime / 1e9, UTC).isoformat())
    return bool(said) and all(_is_near(moment, now) for moment in said)


def _is_near(moment: str, now: datetime) -> bool:
    try:
        return abs(now - datetime.fromisoformat(moment)) <= NEAR
    except ValueError:
        return False


def _read(file: Path) -> _Clock | None:
    """Return the record of the clock; None without one, or for one that is damaged."""
    with suppress(VaultError, ValueError, TypeError):
        clock = _Clock(**json.loads(files.read_if_any(file) or b"null"))
        for moment in (clock.since, clock.last):
            if datetime.fromisoformat(moment).tzinfo is None:
                return None
        return clock
    return None
