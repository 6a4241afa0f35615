"""What to search for, and how: declared here once, for Python, the command line and every door."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from vault_index.errors import VaultError
from vault_index.store import filters
from vault_index.store.filters import EVERYTHING, Filter

LESSONS, SKILLS = "lessons", "skills"
OF_JOURNAL = ("prompt", "observation", "summary")
KINDS = (LESSONS, SKILLS, *OF_JOURNAL)


@dataclass(frozen=True, slots=True)
class Query:
    """A text to search for, and what narrows the answer.

    `categories` narrows to lessons in or below any of these paths, before the search; so does
    `within`, the name of a document or category, misspelt or in part, and `filters`: tags, a type,
    a time. Of skills a search sees those of the vault, of the user and, if the vault knows it
    (`skills.register`), of the `project` that a folder is in.

    In the journal `kinds` narrows to kinds of records, `project` is the name of one, `file` is a path,
    the tail of one or a folder, and `concept` one of theirs; of `filters` it takes type and time.

    Raises VaultError for a kind that does not exist.
    """

    text: str
    k: int = 5  # hits of each kind, at most
    categories: tuple[str, ...] = ()
    within: str = ""
    kinds: tuple[str, ...] = (LESSONS,)  # lessons | skills; prompt | observation | summary
    filters: Filter = EVERYTHING
    min_score: float | None = None  # hits that score less are left out
    project: str = ""
    explain: bool = False  # also return what was left out, and why
    neighbours: int = 0  # passages before and after each lesson's passage, to return with it
    text_only: bool = False  # search full text alone
    for_agent: bool = False  # without withheld lessons, and skills that only the user may call
    file: str = ""  # of the journal: what a record read or changed
    concept: str = ""  # of the journal
    weighted: bool = False  # put lessons in order by the weights of the settings, if there are any
    offset: int = 0  # lessons to pass over: a multiple of `k`, as pages are
    floor: float | None = None  # hits with less reason to be injected are left out: `Hit.reason`
    phrases: bool = False  # what is quoted in the text must stand in a lesson

    def __post_init__(self) -> None:
        unknown = sorted(set(self.kinds) - set(KINDS))
        if unknown:
            message = f"there is nothing of kind {unknown[0]!r} here"
            raise VaultError(message, f"choose among the kinds {', '.join(KINDS)}")

    def to_json(self) -> dict[str, Any]:
        """Return the options that are not the default, as JSON values; moments are ISO 8601."""
        values: dict[str, Any] = {"text": self.text}
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name not in ("text", "filters") and value != field.default:
                values[field.name] = list(value) if isinstance(value, tuple) else value
        narrowed = {key: value for key, value in asdict(self.filters).items() if value}
        for key in {"since", "until"} & set(narrowed):
            narrowed[key] = narrowed[key].isoformat()
        return {**values, "filters": narrowed} if narrowed else values

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Query:
        """Return the query of what `to_json` returned. Raises VaultError for an unknown option."""
        unknown = sorted(set(values) - {field.name for field in fields(cls)})
        if unknown or "text" not in values:
            message = (
                f"no option {unknown[0]!r} of a search" if unknown else "no text to search for"
            )
            raise VaultError(message, "see `lessons search --help` for the options")
        given = dict(values)
        for key in {"categories", "kinds"} & set(given):
            given[key] = tuple(given[key])
        given["filters"] = filters.from_json(given.get("filters") or {})
        return cls(**given)
