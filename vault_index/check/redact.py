"""Secrets out of a text, each replaced by its kind: `[redacted: aws key]`.

The rules of `lessons check` and of its strict level, whole private keys, and tokens that look random.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence
from itertools import takewhile

from vault_index.check import secrets

_RANDOM = "random text"
_KEY = "private key"
# how doubtful a rule is about what a secret is: it knows the form, or the value, or has but a name
_FORMED, _VALUED, _NAMED_SO, _LOOKS_SO = range(4)
_MARK = re.compile(r"\[redacted: [^\[\]\n]{0,60}\]")
_ARTICLE = re.compile(r"^(?:an?|the) ")
_SHORT = 1024  # characters
_MAX_ROUNDS = 8  # what was taken out may bring a name and a value together
_MAX_LINE = 400  # characters of a line of a key

# A token is one piece of what keys are made of; a path or an address has several.
_TOKEN = re.compile(r"[A-Za-z0-9_+/.~%-]{13,}={0,2}")
_PIECE = re.compile(r"[A-Za-z0-9_+~%-]{13,}={0,2}")
_MIN_RANDOM = 20
_MIN_LETTERS = 32  # of a token without digits: names in code are shorter
_HEX = re.compile(r"[0-9a-fA-F]+")
_NO_KEY = re.compile(  # UUIDs and hashes
    r"(?i)(?<![0-9a-f])[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}(?![0-9a-f])"
    r"|(?<![0-9a-f])(?:[0-9a-f]{40}|[0-9a-f]{64})(?![0-9a-f])"
)
_HASHES = (40, 56, 64, 96, 128)  # hexadecimal digits of git's hashes and of SHA-2
_TURNS = 0.24  # of the characters of a random token; names in code have .15 and less
_BITS = 3.2  # of entropy a character
_INTEGRITY = re.compile(r"(?i)sha\d{1,3}[-:]$")

_PEM = re.compile(
    r"-----BEGIN (?:[A-Z0-9 ]{1,40} )?PRIVATE KEY(?: BLOCK)?-----"
    r"(?P<body>(?:(?!-----BEGIN)[\s\S]){0,20000}?)-----END "
)
_PEM_END = re.compile(r"-----END (?:[A-Z0-9 ]{1,40} )?PRIVATE KEY")
_PEM_LINE = re.compile(r"[ \t]*(?=\S*[\d+/=])[A-Za-z0-9+/]{4,80}={0,2}[ \t\r]*")
_MAX_PEM_LINES = 200
_PUTTY = re.compile(r"Private-Lines: \d+\s+(?P<body>(?:[A-Za-z0-9+/=]{20,}\s*)+)")
_BODY = re.compile(r"[A-Za-z0-9+/]{16,}")
_REST = re.compile(r"[A-Za-z0-9+/=_-]*")  # of a token that a rule knows by its beginning
_KEY_LINES = re.compile(r"(?:(?:\\n|[\s>|\"'+,])*[A-Za-z0-9+/=]{16,})*")
_NO_TEXT = re.compile("[\ud800-\udfff\0]")  # half a character, and what makes a file binary


def redact(text: str) -> str:
    """Return a text without its secrets; twice is as good as once."""
    return _short(text) if len(text) < _SHORT else _long(text)


def redact_change(lines: Sequence[str]) -> list[str]:
    """Return as many lines, with signs, without the secrets before or after the change.

    Each side is redacted as a text: a secret may have several lines.
    """
    versions: list[list[str]] = [[] for _ in lines]
    for signs in ("- ", "+ "):
        numbers = [number for number, line in enumerate(lines) if line[0] in signs]
        side = _long("\n".join(lines[number][1:] for number in numbers), keeps_lines=True)
        for number, line in zip(numbers, side.split("\n"), strict=bool(numbers)):
            versions[number].append(line)
    return [line[0] + _united(line[1:], seen) for line, seen in zip(lines, versions, strict=True)]


def _united(line: str, versions: Sequence[str]) -> str:
    """Return a line without the parts that any version of it lacks."""
    changed = [each for each in dict.fromkeys(versions) if each != line]
    if len(changed) < 2:
        return changed[0] if changed else line
    begin = _shared([line, *changed])
    end = _shared([each[begin:][::-1] for each in (line, *changed)])
    return f"{line[:begin]}[redacted: secret]{line[len(line) - end :]}"


def _shared(texts: Sequence[str]) -> int:
    columns = zip(*texts, strict=False)
    return sum(1 for _ in takewhile(lambda column: len({*column}) == 1, columns))


def _long(text: str, *, keeps_lines: bool = False) -> str:
    if not text.isascii() or "\0" in text:
        text = _NO_TEXT.sub("\ufffd", text)
    for _ in range(_MAX_ROUNDS):
        redacted = _redacted(text, keeps_lines)
        if redacted == text:
            break
        text = redacted
    return text


_short = functools.lru_cache(maxsize=8192)(_long)  # what was redacted is asked about again


def _redacted(text: str, keeps_lines: bool) -> str:
    """Replace the secrets of one round; where spans overlap, the surest rule names them."""
    spans = sorted(_spans(text))
    if not spans:
        return text
    marks = [match.span() for match in _MARK.finditer(text)]
    parts, end = list[str](), 0
    rank, name, first = 0, "", 0
    for begin, stop, number, why in spans:
        if any(start <= begin and stop <= last for start, last in marks):
            continue
        if begin >= end:
            ends = text.count("\n", first, end) if keeps_lines else 0
            parts += [name, "\n" * ends, text[end:begin]]
            first, rank = begin, number + 1
        if number < rank:
            rank, name = number, f"[redacted: {why}]"
        end = max(end, stop)
    ends = text.count("\n", first, end) if keeps_lines else 0
    return "".join([*parts, name, "\n" * ends, text[end:]])


def _spans(text: str) -> Iterator[tuple[int, int, int, str]]:
    """Yield (start, end, doubt, kind) of each secret."""
    for start, stop, rule in secrets.spans(text, strict=True):
        name = _ARTICLE.sub("", rule.why).lower()
        if rule.where:
            yield start, stop, _NAMED_SO, name
            continue
        after = (_KEY_LINES if "private key" in name else _REST).match(text, stop)
        begin = stop - len(text[start:stop].lstrip())
        end = _to_quote(text, begin, after.end() if after else 0)
        yield begin, end, _VALUED if rule.value else _FORMED, name
    if "PRIVATE KEY" in text or "Private-Lines" in text:
        for regex in (_PEM, _PUTTY):
            for match in regex.finditer(text):
                if _BODY.search(match["body"]):
                    yield *match.span("body"), _FORMED, _KEY
        for begin, end in _ends_of_keys(text):
            yield begin, end, _FORMED, _KEY
    for begin, end in _tokens(text):
        yield begin, end, _LOOKS_SO, _RANDOM


def _ends_of_keys(text: str) -> Iterator[tuple[int, int]]:
    """Yield the lines before the ends of private keys: a diff may show no more of them."""
    for match in _PEM_END.finditer(text):
        begin = end = text.rfind("\n", 0, match.start())
        for _ in range(_MAX_PEM_LINES):
            line = text.rfind("\n", max(0, begin - _MAX_LINE), max(0, begin)) + 1
            if begin <= 0 or not _PEM_LINE.fullmatch(text, line, begin):
                break
            first, begin = line, line - 1
        if begin < end:
            yield first, end


def _to_quote(text: str, begin: int, end: int) -> int:
    """Return the end of a value that began after a quotation mark: signs may be within it."""
    quote = text[begin - 1 : begin]
    if quote in ("'", '"', "`") and text[end : end + 1] not in ("", quote):
        close = text.find(quote, end, end + 100)
        if close > 0 and not any(sign in text[end:close] for sign in " \n\t"):
            return close
    return end


def _tokens(text: str) -> Iterator[tuple[int, int]]:
    """Yield the tokens that look random."""
    for match in _TOKEN.finditer(text):
        run, begin = match[0], match.start()
        is_plain = not any(map(str.isdigit, run)) and not run.isupper()
        if is_plain and len(secrets.TURN.findall(run)) / len(run) < _TURNS / 2:
            continue
        pieces = _PIECE.finditer(run) if "." in run or "/" in run else ()
        parts = [(begin + piece.start(), piece[0], True) for piece in pieces]
        if "." not in run:  # base64 has slashes, too
            bare = run.lstrip("/")
            parts.append((begin + len(run) - len(bare), bare, False))
        for start, part, within_path in parts:
            if _is_random(part, within_path) and not _INTEGRITY.search(
                text, max(0, start - 8), start
            ):
                yield start, start + len(part)


def _is_random(run: str, within_path: bool) -> bool:
    bare = _NO_KEY.sub("", run)
    solid = bare.replace("-", "").replace("_", "")
    is_hex = _HEX.fullmatch(solid) is not None
    if len(bare) < (_MIN_RANDOM if any(map(str.isdigit, bare)) else _MIN_LETTERS):
        return False
    if (solid.isdecimal() and len(solid) < 40) or (
        is_hex and (within_path or len(solid) in _HASHES)
    ):
        return False
    turns = len(secrets.TURN.findall(bare)) / len(bare)
    is_code = bare.isalnum() and bare.isupper() and not bare.isalpha()  # base32
    return (turns >= _TURNS or is_code) and secrets.entropy(bare) >= _BITS
