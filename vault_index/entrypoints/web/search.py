"""The page of searching: hits as one types, what a hook would inject, the floor drawn among them.

GET /search?q=heap&c=devops    the page; the script keeps what is asked for in the address
GET /page/search         its hits; /page/private/search also has the user's own skills
GET /page/search/tree    its categories

Withheld lessons are for whoever has the key, as on their own pages: a title may be what is to stay
private, and a hit says that the words asked for are in the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any

from anyio.to_thread import run_sync
from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import HTMLResponse
from markupsafe import Markup

from vault_index import api
from vault_index.entrypoints.web.lessons import is_shared
from vault_index.entrypoints.web.markdown import excerpt_of, with_marks
from vault_index.entrypoints.web.refusal import Refusal
from vault_index.entrypoints.web.render import address_with, fragment, page
from vault_index.entrypoints.web.vault_client import Client, VaultClient
from vault_index.entrypoints.words import sentence
from vault_index.entrypoints.words.hits import HEADINGS, silent_from
from vault_index.hotpath import spool
from vault_index.recall import block
from vault_index.recall.select import without_withheld
from vault_index.search import query
from vault_index.search.hit import Hit, Recall, percent_of
from vault_index.search.query import MAX_QUERY_CHARS, TERMS
from vault_index.store.moments import local
from vault_index.text.quote import clean
from vault_index.transcripts.vocabulary import STOP_WORDS

# Hits as the page of searching draws them: words marked, terms of the score, the floor among them.

EXCERPT_CHARS = 320
NEAR = 0.5  # of the floor: where no hit scores as much, nothing matches
MAX_WORDS = 30  # of a query that are marked


@dataclass(frozen=True, slots=True)
class Drawn:
    """A hit with what is shown of it."""

    hit: Hit
    title: Markup
    path: str
    signed: str  # author and date
    excerpt: Markup  # empty for a withheld one
    weights: list[tuple[str, float]]  # of the order, where the user's settings have some


@dataclass(frozen=True, slots=True)
class Group:
    """Hits of a kind in two parts: the floor is drawn between them."""

    kind: str
    above: list[Drawn]
    below: list[Drawn]
    has_floor: bool


def with_floor(
    hits: Sequence[Hit],
    floors: Mapping[str, float | None],
    query: str,
    shown: Callable[[str], str],
) -> list[Group]:
    """Return the hits by kind, cut where the floor is; `shown` takes the folders out of a path."""
    marked = _pattern(query)
    groups = []
    for kind, least in floors.items():
        of_kind = [hit for hit in hits if hit.kind == kind]
        cut = silent_from([least is not None and hit.reason >= least for hit in of_kind])
        drawn = [_drawn(hit, marked, shown) for hit in of_kind]
        if drawn:
            groups.append(Group(kind, drawn[:cut], drawn[cut:], least is not None))
    return groups


def _drawn(hit: Hit, marked: re.Pattern[str] | None, shown: Callable[[str], str]) -> Drawn:
    title = " ".join(clean(block.named(hit)).split())
    return Drawn(
        hit,
        with_marks(title, marked),
        shown(hit.path),
        block.signed(clean(hit.author), hit).removeprefix(" · "),
        Markup() if hit.withheld else excerpt_of(hit.text, EXCERPT_CHARS, marked, hit.title),
        list(zip(TERMS, hit.weighted, strict=False)),
    )


_PLAIN = re.compile(r"[a-z][a-z0-9_]{2,}")


def _stem(word: str) -> str:
    for ending in ("ing", "ies", "es", "ed", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return word.removesuffix(ending)
    return word


def _pattern(query: str) -> re.Pattern[str] | None:
    """Return what matches words that begin like one of a query: endings differ, and it is being typed."""
    words = {_stem(word) for word in _PLAIN.findall(query.lower()) if word not in STOP_WORDS}
    words |= {word for word in re.findall(r"\w+", query.casefold()) if not word.isascii()}
    words |= set(re.findall(r"\d+", query))
    if not words:
        return None
    ordered = sorted(words, key=len, reverse=True)[:MAX_WORDS]
    return re.compile(rf"\b(?:{'|'.join(map(re.escape, ordered))})\w*", re.IGNORECASE)


KINDS: Mapping[str, tuple[str, ...]] = {
    "lessons": ("lessons",),
    "skills": ("skills",),
    "both": ("lessons", "skills"),
    "all": ("lessons", "skills"),  # and sessions of the journal
}
SHOWN, MORE, MAX_SHOWN = 20, 40, 400  # hits: at first, with each "more", at most
MAX_CATEGORIES = 20
EMPTY: Mapping[str, Any] = {
    **{
        "newest": None,
        "groups": [],
        "injected": (),
        "left_out": {},
        "silent": "",
        "reduced": "",
        "nearest": None,
    },
    **{"sessions": [], "no_sessions": "", "headings": HEADINGS},
}

PRIVATE = "/page/private/search"

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
        kind = "" if self.kind == "lessons" else self.kind
        return address_with("/search", q=self.text, c=self.categories, kind=kind, n=count)


def asked_for(
    q: str = "", c: Annotated[list[str] | None, Query()] = None, kind: str = "lessons", n: str = ""
) -> Asked:
    """Return what an address asks for: people edit addresses, so what makes no sense is left out."""
    text = " ".join(q.replace("\0", " ").split())[:MAX_QUERY_CHARS]
    paths = tuple(dict.fromkeys(path[:200] for path in c or () if path.strip("/ ")))
    count = min(int(n), MAX_SHOWN) if n.isdecimal() and len(n) < 5 else SHOWN
    return Asked(text, paths[:MAX_CATEGORIES], kind if kind in KINDS else "lessons", max(count, 1))


AskedFor = Annotated[Asked, Depends(asked_for)]


@routes.get("/search")
def search(client: Client, asked: AskedFor) -> HTMLResponse:
    """Show the page with its first hits."""
    values: dict[str, Any] = {"asked": asked, "kinds": KINDS, "trouble": "", "tree": None}
    status = 200
    try:
        values |= {**_contents(client, asked), "tree": _tree(client, asked)}
    except Refusal as refusal:
        status = refusal.status
        values["trouble"] = ": ".join(filter(None, [refusal.error, refusal.hint]))
    title = f"{asked.text[:60]} - Search" if asked.text else "Search"
    return page("search.html", at="/search", title=title, status=status, **values)


@routes.get("/page/search")
@routes.get(PRIVATE)
async def hits(request: Request, client: Client, asked: AskedFor) -> HTMLResponse:
    """Show the hits, of skills those of the vault; for its user, own skills among them.

    They are searched in a thread, unless the next key came meanwhile: the page has gone on.
    """
    private = request.url.path == PRIVATE
    async with client.typed:
        for _ in range(2):  # the first thing to hear of is the end of the request
            if await request.is_disconnected():
                return HTMLResponse(status_code=499)
        contents = await run_sync(partial(_contents, client, asked, private=private))
    return fragment("search_hits.html", asked=asked, **contents)


@routes.get("/page/search/tree")
def categories(client: Client, asked: AskedFor) -> HTMLResponse:
    """Show the categories."""
    return fragment("search_tree.html", asked=asked, tree=_tree(client, asked))


def _contents(client: VaultClient, asked: Asked, *, private: bool = False) -> dict[str, Any]:
    """Return what the hits are drawn from. Raises Refusal."""
    if not asked.text:
        return _newest(client, asked, private=private)
    wanted = query.Query(asked.text, asked.count, asked.categories, kinds=KINDS[asked.kind])
    typed = client.ask(api.search.live(query=wanted), status=422, at_once=True)
    answer, recall = typed.search, typed.recall
    hits = [hit for hit in answer.hits if private or (is_shared(hit) and not hit.withheld)]
    floors = {"lessons": answer.floor, "skills": answer.skills_floor}
    is_near = any(hit.reason >= NEAR * (floors[hit.kind] or 0) for hit in hits)
    is_near = is_near or bool(answer.text_only)  # each hit has a word of it then
    is_reduced = answer.text_only and answer.embedder != "none"
    found = _sessions(client, asked, private=private) if asked.kind == "all" else {}
    # a lesson that the budget cut out is not in the text
    injected = {hit.lesson_id for hit in recall.hits if hit.lesson_id not in recall.left_out}
    return {
        **EMPTY,
        **found,
        "groups": with_floor(hits, floors, asked.text, client.shown),
        "injected": injected | {hit.lesson_id for hit in recall.skills},
        "left_out": _left_out(hits, recall) if private else {},
        "nearest": None if is_near or not hits else max(hit.percent for hit in hits),
        "count": len(hits) + len(found.get("sessions", ())),
        "has_more": len(answer.hits) >= asked.count < MAX_SHOWN,
        "more": asked.address(asked.count + MORE),
        "silent": recall.silent if private else without_withheld(recall.silent),
        "reduced": client.shown(answer.text_only) if is_reduced else "",
    }


def _left_out(hits: Sequence[Hit], recall: Recall) -> dict[str, str]:
    """Return why lessons above the floor do not come with others, by id."""
    come = {hit.lesson_id for hit in recall.hits} - set(recall.left_out)
    return {
        hit.lesson_id: recall.left_out.get(hit.lesson_id, "others come before it")
        for hit in hits
        if come and hit.kind == "lessons" and hit.lesson_id not in come
        and hit.is_above(recall.floor)
    }  # fmt: skip


def _sessions(client: VaultClient, asked: Asked, *, private: bool) -> dict[str, Any]:
    """Return what the journal has of all projects and times, or why there is nothing. Raises Refusal."""
    if not private:
        return {"no_sessions": "They are shown to whoever opens the page with its key."}
    if not spool.is_on():
        return {"no_sessions": "The journal is off."}
    from vault_index.entrypoints.web.journal import without_paths
    from vault_index.entrypoints.words import journal

    question = api.journal.search(text=asked.text, k=min(asked.count, SHOWN), since="")
    answer = client.ask(question, status=422, at_once=True)
    sessions = [
        {
            **shown,
            "label": journal.kind(hit),
            "where": journal.where(hit),
            "when": local(hit.at),
            "excerpt": journal.excerpt(shown["text"], EXCERPT_CHARS),
            "percent": percent_of(hit.score),
        }
        for hit, shown in zip(answer.hits, without_paths(client, answer.hits), strict=True)
    ]
    nothing = "" if sessions else sentence(journal.nothing(answer))
    return {"sessions": sessions, "no_sessions": nothing}


def _newest(client: VaultClient, asked: Asked, *, private: bool = False) -> dict[str, Any]:
    values: dict[str, Any] = {"order": "updated", "limit": asked.count + 1}
    values["category"] = asked.categories[0] if asked.categories else None
    entries = client.ask_cached(api.lesson.select(**values), status=422)["entries"]
    newest = [each for each in entries[: asked.count] if private or not each["withheld"]]
    return {
        **EMPTY,
        "newest": newest,
        "count": len(newest),
        "has_more": len(entries) > asked.count < MAX_SHOWN,
        "more": asked.address(asked.count + MORE),
    }


def prepare(client: VaultClient) -> None:
    """Have the first page ready before somebody looks at it. Raises Refusal."""
    asked = asked_for()
    _newest(client, asked)
    _tree(client, asked)


def _tree(client: VaultClient, asked: Asked) -> dict[str, Any]:
    return tree_of(client.ask_cached(api.lesson.count())["counts"], asked.categories)


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
    largest = sorted(counts, key=lambda path: (-counts[path], path))[:MAX_TREE]
    # what is above another is at least as large
    above_chosen = {"/".join(path.split("/")[:end]) for path in chosen for end in range(1, 5)}
    shown = {*largest, *chosen, *above_chosen}
    branches: dict[str, Branch] = {}
    top: list[Branch] = []
    for path in sorted(shown):
        above, _, name = path.rpartition("/")
        branch = Branch(path, name, counts.get(path, 0), path in chosen)
        has_chosen = any(other.startswith(f"{path}/") for other in chosen)
        branch.is_open = len(shown) <= MAX_OPEN or has_chosen
        branches[path] = branch
        siblings = branches[above].below if above in branches else top
        siblings.append(branch)
    return {"branches": top, "left_out": len(set(counts) - shown)}
