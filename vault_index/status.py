"""The state of a vault: files, index, embedder, floor; for `lessons status`."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from vault_index import config, features, git, state
from vault_index.embed import download
from vault_index.errors import VaultError, WriteError
from vault_index.hotpath import index_files
from vault_index.lesson import category
from vault_index.search import entries, evidence, floor
from vault_index.store import injections, manifest
from vault_index.text.quote import without_key

if TYPE_CHECKING:
    from vault_index.vault import Vault


def degraded(vault: Vault, *, is_now: bool) -> str:
    """Note whether words alone are searched; return since when that was seen, "" if they are not.

    All doors give the same moment, as far as it can be kept.
    """
    name, home = f"degraded {state.vault_of(vault.root)}", vault.config.home
    since = state.fact(home, name) or datetime.now(UTC).isoformat("T", "seconds")
    with suppress(WriteError):
        state.keep_fact(home, name, since if is_now else None)
    return str(since) if is_now else ""


def of(vault: Vault) -> dict[str, Any]:
    """Return the state as JSON values. Reads only; a bad index raises nothing."""
    worktree = git.worktree(vault.lessons_dir)
    found: dict[str, Any] = {
        "vault": str(vault.root),
        "git": asdict(worktree) | {"uncommitted": len(worktree.uncommitted)} if worktree else None,
        "embedder": _embedder(vault),
        "model": asdict(download.state(vault.config.home)),
        "index": _index(vault),
        "settings": settings(vault),
    }
    try:
        lessons = entries.entries(vault)
        found["lessons"] = len(lessons)
        found["categories"] = category.counts(lesson.categories for lesson in lessons)
        found["unfiled"] = sum(lesson.filed_by in ("classifier", "nobody") for lesson in lessons)
    except VaultError:
        lessons = []
        found |= dict.fromkeys(("lessons", "unfiled"))
        found["categories"] = {}
    ids = [lesson.id for lesson in lessons]
    found["injections"] = injections.summary(vault.config.home, vault.root, ids)
    found["state"] = [what for what, fix in state.notes(vault.config.home) if not fix]
    for add in features.adding("state"):
        found |= add(vault)
    return found


def settings(vault: Vault) -> list[config.Setting]:
    """Return the settings in force, the vault's own file by its path in the vault."""
    own = str(vault.lessons_dir / index_files.SETTINGS)
    names = {own: f"{index_files.FOLDER}/{index_files.SETTINGS}"}
    every = config.settings_in_force(vault.config)
    return [
        replace(
            each,
            origin=names.get(each.origin, each.origin),
            value=shown_value(each.name, each.value),
        )
        for each in every
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
    return f"none here, so full text only: {download.state(vault.config.home)}"


def _floors(vault: Vault, *, text_only: bool) -> dict[str, Any]:
    floors, found = floor.in_force(vault, text_only=text_only), floor.fit_of(vault)
    return {
        "floor": floors.whole if floors else None,
        "line_floor": floors.line if floors else None,
        "passed": floor.PASSING.whole if found and found.titles else None,  # on its subjects
        "least_lessons": evidence.SMALL,  # that say how many pass
        "passed_foreign": floor.PASSING_FOREIGN.whole if found else None,
    }


def _index(vault: Vault) -> dict[str, Any]:
    try:
        opened = vault.open_index()
    except VaultError as error:
        return {"error": f"{error.message}; {error.hint}"}
    whole = opened.store.index.rglob("*")
    return {
        "embedder": opened.embedder,
        "files": opened.files,
        "bytes": sum(file.stat().st_size for file in whole if file.is_file()),
        "age_seconds": round(time.time() - manifest.written(opened.store.index)),
        **_floors(vault, text_only=opened.embedder == manifest.NO_EMBEDDER),
    }
