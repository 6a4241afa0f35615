"""The page of the vault in numbers: what it holds, how it grew, what is used, what needs a look.

Lessons are counted for anybody. Texts that agents received and the state of this machine are private.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse

from vault_index import api
from vault_index.entrypoints import doctor
from vault_index.entrypoints.web.render import fragment, page
from vault_index.entrypoints.web.shapes import Text, Word
from vault_index.entrypoints.web.vault_client import Client
from vault_index.entrypoints.words import status
from vault_index.search.contents import COURSE
from vault_index.search.documents import Document, Part
from vault_index.store import moments
from vault_index.vault import open_vault

Place = TypeVar("Place", Document, Part)
PRIVATE = "/page/private/vault"
MAX_ROWS = 200  # of a table; the line below it says how many more there are
WIDTH, HEIGHT = 720, 140  # of the plot, in its own units
LABEL = 11  # columns that a line of `lessons status` begins with
TROUBLE = ("problem", "hook log")
HEALTH = ("git", "embedder", "index", "floor", "also", "learning", "journal", "hooks")

routes = APIRouter(include_in_schema=False)


@routes.get("/vault")
def vault() -> HTMLResponse:
    """Show the page."""
    return page("vault.html", at="/vault", title="Vault")


@routes.get("/page/vault/overview")
def overview(client: Client) -> HTMLResponse:
    """Show the vault in numbers."""
    numbers = client.ask(api.document.overview())
    health = client.ask(api.search.health())
    growth = numbers["growth"]
    return fragment(
        "vault_overview.html",
        **numbers,
        degraded=moments.local(health.degraded_since),
        missing=client.shown_error(health.text_only),
        shown_categories=numbers["categories"][:MAX_ROWS],
        most=max((each["lessons"] for each in numbers["categories"]), default=1),
        line=_line(growth["days"]),
        new_days=[each for each in reversed(growth["days"]) if each["new"]][:MAX_ROWS],
        size=(WIDTH, HEIGHT),
    )


@routes.get(f"{PRIVATE}/state")
def state(client: Client) -> HTMLResponse:
    """Show what agents used, and the health of the vault on this machine."""
    answer, notes = client.look(api.state.report())
    vault = open_vault(client.root)
    answer |= doctor.state(vault)
    lines = [(line[:LABEL].strip(), client.shown(line[LABEL:])) for line in status.lines(answer)]
    health = [line for line in lines if line[0] in HEALTH]
    return fragment(
        "vault_state.html",
        used=answer["injections"],
        proposals=answer["proposals"],
        health=[*health, ("watcher", client.shown(status.watcher_line(answer["watcher"])))],
        problems=[line for line in lines if line[0] in TROUBLE],
        settings=[text for label, text in lines if label == "settings"],
        notes=notes,
    )


@routes.get(f"{PRIVATE}/stale")
def stale(client: Client) -> HTMLResponse:
    """Show which lessons should be looked at again, and why."""
    answer, notes = client.look(api.injection.stale_lessons())
    return fragment("vault_stale.html", **answer, notes=notes, most=MAX_ROWS)


@routes.get(f"{PRIVATE}/check")
def check(client: Client) -> HTMLResponse:
    """Check all files of the vault."""
    (findings, files), notes = client.look(api.share.check_files())
    findings = sorted(findings, key=lambda each: each.severity)  # errors first
    values = {"findings": findings, "files": files, "notes": notes}
    return fragment("vault_check.html", **values, most=MAX_ROWS)


def _line(days: Sequence[Mapping[str, Any]]) -> str:
    """Return the growth as a path: a step on each day with a new lesson."""
    dates = [date.fromisoformat(each["day"]) for each in days]
    span = max(1, (dates[-1] - dates[0]).days)
    most = max(1, days[-1]["all"])
    path = ""
    for day, each in zip(dates, days, strict=True):
        x, y = (WIDTH * (day - dates[0]).days / span, HEIGHT * (1 - each["all"] / most))
        path += f"H{x:.1f}V{y:.1f}" if path else f"M0 {y:.1f}"
    return f"{path}H{WIDTH}"  # where all came today


# The page of documents: courses and collections, found by half-remembered names, with their
# lessons.

AT_ONCE = 100  # documents; a button shows more
WEB = ("https://", "http://")

document_routes = APIRouter(include_in_schema=False)


@document_routes.get("/documents")
def documents(name: Word = "") -> HTMLResponse:
    """Show the page."""
    return page("documents.html", at="/documents", title="Documents", name=name)


@document_routes.get("/page/documents/list")
def listed(
    client: Client, name: Word = "", limit: Annotated[int, Query(ge=1, le=100_000)] = AT_ONCE
) -> HTMLResponse:
    """Show the documents, or those that may be called so."""
    found = client.ask(api.document.select(name=name))
    return fragment(
        "documents_list.html",
        documents=[_linked(document) for document in found[:limit]],
        courses=sum(document.kind == COURSE for document in found),
        count=len(found),
        name=name.strip(),
        next_limit=limit + AT_ONCE if len(found) > limit else 0,
    )


@document_routes.get("/page/documents/contents")
def contents(client: Client, path: Annotated[Text, Query(max_length=4000)]) -> HTMLResponse:
    """Show the lessons of a document."""
    lessons = client.ask(api.document.contents(path=path))
    return fragment("documents_contents.html", lessons=list(map(_linked, lessons)))


def _linked(place: Place) -> Place:
    """Return a document or lesson with a link only where it leads into the web."""
    return place if place.link.lower().startswith(WEB) else replace(place, link="")
