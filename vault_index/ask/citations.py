"""The citations of an answer, checked at its end: a number that was not returned is struck.

    "heap [1, 9]. See `a[7]`"  ->  "heap [1]. See `a[7]`"      where 1 to 3 were returned

A citation is a number in brackets, or several: [1], [1, 2], [1-3], [^1], 【1】, 【1†lines】. Each is
written as `[1]`, alone. The address of `[1](address)` is dropped: only a source's own is checked.
Brackets in code are code.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from vault_index.text.blocks import code_lines

_DASHES = "\u2010\u2011\u2012\u2013\u2014\u2212-"
_GAP = "\u2026"  # in place of what is struck, where its neighbours would make something new
_INNER = rf"[\d \t^,;\u3001\uff0c{_DASHES}]{{0,200}}"
_TOKEN = re.compile(
    r"(?P<code>(?P<run>`+)(?!`)[^\n]{1,1000}?(?<!`)(?P=run)(?!`))|`+|\\[`\\]"
    rf"|(?P<group>[\[\uff3b\u3010](?P<inner>{_INNER})(?P<note>[\u2020:][^\n\[\]\u3010\u3011]{{0,200}})?"
    r"[\]\uff3d\u3011])(?:\([^\s()`]{0,2000}\))*"
)
_PART = re.compile(rf"(\d+)(?:[{_DASHES}](\d+))?")
_BETWEEN = re.compile(r"[\s^,;\u3001\uff0c]+")
_BEFORE = re.compile(r"(?:(?<=\])[,;\u3001\uff0c])?[ \t]*\Z")  # goes with what is struck
# what a neighbour would become a part of: a citation, an address, code, a block
_JOINS = re.compile(rf"[\[\uff3b\u3010]{_INNER}\Z|[`~\\]\Z|(?:\A|\n)[\s>*+.)\d-]*\Z")


def check(text: str, numbers: Collection[int]) -> tuple[str, list[int]]:
    """Return an answer without citations of other numbers, and those that it cites, in order."""
    lines, cited, text_lines = text.strip().split("\n"), list[int](), list[str]()
    for line, is_code in zip(lines, code_lines(lines), strict=True):
        text_lines.append(line if is_code else _checked(line, sorted(numbers), cited))
    checked = "\n".join(text_lines).strip()
    return checked if checked.strip(_GAP) else "", cited


def _checked(line: str, numbers: Sequence[int], cited: list[int]) -> str:
    """Return a line without citations of other numbers; those that it has are added to a list."""
    out, end = "", 0
    for token in _TOKEN.finditer(line):
        out += line[end : token.start()]
        named = _named(token["inner"], numbers) if token["group"] else None
        end = token.end()
        if named is None and not token["note"]:
            out += token[0]
        elif named:
            cited += [number for number in named if number not in cited]
            out += "".join(f"[{number}]" for number in named)
        elif _JOINS.search(out) or line[end : end + 1] in ("(", "`", "~"):
            out += _GAP
        else:
            out = _BEFORE.sub("", out)
    return out + line[end:]


def _named(inner: str, numbers: Sequence[int]) -> list[int] | None:
    """Return the returned numbers that a group names; None if it holds anything else."""
    parts = [_PART.fullmatch(part) for part in _BETWEEN.split(inner) if part]
    ranges = [(int(part[1]), int(part[2] or part[1])) for part in parts if part]
    if not parts or len(ranges) < len(parts):
        return None
    returned = (each for first, last in ranges for each in numbers if first <= each <= last)
    return list(dict.fromkeys(returned))
