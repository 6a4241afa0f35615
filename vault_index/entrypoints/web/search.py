"""Lessons: the list by category, and the search as one types, with the floor drawn among the hits.

GET /lessons?q=heap&c=devops   the page; the script keeps what is asked for in the address
GET /page/search               its hits; /page/private/search also has the user's own skills

Withheld lessons are for whoever has the key, as on their own pages: a title may be what is to stay
private, and a hit says that the words asked for are in the text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

from anyio.to_thread import run_sync
from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse
from markupsafe import Markup

from vault_index import api
from vault_index.entrypoints.web.lessons import BOTH, is_shared
from vault_index.entrypoints.web.markdown import excerpt_of, title_with_marks
from vault_index.entrypoints.web.refusal import Refusal
from vault_index.entrypoints.web.render import address_with, fragment, page
from vault_index.entrypoints.web.vault_client import Client, VaultClient
from vault_index.entrypoints.wording.hits import (
    OUT_OF_ORDER,
    evidence,
    is_out_of_order,
    silent_from,
    without_quotes,
)
from vault_index.recall import block
from vault_index.recall.silence import without_withheld
from vault_index.retrieval.hit import ContextBlock, Hit, HitList, Query
from vault_index.retrieval.query import MAX_QUERY_CHARS
from vault_index.text.quote import clean
from vault_index.text.words import STOP_WORDS

EXCERPT_CHARS = 240
NEAR = 0.5  # of the floor: where no hit scores as much, nothing matches
MAX_WORDS = 30  # of a query that are marked
SHOWN, MORE, MAX_SHOWN = 20, 40, 400  # lessons: at first, with each "more", at most
MAX_TREE = 100  # categories of a list: the largest
PRIVATE = "/page/private/search"

routes = APIRouter(include_in_schema=False)


@dataclass(frozen=True, slots=True)
class Drawn:
    """A hit with its parts to show."""

    hit: Hit
    title: Markup
    excerpt: Markup  # empty for a withheld one
    evidence: str


@dataclass(frozen=True, slots=True)
class PageSearch:
    """The search of an address; "" as text: what is new."""

    text: str
    category: str
    count: int

    def address(self, **other: Any) -> str:
        return address_with("/lessons", **{"q": self.text, "c": self.category, **other})


def asked_for(q: str = "", c: str = "", n: str = "") -> PageSearch:
    """Return the search of an address: people edit addresses, so values without sense are left out."""
    text = " ".join(q.replace("\0", " ").split())[:MAX_QUERY_CHARS]
    count = min(int(n), MAX_SHOWN) if n.isdecimal() and len(n) < 5 else SHOWN
    return PageSearch(text, c[:200] if c.strip("/ ") else "", max(count, 1))


AskedFor = Annotated[PageSearch, Depends(asked_for)]


@routes.get("/lessons")
def search(client: Client, asked: AskedFor) -> HTMLResponse:
    """Show the page with its first hits."""
    values: dict[str, Any] = {"asked": asked, "trouble": "", "tree": [], "status": 200}
    try:
        values |= {**_contents(client, asked), "tree": _tree(client, asked)}
    except Refusal as refusal:
        values["status"] = refusal.status
        values["trouble"] = ": ".join(filter(None, [refusal.error, refusal.hint]))
    title = f"{asked.text[:60]} - Lessons" if asked.text else "Lessons"
    return page("lessons.html", at="/lessons", title=title, wide=True, **values)


@routes.get("/page/search")
@routes.get(PRIVATE)
async def hits(request: Request, client: Client, asked: AskedFor) -> HTMLResponse:
    """Show the hits; skills are the vault's and, for its user, the user's.

    They are searched in a thread, unless the next key came meanwhile: the page has gone on.
    """
    private = request.url.path == PRIVATE
    async with client.typed:
        for _ in range(2):  # the first thing to hear of is the end of the request
            if await request.is_disconnected():
                return HTMLResponse(status_code=499)
        contents = await run_sync(partial(_contents, client, asked, private=private))
    return fragment("lessons_hits.html", asked=asked, **contents)


def _contents(client: VaultClient, asked: PageSearch, *, private: bool = False) -> dict[str, Any]:
    """Return the values that the hits are drawn from. Raises Refusal."""
    if not asked.text:
        return _newest(client, asked, private=private)
    categories = (asked.category,) if asked.category else ()
    wanted = Query(asked.text, asked.count, categories, kinds=BOTH)
    typed = client.ask(api.search.live(query=wanted), status=422, at_once=True)
    answer, recall = typed.search, typed.recall
    found = [hit for hit in answer.hits if private or (is_shared(hit) and not hit.withheld)]
    hits = [hit for hit in found if hit.kind == "lessons"]
    skills = [hit for hit in found if hit.kind == "skills" and hit.is_above(answer.skills_floor)]
    # a lesson that the budget cut out is not in the text
    injected = {hit.lesson_id for hit in recall.hits if hit.lesson_id not in recall.left_out}
    floor = answer.floor
    cut = silent_from(
        [hit.lesson_id in injected or (floor is not None and hit.is_above(floor)) for hit in hits]
    )
    marked = _pattern(asked.text)
    return {
        "newest": None,
        "above": [_drawn(hit, marked) for hit in hits[:cut]],
        "below": [_drawn(hit, marked) for hit in hits[cut:]],
        "floor": floor,
        "by_words": bool(answer.text_only),
        "lines": {hit.lesson_id for hit in recall.hits if hit.as_line},
        "skills": [_drawn(hit, marked) for hit in skills],
        "injected": injected | {hit.lesson_id for hit in recall.skills},
        "left_out": _left_out(hits, recall) if private else {},
        "nearest": _nearest(hits, answer),
        "silent": recall.silent if private else without_withheld(recall.silent),
        "unquoted": without_quotes(answer.unquoted),
        "out_of_order": OUT_OF_ORDER if is_out_of_order(hits) else "",
        "reduced": client.shown(answer.text_only) if answer.embedder != "none" else "",
    }


def _nearest(hits: Sequence[Hit], answer: HitList) -> int | None:
    """Return the percentage of the best hit where none is near the floor; None where one is."""
    if answer.text_only:  # each hit has a word of the prompt then
        return None
    if any(hit.reason >= NEAR * (answer.floor or 0) for hit in hits):
        return None
    return max((hit.percent for hit in hits), default=None)


def _drawn(hit: Hit, marked: re.Pattern[str] | None) -> Drawn:
    title = title_with_marks(" ".join(clean(block.named(hit)).split()), marked)
    excerpt = excerpt_of(hit.text, EXCERPT_CHARS, marked, hit.title)
    return Drawn(hit, title, Markup() if hit.withheld else excerpt, evidence(hit))


def _left_out(hits: Sequence[Hit], recall: ContextBlock) -> dict[str, str]:
    """Return the reasons for which lessons above the floor do not come with others, by id."""
    come = {hit.lesson_id for hit in recall.hits} - set(recall.left_out)
    return {
        hit.lesson_id: recall.left_out.get(hit.lesson_id, "others come before it")
        for hit in hits
        if come and hit.lesson_id not in come and hit.is_above(recall.floor)
    }


def _newest(client: VaultClient, asked: PageSearch, *, private: bool = False) -> dict[str, Any]:
    values: dict[str, Any] = {"order": "updated", "limit": asked.count + 1}
    values["category"] = asked.category or None
    entries = client.ask_cached(api.lesson.select(**values), status=422)
    newest = [each for each in entries[: asked.count] if private or not each.withheld]
    has_more = len(entries) > asked.count < MAX_SHOWN
    return {"newest": newest, "more": asked.address(n=asked.count + MORE) if has_more else ""}


def prepare(client: VaultClient) -> None:
    """Have the first page ready before somebody looks at it. Raises Refusal."""
    asked = asked_for()
    _newest(client, asked)
    _tree(client, asked)


def _tree(client: VaultClient, asked: PageSearch) -> list[tuple[str, str, int, int]]:
    return tree_of(client.ask_cached(api.lesson.count()).counts, asked.category)


def tree_of(counts: Mapping[str, int], chosen: str) -> list[tuple[str, str, int, int]]:
    """Return the categories of the first level and those around the chosen one, in their order."""
    parts = chosen.split("/") if chosen else []
    opened = {"", *("/".join(parts[:end]) for end in range(1, len(parts) + 1))}
    near = [path for path in counts if path.rpartition("/")[0] in opened]
    largest = sorted(near, key=lambda path: (path not in opened, -counts[path]))[:MAX_TREE]
    shown = sorted(largest)
    return [(path, path.rpartition("/")[2], path.count("/"), counts[path]) for path in shown]


_PLAIN = re.compile(r"[a-z][a-z0-9_]{2,}")


def _stem(word: str) -> str:
    for ending in ("ing", "ies", "es", "ed", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return word.removesuffix(ending)
    return word


def _pattern(query: str) -> re.Pattern[str] | None:
    """Match words that begin like one of a query: endings differ, and it is being typed."""
    words = {_stem(word) for word in _PLAIN.findall(query.lower()) if word not in STOP_WORDS}
    words |= {word for word in re.findall(r"\w+", query.casefold()) if not word.isascii()}
    words |= set(re.findall(r"\d+", query))
    if not words:
        return None
    ordered = sorted(words, key=len, reverse=True)[:MAX_WORDS]
    return re.compile(rf"\b(?:{'|'.join(map(re.escape, ordered))})\w*", re.IGNORECASE)
