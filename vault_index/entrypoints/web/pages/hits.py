"""Hits as the page of searching draws them: words marked, terms of the score, the floor among them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vault_index.recall import block
from vault_index.recall.outcome.words import plain_words
from vault_index.search.hit import Hit, percent_of
from vault_index.search.weighted import TERMS
from vault_index.text.characters import clean

EXCERPT_CHARS = 320
BEFORE_CHARS = 80  # of an excerpt before the first word of the query
MAX_WORDS = 30  # of a query that are marked
SCANNED_CHARS = 20_000  # of a text, for these words

Part = tuple[str, bool]  # of a text; whether it is a word of the query


@dataclass(frozen=True, slots=True)
class Drawn:
    """A hit with what is shown of it."""

    hit: Hit
    title: list[Part]
    path: str
    signed: str  # author and date
    excerpt: list[Part]  # empty for a withheld one
    is_injected: bool
    is_above: bool  # the floor
    terms: list[tuple[str, float]]  # of the score; they add up to it
    weights: list[tuple[str, float]]  # of the order, where the user's settings have some


@dataclass(frozen=True, slots=True)
class Group:
    """Hits of a kind in two parts: the floor is drawn between them."""

    kind: str
    above: list[Drawn]
    below: list[Drawn]
    floor: int | None  # in percent


def with_floor(
    hits: Sequence[Hit],
    floors: Mapping[str, float | None],
    injected: set[str],
    query: str,
    shown: Callable[[str], str],
) -> list[Group]:
    """Return the hits by kind, cut where the floor is; `shown` takes the folders out of a path."""
    marked = _pattern(query)
    groups = []
    for kind in ("lessons", "skills"):
        least = floors[kind]
        drawn = [_drawn(hit, least, injected, marked, shown) for hit in hits if hit.kind == kind]
        cut = len(drawn)  # confidence orders, too: some above the cut may score less
        while cut and not drawn[cut - 1].is_above:
            cut -= 1
        floor = None if least is None else percent_of(least)
        if drawn:
            groups.append(Group(kind, drawn[:cut], drawn[cut:], floor))
    return groups


def injected_in(recall: Mapping[str, Any]) -> set[str]:
    """Return the ids of what an agent would get: a lesson that the budget cut out is not in the text."""
    lessons = [Hit.from_json(hit) for hit in recall["hits"]]
    within = {hit.lesson_id for hit in lessons if block.header(hit) in recall["text"]}
    return within | {hit["lesson_id"] for hit in recall["skills"]}


def _drawn(
    hit: Hit,
    least: float | None,
    injected: set[str],
    marked: re.Pattern[str] | None,
    shown: Callable[[str], str],
) -> Drawn:
    title = " ".join(clean(block.named(hit)).split())
    return Drawn(
        hit,
        _parts(title, marked),
        shown(hit.path),
        block.signed(clean(hit.author), hit).removeprefix(" · "),
        [] if hit.withheld else excerpt(hit.text, marked),
        hit.lesson_id in injected,
        least is not None and hit.reason >= least,
        hit.terms,
        list(zip(TERMS, hit.weighted, strict=False)),
    )


def excerpt(text: str, marked: re.Pattern[str] | None) -> list[Part]:
    """Return a piece of a text around the first word of the query, in parts."""
    plain = " ".join(clean(text[:SCANNED_CHARS]).split())
    match = marked.search(plain) if marked else None
    first = max(0, match.start() - BEFORE_CHARS) if match else 0
    if first:
        first = plain.find(" ", first, match.start() if match else first) + 1 or first
    piece = plain[first : first + EXCERPT_CHARS]
    if first + EXCERPT_CHARS < len(plain):
        piece = piece.rpartition(" ")[0] or piece
        piece += " …"
    return _parts(f"… {piece}" if first else piece, marked)


def _pattern(query: str) -> re.Pattern[str] | None:
    """Return what matches words that begin like one of a query: endings differ, and it is being typed."""
    words = plain_words(query)
    words |= {word for word in re.findall(r"\w+", query.casefold()) if not word.isascii()}
    words |= set(re.findall(r"\d+", query))
    if not words:
        return None
    ordered = sorted(words, key=len, reverse=True)[:MAX_WORDS]
    return re.compile(rf"\b(?:{'|'.join(map(re.escape, ordered))})\w*", re.IGNORECASE)


def _parts(text: str, marked: re.Pattern[str] | None) -> list[Part]:
    parts: list[Part] = []
    end = 0
    for match in marked.finditer(text) if marked else ():
        parts += [(text[end : match.start()], False), (match[0], True)]
        end = match.end()
    return [part for part in [*parts, (text[end:], False)] if part[0]]
