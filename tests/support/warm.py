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
import gc
import importlib
import json
import os
import pkgutil
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import vault_index
from tests.support import few_prompts
from tests.support.places import REPO

# what commands import, without anything that starts a thread: `lancedb`, `pyarrow`, `ctranslate2`
LIBRARIES = (
    "git yaml numpy frontmatter csv decimal hmac importlib.resources importlib.metadata".split()
)
SERVER = (
    "vault_index.entrypoints.web.app",
    "uvicorn.lifespan.on",
    "uvicorn.protocols.http.h11_impl",
)
DOORS = ("vault_index.entrypoints.mcp", "vault_index.entrypoints.web", "vault_index.__main__")

# isolated and without `site`: a start of 10 ms
CLIENT = """\
#!{python} -ISE
import json, os, socket, sys
line = socket.socket(socket.AF_UNIX)
line.connect({socket!r})
surrogates = "surrogateescape"
request = {{"command": [{command!r}, *sys.argv[1:]], "cwd": os.getcwd(), "env": dict(os.environ)}}
data = json.dumps(request).encode("utf-8", surrogates)
of_hook = [3] if "LESSONS_HOOK_FD" in os.environ else []
socket.send_fds(line, [b"%10d" % len(data)], [0, 1, 2, *of_hook])
line.sendall(data)
with line.makefile("rb") as answers:
    answers.read(10)
    code = int(answers.read(10))
os._exit(code if code >= 0 else 128 - code)
"""


class Fork:
    """A fork that goes on, as `subprocess.Popen` has it."""

    def __init__(self, line: socket.socket, pid: int, stdout: IO[str], stderr: IO[str]) -> None:
        self._line, self.pid, self.stdout, self.stderr = line, pid, stdout, stderr
        self._code: int | None = None

    def poll(self) -> int | None:
        return self._ended(0)

    def wait(self, timeout: float) -> int:
        code = self._ended(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(str(self.pid), timeout)
        return code

    def _ended(self, timeout: float) -> int | None:
        if self._code is None and select.select([self._line], [], [], timeout)[0]:
            self._code = int(_receive(self._line, 10))
            self._line.close()
        return self._code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class WarmProcess:
    """The process that forks, started at the first command and ended with this one."""

    def __init__(self, *, serves: bool = False) -> None:
        self._words = ["web"] if serves else []
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

    def start(self, command: Sequence[str], *, cwd: Path, env: Mapping[str, str]) -> Fork:
        """Start `lessons` in a fork that goes on; without an input, what it prints in pipes."""
        line = self._connect()
        request = {"command": list(command), "cwd": str(cwd), "env": dict(env)}
        data = json.dumps(request).encode("utf-8", "surrogateescape")
        out, err = os.pipe(), os.pipe()
        with Path(os.devnull).open("rb") as nothing:
            socket.send_fds(line, [b"%10d" % len(data)], [nothing.fileno(), out[1], err[1]])
        os.close(out[1])
        os.close(err[1])
        line.sendall(data)
        pid = int(_receive(line, 10))
        return Fork(line, pid, os.fdopen(out[0]), os.fdopen(err[0]))

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
                    [sys.executable, "-m", "tests.support.warm", self._socket, *self._words],
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


def serve(place: str, serves: bool) -> None:
    """Fork once for each request, until nobody is left at the other end of stdin."""
    importlib.import_module("vault_index.entrypoints.cli")  # first: it sets how numpy starts
    for name in (*LIBRARIES, *_own_modules(), *(SERVER if serves else ())):
        importlib.import_module(name)
    _load_patterns()
    tasks = Path("/proc/self/task")
    assert not tasks.is_dir() or len(list(tasks.iterdir())) == 1, "a module started a thread"
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    gc.collect()
    gc.freeze()  # a collection in a fork would copy every page of what is loaded
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


def _own_modules() -> list[str]:
    """Return the modules of the package, without the doors that no command needs."""
    modules = pkgutil.walk_packages(vault_index.__path__, "vault_index.")
    return [module.name for module in modules if not module.name.startswith(DOORS)]


def _load_patterns() -> None:
    """Compile the patterns of all checks before the first fork."""
    from vault_index.check import Candidate, of_text, pattern

    of_text(Candidate("a.md", b"Text.\n"))
    for rule in [*pattern.load("secrets"), *pattern.load("prompt_injection")]:
        for regex in rule.regex:
            pattern._needed(regex)
            pattern.compiled(regex)


def _watch_over(line: socket.socket) -> None:
    """Run one request in a fork of this fork, and send its pid and exit status. Does not return."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    try:
        head, handles, _, _ = socket.recv_fds(line, 10, 4)
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
        few_prompts.fit(bool(os.environ.get(few_prompts.NAME)))
        code = (_python if request["command"][1:2] == ["-c"] else _main)(request["command"])
    finally:
        os._exit(code)


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


def _python(command: list[str]) -> int:
    sys.argv = command[1:2] + command[3:]
    code = 1
    try:
        exec(compile(command[2], "<string>", "exec"), {"__name__": "__main__"})
        code = 0
    except Exception:  # noqa: BLE001  # any, as a process of its own
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    return code


if __name__ == "__main__":
    serve(sys.argv[1], serves=len(sys.argv) > 2)
