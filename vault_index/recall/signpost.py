"""The line that tells an agent of the vault: how many lessons, on which subjects, and how to ask.

An agent that knows of a vault searches it by itself, and finds what no prompt brings.
"""

from __future__ import annotations

import shlex
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vault_index.errors import IndexStateError, VaultError
from vault_index.lesson import category
from vault_index.recall import block
from vault_index.retrieval import above
from vault_index.store import filters
from vault_index.text.words import count

if TYPE_CHECKING:
    from vault_index.hotpath.hook_event import Event
    from vault_index.vault import OpenIndex, Vault

MAX_TOKENS = 60  # with its fence
SUBJECTS, DEPTH = 4, 2  # the largest categories, and how many of their parts are named
NAME_CHARS = 40  # of a category


@dataclass(frozen=True, slots=True)
class Counted:
    """The lessons of a vault, and of each subject; `indexing`: they were counted in the files."""

    lessons: int
    subjects: Counter[str]
    indexing: bool = False


def line(vault: Vault, event: Event) -> str:
    """Return the line for the agent of an event; "" without lessons, or where it is not wanted."""
    if not vault.config.pointers:
        return ""
    counted = _counted(vault)
    if not counted.lessons:
        return ""
    room = MAX_TOKENS * block.CHARS_PER_TOKEN - len(block.alone(""))
    names = [name for name, _ in counted.subjects.most_common(SUBJECTS)]
    for how in (_how(event), _how(None)):
        for shown in range(len(names), -1, -1):
            text = _text(counted, names[:shown], how)
            if len(text) <= room:
                return text
    return ""


def _text(counted: Counted, names: list[str], how: str) -> str:
    parts = [f"{name} ({counted.subjects[name]})" for name in names]
    on = (
        f", most on {', '.join(parts)}"
        if len(parts) > 1
        else "".join(f", on {each}" for each in names)
    )
    indexing = " Indexing, a few seconds." if counted.indexing else ""
    return f"This team keeps {count(counted.lessons, 'lesson')}{on}.{indexing} {how}"


def _how(event: Event | None) -> str:
    if event and event.has_tools:
        return "Search before you begin: the tool `learn_search`, then `learn_get`."
    program = shlex.quote(event.program) if event else "lessons"
    return f"Search before you begin: `{program} search WORDS`, then `{program} show ID`."


def _counted(vault: Vault) -> Counted:
    """Count the lessons of a vault and of the vaults above, in the index or without one in the files."""
    try:
        opened = vault.open_index()
        counted = _in_files(vault) if opened.unchecked else _in_index(opened)
    except IndexStateError:
        counted = _in_files(vault)
    for _, other in above.opened(vault):
        with suppress(VaultError):  # it has no index yet: `lessons vaults` says so
            more = _in_index(other.open_index())
            subjects = counted.subjects + more.subjects
            counted = Counted(counted.lessons + more.lessons, subjects, counted.indexing)
    return counted


def _in_index(opened: OpenIndex) -> Counted:
    subjects: Counter[str] = Counter()
    if opened.store.exists():
        where = filters.all_of(filters.WHOLE, filters.FOR_AGENTS)
        for path, lessons in opened.store.tally("categories", where).items():
            _add(subjects, path, lessons)
    return Counted(opened.lessons - opened.withheld, subjects)


def _in_files(vault: Vault) -> Counted:
    """Count files: few have several lessons, and to read all of them takes too long."""
    files = [file.path for file in vault.files()[0]]
    subjects: Counter[str] = Counter()
    for path in files:
        _add(subjects, category.from_folder(path) or "", 1)
    return Counted(len(files), subjects, indexing=True)


def _add(subjects: Counter[str], path: str, lessons: int) -> None:
    name = category.normalise("/".join(path.split("/")[:DEPTH]))[:NAME_CHARS]
    if name and category.is_category(name):
        subjects[name] += lessons
