"""When to be silent, and what is injected otherwise: never too much, never an end of its fence."""

from __future__ import annotations

import json
import re
import unicodedata
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.support.commands import run
from tests.support.embedders import WordEmbedder
from tests.support.files import MakeVault, commit, lesson_text, write
from tests.support.hits import LESSON
from tests.support.indexed import with_words
from vault_index.errors import VaultError
from vault_index.hotpath import chatter
from vault_index.index import reconcile
from vault_index.recall import block, select
from vault_index.retrieval import evaluate, floor, query
from vault_index.retrieval.evaluate import LabelledPrompt
from vault_index.retrieval.floor import Floors
from vault_index.retrieval.hit import Hit
from vault_index.text import foreign, quote
from vault_index.vault import Vault, open_vault

TOPICS = {
    "heap": "Node build heap exhausted: raise max-old-space-size for webpack bundling.",
    "lock": "Postgres migrations block: set lock_timeout before alter table statements.",
    "pipe": "BrokenPipeError flushing stdout: close quietly when downstream head exits.",
    "token": "Expired OAuth refresh tokens: rotate credentials nightly via vault agent.",
    "cache": "Stale Docker layer cache: bust with checksum argument before apt install.",
}


def with_topics(make_vault: MakeVault, more: dict[str, str] | None = None) -> Vault:
    """Make a vault of five lessons, its index and its floor."""
    files = {f"{name}.md": lesson_text(name, text) for name, text in TOPICS.items()}
    vault = make_vault({**files, **(more or {})})
    with_words(vault, WordEmbedder(dimension=512))
    reconcile.sync(vault)
    return vault


def with_a_floor(vault: Vault, least: float) -> Vault:
    """Set a floor, as the `vault.toml` of a vault could."""
    vault.config = replace(vault.config, floor=least)
    return vault


# prompts that get nothing by their form


@pytest.mark.parametrize(
    "prompt",
    [
        "yes, go ahead",
        "Thanks, that looks good!",
        "ok continue please",
        "no, undo that",
        "great work, now the next one please",
        "sounds good, let\u2019s do that",
        "lgtm, merge it when ci passes",
        "yes, the second option please",
    ],
)
def test_acknowledgements_get_nothing(prompt: str) -> None:
    assert chatter.why_skipped(prompt) == "an acknowledgement"


@pytest.mark.parametrize(
    "prompt",
    [
        "undo the last commit",
        "revert the last commit and push again",
        "run the tests again in ci",
        "yes, and raise the heap of the node build",
        "why does the build die",
        "explain /etc/hosts to me",
        "stop! the kiln door is open",
        "the migration hangs",
    ],
)
def test_work_is_searched_for(prompt: str) -> None:
    assert chatter.why_skipped(prompt) == ""


@pytest.mark.parametrize(
    ("prompt", "why"),
    [
        ("", "fewer than 10 characters"),
        ("fix it", "fewer than 10 characters"),
        ("   fix it            ", "fewer than 10 characters"),
        ("/compact keep the plan", "a slash command"),
        ("/team:review src/main.py", "a slash command"),
        ("!make kiln door", "a line for the shell"),  # P17
        ("! kiln door status", "a line for the shell"),
        ("  !git log --oneline | head\n", "a line for the shell"),
        ("!!make the kiln door again", "a line for the shell"),
        ("<task-notification>agent 3 is done</task-notification>", "not typed by a person"),
        ("<command-name>/clear</command-name>", "not typed by a person"),
        ("<system-reminder>be careful</system-reminder>", "not typed by a person"),
        ("?????!!!!! ......", "no words"),
    ],
)
def test_what_is_no_question_gets_nothing(prompt: str, why: str) -> None:
    assert chatter.why_skipped(prompt) == why


# the floor


def test_foreign_prompts_are_many_and_each_is_there_once() -> None:
    prompts = foreign.prompts()
    assert len(prompts) >= 150
    assert len({prompt.lower() for prompt in prompts}) == len(prompts)


def test_the_floor_of_vault_toml_wins(make_vault: MakeVault) -> None:
    vault = with_topics(make_vault)
    write(vault.lessons_dir / "vault.toml", "floor = 0.123\n")
    assert floor.in_force(open_vault(vault.root)) == Floors(0.123, 0.123)


# what is injected


def test_a_prompt_gets_its_lesson_and_where_it_comes_from(make_vault: MakeVault) -> None:
    vault = with_a_floor(with_topics(make_vault), 0.4)
    commit(vault.root)
    reconcile.sync(vault)
    given = select.for_prompt(vault, "postgres migrations block on alter table, lock_timeout?")
    assert given.hits[0].lesson_id == "lock"
    lines = given.text.splitlines()
    assert (lines[0], lines[-1]) == ("<lessons>", "</lessons>")
    when = f"{given.hits[0].updated_at:%Y-%m-%d}"
    assert f"  lessons/lock.md · Ada Lovelace, {when}" in lines
    assert "> Postgres migrations block: set lock_timeout before alter table statements." in lines


@pytest.mark.slow
def test_a_prompt_that_no_lesson_answers_gets_nothing(make_vault: MakeVault) -> None:
    vault = with_topics(make_vault)
    given = select.for_prompt(vault, "write me a poem about whales in october")
    assert (given.text, given.silent) == ("", "nothing above the floor")


PASTE = " ".join(f"chapter {number} tells of whale number{number}" for number in range(40))


@pytest.mark.slow
@pytest.mark.parametrize(
    "prompt",
    [
        f"Postgres migrations block on alter table.\n\n{PASTE}",
        f"{PASTE}\npostgres migrations block",
    ],
)
def test_a_long_prompt_is_searched_by_its_ends_too(make_vault: MakeVault, prompt: str) -> None:
    """The request is before or after what was pasted, which would bury it."""
    vault = with_a_floor(with_topics(make_vault), 0.2)
    assert [hit.lesson_id for hit in select.for_prompt(vault, prompt).hits] == ["lock"]
    silent = f"---\ntitle: lock\nsilent_on: [{json.dumps(prompt)}]\n---\n{TOPICS['lock']}\n"
    write(vault.lessons_dir / "lock.md", silent)
    reconcile.sync(vault)
    assert not select.for_prompt(vault, prompt).hits


def test_at_most_three_lessons_and_none_twice(make_vault: MakeVault) -> None:
    texts = (" ".join(f"word{n}of{i}" for i in range(9)) for n in range(9))
    same = {
        f"same/{n}.md": lesson_text("same", f"Kafka rebalance storm {text}.")
        for n, text in enumerate(texts)
    }
    vault = with_a_floor(with_topics(make_vault, same), 0.2)
    had: list[str] = []
    for _ in range(3):
        given = select.for_prompt(vault, "a kafka rebalance storm again", given=had)
        assert len(given.hits) == 3
        assert given.text.count("lessons/same/") == 3
        had += [hit.lesson_id for hit in given.hits]
    assert len(set(had)) == 9
    assert select.for_prompt(vault, "a kafka rebalance storm again", given=had).silent != ""


def test_the_start_of_a_session_looks_at_the_project(make_vault: MakeVault) -> None:
    vault = with_a_floor(with_topics(make_vault), 0.4)
    project = vault.root.parent / "project"
    write(project / "db.py", "x = 1\n")
    run("git", "init", "-q", cwd=project)
    commit(project, "Postgres migrations: set lock_timeout before alter table")
    assert select.for_session(vault, project).hits[0].lesson_id == "lock"


@pytest.mark.parametrize(("most", "rules"), [(0, 0), (3, 3), (12, 10)])
def test_a_session_begins_with_so_many_lessons_at_most(
    make_vault: MakeVault, most: int, rules: int
) -> None:
    texts = {
        f"rule-{n}.md": f"---\ntitle: R{n}\ntype: project_rule\n---\n{'Tabs ' * n}.\n"
        for n in range(10)
    }
    vault = make_vault(
        {**texts, "vault.toml": f"session_lessons = {most}\n"}, words=True, indexed=True
    )
    begun = select.for_session(vault, vault.root).hits
    again = select.after_compaction(vault, ["rule-1", "rule-2"]).hits
    assert len(begun) == len(again) == rules


def a_hit(**values: Any) -> Hit:
    """Return the usual hit but for some values."""
    return replace(LESSON, **values)


texts = st.text(st.characters(), max_size=3000) | st.text("ab. `~\n<>/", max_size=3000)
any_hit = st.builds(a_hit, text=texts, title=texts, path=texts, author=texts)


@settings(deadline=None, max_examples=100)
@given(hits=st.lists(any_hit, max_size=8), max_tokens=st.integers(0, 4000))
@example(hits=[a_hit(text="The build dies with heap out of memory. " * 2500)] * 4, max_tokens=10**5)
def test_the_budget_holds_for_any_text(hits: list[Hit], max_tokens: int) -> None:
    text = block.injection(hits, max_tokens)
    assert len(text) <= min(4 * max_tokens, 9_500)
    if text:
        assert text.startswith("<lessons>\n")
        assert text.endswith("\n</lessons>")
        assert text.count("</lessons>") == 1
    bad = {c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp")}
    assert bad <= {"\n"}


def test_a_text_is_cut_at_the_end_of_a_sentence() -> None:
    text = " ".join(f"This is sentence number {n}." for n in range(40))
    cut = quote.shorten(text, 200)
    assert re.fullmatch(r"(This is sentence number \d+\. ?)+ …", cut)
    assert len(cut) > 150


def test_a_cut_inside_code_closes_its_fence() -> None:
    text = "Do this:\n```sh\n" + "make build\n" * 50 + "```\n"
    assert quote.shorten(text, 200).count("```") == 2


# figures


def test_figures_of_a_set_that_can_be_worked_out_by_hand(make_vault: MakeVault) -> None:
    vault = with_a_floor(with_topics(make_vault), 0.5)
    heap, lock = (" ".join(TOPICS[name].split()) for name in ("heap", "lock"))
    prompts = [
        LabelledPrompt(heap, frozenset({"heap"}), "exact"),  # first, far above the floor
        LabelledPrompt(lock, frozenset({"pipe"}), "wrong"),  # the lock comes first, above the floor
        LabelledPrompt(lock, frozenset({"lock", "heap"}), "two"),
        LabelledPrompt("zebra quagga okapi", frozenset(), "foreign"),  # below the floor
        LabelledPrompt(TOPICS["pipe"], frozenset(), "foreign"),  # a false injection
        LabelledPrompt("yes, go ahead", frozenset(), "chatter"),  # silent by its form
    ]
    rank = [hit.lesson_id for hit in query.find(vault, lock, k=5)].index("pipe") + 1
    figures = evaluate.measure(vault, prompts)
    assert figures["prompts"] == 3
    assert figures["recall@1"] == pytest.approx(2 / 3)
    assert figures["recall@5"] == 1.0
    assert figures["mrr@10"] == pytest.approx((1 + 1 / rank + 1) / 3)
    exact, wrong = (query.find(vault, text, k=1)[0].reason for text in (heap, lock))
    false = query.find(vault, TOPICS["pipe"], k=1)[0].reason
    won = sum(score > other for score in (exact, wrong, wrong) for other in (false, 0.4, -1))
    assert figures["auc"] == pytest.approx(won / 9)
    # of three foreign prompts neither 2% nor 5% may be injected: the floor is the false one's score
    for share in ("fi2", "fi5"):
        assert figures[f"recall@3_{share}"] == sum(s > false for s in (exact, wrong)) / 3
    assert figures["floor"] == figures["line_floor"] == 0.5
    assert figures["at_floor"] == {
        **{"hit": pytest.approx(2 / 3), "found": pytest.approx(2 / 3)},
        "wrong": pytest.approx(1 / 3),
        **{"false": pytest.approx(1 / 3), "false_line": 0.0},
        **{"orphan": None, "orphan_line": None},
    }
    assert figures["by_kind"]["chatter"] == {"prompts": 1, "false": 0.0, "false_line": 0.0}
    assert figures["by_kind"]["foreign"] == {"prompts": 2, "false": 0.5, "false_line": 0.0}
    assert figures["by_kind"]["exact"]["hit"] == 1.0


@pytest.mark.parametrize("line", ["{", "[]", '{"query": 1}', '{"query": "x", "relevant": "y"}'])
def test_what_is_no_labelled_prompt_is_named_by_its_line(tmp_path: Path, line: str) -> None:
    file = write(tmp_path / "q.jsonl", f'{{"query": "fine", "relevant": []}}\n\n{line}\n')
    with pytest.raises(VaultError, match=r"q\.jsonl:3: not a"):
        evaluate.load(file)
