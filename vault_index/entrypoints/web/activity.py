"""Activity: what agents got at which prompt, and why they got nothing; one row an event."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query
from fastapi.responses import HTMLResponse
from pydantic import BaseModel, Field

from vault_index import api
from vault_index.api.injection import Injection
from vault_index.entrypoints.web.fields import MAX_PROMPT_CHARS, Id, Text, Word
from vault_index.entrypoints.web.lessons import one_at_a_time
from vault_index.entrypoints.web.render import BESIDE, address_with, fragment, page
from vault_index.entrypoints.web.vault_client import Client
from vault_index.entrypoints.wording.hits import TOO_FEW_WORDS
from vault_index.hotpath import spool
from vault_index.recall.silence import NOTHING
from vault_index.retrieval.hit import percent_of
from vault_index.store.times import day_named, local, milliseconds

AT = "/activity"
PRIVATE = "/page/private/activity"
PAGE = 50  # events at once
ONLY = {"": "Everything", "answered": "Came", "silent": "Silent", "failed": "Failures"}
BY = {"watcher": "from the watcher", "process": "without a watcher", "hook": "missed"}

Only = Literal["", "answered", "silent", "failed"]

routes = APIRouter(include_in_schema=False)


class TeachBody(BaseModel):
    """A prompt at which a lesson should come, or should not: one of a session, or as it is typed."""

    lesson: Id
    kind: Literal["fires_on", "silent_on", "fires_on_error", "silent_on_error"]
    session: Id = ""
    key: Id = ""  # the hash of the prompt
    prompt: Annotated[Text, Field(max_length=MAX_PROMPT_CHARS)] = ""  # where the journal has it not
    undo: bool = False


@routes.get(AT)
def activity(session: Word = "", lesson: Word = "", only: Only = "") -> HTMLResponse:
    """Show the page; what it is narrowed to is in its address."""
    contents = address_with(f"{PRIVATE}/list", session=session, lesson=lesson, only=only)
    filters: dict[str, Any] = {"session": session, "lesson_id": lesson, "only": only}
    filters |= {"chips": ONLY, "beside": BESIDE}
    return page("activity.html", at=AT, title="Activity", list=contents, **filters)


@routes.get(f"{PRIVATE}/list")
def list_(
    client: Client,
    session: Word = "",
    lesson: Word = "",
    only: Only = "",
    offset: Annotated[int, Query(ge=0, le=1_000_000)] = 0,
    after: Word = "",
) -> HTMLResponse:
    """Show some of the events, the latest first; `after` is the day of the one before them."""
    filters: dict[str, Any] = {"session": session, "lesson": lesson, "only": only}
    answer = client.ask(api.injection.select(**filters, limit=PAGE, offset=offset), status=422)
    last = day_of(answer.records[-1]) if answer.records else ""
    following = address_with(f"{PRIVATE}/list", **filters, offset=offset + PAGE, after=last)
    return fragment(
        "activity_list.html",
        is_narrowed=any(filters.values()),
        totals=answer.totals if not offset else None,
        by=BY,
        after=after,
        days=_by_day(answer.records),
        took=milliseconds,
        colour_of=colour_of,
        why_of=why_of,
        has_journal=spool.is_on(),
        more=following if answer.more else "",
    )


@routes.post(f"{PRIVATE}/teach", dependencies=[Depends(one_at_a_time)])
def teach(client: Client, body: TeachBody) -> HTMLResponse:
    """Write into a lesson that it comes at a prompt, or stays out; or take that back."""
    command = api.injection.teach_lesson(name=body.lesson, **body.model_dump(exclude={"lesson"}))
    done, _ = client.change(command)
    values = {"lesson": done.id, **body.model_dump(exclude={"lesson", "undo"})}
    return fragment("taught.html", done=done, body=values, undone=body.undo)


class WordBody(BaseModel):
    """A person's word on a lesson."""

    lesson: Id
    word: Literal["yes", "no", "wrong"]


@routes.post(f"{PRIVATE}/useful", dependencies=[Depends(one_at_a_time)])
def useful(client: Client, body: WordBody) -> HTMLResponse:
    """Note whether a lesson was useful."""
    done, _ = client.look(api.injection.useful(name=body.lesson, word=body.word))
    return fragment("useful.html", done=done)


def day_of(record: Injection) -> str:
    """Return the day of a record, as its user has it."""
    return local(record.time, "%Y-%m-%d")


Row = tuple[Injection, int]  # the count of prompts without text that it stands for; 0 for an event


def _by_day(records: Iterable[Injection]) -> list[tuple[str, str, list[Row]]]:
    return [(day, day_named(day), _rows(of_day)) for day, of_day in groupby(records, key=day_of)]


def _rows(records: Iterable[Injection]) -> list[Row]:
    """Return a row for each event; prompts in a row that got nothing, and have no text, share one."""
    rows: list[Row] = []
    for says_nothing, some in groupby(records, key=_says_nothing):
        together = list(some)
        rows += [(together[0], len(together))] if says_nothing else [(each, 0) for each in together]
    return rows


def _says_nothing(record: Injection) -> bool:
    is_prompt = record.event == "UserPromptSubmit"
    return is_prompt and not (record.text or record.came or record.missed or record.near)


def colour_of(record: Injection) -> str:
    """Return the class of a record's row: came, near, wrong or none."""
    return "wrong" if record.missed else "came" if record.came else "near" if record.near else ""


def why_of(record: Injection) -> str:
    """Return the reason of a silence; "" if something came."""
    near, floor, reason = record.near, record.floor, record.silent
    if record.came:
        return ""
    name = (near.title or near.id) if near else ""
    if reason == NOTHING:
        if near is None or near.score is None or floor is None:
            return "silent: no lesson shares a word or a meaning with it"
        is_below = near.score < floor  # older records have other rules' silences, too
        figures = f", {percent_of(near.score)}% of {percent_of(floor)}%" if is_below else ""
        figures = f", {TOO_FEW_WORDS}" if figures and near.by_words else figures
        return f"silent; nearest: {name}{figures}"
    what = f": {name}" if name and reason else ""
    return f"{'missed' if record.missed else 'silent'}: {reason or 'nobody noted why'}{what}"
