"""What an agent's editing tools changed, from their inputs: where there is no repository to ask."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from vault_index.learn.material import ADDED, CHANGED, FileChange

MAX_TEXT = 100_000  # characters of a text that a call replaces or writes
MAX_LINES = 2_000  # of a text that is compared line by line; a longer one is all new
_FILE = re.compile(r"^\*\*\* (Update|Add|Delete) File: (.+)$")
Clean = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Edit:
    """A change of a file by a call of a tool. `is_whole`: `new` is all of the file."""

    path: str  # as the call names it
    old: str
    new: str
    is_whole: bool = False


def of(values: Mapping[str, Any]) -> list[Edit]:
    """Return the changes that the input of an editing call asks for."""
    path = str(values.get("file_path") or values.get("notebook_path") or values.get("path") or "")
    if isinstance(values.get("input"), str):
        return list(_patched(values["input"][: 10 * MAX_TEXT]))
    if "content" in values:
        return [Edit(path, "", _text(values["content"]), is_whole=True)]
    several = values.get("edits")
    each = several if isinstance(several, list) else [values]
    return [
        Edit(path, _text(edit.get("old_string")), _text(edit.get("new_string", edit.get("new_source"))))
        for edit in each
        if isinstance(edit, Mapping)
    ]  # fmt: skip


def lines_of(edit: Edit, clean: Clean) -> list[str]:
    """Return the lines of a change with - and +, redacted, without those that stay."""
    old, new = clean(edit.old).splitlines(), clean(edit.new).splitlines()
    if len(old) + len(new) > MAX_LINES:
        return [*(f"-{line}" for line in old), *(f"+{line}" for line in new)]
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=True)
    result = []
    for kind, begin, end, begin_new, end_new in matcher.get_opcodes():
        if kind != "equal":
            result += [f"-{line}" for line in old[begin:end]]
            result += [f"+{line}" for line in new[begin_new:end_new]]
    return result


def summed(edits: Iterable[tuple[str, Edit, list[str]]]) -> tuple[FileChange, ...]:
    """Return the changes of files that edits, each with its path and lines, come to."""
    kinds: dict[str, str] = {}
    added: dict[str, int] = {}
    removed: dict[str, int] = {}
    for path, edit, lines in edits:
        kinds.setdefault(path, ADDED if edit.is_whole else CHANGED)
        if edit.is_whole:  # the whole file again: what was counted of it before is in it
            added[path], removed[path] = 0, 0
        added[path] = added.get(path, 0) + sum(line.startswith("+") for line in lines)
        removed[path] = removed.get(path, 0) + sum(line.startswith("-") for line in lines)
    return tuple(FileChange(path, kind, added[path], removed[path]) for path, kind in kinds.items())


def _patched(patch: str) -> Iterator[Edit]:
    """Yield the changes of a patch in the form of `apply_patch`."""
    path, old, new, is_whole = "", list[str](), list[str](), False
    for line in [*patch.splitlines(), "*** Update File: "]:
        if match := _FILE.match(line):
            if path:
                yield Edit(path, "\n".join(old), "\n".join(new), is_whole)
            path, old, new, is_whole = match[2].strip(), [], [], match[1] == "Add"
        elif line[:1] in ("-", " ") and not is_whole:
            old.append(line[1:])
        if line[:1] in ("+", " "):
            new.append(line[1:])


def _text(value: Any) -> str:
    return value[:MAX_TEXT] if isinstance(value, str) else ""
