"""Exact words: an identifier or a quoted phrase finds its lesson; about it, it also injects it."""

from __future__ import annotations

import html
import os
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.commands import run
from tests.support.embedders import WordEmbedder
from tests.support.files import MakeVault, lesson_text
from tests.support.floors import set_floors
from tests.support.indexed import kept_on
from tests.support.serving import answering
from tests.support.shown_vaults import TEXT_ONLY
from vault_index.api import learn
from vault_index.entrypoints.mcp import texts
from vault_index.entrypoints.wording import sentence
from vault_index.index import reconcile
from vault_index.lesson import identifiers
from vault_index.recall import select
from vault_index.retrieval import entries, query
from vault_index.retrieval.hit import Query
from vault_index.vault import Vault


@pytest.fixture
def vault(make_vault: MakeVault, shelves: Path, tmp_path: Path) -> Vault:
    files = {
        f"filler{number}.md": lesson_text(
            f"Note {number}", f"The sky of day {number} was blue, and rain fell in week {number}."
        )
        for number in range(30)
    }
    files |= {
        "about.md": lesson_text("What repl_co_names holds", "It is the tuple of names."),
        "passing.md": lesson_text("Bytecode", "A long story of code. It has repl_co_names once."),
        "upsert.md": lesson_text("Upserts", "End it with `ON CONFLICT DO NOTHING` to skip rows."),
        "conflict.md": lesson_text("A conflict", "On a conflict do something, not nothing."),
    }
    make = partial(make_vault, files, name="first")
    return kept_on(shelves / "exact", make, tmp_path / "team", WordEmbedder())


@pytest.mark.slow
def test_a_rare_identifier_finds_each_lesson_that_has_it(vault: Vault) -> None:
    hits = query.find(vault, "I get an error about repl_co_names, what now?", k=3)
    assert [hit.lesson_id for hit in hits[:2]] == ["about", "passing"]
    about, passing, other = hits
    assert about.exact > passing.exact > other.exact == 0
    assert passing.no_reason == passing.exact, "a word in passing is no reason to inject"
    assert about.reason > passing.reason


@pytest.mark.slow
def test_only_a_lesson_about_it_is_injected_for_it(vault: Vault) -> None:
    asked = "what does repl_co_names do?"
    about, passing = query.find(vault, asked, k=2)
    between = (about.reason + passing.reason) / 2
    vault.config = replace(vault.config, floor=between)
    assert passing.reason < between < about.reason
    assert [hit.lesson_id for hit in select.for_prompt(vault, asked).hits] == ["about"]


STORY = "The garden was watered, the fence was painted and the gate was closed again. " * 9


@pytest.mark.parametrize(
    ("text", "comes_whole"),
    [
        (f"{STORY} Set quokka_fish once. {STORY}", False),
        (f"{STORY} Set quokka_fish to 1. {STORY} With quokka_fish the gate stays shut.", True),
        ("The gate stays shut after quokka_fish.", True),
    ],
)
@pytest.mark.parametrize("prompt", ["quokka_fish", "what does quokka_fish do?"])
def test_a_word_that_stands_once_in_a_long_text_is_a_line(
    make_vault: MakeVault, text: str, comes_whole: bool, prompt: str
) -> None:
    """Issue 57: such a word brought three lessons in four whole."""
    files = {"gate.md": lesson_text("The garden", text)}
    files |= {f"{n}.md": lesson_text(f"Note {n}", f"It rained on day {n}.") for n in range(12)}
    vault = make_vault(files)
    vault.embedder = WordEmbedder(dimension=512)
    set_floors(vault, 0.4, 0.3)
    reconcile.sync(vault)
    given = select.for_prompt(vault, prompt)
    assert [(hit.lesson_id, hit.as_line) for hit in given.hits] == [("gate", not comes_whole)]


def test_a_name_that_many_lessons_have_brings_no_lines(make_vault: MakeVault) -> None:
    long = f"{STORY} Set quokka_fish once. {STORY}"
    files = {f"{n}.md": lesson_text(f"Garden {n}", f"{long} Day {n}.") for n in range(6)}
    vault = make_vault(files)
    vault.embedder = WordEmbedder(dimension=512)
    set_floors(vault, 9.0, 8.0)
    reconcile.sync(vault)
    assert not select.for_prompt(vault, "what does quokka_fish do?").hits


def test_beside_more_words_an_exact_word_says_less(vault: Vault) -> None:
    few, many = (
        query.find(vault, f"repl_co_names {' '.join(words.split())}", k=1)[0].exact
        for words in (
            "garden fence gate painted closed",
            "garden fence gate painted closed watered rained yellow bridge river harbour",
        )
    )
    assert many < few / 3  # twelve words in the place of six: a quarter


def test_an_identifier_that_no_lesson_has_speaks_against_all(vault: Vault) -> None:
    known = query.find(vault, "the tuple of the names that a function keeps")[0]
    unknown = query.find(vault, "the tuple of the names that a function keeps xyz_unheard_of")[0]
    assert unknown.no_reason > known.no_reason
    assert unknown.reason < known.reason


def test_a_whole_prompt_in_quotes_is_no_phrase_that_is_missing(vault: Vault) -> None:
    asked = "rain fell in week 3 and the sky was blue"
    plain = query.find(vault, asked, k=1)[0]
    quoted = query.find(vault, f'"{asked}"', k=1)[0]
    assert quoted.reason == pytest.approx(plain.reason, abs=0.01)


def test_the_part_of_a_dotted_name_counts_where_the_whole_is_unknown(vault: Vault) -> None:
    hits = query.find(vault, "module.sub.repl_co_names is None", k=2)
    assert {hit.lesson_id for hit in hits} == {"about", "passing"}


def test_words_in_capitals_are_a_phrase(vault: Vault) -> None:
    assert query.find(vault, "ON CONFLICT DO NOTHING")[0].lesson_id == "upsert"


def test_what_is_quoted_must_stand_in_a_hit_of_a_search(vault: Vault) -> None:
    asked = Query('how to "on conflict do  nothing"', phrases=True)
    assert [hit.lesson_id for hit in query.run(vault, asked).hits] == ["upsert"]
    assert query.run(vault, asked).unquoted == ()


REQUEST = 'please add a rule ("on conflict do everything", "after rows") to the notes on upserts'


def test_a_pasted_request_is_searched_without_quotes_that_no_lesson_has(vault: Vault) -> None:
    """Issue 54, item 2: a quoted "Swiss franc" in a request found nothing."""
    found = query.run(vault, Query(REQUEST, phrases=True))
    plain = query.run(vault, Query(REQUEST.replace('"', ""), phrases=True))
    assert [hit.lesson_id for hit in found.hits] == [hit.lesson_id for hit in plain.hits]
    assert found.hits[0].lesson_id == "upsert"
    assert found.unquoted == ("on conflict do everything", "after rows")
    one_of_two = Query('"on conflict do nothing" and "no such words"', phrases=True)
    assert len(query.run(vault, one_of_two).unquoted) == 2


def test_each_door_says_that_it_searched_without_the_quotes(team: Vault) -> None:
    asked = 'raise the "Swiss franc" heap'
    says = 'no lesson has "Swiss franc": searched without the quotes'
    typed = run("lessons", "search", asked, cwd=team.root)
    assert says in typed.err.splitlines()
    assert typed.out.startswith("1. ")
    assert run("lessons", "search", "--json", asked, cwd=team.root).json["without_quotes"] == [
        "Swiss franc"
    ]
    found = learn.search(query=asked).answer(team)
    assert sentence(says) in texts.search_results(found)
    with answering(team.root, Path(os.environ["LESSONS_HOME"]), **TEXT_ONLY) as answers:
        body = {"prompt": asked, "min_score": None}
        told = answers.ask("POST", "/api/query", json=body).json()
        assert told["without_quotes"] == ["Swiss franc"]
        page = html.unescape(answers.ask("GET", "/lessons", params={"q": asked}).text)
    assert sentence(says) in page


@pytest.mark.slow
def test_a_quoted_flag_is_found_without_its_dashes_and_with_a_value(make_vault: MakeVault) -> None:
    heap = "Raise it: NODE_OPTIONS=--max-old-space-size=4096."
    other = "The option no-max-old-space-size is another one."
    vault = make_vault(
        {"heap.md": lesson_text("Heap", heap), "other.md": lesson_text("O", other)}, indexed=True
    )
    for asked in ('"max-old-space-size"', '"--max-old-space-size"', '"max-old-space-size=4096"'):
        hits = query.run(vault, Query(asked, phrases=True)).hits
        assert [hit.lesson_id for hit in hits] == ["heap"], asked


@pytest.mark.parametrize("asked", ['conflict "->"', 'conflict "or"', "conflict `(` or `[`"])
def test_marks_without_a_word_leave_out_no_lesson(vault: Vault, asked: str) -> None:
    hits = query.run(vault, Query(asked, phrases=True)).hits
    assert [hit.lesson_id for hit in hits[:2]] == ["conflict", "upsert"]


def test_code_in_backticks_need_not_stand_in_a_hit(vault: Vault) -> None:
    asked = Query("`on conflict` and `never_seen`", phrases=True)
    assert query.run(vault, asked).hits[0].lesson_id == "upsert"


@pytest.mark.slow
def test_a_common_quoted_word_keeps_every_lesson_that_has_it(make_vault: MakeVault) -> None:
    many = {f"common-{n}.md": lesson_text(f"Common {n}", "one one one one one") for n in range(210)}
    rare = {
        "rare.md": lesson_text("Rare", "a zebra, one of many animals, is told apart by its coat")
    }
    vault = make_vault(many | rare, indexed=True)
    assert query.run(vault, Query('zebra "one"', phrases=True)).hits[0].lesson_id == "rare"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("what does --no-dev do?", ["--no-dev"]),
        ("see config/database.yml:12", ["config/database.yml:12"]),
        ("React.useEffect() and GOARCH=arm64", ["react.useeffect", "goarch", "arm64"]),
        ("upgrade to 1.2.3, please", ["1.2.3"]),
        ("it costs 1.5 or 20 more", []),
        ("Please run the tests. Thanks!", []),
        ("say `two words` here", ["two words"]),
    ],
)
def test_exact_words_are_recognised_by_their_shape(text: str, found: list[str]) -> None:
    assert [mark.text for mark in identifiers.of_query(text)] == found


@given(st.text(max_size=300))
def test_any_text_has_bounded_marks_and_a_column_without_odd_spaces(text: str) -> None:
    assert len(identifiers.of_query(text)) <= identifiers.MAX_MARKS
    words = identifiers.column_of("", text).split(" ")
    assert all(not word or word == "".join(word.split()) for word in words)


NAMED = {
    "disk.md": "---\ntitle: Logs fill the disk\ntags: [quokkafish]\n---\nRotate them each day.\n",
    "cert.md": "---\ntitle: The wildcard certificate\naliases: [star rotation]\n---\nAsk for it.\n",
    "codes.md": lesson_text(
        "Codes", "| code | do |\n|---|---|\n| 250003 | log in |\n| Z9 | set it |"
    ),
    "people/ask.md": lesson_text("Whom to ask", "Two of the guild look at each change."),
    "pods.md": lesson_text("Pods flap", "We set `stabilizationWindowSeconds: 600` and it stopped."),
} | {f"other-{n}.md": lesson_text(f"Other {n}", f"Water the plants of room {n}.") for n in range(5)}
NAMES = {
    "quokkafish": "disk", "star rotation": "cert", "250003": "codes", "Z9": "codes",
    "people": "people/ask", "stabilizationWindowSeconds": "pods",
}  # fmt: skip


def test_a_tag_an_alias_a_code_and_a_category_find_their_lesson(make_vault: MakeVault) -> None:
    vault = make_vault(NAMED, indexed=True)
    for asked, wanted in NAMES.items():
        assert query.find(vault, asked)[0].lesson_id == wanted, asked
        assert [hit.lesson_id for hit in select.for_prompt(vault, asked).hits] == [wanted], asked
    assert query.find(vault, "what does Z9 say?")[0].lesson_id == "codes"
    assert entries.entry(vault, "star rotation").id == "cert"
    for unknown in ("250004", "wombatfish", "Z8"):
        assert not select.for_prompt(vault, unknown).hits, unknown


def test_a_shown_score_is_between_0_and_1_on_the_scale_of_the_floors(vault: Vault) -> None:
    hits = query.find(vault, "What repl_co_names holds", k=20)
    shown = [hit.as_json()["score"] for hit in hits]
    assert [hit.percent for hit in hits] == [round(100 * score) for score in shown]
    assert all(0 <= score < 1 for score in shown)
    assert all(
        score == pytest.approx(min(0.99, hit.reason), abs=1e-4) or hit.reason < 0
        for score, hit in zip(shown, hits, strict=True)
    )
    assert hits[0].as_json()["sum"] == round(hits[0].score, 4) > 1
