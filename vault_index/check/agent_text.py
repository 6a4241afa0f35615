"""Text that is written at the agent rather than for it, and characters that nobody can see.

A lesson goes into an agent's context: there it is fenced and labelled as data, and this is the other
line of defence, before it is shared.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterator
from itertools import chain

from vault_index.check import orders
from vault_index.check.finding import ERROR, WARNING, Finding, line_counter, matches

RULE = "agent-text"
_Found = tuple[int, str, str]  # line, what, severity

# the fence that lessons come in, and what agents are told by it
_FENCE = re.compile(
    r"[<\uff1c\ufe64]\s{0,9}/?\s{0,9}(?:lessons|system-reminder|system_prompt|antml:\w{1,40}|function_calls|function_results)"
    r"(?:\s[^<>\n]{0,200})?[>\uff1e\ufe65]",
    re.I,
)
# what turns of a conversation are made of: teams that build chatbots write about it, too
_TURN = re.compile(
    r"[<\uff1c\ufe64]\s{0,9}/?\s{0,9}(?:system|tool_result|tool_use|user_prompt|assistant|human)\s{0,9}[>\uff1e\ufe65]"
    r"|<\|(?:im_start|im_end|system|user|assistant|start_header_id|end_header_id|eot_id)\|>|\[/?INST\]|<</?SYS>>",
    re.I,
)
_SPEAKER = re.compile(r"^(?:Human|Assistant): ", re.M)
_COMMENT = re.compile(
    r"<!--(.*?)(?:-->|\Z)|^\[(?://|comment|_metadata_)[^\]\n]{0,200}\]:[ \t]*#?[ \t]*([^\n]*)",
    re.S | re.M,
)
_UNSEEN = re.compile(
    r"style\s{0,9}=\s{0,9}[\"'][^\"'>]{0,200}?(?:display\s{0,9}:\s{0,9}none|visibility\s{0,9}:\s{0,9}hidden|font-size\s{0,9}:\s{0,9}0|opacity\s{0,9}:\s{0,9}0(?![.\d])"
    r"|(?<![-\w])color\s{0,9}:\s{0,9}(?:#fff\b|#ffffff|white|transparent))[^>]{0,200}>\s{0,20}"
    r"(?:<(?:summary|p|span|div|b|i|em|strong)\b[^<>]{0,80}>[^<\n]{0,3}(?:</summary>)?\s{0,9}){0,3}([^<\s][^<]{0,300})",
    re.I,
)
_BLOB = re.compile(r"(?<![\w/+])[A-Za-z0-9+/]{60,}={0,2}")
_DECODED = re.compile(r"(?i)\b(?:decod\w+|base64)\b")
_RUN = re.compile(r"(?i)\b(?:execute|run|eval|obey)\b")
_RUN_DECODED = re.compile(
    r"(?i)\b(?:execute|run|eval|obey|follow) (?:this|it|the (?:following|text|result|output)|what)\b"
    r"|\bdecode[^.\n]{0,40}\b(?:and|then) (?:execute|run|eval|obey|follow)\b|base64 (?:-d|--decode)[^\n]{0,20}\|\s?(?:ba|z)?sh\b"
)
_CODE_BLOCK = re.compile(r"^[ \t>]{0,8}(?:```|~~~)", re.M)
_INDENT = 80  # characters before a mark that begins its line
_AROUND = 200  # characters before what is encoded
_ADDRESSED = re.compile(
    r"(?i)\b(?:ai|llms?|claude|copilot|codex|assistants?|(?:language|coding) models?)\b(?![ -](?:generated|written|wrote|made|policy)\b)"
    r"|(?:\A|[.!?:;,>]|\b(?:the|an|any|all|every|your|you|dear|coding|ai))\s{0,9}agents?\b"
)
_SALUTATION = re.compile(
    r"(?i)\W{0,9}(?:(?:to|for|note to|dear|hey) )?(?:the |all |any )?"
    r"(?:ai|llms?|claude|copilot|codex|assistants?|agents?|(?:language|coding) models?)(?: only)?\s?[:,]"
)
_ORDER = re.compile(
    r"(?i)\b(?:ignore|disregard|forget|always|never|must|should|shall|execute|curl|wget|run|call|fetch|send|delete|push"
    r"|approve|merge|install|download|obey|open|do not|don't|secretly|silently)\b"
)
_TO_YOU = re.compile(r"(?i)\byou (?:must|shall|will|have to|are to)\b")
_YOU = re.compile(r"(?i)\byour?\b")
# what comments are for: they tell people how a file is kept
_KEPT = re.compile(
    r"(?i)\b(?:edit|update|change|regenerat\w+|generated?|section|tables?|toc|format\w*|lint\w*|render\w*|figure|heading|build)\b"
)
_HIDDEN = {
    "an invisible character": re.compile("[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u2060-\u2064\u206a-\u206f\u3164\uffa0]"),
    "a character that turns the direction of text": re.compile("[\u200e\u200f\u202a-\u202e\u2066-\u2069]"),
    "an invisible tag character": re.compile("[\U000e0000-\U000e007f\U000e0100-\U000e01ef]"),
    "an invisible character ": re.compile("(?<=[ -~])[\u200c\u200d\ufe00-\ufe0e]|[\u200c\u200d](?=[ -~])|(?<!^)\ufeff"),
    "a control character": re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\x80-\x9f]"),
}  # fmt: skip


def findings(path: str, text: str) -> Iterator[Finding]:
    """Find text at the agent, forged marks, comments with orders, and hidden characters.

    An error is what is hardly ever innocent; the rest is a warning. Each is told once for a line.
    """
    worst: dict[tuple[int, str], str] = {}
    for line, what, severity in chain(
        _spoken(text), _forged(text), _commented(text), _unseen(text), _hidden(text)
    ):
        if worst.get((line, what)) != ERROR:
            worst[line, what] = severity
    for (line, what), severity in worst.items():
        yield Finding(path, line, RULE, what, severity)


def _spoken(text: str) -> Iterator[_Found]:
    plain = _plain(text)
    line = line_counter(plain)
    for start, what, severity in orders.spoken(plain):
        yield line(start), what, severity


def _plain(text: str) -> str:
    """Give a text as it is read: no invisible characters, wide letters as plain ones; same lines."""
    seen = "".join(
        c for c in text if c in "\n\t" or unicodedata.category(c) not in ("Cf", "Cc", "Co")
    )
    plain = unicodedata.normalize("NFKC", seen).translate(_LOOKALIKES)
    return re.sub(r"[*_`~]+", _unmarked, plain)


def _unmarked(mark: re.Match[str]) -> str:
    """Take emphasis away from words; `id_rsa` keeps what belongs to it."""
    around = (
        mark.string[max(0, mark.start() - 1) : mark.start()],
        mark.string[mark.end() : mark.end() + 1],
    )
    inside = [bool(re.match(r"\w", one)) for one in around]
    return mark[0] if not any(inside) or (all(inside) and not mark[0].strip("_")) else ""


# Cyrillic and Greek letters that look like Latin ones
_LOOKALIKES = str.maketrans("аеорсухіѕјԁոԛѡВЕНКМОРСТХАІοναιρ", "aeopcyxisjdnqwBEHKMOPCTXAIovaip")


def _forged(text: str) -> Iterator[_Found]:
    for line, _ in matches(text, _FENCE):
        yield line, "a mark that agents give a meaning, such as the end of the fence", ERROR
    blocks = [match.start() for match in _CODE_BLOCK.finditer(text)]
    for line, match in matches(text, _TURN):
        in_code = bisect_left(blocks, match.start()) % 2
        severity = ERROR if _begins_line(text, match.start()) and not in_code else WARNING
        yield line, "a mark that begins or ends what somebody says to an agent", severity
    for line, _ in matches(text, _SPEAKER):
        yield line, "a mark that begins or ends what somebody says to an agent", WARNING


def _begins_line(text: str, index: int) -> bool:
    before = text[max(0, index - _INDENT) : index]
    _, newline, before = before.rpartition("\n")
    return bool(newline or index < _INDENT) and not before.strip(" \t>*#-")


def _commented(text: str) -> Iterator[_Found]:
    for line, match in matches(text, _BLOB):
        before = text[max(0, match.start() - _AROUND) : match.start()]
        if _DECODED.search(before) and _RUN.search(before):
            severity = ERROR if _RUN_DECODED.search(before) else WARNING
            yield line, "has something decoded and run", severity
    for line, match in matches(text, _COMMENT):
        said = _plain(match[1] or match[2] or "")
        if severity := _hidden_order(said):
            yield line, "a hidden comment with instructions", severity


def _hidden_order(said: str) -> str:
    """Tell what a text that is not shown is: an order at an agent, perhaps one, or "" for none."""
    if len(said.split()) < 3:
        return ""
    if not _ORDER.search(said):
        return (ERROR if _YOU.search(said) else WARNING) if _SALUTATION.match(said) else ""
    kept = _KEPT.search(said)
    if _ADDRESSED.search(said):
        return WARNING if kept else ERROR
    if kept:
        return ""
    return ERROR if _TO_YOU.search(said) else WARNING if _YOU.search(said) else ""


def _unseen(text: str) -> Iterator[_Found]:
    for line, match in matches(text, _UNSEEN):
        severity = ERROR if _hidden_order(_plain(match[1])) else WARNING
        yield line, "text in an element that is not shown", severity


def _hidden(text: str) -> Iterator[_Found]:
    for what, pattern in _HIDDEN.items():
        for line, match in matches(text, pattern):
            yield line, f"{what.strip()} (U+{ord(match[0]):04X})", ERROR
