"""Search the lesson files themselves by their words, where there is no index to ask.

For the first prompt in a vault and while an index is built again: about what full text finds, without
vectors. 1,870 files take about as long as loading LanceDB.
"""

from __future__ import annotations

import math
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING

from vault_index.errors import LessonError
from vault_index.index import diff, rows
from vault_index.lesson import file, parse
from vault_index.retrieval.hit import Hit
from vault_index.retrieval.scoring import weight_of
from vault_index.store.schema import LessonRow
from vault_index.text import foreign
from vault_index.text.words import SMALL_WORDS, searched_words, split_unspaced, stem_of, words_of

if TYPE_CHECKING:
    from vault_index.vault import Vault

# BM25 about as LanceDB counts it, for text that is in no table: a draft, or files without an index.
#
# Its words and stems (`text.words`) are nearly the same as LanceDB's tokenizer makes.
K1, B = 1.2, 0.75  # of LanceDB's BM25


def bm25_score(times: int, length: float, having: int, total: int) -> float:
    """Return the BM25 weight of one word that occurs so many `times` in a text.

    `length` is the text's as a share of the usual, `having` of `total` texts have the word.
    """
    return rarity(having, total) * times * (K1 + 1) / (times + K1 * (1 - B + B * length))


def rarity(having: int, total: int) -> float:
    """Return the weight of a word that so many of `total` texts have."""
    return math.log(1 + (total - having + 0.5) / (having + 0.5))


# Where words alone are searched, a lesson needs two words of a prompt that few other prompts have. In a
# vault of few lessons, which cannot tell which words are rare, they must weigh so much: a word that no
# foreign prompt has weighs 6.3, one that 2% have 3.9. In vaults of 6 lessons .05 of the prompts on their
# subject that they do not answer and .005 of the others get one (.11 and .04 by two words), and .66 of
# those that they answer (.86); in vaults of 10 it is .07 and .01 (.12 and .05), and .58 (.82).
OWN_WORDS, OWN_WEIGHT = 2, 13.0
SMALL = 20  # lessons: fewer say nothing of which words are rare
COMMON_SHARE = 0.02  # of the foreign prompts: a word that more of them have weighs nothing
_SAYS_NOTHING = frozenset(map(stem_of, SMALL_WORDS))


@lru_cache(maxsize=1)
def _in_prompts() -> tuple[Counter[str], int]:
    prompts = foreign.prompts()
    stems = ({*map(stem_of, searched_words(prompt))} for prompt in prompts)
    return Counter(stem for each in stems for stem in each), len(prompts)


def only_by_own_words(prompt: str, hit: Hit, lessons: int) -> Hit:
    """Return a hit of full text; what it shares of a prompt is no reason if any prompt may share it.

    `lessons` are the vault's.
    """
    prompt_stems, text = (
        {*map(stem_of, searched_words(each))} for each in (prompt, f"{hit.names} {hit.own_words}")
    )
    having, total = _in_prompts()
    shared = (prompt_stems & text) - _SAYS_NOTHING
    telling = [stem for stem in shared if having[stem] <= COMMON_SHARE * total]
    weights = [
        math.log((total + 1) / (having[stem] + 0.5)) for stem in telling if not stem.isdigit()
    ]
    is_large = lessons >= SMALL
    if len(telling) >= OWN_WORDS if is_large else sum(weights) >= OWN_WEIGHT:
        return hit
    return replace(hit, no_reason=hit.no_reason + hit.full_text)


READ_SECONDS = 0.7  # for reading files: a hook has two seconds for all
PARSED = 4  # files for each hit that is wanted: some of them hold several lessons, or are withheld
_TAUGHT = ("fires_on", "silent_on")


@dataclass(frozen=True, slots=True)
class UnindexedHits:
    """The best `hits` above the `floor`; `near` is the first of all, whatever its score."""

    hits: list[Hit]
    floor: float
    near: Hit | None


def find(vault: Vault, prompt: str, k: int, floor_of: Callable[[int], float]) -> UnindexedHits:
    """Return at most `k` lessons for a prompt; `floor_of` is the floor for so many files.

    Files that are not read in time are left out, and so are those that hooks leave out: only what is
    above the floor is checked, since that takes half of the time.
    """
    stems = list(dict.fromkeys(map(stem_of, searched_words(prompt))))
    own_words = words_of(prompt)
    data: dict[str, bytes] = {}
    counts: dict[str, Counter[str]] = {}
    taught: list[str] = []  # files that may have been taught this prompt
    wanted = re.compile(rf"(?<![^\W_])(?:{'|'.join(map(re.escape, stems)) or '(?!)'})[^\W_]*")
    for path, content in _read(vault):
        text = split_unspaced(content.decode("utf-8", "replace")).lower()
        data[path] = content
        if found := wanted.findall(text):
            counts[path] = Counter(map(stem_of, found))
        if any(key in text for key in _TAUGHT) and all(word in text for word in own_words):
            taught.append(path)
    usual = max(1.0, sum(map(len, data.values())) / max(1, len(data)))
    having = Counter(stem for count in counts.values() for stem in count)

    weight = weight_of(prompt)

    def score_of(count: Mapping[str, int], size: int) -> float:
        return weight * sum(
            bm25_score(count[stem], size / usual, having[stem], len(data))
            for stem in stems
            if count.get(stem)
        )

    best = sorted(counts, key=lambda path: (-score_of(counts[path], len(data[path])), path))
    hits: list[Hit] = []
    for path in dict.fromkeys([*taught, *best[: PARSED * k]]):
        for row in _rows(path, data[path]):
            found = wanted.findall(f"{row['fulltext']}".lower())
            score = score_of(Counter(map(stem_of, found)), len(row["fulltext"].encode()))
            hits += _hit(row, prompt, score, len(data))
    hits.sort(key=lambda hit: (-hit.rank, hit.lesson_id))

    def is_usable(hit: Hit) -> bool:
        path = hit.path.partition("/")[2]
        return not diff.withheld_by(vault, path, data[path]).why

    least = floor_of(len(data))
    above = (hit for hit in hits if hit.is_above(least))
    return UnindexedHits(list(islice(filter(is_usable, above), k)), least, next(iter(hits), None))


def _read(vault: Vault) -> Iterator[tuple[str, bytes]]:
    until = time.monotonic() + READ_SECONDS
    for source in vault.files()[0]:
        with suppress(OSError):
            yield source.path, diff.content(vault, source.path)
        if time.monotonic() > until:
            return


def _rows(path: str, data: bytes) -> Iterator[LessonRow]:
    with suppress(LessonError):
        lessons = parse.parse_file(data, path)
        from_root = f"lessons/{path}"
        for row in rows.of_file(lessons, from_root, None, file.hash_of_file(data)):
            if row["is_whole"]:
                yield row


def _hit(row: LessonRow, prompt: str, score: float, lessons: int) -> Iterator[Hit]:
    same = rows.hash_of_prompt(prompt)
    fires, silent = (
        {rows.hash_of_prompt(taught): taught for taught in reversed(texts)}
        for texts in (row["fires_on"], row["silent_on"])
    )
    if same in silent:
        return
    hit = Hit.of_lesson(row, 0.0, score)
    if same in fires:
        hit = replace(hit, score=score + 1, taught=1.0, taught_prompt=fires[same])
    yield only_by_own_words(prompt, hit, lessons)
