"""The sentences that a person wrote in a prompt, without the output and the code that was pasted."""

from __future__ import annotations

import re

from vault_index.transcripts import wording

MOST_LOOKED_AT = 12_000  # characters of a prompt
MOST_WORDS = 60
_PASTED = re.compile(
    r"^\s*(?:[$#>%\u276f]\s|\d{4}-\d\d-\d\d|\d+[.:|]\s*\S*[{}();=]|at \S+\(|File \"|Traceback"
    r"|\[[\w:-]+\]|\+|-{2,}|={2,}|@@"
    r"|remote:|error:|fatal:|warning:|hint:|npm |ERROR|INFO|WARN|DEBUG|https?://\S+\s*$"
    r"|[\w.-]+@[\w.-]+[ :])"
    r"|[{};]\s*$|^\s*[\w./-]+:\d+|\)\s*\{?$|^\s*\S+\s*$|[\u2713\u2705\u274c\U0001f300-\U0001faff]",
)
_CODE_SIGNS = re.compile(r"[{}<>=|\\;$_/\[\]#*+~^]")
_QUOTED = re.compile(r"^\s*>")
_MENTION = re.compile(r"\[Image #?\d*\]|\[Pasted text[^\]]*\]")


def sentences(text: str) -> list[str]:
    """Return the sentences of a prompt that a person wrote, in their order."""
    text = _MENTION.sub("", text[:MOST_LOOKED_AT])
    result: list[str] = []
    lines = wording.plain_lines(text)
    is_paste = len(lines) > 12
    for line, kind in lines:
        if kind == wording.HEADING or _QUOTED.match(line):
            continue
        if line.isascii() and _PASTED.search(line) and (is_paste or len(line.split()) < 4):
            continue
        for sentence in wording.split_sentences(line):
            if is_prose(sentence):
                result.append(sentence)
    return result


def is_prose(sentence: str) -> bool:
    """Whether a line is words of a person, not output."""
    bare = re.sub(r"`[^`]*`|\S*/\S+", "", sentence)
    letters = sum(map(str.isalpha, bare))
    signs = len(_CODE_SIGNS.findall(bare))
    many = len(sentence.split())
    return (
        many <= MOST_WORDS
        and letters >= 4
        and letters > 0.55 * len(bare.replace(" ", ""))
        and signs <= 2 + many // 12
    )
