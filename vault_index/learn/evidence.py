"""Whether an entry rests on the material: its quotes, its prompts; and whether it repeats other texts."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from vault_index.learn.excerpt import LEFT_OUT
from vault_index.learn.material import Material
from vault_index.proposals.draft import words

MIN_QUOTE_CHARS, MIN_QUOTE_WORDS = 20, 4
MAX_QUOTE_CHARS = 500
MAX_PROMPT_CHARS = 300
NEARLY = 0.8  # of a prompt's words that the session's own prompt has, too
SHINGLE = 6  # words in a row
REPEATS = 0.15  # of an entry's shingles that are in one other text
ORDER_WORDS = 5  # in a row, of an order
RUN = 12  # words in a row that are in another text, whatever else an entry says
_HEADER = re.compile(r"^(?:diff --git |index [0-9a-f]|--- |\+\+\+ |@@ |new file mode|deleted file)")
_ADDRESS = re.compile(r"(?<![\w.])(?:[\w-]+\.)+[a-z]{2,}(?=[/:])|(?<=://)[\w.-]+")
_SPACE = re.compile(r"\s+")


def squeezed(text: str) -> str:
    """Return a text whose white space is single spaces."""
    return _SPACE.sub(" ", text).strip()


def texts_of(material: Material) -> tuple[str, ...]:
    """Return the texts in which quotes must stand, without their line breaks."""
    return tuple(filter(None, map(squeezed, material.texts)))


def proven(quotes: Iterable[str], texts: Sequence[str], given: Iterable[str] = ()) -> list[str]:
    """Return the quotes that stand word for word in a text; only white space may differ.

    Those that are too short, only name files of a diff, or stand in a lesson that was `given` to the
    agent, prove nothing.
    """
    lessons = tuple(map(squeezed, given))
    kept = []
    for quote in quotes:
        text = squeezed(quote)
        if len(text) < MIN_QUOTE_CHARS or len(words(text)) < MIN_QUOTE_WORDS:
            continue
        if len(text) > MAX_QUOTE_CHARS or _HEADER.match(text) or LEFT_OUT in text:
            continue
        bare = text.lstrip("+- ")
        if any(bare in lesson for lesson in lessons):
            continue
        if any(_stands_in(text, other) for other in texts):
            kept.append(text)
    return list(dict.fromkeys(kept))


def _stands_in(text: str, other: str) -> bool:
    """Whether a text stands in another, as whole words."""
    at = other.find(text)
    while at >= 0:
        end = at + len(text)
        begins = at == 0 or not (other[at - 1].isalnum() and text[0].isalnum())
        ends = end == len(other) or not (other[end].isalnum() and text[-1].isalnum())
        if begins and ends:
            return True
        at = other.find(text, at + 1)
    return False


def asked(prompts: Iterable[str], material: Material) -> list[str]:
    """Return those of these prompts that the person asked, or nearly: parts of them, other forms."""
    real = [set(words(said.text)) for said in material.prompts]
    kept = []
    for prompt in prompts:
        text = squeezed(prompt)[:MAX_PROMPT_CHARS]
        own = set(words(text))
        if len(own) >= 2 and any(len(own & other) >= NEARLY * len(own) for other in real):
            kept.append(text)
    return list(dict.fromkeys(kept))


def nearest_prompt(text: str, material: Material) -> str:
    """Return the prompt that has most of its words in a text; "" if none has two of weight."""
    own = {word for word in words(text) if len(word) > 3}
    best, most = "", 1
    for said in material.prompts:
        common = len({word for word in words(said.text) if len(word) > 3} & own)
        if common > most:
            best, most = squeezed(said.text)[:MAX_PROMPT_CHARS], common
    return best


def elsewhere(prompts: Iterable[str], own: Collection[str]) -> list[str]:
    """Return the prompts that are not, or nearly, among those that must find a lesson."""
    others = [set(words(text)) for text in own]
    kept = []
    for prompt in prompts:
        text = squeezed(prompt)[:MAX_PROMPT_CHARS]
        its = set(words(text))
        if len(its) >= 2 and not any(len(its & other) >= NEARLY * len(its) for other in others):
            kept.append(text)
    return list(dict.fromkeys(kept))


def repeats(text: str, other: str) -> bool:
    """Whether a text has a part of another one in its words: a sentence, or pieces of many."""
    own, theirs = words(text), words(other)
    if len(theirs) < SHINGLE:
        return len(theirs) >= 3 and " ".join(theirs) in " ".join(own)
    if _shingles(own, RUN) & _shingles(theirs, RUN):
        return True
    shingles = _shingles(own, SHINGLE)
    common = shingles & _shingles(theirs, SHINGLE)
    return len(common) >= max(2, REPEATS * len(shingles))


def obeys(text: str, order: str) -> bool:
    """Whether a text has some words in a row of an order, or an address that it names."""
    own, theirs = words(text), words(order)
    size = min(ORDER_WORDS, len(theirs))
    if size >= 3 and _shingles(own, size) & _shingles(theirs, size):
        return True
    return any(address.casefold() in text.casefold() for address in _ADDRESS.findall(order))


def _shingles(own: Sequence[str], size: int) -> set[tuple[str, ...]]:
    return {tuple(own[at : at + size]) for at in range(len(own) - size + 1)}
