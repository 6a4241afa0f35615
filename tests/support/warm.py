"""A warm process of which each server of a test is a fork, which saves a second of imports.

Arguments, folder, environment, pipes and exit status are a process's own. Modules that start threads
are not loaded before the fork: a thread does not come along.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from tests.support import few_prompts
from tests.support.places import REPO

# what a server imports, without anything that starts a thread: `lancedb`, `pyarrow`, `ctranslate2`
MODULES = (
    "vault_index.entrypoints.cli git yaml numpy frontmatter"  # the first sets how numpy starts
    " vault_index.entrypoints.web.app uvicorn.lifespan.on uvicorn.protocols.http.h11_impl"
).split()
SIZE = 10  # characters of a number that is sent


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
            self._code = int(_receive(self._line, SIZE))
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
    """The process that forks, started at the first request and ended with this one."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._folder = tempfile.TemporaryDirectory(prefix="warm")
        self._socket = Path(self._folder.name) / "s"

    def start(self, command: Sequence[str], *, cwd: Path, env: Mapping[str, str]) -> Fork:
        """Start `lessons` in a fork that goes on; without an input, what it prints in pipes."""
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.support.warm", self._socket],
                stdin=subprocess.PIPE,  # which ends when this process does
                stdout=subprocess.PIPE,
                cwd=REPO,
                env={**os.environ, few_prompts.NAME: ""},  # each fork is told
            )
            atexit.register(self._close)
            assert self._process.stdout is not None
            assert self._process.stdout.readline() == b"ready\n"
        line = socket.socket(socket.AF_UNIX)
        line.connect(str(self._socket))
        request = {"command": list(command), "cwd": str(cwd), "env": dict(env)}
        data = json.dumps(request).encode("utf-8", "surrogateescape")
        out, err = os.pipe(), os.pipe()
        with Path(os.devnull).open("rb") as nothing:
            files = [nothing.fileno(), out[1], err[1]]
            socket.send_fds(line, [b"%*d" % (SIZE, len(data))], files)
        os.close(out[1])
        os.close(err[1])
        line.sendall(data)
        return Fork(line, int(_receive(line, SIZE)), os.fdopen(out[0]), os.fdopen(err[0]))

    def _close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._folder.cleanup()


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
    for name in MODULES:
        importlib.import_module(name)
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


def _watch_over(line: socket.socket) -> None:
    """Run one request in a fork of this fork, and send its pid and exit status. Does not return."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    try:
        head, handles, _, _ = socket.recv_fds(line, SIZE, 3)
        request = json.loads(_receive(line, int(head)).decode("utf-8", "surrogateescape"))
        pid = os.fork()
        if pid == 0:
            line.close()
            for wanted, handle in enumerate(handles):
                os.dup2(handle, wanted)
                os.close(handle)
            _become(request["command"], request["cwd"], request["env"])
        line.sendall(b"%*d" % (SIZE, pid))
        _, status = os.waitpid(pid, 0)
        line.sendall(b"%*d" % (SIZE, os.waitstatus_to_exitcode(status)))
    finally:
        os._exit(0)


def _become(command: list[str], cwd: str, env: Mapping[str, str]) -> None:
    """Be the program that is asked for. Does not return."""
    from vault_index.entrypoints.cli import main

    code: object = 70
    try:
        os.environ.clear()
        os.environ.update(env)
        os.chdir(cwd)
        few_prompts.fit(bool(os.environ.get(few_prompts.NAME)))
        sys.argv = command
        main(prog_name="lessons")
    except SystemExit as end:
        code = end.code
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(int(code or 0))  # type: ignore[call-overload]  # a number or nothing


if __name__ == "__main__":
    serve(sys.argv[1])
