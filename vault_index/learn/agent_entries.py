"""The form of an entry, as an agent or a person writes it.

    title, type, what_to_do, quotes                needed
    problem, cause, when, when_not                 texts
    pro, con                                       what speaks for it and against it, a few words each
    related                                        lessons by id or title: "supersedes: devops/heap"
    failing_lines, prompts, tags, files            lists of texts
    category, confidence

A field of another name is left out, and whoever proposes is told its name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vault_index.text.words import nearest

NEEDED = ("title", "type", "what_to_do")
TEXTS = ("problem", "cause", "when", "when_not", "category")
LISTS = ("failing_lines", "prompts", "tags", "files", "pro", "con", "related")
FIELDS = (*NEEDED, *TEXTS, "quotes", *LISTS, "confidence")
MAX_NAME_CHARS = 40


@dataclass(frozen=True, slots=True)
class UnknownField:
    """A field of an entry that no entry has; `meant` is the nearest one that there is, or ""."""

    entry: str  # its title
    name: str
    meant: str = ""


def fault(entry: object) -> str:
    """Return the fault in the form of an entry; "" for none."""
    if not isinstance(entry, dict):
        return "it is no object"
    if missing := [name for name in (*NEEDED, "quotes") if name not in entry]:
        return f"it has no {' and no '.join(missing)}"
    for name in (*NEEDED, *TEXTS):
        if not isinstance(entry.get(name, ""), str):
            return f"{name} is no text"
    for name in ("quotes", *LISTS):
        if not is_texts(entry.get(name, [])):
            return f"{name} is no list of texts"
    return "" if type(entry.get("confidence", 1)) is int else "confidence is no whole number"


def is_texts(values: object) -> bool:
    """Whether a value is a list of texts."""
    return isinstance(values, list) and all(isinstance(text, str) for text in values)


def unknown(entries: Sequence[Mapping[str, Any]]) -> Iterator[UnknownField]:
    """Yield the fields of entries that are left out."""
    for values in entries:
        for name in values:
            if name not in FIELDS:
                short = name[:MAX_NAME_CHARS]
                yield UnknownField(
                    str(values.get("title", "")), short, nearest(short.lower(), FIELDS)
                )
