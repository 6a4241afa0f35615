"""Turns as observations: where they are cut, what they are, what is kept of them. No model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.conversations import FOLDER, SESSION, Talk
from vault_index.journal import capture, observe
from vault_index.journal.record import CONCEPTS, FIELDS, OBSERVATION, PROMPT, SUMMARY, TYPES, Record

EXPLANATION = (
    "The cart is empty because the cookie of the session expires when the page is closed. "
    "The lifetime is set in shop/session.py, and nothing renews it."
)


def records(talk: Talk, tmp_path: Path, kind: str = OBSERVATION) -> list[Record]:
    file = talk.write(tmp_path / f"{SESSION}.jsonl")
    read = capture.read(file, "claude")
    session = replace(read.session, short=SESSION[:8])
    made = [each for each in observe.seen(session, read.moments).records if each.kind == kind]
    for record in made:
        assert record.title
        assert len(record.title) <= 100
        assert "\n" not in record.title
        assert kind != OBSERVATION or record.type in TYPES
        assert set(record.concepts) <= set(CONCEPTS)
    return made


def only(talk: Talk, tmp_path: Path) -> Record:
    (record,) = records(talk, tmp_path)
    return record


@pytest.fixture
def talk() -> Talk:
    return Talk()


def test_a_command_that_fails_and_passes_after_changes_is_a_bugfix(
    talk: Talk, tmp_path: Path
) -> None:
    talk.prompt("The cart tests are red.")
    talk.runs(
        f"cd {FOLDER} && pytest -q 2>&1 | tail -5", "E   KeyError: 'cookie'\n1 failed", status=1
    )
    talk.edits("shop/session.py")
    talk.runs("pytest -q tests/test_cart.py", "3 passed")
    talk.says(EXPLANATION)
    record = only(talk, tmp_path)
    assert record.type == "bugfix"
    assert "problem-solution" in record.concepts
    assert record.title == EXPLANATION.split(". ")[0] + "."
    assert record.text == EXPLANATION
    failed, passed = record.commands
    assert (failed.status, failed.failed, passed.status, passed.failed) == (1, True, 0, False)
    assert "KeyError: 'cookie'" in failed.output
    assert record.files_modified == ("shop/session.py",)
    assert any("KeyError" in fact and "shop/session.py" in fact for fact in record.facts)


@pytest.mark.parametrize(
    ("subject", "type_"),
    [
        ("fix: keep the cookie", "bugfix"),
        ("Add a cart for guests", "feature"),
        ("refactor(cart): split load", "refactor"),
        ("Bump the version", "change"),
    ],
)
def test_a_commit_is_a_change_with_its_subject(
    talk: Talk, tmp_path: Path, subject: str, type_: str
) -> None:
    talk.prompt("ok, commit")
    talk.runs("git add -A")
    talk.runs(f"git commit -m '{subject}'", f"[main 1a2b3c4] {subject}\n 1 file changed")
    record = only(talk, tmp_path)
    assert (record.title, record.type) == (subject, type_)
    assert subject in record.facts


def test_reading_that_ends_in_an_explanation_is_a_discovery(talk: Talk, tmp_path: Path) -> None:
    talk.prompt("Why is the cart empty?")
    talk.says("Let me look.")
    talk.calls("Read", "...", file_path=f"{FOLDER}/shop/cart.py")
    talk.runs("sed -n 1,80p shop/session.py", "...")
    said = talk.says(EXPLANATION)
    record = only(talk, tmp_path)
    assert record.type == "discovery"
    assert "how-it-works" in record.concepts
    assert record.files_read == ("shop/cart.py", "shop/session.py")
    assert record.files_modified == ()
    assert record.text == f"Let me look.\n\n{EXPLANATION}", "raw text stays findable"
    assert record.title.startswith("The cart is empty")
    assert {"u1", said} <= set(record.uuids)


@pytest.mark.parametrize(
    "prompt", ["no, use the week of the config", "I don't want a second cookie", "or no, do c"]
)
def test_a_correction_is_a_decision(talk: Talk, tmp_path: Path, prompt: str) -> None:
    talk.prompt("Keep the cookie longer.")
    talk.says(EXPLANATION)
    talk.prompt(prompt)
    talk.edits("shop/session.py")
    _, record = records(talk, tmp_path)
    assert record.type == "decision"
    assert f"The user: {prompt}" in record.facts


def test_a_refusal_is_a_decision_and_changes_nothing(talk: Talk, tmp_path: Path) -> None:
    refused = (
        "The user doesn't want to proceed with this tool use. To tell you how to proceed,"
        " the user said:\nnot on this branch, open a ticket"
    )
    talk.prompt("Make the cookie last.")
    talk.says("I would change the lifetime of the cookie in shop/session.py to a week.")
    talk.calls(
        "Edit", refused, is_error=True, file_path=f"{FOLDER}/shop/session.py", old_string="a"
    )
    talk.says("I open a ticket instead, and leave the branch as it is for now.")
    first, second = records(talk, tmp_path)
    assert (first.files_modified, second.type) == ((), "decision")
    assert "The user: not on this branch, open a ticket" in second.facts
    typed = records(talk, tmp_path, PROMPT)[1]
    assert typed.text == "not on this branch, open a ticket"
    assert "shop/session.py to a week" in typed.context


def test_a_question_and_its_answer_are_a_decision(talk: Talk, tmp_path: Path) -> None:
    options = [{"label": "A week", "description": "as now"}, {"label": "A day", "description": ""}]
    question = {"question": "How long should the cookie live?", "options": options}
    answer = '"How long should the cookie live?"="A week"'
    talk.prompt("Keep the cookie longer.")
    talk.calls(
        "AskUserQuestion", f"User has answered your questions: {answer}.", questions=[question]
    )
    talk.says("Then the cookie of the session lives for a week, and is renewed at each request.")
    first, second = records(talk, tmp_path)
    assert "How long should the cookie live?" in first.text
    assert "The user: How long should the cookie live? A week" in second.facts


def test_chatter_is_no_observation(talk: Talk, tmp_path: Path) -> None:
    talk.prompt("thanks!")
    talk.says("You're welcome!")
    talk.prompt("Was it the cookie?")
    talk.says(EXPLANATION)
    assert [record.number for record in records(talk, tmp_path)] == [2]


def test_a_long_turn_is_cut_where_the_work_turns_and_never_at_each_call(
    talk: Talk, tmp_path: Path
) -> None:
    talk.prompt("Make the three changes of the ticket, a commit each.")
    for name in ("cart", "session", "login"):
        talk.says(f"Next is the {name}.")
        for _ in range(4):
            talk.edits(f"shop/{name}.py")
        talk.runs("pytest -q", "9 passed")
        talk.runs("git commit -am x", f"[main 1a2b3c4] Change the {name}")
    made = records(talk, tmp_path)
    assert [record.title for record in made] == [
        "Change the cart", "Change the session", "Change the login",
    ]  # fmt: skip
    assert [record.id for record in made] == ["3f2a91c0-o1", "3f2a91c0-o1.2", "3f2a91c0-o1.3"]
    assert [record.files_modified for record in made] == [
        ("shop/cart.py",), ("shop/session.py",), ("shop/login.py",),
    ]  # fmt: skip


# the summary of a session


def summary(talk: Talk, tmp_path: Path) -> Mapping[str, str]:
    made = records(talk, tmp_path, SUMMARY)
    assert len(made) <= 1
    if not made:
        return {}
    assert made[0].id == "3f2a91c0-s"
    assert list(made[0].fields) == [name for name in FIELDS if name in made[0].fields]
    return made[0].fields


def a_session() -> Talk:
    talk = Talk()
    talk.prompt("hi")
    talk.prompt("The cart is empty after a reload, please find out why.")
    talk.calls("Grep", "shop/cart.py", pattern="def load_cart")
    talk.calls("Read", "...", file_path=f"{FOLDER}/shop/cart.py")
    talk.says(
        "The cart is empty because the cookie of the session expires when the page is closed."
    )
    talk.prompt("no, don't change the cookie, store the cart")
    tasks = [("Store the cart", "completed"), ("Remove old carts", "pending")]
    talk.calls("TodoWrite", "", todos=[{"content": text, "status": is_} for text, is_ in tasks])
    talk.edits("shop/store.py")
    talk.runs("pytest -q", "9 passed")
    talk.runs("git commit -am x", "[main 1a2b3c4] feat: store the cart")
    talk.runs("make lint", "error: shop/store.py:3 unused import", status=2)
    talk.says(
        "The cart is stored in the database now.\n\n- Carts of guests are not yet stored.\n"
        "\n## Notes\n\nThe table has an index."
    )
    return talk


def test_the_six_fields(tmp_path: Path) -> None:
    fields = summary(a_session(), tmp_path)
    assert fields["request"].startswith("The cart is empty after a reload")
    assert "shop/cart.py" in fields["investigated"]
    assert "`def load_cart`" in fields["investigated"]
    assert "because the cookie of the session expires" in fields["learned"]
    assert "feat: store the cart (shop/store.py)" in fields["completed"]
    assert "Passing: `pytest`" in fields["completed"]
    assert fields["next_steps"].splitlines() == [
        "Remove old carts", "Carts of guests are not yet stored.",
    ]  # fmt: skip
    assert "The user: no, don't change the cookie, store the cart" in fields["notes"]
    assert "`make lint`: error: shop/store.py:3 unused import" in fields["notes"]
