"""The input of each route, as `/openapi.json` shows it."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Annotated, Any, Literal

from fastapi import Query
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from vault_index.lesson import category
from vault_index.lesson.parse import TYPES

MAX_PROMPT_CHARS = 100_000
MAX_QUESTION_CHARS = 10_000
MAX_TEXT_CHARS = 2_000_000  # a lesson file has 2.2 MB at most
MAX_BULK = 1000  # lessons of a request
MAX_CATEGORIES = 20


def _plain(text: str) -> str:
    """Return a text that a file can hold. Raises ValueError."""
    if "\0" in text:
        raise ValueError("NUL is no text")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("half of a surrogate pair is no text") from None
    return text


def _said(text: str) -> str:
    if not text.strip():
        raise ValueError("there is no text")
    return text


def _category(path: str) -> str:
    if not category.normalise(path) or ".." in path.split("/") or path.startswith("/"):
        raise ValueError("not a category such as devops/ci-cd")
    return path


def _type(name: str) -> str:
    if name not in TYPES:
        raise ValueError(f"choose one of {', '.join(TYPES)}")
    return name


Text = Annotated[str, AfterValidator(_plain)]
LessonText = Annotated[Text, Field(max_length=MAX_TEXT_CHARS), AfterValidator(_said)]
Category = Annotated[Text, Field(max_length=200), AfterValidator(_category)]
Categories = Annotated[list[Category], Field(max_length=MAX_CATEGORIES)]
Id = Annotated[Text, Field(max_length=1000)]
Word = Annotated[Text, Query(max_length=1000)]  # of an address
Source = Annotated[Text, Field(max_length=1000)]
Collection = Literal["lessons", "skills", "sessions"]
Document = Annotated[Text, Field(max_length=200)]
LessonNumber = Annotated[int, Field(ge=0, le=10**9)]


class Body(BaseModel):
    """The body of a request: a field that its route does not take is refused."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown(cls, values: Any) -> Any:
        for name in values if isinstance(values, dict) else ():
            if name not in cls.model_fields:
                raise ValueError(no_field(name, cls.model_fields))
        return values


def no_field(name: str, fields: Iterable[str]) -> str:
    """Return the error for an unknown field, with the nearest that there is, or all."""
    names = list(fields)
    near = get_close_matches(name[:50], names, 1)
    meant = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(names) or 'none'}"
    return f"no field {name[:50]!r}; {meant}"


class QueryBody(Body):
    """A search. With `collections` the answer is `{"results": {...}}`; `sessions` need the token.

    `document` narrows it to one, by a name that may be half remembered, and `lesson` to a number in it;
    `related_to` to the lessons that one names as related, or that name it.
    Without `top_k` the settings' `[search] hits` count, if there are any.
    """

    prompt: Annotated[Text, Field(max_length=MAX_PROMPT_CHARS), AfterValidator(_said)]
    top_k: Annotated[int, Field(ge=1, le=100)] = 5
    categories: Categories | None = None
    document: Document = ""
    lesson: LessonNumber | None = None
    related_to: Id = ""
    min_score: Annotated[float, Field(allow_inf_nan=False)] | None = 0.4
    collections: Annotated[list[Collection], Field(min_length=1, max_length=3)] | None = None


class IngestBody(Body):
    """A lesson to be, or new content of the one that has this id.

    Without an id its title makes one; `source_file` is noted and never read.
    """

    id: Id | None = None
    text: LessonText
    categories: Categories | None = None
    source_file: Source | None = None


class BulkBody(Body):
    """Lessons to be: each is taken or refused by itself, also for what its fields hold."""

    lessons: Annotated[list[IngestBody | Any], Field(max_length=MAX_BULK)]


class UpdateBody(Body):
    """Changes of a lesson. Absent fields stay as they are; an empty list takes out what there is.

    A title that was made from the text is made again with a new text.
    """

    text: LessonText | None = None
    title: Annotated[Text, Field(max_length=500), AfterValidator(_said)] | None = None
    categories: Categories | None = None
    tags: Annotated[list[Id], Field(max_length=MAX_CATEGORIES)] | None = None
    type: Annotated[str, AfterValidator(_type)] | None = None
    source_file: Source | None = None


class AskBody(Body):
    """A question. `document` and `category` narrow its search; their names may be half remembered.

    `lesson` is the number of one of the document. `session_id` is one that an answer had, or one of the
    client's own, under which nobody else goes on.
    """

    query: Annotated[Text, Field(max_length=MAX_QUESTION_CHARS), AfterValidator(_said)]
    session_id: Annotated[Text, Field(max_length=200)] = ""
    document: Document = ""
    lesson: LessonNumber | None = None
    category: Annotated[Text, Field(max_length=200)] = ""
