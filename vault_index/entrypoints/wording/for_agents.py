"""Lessons for an agent that asks by itself, over MCP or at a shell: text is data, in a fence.

At a shell a hit has its title, its id and the sentence that matches, and no score: an agent judges words.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from vault_index.recall import block
from vault_index.retrieval.hit import Entry, Hit, HitList, Relation, WholeEntry
from vault_index.text import blocks, quote
from vault_index.text.excerpt import best_sentence

if TYPE_CHECKING:
    from vault_index.learn.tend import Bare, Untended

LINE_CHARS = 300
HIT_CHARS = 170  # of a hit at a shell: five and the fence are some 250 tokens
TITLE_CHARS = 100
SENTENCE_CHARS = 40  # of the sentence of a hit, at least
NEAREST = 2  # titles where nothing is near


def line(text: object) -> str:
    """Return untrusted text on one short line, defused."""
    return quote.defused_line(str(text))[:LINE_CHARS]


def fenced(lines: Iterable[str], intro: str = block.INTRO) -> str:
    """Return lines, defused already, in the fence that marks data."""
    return "\n".join([block.FENCE_OPEN, intro, *lines, block.FENCE_CLOSE])


def found(answer: HitList, query: str) -> str:
    """Return the hits of a search; one line where none reaches the floor."""
    near = [hit for hit in answer.hits if hit.is_above(_floor(hit, answer))]
    others = [hit for hit in answer.hits if hit not in near]
    if not answer.hits:
        return "No lesson matches. Try other words."
    if not near:
        nearest = "; ".join(_named(hit) for hit in others[:NEAREST])
        return f"No lesson is near. The nearest: {nearest}."
    less = ["Less near:", *(_hit(hit, query) for hit in others)] if others else []
    shown = fenced([*(_hit(hit, query) for hit in near), *less])
    return f"{shown}\nWhole text: `lessons show ID`."


def _floor(hit: Hit, answer: HitList) -> float | None:
    return answer.floor if hit.kind == "lessons" else answer.skills_floor


def _hit(hit: Hit, query: str) -> str:
    named = _named(hit)
    room = max(SENTENCE_CHARS, HIT_CHARS - len(named) - 4)
    says = blocks.shorten_line(quote.defused_line(best_sentence(hit.text, query, hit.title)), room)
    return f"- {named}: {says}" if says else f"- {named}"


def _named(hit: Hit) -> str:
    title = blocks.one_line(quote.defused_line(block.named(hit)), TITLE_CHARS)
    return (
        f"{title} ({'read' if hit.trigger else 'ID'} {line(hit.path if hit.trigger else hit.id)})"
    )


def untended(answer: Untended) -> str:
    """Return lessons without prompts, for an agent that writes them."""
    if not answer.lessons:
        waits = f", or some wait for review: {answer.waiting}" if answer.waiting else ""
        return f"Every lesson that agents may read has prompts{waits}."
    shown = [part for each in answer.lessons for part in _bare(each)]
    remaining = answer.all - answer.tended - answer.waiting - len(answer.lessons)
    more = f" {remaining} more have none: another turn." if remaining > 0 else ""
    return f"{fenced(shown)}\n{answer.tended} of {answer.all} lessons have prompts.{more}"


def _bare(lesson: Bare) -> list[str]:
    head = f"- {line(lesson.title)}\n  id: {line(lesson.id)}"
    return [head, *quote.lines(quote.closed(quote.defused(lesson.text)))]


def lesson(entry: WholeEntry, links: Sequence[Relation] = (), remarks: Iterable[str] = ()) -> str:
    """Return a whole lesson; `remarks` are lines above its text."""
    related = [f"  {line(each.kind)}: {line(each.id)}" for each in links if each.id]
    head = [about(entry), *(f"  {line(remark)}" for remark in remarks), *related]
    return fenced([*head, *quote.lines(quote.closed(quote.defused(entry.text)))])


def about(entry: Entry) -> str:
    """Return the lines above a whole lesson: where it is filed and from, its id."""
    by = line(entry.author) or block.no_author(entry.updated_at)
    filed = line(", ".join(entry.categories))
    day = entry.day and f", {entry.day}"
    kind = f" · {line(entry.type)}" if entry.type else ""
    return (
        f"- [{filed}] {line(entry.title)}\n"
        f"  {line(entry.path)} · {by}{day}{kind} · confidence {entry.confidence} of 5\n"
        f"  id: {line(entry.id)}"
    )
