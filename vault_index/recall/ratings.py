"""The words of people and agents on lessons that agents were given: useful yes, no, or wrong.

A person's *wrong* takes a lesson out of hooks until a person says otherwise, or until its title or text
changes. An agent's only asks for a look: what an agent reads could tell it to say so. The last word on
a lesson is in the database of this machine; no file of a lesson has it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from vault_index import state
from vault_index.errors import VaultError
from vault_index.recall.outdated import Reason
from vault_index.store import filters

if TYPE_CHECKING:
    from vault_index.vault import Vault

YES, NO, WRONG = WORDS = ("yes", "no", "wrong")
PERSON, AGENT = SPEAKERS = ("person", "agent")
_WHO = {PERSON: "a person", AGENT: "an agent"}


@dataclass(frozen=True, slots=True)
class Word:
    """The last word of a person, or of an agent after that. `hash` is of the lesson as it was then."""

    lesson: str
    word: str
    by: str
    why: str
    day: str
    hash: str

    def __str__(self) -> str:
        text = "called it wrong" if self.word == WRONG else f"said useful: {self.word}"
        return f"{_WHO[self.by]} {text} on {self.day}" + (f": {self.why}" if self.why else "")

    @property
    def withholds(self) -> bool:
        """Whether it takes the lesson out of hooks, while the lesson is as it was."""
        return self.word == WRONG and self.by == PERSON


def last_of(vault: Vault) -> dict[str, Word]:
    """Return the last word on each lesson."""
    with state.reading(vault.config.home) as db:
        words = state.select(db, "word", Word, "WHERE vault = ?", [state.vault_of(vault.root)])
    return {word.lesson: word for word in words}


def wrong(vault: Vault, ids: Collection[str] | None = None) -> dict[str, Word]:
    """Return the words that call lessons wrong as they are now, of all or of some ids."""
    last = last_of(vault).items()
    words = {id: each for id, each in last if each.word == WRONG and (ids is None or id in ids)}
    if not words:
        return words
    try:
        now = {id: hash for id, (hash, _, _) in _lessons(vault, words).items()}
    except VaultError:  # no index: what is in the files may be what was wrong
        return words
    return {lesson: word for lesson, word in words.items() if now.get(lesson) == word.hash}


def say(vault: Vault, lesson: str, word: str, by: str, why: str) -> None:
    """Note a word on a lesson: an agent does not speak over a person's *wrong*.

    Raises WriteError, and VaultError where there is no index, or no such lesson.
    """
    row = _lessons(vault, [lesson]).get(lesson)
    if row is None:
        raise VaultError(f"{lesson} is not in the index", "run `lessons index`")
    rating = Word(lesson, word, by, why, datetime.now(UTC).date().isoformat(), row[0])
    vault_key = state.vault_of(vault.root)
    with state.writing(vault.config.home) as db:
        before = last_of(vault).get(lesson)
        if before and before.withholds and before.hash == rating.hash and by == AGENT:
            return
        db.execute("DELETE FROM word WHERE vault = ? AND lesson = ?", [vault_key, lesson])
        state.insert(db, "word", rating, vault=vault_key)


def reasons(vault: Vault) -> list[Reason]:
    """Return the lessons that were called wrong, as reasons to look at them again."""
    words = wrong(vault)
    lessons = _lessons(vault, words) if words else {}
    return [
        Reason(
            lesson,
            title=lessons[lesson][1],
            path=lessons[lesson][2],
            kind="wrong",
            why=f"{word}; hooks leave it out" if word.withholds else str(word),
            do=f"lessons useful {lesson} yes",
        )
        for lesson, word in sorted(words.items())
        if lesson in lessons
    ]


def _lessons(vault: Vault, ids: Iterable[str]) -> Mapping[str, tuple[str, str, str]]:
    columns = ("lesson_id", "content_hash", "title", "path")
    rows = vault.open_index().store.rows(columns, filters.wholes_of(ids))
    return {row["lesson_id"]: (row["content_hash"], row["title"], row["path"]) for row in rows}
