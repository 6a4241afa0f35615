"""A warm process keeps what a prompt needs of all rows: LanceDB answers full text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from tests.support.commands import run
from tests.support.embedders import WordEmbedder
from tests.support.files import MakeVault, commit, lesson_text
from tests.support.floors import set_floors
from tests.support.watchers import soon
from vault_index.index import reconcile
from vault_index.recall import select
from vault_index.store import manifest
from vault_index.store.lance import LanceTable
from vault_index.vault import Vault, open_vault
from vault_index.watch import current
from vault_index.watch.current import SharedEmbedder
from vault_index.watch.vault_watch import VaultWatch

LOCK = "Alter table waits for a lock and blocks the migrations. Set `lock_timeout` first."
FILES = {
    "lock.md": lesson_text("Postgres alter table", LOCK),
    "lock-copy.md": lesson_text("Postgres alter table", f"{LOCK} It did in May."),
    "vpn.md": lesson_text("VPN", "Staging deploys hang without the VPN."),
    "tmux.md": lesson_text(
        "tmux", "\n\n".join(f"Pane {at} is split by hand. " * 40 for at in range(6))
    ),
    "heap.md": "---\ntitle: Heap\nfires_on: [the node build dies]\n---\nRaise the heap limit.\n",
}
PROMPTS = (
    "postgres migrations block on alter table with `lock_timeout`",
    "the node build dies",
    "how is pane 3 of tmux split by hand",
    "bake a cake with plums",
)


@pytest.fixture
def vault(make_vault: MakeVault) -> Vault:
    vault = make_vault(FILES)
    vault.embedder = WordEmbedder(dimension=512)
    set_floors(vault, 0.6, 0.3)
    reconcile.sync(vault)
    return vault


def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Note the name of each question to LanceDB from now on."""
    asked: list[str] = []

    def noted(name: str) -> Callable[..., Any]:
        ask = getattr(LanceTable, name)

        def and_asked(*args: Any, **named: Any) -> Any:
            asked.append(name)
            return ask(*args, **named)

        return and_asked

    for name in ("scan", "count", "begin_bm25", "nearest_rows", "rows_by_id"):
        monkeypatch.setattr(LanceTable, name, noted(name))
    return asked


@pytest.mark.parametrize("prompt", PROMPTS)
def test_a_warm_prompt_asks_lancedb_for_words_alone(
    vault: Vault, prompt: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    current.load_tables(vault)
    asked = counted(monkeypatch)
    select.for_prompt(vault, prompt)
    assert {*asked} <= {"begin_bm25"}
    assert len(asked) <= 2  # the prompt's words, and its one identifier


@pytest.mark.parametrize("prompt", PROMPTS)
def test_a_warm_prompt_gets_what_a_cold_one_gets(vault: Vault, prompt: str) -> None:
    cold = open_vault(vault.root)
    cold.embedder = vault.embedder
    current.load_tables(vault)
    warm, other = select.for_prompt(vault, prompt), select.for_prompt(cold, prompt)
    assert (warm.text, warm.silent) == (other.text, other.silent)
    assert bool(warm.hits) == (prompt != PROMPTS[-1])


class LateEmbedder(WordEmbedder):
    """Notes how much LanceDB was asked before it embeds, and what it embeds at once."""

    def __init__(self, asked: list[str]) -> None:
        super().__init__(dimension=512)
        self.asked = asked
        self.calls: list[tuple[int, list[str]]] = []

    def embed_queries(self, texts: Sequence[str]) -> np.ndarray:
        self.calls.append((len(self.asked), [*texts]))
        return super().embed_queries(texts)


def test_words_are_looked_for_while_a_long_prompt_and_its_ends_are_embedded_at_once(
    vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    current.load_tables(vault)
    vault.embedder = embedder = LateEmbedder(counted(monkeypatch))
    prompt = f"{PROMPTS[0]}\n{'plums and pears ' * 12}\n{PROMPTS[2]}"
    assert select.for_prompt(vault, prompt).hits
    ((asked, texts),) = embedder.calls
    assert texts[0] == prompt
    assert len(texts) == 3
    assert asked == len(embedder.asked) >= 3


@pytest.mark.slow
def test_a_watched_vault_is_warm_again_after_a_commit_and_after_another_process(
    make_vault: MakeVault, text_only: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both open the index again, although none of its rows changed: its manifest is another one."""
    vault = make_vault(FILES)
    commit(vault.root)
    reconcile.sync(vault)
    asked = counted(monkeypatch)
    watch = VaultWatch(vault.root, lambda _: None, SharedEmbedder(), wanted=True)
    watch.start()
    assert watch.ready.wait(60)

    def is_warm() -> bool:
        asked.clear()
        answer = watch.answer({"ask": "search.recall", "with": {"query": PROMPTS[0]}})
        assert answer["answer"]["hits"]
        return "rows_by_id" not in asked  # a hit is shown from memory

    soon(is_warm)
    before = manifest.load(vault.open_index().store.index).head
    run("git", "commit", "--allow-empty", "-qm", "Nothing of a lesson", cwd=vault.root)
    soon(lambda: manifest.load(vault.open_index().store.index).head != before)
    soon(is_warm)
    manifest.touch(vault.open_index().store.index)
    soon(is_warm)
    watch.end("the test is over")
    assert watch.ended.wait(60)
