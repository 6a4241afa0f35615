"""The hook's answer without a watcher: in this process, from the index as it is."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path
from typing import Any

from vault_index import config
from vault_index.errors import IndexStateError, NoVaultError, WriteError
from vault_index.hotpath import log
from vault_index.hotpath.hook_event import Event
from vault_index.index import reconcile
from vault_index.recall import select
from vault_index.recall.respond import respond
from vault_index.retrieval import query
from vault_index.store import delivery, manifest
from vault_index.vault import Vault, open_vault
from vault_index.watch import background_index, launch

BUSY_SECONDS = 0.4  # to wait for another process: it indexes the few files of a pull in that time


def answer(
    root: str, event: dict[str, Any], began: float, *, may_start: bool, text_only: bool
) -> dict[str, Any] | None:
    """Answer one Claude Code hook event in this process; None for silence. Any error may be raised.

    `began` is when the hook began (monotonic). `may_start`: no watcher runs or starts. `text_only`: a
    watcher hangs, so little time is left.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # more would only spin: see `cli`
    try:
        vault = open_vault(root)
    except NoVaultError:  # removed a moment ago
        return None
    why, hook_event = log.NO_INDEX, Event.of(event)
    try:
        has_index = manifest.current(vault.index_dir) is not None
        if may_start and vault.config.watch.autostart:
            with contextlib.suppress(WriteError):  # a read-only vault has no watcher
                launch.open_in_background(vault, after_caller=not has_index)  # for the next prompt
        if not has_index:  # no model loads: the files are searched
            _index_in_background(vault)
        elif _is_searchable(vault, hook_event, text_only):
            ms = 1000 * (time.monotonic() - began)
            return respond(vault, hook_event, by="process", ms=ms, text_only=text_only)
    except IndexStateError as error:
        if error.newer:
            raise
        why = error.message
        _index_in_background(vault, "--rebuild")  # only searching shows this damage
    log.log(event, why, began)
    ms = 1000 * (time.monotonic() - began)
    return respond(vault, hook_event, by="process", ms=ms, from_files=True)


def _is_searchable(vault: Vault, event: Event, text_only: bool) -> bool:
    """Whether there is an index to search, brought up to date and loaded while the prompt is embedded."""
    prompt = "" if text_only else event.prompt or Path(event.cwd).name
    with query.embedding(vault, prompt):
        has_index = _bring_up_to_date(vault, 0.0 if text_only else BUSY_SECONDS)
        if has_index and prompt:
            vault.open_index().store.load()
    return has_index


def _bring_up_to_date(vault: Vault, patience: float) -> bool:
    """Index a few changes and leave more to the background. Whether there is an index to search.

    `patience` is how many seconds to wait for another process.
    """
    try:
        stats = reconcile.at_once(vault, full=False)
        until = time.monotonic() + patience
        while stats.busy and time.monotonic() < until:  # another process indexes a pull, say
            time.sleep(0.02)
            stats = reconcile.at_once(vault, full=False)
        lacks = bool(stats.lacking) and vault.config.is_built_in  # a server may be away
        is_behind = bool(stats.pending or stats.owes or stats.unchecked or lacks)
    except WriteError:  # a read-only vault answers from the index it has
        is_behind = False
    opened = None
    try:
        opened = vault.open_index()
    except IndexStateError as error:
        if error.newer:
            raise
        is_behind = True
    if is_behind:
        _index_in_background(vault)
    return opened is not None


def _index_in_background(vault: Vault, *options: str) -> None:
    if not vault.config.watch.autostart:
        with contextlib.suppress(WriteError):  # nothing can be written
            background_index.start_index(vault, *options)


def answer_without_vault(event: dict[str, Any]) -> dict[str, Any] | None:
    """Answer the start of a session; None for silence. Anything may be raised."""
    settings, hook_event = config.load(environ=os.environ), Event.of(event)
    if hook_event.source not in settings.session_sources:
        return None
    text = select.without_vault(settings, Path(hook_event.cwd), hook_event.session_id)
    if not text:
        return None
    with contextlib.suppress(WriteError):  # then two hooks may answer
        if hook_event.session_id and not delivery.claim(
            settings.home, Path(hook_event.cwd), hook_event
        ):
            return None
    output = {"hookEventName": hook_event.hook_event_name, "additionalContext": text}
    return {"hookSpecificOutput": output}
