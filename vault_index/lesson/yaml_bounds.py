"""Limits on frontmatter, checked before YAML is loaded.

A few hundred bytes of YAML can expand to gigabytes: aliases of aliases share memory until somebody
prints them, deep nesting ends the process, a number of base 60 takes quadratic time. Such a block is
refused. `brief` prints any value that passed.
"""

from __future__ import annotations

import re
from typing import Any

MAX_CHARS = 64 * 1024  # of a block; the longest that people write has a few thousand
MAX_EXPANDED = 4 * MAX_CHARS  # with each alias replaced by its value
MAX_NESTING = 100
_BASE_60 = re.compile(r"(?::[0-5]?[0-9]){20}")  # `1:30:00` is a number; read in quadratic time


def refuse_expensive(block: str) -> None:
    """Raise ValueError for a block of YAML that would take much time or memory to load or print.

    The event parser keeps its stack on the heap, so it can count what the loader cannot survive:
    at a depth of 50,000 libyaml's loader kills the process.
    """
    if len(block) > MAX_CHARS:
        raise ValueError(f"longer than {MAX_CHARS // 1024} KB")
    if _BASE_60.search(block):
        raise ValueError("a number of base 60 with more than 20 digits")
    if sum(map(block.count, "[{-?")) > MAX_NESTING or ("*" in block and "&" in block):
        _walk(block)


def _walk(block: str) -> None:
    """Follow the events of a block; raise ValueError if it is too deep or expands too much."""
    import yaml

    sizes: dict[str, int] = {}  # of each anchor, expanded, in characters
    opened: list[tuple[str | None, int]] = []  # the collections around, and where each began
    total = 0
    for event in yaml.parse(block, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
        if isinstance(event, yaml.CollectionStartEvent):
            opened.append((event.anchor, total))
            total += 2
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, start = opened.pop()
            if anchor:
                sizes[anchor] = total - start
        elif isinstance(event, yaml.AliasEvent):
            if any(anchor == event.anchor for anchor, _ in opened):
                raise ValueError(f"*{event.anchor:.40} contains itself")
            total += sizes.get(str(event.anchor), 0) + 1
        elif isinstance(event, yaml.ScalarEvent):
            total += len(event.value) + 1
            if event.anchor:
                sizes[event.anchor] = len(event.value) + 1
        if len(opened) > MAX_NESTING:
            raise ValueError(f"nested deeper than {MAX_NESTING}")
        if total > MAX_EXPANDED:
            raise ValueError("its aliases stand for too much text")


def brief(value: Any, most: int = 60) -> str:
    """Return the beginning of a value in Python's spelling, whatever the value."""
    if isinstance(value, str):
        value = value[:most]
    try:
        shown = repr(value)
    except ValueError:  # a whole number of more than 4,300 digits
        shown = "a very long number"
    return shown[:most]
