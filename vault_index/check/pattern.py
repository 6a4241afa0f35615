"""Patterns as data: the rules in `patterns/*.toml`, compiled when a text first needs them.

A file has an optional table `words`, which names parts of regular expressions (`%AGENT%` in a regex
stands for `AGENT`), one of `forms` (see `form`), and a list of `[[pattern]]`:

    id        short name, printed with each finding
    why       what is wrong, in words
    regex     a regular expression or a list of them; a match of any is a finding
    match     a text that must be found, or a list of them
    no_match  a text that must not be found by this pattern, or a list of them
    severity  of a prompt injection: "error" or "warning" (the default); each secret is an error
    keywords  lower-case texts; a text that has none of them is not searched
    near      regular expressions that must all match close to it
    unless       regular expressions, none of which may match in its sentence
    unless_near  regular expressions, none of which may match close to it
    not_after    regular expressions, none of which may match in the sentence before it: negations

and what only some checks know: `where`, `order`, `weight`, `holds`, `value` (see prompt_injection.py and
secrets.py). The tests run each pattern on its own texts. Gaps are bounded ({0,40}), because texts may
be hostile.
"""

from __future__ import annotations

import functools
import importlib
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from vault_index.check.finding import WARNING
from vault_index.check.literals import Literals, is_token

T = TypeVar("T")
FOLDER = Path(__file__).parent / "patterns"
NEAR_CHARS = 200  # about two sentences before and after
_SENTENCE_CHARS = 300
_SENTENCE_END = re.compile(r"[.!?](?=\s|$)|\n|[\u3002\uff01\uff1f]")
# letters that `re` takes for another without case, and `str.lower` does not
_SAME_LETTER = str.maketrans(
    "\u017f\u0131\u03c2\u03f5\u03f0\u1c80\u1c81\u1c82\u1c83\u1c84\u1c85\u1c86",
    "si\u03c3\u03b5\u03ba\u0432\u0434\u043e\u0441\u0442\u0442\u044a",
)
_IGNORE_CASE = "(?i)"
# where the parts are of a piece of an expression that every match has
_PARTS = {"SUBPATTERN": 3, "MAX_REPEAT": 2, "MIN_REPEAT": 2, "POSSESSIVE_REPEAT": 2, "ASSERT": 1}
# at the beginning of an expression: of the matches nothing is in them
_WITHOUT_WIDTH = ("AT", "ASSERT", "ASSERT_NOT")
_LEAST_HEAD, _MOST_HEAD = 2, 5  # letters of a word with which matches begin
_MOST_HEADS = 64  # more take longer to look for than the expression itself
_FEW = 8  # letters in brackets
_REGEXES = ("regex", "near", "unless", "unless_near", "not_after")
_LISTS = (*_REGEXES, "keywords", "match", "no_match")


@dataclass(frozen=True, slots=True)
class Pattern:
    """One rule. `match` and `no_match` are its examples; see the module for the other fields."""

    id: str
    why: str
    regex: tuple[str, ...]
    severity: str = WARNING
    where: str = ""
    order: bool = False
    value: str = ""
    weight: int = 0
    holds: bool = False
    keywords: tuple[str, ...] = ()
    near: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()
    unless_near: tuple[str, ...] = ()
    not_after: tuple[str, ...] = ()
    match: tuple[str, ...] = ()
    no_match: tuple[str, ...] = ()

    def find(self, text: str, lowered: str, *, whole: bool = False) -> Iterator[re.Match[str]]:
        """Yield the matches in a text; `lowered` is what `in_lower_case` makes of it.

        With `whole`, the text is one piece: `near` and `unless` look at all of it.
        """
        has = lowered.__contains__
        if self.keywords and not any(map(has, self.keywords)):
            return
        for regex in self.regex:
            if all(any(map(has, words)) for words in _needed(regex)):
                yield from self._matches(regex, text, lowered, whole=whole)

    def find_in(self, text: Searched) -> Iterator[re.Match[str]]:
        """Yield the same for a text that has a keyword: see `rules_for`."""
        for regex in self.regex:
            if not any(map(text.words.isdisjoint, _needed(regex))):
                yield from self._matches(regex, text.text, text.lowered)

    def _matches(
        self, regex: str, text: str, lowered: str, *, whole: bool = False
    ) -> Iterator[re.Match[str]]:
        for match in _matches(regex, text, lowered):
            if self._fits(text, match, whole=whole):
                yield match

    def is_in(self, text: str, *, whole: bool = False) -> bool:
        """Whether a text has a match: see `find`."""
        return next(self.find(text, in_lower_case(text), whole=whole), None) is not None

    def _fits(self, text: str, match: re.Match[str], *, whole: bool) -> bool:
        if self.near or self.unless_near:
            around = text if whole else paragraph(text, match)
            if not all(compiled(regex).search(around) for regex in self.near):
                return False
            if any(compiled(regex).search(around) for regex in self.unless_near):
                return False
        if self.unless or self.not_after:
            before, after = ("", text) if whole else sentence(text, match)
            if any(compiled(regex).search(before + after) for regex in self.unless):
                return False
            return not any(compiled(regex).search(before) for regex in self.not_after)
        return True


def in_lower_case(text: str) -> str:
    """Return a text in lower case, of the same length, as `re` compares letters without case."""
    if text.isascii():
        return text.lower()
    return text.replace("\u0130", "i").lower().translate(_SAME_LETTER)


def paragraph(text: str, match: re.Match[str]) -> str:
    """Return a match with up to NEAR_CHARS on each side, within its paragraph."""
    before = text[max(0, match.start() - NEAR_CHARS) : match.start()].rpartition("\n\n")[2]
    after = text[match.end() : match.end() + NEAR_CHARS].partition("\n\n")[0]
    return before + match[0] + after


def sentence(text: str, match: re.Match[str]) -> tuple[str, str]:
    """Return the sentence a match is in: what is before the match, and the match with the rest."""
    before = text[max(0, match.start() - _SENTENCE_CHARS) : match.start()]
    ends = list(_SENTENCE_END.finditer(before))
    after = text[match.end() : match.end() + _SENTENCE_CHARS]
    end = _SENTENCE_END.search(after)
    return before[ends[-1].end() if ends else 0 :], match[0] + after[: end.end() if end else None]


@functools.cache
def compiled(regex: str) -> re.Pattern[str]:
    """Compile a regular expression once. `^` and `$` are ends of lines."""
    return re.compile(regex, re.MULTILINE)


def _matches(regex: str, text: str, lowered: str) -> Iterator[re.Match[str]]:
    """Yield the matches of a regular expression, as `finditer` does.

    Without case it tries all its alternatives at each letter. So it is tried only at the words with which
    a match can begin, if these are known.
    """
    heads = _heads(regex)
    if not heads:
        yield from compiled(regex).finditer(text)
        return
    end = 0
    found = [head for head in heads if head in lowered]
    for start in sorted({start for head in found for start in _places(lowered, head)}):
        if start >= end and (match := compiled(regex).match(text, start)):
            yield match
            end = match.end()


def _places(text: str, word: str) -> Iterator[int]:
    start = text.find(word)
    while start >= 0:
        yield start
        start = text.find(word, start + 1)


@functools.cache
def _needed(regex: str) -> tuple[frozenset[str], ...]:
    """Return words of which any match has one each; a text without them need not be searched."""
    return tuple(_needed_in(_tree(regex)))


@functools.cache
def _heads(regex: str) -> frozenset[str]:
    """Return words with one of which any match begins; none where that cannot be said."""
    heads = _heads_of(_tree(regex))
    if any(len(head) < _LEAST_HEAD for head in heads):
        return frozenset()
    lengths = range(_MOST_HEAD, _LEAST_HEAD - 1, -1)
    cuts = (frozenset(head[:length] for head in heads) for length in lengths)
    return next((cut for cut in cuts if len(cut) <= _MOST_HEADS), frozenset())


def _tree(regex: str) -> Sequence[tuple[object, Any]]:
    """Parse a regular expression as Python does; [] if its parser is not there."""
    try:
        tree = importlib.import_module("re._parser").parse(regex, re.MULTILINE)
    except (ImportError, AttributeError):  # private to Python: without it, every text is searched
        return ()
    return tuple(tree)


def _heads_of(tree: Sequence[tuple[object, Any]], letters: int = _MOST_HEAD) -> frozenset[str]:
    """Return the beginnings of what a parsed expression matches; "" among them where any may be."""
    for index, (kind, value) in enumerate(tree if letters else ()):
        name, rest = str(kind), tree[index + 1 :]
        if name in _WITHOUT_WIDTH:
            continue
        if firsts := _letters_of(name, value):
            after = _heads_of(rest, letters - 1)
            return frozenset(first + head for first in firsts for head in after)
        if name == "SUBPATTERN":
            return _heads_of((*value[_PARTS[name]], *rest), letters)
        if name == "BRANCH":
            return frozenset().union(*(_heads_of((*way, *rest), letters) for way in value[1]))
        if name in _PARTS:  # it is repeated
            least, most = value[0], value[1]
            inside = tuple(value[_PARTS[name]])
            once = _heads_of((*inside, *(rest if most == 1 else ())), letters)
            return once if least else once | _heads_of(rest, letters)
        break
    return frozenset([""])


def _letters_of(name: str, value: Any) -> frozenset[str]:
    """Return the letters that a part of an expression may be, if it is one of a few."""
    if name == "LITERAL":
        return frozenset([in_lower_case(chr(value))])
    if name != "IN" or len(value) > _FEW or {str(kind) for kind, _ in value} != {"LITERAL"}:
        return frozenset()
    return frozenset(in_lower_case(chr(letter)) for _, letter in value)


def _needed_in(tree: Iterable[tuple[object, Any]]) -> Iterator[frozenset[str]]:
    """Yield sets of words; what a parsed expression matches has a word of each."""
    word = ""
    for name, value in [*((str(name), value) for name, value in tree), ("END", None)]:
        if name == "LITERAL":
            word += in_lower_case(chr(value))
            continue
        if len(word.encode()) >= 3:
            yield frozenset([word])
        word = ""
        if name == "BRANCH":
            ways = [max(_needed_in(way), key=_rarity, default=frozenset()) for way in value[1]]
            if all(ways):
                yield frozenset().union(*ways)
        elif name in _PARTS and not (name.endswith("REPEAT") and value[0] == 0):
            yield from _needed_in(value[_PARTS[name]])


def _rarity(words: frozenset[str]) -> tuple[int, int]:
    return min(len(word.encode()) for word in words), -len(words)


@functools.cache
def rules(name: str, where: str | None = None) -> tuple[Pattern, ...]:
    """Return the patterns of `patterns/NAME.toml`, of a view of the text if it is named."""
    return tuple(rule for rule in load(name) if where in (None, rule.where))


class Searched(NamedTuple):
    """A text, the same in lower case, and which words it has that patterns look for first.

    A phrase among them may be missing, where its parts are somewhere in the text.
    """

    text: str
    lowered: str
    words: frozenset[str]

    def with_breaks(self, text: str) -> Searched:
        """Return the same for a text that differs in its spaces and line ends only."""
        return self if text == self.text else Searched(text, in_lower_case(text), self.words)


@functools.lru_cache(maxsize=8)  # the same text is searched by several lists
def searched(name: str, text: str) -> Searched:
    """Return a text as the patterns of `patterns/NAME.toml` search it."""
    lowered = in_lower_case(text)
    return Searched(text, lowered, _literals(name).found_in(lowered))


def rules_for(name: str, where: str | None, text: Searched) -> Iterator[Pattern]:
    """Yield the patterns, as `rules` lists them, of which a text has a keyword."""
    all_rules, by_word = rules(name, where), _by_keyword(name, where)
    indexes = set(by_word[""])
    for word in by_word.keys() & text.words:
        found = by_word[word]
        if not indexes.issuperset(found) and (is_token(word) or word in text.lowered):
            indexes.update(found)
    return (all_rules[index] for index in sorted(indexes))


@functools.cache
def _by_keyword(name: str, where: str | None) -> Mapping[str, Sequence[int]]:
    """Return the indexes of patterns among `rules` by each keyword, and by "" those without."""
    indexes: dict[str, list[int]] = {"": []}
    for index, rule in enumerate(rules(name, where)):
        for word in rule.keywords or [""]:
            indexes.setdefault(word, []).append(index)
    return indexes


@functools.cache
def _literals(name: str) -> Literals:
    patterns = load(name)
    needed = {
        word
        for rule in patterns
        for regex in rule.regex
        for each in _needed(regex)
        for word in each
    }
    return Literals(needed.union(*(rule.keywords for rule in patterns)))


@functools.cache
def load(name: str) -> tuple[Pattern, ...]:
    """Read `patterns/NAME.toml`."""
    return _patterns(_data(name))


@functools.cache
def form(name: str, key: str) -> re.Pattern[str]:
    """Return the alternatives under a key of the table `forms` of `patterns/NAME.toml`, as one."""
    return re.compile("|".join(_data(name)["forms"][key]))


@functools.cache
def _data(name: str) -> dict[str, Any]:
    return tomllib.loads((FOLDER / f"{name}.toml").read_text("utf-8"))


@functools.cache
def by_id(name: str, pattern_id: str) -> Pattern:
    """Return one pattern of `patterns/NAME.toml`."""
    return next(pattern for pattern in load(name) if pattern.id == pattern_id)


def parse(text: str) -> tuple[Pattern, ...]:
    """Read patterns from TOML. Raises ValueError for an unknown key, TypeError for a missing one."""
    return _patterns(tomllib.loads(text))


def _patterns(data: Mapping[str, Any]) -> tuple[Pattern, ...]:
    words: dict[str, str] = {}
    for word, regex in data.get("words", {}).items():
        words[word] = _filled(regex, words)
    flags = _IGNORE_CASE if data.get("ignore_case") else ""
    patterns: list[Pattern] = []
    for values in data["pattern"]:
        unknown = set(values) - {key.name for key in fields(Pattern)}
        if unknown:
            raise ValueError(f"{values.get('id')}: unknown key {sorted(unknown)[0]}")
        for key in _LISTS:
            value = values.get(key, ())
            values[key] = (value,) if isinstance(value, str) else tuple(value)
        for key in _REGEXES:
            values[key] = tuple(flags + _filled(regex, words) for regex in values[key])
        patterns.append(Pattern(**values))
    return tuple(patterns)


def _filled(regex: str, words: Mapping[str, str]) -> str:
    return re.sub(r"%([A-Z_]+)%", lambda match: words[match[1]], regex)
