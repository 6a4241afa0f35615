"""Loading what a watcher answers with, before it answers: the first question is no slower then.

Python loads modules when they are needed, LanceDB opens a table when it is asked, and reads the
words of the text index when they are searched for. So everything is asked once as a hook will ask.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from vault_index import search
from vault_index.errors import VaultError
from vault_index.vault import Vault

Question = Callable[[Vault, Mapping[str, Any]], Mapping[str, Any]]

_QUERY = "load the model and open the tables"


@contextlib.contextmanager
def embedding(vault: Vault) -> Iterator[None]:
    """Load the built-in embedder in a thread meanwhile, on a processor of its own."""
    if vault.config.embedder != "minilm":  # a server, which may take its time
        yield
        return
    thread = threading.Thread(target=search.embed_ahead, args=(vault, _QUERY), daemon=True)
    thread.start()
    try:
        yield
    finally:
        thread.join()


def ask_itself(vault: Vault, answer: Question) -> None:
    """Ask what a hook asks, with a prompt that finds a lesson, and record nothing of it."""
    with contextlib.suppress(VaultError):
        prompt = search.some_text(vault) or _QUERY
        event = {"hook_event_name": "UserPromptSubmit", "prompt": prompt}
        event |= {"session_id": "", "cwd": "/"}
        answer(vault, {"ask": "hook", "with": {"event": event, "ms": 0.0, "until": 0.0}})
