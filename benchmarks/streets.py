"""Count the files of the package that run for an event: "Four streets" of ARCHITECTURE.md.

    python -m benchmarks.streets [--list]

A vault of four lessons, one of them a rule, has a warm watcher. A file counts if one of its functions is
called between the event and its answer, in the process that asks or in the watcher's; what an import runs
does not. `--list` names the files, with how often another file calls each of their functions.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import vault_index
from vault_index.edit import init
from vault_index.embed import download
from vault_index.entrypoints import background
from vault_index.hotpath import index_files, protocol, start

PACKAGE = f"{Path(vault_index.__file__).parent}/"
HOOK, COMMAND = "vault_index.entrypoints.hook.client", "vault_index.entrypoints.cli"
LESSONS = {
    "database/vacuum": "VACUUM FULL takes an exclusive lock: use pg_repack on a live table.",
    "build/docker": "Copy requirements.txt before the source, so that docker keeps its cache.",
    "deploy/migrations": "Set lock_timeout in migrations, or a deploy hangs behind a query.",
    "operations/cron": "Use UTC in cron: local time runs a job twice or never.",
}
PROMPT = "the deploy hangs at migrations that wait for a lock"
QUIET_SECONDS = 1.0  # after an answer, for what follows it

Call = tuple[
    str, str, str, str
]  # the name of a thread, a file, its function, the file that calls it


class Trace:
    """Counts the calls of the package's functions in this process, while no module is imported."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.calls: Counter[Call] = Counter()
        self._here = threading.local()
        threading.setprofile(self._hear)
        sys.setprofile(self._hear)

    def _hear(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event not in ("call", "return") or not code.co_filename.startswith(PACKAGE):
            return
        imports = getattr(self._here, "imports", 0)
        if code.co_name == "<module>":
            self._here.imports = imports + (1 if event == "call" else -1)
        elif event == "call" and not imports:
            thread = threading.current_thread().name.partition(" ")[0]
            module = code.co_filename.removeprefix(PACKAGE)
            self.calls[thread, module, code.co_qualname, _caller(frame)] += 1

    def write(self, *_: object) -> None:
        """Write what was counted, and begin again."""
        calls, self.calls = self.calls, Counter()
        part = self.file.with_suffix(".part")
        part.write_text(json.dumps([[*call, times] for call, times in calls.items()]))
        part.rename(self.file)


def _caller(frame: FrameType) -> str:
    above = frame.f_back
    while above is not None and not above.f_code.co_filename.startswith(PACKAGE):
        above = above.f_back
    return above.f_code.co_filename.removeprefix(PACKAGE) if above else ""


def watch(root: Path, file: Path) -> None:
    """Be the watcher; SIGUSR1 has it write what it counted."""
    trace = Trace(file)
    signal.signal(signal.SIGUSR1, trace.write)
    lock = start.take_lock_in(index_files.open_or_make(protocol.folder()))
    assert lock is not None, "another watcher runs"
    background.watch(root, lock, _say)


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def ask(module: str, file: Path, words: list[str]) -> None:
    """Be the process of a hook or a command."""
    sys.argv = [module, *words]
    main = importlib.import_module(module).main
    trace, end = Trace(file), os._exit

    def written(status: int) -> None:
        sys.setprofile(None)
        trace.write()
        end(status)

    os._exit = written  # type: ignore[assignment]  # by which a hook ends
    try:
        main()
    finally:
        written(0)


class Street:
    """A vault with a watcher, and the processes that ask it."""

    def __init__(self, scratch: Path) -> None:
        self.root, self.scratch = scratch / "vault", scratch
        self.root.mkdir()
        subprocess.run(["git", "init", "-q", self.root], check=True)
        self.vault = init(self.root)
        for path, text in LESSONS.items():
            file = self.root / f"lessons/{path}.md"
            file.parent.mkdir(parents=True, exist_ok=True)
            kind = "project_rule" if "cron" in path else "lesson"
            file.write_text(f"---\ntitle: About {path}\ntype: {kind}\n---\n{text}\n")
        who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        subprocess.run(["git", "-C", self.root, "add", "-A"], check=True)
        subprocess.run(
            ["git", "-C", self.root, *who, "commit", "-qm", "Set lock_timeout in migrations"],
            check=True,
        )
        self.run(COMMAND, "index")
        self._log = scratch / "log"
        with self._log.open("w") as log:
            self.watcher = self._begin("watch", self.root, scratch / "watcher", stdout=log)
        self._wait(lambda: "watching" in self._log.read_text())

    def _begin(self, *words: Any, **how: Any) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "benchmarks.streets", *map(str, words)]
        environ = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}
        return subprocess.Popen(command, cwd=self.root, env=environ, text=True, **how)

    def _wait(self, promise: Callable[[], object]) -> None:
        while not promise():
            assert self.watcher.poll() is None, self._log.read_text()
            time.sleep(0.05)

    def run(self, module: str, *words: str, given: str = "") -> list[Any]:
        """Run a command or a hook; return the calls in its process."""
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        asked = self._begin("ask", module, self.scratch / "client", *words, **pipes)
        answer, _ = asked.communicate(given)
        assert answer or module == HOOK
        return list(json.loads((self.scratch / "client").read_text()))

    def hook(self, session: str, name: str, **values: str) -> list[Any]:
        """Run the hook of an event."""
        event = {"hook_event_name": name, "session_id": session, "cwd": str(self.root), **values}
        return self.run(HOOK, given=json.dumps(event))

    def save(self, text: str) -> list[Any]:
        """Save a lesson, and wait until the watcher says so."""
        before = len(self._log.read_text())
        file = self.root / "lessons/build/docker.md"
        file.write_text(f"{file.read_text()}\n{text}\n")
        self._wait(lambda: len(self._log.read_text()) > before)
        return []

    def counted(self, threads: tuple[str, ...], do: Callable[[], list[Any]]) -> list[Any]:
        """Return the calls of both sides, in the watcher by some threads."""
        self._take()
        calls = do()
        time.sleep(QUIET_SECONDS)
        return calls + [each for each in self._take() if each[0].startswith(threads)]

    def _take(self) -> list[Any]:
        file = self.scratch / "watcher"
        file.unlink(missing_ok=True)
        self.watcher.send_signal(signal.SIGUSR1)
        self._wait(file.exists)
        return list(json.loads(file.read_text()))


def measure(street: Street) -> dict[str, list[Any]]:
    """Return the calls of each street, once all that is loaded at first use is loaded."""
    _walk(street, "one")
    return _walk(street, "two")


def _walk(street: Street, session: str) -> dict[str, list[Any]]:
    answer = ("answer",)
    return {
        "start": street.counted(answer, lambda: street.hook(session, "SessionStart")),
        "prompt": street.counted(
            answer, lambda: street.hook(session, "UserPromptSubmit", prompt=PROMPT)
        ),
        "search": street.counted(answer, lambda: street.run(COMMAND, "search", "docker cache")),
        "save": street.counted(("vault",), lambda: street.save(f"It is so, says {session}.")),
    }


def main() -> None:
    """Count, and print a line for each street."""
    parser = argparse.ArgumentParser(description="Count the files that run for an event.")
    parser.add_argument("--list", action="store_true", help="name the files and their callers")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="lessons-streets-") as scratch:
        home = Path(scratch) / "home"
        home.mkdir(mode=0o700)
        models = Path(os.environ.get("LESSONS_HOME", "")) / "models"
        if models.is_dir():
            (home / "models").symlink_to(models.resolve())
        os.environ |= {"LESSONS_HOME": str(home), "HOME": scratch, "LESSONS_WATCH_AUTOSTART": "0"}
        download.fetch(home)
        street = Street(Path(scratch))
        try:
            streets = measure(street)
        finally:
            street.watcher.terminate()
            street.watcher.wait()
    for name, calls in streets.items():
        files = sorted({file for _, file, *_ in calls})
        _say(f"{name:8} {len(files)} files")
        for each in files if options.list else ():
            _say(f"    {each}")
            for _, file, function, caller, times in sorted(calls):
                if file == each != caller:
                    _say(f"        {function}, {times} times by {caller}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["watch"]:
        watch(Path(sys.argv[2]), Path(sys.argv[3]))
    elif sys.argv[1:2] == ["ask"]:
        ask(sys.argv[2], Path(sys.argv[3]), sys.argv[4:])
    else:
        main()
