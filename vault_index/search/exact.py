"""What exact words of a query say: an identifier, flag, path or quoted phrase in few lessons.

A rare word that a lesson is about is strong evidence. Where it stands in passing it helps to find
the lesson, and is no reason to inject it. One that stands in no lesson speaks a little against all.
Rare is relative: the weights grow with the logarithm of the number of lessons. Measured on 300
prompts with an identifier and on halves, tenths and fiftieths of the development notes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from vault_index.lesson import identifiers
from vault_index.lesson.identifiers import Mark
from vault_index.store import filters

if TYPE_CHECKING:
    import numpy as np

    from vault_index.store.table import Table

ABOUT = (
    0.10  # of the score, for each unit of rarity (7.1 for one lesson of 1,870, 1.4 for one of 5)
)
PASSING = 0.05
UNKNOWN = 0.10  # for each identifier or short phrase that no lesson has
MOST = 0.7  # that all exact words of a query add to a lesson
MAX_UNKNOWN = 0.2
RARE = 32  # lessons; a word in more is common
TERM_WORDS = 3  # a longer phrase is a sentence: that no lesson has it word for word says nothing
PHRASE_ROWS = 200  # lessons, the best by words, that are read for a phrase that adds to a score
REQUIRED_ROWS = 5000  # and for one that a hit must have: "one" has many lessons
# The words of substance in a prompt: beside more of them an identifier is a smaller part of it.
ABOUT_WORDS, PASSING_WORDS = 3, 4
_WORD = re.compile(r"[^\W_][\w'-]*")
_STOP_WORDS = frozenset(
    """i me my we our you your he him his she her it its they them their what which who whom this that
    these those am is are was were be been being have has had having do does did doing a an the and but
    if or because as until while of at by for with about against between into through during before
    after above below to from up down in out on off over under again further then once here there when
    where why how all any both each few more most other some such no nor not only own same so than too
    very s t can will just don should now d ll m o re ve y get got please use using""".split()
)


@dataclass(frozen=True, slots=True)
class Exact:
    """What exact words add to lessons: row id of a whole -> (about, in passing)."""

    rows: dict[int, tuple[float, float]] = field(default_factory=dict)
    unknown: float = 0.0  # what speaks against all lessons


def look_up(table: Table, query: str, where: str | None) -> Exact:
    """Return what the exact words of a query say of the lessons that a filter keeps."""
    marks = identifiers.of_query(query)
    if not marks or not table.schema.exact_text:
        return Exact()
    words = max(1, _count_words(query))
    about_share, share = min(1.0, ABOUT_WORDS / words), min(1.0, PASSING_WORDS / words)
    lessons = max(1, table.count_wholes())
    about: dict[int, float] = {}
    passing: dict[int, float] = {}
    unknown = 0.0
    for mark in marks:
        having = _rows_with(table, mark, where)
        if having is None:
            continue
        if not having:
            if len(mark.text.split()) <= TERM_WORDS:
                unknown += UNKNOWN
            continue
        rarity = max(0.0, math.log((lessons + 1) / (len(having) + 0.5)))
        for row, is_about in having.items():
            passing[row] = passing.get(row, 0.0) + PASSING * rarity * share
            if is_about:
                about[row] = about.get(row, 0.0) + ABOUT * rarity * about_share
    rows = {
        row: (min(MOST, about.get(row, 0.0)), min(MOST, value)) for row, value in passing.items()
    }
    return Exact(rows, min(MAX_UNKNOWN, unknown) * about_share)


def with_phrases(table: Table, query: str, where: str | None) -> str | None:
    """Return a filter that also keeps only the lessons in which each quoted phrase stands.

    Full text cannot look up a phrase without a word of substance, such as "->": it filters nothing.
    """
    for phrase in map(identifiers.fold, identifiers.phrases(query)):
        having = _with_phrase(table, phrase, where, REQUIRED_ROWS)
        if having or _count_words(phrase):
            where = filters.all_of(where, filters.of_rows(having))
    return where


def _rows_with(table: Table, mark: Mark, where: str | None) -> dict[int, bool] | None:
    """Return the lessons that have a mark, and whether they are about it; None if it is common."""
    if mark.is_phrase:
        having = _with_phrase(table, mark.text, where, PHRASE_ROWS)
        return None if len(having) > RARE else having
    for names in ((mark.text,), mark.parts):
        every: dict[int, bool] = {}
        for name in names:
            ids = table.identified(name, RARE + 1, where)
            if len(ids) > RARE:
                return None
            every |= {
                row: identifiers.is_about(name, values["title"], values["text"])
                for row, values in _texts(table, ids)
            }
        if every:
            return every
    return {}


def _with_phrase(table: Table, phrase: str, where: str | None, limit: int) -> dict[int, bool]:
    matched, scores = table.matches(phrase, limit, where)
    best = matched[(-scores).argsort(kind="stable")][:limit]
    return {
        row: identifiers.is_about(phrase, values["title"], values["text"])
        for row, values in _texts(table, best)
        if identifiers.stands_in(phrase, values["title"], values["text"])
    }


def _texts(table: Table, ids: np.ndarray) -> Sequence[tuple[int, dict[str, Any]]]:
    listed = ids.tolist()
    return list(zip(listed, table.take(listed), strict=True))


def _count_words(query: str) -> int:
    return sum(word not in _STOP_WORDS for word in _WORD.findall(query.lower()))
