"""Measure the floors of an embedder the first time that one is used: see `retrieval.measuring`."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from vault_index.edit import add, init
from vault_index.errors import EmbedderError
from vault_index.index import reconcile
from vault_index.retrieval import floor, measuring
from vault_index.vault import open_vault

if TYPE_CHECKING:
    from vault_index.api.question import Caller
    from vault_index.retrieval.measuring import Unanswered
    from vault_index.store.sync import Progress
    from vault_index.vault import Vault


def measure_embedder(vault: Vault, caller: Caller) -> None:
    """Measure and keep the floors of the embedder of a vault's index, unless they are known.

    If it does not answer, words go on deciding, and a note says so. Raises WriteError.
    """
    embedder = vault.open_index().embedder
    if not floor.is_unmeasured(vault) or vault.embedder is None:
        return
    caller.note(f"measuring {embedder}, once: it takes about 400 embeddings")
    progress = caller.progress_of(f"measuring {embedder}")
    try:
        halves = [_ask_half(vault, half, progress) for half in range(measuring.HALVES)]
    except EmbedderError as error:
        caller.note(f"warning: {error.message}; words alone decide until `lessons index` succeeds")
        return
    floor.keep(vault.config.home, embedder, measuring.floors_of(halves))


def _ask_half(vault: Vault, half: int, progress: Progress) -> Unanswered:
    count = measuring.HALVES

    def of_both(answered: int, of: int) -> None:
        progress(half * of + answered, count * of)

    with tempfile.TemporaryDirectory(prefix="lessons-measure-") as folder:
        init(Path(folder))
        scratch = open_vault(folder)
        scratch.embedder = vault.embedder
        add.from_json_lines(scratch, list(enumerate(measuring.lessons(half), start=1)))
        reconcile.sync(scratch)
        return measuring.ask(scratch, half, of_both)
