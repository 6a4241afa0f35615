"""Keys, tokens, passwords and connection strings, which no lesson may carry.

The patterns are in `patterns/secrets.toml`. Their key `value` says how sure a match is:

    (none)   the form itself says whose key it is; only a placeholder in it is let through
    any      the group `value` is a secret, unless it is a placeholder
    password the group `value` is a secret if it could be a password
    random   the group `value` is a secret if it looks made by a machine or a careful person
    made-up  as `random`, for a value that no word assigns: no name or plain word looks like it
    base64   the group `value` is a secret if it is base64 of a text other than a placeholder
    quoted   as `random`, for a value in quotes, which may have the signs of code
    argument the group `value` is a secret unless it may be a word of a sentence
    named    the group `value` is a secret, unless it is a type, or a word of a sentence
    bare     as `named`, for a value without quotes, which may be code

Patterns of the strict level (`where = "strict"`) are for a private record that nobody reviews: see
`redact`. Forms of values, such as placeholders, are in the table `forms` of the same file.
"""

from __future__ import annotations

import base64
import hashlib
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import NamedTuple

from vault_index.check import pattern
from vault_index.check.finding import ERROR, WARNING, Finding, line_counter, line_of_key
from vault_index.check.pattern import Pattern
from vault_index.errors import LessonError
from vault_index.lesson.file import LessonFile, unix_lines
from vault_index.lesson.frontmatter import metadata_of

RULE = "secret"
HARMLESS = "harmless"  # the key of frontmatter that lists fingerprints
_WORD_END = re.compile(r"""[\s"'`,;()\[\]{}<>|„“”«»]""")
_WORD_CHARS = 300  # before and after what was found
_PRIVATE_KEY, _KEY_CHARS = "private-key", 4000
_TEXT_FRAGMENT = "#:~:text="  # of an address
# and variables, calls, tags
_PLACEHOLDER_SIGN = re.compile(r"^[$<%@&(\[!{]|\$\{|\$\(|\{\{|\(\)?$")
# code, a path, an address
_CODE = re.compile(r"[({\[=]|://|^[./~]|^--?\w|\.[A-Za-z]\w{0,3}$|::|->")
_IDENTIFIER = re.compile(r"^[A-Za-z_][\w]*(?:\.[A-Za-z_]\w*)+$|^[a-z_]+[A-Z]\w*$|^[a-z]+_\w+$")
# frontmatter of which YAML can make no value of several lines
_ONE_LINE_EACH = re.compile(r"---\n(?:[!-\[\]-~][ -\[\]-~]*\n)*?---\n")
_ENDS = ".,:;!?*_`\\="  # of a sentence, or of emphasis
_SIGN_ENTROPY = 2.4  # with a sign among letters and digits; "C0ff33&xR" has 2.7
_PAUSES = ".,:;?*_`\\="
_ENTROPY = 2.8  # bits a character; "correcthorse" has 2.9, "password1" 2.9, "aaaa1111" 1.0
_MAX_ENCODED_TEXT = 200  # bytes; more is a certificate or an image
_STRONG_ENTROPY = 3.2  # of a value that may look like code
_CALL = re.compile(
    r"^[\w.$>:-]*\w[(\[].*[)\]];?$|://|^\w+(?:\.\w+)+[(\[]|^[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+$"
)
TURN = re.compile(r"[a-z][A-Z0-9]|[0-9][A-Za-z]|[A-Z][0-9]|[A-Z]{2}(?=[a-z])")
_TURNS = 0.2  # of the characters of a random value; names in code have .15 and less
_LETTER_TURNS = 0.3
_LEAST_TURNS = 3
_LONG = 12  # characters; a shorter value in quotes needs all kinds of them
_HASH = re.compile(r"(?<![0-9a-fA-F])(?:[0-9a-f]{40}|[0-9a-f]{64})(?![0-9a-fA-F])")
# keys, their hashes, and escapes
_PUBLIC = re.compile(r"\\|-----|^MII[A-Za-z]|^AAAA[BCE]3Nza|^ssh-|^[Ss][Hh][Aa]\d{3}[-:]")
_OF_MOST_ENTROPY = 0.75  # a short value cannot have more bits a character than its length allows
_SIGN = re.compile(r"[!#%&*?^~$](?![\w-]+=)")  # no query of an address
# a word, two digits and a sign, as people make passwords up: `Winter-otter1983!`
_WORD_AND_SIGN = re.compile(r"(?=.*[A-Z])(?=.*\d\d)(?=.*[a-z]{3})(?=.*[!#$%&*?@^~§+].*)[^/\\]+$")
# words of a passphrase that a program made; patterns ask for a verb before it
_WORDS = re.compile(r"[a-z]{3,12}(?:[-_.][a-z]{3,12}){2,5}[-_.]?\d{2,4}")
_WORDS_BEFORE = 30  # characters before a value that say what it is
_VERSION = re.compile(r"^[A-Za-z]+[@#+-]?v?[\d.]+[+?]?$")
_PLAIN_WORD = re.compile(r"'?[^\W\d_]?[a-zà-ž]*(?:['\u2019-][^\W\d_]+)*")


def findings(path: str, text: str) -> Iterator[Finding]:
    """Find secrets in a text; one finding a line at most, and never the secret itself.

    A text that the frontmatter calls harmless is a warning that holds: see `harmless`.
    """
    line_of = line_counter(text)
    by_line: dict[int, list[_Found]] = {}
    # the first pattern names a line: those that know whose key it is come first in their file
    for rule, match in _matches(text):
        by_line.setdefault(line_of(match.start()), []).append(
            _Found(rule, fingerprint(rule, match))
        )
    for line, found in _in_values(text):
        by_line.setdefault(line, []).append(found)
    noted = _noted(text) if by_line and HARMLESS in text else frozenset()
    for line, in_line in sorted(by_line.items(), key=lambda item: item[0]):
        new = [each for each in in_line if each.fingerprint not in noted]
        rule = (new or in_line)[0].rule
        prints = tuple(dict.fromkeys(each.fingerprint for each in new or in_line))
        if new:
            message = f"{rule.why}: take it out, and revoke it if it was ever pushed"
            yield Finding(path, line, RULE, message, ERROR, rule.id, fingerprints=prints)
        else:
            message = f"{rule.why}: `{HARMLESS}` in the frontmatter says that it is none"
            yield Finding(path, line, RULE, message, WARNING, rule.id, True, prints)


class _Found(NamedTuple):
    """A secret: the pattern that says whose it is, and the hash of the word it is in."""

    rule: Pattern
    fingerprint: str


def fingerprint(rule: Pattern, match: re.Match[str]) -> str:
    """Return the hash of the word around what a pattern found, up to a space, quote or bracket.

    So several patterns that find parts of one word have one fingerprint.
    """
    text, (start, end) = match.string, match.span("value" if rule.value else 0)
    before = _WORD_END.split(text[max(0, start - _WORD_CHARS) : start])[-1]
    after = _WORD_END.split(text[end : end + _WORD_CHARS], maxsplit=1)[0]
    if rule.id == _PRIVATE_KEY:  # its pattern may match no more than how one begins
        after = text[end : end + _KEY_CHARS]
    word = f"{before}{text[start:end]}{after}".strip(_ENDS)
    return f"sha256:{hashlib.sha256(word.encode('utf-8', 'replace')).hexdigest()[:16]}"


def _noted(text: str) -> frozenset[str]:
    """Return the fingerprints that the frontmatter of a text calls harmless."""
    try:
        listed = metadata_of(LessonFile.of_text(text, "")).get(HARMLESS)
    except LessonError:
        return frozenset()
    return frozenset(map(str, listed if isinstance(listed, list) else [listed]))


def readable(data: bytes) -> str:
    """Return the readable text of a file, also of one that is not UTF-8.

    A secret is made of ASCII characters: other bytes are replaced, and the zeros dropped that lie
    between the letters of UTF-16.
    """
    return unix_lines(data.replace(b"\0", b"").decode("utf-8", "replace"))


def spans(text: str, *, strict: bool = False) -> Iterator[tuple[int, int, Pattern]]:
    """Yield (start, end, pattern) of each secret of a text.

    If a pattern has a value, only the value is the secret. Spans may overlap.
    """
    for rule, match in _matches(text, None if strict else ""):
        yield *match.span("value" if rule.value else 0), rule


def _matches(text: str, level: str | None = "") -> Iterator[tuple[Pattern, re.Match[str]]]:
    view = pattern.searched("secrets", text)
    for rule in pattern.rules_for("secrets", level, view):
        for match in rule.find_in(view):
            if is_secret(rule, match):
                yield rule, match


def is_placeholder(value: str) -> bool:
    """Whether a value is in the place of a secret: a variable, a word that says so, an example."""
    value = value.rstrip(_ENDS)
    is_variable = bool(_PLACEHOLDER_SIGN.search(value))
    return is_variable or _is_sample(value) or _is_sample(_plain(value))


def is_secret(rule: Pattern, match: re.Match[str]) -> bool:
    """Whether a match of a pattern is a secret, and no placeholder or example."""
    if _has_form("documented", match[0]):
        return False
    if not rule.value:
        return not _has_form("fake", match[0])
    value = match["value"].rstrip(_ENDS)
    if rule.value == "quoted":
        words = pattern.form("secrets", "variable").sub(" ", match["value"]).split()
        return not _is_sample(value) and any(map(_is_strong, words))
    if rule.value in ("made-up", "password", "random") and _names_a_thing(match):
        return False
    looked_at = match["value"].rstrip(_PAUSES) if rule.value == "made-up" else value
    return not is_placeholder(value) and _LOOKS[rule.value](looked_at)


def _names_a_thing(match: re.Match[str]) -> bool:
    """Whether the words before a value say that it is the name or number of a thing: `build id`."""
    start = match.start("value")
    return _has_form("names", match.string[max(0, start - _WORDS_BEFORE) : start])


def _is_sample(value: str) -> bool:
    if _TEXT_FRAGMENT in value or _has_form("documented", value):
        return True
    steps = [ord(after) - ord(before) for before, after in pairwise(value)]
    is_typed_in_a_row = len(set(value.lower())) < 4 or steps.count(1) > len(steps) / 2  # abc123
    is_label = pattern.form("secrets", "label").fullmatch(value) is not None
    return is_label or is_typed_in_a_row or _has_form("placeholder", value)


def _has_form(name: str, value: str) -> bool:
    return pattern.form("secrets", name).search(value) is not None


def _in_values(text: str) -> Iterator[tuple[int, _Found]]:
    """Search frontmatter values of several lines: YAML may write them as escapes, in one line."""
    if _ONE_LINE_EACH.match(text):
        return
    try:
        metadata = metadata_of(LessonFile.of_text(text, ""))
    except LessonError:
        return
    for key, value in metadata.items():
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, str) and "\n" in item.strip():
                line = line_of_key(text, str(key))
                for rule, match in _matches(item):
                    yield line, _Found(rule, fingerprint(rule, match))


def _is_password(value: str) -> bool:
    """Whether a value has digits or signs among its letters, unlike a word, name, path or code."""
    if len(value) < 6 or _has_form("word", value):
        return False
    if _CODE.search(value):
        return _is_made_up(value)
    if _is_scrambled(value):
        return True
    letters, digits = _counts(value)
    signs = re.search(r"[!@#$%^&*+?~§]", value)
    return bool(letters and (signs or (digits and len(value) >= 8)))


def _is_random(value: str) -> bool:
    """Whether a generator or a person made a value up: it is not a word, name, path or code."""
    if _has_form("word", value):
        return False
    if _CODE.search(value):
        return _is_made_up(value)
    letters, digits = _counts(value)
    signs = len(value) - letters - digits
    if not digits or not letters:
        return _is_scrambled(value) or bool(
            letters and signs >= 2 and len(value) >= 8 and re.search(r"[!@#$%^&*+]", value)
        )
    least = _SIGN_ENTROPY if _SIGN.search(value) else _ENTROPY
    return (len(value) >= 8 and entropy(value) >= least) or _is_made_up(value)


def _is_made_up(value: str) -> bool:
    """Whether a value is so mixed that it is a password wherever it stands."""
    if len(value) < 8 or not all(_counts(value)) or _has_form("word", value):
        return False
    if any(form.search(value) for form in (_CALL, _VERSION, _HASH, _PUBLIC)):
        return False
    if value.startswith(("/", "./", "~/", "-")) or value.count("/") > 1:
        return False
    if _WORDS.fullmatch(value) or (_WORD_AND_SIGN.search(value) and not _CODE.search(value)):
        return True
    turns = len(TURN.findall(value))
    is_mixed = turns >= _LEAST_TURNS and turns / len(value) >= _TURNS
    if not is_mixed and (turns < _LEAST_TURNS - 1 or not _SIGN.search(value)):
        return False
    least = min(_ENTROPY, _OF_MOST_ENTROPY * math.log2(len(value)))
    return _kinds(value) >= (3 if is_mixed else 4) and entropy(value) >= least


def _counts(value: str) -> tuple[int, int]:
    return sum(map(str.isalpha, value)), sum(map(str.isdigit, value))


def _is_scrambled(value: str) -> bool:
    turns = len(TURN.findall(value))
    return value.isalpha() and turns >= _LEAST_TURNS and turns / len(value) >= _LETTER_TURNS


def _from_base64(value: str) -> bytes | None:
    try:
        return base64.b64decode(value + "=" * (-len(value) % 4), validate=True)
    except ValueError:
        return None


def _plain(value: str) -> str:
    """Return a value out of base64, of `user:password` the password; any other value as it is."""
    decoded = _from_base64(value)
    if decoded is None or not all(31 < byte < 127 for byte in decoded.strip()):
        return value
    return decoded.decode("ascii").strip().rpartition(":")[2]


def _is_argument(value: str) -> bool:
    """Whether an argument of a command is a value, and no word of a sentence about the command."""
    return not _PLAIN_WORD.fullmatch(value) and not value.startswith(("-", "\\"))


def _is_named(value: str) -> bool:
    return len(value) >= 4 and not value.isdecimal() and not _has_form("no_value", value)


def _is_bare(value: str) -> bool:
    return _is_named(value) and not value.isalpha() and not _IDENTIFIER.search(value)


def _is_strong(value: str) -> bool:
    """Whether a word in quotes is too mixed to be code or a name."""
    if value.startswith(("/", "./", "~/")) or _CALL.search(value) or len(value) < 8:
        return False
    kinds = _kinds(value) - (len(value) < _LONG)
    return kinds >= 3 and any(map(str.isdigit, value)) and entropy(value) >= _STRONG_ENTROPY


def _kinds(value: str) -> int:
    kinds = (str.islower, str.isupper, str.isdigit, lambda char: not char.isalnum())
    return sum(any(map(kind, value)) for kind in kinds)


def _is_encoded(value: str) -> bool:
    """Whether a value is base64 of a text, or of a key; of `user:password`, the password counts."""
    decoded = _from_base64(value)
    if decoded is None:
        return False
    if len(decoded) > _MAX_ENCODED_TEXT or not all(31 < byte < 127 for byte in decoded.strip()):
        return entropy(value) >= _STRONG_ENTROPY and any(map(str.isdigit, value))
    return len(_plain(value)) >= 3


def entropy(value: str) -> float:
    """Return the bits a character."""
    counts = Counter(value)
    return -sum(n / len(value) * math.log2(n / len(value)) for n in counts.values())


_LOOKS: dict[str, Callable[[str], bool]] = {
    "any": bool,
    "password": _is_password,
    "random": _is_random,
    "made-up": _is_made_up,
    "base64": _is_encoded,
    "argument": _is_argument,
    "named": _is_named,
    "bare": _is_bare,
}
