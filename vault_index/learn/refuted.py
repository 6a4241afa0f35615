"""Claims of lessons and of proposals that a later session refutes: the person denied them there.

A session refutes a claim if its agent says so again, in nearly the same words, and the person's next
prompt denies it ("that's wrong", "it still fails"). Only particular claims count: "run the tests again"
is said in any session.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from vault_index import check
from vault_index.errors import VaultError
from vault_index.journal.record import private_id
from vault_index.learn import grounding, particular
from vault_index.learn.grounding import AnsweredText
from vault_index.learn.material import SESSION, Material
from vault_index.proposals import review
from vault_index.text import blocks
from vault_index.vault import Vault

RULE = "cause"  # of the warning on a card
MAX_DENIED = 160  # characters of what the person said


def of_lessons(material: Material, given: Mapping[str, str]) -> dict[str, str]:
    """Return the lessons among `given` texts that a session refutes, by id, with the person's words."""
    replies = grounding.replies(material)
    denied = {id: _denied(text, replies) for id, text in given.items()}
    return {id: words for id, words in denied.items() if words}


def note(vault: Vault, material: Material) -> list[str]:
    """Warn on the cards of proposals that a session refutes; return their ids.

    Those of the same session are left out: the gate looks at these.
    """
    replies = grounding.replies(material) if material.scope == SESSION else ()
    if not any(reply.denial for reply in replies):
        return []
    session, day = private_id(material.session), (material.ended or material.began)[:10]
    noted: list[str] = []
    for proposal in review.waiting(vault):
        is_own = session in (proposal.session, *proposal.again)
        if not is_own and (words := _denied(proposal.text, replies)):
            with suppress(VaultError):  # it was decided meanwhile
                review.warn(
                    vault, proposal.id, warning(f"a later session, {day}, denies it", words)
                )
                noted.append(proposal.id)
    return noted


def warning(where: str, words: str) -> dict[str, str]:
    """Return the warning on a card that the person denied it."""
    quoted = blocks.shorten_line(words, MAX_DENIED)
    return {"level": check.WARNING, "rule": RULE, "message": f"{where}; the person said: {quoted}"}


def _denied(text: str, replies: tuple[AnsweredText, ...]) -> str:
    return grounding.contradicted(text, replies, least=particular.MIN_POINTS)
