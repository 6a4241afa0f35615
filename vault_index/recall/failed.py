"""Answer a failed command of an agent with at most one lesson, its decision first.

A session gets a lesson once for a signature, and once more at the second same failure, said as such.
A subagent has a context of its own, so what the main agent was told it was not.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from vault_index.index.rows import MAX_TAUGHT_CHARS
from vault_index.journal.redact import redact
from vault_index.recall import anchors, block, holdout, select, sessions
from vault_index.recall.holdout import NO_PLAN, Plan
from vault_index.recall.select import Injection
from vault_index.search import above, failures
from vault_index.store import injections
from vault_index.text import failure
from vault_index.text.failure import Failure

if TYPE_CHECKING:
    from vault_index.search.hit import Hit
    from vault_index.vault import Vault

EVENT = injections.FAILURE
TIMES = 2  # that a session gets a lesson for the same failure
AGAIN = "The same failure as before; this was shown for it already:"
_LOOKED_AT = 5  # hits, of which some may not be trusted


def answer(vault: Vault, event: dict[str, Any], text_only: bool) -> Injection:
    """Return what the failure that an event reports should get."""
    failed = failure.read(str(event.get("command") or ""), str(event.get("error") or ""))
    key = injections.key_of(failed.signature)
    times = sessions.times_told(vault, event, key)
    plan = holdout.plan(vault, str(event.get("session_id") or ""))
    if key in plan.before or times:  # nothing is held back at a failure that the session met before
        plan = NO_PLAN
    injection = select_lesson(vault, failed, times=times, text_only=text_only, plan=plan)
    said = redact(failed.lines[0] if failed.lines else failed.command)[:MAX_TAUGHT_CHARS]
    return replace(injection, about=failed.signature, said=said)


def select_lesson(
    vault: Vault, failed: Failure, *, times: int = 0, text_only: bool = False, plan: Plan = NO_PLAN
) -> Injection:
    """Return what a failure should get that the session was told about so many `times`."""
    floors: dict[str, float | None] = {}

    def search(name: str, vault: Vault) -> tuple[failures.Answer, list[Hit], above.Answer]:
        answer = failures.find(vault, failed, _LOOKED_AT, text_only=text_only)
        floors[name] = answer.floor if answer.floor < float("inf") else None
        trusted = anchors.deliverable(vault, select.only_trusted(vault, answer.hits[:1]))
        return answer, trusted, above.Answer(trusted if answer.is_above else (), answer.kept_out)

    answer, trusted, own = search("", vault)
    every = above.joined(vault, own, lambda place, other: search(place.name, other)[2])
    if not every:
        silent, near = answer.why_silent or select.NOTHING, next(iter(trusted), None)
        return Injection("", floor=floors[""], silent=silent, near=near)
    first = max(every, key=lambda hit: hit.score)  # the strongest; of equal ones the nearer
    least = floors.get(first.lesson_id.partition(":")[0], floors[""])
    if times >= TIMES:
        return Injection("", floor=least, silent="told twice already", near=first)
    plan = NO_PLAN if first.taught else plan
    if plan.holds(first):
        silent = holdout.SILENT
        return Injection("", floor=least, silent=silent, held=[first], plan=plan)
    text = block.at_failure(first, vault.config.prompt_tokens, AGAIN if times else "")
    return Injection(text, [first], floor=least, plan=plan)
