"""Prose cut into what a list can show: lines, sentences, paragraphs, the last words of a text."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

TITLE_CHARS = 100
_CODE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_MARKUP = re.compile(r"^\s*(?:#{1,6}\s+|>\s?|[-*+]\s+(?:\[[ xX]\]\s*)?|\d+[.)]\s+)")
_HEADING = re.compile(r"\s*#{1,6}\s|\s*\*\*[^*]+\*\*:?\s*$")
_ITEM = re.compile(r"\s*(?:[-*+]|\d+[.)])\s")
PROSE, ITEM, HEADING = "prose", "item", "heading"
_EMPHASIS = re.compile(r"(\*\*|__)(?=\S)(.+?)(?<=\S)\1")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)\s]*\)")
_SENTENCE_END = re.compile(  # also of Chinese and Japanese, whose full stops no space follows
    r"[.!?][\"')\]*`]*(?:\s+|$)|[\u3002\uff01\uff1f]"
)
_ABBREVIATION = re.compile(
    r"(?:\b(?:e\.g|i\.e|etc|vs|cf|approx|no|fig)|(?:^|\s)[A-Z])\.$", re.IGNORECASE
)
_RULE = re.compile(r"^[\s|:=_*─━-]*$")


def one_line(text: str, limit: int = TITLE_CHARS) -> str:
    """Return a text as a line of at most `limit` characters, cut at a word."""
    line = " ".join(text.split())
    if len(line) <= limit:
        return line
    cut = line[: limit - 3]
    at = cut.rfind(" ")
    return (cut[:at] if at > limit // 2 else cut).rstrip(" ,;:-(") + "..."


def plain_lines(text: str) -> list[tuple[str, str]]:
    """Return the lines of prose of a markdown text without its marks, and each one's kind.

    The kind is PROSE, ITEM of a list, or HEADING. Code, tables and rules are left out.
    """
    lines = []
    for line in _CODE.sub("\n", text).splitlines() if "```" in text else text.splitlines():
        begin = line.lstrip()[:1]
        kind, plain = PROSE, line
        if not begin.isalpha():
            if begin in ("", "|") or _RULE.match(line):
                continue
            kind = HEADING if _HEADING.match(line) else ITEM if _ITEM.match(line) else PROSE
            plain = _MARKUP.sub("", line)
        if "**" in plain or "__" in plain or "](" in plain:
            plain = _EMPHASIS.sub(r"\2", _LINK.sub(r"\1", plain))
        if plain := plain.strip():
            lines.append((plain, kind))
    return lines


@lru_cache(maxsize=64)
def sentences(text: str) -> tuple[str, ...]:
    """Return the sentences of a markdown text: those of its prose, then those of its lists."""
    lines = plain_lines(text)
    return tuple(
        sentence
        for wanted in (PROSE, ITEM)
        for line, kind in lines
        if kind == wanted
        for sentence in split_sentences(line)
    )


def split_sentences(line: str) -> list[str]:
    """Return the sentences of a line of prose."""
    result, begin = [], 0
    for match in _SENTENCE_END.finditer(line):
        sentence = line[begin : match.end()].strip()
        if sentence and not _ABBREVIATION.search(sentence):
            result.append(sentence)
            begin = match.end()
    rest = line[begin:].strip()
    return [*result, rest] if rest else result


def tail(text: str, limit: int) -> str:
    """Return the end of a text, at most `limit` characters, from the beginning of a line or word."""
    text = text.strip()
    if len(text) <= limit:
        return text
    cut = text[-limit:]
    for mark in ("\n", ". ", " "):
        at = cut.find(mark)
        if 0 <= at < limit // 2:
            return cut[at + len(mark) :].strip()
    return cut.strip()


def head(text: str, limit: int) -> str:
    """Return the beginning of a text, at most `limit` characters, to the end of a line or word."""
    text = text.strip()
    if len(text) <= limit:
        return text
    cut = text[:limit]
    for mark in ("\n", " "):
        at = cut.rfind(mark)
        if at > limit // 2:
            return cut[:at].strip()
    return cut.strip()


def verbatim(sentence: str, texts: Iterable[str]) -> str:
    """Return a sentence as it stands in a text, whose marks it may lack; "" if none has it."""
    spoken = re.compile(r"[\W_]{1,8}?".join(map(re.escape, re.findall(r"[^\W_]+", sentence))))
    for text in texts:
        if sentence in text:
            return sentence
        if match := spoken.search(text):
            return match[0]
    return ""
