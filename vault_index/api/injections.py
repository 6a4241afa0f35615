"""What agents were given, and that something should not have come."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from vault_index.edit import silence
from vault_index.errors import VaultError
from vault_index.recall import injected
from vault_index.store import injections

if TYPE_CHECKING:
    from vault_index.api import Caller
    from vault_index.vault import Vault


def list_(
    vault: Vault,
    session: str = "",
    lesson: str = "",
    only: str = "",
    since: str = "",
    limit: int = 50,
    offset: int = 0,
) -> dict[str, Any]:
    """Return what agents got at which prompt, the latest first: `records`, `totals`, `times`, `more`.

    `session` is the beginning of an id and `lesson` a part of one; `only` is "answered" or "silent",
    `since` ISO 8601. Of a record `text` is the prompt where the journal has it, `lessons` have
    `score`, `outcome` and whether they are marked false, and of a silence `near` is the lesson that
    came nearest to the `floor`. See `injected.page`.
    """
    if only not in injected.ONLY:
        raise VaultError(f"no kind of record {only!r:.40}", "choose answered or silent")
    chosen = injected.Chosen(session, lesson, only, since)
    return injected.page(vault, chosen, max(1, limit), max(0, offset))


def silence_lesson(
    vault: Vault,
    caller: Caller,
    name: str,
    prompt: str = "",
    session: str = "",
    key: str = "",
    undo: bool = False,
) -> dict[str, Any]:
    """Write into a lesson that it should not come for a prompt; with `undo` take that out again.

    The prompt is `prompt` or, of an injection, that of the `session` with the hash `key`, as far as
    the journal has it. The answer: `id`, `path`, the `prompt` as written, `changed`, and whether the
    prompt `still` finds the lesson above the floor.
    """
    entry: Any = caller.ask({"ask": "show", "with": {"name": name}})["entry"]
    if undo and not prompt:
        written = injected.written_for(vault, entry["id"], session, key)
        prompt = next(
            (each for each in entry["silent_on"] if injections.key_of(each) == written), ""
        )
    prompt = prompt if prompt.strip() else injected.prompt_of(vault, session, key)
    if not prompt.strip():
        raise VaultError("the text of this prompt was not kept", "type the prompt, or words of it")
    path, written_as, changed = silence.write(vault, entry, prompt, undo=undo)
    if key:
        hash_of_it = "" if undo else injections.key_of(written_as)
        injections.mark(vault.index_dir, entry["id"], session, key, hash_of_it)
    return {
        "id": entry["id"],
        "path": str(path),
        "prompt": written_as,
        "changed": changed,
        "still": not undo and _still_finds(vault, caller, path, written_as),
    }


def _still_finds(vault: Vault, caller: Caller, path: Path, prompt: str) -> bool:
    """Whether a prompt of a lesson's own `silent_on` finds it, by the floor after the change."""
    asked = {"paths": [str(path.relative_to(vault.lessons_dir))]}
    findings = caller.ask({"ask": "compare", "with": asked}, settled=True)["findings"]
    about = f"{prompt!r:.80} "  # as the finding begins
    return any(
        finding["rule"] == "silent-on" and finding["message"].startswith(about)
        for finding in findings
    )
