"""A table too large to multiply all of its vectors finds what a small one finds, with filters, too."""

from __future__ import annotations

import pytest

from tests.support.files import MakeVault, lesson_text
from tests.support.indexed import with_words
from vault_index.index import reconcile
from vault_index.search import query
from vault_index.search.query import Query
from vault_index.store import reader
from vault_index.store.filters import Filter
from vault_index.vault import Vault, open_vault

WORDS = "heap build memory lock table migration pipe error writer reader cache index".split()


def scores(
    vault: Vault, text: str, only: Filter, for_agent: bool, text_only: bool = False
) -> list[float]:
    asked = Query(text, 5, filters=only, for_agent=for_agent, text_only=text_only)
    return [hit.score for hit in query.run(vault, asked).hits]


@pytest.mark.slow
@pytest.mark.parametrize("keeps", ["all", "most", "few", "none"])
def test_large_and_small_tables_find_the_same(
    make_vault: MakeVault, monkeypatch: pytest.MonkeyPatch, keeps: str
) -> None:
    files = {}
    for number in range(60):
        some = [WORDS[(number * step + step) % len(WORDS)] for step in (1, 2, 5, 7)]
        text = lesson_text(f"{some[0]} {number}", " ".join(some))
        keys = (
            f"---\nconfidence: {5 if number % 5 else 2}\ntype: {'bug_fix' if number < 4 else ''}\n"
        )
        files[f"{number}.md"] = text.replace("---\n", keys, 1)
    vault = make_vault(files)
    with_words(vault)
    reconcile.sync(vault)
    only = {
        "all": Filter(),
        "most": Filter(min_confidence=3),
        "few": Filter(type="bug_fix"),
        "none": Filter(type="architecture"),
    }[keeps]
    questions = [" ".join(WORDS[at : at + 3]) for at in range(8)]
    small = [scores(vault, text, only, keeps == "most") for text in questions]
    by_words = [scores(vault, text, only, False, True) for text in questions]
    monkeypatch.setattr(reader, "LARGE_ROWS", 30)
    large = open_vault(vault.root)
    with_words(large)
    large.open_index().store.load()
    for text, expected in zip(questions, small, strict=True):
        assert scores(large, text, only, keeps == "most") == pytest.approx(expected, abs=1e-3)
    for text, expected in zip(questions, by_words, strict=True):
        assert scores(large, text, only, False, True) == pytest.approx(expected, abs=1e-3)
    assert any(small) == (keeps != "none")
