"""The record of what agents were given: notes in it, and what it has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from vault_index.hotpath import hook_event
from vault_index.store import delivery, injections
from vault_index.store.delivery import Delivery, Given
from vault_index.vault import Vault


def note(home: Path, root: Path, *lessons: str, prompt: str = "a prompt", **values: Any) -> None:
    """Note that an agent was given lessons at a prompt, or other values of a record."""
    usual = {"event": hook_event.PROMPT, "session": "s", "floor": 0.5, "ms": 9.0, "by": "watcher"}
    given = tuple(Given(lesson, 0.9) for lesson in lessons)
    about = {**usual, "prompt": delivery.key_of(prompt), "given": given, **values}
    delivery.record(home, root, Delivery(**about))


def near(lesson: str, score: float) -> dict[str, Any]:
    """Return the values of a silence, to which a lesson came nearest."""
    given = (Given(lesson, score, delivery.NEAR),)
    return {"silent": "nothing above the floor", "given": given}


def given_to(vault: Vault, lessons: tuple[str, ...], **values: Any) -> None:
    """Note that an agent was given lessons of a vault."""
    note(vault.config.home, vault.root, *lessons, **values)


def records(vault: Vault, *events: str) -> list[Delivery]:
    """Return the records of a vault, of all events or of some, oldest first."""
    chosen = injections.RecordFilter(events=events)
    return injections.records(vault.config.home, vault.root, chosen)[::-1]
