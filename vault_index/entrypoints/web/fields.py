"""The fields of requests and of answers, as `/openapi.json` shows them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import fields
from types import GenericAlias
from typing import Annotated, Any, get_type_hints

from fastapi import Query
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, create_model, model_validator

from vault_index.lesson import category
from vault_index.text.words import nearest

MAX_PROMPT_CHARS = 100_000
MAX_TEXT_CHARS = 2_000_000  # a lesson file has 2.2 MB at most
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


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("there is no text")
    return text


def _category(path: str) -> str:
    if not category.normalise(path) or ".." in path.split("/") or path.startswith("/"):
        raise ValueError("not a category such as devops/ci-cd")
    return path


Text = Annotated[str, AfterValidator(_plain)]
Said = Annotated[Text, AfterValidator(_not_blank)]
LessonText = Annotated[Said, Field(max_length=MAX_TEXT_CHARS)]
Category = Annotated[Text, Field(max_length=200), AfterValidator(_category)]
Categories = Annotated[list[Category], Field(max_length=MAX_CATEGORIES)]
Id = Annotated[Text, Field(max_length=1000)]
Word = Annotated[Text, Query(max_length=1000)]  # of an address
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
    near = nearest(name, names)
    meant = f"did you mean {near!r}?" if near else f"there are {', '.join(names) or 'none'}"
    return f"no field {name[:50]!r}; {meant}"


def shown_as(kind: type, without: Collection[str] = (), **more: Any) -> type[BaseModel]:
    """Return the fields of a dataclass as an answer shows it: without some, and with more."""
    hints = get_type_hints(kind)
    types = {each.name: (hints[each.name], ...) for each in fields(kind)}
    shown = {name: value for name, value in types.items() if name not in without}
    return answer_form(kind.__name__, **{**shown, **more})


def answer_form(name: str, **fields: Any) -> type[BaseModel]:
    """Return the form of an answer, which has no other fields."""
    return create_model(name, __config__=ConfigDict(extra="forbid"), **fields)


def many(kind: type) -> Any:
    """Return the type of a list of values."""
    return GenericAlias(list, kind)
