"""Home: what a person should do, in one list, and what colleagues wrote.

GET /                    the page
GET /page/home/added     what others added to the vault, for anybody
GET /page/private/home   the figure of the week and the list
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

from vault_index import api
from vault_index.entrypoints.web.activity import shown_record
from vault_index.entrypoints.web.render import fragment, page
from vault_index.entrypoints.web.vault_client import Client, VaultClient
from vault_index.git import author_name

DAYS = 7
MAX_RECORDS = 300  # of the week that are looked through
PROPOSALS = 50
SHOWN = 5  # of each other kind
MIN_FAILURES = 2  # of one command, without a lesson
MIN_NEAR = 0.5  # of the floor: what scores less was not near

routes = APIRouter(include_in_schema=False)


@routes.get("/")
def home() -> HTMLResponse:
    """Show the page."""
    return page("home.html", at="/", title="Home")


@routes.get("/page/home/added")
def added(client: Client) -> HTMLResponse:
    """Show the lessons that others changed this week; all of them where git does not know its user."""
    entries = client.ask_cached(api.lesson.select(order="updated", limit=MAX_RECORDS))["entries"]
    own, since = author_name(client.root), _since()
    others = [
        {**each, "is_new": (each["created_at"] or "") >= since}
        for each in entries
        if (each["updated_at"] or "") >= since
        and each["author"] not in ("", own)
        and not each["withheld"]
    ]
    return fragment("home_added.html", added=others[:SHOWN], count=len(others))


@routes.get("/page/private/home")
def to_do(client: Client) -> HTMLResponse:
    """Show what waits: proposals, near misses, repeated failures, lessons that were called wrong."""
    answer = client.ask(api.injection.select(since=_since(), limit=MAX_RECORDS))
    proposals, notes = client.look(api.proposal.select())
    wrong = client.look(api.injection.stale_lessons(only_wrong=True))[0]["reasons"]
    records = [shown_record(each) for each in answer["records"]]
    repeated = _repeated(records)
    near = _near(records, {each["prompt"]: each["times"] for each in repeated})
    is_near = {each["prompt"] for each in near}
    failures = [each for each in repeated if each["prompt"] not in is_near]
    return fragment(
        "home_list.html",
        lessons=client.ask(api.search.health()).lessons,
        totals=answer["totals"],
        proposals=proposals[:PROPOSALS],
        waiting=len(proposals),
        near=near,
        failures=list(islice(_without_lesson(client, failures), SHOWN)),
        wrong=wrong,
        notes=notes,
    )


def _since() -> str:
    return (datetime.now(UTC) - timedelta(days=DAYS)).isoformat(timespec="seconds")


def _near(
    records: Iterable[Mapping[str, Any]], times: Mapping[str, int]
) -> list[Mapping[str, Any]]:
    once: dict[tuple[str, str], Mapping[str, Any]] = {}
    for record in filter(_can_be_taught, records):  # the latest first
        key = record["prompt"], record["near"]["id"]
        once.setdefault(key, {**record, "times": times.get(record["prompt"], 0)})
    return sorted(once.values(), key=lambda record: -(record["near"]["score"] or 0))[:SHOWN]


def _can_be_taught(record: Mapping[str, Any]) -> bool:
    """Whether nothing came for a prompt, and a lesson that is there was near; both not taught yet."""
    near, floor = record["near"], record["floor"]
    is_silent = not record["lessons"] and not record["skills"]
    if not (is_silent and record["can_be_marked"] and near and near["is_there"]):
        return False
    is_near = floor is None or near["score"] is None or near["score"] >= MIN_NEAR * floor
    return is_near and not near["taught"]


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
            failures.setdefault(record["prompt"], {**record, "times": 0})["times"] += 1
    often = [failure for failure in failures.values() if failure["times"] >= MIN_FAILURES]
    return sorted(often, key=lambda failure: -failure["times"])


def _without_lesson(
    client: VaultClient, failures: Iterable[dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    for each in islice(failures, 3 * SHOWN):
        if not client.look(api.search.recall_failure(output=each["text"]))[0].hits:
            yield each
