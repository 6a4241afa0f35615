"""Did it help: outcomes of injections, lessons that need another look, and their confirmation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from vault_index.edit import update
from vault_index.errors import VaultError
from vault_index.recall import outcome
from vault_index.recall.outcome import stale

if TYPE_CHECKING:
    from vault_index.api import Caller
    from vault_index.vault import Vault

_JUDGING_SECONDS = 600.0  # of somebody who asks for a report and sees how far it is


def of_lesson(vault: Vault, id: str) -> dict[str, Any]:
    """Return the `outcome` of a lesson's injections: `injected`, `taken`, `ignored`, `contradicted`,
    `unknown`.
    """
    return {"outcome": asdict(outcome.tally(vault).get(id, outcome.Tally()))}


def stale_lessons(vault: Vault, caller: Caller) -> dict[str, Any]:
    """List why lessons should be looked at again: `reasons`, each with what to `do`, and `lessons`.

    Each has `lesson`, `title`, `path`, `kind` (cost | contradicted | file | name | version | changed)
    and `why`. `waiting` is how many sessions are not judged yet.
    """
    caller.index(vault)
    outcomes = outcome.update(vault, _JUDGING_SECONDS, caller.progress_of("judging sessions"))
    reasons = stale.reasons(vault, outcomes.since, caller.progress_of("comparing with the past"))
    return {
        "reasons": [asdict(reason) for reason in reasons],
        "lessons": len({reason.lesson for reason in reasons}),
        "waiting": outcomes.waiting,
    }


def confirm_lessons(vault: Vault, caller: Caller, names: Sequence[str]) -> dict[str, Any]:
    """Write into lessons that they hold as of today: `confirmed`: `id`, `path`, `changed`, `released`.

    A lesson that `check` holds back is `released` to this user's agents, also if its file says already
    that it was confirmed: the next prompt finds it. All names are looked up before a file is written;
    what then cannot be written is in `failed`.
    """
    today = datetime.now(UTC).date()
    asked = [caller.ask({"ask": "show", "with": {"name": name}}, prompts=False) for name in names]
    done: list[Mapping[str, Any]] = []
    failed: list[str] = []
    for entry in {answer["entry"]["id"]: answer["entry"] for answer in asked}.values():
        try:
            made = update.confirm(vault, entry, today)
        except VaultError as error:
            failed.append(error.message)
            continue
        done.append(
            {
                "id": entry["id"],
                "path": str(made.file),
                "changed": made.is_changed,
                "released": made.is_released,
            }
        )
    if any(each["released"] for each in done):
        caller.index(vault, or_stale=True)  # no file need have changed
    return {"confirmed": done, "date": today.isoformat(), "failed": failed}
