"""The page of today, where one starts: what agents got, what waits, what is new, what went wrong.

GET /                     the page
GET /page/today/added     what others added to the vault, for anybody
GET /page/private/today   the rest
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

from vault_index import api
from vault_index.entrypoints.web.agents import shown_record
from vault_index.entrypoints.web.render import fragment, page
from vault_index.entrypoints.web.vault_client import Client, VaultClient
from vault_index.git import author_name
from vault_index.store.moments import local

PRIVATE = "/page/private/today"
DAYS = 7
MAX_RECORDS = 300  # of the week that are looked through
SHOWN = 5  # of each kind; a link goes to all
MIN_FAILURES = 2  # of one command, without a lesson
MIN_NEAR = 0.5  # of the floor: what scores less was not near

routes = APIRouter(include_in_schema=False)


@routes.get("/")
def today() -> HTMLResponse:
    """Show the page."""
    return page("today.html", at="/", title="Today")


@routes.get("/page/today/added")
def added(client: Client) -> HTMLResponse:
    """Show the lessons that others changed this week; all of them where git does not know its user."""
    entries = client.ask_cached(api.lesson.select(order="updated", limit=MAX_RECORDS))["entries"]
    own, since = author_name(client.root), _since()
    recent = [entry for entry in entries if (entry["updated_at"] or "") >= since]
    others = [
        entry for entry in recent if entry["author"] not in ("", own) and not entry["withheld"]
    ]
    parts = [
        ("New", [each for each in others if (each["created_at"] or "") >= since]),
        ("Changed", [each for each in others if (each["created_at"] or "") < since]),
    ]
    shown = [(name, lessons[:SHOWN], len(lessons)) for name, lessons in parts if lessons]
    return fragment("today_added.html", parts=shown, count=len(others))


@routes.get(PRIVATE)
def mine(client: Client) -> HTMLResponse:
    """Show what agents got this week, what was near, what waits and what failed again and again."""
    answer = client.ask(api.injection.select(since=_since(), limit=MAX_RECORDS))
    proposals, notes = client.look(api.proposal.select())
    records = [{**shown_record(each), "when": _when(each["time"])} for each in answer["records"]]
    near = [each for each in records if _can_be_taught(each)]
    return fragment(
        "today_mine.html",
        totals=answer["totals"],
        given=_by_lesson(records)[:SHOWN],
        near=_apart(near)[:SHOWN],
        proposals=proposals[:SHOWN],
        waiting=len(proposals),
        failures=_without_lesson(client, _repeated(records)),
        notes=notes,
    )


def _since() -> str:
    return (datetime.now(UTC) - timedelta(days=DAYS)).isoformat(timespec="seconds")


def _when(at: str) -> str:
    day = local(at, "%a %d %b")
    return local(at, "today %H:%M") if day == datetime.now().strftime("%a %d %b") else day


def _can_be_taught(record: Mapping[str, Any]) -> bool:
    """Whether nothing came for a prompt, and a lesson that is there was near; both not taught yet."""
    near, floor = record["near"], record["floor"]
    is_silent = not record["lessons"] and not record["skills"]
    if not (is_silent and record["can_be_marked"] and near and near["is_there"]):
        return False
    is_near = floor is None or near["score"] is None or near["score"] >= MIN_NEAR * floor
    return is_near and not near["taught"]


def _apart(records: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return records with each prompt once, as it came last, the nearest first."""
    once: dict[tuple[str, str], Mapping[str, Any]] = {}
    for record in records:  # the latest first
        once.setdefault((record["prompt"], record["near"]["id"]), record)
    return sorted(once.values(), key=lambda record: -(record["near"]["score"] or 0))


def _by_lesson(records: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the lessons that agents got, with how often."""
    lessons: dict[str, dict[str, Any]] = {}
    for record in records:
        for lesson in record["lessons"]:
            first = {**lesson, "times": 0, "when": record["when"]}
            lessons.setdefault(lesson["id"], first)["times"] += 1
    return sorted(lessons.values(), key=lambda lesson: -lesson["times"])


def _repeated(records: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the failures that came several times and got no lesson, the most frequent first.

    One that got a lesson since is left out.
    """
    failures: dict[str, dict[str, Any]] = {}
    helped: set[str] = set()
    for record in records:  # the latest first
        if record["kind"] == "error" and record["lessons"]:
            helped.add(record["prompt"])
        elif record["kind"] == "error" and record["text"] and record["prompt"] not in helped:
            first = {"text": record["text"], "when": record["when"], "times": 0}
            failures.setdefault(record["prompt"], first)["times"] += 1
    often = [failure for failure in failures.values() if failure["times"] >= MIN_FAILURES]
    return sorted(often, key=lambda failure: -failure["times"])


def _without_lesson(
    client: VaultClient, failures: Iterable[dict[str, Any]]
) -> list[dict[str, Any]]:
    asked = ((each, api.search.recall_failure(output=each["text"])) for each in failures)
    without = (
        each for each, question in islice(asked, 3 * SHOWN) if not client.look(question)[0].hits
    )
    return list(islice(without, SHOWN))
