"""A card has a warning if a later session refutes it: issue 58, row 7."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.learn.materials import a_material
from tests.learn.test_gate import THERE, answers, around, entry_of, kept
from tests.learn.test_propose import cards, entry, propose, session, team
from tests.support.conversations import Conversation
from vault_index.learn import gate, refuted
from vault_index.learn.material import SESSION, Material
from vault_index.proposals.fingerprint import Comparison
from vault_index.transcripts.moments import AGENT, PERSON, Moment
from vault_index.vault import Vault

__all__ = ["team"]

CAUSE = "The session cache of `nginx-3` keeps the old cookie."
WRONG = "no, that's not the cause, the cart is still empty"
OTHER = {
    "title": "Rotate the key of `sign-1` in November",
    "cause": "Its certificate ends in the first week of December.",
    "what_to_do": "Rotate the key of `sign-1` before the first week of December.",
}


@pytest.mark.parametrize(
    ("repeated", "answer", "warns"),
    [
        (CAUSE, WRONG, True),
        (CAUSE, "fine, and now the invoices", False),
        ("The agent looks at the cart.", WRONG, False),
    ],
    ids=["denied", "not denied", "about something else"],
)
def test_a_later_session_that_denies_a_claim_is_a_warning_on_the_card(
    team: Vault, repeated: str, answer: str, warns: bool
) -> None:
    session(team)
    (made,) = propose(team, entry(cause=CAUSE)).proposals
    later = Conversation(team.root, "later")
    later.asks("the cart is empty once more").says(f"I know this. {repeated}").asks(answer)
    later.asks("rotate the key of sign-1 before the first week of December")
    for _ in range(2):  # it is said once
        quote = "rotate the key of sign-1 before the first week of December"
        propose(team, {**entry(**OTHER), "quotes": [quote]})
    (card,) = (each for each in cards(team) if each.id == made.id)
    said = [each["message"] for each in card.findings if each["rule"] == gate.CAUSE]
    assert len(said) == warns
    assert all(each.endswith(f"denies it; the person said: {WRONG}") for each in said)


def test_a_plain_sentence_that_any_session_says_claims_nothing() -> None:
    plain = "Run the whole tests again before each commit."
    said = (Moment(AGENT, plain), Moment(PERSON, WRONG))
    material = Material(SESSION, "s", transcript=said)
    assert refuted.of_lessons(material, {"a": plain}) == {}
    assert refuted.of_lessons(replace(material, transcript=said[:1]), {"a": CAUSE}) == {}


def test_a_lesson_that_its_session_refutes_may_be_changed_with_a_warning() -> None:
    """It was dropped: "it repeats a lesson that the session was given"."""
    near = Comparison(near=((THERE.id, THERE.title, 0.9),))
    there = answers(compare=near, show=THERE)
    given, came = {THERE.id: THERE.text}, a_material(injected={THERE.id: ""})
    context = around(lessons=there, given=given, material=came)
    assert gate.admit(entry_of(), context) == gate.GIVEN
    changed = kept(entry_of(), replace(context, refuted={THERE.id: WRONG}))
    assert changed.changes == THERE.id
    (finding,) = (each for each in changed.findings if each["rule"] == gate.CAUSE)
    assert finding["message"] == f"its session denies {THERE.id}; the person said: {WRONG}"
