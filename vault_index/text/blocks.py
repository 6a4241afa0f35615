"""The code and HTML blocks of a markdown text, as CommonMark has them, and the sentences of the rest.

markdown-it-py finds them, and takes 65 ms to load. So two cases are decided without it: no line could
begin such a block, or all blocks are fences at the left margin. A test compares the answers.
"""

from __future__ import annotations

import functools
import itertools
import re
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

FENCE, INDENTED, HTML = "fence", "indented", "html"
CODE = (FENCE, INDENTED)
KINDS = (*CODE, HTML)

# A text with more is hostile (500 pages have 25,000): only its fences at the margin are seen.
# markdown-it's steps are lines x depth, 10 s for this many in twenty nested quotations.
MAX_LINES = 50_000

# what a line may have before the block that begins in it: indentation, marks of lists and quotations
_MARKS = r"[ \t>*+\-0-9.)]"
# a line that may begin or end a block: a fence, HTML, text after four columns of space. The atomic
# group keeps a line of a million spaces linear.
_CANDIDATE = re.compile(
    rf"^(?:(?P<before>{_MARKS}*)(?:(?P<fence>`{{3,}}|~{{3,}})(?P<rest>[^\n]*)|<)"
    rf"|(?>{_MARKS}*?(?:[ ]{{4}}|\t))(?=[^\n]*[^ \t\n]))",
    re.MULTILINE,
)
_KIND_OF_TOKEN = {"fence": FENCE, "code_block": INDENTED, "html_block": HTML}
_RULES = ("code", "fence", "blockquote", "hr", "list", "html_block", "heading", "lheading")


class Block(NamedTuple):
    """Lines `start` up to, without, `end` of a text, counted from 0.

    `mark` opens a fence, which ends with the text where it is not closed.
    """

    kind: str  # fence | indented | html
    start: int
    end: int
    mark: str = ""
    is_closed: bool = True

    def moved(self, lines: int) -> Block:
        return self._replace(start=self.start + lines, end=self.end + lines)


def of_text(text: str) -> Sequence[Block]:
    """Return the blocks of code and HTML in a markdown text, in order. A line ends with a line feed."""
    blocks, is_certain = _at_margin(text)
    return blocks if is_certain or text.count("\n") > MAX_LINES else _of_markdown_it(text)


def fences(text: str) -> list[Block]:
    """Return the code fences in a markdown text, in order."""
    return [block for block in of_text(text) if block.kind == FENCE]


def flags(blocks: Iterable[Block], lines: int, kinds: Collection[str] = KINDS) -> list[bool]:
    """Return for each of so many lines whether it is in a block of these kinds."""
    inside = [False] * lines
    for block in blocks:
        if block.kind in kinds:
            inside[block.start : block.end] = [True] * (block.end - block.start)
    return inside


def code_lines(lines: Sequence[str]) -> list[bool]:
    """Return for each of a text's lines, without their ends, whether it is code: see `CODE`."""
    return flags(of_text("\n".join(lines)), len(lines), CODE)


def with_whole_code(text: str, begin: int, end: int, room: int = 1_500) -> tuple[int, int]:
    """Return a piece of a text, longer or shorter, that cuts no block of code.

    A block that an end of it cuts is in it as a whole, if that adds at most `room` characters.
    """
    starts = [0, *itertools.accumulate(len(line) + 1 for line in text.split("\n"))]
    for block in of_text(text):
        first, last = starts[block.start], min(starts[block.end], len(text))
        if block.kind not in CODE:
            continue
        if first < begin < last:
            begin = first if begin - first <= room else begin
        if first < end < last and last - end <= room:
            end = last
        elif begin < first < end < last:
            end = first
    return begin, end


def _at_margin(text: str) -> tuple[list[Block], bool]:
    """Return the fences at the left margin, and whether nothing else can be a block."""
    blocks: list[Block] = []
    mark, start, line, position = "", 0, 0, 0
    is_certain = True
    for match in _CANDIDATE.finditer(text):
        line += text.count("\n", position, match.start())
        position = match.start()
        before, fence, rest = match["before"], match["fence"], match["rest"]
        if mark:
            closes = fence and fence.startswith(mark) and not rest.strip(" \t")
            if closes and not before.strip(" ") and len(before) < 4:
                blocks.append(Block(FENCE, start, line + 1, mark))
                mark = ""
        elif not fence or before:
            is_certain = False
        elif fence[0] == "~" or "`" not in rest:  # "```x``` y" is inline code
            mark, start = fence, line
    if mark:
        end = text.count("\n") + (not text.endswith("\n"))
        blocks.append(Block(FENCE, start, end, mark, is_closed=False))
    return blocks, is_certain


def _of_markdown_it(text: str) -> list[Block]:
    parser, blocks = _parser(), []
    tokens: list[Token] = []
    # it takes a last line of spaces for none, if no line feed ends it
    parser.block.parse(text if text.endswith("\n") else f"{text}\n", parser, {}, tokens)
    for token in tokens:
        if token.type in _KIND_OF_TOKEN and token.map:
            start, end = token.map
            is_closed = token.type != "fence" or token.content.count("\n") == end - start - 2
            blocks.append(Block(_KIND_OF_TOKEN[token.type], start, end, token.markup, is_closed))
    return blocks


@functools.cache
def _parser() -> MarkdownIt:
    """Return a parser of blocks alone: what is inside a line decides nothing here."""
    from markdown_it import MarkdownIt

    return MarkdownIt("zero", {"html": True}).enable(list(_RULES))


# The sentences of a text, or of a markdown text's prose; and cutting a text at one.
#
# Readers whose results were learned or measured with a rule of their own keep it: the score of prompt
# injections, the passages of the index, the verdicts on lessons.
_CLOSING = r"[\"')\]*_`]*"  # what may be between a full stop and the space after it
_ITEM = re.compile(r"\n\s*(?:[-*+>]\s+|\d+[.)]\s+)?|\A\s*[-*+]\s+")
# also of Chinese and Japanese, whose full stops no space follows
_END = re.compile(rf"[.!?]{_CLOSING}(?:\s+|\Z)|[\u3002\uff01\uff1f]")
_ABBREVIATION = re.compile(r"(?i)(?:\b(?:e\.g|i\.e|etc|vs|cf|approx|no|fig)|(?:^|\s)[A-Z])\.$")
LINE_CHARS = 100
_CUT = re.compile(rf"(?<=[.!?:]){_CLOSING}\s+|\n")
_BLANK_LINE = re.compile(r"\n[ \t]*\n")


def split(text: str) -> list[str]:
    """Return the sentences of a text as they are in it. An item of a list is a sentence."""
    sentences = list[str]()
    for line in _ITEM.split(text):
        begin = 0
        for end in (*(match.end() for match in _END.finditer(line)), len(line)):
            sentence = line[begin:end].strip()
            if sentence and (end == len(line) or not _ABBREVIATION.search(sentence)):
                sentences.append(sentence)
                begin = end
    return sentences


def split_markdown(text: str) -> list[str]:
    """Return the sentences of a markdown text as they are in it, without headings and code."""
    lines = text.split("\n")
    code = code_lines(lines)
    prose = "\n".join(
        "\n" if is_code or line.lstrip().startswith("#") else line
        for line, is_code in zip(lines, code, strict=True)
    )
    return [each for paragraph in _BLANK_LINE.split(prose) for each in split(paragraph)]


def after_title(text: str, title: str) -> str:
    """Return a text without a first sentence that only repeats the title."""
    first = next(iter(split(text)), "")
    is_title = bool(first) and first.rstrip(".").casefold() == title.rstrip(".").casefold()
    return text.lstrip().removeprefix(first).lstrip() if is_title else text


def cut(text: str, limit: int) -> str:
    """Return the beginning of a text, at most `limit` characters, to the end of a sentence or word."""
    if len(text) <= limit:
        return text.strip()
    if limit <= 0:
        return ""
    ends = [match.start() for match in _CUT.finditer(text[: limit + 1])]
    end = next((stop for stop in reversed(ends) if stop >= limit // 3), None)
    if end is None:
        end = text.rfind(" ", 0, limit)
    return text[: end if end > 0 else limit].rstrip()


def ends(text: str, size: int, gap: str = " [...] ") -> str:
    """Return the beginning and the end of a text that is longer than a size."""
    if len(text) <= size:
        return text
    size = max(0, size - len(gap))
    return text[: size - size // 3] + gap + text[len(text) - size // 3 :]


def shorten_line(text: str, limit: int) -> str:
    """Cut a text of one line to at most `limit` characters, at the end of a sentence: …"""
    if len(text) <= limit:
        return text
    short = cut(text, limit - 2)
    return f"{short} …" if short else ""


def composed(text: str) -> str:
    """Return a text in the form of Unicode that keyboards type; some systems take names apart."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def one_line(text: str, limit: int = LINE_CHARS) -> str:
    """Return a text as a line of at most `limit` characters, cut at a word."""
    line = " ".join(text.split())
    if len(line) <= limit:
        return line
    cut = line[: limit - 3]
    end = cut.rfind(" ")
    return (cut[:end] if end > limit // 2 else cut).rstrip(" ,;:-(") + "..."
