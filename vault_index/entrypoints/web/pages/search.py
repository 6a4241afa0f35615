"""The page of searching: hits as one types, what a hook would inject, the floor drawn among them.

GET /?q=heap&c=devops    the page; the script keeps what is asked for in the address
GET /page/search         its hits; /page/private/search also has the user's own skills
GET /page/search/tree    its categories

Withheld lessons are for whoever has the key, as on their own pages: a title may be what is to stay
private, and a hit says that the words asked for are in the text.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any
from urllib.parse import urlencode

from anyio.to_thread import run_sync
from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import HTMLResponse

from vault_index.entrypoints.web.door import Door, OpenDoor
from vault_index.entrypoints.web.pages.hits import injected_in, with_floor
from vault_index.entrypoints.web.pages.render import fragment, page
from vault_index.entrypoints.web.queries import is_shared
from vault_index.entrypoints.web.refusal import Refusal
from vault_index.recall.select import without_withheld
from vault_index.search.hit import Hit
from vault_index.search.query import MAX_QUERY_CHARS

KINDS: Mapping[str, tuple[str, ...]] = {
    "lessons": ("lessons",),
    "skills": ("skills",),
    "both": ("lessons", "skills"),
}
SHOWN, MORE, MAX_SHOWN = 20, 40, 400  # hits: at first, with each "more", at most
MAX_CATEGORIES = 20

routes = APIRouter(include_in_schema=False)


@dataclass(frozen=True, slots=True)
class Asked:
    """The search that an address asks for; "" as text: what is new."""

    text: str
    categories: tuple[str, ...]
    kind: str
    count: int

    def address(self, count: int) -> str:
        """Return the address of the same with that many hits."""
        given: list[tuple[str, Any]] = [("q", self.text)] if self.text else []
        given += [("c", path) for path in self.categories]
        given += [("kind", self.kind)] if self.kind != "lessons" else []
        return f"/?{urlencode([*given, ('n', count)])}"


def asked_for(
    q: str = "",
    c: Annotated[list[str] | None, Query()] = None,
    kind: str = "lessons",
    n: str = "",
) -> Asked:
    """Return what an address asks for: people edit addresses, so what makes no sense is left out."""
    text = " ".join(q.replace("\0", " ").split())[:MAX_QUERY_CHARS]
    paths = tuple(dict.fromkeys(path[:200] for path in c or () if path.strip("/ ")))
    count = min(int(n), MAX_SHOWN) if n.isdecimal() and len(n) < 5 else SHOWN
    return Asked(text, paths[:MAX_CATEGORIES], kind if kind in KINDS else "lessons", max(count, 1))


AskedFor = Annotated[Asked, Depends(asked_for)]


@routes.get("/")
def search(door: OpenDoor, asked: AskedFor) -> HTMLResponse:
    """Show the page with its first hits."""
    values: dict[str, Any] = {"asked": asked, "kinds": KINDS, "trouble": "", "tree": None}
    status = 200
    try:
        values |= {**_contents(door, asked), "tree": _tree(door, asked)}
    except Refusal as refusal:
        status = refusal.status
        values["trouble"] = ": ".join(filter(None, [refusal.error, refusal.hint]))
    title = f"{asked.text[:60]} - Search" if asked.text else "Search"
    return page("search.html", at="/", title=title, status=status, **values)


@routes.get("/page/search")
async def hits(request: Request, door: OpenDoor, asked: AskedFor) -> HTMLResponse:
    """Show the hits, of skills those of the vault."""
    return await _hits(request, door, asked, private=False)


@routes.get("/page/private/search")
async def hits_for_user(request: Request, door: OpenDoor, asked: AskedFor) -> HTMLResponse:
    """Show the hits, the user's own skills among them."""
    return await _hits(request, door, asked, private=True)


@routes.get("/page/search/tree")
def categories(door: OpenDoor, asked: AskedFor) -> HTMLResponse:
    """Show the categories."""
    return fragment("search_tree.html", asked=asked, tree=_tree(door, asked))


async def _hits(request: Request, door: Door, asked: Asked, *, private: bool) -> HTMLResponse:
    """Search in a thread, unless the next key came meanwhile: the page has gone on. Raises Refusal."""
    async with door.typed:
        for _ in range(2):  # the first thing to hear of is the end of the request
            if await request.is_disconnected():
                return HTMLResponse(status_code=499)
        contents = await run_sync(partial(_contents, door, asked, private=private))
    return fragment("search_hits.html", asked=asked, **contents)


def _contents(door: Door, asked: Asked, *, private: bool = False) -> dict[str, Any]:
    """Return what the hits are drawn from. Raises Refusal."""
    if not asked.text:
        return _newest(door, asked, private=private)
    values = {"text": asked.text, "k": asked.count, "kinds": list(KINDS[asked.kind])}
    values |= {"categories": list(asked.categories)}
    typed = door.ask("typed", values, status=422, at_once=True)
    answer, recall = typed["search"], typed["recall"]
    hits = [
        Hit.from_json(hit)
        for hit in answer["hits"]
        if private or (is_shared(hit) and not hit["withheld"])
    ]
    floors = {"lessons": answer["floor"], "skills": answer["skills_floor"]}
    is_reduced = answer["text_only"] and answer["embedder"] != "none"
    return {
        "newest": None,
        "groups": with_floor(hits, floors, injected_in(recall), asked.text, door.shown),
        "count": len(hits),
        "has_more": len(answer["hits"]) >= asked.count < MAX_SHOWN,
        "more": asked.address(asked.count + MORE),
        "silent": recall["silent"] if private else without_withheld(recall["silent"]),
        "reduced": door.shown(answer["text_only"]) if is_reduced else "",
    }


def _newest(door: Door, asked: Asked, *, private: bool = False) -> dict[str, Any]:
    """Return the lessons that changed last, in or below the first category that is asked for."""
    values: dict[str, Any] = {"order": "updated", "limit": asked.count + 1}
    values["category"] = asked.categories[0] if asked.categories else None
    entries = door.ask_once("list", values, status=422)["entries"]
    newest = [each for each in entries[: asked.count] if private or not each["withheld"]]
    return {
        "newest": newest,
        "groups": [],
        "count": len(newest),
        "has_more": len(entries) > asked.count < MAX_SHOWN,
        "more": asked.address(asked.count + MORE),
        "silent": "",
        "reduced": "",
    }


def prepare(door: Door) -> None:
    """Have the first page ready before somebody looks at it. Raises Refusal."""
    asked = asked_for()
    _newest(door, asked)
    _tree(door, asked)


def _tree(door: Door, asked: Asked) -> dict[str, Any]:
    return tree_of(door.ask_once("categories", {})["counts"], asked.categories)


MAX_TREE = 200  # categories: the largest, or the tree weighs more than the hits
MAX_OPEN = 30  # categories: a larger tree is closed below its first level


@dataclass(slots=True)
class Branch:
    """A category and those below it."""

    path: str
    name: str
    count: int
    is_chosen: bool
    is_open: bool = False
    below: list[Branch] = field(default_factory=list)


def tree_of(counts: Mapping[str, int], chosen: Sequence[str]) -> dict[str, Any]:
    """Return the `branches` of the first level, and how many smaller categories are `left_out`."""
    shown = _largest(counts, chosen)
    branches: dict[str, Branch] = {}
    top: list[Branch] = []
    for path in sorted(shown):
        above, _, name = path.rpartition("/")
        branch = Branch(path, name, counts.get(path, 0), path in chosen)
        branch.is_open = len(shown) <= MAX_OPEN or _is_above(path, chosen)
        branches[path] = branch
        siblings = branches[above].below if above in branches else top
        siblings.append(branch)
    return {"branches": top, "left_out": len(set(counts) - shown)}


def _largest(counts: Mapping[str, int], chosen: Sequence[str]) -> set[str]:
    """Return the categories to show, with those above them."""
    ordered = sorted(counts, key=lambda path: (-counts[path], path))
    shown = {*ordered[:MAX_TREE], *chosen}  # what is above another is at least as large
    return shown | {"/".join(path.split("/")[:end]) for path in chosen for end in range(1, 5)}


def _is_above(path: str, chosen: Collection[str]) -> bool:
    return any(other.startswith(f"{path}/") for other in chosen)
