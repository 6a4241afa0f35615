"""Proposals in the list of Home: the evidence for each, and what a person decides about it.

A decision has the effects of `lessons review`. All of it is private: proposals quote sessions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated

from fastapi import APIRouter, Body, Depends, Query
from fastapi.responses import HTMLResponse

from vault_index import api
from vault_index.entrypoints.web.fields import Text
from vault_index.entrypoints.web.lessons import one_at_a_time
from vault_index.entrypoints.web.markdown import html_of
from vault_index.entrypoints.web.refusal import Refusal
from vault_index.entrypoints.web.render import fragment
from vault_index.entrypoints.web.vault_client import Client, VaultClient
from vault_index.entrypoints.wording import proposals

PRIVATE = "/page/private/review"

Id = Annotated[Text, Query(min_length=1, max_length=80)]
BodyText = Annotated[Text, Body(embed=True)]  # a value of a body by its name
BodyFlag = Annotated[bool, Body(embed=True)]

routes = APIRouter(include_in_schema=False)


@dataclass(frozen=True, slots=True)
class Decided:
    """A line that says what was decided, and notes."""

    said: str
    notes: list[str]
    undo: str = ""  # the id of a proposal that can be taken back


decisions = APIRouter(prefix=PRIVATE, dependencies=[Depends(one_at_a_time)])


@routes.get(f"{PRIVATE}/card")
def card(client: Client, id: Id) -> HTMLResponse:
    """Show a proposal with all that a reviewer wants to know of it."""
    (proposal,), notes = client.look(api.proposal.cards(id=id))
    try:
        categories = sorted(client.ask(api.lesson.count()).counts)
    except Refusal as refusal:
        categories, notes = [], [*notes, f"warning: no categories to choose from: {refusal.error}"]
    values = {"categories": categories, "notes": notes, "has_git": _has_git(client)}
    values |= {"text": html_of(proposal.text), "words": proposals}
    return fragment("review_card.html", card=proposal, **values)


def _has_git(client: VaultClient) -> bool:
    return (client.root / ".git").exists()


@routes.post(f"{PRIVATE}/merge/plan")
def plan_merge(client: Client, id: BodyText, into: BodyText = "") -> HTMLResponse:
    """Show what merging a proposal into a lesson would change."""
    if not into.strip():
        raise Refusal(422, "no lesson is named", "name one by its id, such as devops/heap")
    plan, notes = client.look(api.proposal.merge(id=id, into=into.strip()))
    return fragment("review_plan.html", id=id, plan=plan, notes=notes, has_git=_has_git(client))


@decisions.post("/accept")
def accept(
    client: Client, id: BodyText, category: BodyText = "", commit: BodyFlag = False
) -> Decided:
    """Make a proposal a lesson, or change the lesson that it changes."""
    command = api.proposal.accept(id=id, category=category.strip(), commit=commit)
    return _decided(client, command, lambda done: f"accepted: {done.path}")


@decisions.post("/edit")
def edit(client: Client, id: BodyText, text: BodyText, seen: BodyText) -> Decided:
    """Keep an edited proposal, of which the editor got what was `seen`, checked again."""
    command = api.proposal.edit(id=id, text=text, seen=seen)
    return _decided(client, command, lambda done: f"edited: {done.title}")


@decisions.post("/merge")
def merge(
    client: Client, id: BodyText, into: BodyText, seen: BodyText, commit: BodyFlag = False
) -> Decided:
    """Add a proposal to the end of a lesson, of which this page showed what was `seen`."""
    command = api.proposal.merge(id=id, into=into, seen=seen, commit=commit, write=True)
    return _decided(client, command, lambda done: f"merged: {done.path}")


@decisions.post("/strike")
def strike(client: Client, id: BodyText, text: BodyText) -> Decided:
    """Take a prompt or a line of output out of a proposal."""
    command = api.proposal.strike(id=id, text=text)
    return _decided(client, command, lambda _: f"struck: {text}")


@decisions.post("/reject")
def reject(client: Client, id: BodyText) -> Decided:
    """Take a proposal away; for a week it can be taken back."""
    command = api.proposal.reject(id=id)
    return replace(_decided(client, command, lambda done: f"rejected: {done.title}"), undo=id)


@decisions.post("/undo")
def undo(client: Client, id: BodyText) -> Decided:
    """Let a rejected proposal wait again."""
    back, notes = client.change(api.proposal.take_back(id=id))
    return Decided(f"it waits again: {back.title}", notes)


routes.include_router(decisions)


def _decided(
    client: VaultClient,
    command: api.Question[api.Answer],
    line_of: Callable[[api.Answer], str],
) -> Decided:
    """Carry out a decision; return the line about it, and its notes. Raises Refusal.

    One that was decided in another window or in a terminal meanwhile is refused as such.
    """
    waiting, _ = client.look(api.proposal.select())
    if command.values["id"] not in {each.id for each in waiting}:
        raise Refusal(409, "this proposal was decided elsewhere meanwhile", "choose the next")
    answer, notes = client.change(command)
    return Decided(line_of(answer), notes)
