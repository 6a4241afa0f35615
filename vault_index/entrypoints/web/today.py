"""The page of today, where one starts: what agents got, what waits, what is new, what went wrong.

GET /                     the page; an address with a search of before goes to /search
GET /page/today/added     what others added to the vault, for anybody
GET /page/private/today   the rest
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from vault_index import api
from vault_index.entrypoints.web.agents import shown_record
from vault_index.entrypoints.web.render import address_with, fragment, page
from vault_index.entrypoints.web.vault_client import Client
from vault_index.git import author_name
from vault_index.search.hit import percent_of

PRIVATE = "/page/private/today"
DAYS = 7
MAX_RECORDS = 300  # of the week that are looked through
SHOWN = 5  # of each kind; a link goes to all
MIN_FAILURES = 2  # of one command, without a lesson

routes = APIRouter(include_in_schema=False)


@routes.get("/")
def today(request: Request) -> Response:
    """Show the page; an old address of a search goes to that search."""
    if request.url.query:
        return RedirectResponse(f"/search?{request.url.query}")
    return page("today.html", at="/", title="Today")


@routes.get("/page/today/added")
def added(client: Client) -> HTMLResponse:
    """Show the lessons that others changed this week; all of them where git does not know its user."""
    entries = client.ask_cached(api.lesson.select(order="updated", limit=MAX_RECORDS))["entries"]
    own, since = author_name(client.root), _since()
    others = [
        entry
        for entry in entries
        if (entry["updated_at"] or "") >= since
        and entry["author"]
        and entry["author"] != own
        and not entry["withheld"]
    ]
    return fragment("today_added.html", lessons=others[:SHOWN], count=len(others))


@routes.get(PRIVATE)
def mine(client: Client) -> HTMLResponse:
    """Show what agents got this week, what was near, what waits and what failed again and again."""
    answer = client.ask(api.injection.select(since=_since(), limit=MAX_RECORDS))
    proposals, notes = client.look(api.proposal.select())
    records = [shown_record(each) for each in answer["records"]]
    near = [each for each in records if _can_be_taught(each)]
    return fragment(
        "today_mine.html",
        totals=answer["totals"],
        taken=_by_lesson(records)[:SHOWN],
        near=_apart(near)[:SHOWN],
        proposals=proposals["proposals"][:SHOWN],
        waiting=len(proposals["proposals"]),
        failures=_repeated(records)[:SHOWN],
        percent_of=percent_of,
        address_with=address_with,
        notes=notes,
    )


def _since() -> str:
    return (datetime.now(UTC) - timedelta(days=DAYS)).isoformat(timespec="seconds")


def _can_be_taught(record: Mapping[str, Any]) -> bool:
    """Whether nothing came for a prompt, and a lesson that is there was near."""
    near = record["near"]
    is_silent = not record["lessons"] and not record["skills"]
    return bool(is_silent and record["can_be_marked"] and near and near["is_there"])


def _apart(records: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return records with each prompt once, the nearest first."""
    once = {(record["prompt"], record["near"]["id"]): record for record in records}
    return sorted(once.values(), key=lambda record: -(record["near"]["score"] or 0))


def _by_lesson(records: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the lessons that agents got, with how often and how often they were taken."""
    lessons: dict[str, dict[str, Any]] = {}
    for record in records:
        for lesson in record["lessons"]:
            counted = lessons.setdefault(lesson["id"], {**lesson, "times": 0, "taken": 0})
            counted["times"] += 1
            counted["taken"] += lesson["outcome"] == "taken"
            counted.setdefault("when", record["when"])
    return sorted(lessons.values(), key=lambda lesson: (-lesson["taken"], -lesson["times"]))


def _repeated(records: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the failures that came several times and got no lesson, the most frequent first."""
    failures: dict[str, dict[str, Any]] = {}
    for record in records:
        if record["kind"] == "error" and record["text"] and not record["lessons"]:
            first = {"text": record["text"], "when": record["when"], "times": 0}
            failures.setdefault(record["prompt"], first)["times"] += 1
    often = [failure for failure in failures.values() if failure["times"] >= MIN_FAILURES]
    return sorted(often, key=lambda failure: -failure["times"])
