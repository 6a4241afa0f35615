"""A proposal beside the vault: whether a lesson says it already, and what its prompts would find.

A draft is scored as a search would: the cosine of its vectors, and BM25 as LanceDB counts it, by the
words of the lessons. For 240 hits of the evaluation set, each scored as a draft, that differs from the
index by 0.001 in the median and 0.04 at the 95th percentile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from vault_index.errors import EmbedderError
from vault_index.index import rows
from vault_index.lesson.category import prefixes
from vault_index.lesson.parse import Lesson
from vault_index.proposals import draft, fingerprint, store
from vault_index.proposals.fingerprint import Comparison
from vault_index.retrieval import duplicates, entries, evidence, floor, query, scoring, unindexed
from vault_index.retrieval.hit import Hit, Query
from vault_index.retrieval.scoring import PIECE_WEIGHT
from vault_index.store import filters
from vault_index.text.words import searched_words, stem_of

if TYPE_CHECKING:
    import numpy as np

    from vault_index.proposals.draft import Proposal
    from vault_index.store.reader import Reader
    from vault_index.store.schema import LessonRow
    from vault_index.vault import Vault

CANDIDATES = 5  # lessons with most of the words that are compared
NEAREST_ROWS = 16  # passages, nearest by vector: of a long lesson several may be near
MAX_LIKE = 3
PATH = "proposal.md"


def compare(vault: Vault, proposal: Proposal, without: str = "") -> Comparison:
    """Compare a proposal with the lessons in the index and the rejected proposals of a vault.

    `without` is the id of a lesson that is left out.
    """
    title, text = proposal.title, proposal.text
    beginning = rows.of_lesson(Lesson("", PATH, title, text), PATH, None)[:1]
    vector = next(iter(_vectors(vault, beginning)), None)
    scored, same = [], None
    own_words, id = fingerprint.hashes(draft.words(f"{title} {text}")), draft.id_of(title, text)
    spoken = draft.words(text)
    joined, is_long = " ".join(spoken), len(set(spoken)) >= draft.MIN_IDENTITY_WORDS
    for row, cosine in _candidates(vault, f"{title} {text}", vector):
        if row["lesson_id"] == without:
            continue
        is_same = draft.id_of(row["title"], row["text"]) == id
        if is_same or (is_long and joined in " ".join(draft.words(row["text"]))):
            same = row["lesson_id"], row["title"]
        other = fingerprint.hashes(draft.words(f"{row['title']} {row['text']}"))
        alike = fingerprint.words_in_common(own_words, other)
        is_near = alike >= fingerprint.SAME_WORDS or cosine >= duplicates.DUPLICATE_COSINE
        scored.append(((row["lesson_id"], row["title"], round(max(alike, cosine), 3)), is_near))
    scored.sort(key=lambda each: (-each[0][2], each[0][0]))
    used = entries.examples(vault)
    offered = used | {path: "" for path in vault.config.taxonomy if path not in used}
    above = {prefix for path in offered for prefix in prefixes(path)}
    compared = Comparison(
        same=same,
        near=tuple(lesson for lesson, is_near in scored if is_near)[:MAX_LIKE],
        nearest=scored[0][0] if scored else None,
        closest=tuple(lesson for lesson, _ in scored[:CANDIDATES]),
        categories=tuple(sorted(above)),
        offered=offered,
        embedder=vault.open_index().embedder if vector is not None else "",
        vector=fingerprint.pack(vector) if vector is not None else "",
    )
    same_as = fingerprint.find_same(fingerprint.create(proposal, compared), store.rejected(vault))
    return replace(compared, rejected=same_as is not None)


def _vectors(vault: Vault, pieces: Sequence[LessonRow]) -> Sequence[np.ndarray]:
    embedder, _ = query.embedder_for(vault, vault.open_index())
    return rows.embed(embedder, pieces) if embedder else []


def _candidates(
    vault: Vault, text: str, vector: np.ndarray | None
) -> Iterator[tuple[dict[str, Any], float]]:
    """Yield the lessons that have most of the words of a text, and those nearest to a vector.

    Each with its cosine, 0 without a vector. They are asked for by row: a search, and a filter of
    their ids, take three times as long.
    """
    import numpy as np

    table = vault.open_index().store
    listed = table.matches(query.searched(text))[0][:CANDIDATES].tolist()
    if vector is not None:
        listed += table.nearest(vector, NEAREST_ROWS)[0].tolist()
    places = np.array(list(dict.fromkeys(listed)), int)
    cosines = np.zeros(len(places)) if vector is None else table.cosines(vector)[places]
    for row, cosine in zip(table.take(places), cosines.tolist(), strict=True):
        if row["is_whole"] and not row["withheld"]:
            yield row, cosine


BESIDE = 4  # the best lessons of a prompt, beside which the draft has a place
SAMPLE = 500  # lessons that say how long one is


@dataclass(frozen=True, slots=True)
class BestLesson:
    """The best lesson that a prompt finds, and whether its score is above the floor.

    `by_words`: whether words alone found it.
    """

    id: str
    title: str
    score: float
    is_above: bool
    by_words: bool = False


@dataclass(frozen=True, slots=True)
class Outlook:
    """The lesson that a prompt finds `now`, and whether it `finds` a draft by its text alone.

    `other` is the id of another lesson that comes whole at it.
    """

    prompt: str
    now: BestLesson | None
    finds: bool
    other: str = ""


def outlook(
    vault: Vault, lesson: Lesson, prompts: Sequence[str], changes: str = ""
) -> list[Outlook]:
    """Return the outlook for each prompt of a draft.

    `changes` is the id of a lesson in whose place the draft comes.
    """
    if not prompts:
        return []
    drafted, answers = _Draft(vault, lesson), []
    for prompt in prompts:
        results = query.run(vault, Query(prompt, BESIDE, for_agent=True))
        floors = floor.in_force(vault, prompt, text_only=bool(results.text_only))
        least = floors.line if floors else None
        others = [hit.base for hit in results.hits if hit.lesson_id != changes]
        finds = least is None or evidence.reason_of(drafted.score(prompt), others) >= least
        best = results.hits[0] if results.hits else None
        now = _best(best, least) if best else None
        whole = [hit.id for hit in results.hits if floors and hit.is_above(floors.whole)]
        other = next((id for id in whole if id != changes), "")
        answers.append(Outlook(prompt, now, finds, other))
    return answers


def _best(hit: Hit, least: float | None) -> BestLesson:
    score, is_above = round(hit.shown_score, 3), hit.is_above(least)
    return BestLesson(hit.id, hit.title, score, is_above, hit.by_words)


class _Draft:
    """A draft as the index would have it: its words, and vectors of its whole and of its pieces."""

    def __init__(self, vault: Vault, lesson: Lesson) -> None:
        self._vault, self._opened = vault, vault.open_index()
        draft_rows = rows.of_lesson(lesson, PATH, None)
        self._words = Counter(map(stem_of, searched_words(draft_rows[0]["fulltext"])))
        self._length = sum(self._words.values()) / _usual_length(self._opened.store)
        self._vectors: Sequence[np.ndarray] = []
        with suppress(EmbedderError):  # the search says so, too
            self._vectors = _vectors(vault, draft_rows)

    def score(self, prompt: str) -> float:
        """Return the score of the draft for a prompt, as a search would count it."""
        text = query.searched(prompt)
        vector, _ = query.query_vector(self._vault, self._opened, text)
        cosine = 0.0
        if vector is not None and self._vectors:
            whole, *pieces = (float(each @ vector) for each in self._vectors)
            cosine = max([whole, *(PIECE_WEIGHT * piece for piece in pieces)])
        table, lessons = self._opened.store, self._opened.lessons + 1  # the draft is one of them
        matched = 0.0
        for word, number in Counter(searched_words(text)).items():
            if times := self._words[stem_of(word)]:
                having = 1 + len(table.matches(word)[0])
                matched += number * unindexed.bm25_score(times, self._length, having, lessons)
        return cosine + scoring.FULL_TEXT_WEIGHT * matched


def _usual_length(table: Reader) -> float:
    texts = table.column(table.schema.full_text, filters.WHOLE)
    if not len(texts):
        return 1.0
    some = texts.take(list(range(0, len(texts), max(1, len(texts) // SAMPLE)))).to_pylist()
    return max(1.0, sum(len(searched_words(text)) for text in some) / max(1, len(some)))
