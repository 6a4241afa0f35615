"""Keys, tokens, passwords and connection strings, which no lesson may carry.

The patterns are in `patterns/secrets.toml`. Their key `value` says how sure a match is:

    (none)   the form itself says whose key it is; only a placeholder in it is let through
    any      the group `value` is a secret, unless it is a placeholder
    random   the group `value` is a secret if it looks made by a machine or a careful person
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator

from vault_index.check import pattern
from vault_index.check.finding import ERROR, Finding, line_counter, line_of_key
from vault_index.check.pattern import Pattern
from vault_index.errors import LessonError
from vault_index.lesson import split_frontmatter

RULE = "secret"
_PLACEHOLDER = re.compile(
    r"(?i)^[\W_]*$|x{4,}|\*{3,}|\.{3,}|…|^\$|\$\{|\{\{|^<|^%|^@|^&|^\(|\(\)?$|^\[|example|placeholder"
    r"|change[_-]?me|your[_-]|[_-]here$|redacted|dummy|^fake|sample|^todo|^foo|^bar$|^null$|^none$"
    r"|^(?:pass(?:word|wd)?|secret|token|hunter2|qwerty|admin|root|user|test|123456+|undefined|true|false)$"
)
_ENTROPY = 2.8  # bits a character; "correcthorse" has 2.9, "password1" 2.9, "aaaa1111" 1.0


def findings(path: str, text: str) -> Iterator[Finding]:
    """Find secrets in a text; one finding a line at most, and never the secret itself."""
    by_line: dict[int, Pattern] = {}
    # the first pattern names a line: those that know whose key it is come first in their file
    for line, rule in [*_anywhere(text), *_in_values(text)]:
        by_line.setdefault(line, rule)
    for line, rule in sorted(by_line.items(), key=lambda item: item[0]):
        message = f"{rule.why}: take it out, and revoke it if it was ever pushed"
        yield Finding(path, line, RULE, message, ERROR, rule.id)


def _anywhere(text: str) -> Iterator[tuple[int, Pattern]]:
    lowered = text.lower()
    line = line_counter(text)
    for rule in pattern.load("secrets"):
        for match in rule.find(text, lowered):
            if _is_secret(rule, match):
                yield line(match.start()), rule


def _is_secret(rule: Pattern, match: re.Match[str]) -> bool:
    if not rule.value:
        return not _is_placeholder(match[0])
    value = match["value"].rstrip(".,:;!?*_`\\=")
    return not _is_placeholder(value) and (rule.value == "any" or _is_random(value))


def _in_values(text: str) -> Iterator[tuple[int, Pattern]]:
    """Search frontmatter values of several lines: YAML may write them as escapes, in one line."""
    try:
        metadata, _ = split_frontmatter(text, "")
    except LessonError:
        return
    for key, value in metadata.items():
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, str) and "\n" in item.strip():
                for _, rule in _anywhere(item):
                    yield line_of_key(text, str(key)), rule


def _is_placeholder(value: str) -> bool:
    return bool(_PLACEHOLDER.search(value)) or len(set(value.lower())) < 4


def _is_random(value: str) -> bool:
    """Whether a value is no word, name, path or code, but what a generator or a person makes up."""
    letters = sum(map(str.isalpha, value))
    digits = sum(map(str.isdigit, value))
    signs = len(value) - letters - digits
    if re.search(r"[({\[=]|://|^[./~]|^--?\w|\.\w{1,4}$|::|->", value):  # code, a path, an address
        return False
    if not digits or not letters:
        return bool(letters and signs >= 2 and len(value) >= 8 and re.search(r"[!@#$%^&*+]", value))
    counts = Counter(value)
    bits = -sum(n / len(value) * math.log2(n / len(value)) for n in counts.values())
    return len(value) >= 8 and bits >= _ENTROPY
