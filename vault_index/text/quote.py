"""A lesson's text as a quotation: what an agent reads of it is data, whatever it says.

Three rules hold for any text, without a list of names:
- No tag: each `<`, or wide look-alike of it, that could open a tag becomes `‹`, in prose and in
  code. Operators stay: `<` before a space, a digit, a sign such as `=`, `-`, `(`.
- No role: each line begins with `> `, so none begins with `Human:` or `### Instruction:`.
- No open end: a code fence that the text leaves open is closed, and the quotation ends whatever
  else is open in it (a list, a heading, a block of HTML), for a reader of markdown, too.
"""

from __future__ import annotations

import re
import unicodedata

from vault_index.text.characters import clean
from vault_index.text.sentences import cut

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
