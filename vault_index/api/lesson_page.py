"""What the page of a lesson asks: the lesson with its file, what is around it, its past; and saving."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from datetime import date
from typing import TYPE_CHECKING, Any

from vault_index import files
from vault_index.api.lessons import as_json
from vault_index.check import ERROR
from vault_index.edit import save
from vault_index.errors import VaultError
from vault_index.lesson.file import LessonFile
from vault_index.lesson.frontmatter import metadata_of
from vault_index.recall import select
from vault_index.search import contents, entries
from vault_index.share import history

if TYPE_CHECKING:
    from vault_index.api import Caller
    from vault_index.vault import Vault

MOST_KEYS = 50  # of a file's frontmatter
MOST_CHARS = 1000  # of one of its values
MOST_PROMPTS = 30  # each is a search
MOST_EDITS = 50  # commits, of which each is a call of git


def lesson(vault: Vault, name: str) -> dict[str, Any]:
    """Return a lesson with its text: `entry`, None without it, and `near`, the nearest as [id, title].

    `metadata` are the keys of its file's frontmatter as [key, values], `of_file` the lessons of the
    file in their order.
    """
    entry, near = entries.entry_or_near(vault, name)
    if entry is None:
        return {"entry": None, "near": [list(other) for other in near]}
    return {
        "entry": as_json(entry),
        "near": [],
        "metadata": _metadata(vault, entry["path"]),
        "of_file": contents.of_file(vault, entry["path"]),
    }


def nearest(vault: Vault, id: str, most: int = 5) -> dict[str, Any]:
    """List the lessons that are most like one: `lessons`, see `around.nearest`."""
    return {"lessons": contents.nearest(vault, _entry(vault, id), most)}


def prompts(vault: Vault, id: str) -> dict[str, Any]:
    """List a lesson's own prompts: `prompts`, each with `prompt`, `is_silent` and whether it `passes`.

    One that `is_silent` must not find the lesson. `left_out` is how many there are beyond these.
    """
    entry = _entry(vault, id)
    own = [(prompt, False) for prompt in entry["fires_on"] or ()]
    own += [(prompt, True) for prompt in entry["silent_on"] or ()]
    tried = [
        {
            "prompt": prompt,
            "is_silent": is_silent,
            "passes": _comes(vault, prompt, entry["id"]) is not is_silent,
        }
        for prompt, is_silent in own[:MOST_PROMPTS]
    ]
    return {"prompts": tried, "left_out": len(own) - len(tried)}


def _comes(vault: Vault, prompt: str, id: str) -> bool:
    """Whether an agent would get a lesson for a prompt."""
    return any(hit.lesson_id == id for hit in select.for_prompt(vault, prompt).hits)


def edits(vault: Vault, caller: Caller, id: str) -> dict[str, Any]:
    """List the last commits that changed a lesson: `edits`, newest first, and if there are `more`."""
    path = _path(caller, id)
    every = history.log(vault, id, path, MOST_EDITS + 1)
    return {
        "path": path,
        "edits": [asdict(edit) for edit in every[:MOST_EDITS]],
        "more": len(every) > MOST_EDITS,
    }


def patch(vault: Vault, caller: Caller, id: str, commit: str) -> dict[str, Any]:
    """Return the `patch` of a lesson's file in one of the commits that `edits` lists."""
    return {"patch": history.patch(vault, _path(caller, id), commit, MOST_EDITS)}


def read_file(vault: Vault, caller: Caller, path: str) -> dict[str, Any]:
    """Return the `text` of a lesson file as it is, with line feeds only."""
    del caller
    return {"text": save.read(vault, path)}


def check_text(vault: Vault, caller: Caller, path: str, text: str) -> dict[str, Any]:
    """Check a text as `lessons check` would in a lesson file: `findings`, and how many are `errors`."""
    del vault
    known = caller.ask({"ask": "categories", "with": {}})["own"]
    findings = save.findings(path, text, known)
    return {
        "findings": [finding.as_json() for finding in findings],
        "errors": sum(finding.severity == ERROR for finding in findings),
    }


def save_file(vault: Vault, caller: Caller, path: str, text: str, seen: str) -> dict[str, Any]:
    """Write a lesson file that still says what was `seen`: its `path`, absolute. See `save.write`."""
    del caller
    return {"path": str(save.write(vault, path, text, seen))}


def file_changes(vault: Vault, caller: Caller, path: str, seen: str) -> dict[str, Any]:
    """Return the `text` of a lesson file, and the `patch` lines to it from what was `seen`."""
    del caller
    text, lines = save.changes(vault, path, seen)
    return {"text": text, "patch": lines}


def _entry(vault: Vault, id: str) -> entries.Entry:
    entry, _ = entries.entry_or_near(vault, id)
    if entry is None:
        raise VaultError(f"no lesson {id}", "see `lessons list`")
    return entry


def _path(caller: Caller, id: str) -> str:
    entry: Mapping[str, Any] | None = caller.ask({"ask": "lesson", "with": {"name": id}})["entry"]
    if entry is None:
        raise VaultError(f"no lesson {id}", "see `lessons list`")
    return str(entry["path"])


def _metadata(vault: Vault, path: str) -> list[tuple[str, list[str]]]:
    """Return the frontmatter of a file as it is on the disk; nothing of a file that does not parse."""
    try:
        files.refuse_links(vault.root / path, vault.root)
        metadata = metadata_of(LessonFile.of(files.read_file(vault.root / path), path))
    except VaultError:
        return []
    return [(str(key)[:100], _words(value)) for key, value in list(metadata.items())[:MOST_KEYS]]


def _words(value: Any) -> list[str]:
    if value is None:
        return []
    members = value if isinstance(value, list) else [value]
    return [_word(member)[:MOST_CHARS] for member in members[:MOST_KEYS]]


def _word(value: Any) -> str:
    return value.isoformat() if isinstance(value, date) else str(value)
