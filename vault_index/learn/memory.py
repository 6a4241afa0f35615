"""An agent's own notes as proposals: Claude Code's on a project, and those of Gemini CLI.

Claude Code keeps them in `memory/*.md` of a project, Gemini CLI as items below a heading of the user's
`GEMINI.md`, as its tool `save_memory` writes them. They are read only when a person asks. Each is one
entry, through the gate of all others. Other agents do not document where they keep theirs, or in which
form.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from vault_index import git
from vault_index.check.redact import redact
from vault_index.errors import LessonError, VaultError
from vault_index.files import read_if_any
from vault_index.hotpath.agents import CLAUDE_CODE
from vault_index.learn import gate, gather
from vault_index.learn.material import MEMORY, LearnedLesson, Material
from vault_index.lesson.file import LessonFile
from vault_index.lesson.frontmatter import metadata_of
from vault_index.lesson.passages import Parts
from vault_index.text import blocks
from vault_index.transcripts import reading
from vault_index.vault import Vault

BY = "an agent's memory"
GEMINI_HEADING = "## Gemini Added Memories"
INDEX = "MEMORY.md"  # names the others, where there are any
MAX_NOTES, MAX_BYTES = 50, 64 * 1024  # of a project; of a note
_HEADING = re.compile(r"\A#{1,6} +(.+?) *\n+")
_NAMES = ("description", "title", "name")
_ITEM = re.compile(r"(?m)^[-*] +(.+(?:\n(?![-*#]).+)*)")
_TYPE = "project_rule"  # of most notes; a person sees it on the card


def material_of(vault: Vault, folder: Path) -> tuple[Material, list[LearnedLesson]]:
    """Return the notes of the project around a folder as material, and an entry of each.

    Raises VaultError without any.
    """
    notes = [*_notes(vault, folder)]
    if not notes:
        notes_folder = _places(vault, folder)[0]
        raise VaultError(
            f"no notes of an agent in {notes_folder}", "run it in the folder where your agent works"
        )
    last = max(file.stat().st_mtime for file, _ in notes)
    project = gather.project_of(vault, folder)
    day = datetime.fromtimestamp(last, UTC).isoformat(timespec="seconds")
    material = Material(MEMORY, str(folder), project, began=day)
    return material, [_entry(file, text) for file, text in notes]


def _places(vault: Vault, folder: Path) -> list[Path]:
    """Return the folders of Claude Code's notes on a folder, the repository around it and the vault."""
    tops = [folder, git.top_of(folder) or folder, vault.root]
    names = dict.fromkeys(re.sub(r"[^A-Za-z0-9]", "-", str(top.resolve())) for top in tops)
    return [reading.sessions_of(CLAUDE_CODE) / name / "memory" for name in names]


def _notes(vault: Vault, folder: Path) -> Iterator[tuple[Path, str]]:
    """Yield the files of notes and their texts, redacted, without an index beside others."""
    for notes_folder in _places(vault, folder):
        files = sorted(notes_folder.glob("*.md")) if notes_folder.is_dir() else []
        others = [file for file in files if file.name != INDEX] or files
        for file in others[:MAX_NOTES]:
            if text := _text_of(file):
                yield file, text
    gemini = Path.home() / ".gemini" / "GEMINI.md"
    section = _text_of(gemini).partition(f"{GEMINI_HEADING}\n")[2]
    for item in _ITEM.findall(re.split(r"(?m)^#", section)[0])[:MAX_NOTES]:
        yield gemini, item


def _text_of(file: Path) -> str:
    """Return the text of a file of notes, redacted; "" if it is missing or longer than a note is."""
    data = read_if_any(file, MAX_BYTES)
    return redact(data.decode("utf-8", "replace")).strip() if data else ""


def _entry(file: Path, text: str) -> LearnedLesson:
    values: dict[Any, Any] = {}
    body = text.strip()
    with suppress(LessonError):  # a head that is not YAML, or too costly to read, is text
        note = LessonFile.of_text(body, file.name)
        values, body = metadata_of(note), note.text(note.body).strip()
    heading = _HEADING.match(body)
    body = body[heading.end() :].strip() if heading else body
    first, _, rest = body.partition("\n\n")
    named = [value if isinstance(value := values.get(name), str) else "" for name in _NAMES]
    named = [*named[:1], heading[1] if heading else "", *named[1:], *blocks.split(first)]
    parts = [file.parent.parent.name, file.parent.name, file.name]
    background = (("note", "/".join(parts)),)
    entry = LearnedLesson(_TYPE, _title(named), Parts(first, rest.strip()), background=background)
    return replace(entry, confidence=2)  # an agent wrote it for itself


def _title(named: list[str]) -> str:
    """Return the first name that has the length of a title, else the first words of the longest."""
    least, most = gate.TITLE_WORDS
    fitting = next(filter(None, (gate.title_of(name, least) for name in named)), "")
    words = max(named, key=len, default="").split()
    return fitting or " ".join(words[:most])
