"""BM25 about as LanceDB counts it, for text that is in no table: a draft, or files without an index.

Its words and stems are nearly those of LanceDB's tokenizer: see `proposals.prompts` for how near.
"""

from __future__ import annotations

import math
import re

K1, B = 1.2, 0.75  # of LanceDB's BM25
WORD = re.compile(r"[^\W_]+")
_ENDINGS = "ations ation ings ing edly ied ies ers ed er es ly s e".split()
_MIN_STEM = 3
# the words that LanceDB leaves out
_STOPWORDS = frozenset(
    """i me my myself we our ours ourselves you your yours yourself yourselves he him his himself she her
    hers herself it its itself they them their theirs themselves what which who whom this that these
    those am is are was were be been being have has had having do does did doing a an the and but if or
    because as until while of at by for with about against between into through during before after
    above below to from up down in out on off over under again further then once here there when where
    why how all any both each few more most other some such no nor not only own same so than too very
    s t can will just don should now d ll m o re ve y ain aren couldn didn doesn hadn hasn haven isn ma
    mightn mustn needn shan shouldn wasn weren won wouldn""".split()
)


def score(times: int, length: float, having: int, every: int) -> float:
    """Return what a word adds that stands so many `times` in a text.

    `length` is that of the text as a share of the usual, `having` of `every` text have the word.
    """
    return rarity(having, every) * times * (K1 + 1) / (times + K1 * (1 - B + B * length))


def rarity(having: int, every: int) -> float:
    """Return the weight of a word that so many of `every` text have."""
    return math.log(1 + (every - having + 0.5) / (having + 0.5))


def words(text: str) -> list[str]:
    """Return the words of a text that are searched for, in their order."""
    return [word for word in WORD.findall(text.lower()) if word not in _STOPWORDS]


def stem(word: str) -> str:
    """Return about what LanceDB's stemmer leaves of an English word."""
    for ending in _ENDINGS:
        stem = word.removesuffix(ending)
        if stem != word and len(stem) >= _MIN_STEM:
            return stem[:-1] if stem[-1] == stem[-2] and stem[-1] not in "lsz" else stem
    return word
