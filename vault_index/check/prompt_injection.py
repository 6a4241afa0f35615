"""Prompt injection: text in a lesson that tries to give the agent orders, and invisible characters.

A lesson goes into an agent's context. There it is fenced and labelled as data; this check is the other
line of defence, before a lesson is shared. The patterns are in `patterns/prompt_injection.toml`. Their
key `where` says which view of the text they search:

    (none)     the text as it is read: no invisible characters, no emphasis, sentences in one line
    mark       the text as it is written
    turn       as `mark`; a warning inside code and within a line
    hidden     what a comment or an element that is not shown says
    character  as `mark`; the finding names the character
    sign, act  as read; no finding by itself. The `weight` of what a paragraph has of both counts:
               signs are how an agent is spoken to, acts what it is to do
    report    as it is written, without quotations: what shows that a text reports

Severity: almost never innocent is an error, otherwise a warning, which stops no commit. Signs that add
up hold a lesson back from agents until a person has looked at it, and so does a warning of a pattern
with `holds = true`. An error in what is read is only a warning where the text reports or quotes the
sentence, and for a pattern with `order = true` where the sentence is not an order ("small models ignore
...").

A score that is learned from examples (`scorer`) decides about warnings: a high one, with what signs add
to it, is a warning of its own, called `scored`, and holds a lesson back only together with signs, or with
a pattern that warns. A pattern for prose that warns is dropped where the whole text scores low. Words
that a text hides in a code are searched as well (`encoded`).
"""

from __future__ import annotations

import base64
import re
import unicodedata
from collections.abc import Iterator
from itertools import chain, islice
from typing import NamedTuple

from vault_index.check import pattern, scorer
from vault_index.check.finding import ERROR, WARNING, Finding, line_counter
from vault_index.check.pattern import Pattern
from vault_index.lesson.file import LessonFile

_FILE = "prompt_injection"  # of the patterns
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
    """Return a text of the same length and lines, with full stops in place of reported quotations.

    Tests of a filter and attacks that were seen are quoted in order to report them. A quotation goes
    only if the words around it, other quotations left out, both name such attacks or the defence
    against them (`report-subject`) and report what somebody did about it (`report-verb`), and if they
    ask nobody to do what is quoted (`report-obey`).
    """
    if not _has("report-subject", text):
        return text
    quotations = list(islice(_QUOTATION.finditer(text), _MAX_QUOTATIONS))
    unquoted = _QUOTATION.sub(lambda match: " " * len(match[0]), text)
    pieces, end = [], 0
    for match in quotations:
        around = unquoted[max(0, match.start() - _BEFORE_CHARS) : match.end() + _AFTER_CHARS]
        is_kept = _NAME.fullmatch(match[0]) or _OWN_FENCE.search(match[0])
        is_report = _has("report-subject", around) and _has("report-verb", around)
        if is_report and not is_kept and not _has("report-obey", around):
            pieces += [text[end : match.start()], "." * len(match[0])]
            end = match.end()
    return "".join([*pieces, text[end:]])


def _has(pattern_id: str, words: str) -> bool:
    return pattern.by_id(_FILE, pattern_id).is_in(words, whole=True)


RULE = "prompt-injection"
_Found = tuple[int, Pattern, str, str]  # line, pattern, message, severity
_Worst = dict[tuple[int, str], tuple[str, Pattern]]  # severity and pattern by line and message


class _ScoredPiece(NamedTuple):
    """A piece of a text: its lines, its score, and what its signs add to that."""

    first: int
    last: int
    score: float
    signs: float

    @property
    def is_suspect(self) -> bool:
        return self.score + self.signs > scorer.SUSPECT

    @property
    def is_sure(self) -> bool:
        """Whether it is an order by its words and its signs, or by its words beyond doubt."""
        both = self.signs >= _SIGN_WORTH and self.score + self.signs > scorer.SURE
        return both or (self.signs >= 0 and self.score > scorer.CERTAIN)

    @property
    def holds(self) -> bool:
        """Whether it keeps a lesson from agents without a pattern: a score alone only warns."""
        return self.is_sure and self.signs >= _HOLDING_SIGNS


_COMMENT = re.compile(
    r"<!--(.*?)(?:-->|\Z)|^\[(?://|comment|_metadata_)[^\]\n]{0,200}\]:[ \t]*#?[ \t]*([^\n]*)",
    re.S | re.M,
)
_UNSEEN = "unseen-element"  # the pattern whose group is text in an element that is not shown
_HIDDEN_LETTER = "tag-character"  # of a text that only a model reads
_CARE = "sign-innocent"
_IN_LINKS = re.compile(
    r"!\[([^\]\n]{20,400})\]\(|\]\([^)\s]{1,300}[ \t]{1,9}[\"']([^\"'\n]{20,400})[\"']\)"
)
_LINE_END = re.compile(r"(?<=[\w,])\n(?=\w)")
_INDENT = 80  # characters before a mark that begins its line
_MIN_HIDDEN_WORDS = 3
_WINDOW_CHARS = 900  # whose signs count together
_MIN_SIGN_WEIGHT = 2
_SUSPECT_WEIGHT = 4
_ACTS_WEIGHT = 5  # where hardly anything says that an agent is spoken to
_SURE_WEIGHT = 9
_SIGN_WORTH, _ACT_WORTH = 0.3, 0.15  # what a weight of one adds to a score
_HOLDING_SIGNS = 0.44  # of a piece that no pattern finds: a sign and an act

# Cyrillic and Greek letters that look like Latin ones
_LOOKALIKES = str.maketrans("аеорсухіѕјԁոԛѡВЕНКМОРСТХАІοναιρ", "aeopcyxisjdnqwBEHKMOPCTXAIovaip")

_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
_ASCII_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
# a word of Latin letters and others; Russian words stay as they are
_MIXED_WORD = re.compile(r"[^\W\d_]*[A-Za-z][^\W\d_]*")

_WORDS_BEFORE = 100  # characters in which a word shows that what follows is quoted
_QUOTED = re.compile(r"[\"'`\u201c\u2018\u00ab\u201e\u300c][^\"'`\u201d\u2019\u00bb\n]{0,60}\Z")
_ALL_OF_THEM = re.compile(r"(?i)\b(?:all|any|every|each|your)\b")
_GATED = ("", "sign", "turn")  # views in which a warning needs a score, too
_WORD = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{1,2}|\\w+")
_FEW_WORDS = 13  # in a text with fewer, a score says little
_ENDLESS = 5000  # characters of a line, more than people write: padded, an order scores low
_SCORED = "scored"
_SCORED_WHY = (
    "reads like orders to an agent, by its words taken together: say what people should do and why,"
    " or put what you only report in quotation marks"
)
_ENCODED = "encoded"
_ENCODED_WHY = "hides words of an order, such as in base64"
_SCOPED = "drop-instructions"  # "ignore the above rules for generated code" is harmless


def findings(path: str, text: str) -> Iterator[Finding]:
    """Find prompt injections in a text; of findings that say the same of a line, the worst."""
    plain_text, worst, scores = _look(text, text)
    if worst or scores or plain_text != text:
        unreported = without_reported(text)
        if unreported != text:
            plain_text, worst, scores = _look(text, unreported)
        pairs = zip(unreported.split("\n"), plain_text.split("\n"), strict=True)
        for number, (written, plain) in enumerate(pairs, start=1):
            if written != plain:
                yield Finding(path, number, RULE, _ENCODED_WHY, WARNING, _ENCODED, holds=True)
    is_likely = not worst or (
        any(piece.score + piece.signs > scorer.UNLIKELY for piece in scores)
        or len(_WORD.findall(text)) < _FEW_WORDS
        or any(len(line) > _ENDLESS for line in text.splitlines())
    )
    worst = {
        where: (severity, rule)
        for where, (severity, rule) in worst.items()
        if is_likely or severity == ERROR or rule.where not in _GATED
    }
    is_sure = any(piece.is_sure for piece in scores)
    for (line, message), (severity, rule) in worst.items():
        holds = severity == WARNING and (rule.where == "sign" or rule.holds or is_sure)
        yield Finding(path, line, RULE, message, severity, rule.id, holds)
    for piece in scores:
        is_new = not any(piece.first <= line <= piece.last for line, _ in worst)
        if is_new and piece.is_suspect:
            yield Finding(path, piece.first, RULE, _SCORED_WHY, WARNING, _SCORED, piece.holds)


def _look(text: str, unreported: str) -> tuple[str, _Worst, list[_ScoredPiece]]:
    """Return a text decoded, severity and pattern by line and message, and its pieces.

    `unreported` is the text without reported orders.
    """
    decoded_text = decoded(unreported)
    plain = as_read(decoded_text)
    worst: _Worst = {}
    found = chain(
        _prose(plain),
        _signs(plain),
        _marks(decoded_text),
        _hidden(decoded_text),
        _characters(text, unreported),
    )
    for line, rule, message, severity in found:
        if (line, message) not in worst or (severity, worst[line, message][0]) == (ERROR, WARNING):
            worst[line, message] = severity, rule
    return decoded_text, worst, _scores(plain)


def _scores(plain: str) -> list[_ScoredPiece]:
    line = line_counter(plain)
    return [
        _ScoredPiece(line(start), line(start + len(piece)), score, _signs_add(piece))
        for start, piece, score in scorer.scores(plain)
        if score > scorer.POSSIBLE
    ]


def _signs_add(piece: str) -> float:
    """Return the weight that signs add to a piece's score; it is negative where they ask for care."""
    signs = [rule.weight for rule in _matching("sign", piece)]
    if min(signs, default=0) < 0:
        return _SIGN_WORTH * min(signs)
    acts = sum(rule.weight for rule in _matching("act", piece))
    return _SIGN_WORTH * sum(signs) + _ACT_WORTH * acts


def as_read(text: str) -> str:
    """Return a text as it is read: no invisible characters, wide letters as plain ones; same lines."""
    plain = _ASCII_CONTROL.sub("", text)
    if not text.isascii():
        seen = _NOT_ASCII.sub(_if_seen, plain)
        plain = unicodedata.normalize("NFKC", seen)
        plain = _MIXED_WORD.sub(lambda word: word[0].translate(_LOOKALIKES), plain)
    return re.sub(r"[*_`~]+", _without_emphasis, plain)


def _if_seen(letter: re.Match[str]) -> str:
    return "" if unicodedata.category(letter[0]) in ("Cf", "Cc", "Co") else letter[0]


def _without_emphasis(mark: re.Match[str]) -> str:
    text, start, end = mark.string, mark.start(), mark.end()
    around = (text[max(0, start - 1) : start], text[end : end + 1])
    inside = [bool(re.match(r"\w", neighbour)) for neighbour in around]
    return mark[0] if not any(inside) or (all(inside) and not mark[0].strip("_")) else ""


def _prose(plain: str) -> Iterator[_Found]:
    # the same length: a sentence goes over line ends
    joined = _joined(plain)
    # lines begin in the second only
    one = pattern.searched(_FILE, joined)
    views = dict.fromkeys((one, one.with_breaks(plain)))
    line, care = line_counter(plain), pattern.by_id(_FILE, _CARE)
    may = {view: {rule.id for rule in pattern.rules_for(_FILE, "", view)} for view in views}
    for rule in pattern.rules(_FILE, ""):
        for view in filter(lambda each: rule.id in may[each], views):
            for match in rule.find_in(view):
                severity = _severity(rule, plain, match)
                # the text around speaks about such texts, or asks for care
                if rule.severity == WARNING and care.is_in(pattern.paragraph(joined, match)):
                    continue
                start = match.start() + len(match[0]) - len(match[0].lstrip(" \t\n#>*-"))
                yield line(start), rule, rule.why, severity


def _joined(plain: str) -> str:
    """Return a text of the same length in which a sentence that goes on after a line end is in one."""
    return _LINE_END.sub(" ", plain)


def _severity(rule: Pattern, plain: str, match: re.Match[str]) -> str:
    """Lower an error to a warning where the text around shows that it is a report."""
    if rule.severity == WARNING:
        return WARNING
    line = plain.rfind("\n", max(0, match.start() - _WORDS_BEFORE), match.start()) + 1
    before = plain[max(line, match.start() - _WORDS_BEFORE) : match.start()]
    end = plain.find("\n", match.end(), match.end() + _WORDS_BEFORE)
    after = plain[match.end() : end if end >= 0 else match.end() + _WORDS_BEFORE]
    reported, elsewhere = (_form(name) for name in ("reported", "reported_elsewhere"))
    if _QUOTED.search(before) and (reported.search(before) or elsewhere.search(before + after)):
        return WARNING
    if rule.order and not _is_order(plain, match.start()):
        return WARNING
    scoped = rule.id == _SCOPED and _form("scope").match(match.string, match.end())
    return WARNING if scoped and not _ALL_OF_THEM.search(match[0]) else ERROR


def _form(name: str) -> re.Pattern[str]:
    return pattern.form(_FILE, name)


def _is_order(plain: str, start: int) -> bool:
    """Whether the verb that begins here can be an order, by the word before it."""
    before = plain[max(0, start - 30) : start]
    if before.endswith("\n") and before[-2:-1].isalnum():
        return plain[start].isupper()  # or it is a sentence that goes on
    return bool(_form("before_order").search(before)) or not plain[start].isascii()


def _signs(plain: str) -> Iterator[_Found]:
    """Find paragraphs in which signs add up: each alone is what teams write, too."""
    line = line_counter(plain)
    for start, paragraph in _paragraphs(plain):
        signs = _matching("sign", paragraph)
        spoken = sum(rule.weight for rule in signs)
        if spoken < 0 or not signs:
            continue
        acts = _matching("act", paragraph)
        weight = sum(rule.weight for rule in signs + acts)
        if weight >= (_SUSPECT_WEIGHT if spoken >= _MIN_SIGN_WEIGHT else _ACTS_WEIGHT):
            reasons = dict.fromkeys(rule.why for rule in signs + acts if rule.weight > 0)
            message = f"reads like orders to an agent: it {', '.join(reasons)}"
            severity = ERROR if weight >= _SURE_WEIGHT else WARNING
            yield line(start), max(signs, key=lambda rule: rule.weight), message, severity


def _matching(where: str, paragraph: str) -> list[Pattern]:
    view = pattern.searched(_FILE, _joined(paragraph))
    rules = pattern.rules_for(_FILE, where, view)
    return [rule for rule in rules if next(rule.find_in(view), None)]


def _paragraphs(text: str) -> Iterator[tuple[int, str]]:
    """Yield windows of a text, and where each begins: whole paragraphs, of a long one its pieces."""
    start = 0
    while start < len(text):
        end = text.rfind("\n\n", start + 1, start + _WINDOW_CHARS)
        if end < 0 or len(text) - start <= _WINDOW_CHARS:
            end = min(len(text), start + _WINDOW_CHARS)
        yield start, text[start:end]
        start = end


# an image and the definition of its address, which may be in another place
_IMAGE_NAME = re.compile(r"!\[([^\]\n]{0,80})\](?:\[([^\]\n]{0,80})\])?(?!\()")
_DEFINITION = re.compile(r"^( {0,3})\[([^\]\n]{1,80})\]:[ \t]*<?([^\n>]{1,400})>?[ \t]*$", re.M)


def _with_addresses(text: str) -> str:
    """Return a text of the same lines in which the definition of an image's address is that image."""
    names = (second or first for first, second in _IMAGE_NAME.findall(text))
    images = {" ".join(name.casefold().split()) for name in names}

    def shown(line: re.Match[str]) -> str:
        is_image = " ".join(line[2].casefold().split()) in images
        return f"{line[1]}![{line[2]}]({line[3]})" if is_image else line[0]

    return _DEFINITION.sub(shown, text) if images else text


def _marks(text: str) -> Iterator[_Found]:
    text = _with_addresses(text)
    lowered = pattern.in_lower_case(text)
    line = line_counter(text)
    file = LessonFile.of_text(text, "")
    for rule in (*pattern.rules(_FILE, "mark"), *pattern.rules(_FILE, "turn")):
        for match in rule.find(text, lowered):
            number, severity = line(match.start()), rule.severity
            start = match.start()
            _, newline, before = text[max(0, start - _INDENT) : start].rpartition("\n")
            begins_line = (newline or start < _INDENT) and not before.strip(" \t>*#-")
            if rule.where == "turn" and (
                file.fence_starts[number - 1] is not None or not begins_line
            ):
                severity = WARNING
            yield number, rule, rule.why, severity


def _hidden(text: str) -> Iterator[_Found]:
    line = line_counter(text)
    for start, hidden in hidden_texts(text):
        for rule in pattern.rules(_FILE, "hidden"):
            if rule.is_in(hidden, whole=True):
                yield line(start), rule, rule.why, rule.severity


def hidden_texts(text: str) -> Iterator[tuple[int, str]]:
    """Yield the texts in comments, titles of links and elements that are not shown."""
    unseen_texts = pattern.by_id(_FILE, _UNSEEN).find(text, pattern.in_lower_case(text))
    for match in chain(_COMMENT.finditer(text), _IN_LINKS.finditer(text), unseen_texts):
        hidden = as_read(match[match.lastindex] if match.lastindex else "")
        if len(hidden.split()) >= _MIN_HIDDEN_WORDS:
            yield match.start(), hidden


def _characters(text: str, unreported: str) -> Iterator[_Found]:
    """Find invisible characters; a reported quotation may have some."""
    line = line_counter(text)
    if text.isascii() and not _ASCII_CONTROL.search(text):
        return
    for rule in pattern.rules(_FILE, "character"):
        for match in rule.find(text, pattern.in_lower_case(text)):
            message = f"{rule.why} (U+{ord(match[0]):04X})"
            if unreported[match.start()] == match[0] or rule.id == _HIDDEN_LETTER:
                yield line(match.start()), rule, message, rule.severity


# Words that a text hides from readers and patterns, but not from a model: leet, spaced letters, base64,
# hex.
#
# `decoded` writes them plainly, so that the other searches see them. Only what has words of orders to
# an agent when it is decoded is changed: ids, checksums and abbreviations stay.
_MIN_TELLING = 2
_MIN_ORDERS = 4  # words of orders; or half of all words
_LIKE_LEET = re.compile(r"(?i)[a-z][0134578@$|]+[a-z]|(?<!\w)[01345!|@][a-z]{2}")
_MAX_BLOBS = 50  # that are decoded; a text with more is data

_SPLIT = re.compile(
    r"(?<![\w.-])[A-Za-z](?P<between>[-._*~|/+\u00b7\u2022 ])[A-Za-z](?:(?P=between)[A-Za-z])+(?![\w])"
)
_BLOB = re.compile(
    r"(?P<hex>(?<!\w)(?:[0-9a-fA-F]{2}[ :]?){20,2000}(?!\w)|(?:\\x[0-9a-fA-F]{2}){12,2000})"
    r"|(?<![\w+/=-])[A-Za-z0-9+/]{24,4000}={0,2}(?![\w+/=])"
)
_LEET = re.compile(
    r"(?<![\w.@/-])(?=[\w@$!|]*[A-Za-z]|[\w@$!|]*\d[@!|])(?=[\w@$!|]*[0134578@$!|])[\w@$!|]{2,20}(?![\w./@-])"
)
_LEET_LETTERS = str.maketrans("034578@$!|", "oeastbasii")
_MIN_LEET = 3  # words in a line
_SAYS = " : "  # before what the line says: a sentence begins after it
_COMMAND = re.compile(r"\b(?:curl|wget|nc|rm|scp|chmod|bash|sh|eval)\b[^\n]*[|/]")
_HIDDEN_WORD = re.compile(r"[a-z]+")


def decoded(text: str) -> str:
    """Return a text of the same lines with what it hides written plainly; itself if it hides nothing."""
    for sign, step in ((_LIKE_LEET, _without_leet), (_SPLIT, _rejoined), (_BLOB, _unpacked)):
        if sign.search(text):
            text = "\n".join(step(line) for line in text.split("\n"))
    return text


def _without_leet(line: str) -> str:
    """Return a line with letters for the digits of its words, if it gives orders then."""
    if len(_LEET.findall(line)) < _MIN_LEET:
        return line
    plain = _LEET.sub(_in_letters, line)
    new = set(_words(plain)) - set(_words(line))
    bids = any(_form("bids").fullmatch(word) for word in new)
    return plain if bids and sum(map(_is_telling, new)) >= _MIN_TELLING else line


def _in_letters(word: re.Match[str]) -> str:
    """Return a word with letters for its digits; "1" is an i or an l."""
    plain = word[0].lower().translate(_LEET_LETTERS)
    either = plain.replace("1", "i"), plain.replace("1", "l")
    if not either[0].isalpha():
        return word[0]
    return next((each for each in either if _is_telling(each)), either["ll" in plain])


def _rejoined(line: str) -> str:
    """Return a line with the letters of words together, if words of orders come to light."""
    plain = _SPLIT.sub(lambda run: run[0].replace(run["between"], ""), line)
    new = set(_words(plain)) - set(_words(line))
    return plain if sum(map(_is_telling, new)) >= _MIN_TELLING else line


def _unpacked(line: str) -> str:
    blobs = islice(_BLOB.finditer(line), _MAX_BLOBS)
    return _SAYS.join([line, *(words for blob in blobs if _has_orders(words := _from_blob(blob)))])


def _has_orders(words: str) -> bool:
    all_words = _words(words)
    telling = sum(map(_is_telling, all_words))
    orders = telling + sum(_form("common").fullmatch(word) is not None for word in all_words)
    enough = orders >= _MIN_ORDERS or 2 * orders > len(all_words)
    return bool(_COMMAND.search(words)) or (enough and telling > 0)


def _is_telling(word: str) -> bool:
    return _form("telling").fullmatch(word) is not None


def _words(text: str) -> list[str]:
    return _HIDDEN_WORD.findall(text.lower())


def _from_blob(blob: re.Match[str]) -> str:
    """Return the text that base64 or hex stands for, on one line; "" for other bytes."""
    try:
        if blob["hex"]:
            digits = re.sub(r"\\x|[ :]", "", blob["hex"])
            data = bytes.fromhex(digits[: len(digits) // 2 * 2])
        else:
            data = base64.b64decode(blob[0] + "=" * (-len(blob[0]) % 4))
        text = data.decode("utf-8")
    except ValueError:
        return ""
    return " ".join(text.split()) if text.isprintable() or "\n" in text else ""
