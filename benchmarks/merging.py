"""Random merges by the thousand: nothing lost, nothing twice, and how they compare with git's own.

python -m benchmarks.merging 50000
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import click

from tests.support import merges
from vault_index.lesson import merge

WITH_GIT = 1000  # of them are compared with `git merge-file`, which takes 5 ms each


def git_merges(folder: Path, base: bytes, ours: bytes, theirs: bytes) -> tuple[bytes, bool]:
    """Merge with git; return the result and whether it is clean."""
    names = [str(folder / name) for name in ("ours", "base", "theirs")]
    for name, data in zip(names, (ours, base, theirs), strict=True):
        Path(name).write_bytes(data)
    labels = ("-L", "ours", "-L", "base", "-L", "theirs")
    words = ["git", "merge-file", "-p", *labels, *names]
    done = subprocess.run(words, capture_output=True, check=False)
    return done.stdout, done.returncode == 0


def measure(count: int) -> Counter[str]:
    """Merge `count` random pairs of versions, each in both directions."""
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as scratch:
        for seed in range(count):
            base, ours, theirs = merges.versions(seed)
            merged = merge.files(base, ours, theirs)
            turned = merge.files(base, theirs, ours)
            if merged is None or turned is None:
                counts["left to git"] += 1
                continue
            counts["conflict" if merged.conflicts else "clean"] += 1
            wrong = merges.faults(base, ours, theirs, merged)
            if sorted(merged.conflicts) != sorted(turned.conflicts) or (
                not merged.conflicts and merged.data != turned.data
            ):
                wrong.append("sides: it matters which of them is ours")
            for kind in {fault.partition(":")[0] for fault in wrong}:
                counts[kind] += 1
                if counts[kind] <= 3:
                    click.echo(f"seed {seed}: {wrong}")
            if seed < WITH_GIT:
                data, clean = git_merges(Path(scratch), base, ours, theirs)
                ours_is = "conflict" if merged.conflicts else "clean"
                counts[f"git {'clean' if clean else 'conflict'}, ours {ours_is}"] += 1
                of_git = merge.MergeResult(data, () if clean else ("git",))
                counts["git: lost or twice"] += bool(merges.faults(base, ours, theirs, of_git))
    return counts


if __name__ == "__main__":
    for kind, number in sorted(measure(int(sys.argv[1]) if sys.argv[1:] else 50_000).items()):
        click.echo(f"{number:>7}  {kind}")
