"""The part of a lesson that a prompt asks for: its sentence, its sections in the order of use."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set

from vault_index.text import blocks
from vault_index.text.words import searched_words, stem_of

LOOKED_AT = 4_000  # characters of a passage in which the sentence is looked for

_TABLE_HEAD = re.compile(r"^[^\n]*\|[^\n]*\n[ |:-]*-[ |:-]*$", re.MULTILINE)
_HEADING = re.compile(r"(#{1,6})[ \t]+(.+?)[ \t#]*$")
# Headings of runbooks, post-mortems and decision records: what to do, and what can wait.
_DOES = re.compile(
    r"\b(?:mitigations?|fix(?:es)?|resolutions?|solutions?|remed(?:y|ies|iation)|decisions?|workarounds?"
    r"|what to do|actions?|steps|procedure|recovery|how to (?:fix|solve)|runbook)\b",
    re.IGNORECASE,
)


def best_sentence(text: str, query: str, title: str = "") -> str:
    """Return the sentence of a passage with the most words of a query, the first of equals.

    A sentence that only repeats the title does not count. Without prose it is the first line of code.
    """
    stems = _stems(query)
    text = text[:LOOKED_AT]
    sentences = [" ".join(each.split()) for each in blocks.split_markdown(text)]
    sentences = [each for each in sentences if each.rstrip(".") != title.rstrip(".")]
    code = (each for each in text.splitlines() if each.strip(" `~#"))
    first = "" if sentences else next(code, "")
    return max(sentences, key=lambda each: len(stems & _stems(each)), default=first)


def matching_sentence(text: str, query: str, title: str) -> str:
    """Return the sentence or row of a passage with the most words of a query, "" if none has one.

    Words of the title do not count: each row of a table on owners may have "owner", and its head has.
    """
    stems = _stems(query) - _stems(title)
    best = best_sentence(_TABLE_HEAD.sub("", text), " ".join(stems), title) if stems else ""
    return best if stems & _stems(best) else ""


def in_order_of_use(text: str) -> str:
    """Return a markdown text with the sections first whose headings say what to do, if it has any."""
    sections = _sections(text)
    ordered = sorted(sections, key=lambda section: not _DOES.search(_heading(section)))
    return text if ordered == sections else "\n\n".join(ordered)


def of_long(text: str, pieces: Sequence[str], nearest: str, rare: Mapping[str, float]) -> str:
    """Return the part of a long text to show, of which `nearest` is the piece with the nearest vector.

    It is the piece with the most weight of `rare` words; of equal ones the nearest, or the text itself
    where the whole is nearer than its pieces. A section that says what to do comes before it.
    """

    def weight(part: str) -> float:
        return sum(rare[word] for word in rare if _has(part, word))

    here = nearest or pieces[0]
    best = max(pieces, key=lambda piece: (weight(piece), piece == here))
    ordered = in_order_of_use(text)
    if ordered == text:
        return best if nearest or best != here else text
    first = blocks.cut(ordered, max(map(len, pieces)))
    if weight(first) < weight(best):
        return f"{first}\n\n[...]\n\n{best}"
    return first if nearest else ordered


def _has(text: str, word: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(word)}", text, re.IGNORECASE) is not None


def _heading(section: str) -> str:
    found = _HEADING.match(section.split("\n", 1)[0])
    return found[2] if found else ""


def _sections(text: str) -> list[str]:
    """Return the parts of a text that begin with a heading of the same depth; the first may have none."""
    lines = text.split("\n")
    code = blocks.code_lines(lines)
    found = [
        None if is_code else _HEADING.match(line) for line, is_code in zip(lines, code, strict=True)
    ]
    depths = sorted(len(heading[1]) for heading in found if heading)
    depth = next((each for each in depths if depths.count(each) > 1), 0)
    sections: list[list[str]] = [[]]
    for line, heading in zip(lines, found, strict=True):
        if heading and len(heading[1]) <= depth and sections[-1]:
            sections.append([])
        sections[-1].append(line)
    return [section for each in sections if (section := "\n".join(each).strip())]


def _stems(text: str) -> Set[str]:
    return {stem_of(word) for word in searched_words(text)}
