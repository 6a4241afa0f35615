"""The page of a lesson: its text, what is around it, its past, and its file to edit.

A lesson is for whoever can read the vault, so its text needs no key, as in the API. Where it is
withheld, and for its past, which may hold what was taken out, the fragments are private. Each
fragment that takes a while comes after the first paint.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import HTMLResponse
from pydantic import BaseModel, Field

from vault_index import files
from vault_index.entrypoints import editor
from vault_index.entrypoints.guard import is_loopback
from vault_index.entrypoints.web.lessons import one_at_a_time
from vault_index.entrypoints.web.pages.markdown import html_of
from vault_index.entrypoints.web.pages.render import fragment, page
from vault_index.entrypoints.web.refusal import Refusal
from vault_index.entrypoints.web.shapes import MAX_TEXT_CHARS, Id, Text
from vault_index.entrypoints.web.vault_client import Client, VaultClient
from vault_index.text.quote import visible

PUBLIC = "/page/lesson"
PRIVATE = "/page/private/lesson"
MAX_ID = 1000  # characters
MAX_PATCH = 2000  # lines
# keys of the frontmatter that the page shows in a way of their own
SHOWN_KEYS = frozenset({"title", "categories", "category", "fires_on", "silent_on"})
OUTCOMES = (
    ("injected", "times an agent got it"),
    ("taken", "times the agent did what it says"),
    ("ignored", "times the agent did not use it"),
    ("contradicted", "times the agent did something else, or the user said so"),
    ("unknown", "times nothing shows what came of it"),
)

routes = APIRouter(include_in_schema=False)
LessonId = Annotated[Id, Query(min_length=1)]
FileText = Annotated[Text, Field(max_length=MAX_TEXT_CHARS)]


class Named(BaseModel):
    """A lesson by its id."""

    id: Id


class FileBody(BaseModel):
    """A lesson file, named from the vault's root, and a text for it."""

    path: Id
    text: FileText


class SaveBody(FileBody):
    """The same, with the text that the page was opened with."""

    seen: FileText


class SeenBody(BaseModel):
    """A lesson file, named from the vault's root, and the text that the page was opened with."""

    path: Id
    seen: FileText


@routes.get("/lesson/{id:path}")
def lesson(client: Client, id: str) -> HTMLResponse:
    """Show the page, or the lessons with the nearest names."""
    answer = _asked(client, id)
    entry = answer["entry"]
    if entry is None:
        near = answer["near"]
        return page(
            "lesson_missing.html", at="", title="No such lesson", status=404, id=id, near=near
        )
    if entry["withheld"]:  # the title may be what is to stay private
        values = {"parts": PRIVATE, "title": entry["id"]}
        return page("lesson.html", at="", id=entry["id"], body=None, **values)
    values = {"parts": PUBLIC, "title": entry["title"], **_body(answer)}
    return page("lesson.html", at="", id=entry["id"], body=True, **values)


@routes.get(f"{PUBLIC}/body")
@routes.get(f"{PRIVATE}/body")
def body(client: Client, request: Request, id: LessonId) -> HTMLResponse:
    """Show the lesson alone."""
    return fragment("lesson_body.html", **_body(_required(client, request, id)))


@routes.get(f"{PUBLIC}/near")
@routes.get(f"{PRIVATE}/near")
def near(client: Client, request: Request, id: LessonId) -> HTMLResponse:
    """Show the lessons that are most like it."""
    _required(client, request, id)
    return fragment("lesson_near.html", lessons=client.ask("nearest", {"id": id})["lessons"])


@routes.get(f"{PUBLIC}/prompts")
@routes.get(f"{PRIVATE}/prompts")
def prompts(client: Client, request: Request, id: LessonId) -> HTMLResponse:
    """Show its own prompts, and whether each passes."""
    _required(client, request, id)
    return fragment("lesson_prompts.html", **client.ask("own prompts", {"id": id}))


@routes.get(f"{PRIVATE}/history")
def history(client: Client, id: LessonId) -> HTMLResponse:
    """Show the commits that changed it."""
    answer = client.ask("edits", {"id": id}, status=404)
    return fragment("lesson_history.html", id=id, **answer)


@routes.get(f"{PRIVATE}/patch")
def patch(client: Client, id: LessonId, commit: Annotated[Id, Query()]) -> HTMLResponse:
    """Show what a commit changed."""
    text: str = client.ask("patch", {"id": id, "commit": commit}, status=404)["patch"]
    return fragment("lesson_patch.html", **_patch(text.split("\n")))


@routes.get(f"{PRIVATE}/outcome")
def outcome(client: Client, id: LessonId) -> HTMLResponse:
    """Show what became of its injections."""
    tally = client.ask("outcome", {"id": id})["outcome"]
    rows = [(name, tally[name], meaning) for name, meaning in OUTCOMES]
    return fragment("lesson_outcome.html", rows=rows, any=any(tally.values()))


@routes.get(f"{PRIVATE}/edit")
def edit(client: Client, id: LessonId) -> HTMLResponse:
    """Show its file, to be edited."""
    answer = _asked(client, id)
    if answer["entry"] is None:
        raise Refusal(404, "there is no such lesson", "load the page again")
    path = answer["entry"]["path"]
    text = client.ask("read file", {"path": path}, status=422)["text"]
    lessons = len(answer["of_file"])
    return fragment("lesson_edit.html", path=path, text=text, lessons=lessons)


@routes.post(f"{PRIVATE}/check")
def check(client: Client, body: FileBody) -> HTMLResponse:
    """Show what `lessons check` would find in a text."""
    answer = client.ask("check text", body.model_dump(), status=422)
    return fragment("lesson_findings.html", **answer)


@routes.post(f"{PRIVATE}/save", dependencies=[Depends(one_at_a_time)])
def save(client: Client, body: SaveBody) -> dict[str, str]:
    """Write a text into a lesson's file."""
    client.change("save file", body.model_dump(), lambda answer: [answer["path"]])
    return {"status": "saved"}


@routes.post(f"{PRIVATE}/changes")
def changes(client: Client, body: SeenBody) -> HTMLResponse:
    """Show what somebody changed in a lesson's file; nothing if it is as it was seen."""
    answer = client.ask("file changes", body.model_dump(), status=422)
    return fragment("lesson_changes.html", text=answer["text"], **_patch(answer["patch"]))


@routes.post(f"{PRIVATE}/open")
def open_editor(client: Client, request: Request, body: Named) -> dict[str, Any]:
    """Open its file in the user's own editor, if it has a window and both are on this machine."""
    entry = _asked(client, body.id)["entry"]
    if entry is None:
        raise Refusal(404, "there is no such lesson", "load the page again")
    ends = (request.scope.get("server"), request.scope.get("client"))
    is_here = all(end and is_loopback(str(end[0])) for end in ends)
    file = client.root / entry["path"]
    with client.refusing(422):
        files.refuse_links(file, client.root)
    return {
        "opened": is_here and editor.open_window(file, client.root),
        "path": entry["path"],
        "command": f"lessons edit {shlex.quote(entry['id'])}",
    }


def _asked(client: VaultClient, id: str) -> Mapping[str, Any]:
    """Return the lesson of a name with what its page shows: see `api.lesson_page.lesson`."""
    if not id.isprintable() or not id.strip() or len(id) > MAX_ID:
        return {"entry": None, "near": []}
    return client.ask("lesson", {"name": id}, status=404)


def _required(client: VaultClient, request: Request, id: str) -> Mapping[str, Any]:
    """Return a lesson for a fragment; a withheld one only for a private one. Raises Refusal."""
    answer = _asked(client, id)
    entry = answer["entry"]
    if entry is None:
        raise Refusal(404, "there is no such lesson any more", "search for it")
    if entry["withheld"] and not request.url.path.startswith(f"{PRIVATE}/"):
        raise Refusal(403, "this lesson is withheld", "open the page with its key")
    return answer


def _body(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of the template of a lesson."""
    entry, of_file = answer["entry"], answer["of_file"]
    ids = [other["id"] for other in of_file]
    at = ids.index(entry["id"]) if entry["id"] in ids else 0
    keys = [(key, words) for key, words in answer["metadata"] if key not in SHOWN_KEYS and words]
    return {
        "entry": entry,
        "text": html_of(entry["text"], entry["path"]),
        "keys": keys,
        "of_file": of_file if len(of_file) > 1 else [],
        "before": of_file[at - 1] if at else None,
        "after": of_file[at + 1] if at + 1 < len(of_file) else None,
    }


def _patch(lines: list[str]) -> dict[str, Any]:
    """Return the lines of a patch with the class of each, and how many are left out."""
    first = next((number for number, line in enumerate(lines) if line.startswith("@@")), len(lines))
    changed = [line for line in lines[first:] if line]
    kinds = {"+": "added", "-": "removed", "@": "quiet"}
    shown = [(kinds.get(line[:1], ""), visible(line)) for line in changed[:MAX_PATCH]]
    return {"lines": shown, "left_out": len(changed) - len(shown)}
