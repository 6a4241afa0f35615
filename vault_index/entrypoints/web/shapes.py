"""Input and output of each route, as `/openapi.json` shows it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, Field

from vault_index.ask.answer import Passage
from vault_index.lesson import category

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


Text = Annotated[str, AfterValidator(_plain)]
LessonText = Annotated[Text, Field(max_length=MAX_TEXT_CHARS), AfterValidator(_said)]
Category = Annotated[Text, Field(max_length=200), AfterValidator(_category)]
Categories = Annotated[list[Category], Field(max_length=MAX_CATEGORIES)]
Id = Annotated[Text, Field(max_length=1000)]
Source = Annotated[Text, Field(max_length=1000)]
Collection = Literal["lessons", "skills"]


class QueryBody(BaseModel):
    """A search. With `collections` the answer is `{"results": {...}}`."""

    prompt: Annotated[Text, Field(max_length=MAX_PROMPT_CHARS), AfterValidator(_said)]
    top_k: Annotated[int, Field(ge=1, le=100)] = 5
    categories: Categories | None = None
    min_score: Annotated[float, Field(allow_inf_nan=False)] | None = 0.4
    collections: Annotated[list[Collection], Field(min_length=1, max_length=2)] | None = None


class Found(BaseModel):
    """A lesson or skill. `text` is its best passage, `source_file` its file from the vault's root."""

    id: str
    text: str
    score: float
    categories: list[str]
    source_file: str
    created_at: str | None


class QueryAnswer(BaseModel):
    """The best first. `skills` is there if any match, `results` if `collections` were named."""

    lessons: list[Found] | None = None
    skills: list[Found] | None = None
    results: dict[Collection, list[Found]] | None = None
    query_time_ms: float
    model: str


class IngestBody(BaseModel):
    """A lesson to be. Without an id its title makes one; `source_file` is noted and never read."""

    id: Id | None = None
    text: LessonText
    categories: Categories | None = None
    source_file: Source | None = None


class Written(BaseModel):
    """A lesson that is on the disk; its categories are those it was given, else the classifier's."""

    id: str
    categories: list[str]
    status: Literal["ingested", "updated"]


class BulkBody(BaseModel):
    """Lessons to be: each is taken or refused by itself."""

    lessons: Annotated[list[IngestBody], Field(max_length=MAX_BULK)]


class BulkError(BaseModel):
    """A lesson that was not taken: its place in the request, from 0."""

    index: int
    id: str
    error: str
    hint: str


class BulkAnswer(BaseModel):
    """How many were taken, which, and which were not."""

    ingested: int
    errors: list[BulkError]
    lessons: list[Written]


class UpdateBody(BaseModel):
    """Changes of a lesson. Absent fields stay as they are; an empty list of categories takes them out."""

    text: LessonText | None = None
    categories: Categories | None = None
    source_file: Source | None = None


class DeleteAnswer(BaseModel):
    """A deleted lesson."""

    id: str
    status: Literal["deleted"]


class Health(BaseModel):
    """The state of the server; `tables` has their rows. With status 503 `reason` is why."""

    status: Literal["ok", "unavailable"]
    embedder: str
    tables: dict[str, int]
    lesson_count: int
    model: str
    uptime: float
    reason: str | None = None


class CategoriesAnswer(BaseModel):
    """How many lessons are in and below each category, at every level."""

    categories: dict[str, int]


class AskBody(BaseModel):
    """A question. `document` and `category` narrow its search; their names may be half remembered."""

    query: Annotated[Text, Field(max_length=MAX_QUESTION_CHARS), AfterValidator(_said)]
    session_id: Annotated[Text, Field(max_length=200)] = ""
    document: Annotated[Text, Field(max_length=200)] = ""
    category: Annotated[Text, Field(max_length=200)] = ""


class AskAnswer(BaseModel):
    """An answer that cites its `sources`; `passages` are all that the search returned.

    `status` is `answered`, `passages` (without a model), `unknown` (the vault has nothing on it) or
    `failed` (the model); `trouble` and `hint` say why and what to do, `notes` what else to know, such
    as a name that no document has.
    """

    answer: str
    sources: list[Passage]
    session_id: str
    status: Literal["answered", "passages", "unknown", "failed"]
    passages: list[Passage]
    model: str
    search: dict[str, str] | None
    trouble: str
    hint: str
    notes: list[str]


class CourseLesson(BaseModel):
    """A lesson of a course; `number` is null where it says none."""

    number: int | None
    title: str
    link: str
    id: str


class Course(BaseModel):
    """A document with numbered lessons."""

    title: str
    path: str
    link: str
    author: str
    lesson_count: int
    lessons: list[CourseLesson]


class CoursesAnswer(BaseModel):
    """The courses of the vault, by title."""

    total_courses: int
    course_titles: list[str]
    courses: list[Course]


class Error(BaseModel):
    """The error, and the next step."""

    error: str
    hint: str
