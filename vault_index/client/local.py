"""Answering in this process: the model is there, the index up to date.

A question would rather have an answer from the index as it is than none: where nothing can be written
or embedded, and while another process takes long.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from vault_index import api
from vault_index.edit.add import write
from vault_index.embed import download
from vault_index.errors import EmbedderError, IndexStateError, ModelError, WriteError
from vault_index.index import reconcile
from vault_index.retrieval import query
from vault_index.retrieval.hit import LESSONS
from vault_index.watch import background_index

if TYPE_CHECKING:
    from pathlib import Path

    from vault_index.api.question import Ask
    from vault_index.client import Options
    from vault_index.config import Config
    from vault_index.retrieval.hit import Hit
    from vault_index.store.sync import Stats
    from vault_index.vault import Vault

PATIENCE_SECONDS = 3  # another process indexes a small change in that time

Note = Callable[[str], None]


def answer(vault: Vault, question: api.Question[api.Answer], options: Options) -> api.Answer:
    """Answer from an index that is up to date; build a damaged one again.

    The model is fetched for a search alone: a list of lessons does not wait for it.
    """
    fetch = options.fetch and not question.name.startswith("lesson.")
    try:
        up_to_date_or_stale(vault, options.note, options.progress, fetch=fetch)
        return question.answer(vault)
    except IndexStateError as error:
        if error.newer:
            raise
        # only the search found the damage
        options.note(f"note: {error.message}; it is built again")
    bring_up_to_date(vault, options.note, options.progress, rebuild=True, fetch=fetch)
    return question.answer(vault)


def run(vault: Vault, command: api.Question[api.Answer], options: Options, put: Ask) -> api.Answer:
    """Carry out a command; `put` answers its own questions. Raises VaultError."""

    def index(other: Vault, *, or_stale: bool = False, **more: Any) -> Stats | None:
        if or_stale:
            return up_to_date_or_stale(other, options.note, options.progress, **more)
        return bring_up_to_date(other, options.note, options.progress, **more)

    caller = api.Caller(options.note, options.progress, options.event, put, index)
    return command.answer(vault, caller)


def bring_up_to_date(
    vault: Vault,
    on_note: Note,
    on_progress: api.Progress,
    *,
    rebuild: bool = False,
    wait: bool = True,
    fetch: bool = True,
    read_all: bool = False,
    completes: bool = True,
) -> Stats:
    """Fetch the model if it is missing, and sync the index. Raises VaultError.

    Without `completes` many new passages are found by words alone when this returns.
    """
    if fetch:
        fetch_model(vault.config, on_note)
    progress = partial(on_progress, "indexing lessons")
    if rebuild:
        stats = reconcile.rebuild(vault, wait=wait, progress=progress)
    else:
        how = {"wait": wait, "read_all": read_all, "completes": completes}
        making = partial(on_progress, "making vectors")
        checks = partial(on_progress, "checking lessons")
        stats = reconcile.sync(
            vault,
            **how,
            progress=progress,
            progress_of_checks=checks,
            progress_of_vectors=making,
        )
    if stats.no_vectors:
        on_note(f"warning: full text only: {stats.no_vectors}")
    if stats.shared:
        on_note(f"note: {stats.shared}; embedded here")
    return stats


def up_to_date_or_stale(
    vault: Vault, on_note: Note, on_progress: api.Progress, *, fetch: bool = True
) -> Stats | None:
    """Bring the index up to date if that is soon done; None where it cannot be written.

    Vectors that take longer are made in the background. Raises VaultError where there is no index that
    would do instead.
    """
    try:
        how = {"wait": False, "fetch": fetch, "completes": False}
        stats = bring_up_to_date(vault, on_note, on_progress, **how)
        patience = time.monotonic() + PATIENCE_SECONDS
        while stats.busy and (time.monotonic() < patience or not _has_index(vault)):
            time.sleep(0.1)
            stats = bring_up_to_date(vault, on_note, on_progress, **how)
        if stats.unchecked or (stats.lacking and not stats.no_vectors):
            background_index.start_index(vault)
    except (WriteError, EmbedderError) as error:
        if not _has_index(vault):
            raise
        on_note(f"warning: {error.message}; searching the index as it is")
        return None
    if stats.busy:
        on_note("note: another process is indexing; searching the index as it is")
    if stats.rebuilt and stats.rebuilt not in ("first index", "asked for"):
        on_note(f"note: {stats.rebuilt}; it was built again")
    for problem in stats.problems:
        on_note(f"warning: {problem.path}:{problem.line}: {problem.message}")
    return stats


def fetch_model(config: Config, on_note: Note) -> None:
    """Fetch the built-in model if it is the embedder and nobody has tried; offline is no error."""
    home = config.home
    if not config.is_built_in or download.is_ready(home):
        return
    if not download.is_due(config):
        on_note(f"note: full text only: {download.why_missing(config)}")
        return
    on_note(f"fetching the embedding model ({download.SIZE}, once)")
    try:
        download.fetch(home, progress=sys.stderr.isatty())
    except (ModelError, WriteError) as error:
        on_note(f"note: {error.message}; full text only until `lessons model fetch` succeeds")


def _has_index(vault: Vault) -> bool:
    try:
        vault.open_index()
    except IndexStateError:
        return False
    return True


def search(
    vault: Vault,
    text: str,
    k: int = 5,
    *,
    categories: Sequence[str] = (),
    kinds: Sequence[str] = (LESSONS,),
    within: str = "",
) -> list[Hit]:
    """Return up to `k` hits for a text, best first, from an index that is brought up to date first.

    `categories`, `kinds` and `within` narrow as in `Query`. Raises VaultError.
    """
    up_to_date_or_stale(vault, api.silent, api.silent)
    return query.find(vault, text, k, categories, kinds=kinds, within=within)


def add(
    vault: Vault,
    text: str,
    *,
    title: str = "",
    categories: Sequence[str] = (),
    tags: Sequence[str] = (),
    type: str = "",
    applies_to: Sequence[str] = (),
) -> Path:
    """Write a lesson and return its path. The next search finds it.

    `text` is markdown with or without frontmatter; the other values are set in it. Raises LessonError,
    WriteError, and VaultError for what `lessons check` calls an error, or a file that is there.
    """
    return write(
        vault, text.encode(), title=title, categories=categories, type=type, tags=list(tags),
        applies_to=list(applies_to),
    )  # fmt: skip
