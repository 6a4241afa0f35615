"""Write into a lesson's file that it should not come for a prompt: an entry of `silent_on`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from vault_index import check, files
from vault_index.errors import VaultError
from vault_index.journal.redact import redact
from vault_index.lesson import edit_frontmatter, parse
from vault_index.search import entries

if TYPE_CHECKING:
    from vault_index.vault import Vault

MAX_CHARS = 500  # of a prompt in a lesson's file, which others read
FIRES, SILENT = "fires_on", "silent_on"


def write(
    vault: Vault, entry: entries.Entry, prompt: str, *, undo: bool = False
) -> tuple[Path, str, bool]:
    """Add a prompt to the `silent_on` of a lesson's file, or take it out.

    Return the file, the prompt on one line, and whether the file changed; its other bytes stay. Of a
    section it is the frontmatter of the whole file.

    Raises VaultError for a prompt that the lesson should be found by, that is too long or holds a
    secret, LessonError for a file that cannot be edited, ChangedError if it was saved meanwhile.
    """
    prompt = " ".join(prompt.split())
    file = vault.root / entry["path"]
    before = entries.content(vault, entry)
    below = entry["path"].partition("/")[2]
    lesson = parse.parse_file(before, below)[0]  # the prompts are those of the file
    silent = list(lesson.silent_on)
    is_there = _has(silent, prompt)
    if undo:
        kept = [each for each in silent if not _has([each], prompt)]
    else:
        _refuse(prompt, lesson.fires_on, entry["path"])
        kept = silent if is_there else [*silent, prompt]
    if kept == silent:
        return file, prompt, False
    data = edit_frontmatter.set_keys(before, {SILENT: kept or None}, entry["path"])
    check.refuse_errors(below, data, before)
    files.change_file(file, data, expected=before, within=vault.root)
    return file, prompt, True


def _refuse(prompt: str, fires: Iterable[str], path: str) -> None:
    """Raise VaultError for a prompt that does not go into a lesson's file."""
    if not prompt:
        raise VaultError("there is no prompt", "type the prompt, or words of it")
    if len(prompt) > MAX_CHARS:
        message = f"a prompt of {len(prompt):,} characters is too long for a lesson's file"
        raise VaultError(message, f"type the words of it that matter, at most {MAX_CHARS}")
    if redact(prompt) != prompt:
        raise VaultError("the prompt holds a secret", "type the words of it that matter")
    if _has(fires, prompt):
        message = f"{path} names this prompt in {FIRES}: it should find the lesson"
        raise VaultError(message, f"remove it from {FIRES} first")


def _has(prompts: Iterable[str], prompt: str) -> bool:
    """Whether a prompt is among some, whatever its capitals and spaces."""
    wanted = prompt.casefold()
    return any(" ".join(each.split()).casefold() == wanted for each in prompts)
