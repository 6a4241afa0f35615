"""Hold a share of lessons back, so that what they are worth can be measured: `[measure] holdout`.

A hash of session and lesson decides, so a pair is on one side for good, in every process and at every
door. Rules of the project, what somebody taught, and failures that a session met before are never held
back. The record has what would have been said, and `recall.outcome.impact` compares the two sides.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vault_index import files
from vault_index.errors import VaultError
from vault_index.recall import sessions
from vault_index.search.hit import percent_of
from vault_index.store import ownership

if TYPE_CHECKING:
    from vault_index.search.hit import Hit
    from vault_index.vault import Vault

RULE = "project_rule"  # the type of lessons that a session begins with
SILENT = "held out"  # the reason of a silence
_SAID = "holdout"  # a file beside the index: the share that the person was told of


def is_held(share: float, session: str, lesson: str) -> bool:
    """Whether a share of pairs has this one in it: the same answer for ever."""
    digest = hashlib.blake2b(f"{session}\0{lesson}".encode("utf-8", "replace"), digest_size=8)
    return int.from_bytes(digest.digest(), "big") < share * 2**64


@dataclass(frozen=True, slots=True)
class Plan:
    """The lessons that a session had, and the pairs of it that are held back, of a `share` of all.

    `before` names what the session was not told already: lessons, and failures by their key.
    `given` are the ids that it received, the latest last.
    """

    share: float = 0.0
    session: str = ""
    before: frozenset[str] = frozenset()
    given: Collection[str] = ()

    def may_hold(self, hit: Hit) -> bool:
        """Whether chance decides about a hit."""
        return bool(self.share and self.session and hit.type != RULE and not hit.taught)

    def holds(self, hit: Hit) -> bool:
        """Whether a hit is held back from the session."""
        return self.may_hold(hit) and is_held(self.share, self.session, hit.lesson_id)

    def is_new(self, hit: Hit) -> bool:
        """Whether a hit did not come, and was not held back: then it is as if it had come."""
        is_over = hit.lesson_id in self.before and self.holds(hit)
        return hit.lesson_id not in self.given and not is_over

    def reach(self, k: int) -> int:
        """Return how many hits have `k` new ones among them."""
        return k + len(self.given) + len(self.before)

    def split(self, hits: Iterable[Hit]) -> tuple[list[Hit], list[Hit]]:
        """Return the hits that the session gets, and those that are held back."""
        every = list(hits)
        return [hit for hit in every if not self.holds(hit)], [
            hit for hit in every if self.holds(hit)
        ]

    def arms(self, given: Iterable[Hit], held: Sequence[Hit]) -> dict[str, Any]:
        """Return what the record has of both sides: those `held` back, and those `drawn` to be told."""
        drawn = [hit.lesson_id for hit in given if self.may_hold(hit)]
        if not (drawn or held):
            return {}
        return {
            "held": [hit.lesson_id for hit in held],
            "held_scores": [round(hit.score, 4) for hit in held],
            "drawn": drawn,
            "share": self.share,
        }


NO_PLAN = Plan()


def plan(vault: Vault, session: str, agent: str = "", *, is_new: bool = False) -> Plan:
    """Return the plan of a session or its subagent; one that `is_new` had nothing yet."""
    share = vault.config.measure.holdout
    if is_new or not session:
        return Plan(share, session)
    before = sessions.lines_of(vault, session, agent, sessions.HELD) if share else ()
    return Plan(share, session, frozenset(before), sessions.given(vault, session, agent))


def notice(vault: Vault) -> str:
    """Return the line for a person whose lessons are held back, once for each share; else ""."""
    share = vault.config.measure.holdout
    file = vault.index_dir / _SAID
    with suppress(OSError, VaultError, ValueError):
        if (float(ownership.read_text(file)) if file.exists() else 0.0) == share:
            return ""
        files.replace_file(file, str(share).encode())
    if not share:
        return ""
    return (
        f"lessons: {percent_of(share)}% are held back by chance, to measure what lessons are worth"
        " (setting measure.holdout; see `lessons impact`)"
    )
