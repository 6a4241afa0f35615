"""Measure the questions about a proposal among many lessons, and how much a reviewer has to read.

    python -m benchmarks.proposals [--vault FOLDER] [--repeats 30]

Proposals: how soon a watcher says which lessons and rejected proposals a draft is like, and what its
prompts would find. Words: of a card, and of it before what the proposal says; the median. Without
`--vault` 10,000 lessons are made (minutes).
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks import instruments, web
from benchmarks.instruments import Row
from vault_index import api, client, state
from vault_index.api import codec
from vault_index.embed import download
from vault_index.entrypoints.wording import proposals as words
from vault_index.hotpath import protocol
from vault_index.proposals import draft, fingerprint, review, store
from vault_index.vault import Vault, open_vault

REJECTED = 500
DRAFTS = (
    ("Raise the heap of Node in CI", "The build dies with heap out of memory: set NODE_OPTIONS."),
    ("Rotate the signing key", "The installer refuses what the former key signed on old machines."),
    ("Poll the database in tests", "Wait for pg_isready in the fixture, as a pause is too short."),
    ("Quote paths in shell scripts", "A folder with a space in its name made rm act on two words."),
    ("Pin images by digest", "A rebuilt tag broke the wheels overnight; a digest does not move."),
)


def main() -> None:
    """Run the measurement and print the rows."""
    parser = argparse.ArgumentParser(description="Time the questions about a proposal.")
    parser.add_argument("--vault", type=Path, help="a vault that was indexed before")
    parser.add_argument("--repeats", type=int, default=30)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="lessons-learning-") as scratch:
        os.environ.setdefault("LESSONS_HOME", str(Path(scratch) / "home"))
        download.fetch(Path(os.environ["LESSONS_HOME"]))
        folder = Path(scratch) / "many"
        vault = open_vault(options.vault) if options.vault else web.many_lessons(folder)
        with instruments.watched(vault):
            list(instruments.shown(proposals(vault, options.repeats)))


def proposals(vault: Vault, repeats: int) -> Iterator[Row]:
    """Compare drafts that the watcher has not seen, also with many rejected ones; look at prompts."""
    yield "lessons", vault.open_index().lessons, ""
    yield from _times("compare a proposal", vault, "proposal.compare", repeats, {})
    with store.hold(vault):
        for number in range(REJECTED):
            store.reject(vault, _some_fingerprint(vault, number))
    yield from _times(f"the same, {REJECTED} rejected", vault, "proposal.compare", repeats, {})
    prompts = {
        "fires_on": ["the build dies in the pipeline", "the installer says no", "flaky tests"]
    }
    yield from _times("outlook, three prompts", vault, "proposal.preview", repeats, prompts)
    with state.writing(vault.config.home) as db:
        db.execute("DELETE FROM rejected")
    yield from _words_of_cards(vault)


def _words_of_cards(vault: Vault) -> Iterator[Row]:
    """Count the words of the cards of proposals as a session teaches them."""
    for title, text in DRAFTS:
        learned = draft.create(
            *(title, text, "devops/ci", (), ("the build dies in the pipeline",), "a-model"),
            quotes=("FATAL ERROR: Reached heap limit Allocation failed",),
            speakers=(draft.CHECK,),
            why="a check failed, then passed",
            project="shop",
            day="2026-11-22",
        )
        review.propose(vault, learned)
    before, whole = [], []
    for card in client.ask(str(vault.root), api.proposal.cards()):
        head = f"{card.title} {words.origin(card)}"
        rest = f"{words.summary(card)} {words.quoted(card)} {words.state(card)[1]}"
        before.append(len(head.split()))
        whole.append(len(f"{head} {rest}".split()))
    yield "words of a card before what it says: median", statistics.median(before), ""
    yield "words of a card: median", statistics.median(whole), ""


def _times(
    name: str, vault: Vault, ask: str, repeats: int, more: Mapping[str, Any]
) -> Iterator[Row]:
    took: list[float] = []
    spent = _processor()
    for number in range(repeats + 3):
        title, text = DRAFTS[number % len(DRAFTS)]
        proposal = draft.create(title, f"{text} Seen {number} times.", **more)
        asked = {"ask": ask, "with": {"proposal": codec.to_json(proposal)}, "fresh": False}
        began = time.perf_counter()
        answer = protocol.ask(str(vault.root), asked, 30)["answer"]
        took.append(1000 * (time.perf_counter() - began))
        assert "nearest" in answer, answer
    warm = took[3:]
    yield f"{name}: median", statistics.median(warm), "ms"
    yield f"{name}: fastest", min(warm), "ms"
    yield f"{name}: p90", statistics.quantiles(warm, n=10)[-1], "ms"
    yield f"{name}: processor time of the watcher", (_processor() - spent) / len(took), "ms"


def _processor() -> float:
    """Return the milliseconds of processor time that the watcher has taken; 0 where nobody says."""
    stat = Path(f"/proc/{instruments.pid()}/stat")
    if not stat.exists():
        return 0.0
    fields = stat.read_text().rpartition(")")[2].split()
    return 1000 * (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _some_fingerprint(vault: Vault, number: int) -> fingerprint.Fingerprint:
    import numpy as np

    vector = np.random.default_rng(number).normal(size=vault.open_index().store.dimension)
    words = fingerprint.hashes([f"word{number}-{index}" for index in range(60)])
    packed = fingerprint.pack(vector / np.linalg.norm(vector))
    embedder = vault.open_index().embedder
    return fingerprint.Fingerprint(f"{number:08x}", "2026-11-22", words, embedder, packed)


if __name__ == "__main__":
    main()
