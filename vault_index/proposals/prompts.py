"""A proposal beside the vault: what its prompts find, and whether a lesson says it already.

The score of a draft is that of a search: the cosine of its vectors, and BM25 as LanceDB counts it, by
the words of the lessons that are there. For 240 hits of the evaluation set, each scored as a draft, it
differs from the score in the index by 0.001 in the median and 0.04 at the 95th percentile (0.09 at
most): the stems of words are about those of LanceDB.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vault_index.errors import EmbedderError
from vault_index.index import rows
from vault_index.lesson.parse import Lesson
from vault_index.proposals import draft, shelf
from vault_index.search import entries, floor, query, scoring, taught, unindexed
from vault_index.search.query import Query
from vault_index.search.scoring import PIECE_WEIGHT
from vault_index.store import filters

if TYPE_CHECKING:
    import numpy as np

    from vault_index.proposals.draft import Proposal
    from vault_index.search.hit import Hit
    from vault_index.store.reader import Reader
    from vault_index.vault import Vault

SHOWN = 4  # the best lessons of a prompt, beside which the draft has a place
SAMPLE = 500  # lessons that say how long one is


@dataclass(frozen=True, slots=True)
class _Draft:
    """A draft as the index would have it. `vectors` are of its whole and of its pieces."""

    words: Counter[str]
    length: int
    vectors: Sequence[np.ndarray]
    confidence: int


def outlook(
    vault: Vault,
    lesson: Lesson,
    fires_on: Sequence[str],
    silent_on: Sequence[str],
    changes: str = "",
) -> list[dict[str, Any]]:
    """Return for each prompt `now`, the best lesson, and `then`, the draft in its place among others.

    Each has `prompt` and `is_silent`, whether it should stay silent. `now` has `id`, `title`, `score`
    and `is_above` the floor, or is None; `then` has `place`, 1 for the best (5 and more are one),
    `score` and `is_above`.
    `changes` is the id of a lesson in whose place the draft comes.
    """
    if not fires_on and not silent_on:
        return []
    drafted = _of(vault, lesson)
    score = _scorer(vault, drafted)
    prompts = [*((prompt, False) for prompt in fires_on), *((each, True) for each in silent_on)]
    return [
        {
            "prompt": prompt,
            "is_silent": is_silent,
            **_found(vault, drafted, score, prompt, changes, is_silent),
        }
        for prompt, is_silent in prompts
    ]


def _found(
    vault: Vault,
    drafted: _Draft,
    score: Callable[[str], float],
    prompt: str,
    changes: str,
    is_silent: bool,
) -> dict[str, Any]:
    results = query.run(vault, Query(prompt, SHOWN, for_agent=True))
    least = floor.in_force(vault, text_only=bool(results.text_only))
    others = [hit for hit in results.hits if hit.lesson_id != changes]
    own = score(prompt)
    taught = 0.0 if is_silent else 1.0  # the cosine of a prompt with itself: see `search.taught`
    ranked = scoring.rank_of(own + taught, drafted.confidence)
    return {
        "now": _as_json(results.hits[0], least) if results.hits else None,
        "then": {
            "place": 1 + sum(scoring.rank(hit) > ranked for hit in others),
            "score": round(own, 3),
            "is_above": not is_silent,  # the prompt is a taught one then
        },
    }


def _as_json(hit: Hit, least: float | None) -> dict[str, Any]:
    score = round(hit.score, 3)
    is_above = least is None or hit.score >= least
    return {"id": hit.lesson_id, "title": hit.title, "score": score, "is_above": is_above}


def _of(vault: Vault, lesson: Lesson) -> _Draft:
    made = rows.of_lesson(lesson, PATH, None)
    words = Counter(map(unindexed.stem_of, unindexed.words_of(made[0]["fulltext"])))
    vectors: Sequence[np.ndarray] = []
    try:
        embedder, _ = query.embedder_for(vault, vault.open_index())
        vectors = rows.embed(embedder, made) if embedder else []
    except EmbedderError:  # the search says so, too
        pass
    return _Draft(words, sum(words.values()), vectors, lesson.confidence)


def _scorer(vault: Vault, drafted: _Draft) -> Callable[[str], float]:
    """Return what scores the draft for a prompt as a search would."""
    opened = vault.open_index()
    usual = _usual_length(opened.store)

    def score(prompt: str) -> float:
        text = query.searched(prompt)
        vector, _ = query.query_vector(vault, opened, text)
        cosine = 0.0
        if vector is not None and drafted.vectors:
            whole, *pieces = (float(own @ vector) for own in drafted.vectors)
            cosine = max([whole, *(PIECE_WEIGHT * piece for piece in pieces)])
        words = [
            word for word in unindexed.words_of(text) if drafted.words[unindexed.stem_of(word)]
        ]
        spread = {word: _lessons_with(opened.store, word) for word in dict.fromkeys(words)}
        long = drafted.length / usual
        matched = (
            unindexed.bm25_score(
                drafted.words[unindexed.stem_of(word)], long, spread[word] + 1, opened.lessons + 1
            )
            for word in words  # the draft being one of the lessons
        )
        return cosine + scoring.FULL_TEXT_WEIGHT * sum(matched)

    return score


def _lessons_with(table: Reader, word: str) -> int:
    return len(table.matches(word, scoring.MAX_SCORED)[0])


def _usual_length(table: Reader) -> float:
    """Return how many words a lesson has on average."""
    texts = table.column(table.schema.full_text, filters.WHOLE)
    if not len(texts):
        return 1.0
    some = texts.take(list(range(0, len(texts), max(1, len(texts) // SAMPLE)))).to_pylist()
    return max(1.0, sum(len(unindexed.words_of(text)) for text in some) / max(1, len(some)))


# Whether a draft says what a lesson, or a rejected proposal, says already.
#
# By the words, and by the model where there is one. The index is asked, in the watcher where one runs.

CANDIDATES = 5  # lessons with most of the words that are compared
NEAREST_ROWS = 16  # passages, nearest by vector: of a long lesson several may be near
MAX_LIKE = 3
PATH = "proposal.md"


def of(vault: Vault, proposal: Proposal, without: str = "") -> dict[str, Any]:
    """Compare a proposal with the lessons in the index and the rejected proposals of a vault.

    Return `same`, the [id, title] of the lesson that has this text, or None; `near`, lessons as
    [id, title, likeness], the most like first; `nearest`, the first lesson however little it is like
    it, or None; `rejected`; the `categories` of all lessons; and `embedder` and `vector`, "" without.
    `without` is the id of a lesson that is left out.
    """
    title, text = proposal.title, proposal.text
    vector = _vector(vault, Lesson("", PATH, title, text))
    every, same = [], None
    own, id = shelf.hashed(draft.words(f"{title} {text}")), draft.id_of(title, text)
    for row, cosine in _candidates(vault, f"{title} {text}", vector):
        if row["lesson_id"] == without:
            continue
        if draft.id_of(row["title"], row["text"]) == id:
            same = [row["lesson_id"], row["title"]]
        other = shelf.hashed(draft.words(f"{row['title']} {row['text']}"))
        alike = shelf.words_in_common(own, other)
        is_near = alike >= shelf.SAME_WORDS or cosine >= taught.DUPLICATE_COSINE
        every.append(([row["lesson_id"], row["title"], round(max(alike, cosine), 3)], is_near))
    every.sort(key=lambda each: (-each[0][2], each[0][0]))
    seen = {
        "embedder": "" if vector is None else vault.open_index().embedder,
        "vector": "" if vector is None else shelf.packed(vector),
    }
    rejected = shelf.same_sketch(
        shelf.sketch_of(proposal, seen), shelf.rejected(shelf.folder_of(vault))
    )
    return {
        "same": same,
        "near": [lesson for lesson, is_near in every if is_near][:MAX_LIKE],
        "nearest": every[0][0] if every else None,
        "categories": list(entries.tally(vault)),
        "rejected": rejected is not None,
        **seen,
    }


def _vector(vault: Vault, lesson: Lesson) -> np.ndarray | None:
    """Return the vector of a draft's beginning; None without an embedder.

    The index is not asked for it, as it is for lessons: a draft is new.
    """
    embedder, _ = query.embedder_for(vault, vault.open_index())
    if embedder is None:
        return None
    return rows.embed(embedder, rows.of_lesson(lesson, PATH, None)[:1])[0]


def _candidates(
    vault: Vault, text: str, vector: np.ndarray | None
) -> Iterator[tuple[dict[str, Any], float]]:
    """Yield the lessons that have most of the words of a text, and those nearest to a vector.

    Each with its cosine, 0 without a vector. They are asked for by row: a search, and a filter of
    their ids, take three times as long.
    """
    import numpy as np

    store = vault.open_index().store
    listed = store.matches(query.searched(text), CANDIDATES)[0].tolist()
    if vector is not None:
        listed += store.nearest(vector, NEAREST_ROWS)[0].tolist()
    places = np.array(list(dict.fromkeys(listed)), int)
    cosines = np.zeros(len(places)) if vector is None else store.cosines(places, vector)
    for row, cosine in zip(store.take(places), cosines.tolist(), strict=True):
        if row["is_whole"] and not row["withheld"]:
            yield row, cosine
