"""The frequency of words in the lessons of an index, and in prompts and failures without an answer.

The counts are a file beside the tables. They are made again when the number of lessons changed by a
tenth: each rarity is then off by .1 at most, which is a hundredth of a lesson's evidence.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vault_index import files
from vault_index.errors import VaultError
from vault_index.index.rows import answers_of, names_of
from vault_index.lesson import category
from vault_index.store import filters, ownership
from vault_index.text import failure, foreign
from vault_index.text.words import STOP_WORDS, says_nothing, terms_of

if TYPE_CHECKING:
    from vault_index.store.lance import Table
    from vault_index.vault import Vault

COMMON = 1.3  # how much less a word says that many prompts or failures have
MAX_RARITY = 7.0
GROWTH = 0.1  # a share of the lessons

_FILE = "words.json"
_kept: dict[Path, tuple[object, Words]] = {}


@dataclass(frozen=True, slots=True)
class Words:
    """In how many lessons, prompts and failures each word is; of lessons the words in two and more."""

    lessons: int
    in_lessons: dict[str, int]
    prompts: int
    in_prompts: dict[str, int]
    failures: int
    in_failures: dict[str, int]

    def rarity(self, word: str) -> float:
        """Return the evidence of a word in a lesson: the logarithm of how few have it."""
        return math.log((self.lessons + 1) / (self.in_lessons.get(word, 1) + 0.5))

    def weight(self, word: str) -> float:
        """Return the same for a word of a prompt: what many prompts say, says little."""
        if word in STOP_WORDS or says_nothing(word):
            return 0.0
        common = COMMON * math.log((self.prompts + 1) / (self.in_prompts.get(word, 0) + 0.5))
        return max(0.0, min(self.rarity(word), common, MAX_RARITY))

    @property
    def of_failures(self) -> Words:
        """The same, to weigh the words of a failure in place of a prompt."""
        return replace(self, prompts=self.failures, in_prompts=self.in_failures)


@lru_cache(maxsize=4096)
def words_of(names: str, text: str) -> tuple[str, ...]:
    """Return the words of a lesson in their order, with a bar between its names and its text."""
    return (*terms_of(names), "|", *terms_of(text))


def of(vault: Vault) -> Words:
    """Return the counts of the vault's index. Raises IndexStateError without an index."""
    table = vault.open_index().store
    return _load(table.index) or count(table)


def refresh(table: Table) -> None:
    """Count again if there are many more or fewer lessons than then. Raises WriteError."""
    counted_before, lessons = _load(table.index), table.count(filters.WHOLE)
    if counted_before is None or abs(lessons - counted_before.lessons) > GROWTH * max(
        1, counted_before.lessons
    ):
        counted = json.dumps(asdict(count(table)), ensure_ascii=False)
        files.replace_file(table.index / _FILE, counted.encode())


def _names(row: Mapping[str, Any]) -> str:
    """Return the names of a lesson as `Hit.names` has them."""
    return f"{names_of(row)}\n{category.words_of(row['categories'] or ())}"


def count(table: Table) -> Words:
    """Count the words of the lessons in a table."""
    columns = ("title", "aliases", "tags", "categories", "text", *filters.ANSWERS)
    rows = list(table.rows(columns, filters.WHOLE))
    texts = ("\n".join([row["text"], *answers_of(row)]) for row in rows)
    counted = _count(words_of(_names(row), text) for row, text in zip(rows, texts, strict=True))
    prompts, failures = foreign.prompts(), foreign.failures()
    of_failures = (
        (word for line in each.lines for word in failure.words_of_line(line)) for each in failures
    )
    return Words(
        lessons=len(rows),
        in_lessons={word: number for word, number in counted.items() if number > 1},
        prompts=len(prompts),
        in_prompts=_count(map(terms_of, prompts)),
        failures=len(failures),
        in_failures=_count(of_failures),
    )


def _count(texts: Iterable[Iterable[str]]) -> dict[str, int]:
    return dict(Counter(word for words in texts for word in set(words)))


def _load(index: Path) -> Words | None:
    file = index / _FILE
    try:
        stamp = files.stamp(file)
        cached = _kept.get(file)
        if cached is None or cached[0] != stamp:
            cached = _kept[file] = stamp, Words(**json.loads(ownership.read_text(file)))
        return cached[1]
    except (OSError, ValueError, TypeError, VaultError):
        return None
