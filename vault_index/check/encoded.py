"""Words that a text hides from readers and patterns, but not from a model: rot13, leet, base64.

`decoded` writes them plainly, so that the other searches see them. Only what has words of orders to
an agent when it is decoded is changed: ids, checksums and abbreviations stay.
"""

from __future__ import annotations

import base64
import codecs
import re
from itertools import islice

_ORDERS = frozenset(
    """
    admin agent agents all allow always any approve asking assistant authorized backdoor before change
    code command commands comply config confirm copy credentials curl delete description developer disable
    disregard do download drop env every execute exfiltrate export file files follow forget from give
    grant hide history home http https ignore include inform install instruction instructions into
    it key keys leak leave mention merge message must never not obey of open order orders output
    override password passwords permission permissions post previous print private prompt prompts
    public pull push put read remove repository request reveal review root rules run secret secrets
    send server set settings shell show skip ssh sudo system tell tests text the their them then this to
    token tokens told upload user users variables where wget with without write you your
    """.split()
)
# of these, some: "the" and "it" alone are chance
_TELLING = frozenset(word for word in _ORDERS if len(word) > 4) - {
    "before",
    "every",
    "their",
    "where",
}
_MIN_TELLING = 2
_MIN_ORDERS = 4  # words of orders; or half of all words
_MAX_BLOBS = 50  # that are decoded; a text with more is data

# words of orders in rot13, and read from their end
_ROT13 = (
    "gur|naq|lbhe?|hfref?|jvgubhg|vagb|sebz|vtaber|cerivbhf|vafgehpgvbaf?|frpergf?|gbxraf?|arire|qvfnoyr"
    "|nccebir|qryrgr|rkrphgr|flfgrz|cnffjbeqf?|hcybnq|cevingr|nyy|lbh|gryy|fraq|ernq|jevgr"
)
_REVERSED = (
    "eht|dna|lla|ruoy|s?resu|tuohtiw|otni|morf|erongi|suoiverp|s?noitcurtsni|s?terces|s?nekot|reven"
    "|elbasid|evorppa|eteled|etucexe|metsys|s?drowssap|daolpu|etavirp|llet|dnes|daer|etirw"
)
_TURNED = re.compile(rf"(?i)\b(?:{_ROT13}|{_REVERSED})\b")
_LIKE_LEET = re.compile(r"[a-z][0134578@$]+[a-z]|\b[0134578@$][a-z]{2}")
_LEET = re.compile(
    r"(?i)(?<![\w.])(?=[\w@$!|]*[a-z])(?=[\w@$!|]*[0134578@$!|])[\w@$!|]{2,20}(?![\w.])"
)
_LEET_LETTERS = str.maketrans("034578@$!|", "oeastbasii")
_SPLIT = re.compile(
    r"(?<![\w.-])[A-Za-z](?P<between>[-._*~|/+\u00b7\u2022 ])[A-Za-z](?:(?P=between)[A-Za-z])+(?![\w])"
)
_BLOB = re.compile(
    r"(?P<hex>(?<!\w)(?:[0-9a-fA-F]{2}[ :]?){20,2000}(?!\w)|(?:\\x[0-9a-fA-F]{2}){12,2000})"
    r"|(?<![\w+/=-])[A-Za-z0-9+/]{24,4000}={0,2}(?![\w+/=])"
)
_SAYS = " : "  # before what the line says: a sentence begins after it
_COMMAND = re.compile(r"\b(?:curl|wget|nc|rm|scp|chmod|bash|sh|eval)\b[^\n]*[|/]")
_WORD = re.compile(r"[a-z]+")


def decoded(text: str) -> str:
    """Return a text of the same lines with what it hides written plainly; itself if it hides nothing."""
    for sign, step in (
        (_TURNED, _turned_back),
        (_LIKE_LEET, _without_leet),
        (_SPLIT, _rejoined),
        (_BLOB, _unpacked),
    ):
        if sign.search(text):
            text = "\n".join(step(line) for line in text.split("\n"))
    return text


def _turned_back(line: str) -> str:
    if len(_TURNED.findall(line)) < _MIN_TELLING:
        return line
    both = (_if_orders(line, turned) for turned in (codecs.encode(line, "rot13"), line[::-1]))
    return _SAYS.join(dict.fromkeys([line, *both]))


def _without_leet(line: str) -> str:
    if len(_LIKE_LEET.findall(line)) < _MIN_TELLING:
        return line
    return _if_orders(line, _LEET.sub(_in_letters, line))


def _rejoined(line: str) -> str:
    return _if_orders(line, _SPLIT.sub(lambda run: run[0].replace(run["between"], ""), line))


def _unpacked(line: str) -> str:
    blobs = islice(_BLOB.finditer(line), _MAX_BLOBS)
    return _SAYS.join([line, *(words for blob in blobs if _has_orders(words := _from_blob(blob)))])


def _if_orders(line: str, plain: str) -> str:
    """Return a line that was decoded if words of orders came to light."""
    new = set(_words(plain)) - set(_words(line))
    return plain if len(new & _TELLING) >= _MIN_TELLING else line


def _has_orders(words: str) -> bool:
    every = _words(words)
    orders = [word for word in every if word in _ORDERS]
    if _COMMAND.search(words):
        return True
    enough = len(orders) >= _MIN_ORDERS or 2 * len(orders) > len(every)
    return enough and len(_TELLING.intersection(orders)) >= 1


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _in_letters(match: re.Match[str]) -> str:
    """Return a word with letters for its digits; "1" is an i or an l."""
    plain = match[0].lower().translate(_LEET_LETTERS)
    either = plain.replace("1", "i"), plain.replace("1", "l")
    if not either[0].isalpha():
        return match[0]
    return either[1] if either[1] in _ORDERS else either[0]


def _from_blob(blob: re.Match[str]) -> str:
    """Return the text that base64 or hex stands for, on one line; "" for other bytes."""
    try:
        if blob["hex"]:
            digits = re.sub(r"\\x|[ :]", "", blob["hex"])
            return _readable(bytes.fromhex(digits[: len(digits) // 2 * 2]))
        return _readable(base64.b64decode(blob[0] + "=" * (-len(blob[0]) % 4)))
    except ValueError:
        return ""


def _readable(data: bytes) -> str:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return ""
    return " ".join(text.split()) if text.isprintable() or "\n" in text else ""
