"""Score the rows of a table for a query, and return the best as hits with their evidence.

The score is `cosine + 0.01 x BM25`, and what exact words and a taught prompt add: a plain sum of
evidence in absolute units. On the evaluation set it ranks better than either alone and than reciprocal
rank fusion, which loses the magnitude that the floor needs.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from vault_index.index.rows import ASKS, FIRES, LONG_WHOLE, SILENT, hash_of_prompt, names_of
from vault_index.index.skills import NOT_FOR, prompt_kind
from vault_index.lesson import identifiers
from vault_index.lesson.identifiers import Mark
from vault_index.retrieval.hit import Hit
from vault_index.store import filters
from vault_index.store.reader import Reader
from vault_index.text.words import STOP_WORDS, says_nothing, split_unspaced, words_of

if TYPE_CHECKING:
    import numpy as np

    from vault_index.store.reader import Families

# The cosine of a piece of a long lesson counts less than a whole lesson's, and the best of many pieces
# is higher by chance: its expected maximum is taken off. On a set of 646 notes, two thirds of them long,
# a weight of .8 alone costs recall@3 .02 and recall at 2% false injections .07 against no pieces; .6 and
# .7 cost nothing. On documentation of two frameworks (252 documents, half of them long; 271 headings
# from deep within as prompts) this keeps .72 of them among the first three, .8 alone .76, no pieces .55.
#
# The expected maximum of n standard normal variables is sqrt(2 ln n) - 0.6, right to 0.11 from 2 to
# 1,000 (Blom's formula: 0.59, 1.55 for 10, 3.23).
PIECE_WEIGHT = 0.75
CHANCE = 0.03  # about half of the deviation of the cosines of a document's pieces


def with_texts(table: Reader, rows: list[dict[str, Any]], query: str) -> list[dict[str, Any]]:
    """Return rows with the piece that has most words of a query in the place of each long whole."""
    long = [row["lesson_id"] for row in rows if row["position"] == LONG_WHOLE]
    if not long:
        return rows
    words = set(words_of(query))
    most: dict[str, int] = {}
    best: dict[str, dict[str, Any]] = {}
    for piece in table.rows(("lesson_id", "position", "text"), filters.pieces_of(long)):
        id = piece["lesson_id"]
        count = len(words & set(words_of(piece["text"])))
        if count > most.get(id, 0):
            most[id], best[id] = count, piece | {"is_whole": False}
    return [
        row | best.get(row["lesson_id"], {}) if row["position"] == LONG_WHOLE else row
        for row in rows
    ]


FULL_TEXT_WEIGHT = 0.01  # of LanceDB's _score
# BM25 adds up over the words of a query, and each lesson has some of a long one by chance. Of 250 real
# prompts of other projects 21% with 17 to 32 words got a lesson, 55% with up to 64, 100% with over 128.
SUMMED_WORDS = 16
PROMPT_WEIGHT = 0.9  # of the cosine of a prompt of a skill that was built of lessons
# Of the cosine of a prompt that a lesson answers. Prompts are like each other by their form, and the best
# of several is higher by chance. Halves of 133 command pages, with prompts by an agent that saw the pages
# alone, and with a half of the tasks as prompts for the other half: the right one first, whole or a line;
# and of what no page answers a share gets one whole, or a line:
#
#              by an agent                     a half of the tasks
#     none     .69, .38/.66; .11/.35           .68, .37/.67; .09/.36
#     .85      .75, .43/.70; .12/.38           .77, .49/.75; .11/.39
#     1        .75, .47/.73; .13/.45           .79, .51/.77; .11/.47
ANSWERED_WEIGHT = 0.85
CANDIDATES = 16  # lessons, at least, that confidence may put in order


@dataclass(frozen=True, slots=True)
class Evidence:
    """The evidence for the rows of a reader, in the order of their places."""

    cosine: np.ndarray  # float[n]
    text: np.ndarray  # float[n], 0.01 x BM25
    inside: np.ndarray  # bool[n], of the rows that are asked for


def gather(
    reader: Reader,
    text: str,
    vector: np.ndarray | None,
    mask: np.ndarray | None,
    *,
    also: Sequence[int] = (),
    weight: float = FULL_TEXT_WEIGHT,
) -> Evidence:
    """Return the evidence of all rows; those within a mask, bool[n], are asked for, or all.

    `also` are places that count however little there is for them. BM25 counts `weight`. Without a vector
    rows need a word of the text.
    """
    import numpy as np

    count = len(reader.ids)
    cosine = np.zeros(count) if vector is None else reader.cosines(vector)
    words = np.zeros(count)
    if text:
        matched, scores = reader.matches(text)
        words[matched] = weight * scores
    inside = np.ones(count, bool) if mask is None else mask.copy()
    if vector is None:
        inside &= words > 0
    inside[list(also)] = True
    return Evidence(cosine, words, inside)


def weight_of(query: str) -> float:
    """Return the weight of BM25 in a score: the less, the more words of substance a query has."""
    words = len(set(_words_of_substance(query)))
    return FULL_TEXT_WEIGHT * min(1.0, SUMMED_WORDS / max(1, words))


@dataclass(frozen=True, slots=True)
class Scored:
    """Some of the best hits, best first; and those that a prompt of their `silent_on` keeps out."""

    hits: list[Hit]
    silent: list[tuple[Hit, str]]  # with the reason
    has_more: bool


def candidates(
    table: Reader,
    query: str,
    vector: np.ndarray | None,
    wanted: range,
    where: str | None,
    *,
    exact: bool = True,
) -> Scored:
    """Score every lesson; return those at the places `wanted` by score.

    Without `exact`, as for the output of a command, no exact words are looked up, and BM25 counts in full
    however long the text.
    """
    import numpy as np

    words = look_up(table, query, where) if exact else Exact()
    weight = weight_of(query) if exact else FULL_TEXT_WEIGHT
    rows, shown, closest, acting = _evidence(table, query, vector, where, words, weight)
    has_pieces = table.schema.has_pieces
    score = rows.cosine + rows.text
    for whole, (cosine, _) in acting.fires.items():
        score[whole] += cosine
    for whole, (about, passing) in words.rows.items():
        score[whole] += about + passing
    silenced = sorted(acting.silent)
    is_left_out = ~rows.inside
    is_left_out[silenced] = True
    order = np.lexsort((-score, is_left_out))[: (~is_left_out).sum()]
    has_more, order = len(order) > wanted.stop, order[wanted.start : wanted.stop]

    def hits_at(places: list[int]) -> list[Hit]:
        records = table.take(shown[places])
        if vector is None and has_pieces:
            records = with_texts(table, records, query)
        hit_of = Hit.of_lesson if has_pieces else _skill
        scored = zip(records, rows.cosine[places].tolist(), rows.text[places].tolist(), strict=True)
        hits = _with_taught_prompts(
            table, [hit_of(*each) for each in scored], places, acting, words
        )
        return _with_prompts(table, hits, places, closest)

    hits = _nearest_sections(hits_at(order.tolist()))
    # equal ones by id, so that the order is fixed
    hits.sort(key=lambda hit: (-hit.rank, hit.lesson_id))
    silent = [(hit, f"silent_on: {hit.taught_prompt}") for hit in hits_at(silenced)]
    return Scored(hits, silent, has_more)


def _evidence(
    table: Reader,
    query: str,
    vector: np.ndarray | None,
    where: str | None,
    words: Exact,
    weight: float,
) -> tuple[Evidence, np.ndarray, NearestPrompts, ActingPrompts]:
    """Return the evidence for lessons, the place that each shows, and the prompts that count and act."""
    import numpy as np

    has_pieces, acting = table.schema.has_pieces, ActingPrompts()
    if vector is None and query and has_pieces:
        acting = _acting(table.families, *_equal(table, query, where))
    also = [*words.rows, *acting.fires, *acting.silent]
    rows = gather(table, query, vector, table.mask(where), also=also, weight=weight)
    if not has_pieces or vector is None:
        count = len(rows.inside)
        return rows, np.arange(count), NearestPrompts(np.full(count, -1), np.zeros(count)), acting
    inside = np.flatnonzero(rows.inside)
    acting = _acting(table.families, inside, rows.cosine[inside])
    rows, shown = _with_pieces(rows, table.families)
    rows, closest = _with_answered(rows, table.families)
    return rows, shown, closest, acting


def _with_answered(rows: Evidence, family: Families) -> tuple[Evidence, NearestPrompts]:
    """Count the prompts that lessons answer as their own: the best of them, where it is nearer."""
    import numpy as np

    count = len(rows.inside)
    closest = NearestPrompts(np.full(count, -1), np.zeros(count))
    is_answered = (family.taught == ASKS) | (family.taught == FIRES)
    if not is_answered.any():
        return rows, closest
    prompts, wholes = family.places[is_answered], family.wholes[is_answered]
    order = np.argsort(rows.cosine[prompts])  # the nearest is written last
    prompts, wholes = prompts[order], wholes[order]
    nearest = np.full(count, -np.inf)
    nearest[wholes] = ANSWERED_WEIGHT * rows.cosine[prompts]
    closest.prompts[wholes] = prompts
    is_nearer = nearest > rows.cosine
    closest.prompts[~is_nearer] = -1
    closest.more[is_nearer] = (nearest - rows.cosine)[is_nearer]
    return replace(rows, cosine=np.maximum(rows.cosine, nearest)), closest


def _with_pieces(rows: Evidence, family: Families) -> tuple[Evidence, np.ndarray]:
    """Count pieces for their wholes; return with them the place that each row shows, int64[n].

    A lesson has the words of its whole, and the better cosine of its whole and its pieces, of which that
    of a piece counts `PIECE_WEIGHT`. The best of many pieces is higher by chance: the more of them a
    lesson has, the more is taken off. It shows the piece that is nearest to the query.
    """
    import numpy as np

    count = len(rows.inside)
    shown, inside = np.arange(count), rows.inside.copy()
    inside[family.places] = False  # pieces and taught prompts have said what they say
    is_piece = family.taught == ""
    pieces, wholes = family.places[is_piece], family.wholes[is_piece]
    order = np.argsort(rows.cosine[pieces])  # the nearest is written last
    pieces, wholes = pieces[order], wholes[order]
    nearest = np.full(count, -np.inf)
    nearest[wholes] = rows.cosine[pieces]
    is_nearer = nearest[wholes] > rows.cosine[wholes]
    shown[wholes[is_nearer]] = pieces[is_nearer]
    counts = np.bincount(wholes, minlength=count)
    chance = CHANCE * np.maximum(0.0, np.sqrt(2 * np.log(np.maximum(counts, 1))) - 0.6)
    cosine = np.maximum(rows.cosine, PIECE_WEIGHT * nearest - chance)
    return Evidence(cosine, rows.text, inside), shown


def _with_taught_prompts(
    table: Reader, hits: Sequence[Hit], places: Sequence[int], acting: ActingPrompts, words: Exact
) -> list[Hit]:
    """Return the hits of lessons at these places with exact words and the taught prompt that acts."""
    prompts = [acting.fires.get(row) or acting.silent.get(row) for row in places]
    texts = iter(table.take([prompt[1] for prompt in prompts if prompt]))
    scored = []
    for hit, row, prompt in zip(hits, places, prompts, strict=True):
        about, passing = words.rows.get(row, (0.0, 0.0))
        if not (prompt or passing or words.unknown):
            scored.append(hit)
            continue
        cosine = prompt[0] if prompt and row in acting.fires else 0.0
        scored.append(
            replace(
                hit,
                score=hit.score + (about + passing) + cosine,
                exact=about + passing,
                passing=passing,
                is_named=row in words.named,
                no_reason=passing + words.unknown,
                taught=cosine,
                taught_prompt=next(texts)["text"] if prompt else "",
            )
        )
    return scored


def _with_prompts(
    table: Reader, hits: list[Hit], places: list[int], closest: NearestPrompts
) -> list[Hit]:
    """Return the hits of lessons at these places with the prompt of theirs that counts."""
    prompts, more = closest.prompts[places].tolist(), closest.more[places].tolist()
    texts = iter(table.take([prompt for prompt in prompts if prompt >= 0]))
    return [
        replace(hit, prompt=next(texts)["text"], prompted=cosine) if prompt >= 0 else hit
        for hit, prompt, cosine in zip(hits, prompts, more, strict=True)
    ]


def _skill(row: Mapping[str, Any], cosine: float, full_text: float) -> Hit:
    kind = prompt_kind(row["id"])
    hit = Hit.of_skill(row, cosine * (PROMPT_WEIGHT if kind else 1), full_text)
    return replace(hit, kind=kind) if kind == NOT_FOR else hit


# The cosine from which a prompt is near a taught one. Of 400 pairs by an author who has not seen the
# code, .33 of the paraphrases and .02 of other prompts on the same subject reach it; of 200
# further pairs .36 and .03. At .60 it is .46 and .07, at .80 .21 and 0: MiniLM separates no better, and
# words in common do not help.
NEAR = 0.70
SAME = 0.01  # cosines that differ by less are equal: silence wins


@dataclass(frozen=True, slots=True)
class NearestPrompts:
    """The prompt of each lesson that counts for a query, and what it adds to the lesson's cosine."""

    prompts: np.ndarray  # int64[n], its place; -1 where the lesson's text is nearer
    more: np.ndarray  # float[n]


@dataclass(frozen=True, slots=True)
class ActingPrompts:
    """The taught prompts that act on a query: place of a whole -> (cosine, place of the prompt).

    A lesson fires near its `fires_on`; near its `silent_on` it stays out, whatever its score. Each prompt
    is a row of the index, searched with the rest in one call.
    """

    fires: dict[int, tuple[float, int]] = field(default_factory=dict)
    silent: dict[int, tuple[float, int]] = field(default_factory=dict)


def _acting(families: Families, places: np.ndarray, cosines: np.ndarray) -> ActingPrompts:
    """Return the acting prompts, of rows int64[n] with their cosines to the query, float32[n]."""
    import numpy as np

    close = np.flatnonzero(cosines >= NEAR)
    close = close[np.isin(places[close], families.places)]
    nearest: dict[str, dict[int, tuple[float, int]]] = {FIRES: {}, SILENT: {}}
    family = families.places.searchsorted(places[close]).tolist()
    for row, index in zip(close.tolist(), family, strict=True):
        kind, whole = str(families.taught[index]), int(families.wholes[index])
        if kind in nearest:
            prompt = float(cosines[row]), int(places[row])
            nearest[kind][whole] = max(prompt, nearest[kind].get(whole, prompt))
    fires, silent = nearest[FIRES], nearest[SILENT]
    for whole in fires.keys() & silent.keys():
        loser = silent if fires[whole][0] > silent[whole][0] + SAME else fires
        del loser[whole]
    return ActingPrompts(fires, silent)


def _equal(table: Reader, query: str, where: str | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of prompts that equal a query, int64[n], and ones, where vectors are missing."""
    import numpy as np

    places = np.empty(0, np.int64)
    if (table.families.taught != "").any():  # or nothing is asked of the table
        same = filters.all_of(where, filters.of_taught([hash_of_prompt(query)]))
        places = table.places(same or "")
    return places, np.ones(len(places), np.float32)


def _nearest_sections(hits: Iterable[Hit]) -> list[Hit]:
    """Return hits so that a prompt in the frontmatter of several sections is that of the best of them."""
    ordered = sorted(hits, key=lambda hit: hit.score)
    firing = {(hit.path, hit.taught_prompt): hit.lesson_id for hit in ordered}
    asking = {(hit.path, hit.prompt): hit.lesson_id for hit in ordered}
    return [
        _with_own_prompts(
            hit,
            fires=firing[hit.path, hit.taught_prompt] == hit.lesson_id,
            asks=asking[hit.path, hit.prompt] == hit.lesson_id,
        )
        for hit in ordered
    ]


def _with_own_prompts(hit: Hit, *, fires: bool, asks: bool) -> Hit:
    if hit.taught and not fires:
        hit = replace(hit, score=hit.score - hit.taught, taught=0.0, taught_prompt="")
    if hit.prompt and not asks:
        score, cosine = hit.score - hit.prompted, hit.cosine - hit.prompted
        hit = replace(hit, score=score, cosine=cosine, prompt="", prompted=0.0)
    return hit


# What exact words of a query say: an identifier, flag, path or quoted phrase in few lessons.
#
# A rare word that a lesson is about is strong evidence. Where it stands in passing it helps to find
# the lesson, and is no reason to inject it. One that stands in no lesson speaks a little against all.
# Rare is relative: the weights grow with the logarithm of the number of lessons. Measured on 300
# prompts with an identifier and on halves, tenths and fiftieths of the development notes.
# of the score, for each unit of rarity (7.1 for one lesson of 1,870, 1.4 for one of 5)
ABOUT = 0.10
PASSING = 0.05
UNKNOWN = 0.10  # for each identifier or short phrase that no lesson has
MOST = 0.7  # that all exact words of a query add to a lesson
MAX_UNKNOWN = 0.2
RARE = 32  # lessons; a word in more is common
TERM_WORDS = 3  # a longer phrase is a sentence: that no lesson has it word for word says nothing
PHRASE_ROWS = 200  # lessons, the best by words, that are read for a phrase that adds to a score
REQUIRED_ROWS = 5000  # and for one that a hit must have: "one" has many lessons
# A query of so few words is a name, perhaps: what few lessons have of it, has a lexicon's rarity.
NAME_WORDS, FEW, NAME_LESSONS, NAME_ROWS = 3, 3, 200, 64
_NAMES = ("title", "aliases", "tags", "categories", "text")
# The words of substance in a prompt: beside more of them an identifier is a smaller part of it, by the
# square of their share. Of 610 shell tasks the bonus by the share alone wins 3 first places and loses 13.
ABOUT_WORDS, PASSING_WORDS = 3, 4
_WORD = re.compile(r"[^\W_][\w'-]*")


@dataclass(frozen=True, slots=True)
class Exact:
    """The score that exact words add to lessons: place of a whole -> (about, in passing)."""

    rows: dict[int, tuple[float, float]] = field(default_factory=dict)
    unknown: float = 0.0  # what speaks against all lessons
    named: frozenset[int] = frozenset()  # the places of the few that have the name that a query is


def look_ahead(table: Reader, query: str) -> None:
    """Have LanceDB look for what a search of a query will ask it, beside other work."""
    marks = identifiers.of_query(query) if table.schema.exact_text else ()
    table.look_ahead(query, (mark.text for mark in marks if not mark.is_phrase))


def look_up(table: Reader, query: str, where: str | None) -> Exact:
    """Score the exact words of a query for the lessons that a filter keeps."""
    substance = _words_of_substance(query)
    is_short = 0 < len(substance) <= NAME_WORDS
    marks = identifiers.of_query(query)
    if not (marks or is_short) or not table.schema.exact_text:
        return Exact()
    words = max(1, len(substance))
    about_share, share = min(1.0, ABOUT_WORDS / words), min(1.0, PASSING_WORDS / words)
    unknown_share = about_share
    about_share, share = about_share**2, share**2
    lessons = max(1, table.count() - len(table.families.places))
    rows_of = {mark.text: _rows_with(table, mark, where) for mark in marks}
    unknown = sum(
        UNKNOWN
        for mark in marks
        if rows_of[mark.text] == {} and not mark.is_number and len(mark.text.split()) <= TERM_WORDS
    )
    wholes = _wholes(query, substance) if is_short else set()
    if is_short:
        rows_of |= _named(table, query, {*wholes, *substance}, wholes | {*rows_of}, lessons, where)
    about, passing = defaultdict[int, float](float), defaultdict[int, float](float)
    for having in filter(None, rows_of.values()):
        # a name says as much in a small vault: that few lessons have it is no chance
        size = max(lessons, NAME_LESSONS) if is_short and len(having) <= FEW else lessons
        rarity = max(0.0, math.log((size + 1) / (len(having) + 0.5)))
        for row, is_about in having.items():
            passing[row] += (ABOUT if is_short else PASSING) * rarity * share
            about[row] += ABOUT * rarity * about_share if is_about else 0.0
    rows = {row: (min(MOST, about[row]), min(MOST, value)) for row, value in passing.items()}
    names = wholes | {mark.text for mark in marks} if is_short else set()
    few = (found for name in names if (found := rows_of.get(name)) and len(found) <= FEW)
    named = frozenset(row for found in few for row in found)
    return Exact(rows, min(MAX_UNKNOWN, unknown) * unknown_share, named)


def _wholes(query: str, words: Sequence[str]) -> set[str]:
    """Return the names that a short query as a whole may be."""
    return {identifiers.fold(query).strip("?!. "), *(words if len(words) == 1 else ())}


def _named(
    table: Reader,
    query: str,
    names: set[str],
    subjects: set[str],
    lessons: int,
    where: str | None,
) -> dict[str, dict[int, bool]]:
    """Return the lessons that have each of some names of a short query, where few have it.

    A lesson may be about some of them, the `subjects`: that it names, or that it alone has, and not just
    once in a long text.
    """
    best = _texts(table, table.matches(query, where)[0][:NAME_ROWS])
    found = {}
    for name in names:
        is_subject = name in subjects
        having = {
            row: values
            for row, values in best
            if identifiers.stands_in(name, _names(values), values["text"])
        }
        is_alone = len(having) == 1
        if 0 < len(having) <= max(1, min(FEW, lessons // 5)):
            found[name] = {
                row: is_subject
                and (
                    identifiers.is_about(name, names_of(values), values["text"])
                    or (is_alone and not identifiers.is_in_passing(name, values["text"]))
                )
                for row, values in having.items()
            }
    return found


def with_phrases(
    table: Reader, query: str, where: str | None
) -> tuple[str | None, tuple[str, ...]]:
    """Return a filter that also keeps only the lessons in which each quoted phrase stands.

    If no lesson has all of them, it is the filter as it was, and the phrases. Full text cannot look up
    a phrase without a word of substance, such as "->": it filters nothing.
    """
    condition, quoted = where, tuple(identifiers.phrases(query))
    for phrase in map(identifiers.fold, quoted):
        having = _with_phrase(table, phrase, condition, REQUIRED_ROWS)
        if having:
            condition = filters.all_of(condition, filters.of_rows(table.ids[list(having)].tolist()))
        elif _words_of_substance(phrase):
            return where, quoted
    return condition, ()


def _rows_with(table: Reader, mark: Mark, where: str | None) -> dict[int, bool] | None:
    """Return the lessons that have a mark, and whether they are about it; None if it is common."""
    if mark.is_phrase:
        having = _with_phrase(table, mark.text, where, PHRASE_ROWS)
        return None if len(having) > RARE else having
    for names in ((mark.text,), mark.parts):
        found: dict[int, bool] = {}
        for name in names:
            ids = table.identified(name, where)
            if len(ids) > RARE:
                return None
            found |= {
                row: identifiers.is_about(name, names_of(values), values["text"])
                for row, values in _texts(table, ids)
            }
        if found:
            return found
    return {}


def _with_phrase(table: Reader, phrase: str, where: str | None, limit: int) -> dict[int, bool]:
    best = table.matches(phrase, where)[0][:limit]
    return {
        row: identifiers.is_about(phrase, names_of(values), values["text"])
        for row, values in _texts(table, best)
        if identifiers.stands_in(phrase, _names(values), values["text"])
    }


def _names(row: Mapping[str, Any]) -> str:
    """Return the names of a lesson and of its categories, which stand there as words, too."""
    paths = " ".join(row["categories"] or ())
    return f"{names_of(row)}\n{paths}\n{paths.replace('-', ' ').replace('/', ' ')}"


def _texts(table: Reader, places: np.ndarray) -> Sequence[tuple[int, dict[str, Any]]]:
    return list(zip(places.tolist(), table.take(places, _NAMES), strict=True))


def _words_of_substance(query: str) -> list[str]:
    words = _WORD.findall(split_unspaced(query).lower())
    return [word for word in words if word not in STOP_WORDS and not says_nothing(word)]
