"""The page of agents: what was given to which session at which prompt, why, and how fast."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query
from fastapi.responses import HTMLResponse
from pydantic import BaseModel, Field

from vault_index import api
from vault_index.entrypoints.web.lessons import one_at_a_time
from vault_index.entrypoints.web.render import address_with, fragment, page
from vault_index.entrypoints.web.shapes import MAX_PROMPT_CHARS, Id, Text, Word
from vault_index.entrypoints.web.vault_client import Client
from vault_index.search.hit import percent_of
from vault_index.store import moments
from vault_index.store.moments import local, milliseconds

AT = "/agents"
PRIVATE = "/page/private/agents"
PAGE = 50  # records at once
BY = {"watcher": "from the watcher", "process": "without a watcher", "hook": "missed"}

Only = Literal["", "answered", "silent"]

routes = APIRouter(include_in_schema=False)


class TeachBody(BaseModel):
    """A prompt of a session that a lesson should fire at, or should not."""

    lesson: Id
    kind: Literal["fires_on", "silent_on", "fires_on_error", "silent_on_error"]
    session: Id = ""
    key: Id = ""  # the hash of the prompt
    prompt: Annotated[Text, Field(max_length=MAX_PROMPT_CHARS)] = ""  # where the journal has it not
    undo: bool = False


def narrowed(
    session: Word = "", lesson: Word = "", only: Only = "", since: Word = ""
) -> dict[str, Any]:
    """Return what the records are narrowed to, by the parameters of the request."""
    return {"session": session, "lesson": lesson, "only": only, "since": since}


Narrowed = Annotated[dict[str, Any], Depends(narrowed)]


@routes.get(AT)
def agents(narrowed: Narrowed) -> HTMLResponse:
    """Show the page; what it is narrowed to is in its address."""
    contents = address_with(f"{PRIVATE}/list", **narrowed)
    return page("agents.html", at=AT, title="Agents", **narrowed, list=contents)


@routes.get(f"{PRIVATE}/list")
def list_(
    client: Client, narrowed: Narrowed, offset: Annotated[int, Query(ge=0, le=1_000_000)] = 0
) -> HTMLResponse:
    """Show some of the records, the latest first; before the first of them the sums."""
    since = narrowed["since"].strip()
    with client.refusing(422):
        asked = {**narrowed, "since": moments.since(since) if since else ""}
    answer = client.ask(api.injection.select(**asked, limit=PAGE, offset=offset), status=422)
    totals = answer["totals"]
    following = address_with(f"{PRIVATE}/list", **narrowed, offset=offset + PAGE)
    return fragment(
        "agents_list.html",
        is_first=offset == 0,
        by=BY,
        is_narrowed=any(narrowed.values()),
        totals=totals,
        since=local(totals["since"] or ""),
        sessions=_by_session(answer["records"]),
        has_journal=answer["journal"],
        more=following if answer["more"] else "",
    )


@routes.post(f"{PRIVATE}/teach", dependencies=[Depends(one_at_a_time)])
def teach(client: Client, body: TeachBody) -> HTMLResponse:
    """Write into a lesson that it fires at a prompt, or stays out; or take that back."""
    command = api.injection.teach_lesson(name=body.lesson, **body.model_dump(exclude={"lesson"}))
    done = client.change(command, lambda answer: [answer["path"]])
    text = "" if body.prompt else "kept"
    return fragment(
        "agents_marked.html",
        done=done,
        path=client.shown(done["path"]),
        lesson={"id": done["id"], "taught": "" if body.undo else body.kind, "is_there": True},
        record={"session": body.session, "prompt": body.key, "text": text},
        kind=body.kind,
        typed=body.prompt,
    )


class WordBody(BaseModel):
    """A person's word on a lesson."""

    lesson: Id
    word: Literal["yes", "no", "wrong"]


@routes.post(f"{PRIVATE}/useful", dependencies=[Depends(one_at_a_time)])
def useful(client: Client, body: WordBody) -> HTMLResponse:
    """Note whether a lesson was useful."""
    done, _ = client.look(api.injection.useful(name=body.lesson, word=body.word))
    return fragment("agents_useful.html", **done)


def _by_session(records: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return records by their sessions, the session with the latest record first."""
    groups: dict[str, dict[str, Any]] = {}
    for record in records:
        group = groups.setdefault(record["session"], {"id": record["session"], "records": []})
        group["project"] = record["project"]
        group["is_kept"] = record["is_kept"]
        group["records"].append(shown_record(record))
    return list(groups.values())


def shown_record(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record with its times in words, and the reason of a silence."""
    return {
        **record,
        "when": local(record["time"], moments.TO_SECONDS),
        "took": "" if record["ms"] is None else milliseconds(record["ms"]),
        "is_start": record["event"] == "SessionStart",
        "can_be_marked": bool(record["prompt"]) and record["kind"] != "file",
        "fires": "fires_on_error" if record["kind"] == "error" else "fires_on",
        "silences": "silent_on_error" if record["kind"] == "error" else "silent_on",
        "why": "" if record["lessons"] or record["skills"] else _why(record),
    }


def _why(record: Mapping[str, Any]) -> str:
    near, floor, said = record["near"], record["floor"], record["silent"]
    if near and floor is not None and near["score"] is not None and near["score"] < floor:
        scores = percent_of(near["score"])
        return f"the nearest lesson scores {scores}%, below the floor of {percent_of(floor)}%"
    if said == "nothing new":
        return "the session has this lesson already" if near else "the session has it already"
    if said == "nothing above the floor" and not near:
        return "no lesson shares a word or a meaning with it"
    return said or "this record is from before reasons were kept"
