"""Rejected drafts stay away in other words, too: measured on labelled pairs with the real model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.files import MakeVault
from tests.support.places import labelled
from vault_index.index import rows
from vault_index.lesson.parse import Lesson
from vault_index.proposals import draft, fingerprint

PAIRS = labelled("rewordings.jsonl")
QUOTE = ("and then it failed with the same message as before",)


@pytest.mark.slow
def test_how_many_rewordings_are_recognised(make_vault: MakeVault, with_model: Path) -> None:
    """Count of 30 rewordings and 30 other lessons on the same subjects: see `proposals.fingerprint`."""
    embedder = make_vault().embedder
    assert embedder is not None

    def fingerprint_of(title: str, text: str, **evidence: Any) -> fingerprint.Fingerprint:
        proposal = draft.create(title, text, **evidence)
        made = rows.of_lesson(Lesson("", "a.md", title, text), "a.md", None)[:1]
        vector = fingerprint.pack(rows.embed(embedder, made)[0])
        return fingerprint.create(proposal, fingerprint.Comparison(embedder="model", vector=vector))

    counts = {(same, how): 0 for same in (True, False) for how in ("text", "session", "quote")}
    for pair in PAIRS:
        for how, evidence in (
            ("text", {}),
            ("session", {"session": "0123abcd"}),
            ("quote", {"quotes": QUOTE}),
        ):
            rejected = fingerprint_of(pair["title"], pair["text"], **evidence)
            again = fingerprint_of(pair["other_title"], pair["other_text"], **evidence)
            counts[pair["same"], how] += fingerprint.find_same(again, [rejected]) is not None
    assert counts[True, "text"] >= 10
    assert counts[True, "session"] >= 16
    assert counts[True, "quote"] >= 27
    assert counts[False, "text"] == 0
    assert counts[False, "session"] <= 4
    assert counts[False, "quote"] <= 7
