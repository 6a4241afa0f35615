"""The page that asks: a conversation, with the sources of each answer.

An answer is sent as it is written; its end has the HTML of the whole. Passages may be of the journal,
so all of that needs the key; what is suggested comes from lessons alone.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from contextlib import aclosing
from typing import Any
from urllib.parse import urlsplit

from anyio.to_thread import run_sync
from fastapi import APIRouter
from fastapi.responses import HTMLResponse
from fastapi.sse import EventSourceResponse
from markupsafe import Markup

from vault_index.ask import citations
from vault_index.entrypoints.web import answers
from vault_index.entrypoints.web.answers import values_of
from vault_index.entrypoints.web.pages.markdown import html_of
from vault_index.entrypoints.web.pages.render import fragment, page
from vault_index.entrypoints.web.shapes import AskBody
from vault_index.entrypoints.web.vault_client import Client

_TAG = re.compile(r"(<[^>]*>)")
_CITATION = re.compile(r"\[(\d{1,3})\]")
_NO_TEXT = re.compile(r"<(/?)(?:code|pre|a)\b")  # what is in these elements is no citation
_CITED = Markup('<button type="button" class="cite" data-cited="{0}">[{0}]</button>')

routes = APIRouter(include_in_schema=False)


@routes.get("/ask")
def ask() -> HTMLResponse:
    """Show the page."""
    return page("ask.html", at="/ask", title="Ask")


@routes.get("/page/ask/suggested")
def suggested(client: Client) -> HTMLResponse:
    """Show questions to begin with."""
    return fragment("ask_suggested.html", questions=client.ask("suggestions", {})["questions"])


@routes.get("/page/private/ask/state")
def state(client: Client) -> HTMLResponse:
    """Show who answers."""
    settings = {each["name"]: each["value"] for each in client.ask("config", {})["settings"]}
    return fragment("ask_state.html", model=settings["ask.model"])


@routes.post("/page/private/ask")
async def answer(client: Client, body: AskBody) -> EventSourceResponse:
    """Send an answer as it is written, and its HTML at the end."""
    return answers.stream(_as_html(answers.events(client, values_of(body))))


async def _as_html(events: answers.Events) -> answers.Events:
    """Yield events as the page needs them."""
    async with aclosing(events):
        async for event in events:
            if event["event"] == "passages":
                yield {"event": "passages", "count": len(event["passages"])}
            elif event["event"] == "done":
                kept = {key: event[key] for key in ("event", "status", "session_id")}
                count = {"sources": len(event["sources"])}
                yield {**kept, **count, "html": await run_sync(html_of_answer, event)}
            else:
                yield event


def html_of_answer(answer: Mapping[str, Any]) -> str:
    """Return an answer with what it rests on, as HTML in which nothing acts."""
    is_written = answer["status"] == "answered"
    shown = answer["sources"] if is_written else answer["sources"] or answer["passages"]
    text = cited(html_of(answer["answer"]), {each["number"] for each in shown})
    is_open = not answer["sources"] and answer["status"] in ("passages", "failed")
    sources = [
        {**each, "runs": citations.runs(each["text"], each["best"]), "host": _host(each["link"])}
        for each in shown
    ]
    done = fragment("ask_answer.html", answer=answer, text=text, sources=sources, is_open=is_open)
    return bytes(done.body).decode()


def cited(html: Markup, numbers: Collection[int]) -> Markup:
    """Return HTML of ours in which each citation of these numbers is a button, but for code."""
    parts, depth = _TAG.split(html), 0
    for at, part in enumerate(parts):
        element = _NO_TEXT.match(part) if at % 2 else None
        if element:
            depth += -1 if element[1] else 1
        elif not at % 2 and not depth:
            parts[at] = _CITATION.sub(
                lambda mark: (
                    str(_CITED.format(int(mark[1]))) if int(mark[1]) in numbers else mark[0]
                ),
                part,
            )
    return Markup("".join(parts))


def _host(link: str) -> str:
    """Return the host that a link of a lesson leads to, "" for any other link."""
    try:
        parts = urlsplit(link)
    except ValueError:
        return ""
    return parts.netloc if parts.scheme in ("http", "https") else ""
