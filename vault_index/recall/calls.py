"""Answer a call of an agent's tool with at most one lesson: a failed command, the first edit of a file.

At a failure its decision comes first. A session gets a lesson once for a signature, and once more at
the second same failure, said as such. A subagent has a context of its own, so what the main agent was
told it was not.

At an edit it is one line. A lesson names files in `applies_to`: globs of a path in the repository that
has the file, of a part of that path or of a name, as in `[journal] exclude`. An agent of a session gets
a lesson once.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from vault_index import git
from vault_index.check.redact import glob_matcher, redact
from vault_index.index.rows import MAX_TAUGHT_CHARS
from vault_index.recall import allowed, block, select
from vault_index.search import above, failures
from vault_index.search.hit import Hit, Injection
from vault_index.store import filters, injections
from vault_index.store.injections import Event
from vault_index.store.reader import Reader, once
from vault_index.text import failure
from vault_index.text.failure import Failure

if TYPE_CHECKING:
    from vault_index.vault import Vault

TIMES = 2  # that a session gets a lesson for the same failure
AGAIN = "The same failure as before; this was shown for it already:"
_LOOKED_AT = 5  # hits, of which some may not be trusted


def at_failure(vault: Vault, event: Event, text_only: bool) -> Injection:
    """Return the injection for the failure that an event reports."""
    home, root = vault.config.home, vault.root
    failed = failure.read(event.command, event.error)
    times = injections.times_told(home, root, event, injections.key_of(failed.signature))
    _, pointed = injections.received(home, root, event.session_id)
    injection = for_failure(vault, failed, times=times, text_only=text_only, pointed=pointed)
    prompt = redact(failed.lines[0] if failed.lines else failed.command)[:MAX_TAUGHT_CHARS]
    return replace(injection, about=failed.signature, said=prompt)


def for_failure(
    vault: Vault,
    failed: Failure,
    *,
    times: int = 0,
    text_only: bool = False,
    pointed: Collection[str] = (),
) -> Injection:
    """Return the injection for a failure that the session was told about `times` times before.

    `pointed` are the ids of lessons whose line the session received.
    """
    floors: dict[str, float | None] = {}

    def search(name: str, vault: Vault) -> tuple[failures.Answer, list[Hit], above.Answer]:
        answer = failures.find(vault, failed, _LOOKED_AT, text_only=text_only)
        least = answer.floors.line if vault.config.pointers else answer.floors.whole
        floors[name] = least if least < float("inf") else None
        trusted = allowed.newest(vault, allowed.only(vault, answer.hits[:1]))
        reaching = trusted if answer.is_above else []
        if answer.is_line and vault.config.pointers:
            reaching = [replace(hit, as_line=True) for hit in trusted]
            reaching = [hit for hit in reaching if hit.lesson_id not in pointed]
        return answer, trusted, above.Answer(reaching, answer.kept_out)

    answer, trusted, own = search("", vault)
    every = above.joined(vault, own, lambda place, other: search(place.name, other)[2])
    if not every:
        silent, near = answer.why_silent or select.NOTHING, next(iter(trusted), None)
        return Injection("", floor=floors[""], silent=silent, near=near)
    # the strongest; of equal ones the nearer
    first = max(every, key=lambda hit: (not hit.as_line, hit.score))
    least = floors.get(first.lesson_id.partition(":")[0], floors[""])
    if times >= TIMES:
        return Injection("", floor=least, silent="given twice already", near=first)
    text = block.at_failure(first, vault.config.prompt_tokens, AGAIN if times else "")
    return Injection(text, [first], floor=least)


def _path_of(event: Event) -> str:
    file = Path(event.cwd, event.file)
    folder = Path(os.path.realpath(file.parent))
    top = git.top_of(folder) or Path(os.path.realpath(event.cwd))
    return Path(os.path.relpath(folder / file.name, top)).as_posix()


def at_edit(vault: Vault, event: Event) -> Injection:
    """Return the injection for an edit."""
    path, home, root = _path_of(event), vault.config.home, vault.root
    key = injections.key_of(path)
    if path.startswith("../") or injections.times_told(home, root, event, key):
        return Injection("", silent=select.NOTHING)
    given, _ = injections.received(home, root, event.session_id, event.agent_id)
    own = above.Answer(_hits_for(vault, path))
    every = above.joined(vault, own, lambda _, other: above.Answer(_hits_for(other, path)))
    first = next((hit for hit in every if hit.lesson_id not in given), None)
    if first is None:
        return Injection("", silent=select.HAD if every else select.NOTHING)
    prompt = redact(path)[:MAX_TAUGHT_CHARS]
    return Injection(block.at_edit(first), [first], about=path, said=prompt)


def _hits_for(vault: Vault, path: str) -> list[Hit]:
    lessons = _lessons_for(vault, path)
    hits = [replace(hit, score=1.0, cosine=1.0) for hit in select.of_ids(vault, lessons)]
    hits.sort(key=lambda hit: lessons.index(hit.lesson_id))
    return allowed.newest(vault, hits)


def _lessons_for(vault: Vault, path: str) -> list[str]:
    """Return the lessons for a path, the most specific glob first."""
    globs = _globs(vault.open_index().store)
    return list(dict.fromkeys(lesson for lesson, _, is_for in globs if is_for(path)))


@once
def _globs(store: Reader) -> list[tuple[str, str, Callable[..., bool]]]:
    rows = store.rows(("lesson_id", "applies_to"), filters.all_of(filters.WHOLE, filters.APPLIES))
    globs = [
        (row["lesson_id"], glob, glob_matcher([glob[:MAX_TAUGHT_CHARS]]))
        for row in rows
        for glob in row["applies_to"]
    ]
    return sorted(globs, key=lambda each: (-len(each[1]), each[0]))
