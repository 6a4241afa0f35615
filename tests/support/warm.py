"""A warm process that runs the command line for tests: each command is a fork of it.

A fork saves what a new process would import, a third of a second for each of many hundred commands;
arguments, folder, environment, pipes and exit status are a process's own. Modules that start
threads are not loaded before the fork: a thread does not come along.

What a shell, git or a terminal starts finds such a fork too, as `lessons` in the folder `bin` (a
small program that hands its files over and waits): for tests of what commands do, not of how they
start or are killed.
"""

from __future__ import annotations

import atexit
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.support.places import REPO

# what commands import, without anything that starts a thread: `lancedb`, `pyarrow`, `ctranslate2`
MODULES = (
    *("git", "yaml", "numpy", "frontmatter", "click"),
    *("vault_index.api", "vault_index.check", "vault_index.edit.add", "vault_index.edit.init"),
    *("vault_index.edit.categories", "vault_index.edit.update", "vault_index.edit.import_lessons"),
    *("vault_index.edit.categories", "vault_index.edit.update", "vault_index.embed.download"),
    *("vault_index.embed.minilm", "vault_index.index.classifier", "vault_index.index.reconcile"),
    *("vault_index.index.skills", "vault_index.lesson.merge", "vault_index.recall.respond"),
    *("vault_index.search.floor", "vault_index.share.git_hooks", "vault_index.share.history"),
    *("vault_index.share.remote", "vault_index.status"),
)

FEW_PROMPTS = "TESTS_FEW_PROMPTS"  # in the environment of tests whose results no floor decides

# isolated and without `site`: a start of 10 ms
CLIENT = """\
#!{python} -ISE
import json, os, socket, sys
line = socket.socket(socket.AF_UNIX)
line.connect({socket!r})
surrogates = "surrogateescape"
request = {{"command": [{command!r}, *sys.argv[1:]], "cwd": os.getcwd(), "env": dict(os.environ)}}
data = json.dumps(request).encode("utf-8", surrogates)
socket.send_fds(line, [b"%10d" % len(data)], [0, 1, 2])
line.sendall(data)
with line.makefile("rb") as answers:
    answers.read(10)
    code = int(answers.read(10))
os._exit(code if code >= 0 else 128 - code)
"""


class WarmProcess:
    """The process that forks, started at the first command and ended with this one."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._folder = tempfile.TemporaryDirectory(prefix="warm")
        self._socket = Path(self._folder.name) / "s"
        self._starting = threading.Lock()

    def run(
        self,
        command: Sequence[str],
        *,
        cwd: Path,
        stdin: str,
        env: Mapping[str, str],
        timeout: float,
    ) -> subprocess.CompletedProcess[str]:
        """Run `lessons` in a fork. Raises subprocess.TimeoutExpired."""
        with (
            tempfile.TemporaryFile() as given,
            tempfile.TemporaryFile() as out,
            tempfile.TemporaryFile() as err,
        ):
            given.write(stdin.encode())
            given.seek(0)
            with self._connect() as line:
                request = {"command": list(command), "cwd": str(cwd), "env": dict(env)}
                data = json.dumps(request).encode("utf-8", "surrogateescape")
                socket.send_fds(
                    line, [b"%10d" % len(data)], [f.fileno() for f in (given, out, err)]
                )
                line.sendall(data)
                pid = int(_receive(line, 10))
                line.settimeout(timeout)
                try:
                    code = int(_receive(line, 10))
                except TimeoutError:
                    os.kill(pid, signal.SIGKILL)
                    raise subprocess.TimeoutExpired(command, timeout) from None
            out.seek(0)
            err.seek(0)
            printed = (_text(file.read()) for file in (out, err))
            return subprocess.CompletedProcess(list(command), code, *printed)

    def bin(self, command: Path) -> Path:
        """Return a folder for `PATH` with a `lessons` that is a fork; it is told that it is `command`."""
        self._connect().close()
        program = self._socket.parent / "bin" / "lessons"
        if not program.exists():
            text = CLIENT.format(
                python=sys.executable, socket=str(self._socket), command=str(command)
            )
            program.parent.mkdir()
            program.write_text(text)
            program.chmod(0o755)
        return program.parent

    def _connect(self) -> socket.socket:
        with self._starting:
            if self._process is None:
                self._process = subprocess.Popen(
                    [sys.executable, "-m", "tests.support.warm", self._socket],
                    stdin=subprocess.PIPE,  # which ends when this process does
                    stdout=subprocess.PIPE,
                    cwd=REPO,
                )
                atexit.register(self.close)
                assert self._process.stdout is not None
                assert self._process.stdout.readline() == b"ready\n"
        line = socket.socket(socket.AF_UNIX)
        line.connect(str(self._socket))
        return line

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
        self._folder.cleanup()


def _text(data: bytes) -> str:
    return data.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")


def _receive(line: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = line.recv(size - len(data))
        if not part:
            raise ConnectionError("the other end is gone")
        data += part
    return data


def serve(place: str) -> None:
    """Fork once for each request, until nobody is left at the other end of stdin."""
    for name in ("vault_index.entrypoints.cli", *MODULES):  # first: it sets how numpy starts
        importlib.import_module(name)
    _load_patterns()
    tasks = Path("/proc/self/task")
    assert not tasks.is_dir() or len(list(tasks.iterdir())) == 1, "a module started a thread"
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(place)
        door.listen(64)
        os.write(1, b"ready\n")
        while sys.stdin.fileno() not in select.select([door, sys.stdin], [], [])[0]:
            line, _ = door.accept()
            with line:
                if os.fork() == 0:
                    door.close()
                    _watch_over(line)


def _load_patterns() -> None:
    """Check a text, so that the patterns of all checks are compiled before the first fork."""
    from vault_index import check

    check.of_text(check.Candidate("a.md", b"Text.\n"))


def _watch_over(line: socket.socket) -> None:
    """Run one request in a fork of this fork, and send its pid and exit status. Does not return."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    try:
        head, handles, _, _ = socket.recv_fds(line, 10, 3)
        request = json.loads(_receive(line, int(head)).decode("utf-8", "surrogateescape"))
        pid = os.fork()
        if pid == 0:
            line.close()
            _become(request, handles)
        line.sendall(b"%10d" % pid)
        _, status = os.waitpid(pid, 0)
        line.sendall(b"%10d" % os.waitstatus_to_exitcode(status))
    finally:
        os._exit(0)


def _become(request: dict[str, Any], handles: list[int]) -> None:
    """Be the program that is asked for. Does not return."""
    code = 70
    try:
        for wanted, handle in enumerate(handles):
            os.dup2(handle, wanted)
            os.close(handle)
        os.environ.clear()
        os.environ.update(request["env"])
        os.chdir(request["cwd"])
        if FEW_PROMPTS in os.environ:
            _fit_to_few_prompts()
        code = _main(request["command"])
    finally:
        os._exit(code)


def _fit_to_few_prompts() -> None:
    """Let a floor be fitted to a tenth of the prompts: those of all take most of a command's time."""
    from vault_index.search import floor

    few = floor.foreign_prompts()[::10]
    floor.foreign_prompts = lambda: few


def _main(command: list[str]) -> int:
    from vault_index.entrypoints.cli import main

    sys.argv = command
    sys.modules["__main__"].__package__ = None  # else click takes its name for the program's
    try:
        main()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    return code


if __name__ == "__main__":
    serve(sys.argv[1])
