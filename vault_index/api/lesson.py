"""Questions about lessons: all of them, one, its page, what is around it, its past."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import date
from itertools import islice
from typing import Any, Unpack

from vault_index import files
from vault_index.api.question import Caller, command, question
from vault_index.errors import VaultError
from vault_index.lesson.file import LessonFile
from vault_index.lesson.frontmatter import metadata_of
from vault_index.search import entries
from vault_index.store import injections
from vault_index.vault import Vault

MAX_KEYS = 50  # of a file's frontmatter
MAX_CHARS = 1000  # of one of its values
MAX_PROMPTS = 30  # each is a search
MAX_EDITS = 50  # commits, of which each is a call of git


@question
def select(vault: Vault, **chosen: Unpack[entries.Selection]) -> dict[str, Any]:
    """List the lessons that are chosen: `entries`."""
    return {"entries": list(map(as_json, entries.entries(vault, **chosen)))}


@question
def show(vault: Vault, name: str) -> dict[str, Any]:
    """Return one lesson with its text, also by the beginning of its name: `entry`."""
    elsewhere = _loaded("search.above").named(vault, name) if ":" in name else None
    other, id = elsewhere[1:] if elsewhere else (vault, name)
    entry = entries.entry(other, id, beginnings=True)
    if elsewhere:
        entry["id"], entry["path"] = elsewhere[0].marked(entry["id"], entry["path"])
    return {"entry": as_json(entry)}


@question
def count(vault: Vault) -> dict[str, Any]:
    """Count the lessons: `counts` in and below each category, `own` in it alone."""
    counts, own = (entries.categories(vault, own=own) for own in (False, True))
    return {"counts": counts, "own": own}


@question
def categories(vault: Vault, ids: Sequence[str]) -> dict[str, Any]:
    """Return the `categories` of the lessons that have exactly these ids, by id."""
    return {"categories": entries.filed(vault, ids)}


@question
def page(vault: Vault, name: str) -> dict[str, Any]:
    """Return a lesson with its text: `entry`, None without it, and `near`, the nearest as [id, title].

    `metadata` are the keys of its file's frontmatter as [key, values], `of_file` the lessons of the
    file in their order.
    """
    entry, near = entries.entry_or_near(vault, name)
    if entry is None:
        return {"entry": None, "near": [list(other) for other in near]}
    parts = _loaded("search.documents").parts(vault, [entry["path"]])[entry["path"]]
    return {
        "entry": as_json(entry),
        "near": [],
        "metadata": _metadata(vault, entry["path"]),
        "of_file": [{"id": part.id, "title": part.title} for part in parts],
    }


@question
def tally(vault: Vault, id: str) -> dict[str, Any]:
    """Return how often agents got a lesson as `uses`, and when last as `last_used`, "" for never.

    `word` is the last that somebody said of it, "" for none.
    """
    home, root = vault.config.home, vault.root
    uses, last = injections.uses(home, root, [id])[id], injections.last_use(home, root, id)
    word = str(_loaded("recall.words").last_of(vault).get(id, ""))
    return {"uses": uses, "last_used": last, "word": word}


@question
def nearest(vault: Vault, id: str, most: int = 5) -> dict[str, Any]:
    """List the lessons that are most like one: `lessons`, see `query.nearest`."""
    return {"lessons": _loaded("search.query").nearest(vault, _entry(vault, id), most)}


@question
def related(vault: Vault, id: str, both: bool = False) -> dict[str, Any]:
    """List what a lesson is related to: `related`, each with `kind`, `name` and `id` or "".

    With `both`, also the lessons that name it.
    """
    return {"related": entries.related(vault, _entry(vault, id), both=both)}


@question
def prompts(vault: Vault, id: str) -> dict[str, Any]:
    """List a lesson's own prompts: `prompts`, each with `prompt`, `is_silent` and whether it `passes`.

    One that `is_silent` must not find the lesson. `left_out` is how many there are beyond these.
    """
    entry = _entry(vault, id)
    taught = [(prompt, False) for prompt in entry["fires_on"] or ()]
    taught += [(prompt, True) for prompt in entry["silent_on"] or ()]
    tried = []
    for prompt, is_silent in taught[:MAX_PROMPTS]:
        hits = _loaded("recall.select").for_prompt(vault, prompt).hits
        comes = any(hit.lesson_id == entry["id"] for hit in hits)
        tried.append({"prompt": prompt, "is_silent": is_silent, "passes": comes is not is_silent})
    return {"prompts": tried, "left_out": len(taught) - len(tried)}


@command
def history(vault: Vault, caller: Caller, id: str) -> dict[str, Any]:
    """List the last commits that changed a lesson: `edits`, newest first, and if there are `more`."""
    path = _path(caller, id)
    every = _loaded("share.history").log(vault, id, path, MAX_EDITS + 1)
    edits = [asdict(edit) for edit in every[:MAX_EDITS]]
    return {"path": path, "edits": edits, "more": len(every) > MAX_EDITS}


@command
def diff(vault: Vault, caller: Caller, id: str, commit: str) -> dict[str, Any]:
    """Return the `patch` of a lesson's file in one of the commits that `history` lists."""
    return {"patch": _loaded("share.history").patch(vault, _path(caller, id), commit, MAX_EDITS)}


def _entry(vault: Vault, id: str) -> entries.Entry:
    entry, _ = entries.entry_or_near(vault, id)
    if entry is None:
        raise VaultError(f"no lesson {id}", "see `lessons list`")
    return entry


def _path(caller: Caller, id: str) -> str:
    entry: Mapping[str, Any] | None = caller.ask(page(name=id))["entry"]
    if entry is None:
        raise VaultError(f"no lesson {id}", "see `lessons list`")
    return str(entry["path"])


def _metadata(vault: Vault, path: str) -> list[tuple[str, list[str]]]:
    try:
        files.refuse_links(vault.root / path, vault.root)
        metadata = metadata_of(LessonFile.of(files.read_file(vault.root / path), path))
    except VaultError:
        return []
    return [(str(key)[:100], _words(value)) for key, value in list(metadata.items())[:MAX_KEYS]]


def _words(value: Any) -> list[str]:
    if value is None:
        return []
    members = value if isinstance(value, list) else [value]
    words = (each.isoformat() if isinstance(each, date) else str(each) for each in members)
    return [word[:MAX_CHARS] for word in islice(words, MAX_KEYS)]


def as_json(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return an entry as JSON values; moments are ISO 8601."""
    moments = {key: entry[key].isoformat() for key in ("created_at", "updated_at") if entry[key]}
    return {**entry, **moments}


def _loaded(module: str) -> Any:
    """Return a module that only the page of a lesson needs: a list of lessons does not wait for it."""
    return importlib.import_module(f"vault_index.{module}")
