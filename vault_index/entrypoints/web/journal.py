"""The routes that read the journal: for whoever has the token, since only its user may read its files.

Paths of this machine are left out: of a session its folder and files, of a file in another place all
but its name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query

from vault_index.entrypoints.web.refusal import Refusal
from vault_index.entrypoints.web.shapes import Text
from vault_index.entrypoints.web.vault_client import Client, VaultClient
from vault_index.entrypoints.words import moments

PREFIX = "/api/journal"
LEFT_OUT = frozenset({"folder", "transcript", "file", "path", "uuids"})
FILES = frozenset({"files", "files_read", "files_modified"})

Word = Annotated[Text, Query(max_length=1000)]
Kind = Literal["prompt", "observation", "summary"]


def narrowed(
    project: Word = "",
    file: Word = "",
    concept: Word = "",
    type: Word = "",
    since: Word = "",
    until: Word = "",
) -> dict[str, str]:
    """Return how a search is narrowed, by the parameters of the request."""
    values = {"project": project, "file": file, "concept": concept, "type": type}
    return {**values, "since": since, "until": until}


Narrowed = Annotated[dict[str, str], Depends(narrowed)]


async def require_journal(client: Client) -> None:
    client.require_journal()


routes = APIRouter(prefix=PREFIX, tags=["journal"], dependencies=[Depends(require_journal)])


@routes.get("/search")
def search(
    client: Client,
    narrowed: Narrowed,
    query: Word = "",
    limit: Annotated[int, Query(ge=1, le=100)] = 5,
    kind: Annotated[list[Kind] | None, Query()] = None,
) -> Any:
    """Find prompts, observations and summaries: by meaning, file, concept, type, time."""
    if not is_search(query, narrowed):
        raise Refusal(422, "there is nothing to search for", "send query, file, concept or type")
    values: dict[str, Any] = {"text": query, "k": limit, "kinds": kind or [], **narrowed}
    with client.refusing(422):
        values |= moments.window(narrowed["since"] or None, narrowed["until"])
    answer = client.ask("journal search", values, status=422)
    return shown(client, answer, "hits", "older", "project", "text_only")


@routes.get("/timeline")
def timeline(
    client: Client,
    anchor: Annotated[Text, Query(min_length=1, max_length=1000)],
    depth_before: Annotated[int, Query(ge=0, le=50)] = 10,
    depth_after: Annotated[int, Query(ge=0, le=50)] = 10,
    format: Literal["index", "full"] = "index",
    project: Word = "",
) -> Any:
    """Show the records around an anchor: an id, a session, a time or a query."""
    values = {"anchor": anchor, "before": depth_before, "after": depth_after}
    more = {"full": format == "full", "project": project}
    answer = client.ask("journal timeline", {**values, **more}, status=404)
    return shown(client, answer, "records", "anchor", "before")


@routes.get("/sessions")
def sessions(
    client: Client,
    project: Word = "",
    since: Word = "",
    until: Word = "",
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
) -> Any:
    """List the sessions, the latest first."""
    values = {"project": project, "limit": limit}
    with client.refusing(422):
        values |= moments.window(since or None, until)
    return shown(client, client.ask("journal sessions", values, status=422), "sessions")


def is_search(query: str, narrowed: Mapping[str, str]) -> bool:
    """Whether there is something to search for; a project or a time alone is not."""
    return bool(query.strip() or narrowed["file"] or narrowed["concept"] or narrowed["type"])


def shown(client: VaultClient, answer: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    """Return some of an answer, without the folders of this machine."""
    return {key: without_folders(client, answer[key]) for key in keys}


def without_folders(client: VaultClient, value: Any, key: str = "") -> Any:
    """Return JSON values without the folders of this machine; `key` is what a value is called."""
    if isinstance(value, Mapping):
        kept = {name: each for name, each in value.items() if name not in LEFT_OUT}
        return {name: without_folders(client, each, name) for name, each in kept.items()}
    if isinstance(value, (list, tuple)):
        return [without_folders(client, each, key) for each in value]
    if isinstance(value, str):
        is_elsewhere = key in FILES and value.startswith(("/", "~"))
        return value.rpartition("/")[2] if is_elsewhere else client.shown(value)
    return value
