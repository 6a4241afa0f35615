"""The protocol between the watcher and its clients: where the socket is, one question, one answer.

A unix socket in the user's private folder, so nothing listens on a port. A question is one line of JSON
that names the vault, the answer another, and the connection ends. Standard library only: the hook loads
this on every prompt.
"""

from __future__ import annotations

import _socket  # `socket` is built on it, loads `enum` and takes half as long as Python's start
import os
import sys
import time

from vault_index.hotpath import index_files

TYPE_CHECKING = False  # typing takes 3 ms to load
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


PROTOCOL = 9  # raise it when questions or answers change; other versions then decline each other
WATCHER_SECONDS = 10  # for an answer; the watcher itself waits up to three for what was just saved
MAX_BYTES = 4 * 1024 * 1024  # of a question
MAX_PATH_BYTES = 100  # the system's limit is 108 on Linux and 104 on macOS
FOLDER = "watch"  # in the user's folder: the lock, the log and the socket of the watcher

# A watcher answers only callers whose values of these variables equal its own.
ENVIRONMENT = ("LESSONS_HOME", "LESSONS_EMBEDDER", "LESSONS_OLLAMA_MODEL", "OLLAMA_HOST")


class NoWatcher(Exception):
    """No watcher runs, or this user may not open its socket."""


class NotOpen(NoWatcher):
    """The watcher has not opened this vault: the settings forbid it, or nothing asked for it."""


class NoAnswer(Exception):
    """A watcher runs, and it is busy or hung."""


class Gone(NoAnswer):
    """The watcher ended before it had answered."""


class Declined(NoAnswer):
    """The watcher does not answer this: another version, other settings, a damaged index or a bug."""


class DeclinedForNow(Declined):
    """The watcher will answer this soon: it opens new settings, or builds a damaged index again."""


def settings_of(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the part of an environment that decides the result of a search."""
    return {name: environ[name] for name in ENVIRONMENT if environ.get(name)}


def folder() -> str:
    """Return the watcher's folder; by its real path, since a caller by a link must find the same."""
    return f"{os.path.realpath(index_files.home_folder(os.environ))}/{FOLDER}"


def places() -> list[str]:
    """Return the paths where the user's socket may be, best first.

    In the watcher's folder; or, where that path is too long or its file system has no sockets, in the
    user's runtime folder.
    """
    private = folder()
    inside = f"{private}/socket"
    where = [inside] if len(os.fsencode(inside)) <= MAX_PATH_BYTES else []
    return [*where, f"{runtime_folder()}/{fnv64(private):016x}.sock"]


def runtime_folder() -> str:
    """Return the user's folder for sockets. No variable names it: both ends must find the same."""
    runtime = f"/run/user/{os.getuid()}"
    return f"{runtime}/lessons" if os.path.isdir(runtime) else f"/tmp/lessons-{os.getuid()}"


def fnv64(text: str) -> int:
    """Return the 64-bit FNV-1a hash of a text: hashlib takes longer to load than this to run."""
    value = 0xCBF29CE484222325
    for byte in os.fsencode(text):
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return value


def ask(root: str, question: Mapping[str, Any], timeout: float) -> dict[str, Any]:
    """Ask the watcher about a vault and return its answer, within `timeout` seconds.

    `root` is "" for the journal. Raises NoWatcher (NotOpen), NoAnswer (Gone, Declined, DeclinedForNow).
    """
    until = time.monotonic() + timeout
    line = connect(places(), timeout)
    try:
        vault = os.path.realpath(root) if root else ""
        message = {"protocol": PROTOCOL, "settings": settings_of(os.environ), "vault": vault}
        message.update(question)
        line.sendall(dumps(message).encode() + b"\n")
        received = receive(line, until)
        if not received:
            raise Gone("it ended")
        answer = loads(received.decode())
    except ConnectionError as error:
        raise Gone(f"{type(error).__name__}: {error}") from None
    except (OSError, ValueError) as error:
        raise NoAnswer(f"{type(error).__name__}: {error}") from None
    finally:
        line.close()
    if not isinstance(answer, dict) or answer.get("protocol") != PROTOCOL:
        raise Declined("the watcher is of another version")
    if "declined" in answer:
        kind = DeclinedForNow if answer.get("for_now") else Declined
        raise kind(str(answer["declined"]))
    if "closed" in answer:
        raise NotOpen
    return answer


def receive(line: _socket.socket, until: float) -> bytes:
    """Read one line. Raises TimeoutError at `until` (monotonic), ValueError if it is too long."""
    parts: list[bytes] = []
    size = 0
    while True:
        line.settimeout(max(0.001, until - time.monotonic()))
        part = line.recv(65536)
        parts.append(part)
        size += len(part)
        if not part or part.endswith(b"\n"):
            return b"".join(parts)
        if size > MAX_BYTES or time.monotonic() > until:
            raise ValueError("too long")


def is_other_user(line: _socket.socket) -> bool:
    """Whether the peer is another user; False where the platform cannot tell.

    The modes of the socket, 0600, and of its folder keep others out on every platform.
    """
    if sys.platform == "linux":
        credentials = line.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)  # pid, uid, gid
    elif sys.platform == "darwin":
        credentials = line.getsockopt(0, 1, 76)  # SOL_LOCAL, LOCAL_PEERCRED: version, uid, ...
    else:
        return False
    return int.from_bytes(credentials[4:8], sys.byteorder) != os.getuid()


def connect(paths: list[str], timeout: float) -> _socket.socket:
    """Connect to the first of these sockets that is this user's. Raises NoWatcher, NoAnswer."""
    for path in paths:
        try:
            around, end = os.lstat(os.path.dirname(path)), os.lstat(path)
        except OSError:
            continue
        # the types alone: `stat` is one more module to load
        is_socket = around.st_mode & 0o170000 == 0o040000 and end.st_mode & 0o170000 == 0o140000
        if not is_socket or around.st_uid != os.geteuid():  # a clone may bring a link to another
            continue
        line = _socket.socket(_socket.AF_UNIX)
        line.settimeout(timeout)
        try:
            line.connect(path)
            if not is_other_user(line):  # anyone who may write to /tmp could wait for our prompts
                return line
        except (TimeoutError, BlockingIOError) as error:
            line.close()
            raise NoAnswer(f"its queue is full: {error}") from None
        except OSError:
            pass
        line.close()
    raise NoWatcher


# How long a hook waits for a watcher, which may hang: two small files beside its socket say it.
#
#     pace       how many milliseconds an answer usually takes; the watcher writes it
#     lost-HASH  somebody waited in vain for an answer about this vault: for a minute nobody waits,
#                unless there is one, with which the watcher removes the file
#
# A watcher that was stopped and goes on answers what it was asked meanwhile, and so removes the file.
PACE, LOST = "pace", "lost-"
TIMES = 10  # the usual time: a watcher that takes longer hangs
LEAST_SECONDS = 0.25  # an answer may have to wait for a processor so long
LOST_SECONDS = 60.0  # before somebody waits again
PING_SECONDS = 1.0  # for a watcher that lives to say so, on a busy machine
LOOK_SECONDS = 0.05  # whether a watcher that hangs still runs: the system connects at once


def patience(most: float) -> float:
    """Return the seconds to wait for a prompt's answer, at most `most`."""
    try:
        with open(f"{folder()}/{PACE}", "rb") as file:
            usual = int(file.read(8)) / 1000
    except (OSError, ValueError):  # none was answered yet
        return most
    return min(most, max(LEAST_SECONDS, TIMES * usual))


def lost(root: str) -> str:
    """Return the path of the file that says that nobody waits for an answer about a vault."""
    return f"{folder()}/{LOST}{fnv64(os.path.realpath(root) if root else ''):016x}"


def refuse_lost(root: str) -> None:
    """Raise NoAnswer if somebody waited for an answer in vain; NoWatcher if no watcher runs by now."""
    try:
        since = os.lstat(lost(root)).st_mtime
    except OSError:
        return
    from vault_index.hotpath import clock  # most hooks need none

    if clock.is_near(since, LOST_SECONDS):
        connect(places(), LOOK_SECONDS).close()
        raise NoAnswer("it has not answered since another was waited for")


def ask_alive(root: str, question: Mapping[str, Any]) -> dict[str, Any]:
    """Ask a watcher that answers at all, as `ask` does: a search may take it ten seconds."""
    refuse_lost(root)
    try:
        ask("", {"ask": "ping"}, PING_SECONDS)
    except (Gone, Declined):
        pass
    except NoAnswer:
        lose(root)
        raise
    return ask(root, question, WATCHER_SECONDS)


def lose(root: str) -> None:
    """Note that the watcher did not answer in time about a vault."""
    try:
        handle = os.open(lost(root), os.O_CREAT | os.O_WRONLY | os.O_NOFOLLOW, 0o600)
        os.utime(handle)
        os.close(handle)
    except OSError:  # the next one waits again
        pass


# JSON without the module `json`, which loads `re` and takes as long as the rest of a warm hook.
#
# `json` itself is a few lines around the same compiled functions. Where a release of Python has other
# functions, `json` does it; a test compares the two.
_SPACE = " \t\n\r"


class _Context:
    """The attributes that the compiled scanner reads of a decoder: `json`'s own defaults."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    memo: dict[str, str] = {}  # noqa: RUF012  # the scanner empties it

    @staticmethod
    def parse_constant(name: str) -> float:
        return float(name.replace("Infinity", "inf"))


def loads(text: str) -> Any:
    """Return the value of a JSON text. Raises ValueError."""
    try:
        from _json import make_scanner

        context: Any = _Context()
        scan = make_scanner(context)
    except (ImportError, AttributeError, TypeError):
        import json

        return json.loads(text)
    start = len(text) - len(text.lstrip(_SPACE))
    try:
        value, end = scan(text, start)
    except (StopIteration, SystemError):  # the second where it finds no module `json` for its error
        raise ValueError("no JSON") from None
    if text[end:].strip(_SPACE):
        raise ValueError("more than one value")
    return value


def whole_characters(text: str) -> str:
    """Return a text with a question mark for each half of a character, which JSON can name by itself.

    No file, database or table takes such a half: `"\\ud800"`.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def dumps(value: Any) -> str:
    """Return a value as JSON in ASCII. Raises TypeError for a value without a form in JSON."""
    try:
        from _json import encode_basestring_ascii, make_encoder

        encode = make_encoder(
            {}, _refuse, encode_basestring_ascii, None, ": ", ", ", False, False, True
        )
    except (ImportError, TypeError):
        import json

        return json.dumps(value)
    return "".join(encode(value, 0))


def _refuse(value: Any) -> Any:
    raise TypeError(f"{type(value).__name__} has no form in JSON")
