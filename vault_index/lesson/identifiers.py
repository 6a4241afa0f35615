"""Exact words of a text: identifiers, error names, flags, paths, versions, and quoted phrases.

Full text splits `repl_co_names` into common words and stems them; here it stays whole. A lesson's
identifiers are a column of its row, in which a query's identifiers are looked up.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from vault_index.text.words import UNSPACED, is_unspaced, small, split_unspaced

MAX_CHARS = 80  # of an identifier; a longer one is data
MAX_IDENTIFIERS = 4000  # of a lesson
MAX_MARKS = 8  # of a query, the first: each is a look-up
SUBJECT_TIMES = 3  # a lesson that says a word so often is about it
# Of notes by others three in four are longer than so many words; in 12% of those that have an identifier
# once it stands in a shorter one.
LONG_WORDS, PASSING_TIMES = 100, 2

_EDGES = "\"'`.,;:!?()[]{}<>*“”\u2018\u2019…|\\=$&%"  # of a word: punctuation around it
_BREAKS = re.compile(r"[^\w-]+")
_FLAG = re.compile(r"(?<![\w-])--?[A-Za-z][\w-]*")
_SHAPE = re.compile(
    r"""--?[A-Za-z][\w-]*                                 # --no-dev
    | \w*[A-Za-z0-9]_\w+ | _\w+                           # snake_case
    | [A-Za-z0-9]*[a-z][A-Z]\w* | [A-Z]{2,}[a-z]\w+       # camelCase, HTTPServer
    | [A-Z][A-Z0-9]{2,}s?                                 # GOARCH
    | (?=\w*\d)(?=\w*[A-Za-z])\w+                         # base64
    | [\w@~-]*(?:[./:@#\\])[\w./:@#\\~-]*\w               # a/path.py, module.name, 1.2.3
    """,
    re.VERBOSE,
)
_QUOTED = re.compile(
    r"\"([^\"\n]{1,200})\"|“([^”\n]{1,200})”|「([^」\n]{1,200})」|『([^』\n]{1,200})』"
)
_CODE = re.compile(r"`([^`\n]{1,200})`")
_CAPITALS = re.compile(r"\b[A-Z]{2,}(?:[ ]+[A-Z]{2,})+\b")  # ON CONFLICT DO NOTHING
_NUMBER = re.compile(r"(?<![\w.,:-])\d{3,}(?![\w,:-]|\.\d)")  # 250003
_LETTER = re.compile(rf"[^\W{UNSPACED}]")
_GOES_ON = re.compile(
    rf"(?:[^\W{UNSPACED}]|---)\Z|[^\W{UNSPACED}]--?\Z"
)  # before a mark: no beginning
_FIRST_SENTENCE = re.compile(r"(?<=[.!?])\s|(?<=[\u3002\uff01\uff1f])|\n\s*\n")


@dataclass(frozen=True, slots=True)
class Mark:
    """An exact word of a query. `parts` stand for it where no lesson has the whole."""

    text: str  # folded
    parts: tuple[str, ...] = ()
    is_phrase: bool = False

    @property
    def is_number(self) -> bool:
        """Whether it is a code of digits alone: that no lesson has it says nothing."""
        return self.text.isdigit()


def column_of(title: str, text: str) -> str:
    """Return the identifiers of a lesson, folded, each once, between spaces."""
    identifiers: dict[str, None] = {}
    for chunk in split_unspaced(f"{title}\n{text}").split():
        word = chunk.strip(_EDGES)
        each = (word, *_BREAKS.split(word), *_FLAG.findall(chunk))
        identifiers |= dict.fromkeys(map(str.lower, filter(_is_identifier, each)))
        if len(identifiers) >= MAX_IDENTIFIERS:
            break
    return " ".join(identifiers)


@lru_cache(maxsize=8)
def of_query(query: str) -> tuple[Mark, ...]:
    """Return the exact words of a query, in their order: phrases first, then identifiers."""
    marks: dict[str, Mark] = {}
    code = [span.strip() for span in _CODE.findall(query) if len(span.strip()) > 1]
    for phrase in [*phrases(query), *code, *_CAPITALS.findall(query)]:
        folded = fold(phrase)
        is_word = " " not in folded and _is_identifier(phrase.strip())
        if not is_word:
            marks.setdefault(folded, Mark(folded, is_phrase=True))
    for number in _NUMBER.findall(query):
        marks.setdefault(number, Mark(number, is_phrase=True))
    inside = {word for phrase in _CAPITALS.findall(query) for word in phrase.lower().split()}
    for chunk in split_unspaced(query).split():
        word = chunk.strip(_EDGES)
        parts = [part.lower() for part in _BREAKS.split(word) if _is_identifier(part)]
        whole = word.lower()
        names = {whole: tuple(part for part in parts if part != whole)}
        if not _is_identifier(word):
            names = dict.fromkeys(parts, ())
        for name, inner in names.items():
            if name not in inside:
                marks.setdefault(name, Mark(name, inner))
    return tuple(marks.values())[:MAX_MARKS]


def phrases(query: str) -> list[str]:
    """Return the quoted phrases of a query, of two characters and more."""
    quoted = ("".join(groups).strip() for groups in _QUOTED.findall(query))
    return [phrase for phrase in quoted if len(phrase) > 1]


def without_quotes(query: str) -> str:
    """Return a query with the quoted phrases as plain words."""
    return _QUOTED.sub(lambda quoted: "".join(filter(None, quoted.groups())), query)


def fold(text: str) -> str:
    """Return a text on one line in small letters, as phrases are compared."""
    return " ".join(small(text).split())


def stands_in(mark: str, title: str, text: str) -> bool:
    """Whether a lesson has the whole of a folded mark."""
    return _stands_in(mark, fold(f"{title}\n{text}"))


def is_about(mark: str, title: str, text: str) -> bool:
    """Whether a lesson is about a folded mark: title, first sentence, or three times and more."""
    first = _FIRST_SENTENCE.split(text.strip(), maxsplit=1)[0]
    return _stands_in(mark, fold(f"{title}\n{first}")) or fold(text).count(mark) >= SUBJECT_TIMES


def is_in_passing(mark: str, text: str) -> bool:
    """Whether a folded mark stands once in a text that is long."""
    return fold(text).count(mark) < PASSING_TIMES and len(text.split()) > LONG_WORDS


def _stands_in(mark: str, folded: str) -> bool:
    """Whether a folded text has a mark as a whole; a flag may be named without its dashes."""
    start = folded.find(mark)
    while start >= 0:
        end = start + len(mark)
        begins = is_unspaced(mark[0]) or not _GOES_ON.search(folded, max(0, start - 3), start)
        if begins and (is_unspaced(mark[-1]) or not _LETTER.match(folded, end)):
            return True
        start = folded.find(mark, start + 1)
    return False


def _is_identifier(word: str) -> bool:
    if not 2 <= len(word) <= MAX_CHARS or not _SHAPE.fullmatch(word):
        return False
    return any(map(str.isalpha, word)) or word.count(".") > 1  # 1.2.3 is a version, 1.5 a number
