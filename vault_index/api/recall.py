"""What an agent gets: for a prompt, and for an event of its hooks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from vault_index.api import find
from vault_index.recall import respond, select

if TYPE_CHECKING:
    from vault_index.vault import Vault


def recall(vault: Vault, query: str, project: str = "") -> dict[str, Any]:
    """Return what an agent would get for a prompt: `text`, `hits`, `skills`, `floor`, `silent`, `near`.

    `text` is "" for silence; `silent` then says why, and `near` is the nearest lesson, if any.
    `project` is the folder the agent is in.
    """
    injection = select.for_prompt(vault, query, project=Path(project) if project else None)
    return {
        "text": injection.text,
        "hits": [hit.as_json() for hit in injection.hits],
        "skills": [hit.as_json() for hit in injection.skills],
        "floor": injection.floor,
        "silent": injection.silent,
        "near": injection.near.as_json() if injection.near and not injection.text else None,
    }


def typed(vault: Vault, **options: Any) -> dict[str, Any]:
    """Return the answers to `search`, whose options these are, and to `recall` for the same text.

    For each key that somebody types: the second takes the vector and the matches of the first.
    """
    found = find.search(vault, **options)
    return {"search": found, "recall": recall(vault, str(options["text"]))}


def hook(
    vault: Vault, event: dict[str, Any], ms: float, until: float, from_files: bool = False
) -> dict[str, Any]:
    """Answer a hook event: `answer` is what the agent's hook prints, None for silence.

    `ms` is how long the hook has taken so far, `until` the monotonic time at which it gives up;
    `from_files` asks no index.
    """
    answer = respond.respond(vault, event, by="watcher", ms=ms, until=until, from_files=from_files)
    return {"answer": answer}
