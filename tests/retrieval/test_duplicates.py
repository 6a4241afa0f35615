"""Lessons beside each other: issue 56, row 2. The index is asked a few times, not for each lesson."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.embedders import WordEmbedder
from tests.support.files import MakeVault, lesson_text
from tests.support.indexed import with_words
from vault_index.index import reconcile
from vault_index.retrieval import duplicates
from vault_index.store.lance import LanceTable
from vault_index.vault import Vault

TEXT = "The crane stops when the wind is above sixty and the load hangs over the quay."
OTHERS = {
    f"other{n}.md": lesson_text(f"Subject {n}", f"Words {n} {n * n} about it.") for n in range(9)
}


@pytest.fixture
def embedder() -> WordEmbedder:
    return WordEmbedder(dimension=256)


def indexed(make_vault: MakeVault, embedder: WordEmbedder, texts: dict[str, str]) -> Vault:
    vault = make_vault(texts)
    with_words(vault, embedder)
    reconcile.sync(vault)
    return vault


def near(vault: Vault, *paths: str) -> dict[str, str]:
    """Return the file that each file is said to be like, by path."""
    findings = duplicates.against_index(vault, paths).findings
    likes = [each for each in findings if each.rule == "near-duplicate"]
    return {each.path: each.message.partition(" like ")[2].split()[0] for each in likes}


@pytest.mark.parametrize("others", [0, 9], ids=["a few", "many"])
def test_of_equal_lessons_the_first_in_the_index_is_named(
    make_vault: MakeVault, embedder: WordEmbedder, others: int
) -> None:
    names = [f"{name}.md" for name in ("m", "a", "z", "b")]
    texts = {name: lesson_text("Wind", TEXT) for name in names}
    vault = indexed(make_vault, embedder, texts | dict([*OTHERS.items()][:others]))
    found = near(vault, *(file.path for file in vault.files()[0]))
    assert found == {
        "lessons/a.md": "lessons/b.md",
        "lessons/b.md": "lessons/a.md",
        "lessons/m.md": "lessons/a.md",
        "lessons/z.md": "lessons/a.md",
    }


def test_the_index_is_asked_as_often_for_forty_files_as_for_twenty(
    make_vault: MakeVault, embedder: WordEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = {
        f"{n:02}.md": f"---\nfires_on: [prompt {n}]\n---\n# Subject {n}\n\nWords {n} {n * n}.\n"
        for n in range(40)
    }
    vault = indexed(make_vault, embedder, texts)
    questions: list[object] = []
    begin = LanceTable._begin

    def noted(table: LanceTable, query: object, **how: object) -> object:
        questions.append(query)
        return begin(table, query, **how)

    monkeypatch.setattr(LanceTable, "_begin", noted)
    asked = []
    for some in (40, 20, 40):
        questions.clear()
        duplicates.against_index(vault, sorted(texts)[:some])
        asked.append(len(questions))
    assert asked[0] < 10  # the first one reads all vectors
    assert asked[1] == asked[2] < 6


def test_a_prompt_of_two_files_is_reported_in_both(
    make_vault: MakeVault, embedder: WordEmbedder
) -> None:
    own = '---\nfires_on: ["the crane stands still", "{}"]\n---\n# {}\n\nWords of {}.\n'
    names = ("bow", "keel", "mast")
    texts = {f"{name}.md": own.format(name, name, name) for name in names}
    vault = indexed(make_vault, embedder, texts | OTHERS)
    findings = duplicates.against_index(vault, [*texts, *OTHERS]).findings
    twice = [
        (each.path, each.line, each.message) for each in findings if each.rule == "taught-twice"
    ]
    said = (
        "'the crane stands still' fires lessons/{}.md, too: the better match of the two comes first"
    )
    assert twice == [
        ("lessons/bow.md", 2, said.format("keel")),
        ("lessons/keel.md", 2, said.format("bow")),
        ("lessons/mast.md", 2, said.format("bow")),
    ]


@pytest.mark.parametrize("warm", [True, False])
def test_near_returns_what_nearest_does(
    make_vault: MakeVault, embedder: WordEmbedder, warm: bool
) -> None:
    texts = {f"{n}.md": lesson_text("Wind", f"{TEXT} {'again ' * (n // 2)}") for n in range(12)}
    vault = indexed(make_vault, embedder, texts | OTHERS)
    store = vault.open_index().store
    vectors = np.stack([*store.of_lessons([str(n) for n in range(12)]).values()])
    if warm:
        store.load(warm=True)
    for vector, (places, cosines) in zip(vectors, store.near(vectors, 0.95, 5), strict=True):
        expected, likeness = store.nearest(vector, 5)
        close = likeness >= 0.95
        assert places.tolist() == expected[close].tolist()
        assert np.allclose(cosines, likeness[close], atol=1e-6)
