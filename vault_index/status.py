"""The state of a vault: files, index, embedder, floor; for `lessons status`."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from vault_index import config, features, git, state
from vault_index.embed import download
from vault_index.errors import VaultError, WriteError
from vault_index.hotpath import index_files
from vault_index.lesson import category
from vault_index.retrieval import entries, floor
from vault_index.store import injections, manifest
from vault_index.text.quote import without_key

if TYPE_CHECKING:
    from vault_index.vault import Vault


@dataclass(frozen=True, slots=True)
class IndexState:
    """The index of a vault; of one that cannot be opened the `error`.

    The floors are of words alone where there are no vectors, and until those of the embedder are
    measured: then it `waits_for` them.
    """

    embedder: str = ""
    files: int = 0
    bytes: int = 0
    age_seconds: int = 0
    floor: float | None = None
    line_floor: float | None = None
    by_words: bool = False
    waits_for: str = ""  # the name of the embedder
    lacking: int = 0  # files whose vectors are still to be made
    error: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """The state of a vault."""

    vault: str
    git: git.Worktree | None
    embedder: str
    model: download.ModelState
    index: IndexState
    settings: Sequence[config.Setting]
    lessons: int | None  # None without an index
    categories: Mapping[str, int]
    unfiled: int | None
    injections: injections.Summary
    state: Sequence[str]
    parts: Sequence[Any]  # a dataclass of each feature that has one, in the order of the list

    def as_json(self) -> dict[str, Any]:
        """Return it as `lessons status --json` prints it: each part adds its fields."""
        values = asdict(self)
        for part in values.pop("parts"):
            values |= part
        return values


def degraded(vault: Vault, *, is_now: bool) -> str:
    """Note whether words alone are searched; return since when that was seen, "" if they are not.

    All doors give the same moment, as far as it can be kept.
    """
    name, home = f"degraded {state.vault_of(vault.root)}", vault.config.home
    since = state.fact(home, name) or datetime.now(UTC).isoformat("T", "seconds")
    with suppress(WriteError):
        state.keep_fact(home, name, since if is_now else None)
    return str(since) if is_now else ""


def of(vault: Vault) -> Report:
    """Return the state. Reads only; a bad index raises nothing."""
    home, index, lessons = vault.config.home, _index(vault), []
    with suppress(VaultError):
        lessons = entries.entries(vault)
    unfiled = sum(lesson.filed_by in ("classifier", "nobody") for lesson in lessons)
    return Report(
        vault=str(vault.root),
        git=git.seen_worktree(vault.lessons_dir),
        embedder=_embedder(vault),
        model=download.state(home),
        index=index,
        settings=settings(vault),
        lessons=None if index.error else len(lessons),
        categories=category.counts(lesson.categories for lesson in lessons),
        unfiled=None if index.error else unfiled,
        injections=injections.summary(home, vault.root, [lesson.id for lesson in lessons]),
        state=[what for what, fix in state.notes(home) if not fix],
        parts=[feature.status(vault) for feature in features.with_status()],
    )


def settings(vault: Vault) -> list[config.Setting]:
    """Return the settings in force, the vault's own file by its path in the vault."""
    vault_file = str(vault.lessons_dir / index_files.SETTINGS)
    names = {vault_file: f"{index_files.FOLDER}/{index_files.SETTINGS}"}
    in_force = config.settings_in_force(vault.config)
    return [
        replace(
            each,
            origin=names.get(each.origin, each.origin),
            value=shown_value(each.name, each.value),
        )
        for each in in_force
    ]


def shown_value(name: str, value: Any) -> Any:
    """Return the value of a setting for people: an address comes without its key."""
    return without_key(value) if name.endswith(("_host", "_url")) and value else value


def _embedder(vault: Vault) -> str:
    try:
        embedder = vault.embedder
    except VaultError as error:
        return error.message
    if embedder is not None:
        return embedder.name
    if vault.config.embedder == "none":
        return "none: full text only"
    now = download.state(vault.config.home)
    none = "none" if now.state == download.DAMAGED else "none here"
    return f"{none}, so full text only: {now}"


def _index(vault: Vault) -> IndexState:
    try:
        if not os.path.lexists(vault.index_dir):
            return IndexState(error="none yet: made at the first search")
        opened = vault.open_index()
    except VaultError as error:
        return IndexState(error=f"{error.message}; {error.hint}")
    whole = opened.store.index.rglob("*")
    unmeasured = floor.is_unmeasured(vault)
    has_none = opened.embedder == manifest.NO_EMBEDDER
    by_words = unmeasured or has_none or bool(opened.unmade)
    floors = floor.in_force(vault, text_only=by_words)
    return IndexState(
        embedder=opened.embedder,
        files=opened.files,
        bytes=sum(file.stat().st_size for file in whole if file.is_file()),
        age_seconds=max(0, round(time.time() - manifest.written(opened.store.index))),
        floor=floors.whole if floors else None,
        line_floor=floors.line if floors else None,
        by_words=by_words,
        waits_for=opened.embedder if unmeasured else "",
        lacking=opened.lacking,
    )
