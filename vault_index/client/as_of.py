"""Answering from the vault as it was at a commit, tag or date."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from vault_index import api
from vault_index.client.here import Note, bring_up_to_date
from vault_index.share import history

if TYPE_CHECKING:
    from vault_index.vault import Vault


def answer(
    vault: Vault,
    revision: str,
    question: Mapping[str, Any],
    on_note: Note,
    on_progress: api.Progress,
) -> dict[str, Any]:
    """Answer `search` or `show` as of a commit, tag or date; `commit` is the one that was meant.

    The index of that commit is built once and kept for a while. Raises VaultError.
    """
    past, commit = history.at(vault, revision)
    read = api.from_files(past, question)
    if read is None:
        bring_up_to_date(past, on_note, on_progress)
    answered = read[0] if read else api.answer(past, question)
    hits = [*answered.get("hits", []), *(hit for hit, _ in answered.get("dropped", []))]
    history.signed(vault, commit, [answered["entry"]] if "entry" in answered else hits)
    return {**answered, "commit": commit}
