"""Orders that a text quotes in order to report them: tests of a filter, an attack that was seen.

A quotation is left out of the search for prompt injections only if the words around it, other
quotations left out, both name such attacks or the defence against them (`report-subject`) and
report what somebody did or does about it (`report-verb`), and if they ask nobody to do what is
quoted (`report-obey`). An order in quotes without such a frame stays as it is.
"""

from __future__ import annotations

import re
from itertools import islice

from vault_index.check import pattern

_BEFORE_CHARS, _AFTER_CHARS = 450, 350  # around a quotation: a short paragraph each
_QUOTATION = re.compile(
    r"``[^\n]{1,400}?``|`[^`\n]{2,400}`|\"[^\"\n]{4,400}\"|\u201c[^\u201d\n]{4,400}\u201d"
    r"|\u201e[^\u201c\u201d\n]{4,400}[\u201c\u201d]|\u00ab[^\u00bb\n]{4,400}\u00bb|\u300c[^\u300d\n]{2,200}\u300d"
    r"|^[ \t]{0,3}>[^\n]{1,400}$",
    re.M,
)
_NAME = re.compile(r"`+[\w.~/:@$%*=+-]+`+")  # of a file or an option: it quotes nobody
_MAX_QUOTATIONS = 300  # that are looked at; a text with more is not a short report
_OWN_FENCE = re.compile(r"(?i)/\s{0,9}lessons")  # what would end it is reported wherever it is


def without_reported(text: str) -> str:
    """Return a text of the same length and lines, with full stops in place of reported quotations."""
    if not _has("report-subject", text):
        return text
    quotations = list(islice(_QUOTATION.finditer(text), _MAX_QUOTATIONS))
    unquoted = _QUOTATION.sub(lambda match: " " * len(match[0]), text)
    pieces, end = [], 0
    for match in quotations:
        around = unquoted[max(0, match.start() - _BEFORE_CHARS) : match.end() + _AFTER_CHARS]
        is_kept = _NAME.fullmatch(match[0]) or _OWN_FENCE.search(match[0])
        if not is_kept and _is_report(around):
            pieces += [text[end : match.start()], "." * len(match[0])]
            end = match.end()
    return "".join([*pieces, text[end:]])


def _is_report(words: str) -> bool:
    return (
        _has("report-subject", words)
        and _has("report-verb", words)
        and not _has("report-obey", words)
    )


def _has(pattern_id: str, words: str) -> bool:
    (rule,) = (rule for rule in pattern.load("prompt_injection") if rule.id == pattern_id)
    return next(rule.find(words, pattern.in_lower_case(words), whole=True), None) is not None
