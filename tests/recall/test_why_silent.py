"""The record of a search says why nothing came of it, and old records stay readable."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.commands import run
from tests.support.embedders import WordEmbedder
from tests.support.files import MakeVault, lesson_text, write
from tests.support.given import given_to, near, records
from tests.support.indexed import HEAP, LOCK, kept_on, with_words
from tests.support.serving import answering
from vault_index.entrypoints.wording import hits
from vault_index.hotpath.hook_event import Event
from vault_index.recall import silence
from vault_index.recall.respond import respond
from vault_index.store.delivery import Delivery
from vault_index.vault import Vault, open_vault

pytestmark = pytest.mark.slow

PROMPT = "raise the heap when the build runs out of memory"


@pytest.fixture
def team(make_vault: MakeVault, shelves: Path, tmp_path: Path) -> Vault:
    make = partial(make_vault, {"heap.md": HEAP, "lock.md": LOCK}, name="first")
    return kept_on(shelves / "why-silent", make, tmp_path / "team", WordEmbedder())


def prompted(vault: Vault, prompt: str, session: str = "s1") -> Delivery:
    """Answer a prompt as the hook does, and return the record of it."""
    event = Event("UserPromptSubmit", session, prompt=prompt, cwd=str(vault.root))
    respond(vault, event, by="process", ms=0.0)
    return records(vault)[-1]


def test_a_silence_names_the_nearest_lesson_and_its_score(team: Vault) -> None:
    assert prompted(team, PROMPT).silent == ""
    write(team.lessons_dir / "vault.toml", "floor = 9.0\n")
    strict = open_vault(team.root)
    with_words(strict)
    record = prompted(strict, PROMPT, "s2")
    assert (record.lessons, record.silent) == ([], "nothing above the floor")
    assert record.near
    assert record.near.lesson == "heap"
    assert 0 < (record.near.score or 0) < (record.floor or 0) == 9.0


def test_a_lesson_that_the_session_has_is_named(team: Vault) -> None:
    assert prompted(team, PROMPT).lessons == ["heap"]
    again = prompted(team, PROMPT)
    assert (again.lessons, again.silent) == ([], "the session has it already")
    assert again.near
    assert again.near.lesson == "heap"


def test_each_lesson_above_the_floor_comes_or_it_is_said_why_not(
    make_vault: MakeVault, own_world: Path
) -> None:
    text = "Raise the heap when the build runs out of memory in its pipeline."
    files = {f"{n}.md": f"---\ntitle: Heap of build {n}\n---\n{text} {n}\n" for n in range(5)}
    files["old.md"] = f"---\ntitle: Memory\nsilent_on: ['{PROMPT}']\n---\n{text}\n"
    files["far.md"] = "---\ntitle: Memory of elephants\n---\nLong.\n"
    settings = "prompt_lessons = 2\nfloor = 0.01\n"
    vault = make_vault(files | {"vault.toml": settings})
    write(own_world / "config.toml", "pointers = false\n")
    with answering(vault.root, own_world, LESSONS_EMBEDDER="none") as served:
        shown = served.ask("GET", f"/page/private/search?q={PROMPT}").text
        lesson = re.compile(r'<li class="row.*?</li>', re.DOTALL)
        told = dict.fromkeys(
            ["would be injected", "taught to stay out", "others come before it"], 0
        )
        told |= {"a prompt gets at most 2 whole and 0 as a line": 0, "it scores little beside": 0}
        for each in lesson.findall(shown.partition('class="floor"')[0]):
            (said,) = [what for what in told if what in each]
            told[said] += 1
        assert told["would be injected"] == 2
        assert sum(told.values()) >= 5
        assert "not injected" not in served.ask("GET", "/page/search?q=heap", token=False).text


def recalled(vault: Vault, prompt: str) -> str:
    """Return what `lessons recall` says of a silence."""
    said = run("lessons", "recall", prompt, cwd=vault.root)
    assert said.out == ""
    return said.err.strip()


@pytest.fixture
def kafka(make_vault: MakeVault, with_model: Path) -> Vault:
    text = "Raise message.max.bytes on the broker and in the producers."
    files = {
        "ops/kafka.md": lesson_text("Messages above 1 MB are dropped by the Kafka broker", text),
        "ops/redis.md": lesson_text("Redis evicts keys", "Set the policy of maxmemory."),
    }
    return make_vault(files, words=False)


def test_a_short_prompt_that_has_no_name_is_not_called_below_the_floor(kafka: Vault) -> None:
    """Issue 55, row 7: "nothing above the floor (nearest 51%; the floor is 27%)"."""
    title = "Messages above 1 MB are dropped by the Kafka broker"
    assert recalled(kafka, "brokers") == f"silent: {silence.SHORT} ({title})"
    far = recalled(kafka, "xylophone")
    assert far.startswith("silent: nothing above the floor (nearest: ")
    some, least = map(float, re.findall(r"([\d.]+)%", far))
    assert some < least


def test_a_silence_of_trust_says_so(kafka: Vault, own_world: Path) -> None:
    write(own_world / "config.toml", 'trust = "committed-only"\n')
    said = recalled(kafka, "the kafka broker drops messages above 1 MB")
    assert (
        said == "silent: your settings do not trust the lesson: see `trust` and `trusted_authors`"
    )


def test_a_lesson_that_was_taught_to_stay_out_is_named(kafka: Vault) -> None:
    prompt = "the kafka broker drops messages above 1 MB"
    run("lessons", "teach", prompt, "--not", "kafka", cwd=kafka.root)
    assert recalled(kafka, prompt).startswith("silent: it was taught to stay out (")


@pytest.mark.parametrize("failed", [False, True])
def test_what_no_room_is_left_for_is_not_called_given(
    kafka: Vault, own_world: Path, failed: bool
) -> None:
    """`lessons recall` said "silent: ", and the record that the session has it."""
    prompt = "the kafka broker drops messages above 1 MB"
    write(kafka.lessons_dir / "vault.toml", "prompt_tokens = 20\n")
    words = ["--error", "make"] if failed else [prompt]
    printed = "FATAL: kafka broker: message.max.bytes: messages above 1 MB are dropped\n"
    said = run("lessons", "recall", *words, cwd=kafka.root, stdin=printed)
    assert said.err.startswith("silent: no room for it: raise prompt_tokens (")
    assert run("lessons", "recall", "--json", *words, cwd=kafka.root, stdin=printed).json[
        "hits"
    ] == []  # fmt: skip
    vault = open_vault(kafka.root)
    event = Event("UserPromptSubmit", "s1", prompt=prompt, cwd=str(vault.root))
    if failed:
        event = Event("PostToolUseFailure", "s1", command="make", error=printed, cwd=event.cwd)
    respond(vault, event, by="process", ms=0.0)
    assert records(vault)[-1].lessons == []
    assert records(vault)[-1].silent == "no room for it: raise prompt_tokens"


def test_what_is_cut_beside_another_may_come_to_the_session_later(
    make_vault: MakeVault, text_only: None
) -> None:
    sizes, hands = "Sizes differ. " * 40, "Hands are needed. " * 40
    files = {
        "a.md": lesson_text("The kafka broker drops messages of producers", f"Silently. {sizes}"),
        "b.md": lesson_text("Producers of kafka send messages twice", f"To the broker. {hands}"),
    }
    settings = {"vault.toml": "prompt_tokens = 120\n"}
    vault = make_vault(files | settings, indexed=True)
    prompt = "the kafka broker drops messages of producers twice"
    left_out = run("lessons", "recall", "--json", prompt, cwd=vault.root).json["left_out"]
    assert [*left_out.values()] == ["no room for it: raise prompt_tokens"]
    first = prompted(vault, prompt).lessons
    assert len(first) == 1
    assert {*first, *prompted(vault, f"{prompt}, again").lessons} == {"a", "b"}


def test_equal_figures_are_not_shown_as_a_difference() -> None:
    """Issue 55, row 7: "27.2%; the floor is 27.2%"."""
    said = hits.nearest(silence.NOTHING, "Kafka", 0.27199, 0.27201)
    assert len(set(re.findall(r"[\d.]+%", said))) <= 1, said
    assert "just below the floor" in said


@given(score=st.floats(0, 1), floor=st.floats(0, 1))
def test_a_figure_is_named_only_where_the_floor_decided(score: float, floor: float) -> None:
    said = hits.nearest(silence.NOTHING, "Kafka", score, floor)
    assert ("the floor" in said) is (score < floor)
    shown = [float(each) for each in re.findall(r"([\d.]+)%", said)]
    assert shown == sorted(shown)
    assert len(shown) == len(set(shown))
    assert hits.nearest(silence.ALREADY_GIVEN, "Kafka", score, floor) == "(Kafka)"


@pytest.mark.parametrize(
    ("silent", "is_to_do"),
    [
        ("nothing above the floor", True),
        (silence.SHORT, True),
        ("the session has it already", False),
    ],
)
def test_the_pages_give_the_reason_and_offer_to_teach_where_that_helps(
    team: Vault, own_world: Path, silent: str, is_to_do: bool
) -> None:
    score = 0.4 if silent.startswith("nothing") else 0.9
    given_to(team, (), said="raise the heap", **{**near("heap", score), "silent": silent})
    with answering(team.root, own_world, LESSONS_EMBEDDER="none") as served:
        home = served.ask("GET", "/page/private/home").text
        activity = served.ask("GET", "/page/private/activity/list").text
    assert ("heap" in home) is is_to_do
    if silent != "nothing above the floor":
        assert f"silent: {silent}: " in activity
        assert " of 50%" not in activity + home
