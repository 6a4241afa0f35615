"""Questions about a draft lesson, for the commands about proposals: the watcher has what they need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from vault_index.index import classifier
from vault_index.lesson.category import UNCATEGORIZED
from vault_index.lesson.confidence import DEFAULT_CONFIDENCE
from vault_index.lesson.parse import Lesson
from vault_index.proposals import draft, likeness, prompts, review, sketch

if TYPE_CHECKING:
    from vault_index.vault import Vault


def check(
    vault: Vault,
    title: str,
    text: str,
    category: str,
    tags: Sequence[str],
    fires_on: Sequence[str],
    by: str,
    quotes: Sequence[str] = (),
    session: str = "",
) -> dict[str, Any]:
    """Check a draft like a commit: the `findings` that are no errors, and what `compare` returns.

    Raises VaultError for an error, and nothing of the draft is kept.
    """
    evidence: dict[str, Any] = {"quotes": tuple(quotes), "session": session}
    proposal = draft.of(title, text, category, tags, fires_on, by, **evidence)
    proposal = review.checked(proposal)
    compared = likeness.of(vault, proposal)
    findings = review.checked(proposal, compared["categories"]).findings
    return {**compared, "findings": list(findings)}


def compare(
    vault: Vault,
    title: str,
    text: str,
    fires_on: Sequence[str] = (),
    quotes: Sequence[str] = (),
    session: str = "",
) -> dict[str, Any]:
    """Compare a draft with lessons and with rejected proposals: see `likeness.of`.

    `fires_on`, `quotes` and the private id of its session are evidence: with the same one a draft in
    other words is recognised.
    """
    evidence: dict[str, Any] = {"quotes": tuple(quotes), "session": session}
    return likeness.of(vault, draft.of(title, text, "", (), fires_on, **evidence))


def outlook(
    vault: Vault,
    title: str,
    text: str,
    category: str = "",
    tags: Sequence[str] = (),
    fires_on: Sequence[str] = (),
    silent_on: Sequence[str] = (),
    confidence: int = DEFAULT_CONFIDENCE,
    changes: str = "",
) -> dict[str, Any]:
    """Return what a reviewer wants to know of a draft: `nearest`, `prompts`, `suggested`, `why`.

    `nearest` is a lesson as [id, title, likeness], or None; `prompts` as `prompts.outlook` returns
    them; `suggested` the category that the classifier proposes for a draft without one, or "", and
    why. `changes` is the id of the lesson of which the draft is a change.
    """
    compared = likeness.of(vault, draft.of(title, text), without=changes)
    filed = (category,) if category else ()
    lesson = Lesson(
        "proposal", likeness.PATH, title, text, filed, tuple(tags), confidence=confidence
    )
    found = prompts.outlook(vault, lesson, fires_on, silent_on, changes)
    answer = {"nearest": compared["nearest"], "prompts": found, "suggested": "", "why": ""}
    if category or changes:
        return answer
    verdict = classifier.of_draft(vault, title, text, sketch.unpacked(compared["vector"]))
    first = verdict.categories[0]
    return {**answer, "suggested": "" if first == UNCATEGORIZED else first, "why": verdict.why[0]}
