"""Hold hooks, saves and searches beside each other, through an import and a check.

    python -m benchmarks.beside              # nine runs of three minutes
    python -m benchmarks.beside --short      # two small vaults, 20 seconds a run

A hook every 150 ms, a save every second and a search by the command line every second, in vaults of 50,
300 and 1,870 notes: with a watcher that lives, one that is stopped by SIGSTOP in the middle, and one that
is killed. What was lost is a hook that got no answer within its deadline, a search that failed, and a
save that nobody finds at the end.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks import instruments
from benchmarks.instruments import HOOK, LESSONS, Row
from vault_index.edit import add, init
from vault_index.embed import download
from vault_index.hotpath import log
from vault_index.index import reconcile
from vault_index.retrieval import evaluate
from vault_index.retrieval.measuring import quantile
from vault_index.vault import Vault, open_vault

SIZES, SECONDS = (50, 300, 1870), 180.0
SHORT_SIZES, SHORT_SECONDS = (50, 300), 20.0
HOOK_SECONDS, SAVE_SECONDS, SEARCH_SECONDS, BARE_SECONDS = 0.15, 1.0, 1.0, 2.0
AT_ONCE = 16  # processes of one kind: each starts when it is due, whatever the one before takes
IMPORTED = 20  # notes
LIVES, STOPPED, KILLED = "a watcher that lives", "stopped", "killed"


@dataclass
class Run:
    """The measurements of a run. Times are in milliseconds. `words` are of saved lessons."""

    hooks: list[float] = field(default_factory=list)
    searches: list[float] = field(default_factory=list)
    bare: list[float] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)  # searches and commands
    words: dict[str, Path] = field(default_factory=dict)  # by the file that was saved last


def main() -> None:
    """Run the measurement and print it."""
    parser = argparse.ArgumentParser(
        description="Hold hooks, saves and searches beside each other."
    )
    parser.add_argument("--short", action="store_true", help="two small vaults, 20 seconds a run")
    options = parser.parse_args()
    sizes, seconds = (SHORT_SIZES, SHORT_SECONDS) if options.short else (SIZES, SECONDS)
    with tempfile.TemporaryDirectory(prefix="lessons-beside-") as scratch:
        os.environ.setdefault("LESSONS_HOME", f"{scratch}/home")
        download.fetch(Path(os.environ["LESSONS_HOME"]))
        list(instruments.shown(measure(Path(scratch), sizes, seconds)))


def measure(scratch: Path, sizes: tuple[int, ...], seconds: float) -> Iterator[Row]:
    """Return the rows of the table."""
    notes = evaluate.read_lines(instruments.EVAL / "lessons.jsonl")
    prompts = [each.query for each in evaluate.load(instruments.EVAL / "queries.jsonl")]
    yield "load of the machine at the start", os.getloadavg()[0], ""
    for size in sizes:
        for how in (LIVES, STOPPED, KILLED):
            vault = _vault(scratch / f"{size}-{how.replace(' ', '-')}", notes[:size])
            rest = scratch / f"import-{size}.jsonl"
            some = (note for _, note in notes[-IMPORTED:])
            rest.write_text("".join(f"{json.dumps(note)}\n" for note in some))
            missed = _missed()
            run = _hold(vault, prompts, rest, seconds, how)
            yield from _rows(f"{size} lessons, {how}", vault, run, _missed() - missed)
    yield "load of the machine at the end", os.getloadavg()[0], ""


def _vault(root: Path, notes: list[tuple[int, dict[str, object]]]) -> Vault:
    init(root)
    vault = open_vault(root)
    add.from_json_lines(vault, notes)
    reconcile.sync(vault)
    instruments.commit(vault)
    return vault


def _hold(vault: Vault, prompts: list[str], rest: Path, seconds: float, how: str) -> Run:
    """Hold all of it for so many seconds; a watcher that is not to live ends in the first third."""
    run, over = Run(), time.monotonic() + seconds
    files = [vault.lessons_dir / each.path for each in vault.files()[0]]
    texts = {file: file.read_text("utf-8").rstrip() for file in files}
    chance = random.Random(4)

    def hook(number: int) -> None:
        event = json.loads(instruments.event(vault, prompts, number))
        event |= {"session_id": f"{how} {number}", "prompt_id": f"{vault.root} {number}"}
        took, _ = instruments.process([HOOK], json.dumps(event).encode())
        run.hooks.append(took)

    def save(number: int) -> None:
        file, word = chance.choice(files), f"zq{number}x{chance.randrange(10**9)}"
        for known in [each for each, saved in run.words.items() if saved == file]:
            del run.words[known]
        file.write_text(f"{texts[file]}\n\n{word}\n", "utf-8")
        run.words[word] = file

    def search(number: int) -> None:
        began = time.perf_counter()
        _command(run, vault, "search", prompts[number % len(prompts)])
        run.searches.append(1000 * (time.perf_counter() - began))

    def bare(_: int) -> None:
        run.bare.append(instruments.process([sys.executable, "-c", "pass"], b"")[0])

    def import_and_check() -> None:
        time.sleep(seconds / 3)
        _command(run, vault, "import", str(rest), "--write")
        _command(run, vault, "check", "--all")

    work: dict[Callable[[int], None], float] = {
        hook: HOOK_SECONDS, save: SAVE_SECONDS, search: SEARCH_SECONDS, bare: BARE_SECONDS
    }  # fmt: skip
    with instruments.watched(vault), _ended(how, seconds / 4):
        threads = [threading.Thread(target=_steadily, args=(*each, over)) for each in work.items()]
        threads.append(threading.Thread(target=import_and_check))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return run


def _steadily(do: Callable[[int], None], seconds: float, over: float) -> None:
    """Do something at a steady pace, however long it takes."""
    began = time.monotonic()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for number in range(int((over - began) / seconds)):
            time.sleep(max(0.0, began + number * seconds - time.monotonic()))
            pool.submit(do, number)


@contextlib.contextmanager
def _ended(how: str, seconds: float) -> Iterator[None]:
    """Stop or kill the watcher after so many seconds; one that was stopped goes on at the end."""
    pid = instruments.pid()
    number = {STOPPED: signal.SIGSTOP, KILLED: signal.SIGKILL}.get(how)
    timer = threading.Timer(seconds, os.kill, (pid, number))
    if number is not None:
        timer.start()
    try:
        yield
    finally:
        timer.cancel()
        if how == STOPPED:
            os.kill(pid, signal.SIGCONT)


def _command(run: Run, vault: Vault, *words: str) -> None:
    command = [str(LESSONS), "--vault", str(vault.root), *words]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if "Traceback" in done.stderr or (words[0] == "search" and done.returncode):
        run.failed.append(f"{words[0]}: {done.stderr[-200:]}")


def _missed() -> int:
    """Count the lines about a prompt without an answer in the hooks' log."""
    folder, count = Path(os.environ["LESSONS_HOME"]), 0
    for name in (f"{log.HOOK_LOG}.old", log.HOOK_LOG):
        with contextlib.suppress(FileNotFoundError):
            count += (folder / name).read_text("utf-8").count('"missed": true')
    return count


def _rows(name: str, vault: Vault, run: Run, missed: int) -> Iterator[Row]:
    base = statistics.median(run.bare)
    yield f"{name}: python -c pass, p50", base, "ms"
    for what, times in (("hook", run.hooks), ("search", run.searches)):
        for part, value in (
            ("p50", statistics.median(times)),
            ("p95", quantile(times, 0.95)),
            ("max", max(times)),
        ):
            yield f"{name}: {what}, {part}", value, f"ms, {value / base:.1f}x"
    yield f"{name}: hooks without an answer in time, of {len(run.hooks)}", missed, ""
    yield f"{name}: searches and commands that failed", len(run.failed), ""
    lost = [word for word, file in run.words.items() if not _is_found(vault, word, file)]
    yield f"{name}: saves that nobody finds at the end, of {len(run.words)}", len(lost), ""


def _is_found(vault: Vault, word: str, file: Path) -> bool:
    """Whether a search by the command line finds the lesson by its saved word."""
    done = subprocess.run(
        [LESSONS, "--vault", vault.root, "search", "--json", word], capture_output=True, text=True
    )
    return str(file.relative_to(vault.root)) in done.stdout


if __name__ == "__main__":
    main()
