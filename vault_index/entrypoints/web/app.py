"""The application: the routes of one vault, their errors, and `/openapi.json`, which describes them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

from anyio.to_thread import current_default_thread_limiter
from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import HTMLResponse

from vault_index import features
from vault_index.entrypoints.guard import Scope, is_write
from vault_index.entrypoints.web import (
    activity,
    home,
    lessons,
    live,
    page_key,
    refusal,
    render,
    search,
    vault,
    writing,
)
from vault_index.entrypoints.web.vault_client import VaultClient
from vault_index.watch.current import AT_ONCE

docs_routes = APIRouter(include_in_schema=False)


@docs_routes.get("/docs")
def docs(request: Request) -> HTMLResponse:
    """Show the routes."""
    routes = list(described(request.app))
    return render.page("docs.html", at="", title="Routes", routes=routes, wide=True)


def described(app: FastAPI) -> Iterator[tuple[str, str, list[str], list[str]]]:
    """Yield each route of an application, what it does, and the fields that it takes and answers."""
    openapi = app.openapi()

    def fields(part: Mapping[str, Any]) -> list[str]:
        schema = part.get("content", {}).get("application/json", {}).get("schema", {})
        names = (each.get("$ref", "").rpartition("/")[2] for each in schema.get("anyOf", [schema]))
        schemas = (openapi["components"]["schemas"].get(name, {}) for name in names)
        return list(
            dict.fromkeys(field for each in schemas for field in each.get("properties", ()))
        )

    for path, methods in openapi["paths"].items():
        for method, route in methods.items():
            inputs = [each["name"] for each in route.get("parameters", ()) if each["in"] == "query"]
            inputs = fields(route.get("requestBody", {})) or inputs
            about = " ".join(route["description"].partition("\n\n")[0].split())
            yield f"{method.upper()} {path}", about, inputs, fields(route["responses"]["200"])


# Threads that ask: as many as the watcher answers at once, and one more. The other requests wait in
# their order, where threads would pass each other.
THREADS = AT_ONCE + 1
MAX_BODY = 8 * 1024 * 1024  # bytes: a bulk of a thousand pages
QUERY = "/api/query"
PRIVATE = "/page/private/"  # fragments of pages with what only the user of this machine may read


@asynccontextmanager
async def _limited(_app: FastAPI) -> AsyncIterator[None]:
    current_default_thread_limiter().total_tokens = THREADS
    yield


def application(
    client: VaultClient, note: Callable[[str], None], keys: page_key.PageKeys | None = None
) -> FastAPI:
    """Return the application for a vault; `note` takes a line about each bug.

    Without `keys` no page gets one: each request needs the token then.
    """
    app = FastAPI(
        title="Lessons",
        description="The lessons of a team, and the journal of its user.",
        version=version("lessons-vault"),
        docs_url=None,  # whose script is on another host: `docs_routes`
        redoc_url=None,
        responses={"4XX": {"model": refusal.REFUSED, "description": "Refused"}},
        redirect_slashes=False,
        lifespan=_limited,
    )
    app.state.client = client
    app.add_middleware(render.WithName, name=client.root.name)
    app.state.live = live.Live(client)
    app.state.keys = keys
    refusal.add_handlers(app, note, render.refused)
    of_lessons = (lessons.query_routes, lessons.routes, lessons.page_routes)
    of_pages = (each.routes for each in (render, home, writing, search, activity, vault))
    core = (*of_lessons, *of_pages, live.routes, docs_routes, *([page_key.routes] if keys else ()))
    added = (routes for feature in features.FEATURES for routes in feature.routes())
    for routes in (*core, *added):
        app.include_router(routes)
    return app


_PRIVATE_ROUTES = tuple(each.private for each in features.FEATURES if each.private)


def needs_token(scope: Scope) -> bool:
    """Whether a request needs the token: it writes, or reads what only its user may read.

    A query is a POST that reads, and a page that asks for its key has none yet. Lessons are what a team
    shares; the journal's files are 0600, and other users of this machine can ask a port of it.
    """
    path = str(scope["path"])
    if path.startswith((*_PRIVATE_ROUTES, PRIVATE)):
        return True
    is_exchange = (scope["method"], path) == ("POST", page_key.EXCHANGE)
    return is_write(scope) and path != QUERY and not is_exchange
