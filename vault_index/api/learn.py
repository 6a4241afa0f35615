"""Questions of agents that look lessons up by themselves. Their hits count as used."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from vault_index import api
from vault_index.api.lesson import Page
from vault_index.api.question import Caller, Question, command, question
from vault_index.errors import VaultError, WriteError
from vault_index.lesson import parse
from vault_index.lesson.category import DEFAULT_CONFIDENCE
from vault_index.retrieval.hit import Hit, HitList, Named, Query, WholeEntry
from vault_index.store.injections import READ, SEARCH, Summary

if TYPE_CHECKING:
    from vault_index.learn.gate import Lessons
    from vault_index.learn.run import LearnCaller as Learner
    from vault_index.learn.run import Learned, Proposed, SessionText
    from vault_index.vault import Vault

COUNTED = 5  # hits of a search that count as used: an agent reads the first
HITS, MAX_HITS = 10, 50  # of a page: where neither caller nor settings say, and at most
NEWEST = 20  # lessons in a list of resources


@question
def search(
    vault: Vault,
    query: str,
    type: str = "",
    category: str = "",
    min_confidence: int = DEFAULT_CONFIDENCE,
    limit: int = 0,
    start: int = 0,
    document: str = "",
    lesson: int | None = None,
    related_to: str = "",
) -> HitList:
    """Find lessons, a page of them from `start` on, and where the `following` one begins.

    `category` has all below it, `document` is a title, `lesson` a number in it, and `related_to` a lesson
    that names those wanted, or that they name. A lesson without a confidence has 3. A `limit` of 0 is
    as set, or 10.
    """
    from vault_index.recall import allowed
    from vault_index.retrieval import entries, floor
    from vault_index.retrieval.query import run
    from vault_index.store import filters

    began = time.monotonic()
    _refuse_empty(query)
    _refuse_unknown_type(type)
    limit = limit or min(vault.config.search.hits or HITS, MAX_HITS)
    asked = Query(
        query, limit, categories=(category,) if category else (), within=document, lesson=lesson,
        related_to=related_to, filters=filters.Filter(type=type, min_confidence=min_confidence),
        for_agent=True, weighted=True, phrases=True, offset=start,
    )  # fmt: skip
    results = run(vault, asked)
    if not results.hits and not start:
        entries.refuse_unknown(vault, asked.categories)
    trusted = replace(results, hits=allowed.only_trusted(vault, results.hits))
    # a lesson that is named by its number needs to reach none
    floors = floor.in_force(vault, query, text_only=bool(results.text_only))
    least = floors.line if floors and lesson is None else None
    if not start:  # the first page has what the vaults above add, and is counted
        trusted = floor.with_above(vault, asked, trusted, allowed.only_trusted)
        _count_search(vault, query, trusted.hits, least, began)
    return HitList(
        tuple(trusted.hits),
        text_only=results.text_only,
        embedder=vault.config.embedder,
        floor=least,
        following=str(start + limit) if results.has_more else "",
        unquoted=trusted.unquoted,
    )


@question
def find(vault: Vault, query: Query) -> HitList:
    """Find lessons and skills for an agent at a shell."""
    from vault_index.api import search

    began = time.monotonic()
    _refuse_empty(query.text)
    answer = search.found(vault, replace(query, for_agent=True), only_trusted=True)
    _count_search(vault, query.text, answer.hits, answer.floor, began)
    return answer


def _refuse_unknown_type(type: str) -> None:
    if type and type not in parse.TYPES:
        raise VaultError(f"no type {type!r:.40}", f"choose one of {', '.join(parse.TYPES)}")


def _refuse_empty(query: str) -> None:
    if not query.strip():
        raise VaultError("there is nothing to search for", "name what you look for in a few words")


@question
def get(vault: Vault, name: str) -> Page:
    """Return one lesson that an agent may read, or the ones near its name."""
    from vault_index.retrieval import above, entries

    began = time.monotonic()
    if not name.strip():
        raise VaultError("no lesson is named", "give the id that a search returned")
    elsewhere = above.named(vault, name)
    other, id = elsewhere[1:] if elsewhere else (vault, name.strip())
    entry, near = entries.entry_or_near(other, id)
    if entry is None:
        return Page(None, near)
    _refuse_kept(other, entry)
    if elsewhere:
        id, path = elsewhere[0].marked(entry.id, entry.path)
        entry = replace(entry, id=id, path=path)
    _count(vault, READ, "", [(entry.id, 1.0)], began)
    return Page(entry)


@question
def read(vault: Vault, name: str) -> WholeEntry:
    """Return one lesson that an agent at a shell may read, also by the beginning of its name."""
    from vault_index.retrieval import above

    began = time.monotonic()
    entry = api.lesson.show(name=name).answer(vault)
    elsewhere = above.named(vault, entry.id)
    other, id = elsewhere[1:] if elsewhere else (vault, entry.id)
    _refuse_kept(other, api.lesson.show(name=id).answer(other) if elsewhere else entry)
    _count(vault, READ, "", [(entry.id, 1.0)], began)
    return entry


def _refuse_kept(vault: Vault, entry: WholeEntry) -> None:
    """Raise VaultError for a lesson that agents may not read."""
    from vault_index.recall import allowed

    kept_back = entry.withheld
    if not allowed.trusted_files(vault, {(entry.path, entry.file_hash)}):
        kept_back = "it is not of those whom the user's settings trust"
    if kept_back:
        message = f"{entry.id} is kept from agents: {kept_back}"
        raise VaultError(message, f"ask a person to look at it: `lessons show {entry.id}`")


@question
def newest(vault: Vault) -> tuple[Named, ...]:
    """List the lessons that changed last, of those that agents may read."""
    from vault_index.recall import allowed
    from vault_index.retrieval import entries
    from vault_index.store import filters

    latest = [each for each in entries.entries(vault, order="updated") if not each.withheld]
    ids = [each.id for each in latest[:NEWEST]]
    where = filters.all_of(filters.WHOLE, filters.any_of("lesson_id", ids))
    rows = vault.open_index().store.rows(("lesson_id", "path", "title", "file_hash"), where)
    trusted = allowed.trusted_files(vault, {(row["path"], row["file_hash"]) for row in rows})
    of = {row["lesson_id"]: row for row in rows if (row["path"], row["file_hash"]) in trusted}
    return tuple(Named(id, of[id]["title"]) for id in ids if id in of)


@dataclass(frozen=True, slots=True)
class Status:
    """A vault in numbers. A lesson counts in each of its categories and in those above.

    `proposals` is how many wait, `text_only` why there are no vectors, `journal` whether sessions
    are recorded.
    """

    lessons: int
    by_type: Mapping[str, int]
    by_category: Mapping[str, int]
    used: Summary
    proposals: int
    embedder: str
    text_only: str
    journal: bool


@question
def status(vault: Vault) -> Status:
    """Sum up a vault: what it holds, which lessons are used and which never."""
    from vault_index.journal import archive, projects
    from vault_index.journal.journal import Journal
    from vault_index.proposals import review
    from vault_index.retrieval import entries, query
    from vault_index.store import filters, injections

    opened, journal = vault.open_index(), Journal(vault.config)
    ids = sorted(opened.store.tally("lesson_id", filters.WHOLE))
    return Status(
        lessons=len(ids),
        by_type=dict(sorted(opened.store.tally("type", filters.WHOLE).items())),
        by_category=entries.categories(vault),
        used=injections.summary(vault.config.home, vault.root, ids),
        proposals=review.count(vault),
        embedder=vault.config.embedder,
        text_only=query.embedder_for(vault, opened)[1],
        journal=bool(projects.recorded_folders(journal)) or not archive.is_empty(journal),
    )


def _count_search(
    vault: Vault, text: str, hits: Sequence[Hit], least: float | None, began: float
) -> None:
    lessons = [hit for hit in hits if hit.kind == "lessons" and hit.is_above(least)]
    used = [(hit.lesson_id, hit.score) for hit in lessons[:COUNTED]]
    _count(vault, SEARCH, text, used, began)


def _count(
    vault: Vault, event: str, text: str, used: list[tuple[str, float]], began: float
) -> None:
    from vault_index.store import delivery
    from vault_index.store.delivery import Delivery, Given

    ms = 1000 * (time.monotonic() - began)
    lessons = tuple(Given(lesson, round(score, 4)) for lesson, score in used)
    new = Delivery(event, prompt=delivery.key_of(text), ms=round(ms, 1), by="learn", given=lessons)
    with suppress(WriteError):
        delivery.record(vault.config.home, vault.root, new)


@command
def learn(
    vault: Vault,
    caller: Caller,
    scope: str = "session",
    target: str | Sequence[str] = "",
    folder: str = "",
    force: bool = False,
    dry_run: bool = False,
    tokens: int = 0,
    asked_by: Literal["person", "agent", "nobody"] = "person",
) -> Learned:
    """Make proposals of what a session, commits or files taught: see `run.learn`."""
    from vault_index.learn import run

    how: dict[str, Any] = {"folder": folder, "force": force, "dry_run": dry_run, "tokens": tokens}
    return run.learn(vault, learner(caller), scope, target, **how, asked_by=asked_by)


@command
def propose(
    vault: Vault,
    caller: Caller,
    entries: Sequence[Mapping[str, Any]],
    session: str = "",
    folder: str = "",
) -> Proposed:
    """Make proposals of entries that an agent in a folder wrote of a session, by default the latest.

    `learn.agent_entries` lists the fields of an entry; others are left out, and named.
    """
    from vault_index.learn import by_agent

    return by_agent.propose(vault, learner(caller), entries, session, folder)


@command
def material(vault: Vault, caller: Caller, session: str, folder: str) -> SessionText:
    """Return a session as the text that a model would be sent, 7,000 tokens at most.

    `last` is the latest session in the folder before the one in which the agent asks.
    """
    from vault_index.learn import by_agent, gather

    name = gather.BEFORE if session == gather.LAST else session
    return by_agent.material_of(vault, learner(caller), name, folder)


def lessons_by(ask: Callable[[Question[Any]], Any]) -> Lessons:
    """Return the lessons that somebody who answers questions has."""
    from vault_index.learn import gate

    return gate.Lessons(
        show=lambda name: ask(api.lesson.show(name=name)),
        compare=lambda proposal: ask(api.proposal.compare(proposal=proposal)),
        outlook=lambda proposal: (
            ask(api.proposal.preview(card=api.proposal.card_of(proposal))).outlook
        ),
    )


def learner(caller: Caller) -> Learner:
    """Return the caller of a command as `learn` asks it."""
    from vault_index.learn import run

    return run.LearnCaller(
        caller.note, caller.progress, lessons_by(partial(caller.ask, fetch=False))
    )
