"""Git at work in a vault, with and without our hooks, and what becomes of the index.

    python -m benchmarks.git_operations         # 500 commits, a hundred operations

Rebases, merges, checkouts, stashes, worktrees, cherry-picks and resets, chosen at random by a seed,
while a watcher runs; then changes that keep size and mtime. Afterwards the index is compared, row
by row, with one built from nothing.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks import instruments
from vault_index.edit import init
from vault_index.embed import download
from vault_index.index import reconcile
from vault_index.share import git_hooks
from vault_index.vault import Vault, open_vault
from vault_index.watch import launch

COMMITS = 500
OPERATIONS = 120
BRANCHES = 8
FILES = 120
UNSEEN = 30  # changes at the end that keep size and mtime

Row = tuple[str, Any, str]


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description="Measure git with our hooks.")
    parser.add_argument("--seed", type=int, default=4)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="lessons-git-") as scratch:
        os.environ.setdefault("LESSONS_HOME", str(Path(scratch) / "home"))
        download.fetch(Path(os.environ["LESSONS_HOME"]))
        os.environ["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        for _ in instruments.shown(measure(Path(scratch), options.seed)):
            pass


def measure(scratch: Path, seed: int) -> Iterator[Row]:
    """Return the rows of the table."""
    vault = repository(scratch / "with" / "team", seed)
    plain = scratch / "without" / "team"
    shutil.copytree(vault.root, plain)
    git_hooks.set_up(vault.root)
    _git(vault.root, "config", "--unset", "merge.lessons.driver")  # so that both merge alike
    reconcile.sync(vault)
    launch.open_in_background(vault)
    time.sleep(2)
    times: dict[str, tuple[list[float], list[float]]] = {}
    for name, hooked, bare in operations(vault.root, plain, seed):
        ours, without = times.setdefault(name, ([], []))
        ours.append(hooked)
        without.append(bare)
    change_unseen(vault.lessons_dir, seed)
    yield "commits", COMMITS, ""
    yield "operations", sum(len(ours) for ours, _ in times.values()), ""
    for name, (ours, without) in sorted(times.items()):
        yield f"git {name}, without our hooks, p50", 1000 * statistics.median(without), "ms"
        added = [1000 * (a - b) for a, b in zip(ours, without, strict=True)]
        yield f"git {name}, added by our hooks, p50", statistics.median(added), "ms"
    waited = instruments.quiet(vault)
    yield "until the index is quiet", waited, "s"
    launch.stop()
    reconcile.sync(vault)  # the watcher may have been stopped before it asked git
    yield "rows unlike a rebuild's, dates included", instruments.unlike_a_rebuild(vault), ""


def repository(root: Path, seed: int, commits: int = COMMITS) -> Vault:
    """Make a vault of many commits on eight branches, by fast-import."""
    init(root)
    chance = random.Random(seed)
    stream = ["feature done"]
    heads: dict[str, int] = {}
    for mark in range(1, commits + 1):
        number = mark - 1
        branch = f"refs/heads/b{number % BRANCHES}" if number > 20 else "refs/heads/b0"
        message = f"commit {number}"
        stream += [f"commit {branch}", f"mark :{mark}"]
        stream += [f"committer Ada <ada@example.org> {1767225600 + 60 * number} +0000"]
        stream += [f"data {len(message)}", message]
        if heads and branch not in heads:
            stream += [f"from :{chance.choice(list(heads.values()))}"]
        if not heads:
            settings = (root / "lessons" / "vault.toml").read_text()
            stream += ["M 100644 inline lessons/vault.toml", f"data {len(settings)}", settings]
        for _ in range(chance.randrange(1, 4)):
            file = chance.randrange(FILES)
            text = f"---\ntitle: Lesson {file}\n---\nText {number} of {file}.\n"
            stream += [f"M 100644 inline lessons/area-{file % 9}/{file}.md"]
            stream += [f"data {len(text)}", text]
        heads[branch] = mark
    stream += ["done", ""]
    _git(root, "fast-import", "--quiet", stdin="\n".join(stream))
    _git(root, "checkout", "-q", "-f", "b0")
    return open_vault(root)


def operations(
    hooked: Path, plain: Path, seed: int, count: int = OPERATIONS
) -> Iterator[tuple[str, float, float]]:
    """Do the same in two copies, one with our hooks, in turn; give the seconds of each."""
    chance = random.Random(seed)
    for number in range(count):
        other = f"b{chance.randrange(BRANCHES)}"
        back = chance.randrange(1, 6)
        file = f"lessons/area-0/{9 * chance.randrange(FILES // 9)}.md"
        name, commands = chance.choice(
            [
                ("checkout", [["checkout", "-q", "-f", other]]),
                ("merge", [["merge", "-q", "-X", "ours", "-m", "merge", other]]),
                ("rebase", [["rebase", "-q", "-X", "theirs", f"HEAD~{back}", "--force-rebase"]]),
                ("cherry-pick", [["cherry-pick", "-X", "theirs", "--allow-empty", other]]),
                ("reset --hard", [["reset", "-q", "--hard", f"HEAD~{back}"]]),
                ("stash", [["stash", "-q"], ["stash", "pop", "-q"]]),
                (
                    "worktree add",
                    [["worktree", "add", "-q", "-f", "--detach", f"../wt{number}", other]],
                ),
                ("commit", [["commit", "-q", "--no-verify", "-a", "--allow-empty", "-m", "more"]]),
            ]
        )
        took = []
        for root in (hooked, plain):
            if name in ("stash", "commit"):
                (root / file).parent.mkdir(parents=True, exist_ok=True)
                (root / file).write_text(f"---\ntitle: Edited\n---\nEdited {number}.\n")
                _git(root, "add", "-A", "lessons")
            began = time.monotonic()
            done = [_git(root, *words, check=False) for words in commands]
            took.append(time.monotonic() - began)
            if any(done):  # a conflict: give up, as a person would
                for words in (["merge"], ["rebase"], ["cherry-pick"]):
                    _git(root, *words, "--abort", check=False)
                _git(root, "reset", "-q", "--hard", check=False)
            time.sleep(0.1)  # what the hooks started is no burden on the other copy
            for worktree in root.parent.glob(f"wt{number}"):
                shutil.rmtree(worktree)
        yield name, took[0], took[1]


def change_unseen(folder: Path, seed: int) -> None:
    """Change files so that size and mtime stay: a save, a swap by rename, a hard link."""
    chance = random.Random(seed)
    for number in range(UNSEEN):
        file, other = chance.sample(sorted(folder.rglob("*.md")), 2)
        if number % 3 == 0:
            stat = file.stat()
            text = file.read_text("utf-8").rstrip("\n")
            file.write_text(f"{text[:-1]}{number % 10}\n", "utf-8")
            os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
        elif number % 3 == 1:
            beside = file.with_name(".swap")
            file.rename(beside)
            other.rename(file)
            beside.rename(other)
        else:
            other.unlink()
            other.hardlink_to(file)


def _git(root: Path, *words: str, stdin: str = "", check: bool = True) -> int:
    who = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "core.editor=true"]
    done = subprocess.run(
        ["git", *who, *words], cwd=root, input=stdin, capture_output=True, text=True, check=False
    )
    if check and done.returncode:
        raise RuntimeError(f"git {words[0]}: {done.stderr}")
    return done.returncode


if __name__ == "__main__":
    main()
