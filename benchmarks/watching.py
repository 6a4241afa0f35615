"""Measure the watcher: the hook's warm path, saves, storms, checkouts, memory, sudden death.

    python -m benchmarks.watching            # some minutes
    python -m benchmarks.watching --only saves

Part of `run.py`, which prints all of it in one table.
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
from pathlib import Path

from benchmarks import instruments
from benchmarks.instruments import Row
from tests.support.watchers import save_like_vim
from vault_index.api import silent
from vault_index.client import local
from vault_index.edit import add, init
from vault_index.embed import download
from vault_index.hotpath import protocol, start
from vault_index.index import reconcile
from vault_index.retrieval import evaluate
from vault_index.retrieval.measuring import quantile
from vault_index.vault import Vault, open_vault
from vault_index.watch import launch

MANY = 10_000
SIZES = (325, 1870, MANY)


def measure(vault: Vault, scratch: Path, prompts: list[str], short: bool) -> Iterator[Row]:
    """Return the watcher's rows of the table, for an indexed vault that may be changed."""
    instruments.commit(vault)
    local.bring_up_to_date(vault, silent, silent)
    yield from starting(vault, prompts, 2 if short else 10)
    with instruments.watched(vault):
        yield from warm_hook(vault, prompts, 20 if short else 200)
        yield from ten_at_once(vault, prompts, 2 if short else 10)
        yield "memory of the watcher", instruments.memory(), "MB"
        yield from saves(vault, 20 if short else 200)
    if short:
        return
    with instruments.watched(vault):
        before = instruments.usage(vault)
        for number in (1, 2, 3):
            yield from storm(vault, number)
        yield from instruments.growth("three storms", before, instruments.usage(vault))
        time.sleep(300)
        yield from instruments.growth("five minutes later", before, instruments.usage(vault))
    yield "three storms: rows unlike a rebuild's", instruments.unlike_a_rebuild(vault), ""
    for number in (1, 2):
        yield from checkout(vault, number)
    yield from chaos(vault, prompts)
    yield from at_ten_thousand(scratch / "ten-thousand", prompts)


def starting(vault: Vault, prompts: list[str], repeats: int) -> Iterator[Row]:
    """Time the hook that finds no watcher and starts one, and how soon that one listens."""
    hook: list[float] = []
    listens: list[float] = []
    for number in range(repeats):
        # none starts at once after another, and a watcher logs its end after it lets go of its lock
        time.sleep(start.RESTART_SECONDS + 1)
        began = time.monotonic()
        hook.append(
            instruments.process([instruments.HOOK], instruments.event(vault, prompts, number))[0]
        )
        while launch.status(vault.root) is None:
            if time.monotonic() - began > 60:
                raise RuntimeError("the hook started no watcher")
            time.sleep(0.01)
        listens.append(time.monotonic() - began)
        launch.stop()
    yield "hook that starts the watcher, p50", statistics.median(hook), "ms"
    yield "hook that starts the watcher, max", max(hook), "ms"
    yield "the watcher listens after", statistics.median(listens), "s"


def warm_hook(vault: Vault, prompts: list[str], repeats: int) -> Iterator[Row]:
    """Time the whole hook process, turn by turn with a Python that does nothing."""
    bare: list[float] = []
    hook: list[float] = []
    for number in range(repeats):
        bare.append(instruments.process([sys.executable, "-c", "pass"], b"")[0])
        hook.append(
            instruments.process([instruments.HOOK], instruments.event(vault, prompts, number))[0]
        )
    base = statistics.median(bare)
    yield "python -c pass, p50", base, "ms"
    yield "hook, whole process, warm, p50", statistics.median(hook), "ms"
    yield "hook, warm, p50 as a multiple of python -c pass", statistics.median(hook) / base, "x"
    yield "hook, warm, p95 as a multiple of python -c pass", quantile(hook, 0.95) / base, "x"
    yield "hook, warm, max", max(hook), "ms"


def ten_at_once(vault: Vault, prompts: list[str], rounds: int) -> Iterator[Row]:
    """Time ten hooks at once, and ten Pythons that do nothing: ten share two processors."""
    bare: list[float] = []
    hook: list[float] = []
    with ThreadPoolExecutor(10) as pool:
        for turn in range(rounds):
            jobs = [([sys.executable, "-c", "pass"], b"")] * 10
            bare += [took for took, _ in pool.map(lambda job: instruments.process(*job), jobs)]
            jobs = [
                ([str(instruments.HOOK)], instruments.event(vault, prompts, 10 * turn + n))
                for n in range(10)
            ]
            hook += [took for took, _ in pool.map(lambda job: instruments.process(*job), jobs)]
    base = statistics.median(bare)
    yield "ten python -c pass at once, p50", base, "ms"
    yield "ten hooks at once, p50", statistics.median(hook), "ms"
    yield "ten hooks at once as a multiple of ten pythons", statistics.median(hook) / base, "x"
    spread = _within_a_second(vault, prompts, rounds)
    yield "ten hooks within one second, p50", statistics.median(spread), "ms"
    asked = [_asked(vault, prompts, 1), _asked(vault, prompts, 10)]
    yield "the watcher's answer, one session, p50", asked[0], "ms"
    yield "the watcher's answer, ten sessions at once, p50", asked[1], "ms"


def _within_a_second(vault: Vault, prompts: list[str], rounds: int) -> list[float]:
    """Time ten hooks that start at random moments of the same second: ten people at work."""
    chance = random.Random(5)

    def ask(number: int) -> float:
        time.sleep(chance.random())
        return instruments.process(
            [str(instruments.HOOK)], instruments.event(vault, prompts, number)
        )[0]

    with ThreadPoolExecutor(10) as pool:
        return [took for _ in range(rounds) for took in pool.map(ask, range(10))]


def _asked(vault: Vault, prompts: list[str], sessions: int) -> float:
    """Time the answer alone, without a process for each question."""
    times: list[float] = []

    def ask(number: int) -> None:
        for turn in range(20):
            event = json.loads(instruments.event(vault, prompts, 20 * number + turn))
            began = time.perf_counter()
            question = {"event": event, "ms": 0.0, "until": time.monotonic() + 30}
            protocol.ask(str(vault.root), {"ask": "hook", "with": question}, 30)
            times.append(1000 * (time.perf_counter() - began))

    with ThreadPoolExecutor(sessions) as pool:
        list(pool.map(ask, range(sessions)))
    return statistics.median(times)


# saves


def saves(vault: Vault, count: int) -> Iterator[Row]:
    """Save as editors do and ask until the new text is found."""
    chance = random.Random(3)
    # of one passage: the hit shows the best one, which need not be that with the new word
    small = sorted(vault.files()[0], key=lambda one: one.stamp[0])[: len(vault.files()[0]) // 2]
    files = [vault.lessons_dir / one.path for one in small]
    styles = (_vim, _vs_code, _nano, _sed, _git_checkout)
    times: dict[str, list[float]] = {style.__name__[1:]: [] for style in styles}
    for number in range(count):
        style = styles[number % len(styles)]
        file = chance.choice(files)
        word = f"zq{number}x{chance.randrange(10**9)}"
        text = f"{file.read_text('utf-8').rstrip()}\n\n{word}\n"
        began = style(file, text, vault)
        while not instruments.finds(vault, word, text[-200:]):
            time.sleep(0.005)
            if time.monotonic() - began > 20:
                raise RuntimeError(f"{style.__name__[1:]}: {word} in {file} was never found")
        times[style.__name__[1:]].append(time.monotonic() - began)
        time.sleep(chance.random() * 0.3)
    all_times = [one for some in times.values() for one in some]
    yield f"save to searchable, {len(all_times)} saves, p50", statistics.median(all_times), "s"
    yield "save to searchable, p95", quantile(all_times, 0.95), "s"
    yield "save to searchable, max", max(all_times), "s"
    for name, some in times.items():
        yield f"save to searchable, {name}, p50", statistics.median(some), "s"
        yield f"save to searchable, {name}, max", max(some), "s"


def _vim(file: Path, text: str, _vault: Vault) -> float:
    save_like_vim(file, text)
    return time.monotonic()


def _vs_code(file: Path, text: str, _vault: Vault) -> float:
    with file.open("r+", encoding="utf-8") as out:  # in place: emptied, then written
        out.truncate(0)
        out.write(text)
    return time.monotonic()


def _nano(file: Path, text: str, _vault: Vault) -> float:
    lock = file.parent / f".{file.name}.swp"
    lock.write_text("nano")
    with file.open("w", encoding="utf-8") as out:
        out.write(text)
    done = time.monotonic()
    lock.unlink()
    return done


def _sed(file: Path, text: str, _vault: Vault) -> float:
    beside = file.parent / f"sed{os.getpid()}"
    beside.write_text(text, "utf-8")
    beside.replace(file)
    return time.monotonic()


def _git_checkout(file: Path, text: str, vault: Vault) -> float:
    """A real one, of one file: git makes the new file under its name after unlinking the old."""
    before = file.read_bytes()
    file.write_text(text, "utf-8")
    blob = instruments.git(vault, "hash-object", "-w", str(file))
    file.write_bytes(before)
    path = str(file.relative_to(vault.root))
    time.sleep(0.6)  # what was written and put back is over
    instruments.git(vault, "update-index", "--cacheinfo", f"100644,{blob},{path}")
    instruments.git(vault, "checkout", "--", path)
    return time.monotonic()


# many at once


def storm(vault: Vault, number: int) -> Iterator[Row]:
    """10,000 saves in 60 s."""
    chance = random.Random(number)
    files = [vault.lessons_dir / one.path for one in vault.files()[0]]
    texts = {file: file.read_text("utf-8").partition("\n\nstorm ")[0] for file in files}
    began = time.monotonic()
    for save in range(10_000):
        file = chance.choice(files)
        _sed(file, f"{texts[file].rstrip()}\n\nstorm {number}, save {save}\n", vault)
        time.sleep(max(0.0, began + save * 0.006 - time.monotonic()))
    yield f"storm {number}: 10,000 saves in", time.monotonic() - began, "s"
    yield f"storm {number}: until the index is quiet", instruments.quiet(vault), "s"
    descriptors, memory, size = instruments.usage(vault)
    yield f"storm {number}: file descriptors", descriptors, ""
    yield f"storm {number}: memory of the watcher", memory, "MB"
    yield f"storm {number}: index folder", size, "MB"


def checkout(vault: Vault, number: int) -> Iterator[Row]:
    """A `git checkout` of another branch that changes 1,000 files, then compare with a rebuild."""
    instruments.commit(vault)
    instruments.git(vault, "checkout", "-q", "-B", f"other-{number}")
    files = [vault.lessons_dir / one.path for one in vault.files()[0]][:1000]
    for file in files:
        file.write_text(file.read_text("utf-8").rstrip() + f"\n\nbranch {number}\n", "utf-8")
    instruments.commit(vault)
    instruments.git(vault, "checkout", "-q", "-")
    reconcile.sync(vault)
    with instruments.watched(vault):
        instruments.quiet(vault)
        before = instruments.usage(vault)
        began = time.monotonic()
        instruments.git(vault, "checkout", "-q", f"other-{number}")
        waits: list[float] = []
        while time.monotonic() - began < 8:
            asked = time.monotonic()
            instruments.finds(vault, "heap out of memory")
            waits.append(1000 * (time.monotonic() - asked))
            time.sleep(0.02)
        yield (
            f"checkout {number}: 1,000 files, until the index is quiet",
            instruments.quiet(vault),
            "s",
        )
        yield f"checkout {number}: search while indexing, p50", statistics.median(waits), "ms"
        yield f"checkout {number}: search while indexing, max", max(waits), "ms"
        time.sleep(5)
        yield from instruments.growth(f"checkout {number}", before, instruments.usage(vault))
    yield f"checkout {number}: rows unlike a rebuild's", instruments.unlike_a_rebuild(vault), ""


def chaos(vault: Vault, prompts: list[str]) -> Iterator[Row]:
    """For 60 s kill the watcher at random moments while files change and hooks ask."""
    chance = random.Random(11)
    files = [vault.lessons_dir / one.path for one in vault.files()[0]]
    texts = {file: file.read_text("utf-8") for file in files}
    over = time.monotonic() + 60
    hooks: list[tuple[float, int, bytes]] = []
    kills = 0

    def ask() -> None:
        while time.monotonic() < over:
            event = instruments.event(vault, prompts, len(hooks))
            began = time.monotonic()
            done = subprocess.run([instruments.HOOK], input=event, capture_output=True)
            hooks.append((time.monotonic() - began, done.returncode, done.stderr))
            time.sleep(random.random())

    def change() -> None:
        while time.monotonic() < over:
            file = chance.choice(files)
            _sed(file, f"{texts[file].rstrip()}\n\nchaos {chance.random()}\n", vault)
            time.sleep(chance.random() * 0.2)

    threads = [threading.Thread(target=ask) for _ in range(3)]
    threads.append(threading.Thread(target=change))
    for thread in threads:
        thread.start()
    while time.monotonic() < over:
        time.sleep(chance.random() * 6)
        with contextlib.suppress(OSError, ValueError):
            os.kill(int((launch.folder() / launch.LOCK).read_text()), signal.SIGKILL)
            kills += 1
    for thread in threads:
        thread.join()
    yield "chaos: kill -9 of the watcher", kills, ""
    yield "chaos: hooks asked", len(hooks), ""
    yield "chaos: hooks that failed or complained", sum(bool(c or e) for _, c, e in hooks), ""
    yield "chaos: hooks p50", 1000 * statistics.median(t for t, _, _ in hooks), "ms"
    yield (
        "chaos: hooks max (the deadline is 2,000 and the start of Python)",
        (1000 * max(t for t, _, _ in hooks)),
        "ms",
    )
    with instruments.watched(vault):
        instruments.quiet(vault)
    yield "chaos: rows unlike a rebuild's", instruments.unlike_a_rebuild(vault), ""


def at_ten_thousand(root: Path, prompts: list[str]) -> Iterator[Row]:
    """The hook and the watcher's memory with 10,000 lessons."""
    init(root)
    vault = open_vault(root)
    for number in range(MANY):
        folder = vault.lessons_dir / f"area-{number % 40}"
        folder.mkdir(exist_ok=True)
        words = " ".join(random.Random(number).sample(instruments.WORDS, 30))
        (folder / f"{number}.md").write_text(f"---\ntitle: Lesson {number}\n---\n{words}.\n")
    instruments.git(vault, "init", "-q")
    instruments.commit(vault)
    began = time.monotonic()
    reconcile.sync(vault)
    yield f"index {MANY} short lessons from nothing", time.monotonic() - began, "s"
    with instruments.watched(vault):
        for what, figure, unit in warm_hook(vault, prompts, 200):
            yield f"{MANY} lessons: {what}", figure, unit
        yield f"{MANY} lessons: memory of the watcher, asked", instruments.memory(), "MB"
        for what, figure, unit in saves(vault, 50):
            yield f"{MANY} lessons: {what}", figure, unit
        yield f"{MANY} lessons: memory of the watcher, after saves", instruments.memory(), "MB"


def by_size(scratch: Path, prompts: list[str]) -> Iterator[Row]:
    """Time the whole hook in vaults of 325, 1,870 and 10,000 notes: a table of docs/measured.md."""
    notes = [note for _, note in evaluate.read_lines(instruments.EVAL / "lessons.jsonl")]
    yield "load of the machine at the start", os.getloadavg()[0], ""
    for size in SIZES:
        root = scratch / f"{size}-notes"
        init(root)
        vault = open_vault(root)
        add.from_json_lines(vault, list(enumerate(_copies(notes, size), 1)))
        reconcile.sync(vault)
        instruments.commit(vault)
        with instruments.watched(vault):
            instruments.quiet(vault)
            for what, figure, unit in warm_hook(vault, prompts, 200):
                yield f"{size} notes: {what}", figure, unit
            yield f"{size} notes: memory of the watcher", instruments.memory(), "MB"
    yield "load of the machine at the end", os.getloadavg()[0], ""


def _copies(notes: list[dict[str, object]], size: int) -> Iterator[dict[str, object]]:
    """Return so many notes: after the last one the first again, with the words of its text shuffled."""
    for number in range(size):
        note = dict(notes[number % len(notes)])
        if number >= len(notes):
            words = str(note["text"]).split()
            random.Random(number).shuffle(words)
            note |= {"id": f"{note['id']}-{number}", "text": " ".join(words)}
        yield note


def main() -> None:
    """Run this part of the benchmark by itself."""
    parser = argparse.ArgumentParser(description="Measure the watcher.")
    parser.add_argument("--only", default="all", help="one part: saves, storm, chaos...")
    options = parser.parse_args()
    prompts = [one.query for one in evaluate.load(instruments.EVAL / "queries.jsonl")]
    with tempfile.TemporaryDirectory(prefix="lessons-benchmark-") as scratch:
        os.environ.setdefault("LESSONS_HOME", f"{scratch}/home")
        download.fetch(Path(os.environ["LESSONS_HOME"]))
        vault = instruments.eval_vault(Path(scratch) / "eval")
        parts: dict[str, Callable[[], Iterator[Row]]] = {
            "all": lambda: measure(vault, Path(scratch), prompts, short=False),
            "starting": lambda: starting(vault, prompts, 10),
            "warm_hook": lambda: warm_hook(vault, prompts, 200),
            "ten_at_once": lambda: ten_at_once(vault, prompts, 10),
            "saves": lambda: saves(vault, 200),
            "storm": lambda: storm(vault, 1),
            "checkout": lambda: checkout(vault, 1),
            "chaos": lambda: chaos(vault, prompts),
            "by_size": lambda: by_size(Path(scratch), prompts),
            "at_ten_thousand": lambda: at_ten_thousand(Path(scratch) / "many", prompts),
        }
        needs_one = options.only in ("warm_hook", "ten_at_once", "saves", "storm")
        with instruments.watched(vault) if needs_one else contextlib.nullcontext():
            list(instruments.shown(parts[options.only]()))


if __name__ == "__main__":
    main()
