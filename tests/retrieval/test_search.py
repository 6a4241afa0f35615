"""Search: what is narrowed, how scores add up, and what odd queries get."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.commands import run
from tests.support.embedders import WordEmbedder
from tests.support.files import MakeVault, lesson_text, write
from tests.support.indexed import of_this_repository
from vault_index.edit import init
from vault_index.errors import IndexStateError, VaultError
from vault_index.index import reconcile
from vault_index.lesson.category import normalise, prefixes
from vault_index.retrieval import entries, floor
from vault_index.retrieval import query as search
from vault_index.retrieval.hit import Query, parts_of
from vault_index.vault import Vault, open_vault

SHARED = [HealthCheck.function_scoped_fixture]  # `own_world` need not be new for each example

CATEGORIES = [
    *("devops", "devops/ci-cd", "devops/ci-cd/github", "devops/ci-cd/github/runners"),
    *("devops/ci-cd/github/runners/arm", "devops/ci-cd/github/runners/arm/v8"),
    *("devops/ci-cd/github/runners/armada", "devops-tools", "o'reilly/it's"),
    *("product-management", "ünïcode/日本"),
]
WORDS = "heap build lock table pipe deploy token cache retry docker runner branch".split()


def in_categories(filed: list[str], number: int) -> str:
    """Return a lesson on two words of the list, filed under these categories."""
    words = f"{WORDS[number % 12]} {WORDS[number * 5 % 11]}"
    listed = ", ".join(f'"{category}"' for category in filed)
    return f"---\ntitle: L{number}\ncategories: [{listed}]\n---\nAbout {words} number{number}.\n"


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Vault:
    """A vault with 80 lessons in every category and some in two."""
    root = tmp_path_factory.mktemp("many")
    init(root)
    for number in range(80):
        filed = [CATEGORIES[number % len(CATEGORIES)]]
        if number % 3 == 0:
            filed.append(CATEGORIES[number * 7 % len(CATEGORIES)])
        write(root / "lessons" / f"{number:02}.md", in_categories(filed, number))
    vault = open_vault(root, environ={"LESSONS_HOME": str(root / "home")})
    vault.embedder = WordEmbedder()
    reconcile.sync(vault)
    return vault


def small(make_vault: MakeVault, files: dict[str, str]) -> Vault:
    vault = make_vault(files)
    vault.embedder = WordEmbedder()
    reconcile.sync(vault)
    return vault


def is_below(filed: tuple[str, ...], wanted: list[str]) -> bool:
    """Return what a category filter means, in the plainest way."""
    paths = [normalise(path) for path in wanted]
    return any(one == path or one.startswith(f"{path}/") for one in filed for path in paths)


# the category filter

somewhere = st.sampled_from(
    sorted({prefix for category in CATEGORIES for prefix in prefixes(category)})
    + ["nowhere", "devops/ci", "dev", "o'reilly'; --", "_"]
)


@pytest.mark.slow
@settings(deadline=None, max_examples=60, suppress_health_check=SHARED)
@given(wanted=st.lists(somewhere, min_size=1, max_size=3), words=st.sampled_from(WORDS))
def test_the_filter_equals_looking_at_every_lesson(
    many: Vault, wanted: list[str], words: str
) -> None:
    every = search.find(many, words, k=1000)
    assert len(every) == 80
    narrowed = search.find(many, words, k=1000, categories=wanted)
    assert {hit.lesson_id for hit in narrowed} == {
        hit.lesson_id for hit in every if is_below(hit.categories, wanted)
    }


@pytest.mark.parametrize("category", CATEGORIES)
def test_the_filter_comes_before_the_search(many: Vault, category: str) -> None:
    """A lesson that is far from the query is found when its category holds nothing nearer."""
    (hit,) = search.find(many, "nothing like it", k=1, categories=[category])
    assert is_below(hit.categories, [category])


def test_list_and_search_narrow_alike(many: Vault) -> None:
    for category in CATEGORIES:
        listed = {entry.id for entry in entries.entries(many, category=category)}
        hits = search.find(many, "heap", k=1000, categories=[category])
        assert listed == {hit.lesson_id for hit in hits}


def test_a_category_is_found_however_it_is_spelt(many: Vault) -> None:
    spelt = search.find(many, "heap", k=100, categories=[" DevOps / CI CD/"])
    assert spelt == search.find(many, "heap", k=100, categories=["devops/ci-cd"]) != []


def test_what_is_no_category_is_an_error(many: Vault) -> None:
    with pytest.raises(VaultError, match="not a category"):
        search.find(many, "heap", categories=[" / "])


# scores


def test_a_score_is_cosine_and_a_hundredth_of_bm25(many: Vault) -> None:
    query = "the build needs a heap number17"
    opened = many.open_index()
    rows = opened.store.rows(["lesson_id", "vector"])
    asked = WordEmbedder().embed_queries([query])[0]
    cosines = {row["lesson_id"]: float(np.dot(row["vector"], asked)) for row in rows}
    bm25 = dict.fromkeys(cosines, 0.0)
    places, scores = opened.store.matches(query)
    for row, score in zip(opened.store.take(places), scores, strict=True):
        bm25[row["lesson_id"]] = float(score)
    hits = search.find(many, query, k=1000)
    assert len(hits) == 80
    for hit in hits:
        assert hit.cosine == pytest.approx(cosines[hit.lesson_id], abs=1e-5)
        assert hit.full_text == pytest.approx(0.01 * bm25[hit.lesson_id], abs=1e-6)
        assert hit.score == hit.cosine + hit.full_text + hit.exact
    assert hits == sorted(hits, key=lambda hit: hit.rank, reverse=True)


@pytest.mark.parametrize("k", [1, 3, 70])
def test_fewer_hits_are_the_first_of_more(many: Vault, k: int) -> None:
    assert [hit.lesson_id for hit in search.find(many, "cache retry", k=k)] == [
        hit.lesson_id for hit in search.find(many, "cache retry", k=80)[:k]
    ]


def test_min_score_leaves_out_and_says_so(many: Vault) -> None:
    every = search.find(many, "heap", k=80)
    least = every[9].shown_score
    results = search.run(many, Query("heap", k=80, min_score=least, explain=True))
    assert {hit.lesson_id for hit in results.hits} == {
        hit.lesson_id for hit in every if hit.shown_score >= least
    }
    assert {why for _, why in results.dropped} == {f"below {parts_of(least)}"}
    cut = search.run(many, Query("heap", k=2))
    assert {why for _, why in cut.dropped} == {"not among the first 2"}


@pytest.mark.slow
def test_one_hit_a_lesson_with_its_best_passage(make_vault: MakeVault) -> None:
    long = "\n\n".join(f"Paragraph {n} speaks of {word}. " * 20 for n, word in enumerate(WORDS))
    vault = small(make_vault, {"long.md": lesson_text("Long", long)})
    (hit,) = search.find(vault, "paragraph docker", k=10)
    assert "docker" in hit.text
    assert len(hit.text) < len(long) / 2


def test_confidence_orders_what_is_alike_and_is_not_in_the_score(make_vault: MakeVault) -> None:
    text = "---\ntitle: Heap\nconfidence: {}\n---\nRaise the heap.\n"
    files = {f"{name}.md": text.format(sure) for name, sure in (("a", 1), ("b", 5), ("c", 3))}
    vault = small(make_vault, {**files, "d.md": lesson_text("Pipe", "The heap of a closed pipe.")})
    hits = search.find(vault, "raise the heap")
    assert [hit.lesson_id for hit in hits] == ["b", "c", "a", "d"]
    assert len({round(hit.score, 6) for hit in hits[:3]}) == 1
    assert hits[0].rank == pytest.approx(1.05 * hits[0].score)


# queries


@pytest.mark.parametrize(
    "query",
    [
        *('say "heap" AND (build OR -lock)', "it's; DROP TABLE lessons --", "heap*:?^~[]{}\\"),
        *("the and of", "🔥🔥🔥", "日本語のエラー", "\x00\x01 heap", "heap\n\nbuild\t"),
        *("\ud800 heap", '"'),
        "heap " * 25_000,
        "x" * 100_000,
    ],
    ids=lambda query: ascii(query[:20]),
)
def test_odd_queries_are_only_text(many: Vault, query: str) -> None:
    hits = search.find(many, query, k=3)
    assert len(hits) == 3
    assert all(-1.01 < hit.cosine < 1.01 for hit in hits)
    for hit in search.run(many, Query(query, k=3, text_only=True)).hits:
        assert hit.full_text > 0


@pytest.mark.parametrize("again", [2, 30])
def test_a_prompt_that_repeats_itself_has_no_more_words(many: Vault, again: int) -> None:
    """A line of a pasted log, twenty times, is no better reason for a lesson than once."""
    line = "Heap 7: the build of the docker runner failed.\n"
    once = search.run(many, Query(line, k=5, text_only=True)).hits
    assert search.run(many, Query(line * again, k=5, text_only=True)).hits == once


@pytest.mark.parametrize("query", ["", "  \n "])
def test_an_empty_query_finds_nothing(many: Vault, query: str) -> None:
    assert search.find(many, query) == []


@pytest.mark.slow
@settings(deadline=None, max_examples=40, suppress_health_check=SHARED)
@given(query=st.text(min_size=1, max_size=60))
def test_any_query_is_answered_in_order(many: Vault, query: str) -> None:
    hits = search.find(many, query, k=5)
    assert len(hits) == (5 if query.strip() else 0)
    assert hits == sorted(hits, key=lambda hit: hit.rank, reverse=True)


def test_an_unknown_kind_is_an_error(many: Vault) -> None:
    with pytest.raises(VaultError, match="nothing of kind 'spells'"):
        search.find(many, "heap", kinds=["spells"])


def test_without_an_index_there_is_an_error_that_says_what_to_do(make_vault: MakeVault) -> None:
    with pytest.raises(IndexStateError) as raised:
        search.find(make_vault(), "heap")
    assert raised.value.hint == "run `lessons index`"


def test_a_vault_without_lessons_answers_nothing(make_vault: MakeVault) -> None:
    vault = small(make_vault, {})
    assert search.find(vault, "heap") == []


# embedders


def test_without_an_embedder_full_text_answers(make_vault: MakeVault) -> None:
    heap = lesson_text("Heap", "Raise the heap.")
    vault = make_vault({"a.md": heap, "b.md": lesson_text("B", "b")}, indexed=True)
    results = search.run(vault, Query("heaps raised"))  # stemmed
    assert [hit.lesson_id for hit in results.hits] == ["a"]
    assert results.text_only == "no embedding model here; get it with `lessons model fetch`"
    assert results.hits[0].score == results.hits[0].full_text


def test_an_index_of_another_embedder_is_searched_by_text_alone(make_vault: MakeVault) -> None:
    vault = small(make_vault, {"a.md": lesson_text("Heap", "Raise the heap.")})
    other = WordEmbedder("other")
    vault.embedder = other
    results = search.run(vault, Query("heap"))
    assert results.text_only == "the index was built with words, the embedder is other"
    assert [hit.cosine for hit in results.hits] == [0.0]
    assert other.queries == []


def test_an_embedder_that_changed_its_dimension(make_vault: MakeVault) -> None:
    vault = small(make_vault, {"a.md": lesson_text("Heap", "Raise the heap.")})
    vault.embedder = WordEmbedder(dimension=32)
    results = search.run(vault, Query("heap"))
    assert "changed its dimension" in results.text_only
    assert len(results.hits) == 1


# the real model, on this repository's own lessons


# int8 arithmetic differs by instruction set: a score by .006 on average and .035 at most
ISA_MARGIN = 0.04


@pytest.mark.slow
def test_every_lesson_here_answers_its_own_prompts(
    tmp_path: Path, with_model: Path, home_with_repository: Path
) -> None:
    vault = of_this_repository(home_with_repository, with_model, tmp_path / "team")
    shutil.rmtree(vault.index_dir)
    run("git", "init", "-q", cwd=vault.root)
    stats = reconcile.sync(vault)
    assert stats.problems == []
    least = floor.BUILT_IN.prompts.whole
    rows = vault.open_index().store.rows(["is_whole", "lesson_id", "fires_on", "silent_on"])
    lessons = [row for row in rows if row["is_whole"]]
    assert len(lessons) >= 50

    asked = [
        (row["lesson_id"], prompt, column)
        for row in lessons
        for column in ("fires_on", "silent_on")
        for prompt in row[column] or ()
    ]
    for lesson_id, prompt, column in asked:
        scores = {hit.lesson_id: hit.score for hit in search.find(vault, prompt, k=3)}
        if column == "fires_on":
            assert scores.get(lesson_id, 0.0) > least + ISA_MARGIN, (lesson_id, prompt)
        else:
            assert scores.get(lesson_id, 0.0) < least - ISA_MARGIN, (lesson_id, prompt)
