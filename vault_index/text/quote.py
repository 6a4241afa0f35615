"""Untrusted text, safe to show: to an agent as a quotation, on a terminal, in JSON.

Three rules hold for any text, without a list of names:
- No tag: each `<`, or wide look-alike of it, that could open a tag becomes `‹`, in prose and in
  code. Operators stay: `<` before a space, a digit, a sign such as `=`, `-`, `(`.
- No role: each line begins with `> `, so none begins with `Human:` or `### Instruction:`.
- No open end: a code fence that the text leaves open is closed, and the quotation ends whatever
  else is open in it (a list, a heading, a block of HTML), for a reader of markdown, too.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable
from typing import Any

from vault_index.text.blocks import cut

MARK = "\u2039"  # in place of a `<` that could open a tag
PREFIX = "> "
MAX_CHARS = 40_000  # of a text that is looked at: no injection has room for more

_WIDE = "\uff1c\ufe64"  # the characters that NFKC makes a `<` of
_TAG = re.compile(
    rf"[{_WIDE}]"
    r"|<(?![ \d=<>\-(\"'`$&\\])"  # a letter, / ! ? | and whatever NFKC could make of the rest
    r"|<(?= *(?:$|\n|[/!?|]|[^\x00-\x7f]))"
    r"|<(?= +\w[\w:.-]*(?: *(?:/ *)?>| +[\w:.-]+ *= *[\"']))"  # `a < b` is no tag, `< a >` is
)
# what chat templates of models are made of: [INST], [/INST], [SYSTEM_PROMPT]
_BRACKETED = re.compile(r"[\[\uff3b](?=([^\[\]\uff3b\uff3d]{3,40})[\]\uff3d])")
_TEMPLATE = frozenset(
    ("INST", "SYS", "SYSTEM_PROMPT", "AVAILABLE_TOOLS", "TOOL_CALLS", "TOOL_RESULTS")
)
_BRACKET = "\u2772"  # looks like `[`
# In lists, in quotations and at any indentation, unlike text/blocks.py: the reader here is an agent,
# which takes more lines for fences than CommonMark does, and the text may be cut anywhere.
_FENCE = re.compile(
    r"^(?:[ >]|[-*+][ ]|\d{1,9}[.)][ ])*(?P<mark>`{3,}(?=[^`]*$)|~{3,})(?P<rest>.*)$"
)

_MARKS = re.compile(r"`{3,}|~{3,}")


def defused(text: str) -> str:
    """Return a text without unseen characters and without anything that could pass for a tag."""
    plain = _TAG.sub(MARK, clean(text[:MAX_CHARS]))
    return _BRACKETED.sub(_bracket, plain)


def _bracket(match: re.Match[str]) -> str:
    word = unicodedata.normalize("NFKC", match[1]).replace("/", "").strip().upper()
    return _BRACKET if word in _TEMPLATE else match[0]


def defused_line(text: str) -> str:
    """Return a text defused, on one line: a title, a path, the name of an author."""
    return " ".join(defused(" ".join(text[:MAX_CHARS].split())).split())


def lines(text: str) -> list[str]:
    """Return the lines of a defused text as a quotation."""
    return [f"{PREFIX}{line}".rstrip() for line in text.split("\n")] if text else []


def closed(text: str) -> str:
    """Return a text with a code fence that it leaves open closed."""
    mark = open_fence(text)
    return f"{text}\n{mark}" if mark else text


def open_fence(text: str) -> str:
    """Return the mark that closes the code fence which a text leaves open; "" if none is open."""
    mark = ""
    for line in text.split("\n"):
        fence = _FENCE.match(line)
        if fence and not mark:
            mark = fence["mark"]
        elif fence and fence["mark"].startswith(mark) and not fence["rest"].strip():
            mark = ""
    return mark


def shorten(text: str, limit: int) -> str:
    """Cut a text to at most `limit` characters, at the end of a sentence or line, and say so: …

    A code fence that the text or the cut leaves open is closed.
    """
    text = text.strip()
    whole = closed(text)
    if len(whole) <= limit:
        return whole
    longest = max(map(len, _MARKS.findall(text[:limit])), default=0)
    for room in (limit - 2, limit - 3 - longest):  # the second with room for the closing fence
        short = cut(text, room)
        if short and len(marked := f"{closed(short)} …") <= limit:
            return marked
    return ""


# Lessons, file names, commits and servers can say anything. Characters that steer a terminal, turn the
# direction of text or show nothing never reach a reader as they are.
# letters and marks that show nothing: fillers, joiners, variation selectors; from, to
_UNSEEN = (
    *((0x034F, 0x034F), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F), (0x3164, 0x3164)),
    *((0xFE00, 0xFE0F), (0xFFA0, 0xFFA0), (0xE0100, 0xE01EF)),
)
_NOT_TEXT = ("Cc", "Cf", "Co", "Cs", "Cn", "Zl", "Zp")
# controls, half characters, line separators: a reader must see that they are there
_STEERING = ("Cc", "Cs", "Zl", "Zp")
_DIRECTION = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


class _Table(dict[int, str]):
    """A `str.translate` table of what a step makes of each character; it fills as they come."""

    def __init__(self, step: Callable[[str], str], same: dict[str, str]) -> None:
        super().__init__({ord(char): text for char, text in same.items()})
        self._step = step

    def __missing__(self, code: int) -> str:
        return self.setdefault(code, self._step(chr(code)))


def _is_plain(char: str) -> bool:
    return unicodedata.category(char) not in _NOT_TEXT and not _is_unseen(char)


def _escaped(char: str) -> str:
    """Escape characters that steer a terminal, as `\\x1b`, and drop invisible ones."""
    category, code = unicodedata.category(char), ord(char)
    if category in _STEERING or char in _DIRECTION:
        return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
    return "" if category == "Cf" or _is_unseen(char) else char


_DROPPED = _Table(lambda char: char if _is_plain(char) else "", {"\n": "\n"})
_ESCAPED = _Table(_escaped, {"\n": "\n", "\t": "\t"})
_ESCAPED_LINE = _Table(_escaped, {"\n": "\\n", "\t": " "})
# every character that shows nothing or steers as `\\u202e`; none is lost
_JSON = _Table(
    lambda char: char if _is_plain(char) else json.dumps(char)[1:-1].replace("\x7f", "\\u007f"),
    {"\n": "\n"},
)


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


def _is_unseen(char: str) -> bool:
    return any(first <= ord(char) <= last for first, last in _UNSEEN)


def without_key(address: str) -> str:
    """Return an address without the user, password and query that it may have: an ellipsis instead."""
    bare = re.sub(r"^((?:[\w+.-]+:)?//)?[^/?#]*@", r"\1…@", address)
    return re.sub(r"[?#].*", "?…", bare, flags=re.DOTALL)
