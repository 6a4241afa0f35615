"""Home: what a person should do, in one list, and what colleagues wrote.

GET /                    the page
GET /page/home/added     what others added to the vault, for anybody
GET /page/private/home   the figure of the week and the list
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

from vault_index import api
from vault_index.api.injection import Injection
from vault_index.entrypoints.web.activity import why_of
from vault_index.entrypoints.web.render import fragment, page
from vault_index.entrypoints.web.vault_client import Client, VaultClient
from vault_index.git import UNKNOWN_AUTHOR, author_name
from vault_index.recall.silence import CAN_BE_TAUGHT

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
    entries = client.ask_cached(api.lesson.select(order="updated", limit=MAX_RECORDS))
    since, nobody = _since(), ("", UNKNOWN_AUTHOR, author_name(client.root))
    others = [
        each
        for each in entries
        if each.updated_at
        and each.updated_at >= since
        and each.author not in nobody
        and not each.withheld
    ]
    return fragment("home_added.html", added=others[:SHOWN], count=len(others), since=since)


@routes.get("/page/private/home")
def to_do(client: Client) -> HTMLResponse:
    """Show what waits: proposals, near misses, repeated failures, lessons that were called wrong."""
    since = _since().isoformat(timespec="seconds")
    answer = client.ask(api.injection.select(since=since, limit=MAX_RECORDS))
    proposals, notes = client.look(api.proposal.select())
    wrong = client.look(api.injection.stale_lessons(only_wrong=True))[0].reasons
    repeated, times = _repeated(answer.records)
    near = _near(answer.records)
    is_near = {each.prompt for each in near}
    failures = [each for each in repeated if each.prompt not in is_near]
    return fragment(
        "home_list.html",
        lessons=client.ask(api.search.health()).lessons,
        totals=answer.totals,
        proposals=proposals[:PROPOSALS],
        waiting=len(proposals),
        near=near,
        why_of=why_of,
        times=times,
        failures=list(islice(_without_lesson(client, failures), SHOWN)),
        wrong=wrong,
        notes=notes,
    )


def _since() -> datetime:
    return datetime.now(UTC) - timedelta(days=DAYS)


def _near(records: Iterable[Injection]) -> list[Injection]:
    """Return the prompts for which nothing came, and a lesson was near; the nearest first."""
    once: dict[tuple[str, str], tuple[float, Injection]] = {}
    for record in records:  # the latest first
        near = record.near
        if record.came or record.silent not in CAN_BE_TAUGHT:
            continue
        if near and record.can_be_marked and near.is_there and not near.taught:
            score, least = near.score, MIN_NEAR * (record.floor or 0)
            if score is None or score >= least:
                once.setdefault((record.prompt, near.id), (score or 0, record))
    ranked = sorted(once.values(), key=lambda each: -each[0])
    return [record for _, record in ranked[:SHOWN]]


def _repeated(records: Iterable[Injection]) -> tuple[list[Injection], Counter[str]]:
    """Return the failures that came several times and got no lesson, and how often each came.

    The most frequent is the first. One that got a lesson since is left out.
    """
    failures: dict[str, Injection] = {}
    times, helped = Counter[str](), set[str]()
    for record in records:  # the latest first
        if record.kind == "error" and record.lessons:
            helped.add(record.prompt)
        elif record.kind == "error" and record.text and record.prompt not in helped:
            failures.setdefault(record.prompt, record)
            times[record.prompt] += 1
    often = [failures[key] for key, many in times.most_common() if many >= MIN_FAILURES]
    return often, times


def _without_lesson(client: VaultClient, failures: Iterable[Injection]) -> Iterator[Injection]:
    for each in islice(failures, 3 * SHOWN):
        if not client.look(api.search.recall_failure(output=each.text))[0].hits:
            yield each
