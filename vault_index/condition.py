"""The condition of a vault: files, index, embedder, floor; for `lessons status`."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vault_index import (
    catalog,
    categories,
    config,
    difference,
    floor,
    get,
    git,
    injections,
    locate,
    manifest,
    search,
    skills,
)
from vault_index.embed import fetching
from vault_index.errors import VaultError

if TYPE_CHECKING:
    from vault_index.vault import Vault


def of(vault: Vault) -> dict[str, Any]:
    """Give the condition as JSON values. Reads only; nothing here raises for a bad index."""
    state: dict[str, Any] = {
        "vault": str(vault.root),
        "git": _git(vault),
        "embedder": _embedder(vault),
        "model": asdict(fetching.state(vault.config.home)),
        "index": _index(vault),
        "ignored_settings": list(vault.config.ignored),
        "settings": settings(vault),
    }
    try:
        lessons = get.entries(vault)
        state["lessons"] = len(lessons)
        state["categories"] = categories.counts(one["categories"] for one in lessons)
        state["unfiled"] = sum(one["filed_by"] in ("classifier", "nobody") for one in lessons)
        state["documents"] = sum(one.kind == catalog.DOCUMENT for one in catalog.places(vault))
        state["skills"] = search.count_skills(vault)
        state["withheld"] = get.withheld(vault)
    except VaultError:
        lessons = []
        state |= dict.fromkeys(("lessons", "unfiled", "documents", "skills"))
        state |= {"categories": {}, "withheld": {}}
    state["skill_problems"] = skills.problems(vault)
    known = [one["id"] for one in lessons]
    state["injections"] = _injections(vault, known)
    return state


def lines(state: dict[str, Any]) -> Iterator[str]:
    """Give the condition for people, a line each."""
    yield f"vault      {state['vault']}"
    repository = state["git"]
    if repository:
        count = repository["uncommitted"]
        dirty = f", {count} {'file' if count == 1 else 'files'} not committed" if count else ""
        yield f"git        {repository['branch']} at {repository['head'] or 'no commit yet'}{dirty}"
    else:
        yield "git        not a repository: lessons have no author and no date"
    yield f"embedder   {state['embedder']}"
    built = state["index"]
    if "error" in built:
        yield f"index      {built['error']}"
    else:
        age = built["age_seconds"]
        yield (
            f"index      {state['lessons']} lessons in {built['files']} files,"
            f" {built['bytes'] / 1e6:.1f} MB, written {_ago(age)}"
        )
        least = built["floor"]
        yield "floor      " + (
            "not fitted yet: run `lessons index`" if least is None else f"{least:.3f}"
        )
    for problem in built.get("problems", []):
        yield f"problem    {problem['path']}:{problem['line']}: {problem['message']}"
    for path, why in sorted(state["withheld"].items()):
        yield f"problem    {path}: hooks leave it out: {why}"
    for key in state["ignored_settings"]:
        yield f"problem    lessons/vault.toml: a vault may not set {key!r}; it is ignored"
    for problem in state["skill_problems"]:
        yield f"problem    {problem}"
    yield from _in_force(state["settings"])
    if state["categories"]:
        unfiled = state["unfiled"]
        proposed = f"; {unfiled} lessons are in none: see `lessons classify`" if unfiled else ""
        yield f"categories {len(state['categories'])}{proposed}"
        yield f"besides    {state['documents']} documents, {state['skills']} skills"
    yield from _used(state["injections"])
    hooks = state.get("hooks") or {}
    places = ", ".join(hooks.get("installed", [])) or "not installed: run `lessons install claude`"
    yield f"hooks      {places}"
    for entry in hooks.get("last_errors", []):
        yield f"hook log   {entry['time']} {entry['event']}: {entry['message']}"


def _used(injected: dict[str, Any]) -> Iterator[str]:
    if not injected["prompts"]:
        yield "prompts    none searched for yet"
        return
    yield (
        f"prompts    {injected['prompts']} searched for since {injected['since']},"
        f" {injected['answered']} answered; p50 {injected['p50_ms']:.0f} ms,"
        f" p90 {injected['p90_ms']:.0f} ms"
    )
    for lesson_id, count in injected["most_used"]:
        yield f"{count:>8}x  {lesson_id}"
    if injected["never_used"]:
        some = ", ".join(injected["some_never_used"][:3])
        yield f"never used {injected['never_used']} lessons, such as {some}"


def settings(vault: Vault) -> list[dict[str, Any]]:
    """Return the settings in force as JSON values, the vault's own file by its path in the vault."""
    shown = {str(vault.folder / locate.SETTINGS): f"{locate.FOLDER}/{locate.SETTINGS}"}
    return [
        {
            "name": one.name,
            "value": str(one.value) if isinstance(one.value, Path) else one.value,
            "origin": shown.get(one.origin, one.origin),
        }
        for one in config.settings_in_force(vault.config)
    ]


def _in_force(settings: list[dict[str, Any]]) -> Iterator[str]:
    """Yield a line for each setting that somebody set, and one for all the others."""
    of_nobody = [one for one in settings if one["origin"] == config.DEFAULT]
    for one in settings:
        if one not in of_nobody:
            yield f"setting    {one['name']} = {shown_value(one['value'])} ({one['origin']})"
    listed = ", ".join(f"{one['name']} = {shown_value(one['value'])}" for one in of_nobody)
    yield f"defaults   {listed}"


def shown_value(value: Any) -> str:
    """Return a setting's value in a line, as TOML writes it as far as that is short."""
    if value is None:
        return "unset"
    if isinstance(value, dict):
        return f"{len(value)} phrases"
    if isinstance(value, (list, tuple)) and len(value) > 3:
        return f"{len(value)} entries"
    return json.dumps(value, ensure_ascii=False, default=str)


def _git(vault: Vault) -> dict[str, Any] | None:
    found = git.worktree(vault.folder)
    if found is None:
        return None
    return {"branch": found.branch, "head": found.head, "uncommitted": len(found.uncommitted)}


def _injections(vault: Vault, known: list[str]) -> dict[str, Any]:
    try:
        return injections.summary(vault.index_folder, known)
    except VaultError:  # what `index` says already
        return injections.total([], known)


def _embedder(vault: Vault) -> str:
    try:
        embedder = vault.embedder
    except VaultError as error:
        return error.message
    if embedder is not None:
        return embedder.name
    if vault.config.embedder == "none":
        return "none: full text only"
    return f"none here, so full text only: {fetching.state(vault.config.home)}"


def _index(vault: Vault) -> dict[str, Any]:
    try:
        opened = vault.open_index()
        known = manifest.load(opened.store.index)
    except VaultError as error:
        return {"error": f"{error.message}; {error.hint}"}
    return {
        "embedder": opened.embedder,
        "files": opened.files,
        "bytes": _size(opened.store.index),
        "age_seconds": round(time.time() - manifest.written(opened.store.index)),
        "floor": floor.in_force(vault, text_only=opened.embedder == manifest.NO_EMBEDDER),
        "problems": [asdict(one) for one in difference.problems(known, vault.files()[1])],
    }


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def _ago(seconds: int) -> str:
    for unit, size in (("days", 86_400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size} {unit} ago"
    return f"{seconds} seconds ago"
