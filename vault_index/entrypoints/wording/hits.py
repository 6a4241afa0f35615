"""Hits of a search in words, the terms of their scores, and what stays below the floor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from vault_index.entrypoints.wording import excerpt
from vault_index.recall.block import named, signed
from vault_index.recall.silence import NOTHING
from vault_index.retrieval.hit import TERMS, Hit, parts_of, percent_of
from vault_index.text.blocks import after_title
from vault_index.text.quote import clean, visible_line
from vault_index.text.words import count

if TYPE_CHECKING:
    from vault_index import publish
    from vault_index.learn.skills import build
    from vault_index.retrieval import documents

MAX_PHRASE_CHARS = 60
HEADINGS = {"lessons": "Lessons", "skills": "Skills", "sessions": "Sessions"}


def lines(hit: Hit, number: int, width: int = 100) -> list[str]:
    """Return a hit for people in two or three lines: its title and score, its place, its text."""
    text = excerpt(clean(after_title(hit.text[: 40 * width], hit.title)), width - 3)
    filed = ", ".join(hit.filed_under) or hit.type
    about = visible_line(f"[{filed}] {hit.path}{signed(hit.author, hit)}")
    taught = ", taught" if hit.taught else ""
    heading = [f"{number}. {visible_line(named(hit))} ({hit.strength}{taught})", f"   {about}"]
    return [*heading, *([f"   {text}"] if text else [])]


def without_quotes(phrases: Sequence[str]) -> str:
    """Return the note on a search for quoted phrases that no lesson has all of; "" for none."""
    if not phrases:
        return ""
    shown = ", ".join(f'"{excerpt(clean(phrase), MAX_PHRASE_CHARS)}"' for phrase in phrases)
    which = shown if len(phrases) == 1 else f"all of {shown}"
    return f"no lesson has {which}: searched without the quotes"


def evidence(hit: Hit) -> str:
    """Return the terms of a hit's score in one line."""
    terms = " + ".join(f"{name} {parts_of(term)}" for name, term in hit.terms)
    terms += f' by the prompt "{visible_line(hit.prompt)}"' if hit.prompt else ""
    parts = f"{parts_of(hit.score)} = {terms}"
    if hit.evidence:
        why = " + ".join(f"{name} {parts_of(term)}" for name, term in hit.evidence)
        parts += f"; for the floor {parts_of(hit.reason)} = {why}"
    weighted = zip(hit.weighted, TERMS, strict=False)
    order = " + ".join(f"{parts_of(term)} {name}" for term, name in weighted)
    by_weights = f"{parts_of(sum(hit.weighted))} = {order}; " if hit.weighted else ""
    return f"{by_weights}{parts}, confidence {hit.confidence}"


OUT_OF_ORDER = (
    "Some have a higher percentage than those above them: it counts how far a lesson stands out from the"
    " next ones, and no words in passing."
)


def is_out_of_order(hits: Sequence[Hit]) -> bool:
    """Whether a lesson of a list has a higher percentage than the one above it."""
    figures = [hit.percent for hit in hits if hit.kind == "lessons" and not hit.by_words]
    return figures != sorted(figures, reverse=True)


def silent_from(are_above: Sequence[bool]) -> int:
    """Return the index from which on hooks would inject none of the hits.

    Confidence orders hits, too: some above that place may score less than the floor.
    """
    index = len(are_above)
    while index and not are_above[index - 1]:
        index -= 1
    return index


TOO_FEW_WORDS = "too few words in common"  # of the nearest lesson, where words alone decide


def nearest(
    silent: str, name: str, score: float, floor: float, taught: str = "", *, by_words: bool = False
) -> str:
    """Return the lesson that was nearest in a silence; with its evidence where the floor decided."""
    mark = f", taught {taught}" if taught else ""
    if silent != NOTHING or score >= floor:
        return f"({name}{mark})"
    if by_words:
        return f"(nearest: {name}, {TOO_FEW_WORDS}{mark})"
    some, least = (f"{percent_of(each)}%" for each in (score, floor))
    if some == least:
        some, least = parts_of(score), parts_of(floor)
    if some == least:
        return f"(nearest: {name}{mark}, just below the floor of {least})"
    return f"(nearest: {name}, {some}{mark}; the floor is {least})"


def documents_line(state: documents.DocumentsStatus) -> Iterator[str]:
    """Yield the number of documents, if any."""
    if state.documents:
        yield f"documents  {state.documents}"


def vectors_line(state: publish.VectorsStatus) -> Iterator[str]:
    """Yield the number of a team's vectors that were not compared with our own, if any."""
    if waiting := state.vectors_to_compare:
        vectors = count(waiting, "vector is", "vectors are")
        yield f"shared     {vectors} not compared yet; the watcher does it when it is quiet"


def skills_line(state: build.SkillsStatus) -> Iterator[str]:
    """Yield the number of skills, if any, and the tags for which one is ready."""
    if state.skills:
        yield f"skills     {state.skills}"
    if ready := state.skills_ready:
        yield f"ready      for a skill: {', '.join(ready[:3])}; `lessons skills build` makes it"
