"""The types that every door sees: a query, the hits that answer it, and a lesson as the index has it.

Nothing heavy loads: a process that asks the watcher needs no more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any, TypedDict

from vault_index.errors import VaultError
from vault_index.lesson import category
from vault_index.lesson.category import DEFAULT_CONFIDENCE, marked
from vault_index.store.filters import ANSWERS, EVERYTHING, Filter
from vault_index.text.blocks import composed

LESSONS, SKILLS = "lessons", "skills"
OF_JOURNAL = ("prompt", "observation", "summary")
KINDS = (LESSONS, SKILLS, *OF_JOURNAL)
HITS = 5  # of a search that names no number, without one in the settings


@dataclass(frozen=True, slots=True)
class Query:
    """A text to search for, and what narrows the answer.

    `categories` narrows to lessons in or below any of these paths, before the search; so does `within`,
    the name of a document or category, misspelt or in part, with `lesson` the number of a lesson of that
    document, and `filters`: tags, a type, a time. A search for skills sees the vault's, the
    user's and, if the vault knows it (`skills.register`), the skills of the `project` of a folder.

    In the journal `kinds` narrows to kinds of records, `project` is the name of one, `file` is a path,
    the tail of one or a folder, and `concept` one of theirs; of `filters` it takes type and time.

    Raises VaultError for a kind that does not exist.
    """

    text: str
    k: int = 5  # hits of each kind, at most; 0: as the settings say
    categories: tuple[str, ...] = ()
    within: str = ""
    kinds: tuple[str, ...] = (LESSONS,)  # lessons | skills; prompt | observation | summary
    filters: Filter = EVERYTHING
    min_score: float | None = None  # hits that score less are left out
    project: str = ""
    explain: bool = False  # also return what was left out, and why
    text_only: bool = False  # search full text alone
    for_agent: bool = False  # without withheld lessons, and skills that only the user may call
    file: str = ""  # of the journal: what a record read or changed
    concept: str = ""  # of the journal
    weighted: bool = False  # put lessons in order by the weights of the settings, if there are any
    offset: int = 0  # lessons to pass over: a multiple of `k`, as pages are
    phrases: bool = False  # what is quoted in the text must stand in a lesson
    lesson: int | None = None  # number of a lesson of the document `within`
    related_to: str = ""  # the name of a lesson: only those that it names, or that name it

    def __post_init__(self) -> None:
        unknown = sorted(set(self.kinds) - set(KINDS))
        if unknown:
            message = f"there is nothing of kind {unknown[0]!r} here"
            raise VaultError(message, f"choose among the kinds {', '.join(KINDS)}")
        object.__setattr__(self, "text", composed(self.text))


# The evidence that a lesson answers a prompt. How high it scores says less than how far it stands out
# from those after it: a prompt of the vault's subject scores high for many. On half sets of four kinds,
# where 10% of the prompts that no lesson answers pass, the right lesson comes first and passes at .38 by
# the score alone, at .42 with its lead; where 30% pass, at .55 and .59 with the words in common. With one
# kind of set left out at a time none of these gains on more than one kind: the share of the title's words
# that the prompt has, its rarest word, words that are missing, the cosine of the title or of the nearest
# sentence and their leads, the gap to the second, nor a regression of all of them.
SCORE, LEAD, COMMON = 0.4, 0.6, 0.08
CONFIDENCE_STEP = 0.025  # confidence 5 or 1 moves a hit by 5%, among hits only
KNEE = 0.6  # of a sum of evidence: what is beyond comes ever nearer to 1
MOST_SHOWN = 0.99  # of a figure: taught prompts and exact words add up to more
TERMS = ("vector", "full text", "confidence", "use")  # of the order by weights: see `query.order`
BY_WORDS = "by its words"  # in the place of a percentage


@dataclass(frozen=True, slots=True)
class Hit:
    """A lesson or skill and why it was found. `score` is the sum of its terms, in absolute units.

    `cosine` is -1..1 (0 without an embedder); `full_text` is 0.01 x BM25; `exact` is what rare words of
    the query add, `passing` the part of it for words in passing, and `no_reason` the part of the score
    that finds a lesson and does not inject it: these, and what words that no lesson has take off. One
    that `is_named` has the name that a short query is. `taught` is the cosine of the lesson's taught
    prompt that fires, `taught_prompt`, else 0. The score of the first hit for a failed command is its
    strength instead (`retrieval.failures`). `text` is the best passage. `confidence` only orders hits of
    like score: it is not in `score`. A skill's `title` is its name, its `text` what it is for and its
    `type` where it is from: vault, user or project.
    """

    lesson_id: str
    path: str  # from the vault's root
    title: str
    text: str
    categories: tuple[str, ...]
    tags: tuple[str, ...]
    type: str
    confidence: int
    author: str  # of the last commit; "" before the first
    created_at: datetime | None
    updated_at: datetime | None
    score: float
    cosine: float
    full_text: float
    exact: float = 0.0
    passing: float = 0.0
    is_named: bool = False
    no_reason: float = 0.0
    taught: float = 0.0
    taught_prompt: str = ""
    prompt: str = ""  # that it answers, where it is nearer to the query than the text
    prompted: float = 0.0  # what that adds to the cosine; not in the JSON
    kind: str = "lessons"  # lessons | skills
    document: str = ""  # the title of what the lesson is a part of; its own if of nothing
    link: str = ""
    file_hash: str = ""  # of the file that `text` was read from; for trust, and not in the JSON
    filed_by: str = ""  # who says the categories: author | folder | classifier | nobody
    withheld: str = ""  # why hooks leave it out: an error that `lessons check` finds in its file
    position: int = 0  # of `text` among its file's passages; -1 for a long lesson as a whole
    is_long: bool = False  # whether `text` is a piece, or the whole of a lesson that has pieces
    weighted: tuple[float, ...] = ()  # the terms of `query.order`, if they ordered it
    aliases: tuple[str, ...] = ()  # other titles; not in the JSON
    answers: tuple[str, ...] = ()  # its prompts, and what it fires on; not in the JSON
    anchors: tuple[str, ...] = ()  # the code that it is about; not in the JSON
    changed: str = ""  # the code that it is about, where that changed since it was confirmed
    lead: float | None = None  # how far it stands out from the next five; None: not compared
    common: float = 0.0  # the share of the query's words that it has, by their rarity
    as_line: bool = False  # whether an agent gets its line, not its text
    suggestible: bool = True  # whether an agent may load the skill by itself; not in the JSON

    @property
    def id(self) -> str:
        return self.lesson_id

    @property
    def names(self) -> str:
        """The title, the aliases, the tags and the words of the categories, a line each."""
        return "\n".join(
            [self.title, *self.aliases, *self.tags, category.words_of(self.categories)]
        )

    @property
    def own_words(self) -> str:
        """The text with the prompts that it answers."""
        return "\n".join([self.text, *self.answers])

    @property
    def base(self) -> float:
        """The score without what is no reason to inject."""
        return self.score - self.no_reason

    @property
    def evidence(self) -> list[tuple[str, float]]:
        """The terms of the reason to inject a lesson, with their names; none if it was not compared."""
        if self.lead is None:
            return []
        terms = ("score", SCORE * self.base), ("stands out", LEAD * self.lead)
        return [*terms, ("words in common", COMMON * self.common)]

    @property
    def reason(self) -> float:
        """The reason to inject it, which a floor is compared with: the sum of its evidence."""
        return self.base if self.lead is None else sum(term for _, term in self.evidence)

    @property
    def rank(self) -> float:
        """The score, moved by up to 5% by the author's confidence: it orders hits."""
        return self.score * (1 + CONFIDENCE_STEP * (self.confidence - DEFAULT_CONFIDENCE))

    @property
    def place(self) -> float:
        """The place in a list: by the weights of the settings, else by rank; the highest first."""
        return sum(self.weighted) or unit(self.rank)

    @property
    def shown_score(self) -> float:
        """The evidence from 0 to MOST_SHOWN, the one figure that is shown: on the scale of the floors."""
        return max(0.0, min(MOST_SHOWN, self.reason))

    @property
    def percent(self) -> int:
        """The same for people, 0..99."""
        return percent_of(self.shown_score)

    @property
    def by_words(self) -> bool:
        """Whether words alone found it: no vector took part, and no taught prompt fired.

        Its score is on the scale of the floors by words, which say nothing to people.
        """
        return not (self.cosine or self.taught) and bool(self.full_text or self.exact)

    @property
    def strength(self) -> str:
        """The percentage for people, such as "76%"; BY_WORDS where words alone found it."""
        return strength_of(self.shown_score, by_words=self.by_words)

    def is_above(self, floor: float | None) -> bool:
        """Whether the score is reason enough for a floor; True without one."""
        return floor is None or self.reason >= floor

    @property
    def terms(self) -> list[tuple[str, float]]:
        """The terms of the score with their names; they add up to it."""
        return [
            ("cosine", self.cosine),
            ("full text", self.full_text),
            *([("exact words", self.exact)] if self.exact else []),
            *([("taught prompt", self.taught)] if self.taught else []),
        ]

    @property
    def trigger(self) -> str:
        """The command that calls a skill, such as `/review-pr`; "" for a lesson."""
        return "" if self.kind == "lessons" else f"/{self.title}"

    @property
    def filed_under(self) -> tuple[str, ...]:
        """The categories as they are shown: one that only the classifier proposes ends with "?"."""
        return marked(self.categories, self.filed_by)

    def as_json(self) -> dict[str, Any]:
        """Return the hit as JSON values, alike at every door; dates are ISO 8601."""
        values = {"id": self.lesson_id, **{name: getattr(self, name) for name in _IN_JSON}}
        values |= {"score": self.shown_score, "sum": self.score, "by_words": self.by_words}
        for name, value in values.items():
            if isinstance(value, float):
                values[name] = round(value, 4)
            elif isinstance(value, datetime):
                values[name] = value.isoformat()
        weighted = [round(term, 4) for term in self.weighted]
        more = {"trigger": self.trigger, "changed": self.changed, "weighted": weighted}
        more |= {"prompt": self.prompt}
        return values | {name: value for name, value in more.items() if value}

    @classmethod
    def of_lesson(cls, row: Mapping[str, Any], cosine: float = 0.0, full_text: float = 0.0) -> Hit:
        """Return the hit of a row of the lessons' table."""
        texts: dict[str, Any] = {name: row[name] or "" for name in _TEXTS}
        same: dict[str, Any] = {name: row[name] for name in _AS_IN_LESSON}
        return cls(
            **texts,
            **same,
            categories=tuple(row["categories"] or ()),
            tags=tuple(row["tags"] or ()),
            aliases=tuple(row["aliases"] or ()),
            anchors=tuple(row["anchors"] or ()),
            answers=tuple(text for name in ANSWERS for text in row[name] or ()),
            position=row["position"] or 0,
            is_long=(row["position"] or 0) < 0 or not row.get("is_whole", True),
            score=cosine + full_text,
            cosine=cosine,
            full_text=full_text,
        )

    @classmethod
    def of_skill(cls, row: Mapping[str, Any], cosine: float, full_text: float) -> Hit:
        """Return the hit of a row of the skills' table. Its `document` is its folder, for now."""
        same: dict[str, Any] = {name: row[name] for name in _AS_IN_SKILL}
        return cls(
            **same,
            lesson_id=f"{row['scope']}:{row['name']}",
            title=row["name"],
            categories=tuple(row["categories"] or ()),
            tags=(),
            type=row["scope"],
            confidence=DEFAULT_CONFIDENCE,
            author="",
            created_at=None,
            updated_at=None,
            score=cosine + full_text,
            cosine=cosine,
            full_text=full_text,
            document=row["folder"],
        )


@dataclass(frozen=True, slots=True)
class HitList:
    """The hits of a search. `text_only` is why there were no vectors, "" if there were.

    `floor`, `whole_floor` and `skills_floor` are in force: below the first a hook gives nothing, below
    the second a line; `model` made the vectors, by the setting `embedder`.
    """

    hits: tuple[Hit, ...]
    text_only: str = ""
    embedder: str = ""
    model: str = ""
    floor: float | None = None
    whole_floor: float | None = None
    skills_floor: float | None = None
    dropped: tuple[tuple[Hit, str], ...] = ()  # each with the reason
    place: str = ""  # the document or category that was searched
    following: str = ""  # the cursor of the next page
    unquoted: tuple[str, ...] = ()  # quoted phrases that no lesson has all of: searched as words


@dataclass(frozen=True, slots=True)
class ContextBlock:
    """The block that an agent gets. `text` is "" for silence, and `silent` then says why."""

    text: str
    hits: Sequence[Hit] = ()  # lessons
    skills: Sequence[Hit] = ()
    floor: float | None = None  # below which nothing comes
    silent: str = ""
    near: Hit | None = None  # of a silence: the lesson that came nearest to the floor
    about: str = ""  # the record knows it by this, else by its prompt: a signature, a path
    said: str = ""  # by which people know it, without secrets: a line of output, a path
    others: Sequence[Hit] = ()  # above the floor, and told before or silent for a taught prompt
    left_out: Mapping[str, str] = field(default_factory=dict)  # above the floor, by id: why


@dataclass(frozen=True, slots=True)
class Entry:
    """A lesson as the index has it, without its text."""

    id: str
    path: str  # from the vault's root
    title: str
    aliases: tuple[str, ...] = ()  # other titles
    document: str = ""  # the title of the file that it is a section of; its own if of none
    categories: tuple[str, ...] = ()
    filed_by: str = ""  # who says so: author | folder | classifier | nobody
    tags: tuple[str, ...] = ()
    type: str = ""
    confidence: int = DEFAULT_CONFIDENCE  # 1..5
    created_at: datetime | None = None
    updated_at: datetime | None = None  # of the last commit
    author: str = ""
    link: str = ""
    withheld: str = ""  # why hooks leave it out: an error in its file; "" otherwise

    @property
    def filed_under(self) -> tuple[str, ...]:
        """The categories as they are shown: one that only the classifier proposes ends with "?"."""
        return marked(self.categories, self.filed_by)

    @property
    def day(self) -> str:
        """The day of its last commit, else the one on which it says that it was written, or ""."""
        moment = self.updated_at or self.created_at
        return f"{moment:%Y-%m-%d}" if moment else ""


class ListOptions(TypedDict, total=False):
    """A choice of lessons, their order, and how many."""

    category: str | None  # those in or below it
    tag: str | None
    type: str | None
    since: str  # those created or committed then or later: ISO 8601
    order: str  # of `entries.ORDERS`; without: id
    limit: int | None
    related_to: str  # those that a lesson of this name names, or that name it


@dataclass(frozen=True, slots=True)
class WholeEntry(Entry):
    """A lesson with its text, and what was taught of it."""

    text: str = ""
    file_hash: str = ""  # of the file that all this was read from
    fires_on: tuple[str, ...] = ()
    silent_on: tuple[str, ...] = ()
    fires_on_error: tuple[str, ...] = ()
    silent_on_error: tuple[str, ...] = ()
    applies_to: tuple[str, ...] = ()
    prompts: tuple[str, ...] = ()  # that it answers


@dataclass(frozen=True, slots=True)
class Named:
    """A lesson by name."""

    id: str
    title: str


@dataclass(frozen=True, slots=True)
class Like(Named):
    """A lesson that is like another: `likeness` is a cosine, None where there are no vectors."""

    likeness: float | None


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation of a lesson: its `kind`, the `name` of the other one as written, and its `id` or ""."""

    kind: str
    name: str
    id: str


def unit(score: float) -> float:
    """Return a sum of evidence from 0 to 1, in the same order; one up to `KNEE` as it is."""
    rest = 1 - KNEE
    beyond = max(0.0, score - KNEE)
    return max(0.0, min(KNEE, score)) + rest * (1 - math.exp(-beyond / rest))


def parts_of(score: float) -> str:
    """Return a score or a term of it in percent, with a digit more: so terms add up."""
    return f"{100 * score:.1f}%"


def percent_of(score: float) -> int:
    """Return a score or a floor for people, 0..99: the one scale that people see."""
    return max(0, min(99, round(100 * score)))


def strength_of(score: float, *, by_words: bool) -> str:
    """Return the nearness of a lesson or a skill for people: a percentage, or BY_WORDS."""
    return BY_WORDS if by_words else f"{percent_of(score)}%"


NOT_IN_JSON = (
    *"lesson_id is_long passing is_named file_hash suggestible weighted aliases answers".split(),
    *"prompt prompted anchors changed".split(),
)
_IN_JSON = [field.name for field in fields(Hit) if field.name not in NOT_IN_JSON]
_AS_IN_LESSON = "lesson_id path confidence created_at updated_at".split()
_AS_IN_SKILL = "path text file_hash withheld suggestible".split()
_TEXTS = "title text type document link author file_hash withheld filed_by".split()


def below(score: float, least: float | None) -> str:
    """Return the reason for which a score is too low; "" if it is not."""
    return f"below {parts_of(least)}" if least is not None and score < least else ""


def first_of(
    hits: Iterable[Hit], k: int, refuse: Callable[[Hit], str]
) -> tuple[list[Hit], list[tuple[Hit, str]]]:
    """Return the first `k` hits that are not refused, and the others in their order, with the reason."""
    first: list[Hit] = []
    dropped: list[tuple[Hit, str]] = []
    for hit in hits:
        if why := refuse(hit):
            dropped.append((hit, why))
        elif len(first) < k:
            first.append(hit)
        else:
            dropped.append((hit, f"not among the first {k}"))
    return first, dropped
