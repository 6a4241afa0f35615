"""Measure what grows with an organisation: prompts that search several vaults.

python -m benchmarks.large vaults              # a warm prompt with one vault and with five
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks import instruments
from benchmarks.instruments import HOOK, Row
from tests.support.files import lesson_text, write
from vault_index.client import here, silent
from vault_index.edit import init
from vault_index.hotpath import protocol
from vault_index.vault import Vault, open_vault

LESSONS_EACH = 400
PROMPTS = 60
ABOVE = 4


def main() -> None:
    """Run a measurement and print it."""
    parser = argparse.ArgumentParser(description="Measure what grows with an organisation.")
    parser.add_argument("what", choices=["vaults"])
    parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="lessons-large-") as name:
        list(instruments.shown(several_vaults(Path(name))))


def made(root: Path, seed: int, count: int = LESSONS_EACH) -> Vault:
    """Make an indexed vault of lessons that differ by their seed."""
    init.init(root)
    words = instruments.WORDS
    for number in range(count):
        some = [words[(seed * 7919 + number * 31 + at * 97) % len(words)] for at in range(40)]
        text = lesson_text(" ".join(some[:6]).replace(":", ""), " ".join(some))
        write(root / "lessons" / "topic" / f"{number}.md", text)
    vault = open_vault(root)
    here.bring_up_to_date(vault, silent, silent)
    return vault


def several_vaults(scratch: Path) -> Iterator[Row]:
    """Time the hook's whole process with a warm watcher: one vault, then the same and four above."""
    home = Path(os.environ.get("LESSONS_HOME") or Path.home() / ".lessons")
    settings = home / "config.toml"
    before = settings.read_text() if settings.exists() else None
    vaults = [made(scratch / f"vault-{number}", number) for number in range(ABOVE + 1)]
    own = vaults[0]
    words = instruments.WORDS
    prompts = [
        " ".join(words[(number * 613 + at * 97) % len(words)] for at in range(12))
        for number in range(PROMPTS)
    ]
    medians: list[float] = []
    try:
        for above in (0, ABOVE):
            listed = json.dumps([str(vault.root) for vault in vaults[1 : above + 1]])
            write(settings, f"[vaults]\nabove = {listed}\n")
            with instruments.watched(open_vault(own.root)):
                instruments.quiet(own)
                question = {"ask": "search.recall", "with": {"query": prompts[0]}, "settled": True}
                protocol.ask(str(own.root), question, 60)
                times = [
                    instruments.process([HOOK], instruments.event(own, prompts, number))[0]
                    for number in range(PROMPTS)
                ]
            medians.append(statistics.median(times))
            p90 = statistics.quantiles(times, n=10)[-1]
            yield f"a warm prompt, {above + 1} vaults: p50", medians[-1], "ms"
            yield f"a warm prompt, {above + 1} vaults: p90", p90, "ms"
    finally:
        if before is None:
            settings.unlink(missing_ok=True)
        else:
            settings.write_text(before)
    bare = [instruments.process([sys.executable, "-c", "pass"], b"")[0] for _ in range(20)]
    yield "python -c pass: p50", statistics.median(bare), "ms"
    yield f"{ABOVE + 1} vaults, of one", medians[1] / medians[0], "x"


if __name__ == "__main__":
    main()
