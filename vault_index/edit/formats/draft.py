"""Drafts of lesson files, which readers make of foreign files, and how their names are found."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from vault_index.lesson.markdown import slugify
from vault_index.text import blocks

TITLE_LENGTH = 80  # characters
NAME_BYTES = 200  # a file name may have 255; room for "-2.md", and for what git puts beside it

_SENTENCE_END = re.compile(r"(?<!\be\.g)(?<!\bi\.e)(?<!\bvs)[.!?](?=\s+[^\sa-z]|\s*$)|[。！？]")  # noqa: RUF001
_LEAD = re.compile(r"^(?:[\s>#*+-]+|[0-9]+[.)])\s")  # marks of quotes, headings and bullets
_WORD = re.compile(r"\w")
_EXTENSION = re.compile(r"\.(?:md|mdc|markdown|mdown|txt)$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Draft:
    """A lesson file that an import would write.

    `name` is the file name without folder and `.md`, a slug. `categories` are normalised; () when
    the source names none. `data` is the whole file: frontmatter and markdown, with line feeds, also
    at its end. `line` is where it begins in the source, from 1.
    """

    name: str
    categories: tuple[str, ...]
    data: bytes
    line: int


def numbered(drafts: Iterable[Draft]) -> list[Draft]:
    """Return drafts in which no two have the same file name: `heap`, `heap-2`, `heap-3`."""
    taken: set[tuple[str, str]] = set()
    last: dict[tuple[str, str], int] = {}  # keeps ten thousand of the same name linear
    free: list[Draft] = []
    for draft in drafts:
        folder = draft.categories[0] if draft.categories else ""
        name = draft.name
        while (folder, name) in taken:
            last[folder, draft.name] = number = last.get((folder, draft.name), 1) + 1
            name = f"{draft.name}-{number}"
        taken.add((folder, name))
        free.append(draft if name == draft.name else replace(draft, name=name))
    return free


def name_of(*titles: str) -> str:
    """Make a file name of the first title that has letters or digits; else it is `lesson`."""
    slugs = (slugify(title) for title in titles)
    slug = next(filter(None, slugs), "lesson")
    return slug.encode()[:NAME_BYTES].decode(errors="ignore").rstrip("-_")


def stem_of(path: str) -> str:
    """Return the name of a file without its folder and extension; "" for standard input."""
    return "" if path == "-" else _EXTENSION.sub("", path.rpartition("/")[2]).strip()


def first_sentence(text: str) -> str:
    """Make a title of markdown: its first sentence on one line, cut after a word at 80 characters.

    "" for text without a letter or digit.
    """
    lines = text.split("\n")
    fences = [block for block in blocks.of_text(text) if block.kind == blocks.FENCE]
    marks = {fence.start for fence in fences} | {f.end - 1 for f in fences if f.is_closed}
    first = next(
        (line for n, line in enumerate(lines) if n not in marks and _WORD.search(line)), ""
    )
    sentence = " ".join(_LEAD.sub("", f" {first[:1000]}").replace("**", "").split())
    end = _SENTENCE_END.search(sentence)
    if end:
        mark = end.group() if end.group() in "!?！？" else ""  # noqa: RUF001
        sentence = sentence[: end.start()] + mark
    return cut(sentence.rstrip(" :"))


def cut(title: str) -> str:
    """Cut a title after a word, at 80 characters or before."""
    if len(title) <= TITLE_LENGTH:
        return title
    return (title[: TITLE_LENGTH + 1].rpartition(" ")[0] or title[:TITLE_LENGTH]).rstrip(" ,;:-")
