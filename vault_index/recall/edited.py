"""Answer an edit of an agent with at most one lesson, in one line: at the first edit of a file.

A lesson names files in `applies_to`: globs of a path in the repository that has the file, of a part of
that path or of a name, as in `[journal] exclude`. An agent of a session gets a lesson once.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vault_index import git
from vault_index.index.rows import MAX_TAUGHT_CHARS
from vault_index.journal.redact import glob_matcher, redact
from vault_index.recall import block, holdout, select, sessions
from vault_index.recall.select import Injection
from vault_index.search import above
from vault_index.search.hit import Hit
from vault_index.store import filters, injections

if TYPE_CHECKING:
    from vault_index.vault import Vault

EVENT = injections.EDIT


def _path_of(event: dict[str, Any]) -> str:
    """Return the path that an event is about, from the top of its repository or else its folder."""
    file = Path(str(event.get("cwd") or "."), str(event.get("file") or ""))
    folder = Path(os.path.realpath(file.parent))
    top = git.top_of(folder) or Path(os.path.realpath(str(event.get("cwd") or ".")))
    return Path(os.path.relpath(folder / file.name, top)).as_posix()


def select_lesson(vault: Vault, event: dict[str, Any]) -> Injection:
    """Return what an edit should get."""
    path = _path_of(event)
    if path.startswith("../") or sessions.times_told(vault, event, injections.key_of(path)):
        return Injection("", silent=select.NOTHING)
    session, agent = str(event["session_id"]), str(event.get("agent_id") or "")
    plan = holdout.plan(vault, session, agent)
    own = above.Answer(_hits_for(vault, path))
    every = above.joined(vault, own, lambda _, other: above.Answer(_hits_for(other, path)))
    first = list(filter(plan.is_new, every))[:1]
    if not first:
        return Injection("", silent="nothing new")
    hits, held = plan.split(first)
    text, silent = (block.at_edit(hits[0]), "") if hits else ("", holdout.SILENT)
    said = redact(path)[:MAX_TAUGHT_CHARS]
    return Injection(text, hits, silent=silent, about=path, said=said, held=held, plan=plan)


def _hits_for(vault: Vault, path: str) -> list[Hit]:
    lessons = _lessons_for(vault, path)
    hits = [replace(hit, score=1.0, cosine=1.0) for hit in select.of_ids(vault, lessons)]
    return sorted(hits, key=lambda hit: lessons.index(hit.lesson_id))


def _lessons_for(vault: Vault, path: str) -> list[str]:
    """Return the lessons that are for a path, that with the longest glob first."""
    store = vault.open_index().store

    def read_globs() -> list[tuple[str, str, Callable[..., bool]]]:
        where = filters.all_of(filters.WHOLE, filters.APPLIES)
        rows = store.rows(("lesson_id", "applies_to"), where)
        globs = [
            (row["lesson_id"], glob, glob_matcher([glob[:MAX_TAUGHT_CHARS]]))
            for row in rows
            for glob in row["applies_to"]
        ]
        return sorted(globs, key=lambda each: (-len(each[1]), each[0]))

    globs = store.once("globs", read_globs)
    return list(dict.fromkeys(lesson for lesson, _, is_for in globs if is_for(path)))
