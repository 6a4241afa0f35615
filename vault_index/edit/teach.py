"""Teach a lesson a prompt or a line of a failure: to fire at it, or to stay out.

A prompt is an entry of `fires_on` or `silent_on`, a line of `fires_on_error` or `silent_on_error`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from vault_index.check.redact import redact
from vault_index.edit import update
from vault_index.errors import VaultError
from vault_index.hotpath import chatter
from vault_index.index.rows import MAX_TAUGHT, MAX_TAUGHT_CHARS
from vault_index.lesson import parse
from vault_index.retrieval import entries, failures
from vault_index.retrieval.hit import WholeEntry
from vault_index.text import failure
from vault_index.vault import Vault

FIRES, SILENT = "fires_on", "silent_on"
FIRES_ON_ERROR, SILENT_ON_ERROR = failures.FIRES, failures.SILENT
PROMPTS, ERRORS = (FIRES, SILENT), (FIRES_ON_ERROR, SILENT_ON_ERROR)
_OTHER = {FIRES: SILENT, FIRES_ON_ERROR: SILENT_ON_ERROR}
_OTHER |= {other: kind for kind, other in _OTHER.items()}


@dataclass(frozen=True, slots=True)
class WrittenPrompt:
    """A taught prompt as it is written: in `file`, as `prompt`, on one line."""

    file: Path
    prompt: str
    changed: bool  # whether the file changed
    moved: bool  # whether the prompt left the other list


def write(vault: Vault, entry: WholeEntry, prompt: str, kind: str) -> WrittenPrompt:
    """Add a prompt, or a line of a failure, to a list of a lesson's file; take it out of the other.

    The other bytes of the file stay. A section has lists of its own, below its heading.

    Raises VaultError for a prompt that hooks do not search for, that is too long or holds a secret,
    LessonError for a file that cannot be edited, ChangedError if it was saved meanwhile.
    """
    prompt, before = " ".join(prompt.split()), entries.content(vault, entry)
    _refuse(prompt, _lists(before, entry)[kind], entry.path, kind)
    return _move(vault, entry, prompt, before, _OTHER[kind], kind)


def undo(
    vault: Vault, entry: WholeEntry, prompt: str, kind: str, *, moved: bool = False
) -> WrittenPrompt:
    """Take a prompt out of a list of a lesson's file; one that was `moved` goes back to the other.

    Raises LessonError and ChangedError as `write` does.
    """
    prompt, before = " ".join(prompt.split()), entries.content(vault, entry)
    return _move(vault, entry, prompt, before, kind, _OTHER[kind] if moved else "")


def _lists(content: bytes, entry: WholeEntry) -> dict[str, list[str]]:
    lessons = parse.parse_file(content, entry.path.partition("/")[2])
    slug = entry.id.partition("#")[2]
    lesson = next((each for each in lessons if each.id.partition("#")[2] == slug), lessons[0])
    return {kind: list(getattr(lesson, kind)) for kind in (*PROMPTS, *ERRORS)}


def _move(
    vault: Vault, entry: WholeEntry, prompt: str, before: bytes, out: str, into: str
) -> WrittenPrompt:
    """Take a prompt out of a list of a file as `before`, and put it into another, if one is named."""
    lists = _lists(before, entry)
    after: dict[str, list[str]] = {}
    if _has(lists[out], prompt):
        after[out] = [each for each in lists[out] if not _has([each], prompt)]
    if into and not _has(lists[into], prompt):
        after[into] = [*lists[into], prompt]
    keys = {kind: prompts or None for kind, prompts in after.items()}
    data = update.with_keys(before, entry.id.partition("#")[2], keys, entry.path)
    file = update.put(vault, entry.path, data, before)
    return WrittenPrompt(file, prompt, bool(after), moved=bool(into) and out in after)


def _refuse(prompt: str, prompts: Iterable[str], path: str, kind: str) -> None:
    """Raise VaultError for a prompt that does not go into a lesson's file."""
    what = "line" if kind in ERRORS else "prompt"
    if not prompt:
        raise VaultError(f"there is no {what}", f"type the {what}, or words of it")
    if len(prompt) > MAX_TAUGHT_CHARS:
        message = f"a {what} of {len(prompt):,} characters is too long for a lesson's file"
        raise VaultError(message, f"type the words of it that matter, at most {MAX_TAUGHT_CHARS}")
    if redact(prompt) != prompt:
        raise VaultError(f"the {what} holds a secret", "type the words of it that matter")
    if kind in ERRORS and not failure.is_specific(prompt):
        raise VaultError("many failures say this", "name a line of this failure alone")
    why = "" if kind in ERRORS else chatter.why_skipped(prompt)
    if why:
        raise VaultError(f"hooks never search for this prompt: {why}", "write a longer prompt")
    if len(list(prompts)) >= MAX_TAUGHT and not _has(prompts, prompt):
        message = f"{path} has {MAX_TAUGHT} {what}s in {kind} already"
        raise VaultError(message, f"remove some of its {kind} first")


def _has(prompts: Iterable[str], prompt: str) -> bool:
    wanted = prompt.casefold()
    return any(" ".join(each.split()).casefold() == wanted for each in prompts)
