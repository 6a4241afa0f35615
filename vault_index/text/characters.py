"""Text from elsewhere, made safe to show: to an agent, on a terminal, in JSON.

Lessons, file names, commits and servers can say anything. Characters that steer a terminal, turn the
direction of text or show nothing never reach a reader as they are.
"""

from __future__ import annotations

import json
import unicodedata
from typing import Any

# letters and marks that show nothing: fillers, joiners, variation selectors; from, to
_UNSEEN = (
    *((0x034F, 0x034F), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F), (0x3164, 0x3164)),
    *((0xFE00, 0xFE0F), (0xFFA0, 0xFFA0), (0xE0100, 0xE01EF)),
)
_NOT_TEXT = ("Cc", "Cf", "Co", "Cs", "Cn", "Zl", "Zp")
# controls, half characters, line separators: a reader must see that they are there
_STEERING = ("Cc", "Cs", "Zl", "Zp")
_DIRECTION = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


class _Dropped(dict[int, int | None]):
    """A `str.translate` table that drops what is not plain text; it fills as characters come."""

    def __missing__(self, code: int) -> int | None:
        char = chr(code)
        drop = unicodedata.category(char) in _NOT_TEXT or _is_unseen(code)
        self[code] = None if drop else code
        return self[code]


class _Escaped(dict[int, str]):
    """A table that shows what would steer a terminal as `\\x1b`, and drops what shows nothing."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        if unicodedata.category(char) in _STEERING or char in _DIRECTION:
            self[code] = _escape(code)
        else:
            unseen = unicodedata.category(char) == "Cf" or _is_unseen(code)
            self[code] = "" if unseen else char
        return self[code]


class _EscapedForJson(dict[int, str]):
    """A table for JSON: every character that shows nothing or steers is `\\u202e`; none is lost."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        plain = char == "\n" or not (unicodedata.category(char) in _NOT_TEXT or _is_unseen(code))
        self[code] = char if plain else json.dumps(char)[1:-1].replace("\x7f", "\\u007f")
        return self[code]


_DROPPED = _Dropped({ord("\n"): ord("\n")})
_ESCAPED = _Escaped({ord("\n"): "\n", ord("\t"): "\t"})
_ESCAPED_LINE = _Escaped({ord("\n"): "\\n", ord("\t"): " "})
_JSON = _EscapedForJson()


def clean(text: str) -> str:
    """Return a text without control, invisible and direction characters; line feeds stay."""
    plain = text.replace("\r\n", "\n").replace("\r", "\n").replace("\t", "    ")
    return plain.translate(_DROPPED)


def visible(text: str) -> str:
    """Return a text for a terminal: controls are shown as `\\x1b`; line feeds and tabs stay."""
    return text.replace("\r\n", "\n").translate(_ESCAPED)


def visible_line(text: str) -> str:
    """Return a text for one line of a terminal: a line feed in it is shown as `\\n`."""
    if text.isascii() and text.isprintable():  # most are, and this takes a tenth of the time
        return text
    return text.translate(_ESCAPED_LINE)


def as_json(value: Any) -> str:
    """Return a value as indented JSON that no terminal obeys; a reader of JSON gets every character."""
    text = json.dumps(value, ensure_ascii=False, indent=2)
    if text.isascii() and "\x7f" not in text:  # the encoder escaped what steers
        return text
    return text.translate(_JSON)


def _is_unseen(code: int) -> bool:
    return any(first <= code <= last for first, last in _UNSEEN)


def _escape(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
