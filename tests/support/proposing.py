"""Drafts that wait in a vault, checked and compared as those that pass the gate."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from vault_index import api, client
from vault_index.proposals import draft, review
from vault_index.vault import Vault

TEXT = (
    "Rotate the signing key before each release, or the installer refuses the package on every"
    " machine that has the old certificate in its store."
)

ENTRY = {  # as an agent writes it
    "title": "Feed <b>quokkas</b> at noon each day",
    "type": "project_rule",
    "what_to_do": "Call `feed_quokkas()` at noon, since no quokka eats at night.",
    "quotes": ["Feed the quokkas at noon, please"],
}

OTHER_ENTRY = {
    "title": "Wake no wombat before dusk in winter",
    "type": "project_rule",
    "what_to_do": "Open `winter_house.gate` after 17:00, since wombats bite who wakes them.",
    "quotes": ["No wombat is woken before dusk"],
}


def proposed(
    vault: Vault, title: Any = "Rotate the key", text: Any = TEXT, category: Any = "", **more: Any
) -> dict[str, Any]:
    """Propose a lesson, and return what came of it."""
    proposal = review.checked(draft.create(title, text, category, **more))
    compared = client.ask(str(vault.root), api.proposal.compare(proposal=proposal))
    checked = review.checked(proposal, compared.categories)
    return review.propose(vault, replace(proposal, findings=checked.findings), compared)
