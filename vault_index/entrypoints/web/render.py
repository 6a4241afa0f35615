"""Templates -> responses. All values are escaped and visible, and a strict policy holds what is missed.

The page itself holds all that the first paint waits for: our own style sheets, and the script that takes
the scheme. The policy has their hashes, so nothing else between tags is a style or a script.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from vault_index.entrypoints.web.refusal import Refusal
from vault_index.features import FEATURES
from vault_index.retrieval.hit import percent_of, strength_of
from vault_index.store import times
from vault_index.text.quote import visible
from vault_index.text.words import ago, count

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

CSP = (
    "default-src 'none'; script-src 'self'{script}; style-src 'self'{styles}; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": CSP.format(script="", styles=""),
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}
SECONDS, LONG_AGO = 120, 90 * 86_400
KINDS = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_PAGES = tuple(each.page for each in FEATURES if each.page)
# address and name; a page below another is named on that one
NAVIGATION = (
    *(("/", "Home"), ("/lessons", "Lessons"), ("/activity", "Activity")),
    *(each for each in _PAGES if each[0].count("/") == 1),
    ("/vault", "Vault"),
)
BESIDE = tuple(each for each in _PAGES if each[0].count("/") > 1)
MOVED = {"/search": "/lessons", "/agents": "/activity", "/journal": "/activity", "/review": "/"}
# of vaults, so that tabs of several are told apart; white on each is at least 4.5:1
COLOURS = ("#1d5c8a", "#0f6b5c", "#5b4bb5", "#9a3f6d", "#8a4b14", "#3f6212", "#a13030", "#475569")

routes = APIRouter(include_in_schema=False)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader(__package__, "templates"),
        autoescape=True,
        finalize=lambda value: visible(value) if type(value) is str else value,  # `|e` is exact
        undefined=StrictUndefined,
        auto_reload=False,  # a server goes on with its version after an upgrade
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(navigation=NAVIGATION, static=address_of, ago=_ago)
    environment.globals.update(lesson=address_of_lesson, address_with=address_with)
    # a style sheet or script of ours, a file of this package, as it goes between its tags
    environment.globals.update(within=lambda name: Markup(_static()[name].decode()))
    environment.globals.update(percent_of=percent_of, strength_of=strength_of, counted=count)
    return environment


class Shown(NamedTuple):
    """A vault as its pages show it."""

    name: str
    colour: str


_shown: ContextVar[Shown] = ContextVar("shown")  # each request has it: see WithName


def shown_vault(name: str) -> Shown:
    """Return a vault's name as it is shown, and its colour."""
    number = hashlib.sha256(name.encode("utf-8", "replace")).digest()[0]
    return Shown(name.encode("utf-8", "replace").decode(), COLOURS[number % len(COLOURS)])


class WithName:
    """Has the pages of an application show its vault: a process may serve several."""

    def __init__(self, app: ASGIApp, name: str) -> None:
        self._app = app
        self._vault = shown_vault(name)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        _shown.set(self._vault)
        await self._app(scope, receive, send)


def page(template: str, *, at: str, title: str, status: int = 200, **values: Any) -> HTMLResponse:
    """Return a page; `at` is the address of its entry in the navigation, or ""."""
    values = {"wide": False, **values, "at": at, "title": title, "vault": _shown.get()}
    text = _environment().get_template(template).render(**values)
    return HTMLResponse(text, status, headers={**HEADERS, "content-security-policy": _policy()})


def refused(refusal: Refusal) -> HTMLResponse:
    """Return the page of an address that is not answered."""
    texts = {"error": refusal.error, "hint": refusal.hint}
    return page("refused.html", at="", title="Not shown", status=refusal.status, **texts)


def fragment(template: str, **values: Any) -> HTMLResponse:
    """Return a part of a page, which its script puts into its place."""
    return HTMLResponse(_environment().get_template(template).render(**values), headers=HEADERS)


def _ago(at: str | datetime | None) -> Markup:
    """Return a moment for people: how long ago, and when exactly on hover. A text is ISO 8601."""
    at = at.isoformat() if isinstance(at, datetime) else at or ""
    try:
        moment = datetime.fromisoformat(at)
    except ValueError:
        return escape(at)
    seconds = (datetime.now(UTC) - moment.astimezone()).total_seconds()
    recent = ago(seconds) if seconds >= SECONDS else "just now"
    text = recent if seconds < LONG_AGO else f"{moment.day} {moment:%b %Y}"
    exact = times.local(at, times.TO_SECONDS)
    return Markup('<time datetime="{}" title="{}">{}</time>').format(at, exact, text)


@cache
def _policy() -> str:
    return CSP.format(script=_source("first.js"), styles=_source("page.css"))


def _source(name: str) -> str:
    digest = base64.b64encode(hashlib.sha256(_static()[name]).digest()).decode()
    return f" 'sha256-{digest}'"


def address_of(name: str) -> str:
    """Return the address of a static file, another one after any of them changed.

    Scripts import each other by relative addresses, so that all of a version are in one folder.
    """
    return f"/static/{_version()}/{name}"


def address_of_lesson(id: str) -> str:
    """Return the address of a lesson's page."""
    return f"/lesson/{quote(id)}"


def address_with(path: str, **values: Any) -> str:
    """Return an address that names the values which are not empty; of a list each."""
    query = urlencode({name: value for name, value in values.items() if value}, doseq=True)
    return f"{path}?{query}" if query else path


@routes.get("/icon.svg")
async def tab_icon() -> Response:
    """Return the icon of the vault's tab, in its colour."""
    icon = _static()["icon.svg"].replace(COLOURS[0].encode(), _shown.get().colour.encode())
    return Response(icon, media_type="image/svg+xml", headers=HEADERS)


def moved(request: Request) -> RedirectResponse:
    """Lead from the address of a page as a bookmark has it to the page of today."""
    to = request.url.replace(path=MOVED[request.url.path])
    return RedirectResponse(f"{to.path}?{to.query}" if to.query else to.path, 301, headers=HEADERS)


for _old in MOVED:
    routes.add_api_route(_old, moved, include_in_schema=False)


@routes.get("/static/{version}/{name}")
async def static(version: str, name: str) -> Response:
    """Return a style sheet or script. Raises Refusal."""
    if version != _version() or name not in _static():
        raise Refusal(404, "there is no such file", "load the page again")
    kind = KINDS[name[name.rindex(".") :]]
    kept = {**HEADERS, "cache-control": "max-age=31536000, immutable"}
    return Response(_static()[name], media_type=f"{kind}; charset=utf-8", headers=kept)


@cache
def _static() -> Mapping[str, bytes]:
    folder = files(__package__).joinpath("static")
    kept = [file for file in folder.iterdir() if file.name[file.name.rfind(".") :] in KINDS]
    return {file.name: file.read_bytes() for file in sorted(kept, key=lambda file: file.name)}


@cache
def _version() -> str:
    return hashlib.sha256(b"".join(_static().values())).hexdigest()[:12]
