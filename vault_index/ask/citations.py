"""The citations of an answer, checked while it is written: a number that was not returned is struck.

    "heap [1, 9]. See `a[7]`"  ->  "heap [1]. See `a[7]`"      where 1 to 3 were returned

A citation is a number in brackets, or several: [1], [1, 2], [1-3], [^1], 【1】, 【1†lines】. Each is
passed on as `[1]`, alone. The address of `[1](address)` is dropped: only a source's own is
checked.
Brackets inside code, in a fence or between backticks of one line, are code.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from vault_index.errors import EmbedderError
from vault_index.text.blocks import split_markdown

if TYPE_CHECKING:
    from vault_index.vault import Vault

_OPENING, _CLOSING = "\\[\uff3b\u3010", "\\]\uff3d\u3011"
_DASHES = "\u2010\u2011\u2012\u2013\u2014\u2212-"
_MARKS = " \t>-*+.)0123456789"  # what may be before a fence in its line
_GAP = "\u2026"  # in place of what is struck, where its neighbours would make something new
MAX_CODE_CHARS = 1_000  # of code between backticks
MAX_ADDRESS_CHARS = 2_000
MAX_GROUP_CHARS = 200

_INNER = rf"[\d \t^,;\u3001\uff0c{_DASHES}]{{0,{MAX_GROUP_CHARS}}}"  # what a group may have
# some models write 【1†lines】
_NOTED = rf"\u3010{_INNER}[\u2020:][^\n{_CLOSING}]{{0,{MAX_GROUP_CHARS}}}"
_BEGUN = rf"(?:[{_OPENING}]{_INNER}|{_NOTED})"
_ADDRESS = rf"\([^\s{_OPENING}(`){_GAP}]{{0,{MAX_ADDRESS_CHARS}}}"
_SPAN = rf"(?P<run>`+)(?!`)[^\n]{{1,{MAX_CODE_CHARS}}}?(?<!`)(?P=run)(?!`)"
_TOKEN = re.compile(
    rf"(?P<code>{_SPAN})|(?P<group>{_BEGUN})[{_CLOSING}](?P<address>(?:{_ADDRESS}\))+)?"
    rf"|[^{_OPENING}`~\\\n]+|\\[\\`]?|\n|[{_OPENING}]|`+|~+"
)
# what the next piece may make another token of
_UNDECIDED = re.compile(
    rf"(?s:(?!{_SPAN}.))`++[^\n]{{0,{MAX_CODE_CHARS}}}+`*+\Z|~+\Z|\\\Z"
    rf"|{_BEGUN}(?:[{_CLOSING}](?:{_ADDRESS}\))*(?:{_ADDRESS})?)?\Z"
)
_FENCE = re.compile(r"(`{3,}(?=[^`\n]*(?:\n|\Z))|~{3,})[^\n]*\n?")
_PART = re.compile(rf"(\d+)(?:[{_DASHES}](\d+))?")
_BETWEEN = re.compile(r"[\s^,;\u3001\uff0c]+")
_CITED = re.compile(r"\[\d+\]\Z")
_AFTER_CITED = re.compile(r"[,;\u3001\uff0c]?\s*")  # goes where the citation after it is struck
# with what follows, a citation or its address
_OPEN = re.compile(rf"(?:[{_OPENING}]{_INNER}|\]{_ADDRESS})\Z")


class Citations:
    """Takes an answer in pieces and returns what of it may be shown. `cited` are numbers, in order.

    White space around the whole is dropped. Undecided text is held back, at most to the end of its
    line.
    """

    def __init__(self, numbers: Collection[int]) -> None:
        self.cited: list[int] = []
        self._numbers = sorted(numbers)
        self._rest = ""  # not decided yet
        self._is_whole = False  # nothing follows the rest
        self._out: list[str] = []
        self._tail = ""  # the end of what was passed on
        self._space = ""  # white space, and a comma after a citation, not passed on yet
        self._fence = ""  # that the code around us ends with
        self._is_line_start = True

    def feed(self, piece: str) -> str:
        """Take a piece of an answer; return what is decided since the last."""
        self._rest += piece
        at = 0
        while at < len(self._rest) and (end := self._step(at)) is not None:
            at = end
        self._rest = self._rest[at:]
        shown, self._out = "".join(self._out), []
        return shown

    def end(self) -> str:
        self._is_whole = True
        return self.feed("") + self._space.strip()

    def _step(self, at: int) -> int | None:
        """Take what begins at an index of the rest; return where it ends, None if not decided."""
        text = self._rest
        if self._fence:
            return self._code_line(at)
        if self._is_line_start and (fence := _FENCE.match(text, at)):
            if not fence[0].endswith("\n") and not self._is_whole:
                return None
            self._pass_on(fence[0])
            self._fence = fence[1]
            return fence.end()
        if not self._is_whole and _UNDECIDED.match(text, at):
            return None
        token = _TOKEN.match(text, at)
        assert token  # each character begins one
        if token["group"]:
            self._group(token)
        elif token["code"]:
            self._pass_on(token[0])
        else:
            self._plain(token[0])
        return token.end()

    def _plain(self, text: str) -> None:
        """Pass on text that is neither citation nor code; white space at its end waits."""
        if text == "\n":
            self._space += text
            self._is_line_start = True
            return
        starts_line = self._is_line_start and not text.strip(_MARKS)
        if not self._space and self._tail.endswith("]") and _CITED.search(self._tail):
            after = _AFTER_CITED.match(text)
            assert after  # it matches nothing, too
            self._space, text = after[0], text[after.end() :]
        if body := text.rstrip():
            self._pass_on(body)
        self._space += text[len(body) :]
        self._is_line_start = starts_line

    def _pass_on(self, text: str) -> None:
        text = self._space + text if self._tail else text.lstrip()
        self._out.append(text)
        self._tail = (self._tail + text)[-MAX_ADDRESS_CHARS - 2 :]
        self._space, self._is_line_start = "", False

    def _group(self, token: re.Match[str]) -> None:
        """Pass on the citations of a group that were returned, if it is one and has any."""
        inner, *note = re.split("[\u2020:]", token["group"][1:], maxsplit=1)
        numbers = self._numbers_of(inner)
        if numbers:
            self.cited += [number for number in numbers if number not in self.cited]
            self._pass_on("".join(f"[{number}]" for number in numbers))
        elif numbers is None and not note:
            self._plain(token[0])
        else:
            self._strike(self._rest[token.end() : token.end() + 1], bool(token["address"]))

    def _strike(self, following: str, has_address: bool) -> None:
        joins = following == "(" and self._tail.endswith("]")
        if joins or f"{self._tail}{self._space}".endswith("`") or _OPEN.search(self._tail):
            self._pass_on(_GAP)
        elif "\n" not in self._space and (has_address or not following.isalnum()):
            self._space = ""  # "the heap [9]." -> "the heap.", "[1], [9]." -> "[1]."

    def _numbers_of(self, inner: str) -> list[int] | None:
        """Return the returned numbers that a group names; None if it holds anything else."""
        parts = [part for part in _BETWEEN.split(inner) if part]
        ranges = [
            (int(part[1]), int(part[2] or part[1])) for part in map(_PART.fullmatch, parts) if part
        ]
        if not parts or len(ranges) < len(parts):
            return None
        named = (each for first, last in ranges for each in self._numbers if first <= each <= last)
        return list(dict.fromkeys(named))

    def _code_line(self, at: int) -> int | None:
        """Pass on a line of a fence."""
        end = self._rest.find("\n", at) + 1
        if not end and not self._is_whole:
            return None
        end = end or len(self._rest)
        self._pass_on(self._rest[at:end])
        line = self._rest[at:end].strip(" \t\r\n>")
        if len(line) >= len(self._fence) and not line.strip(self._fence[0]):
            self._fence, self._is_line_start = "", True
        return end


def check(text: str, numbers: Collection[int]) -> tuple[str, list[int]]:
    """Return a whole answer without citations of other numbers, and those that it cites, in order."""
    citations = Citations(numbers)
    checked = citations.feed(text) + citations.end()
    return checked, citations.cited


# The sentences of a text that answer a question: by what they mean, else by the words they share.

BEST = 2  # sentences of a passage
MIN_CHARS, MAX_CHARS = 12, 500  # of a sentence that may be set off
MAX_EMBEDDED = 48  # sentences, over all passages: some 5 ms each
WORDS_WEIGHT = 0.3  # of the share of the question's words that a sentence has, beside the cosine
MIN_SCORE = 0.25
_WORD = re.compile(r"\w{3,}")


def best(vault: Vault, question: str, texts: Sequence[str]) -> list[tuple[str, ...]]:
    """Return, for each text, up to `BEST` of its sentences that answer a question, best first."""
    by_text = [
        [
            each
            for each in dict.fromkeys(split_markdown(text))
            if MIN_CHARS <= len(each) <= MAX_CHARS
        ]
        for text in texts
    ]
    scores = _scores(vault, question, [each for several in by_text for each in several])
    ranked = (sorted(several, key=lambda each: -scores[each]) for several in by_text)
    return [tuple(each for each in some[:BEST] if scores[each] >= MIN_SCORE) for some in ranked]


def _scores(vault: Vault, question: str, sentences: Sequence[str]) -> dict[str, float]:
    asked = words_of(question)
    shared = {each: len(asked & words_of(each)) / max(1, len(asked)) for each in sentences}
    some = list(shared)[:MAX_EMBEDDED]
    try:
        embedder = vault.embedder
        if embedder is None or not some:
            return shared
        vectors = embedder.embed_documents(some) @ embedder.embed_query(question)
    except EmbedderError:
        return shared
    cosines = dict(zip(some, map(float, vectors), strict=True))
    return {each: cosines.get(each, 0.0) + WORDS_WEIGHT * share for each, share in shared.items()}


def words_of(text: str) -> set[str]:
    """Return the words of a text as far as they are compared."""
    # the beginning stands for the stem
    return {word[:6] for word in _WORD.findall(text.casefold())}


def runs(text: str, sentences: Iterable[str]) -> list[tuple[str, bool]]:
    """Return a text in pieces that make it up, each with whether it is one of the sentences.

    Line breaks and spaces may differ from the text.
    """
    wanted = [r"\s+".join(map(re.escape, sentence.split())) for sentence in sentences]
    # the longest first: one may begin as another does
    several = "|".join(sorted(filter(None, wanted), key=len, reverse=True))
    pieces = re.split(f"({several})", text) if several else [text]
    return [(piece, bool(number % 2)) for number, piece in enumerate(pieces) if piece]
