"""The words by which a text shows what it is: a correction, a choice, a request, small talk.

Apart from corrections, words that none of 41 public sessions has (320 prompts, 4,145 sentences of agents)
are left out.

Corrections are known in several languages; the rest is English, as most sessions are.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache

from vault_index.text import blocks

_CODE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_MARKUP = re.compile(r"^\s*(?:#{1,6}\s+|>\s?|[-*+]\s+(?:\[[ xX]\]\s*)?|\d+[.)]\s+)")
_HEADING = re.compile(r"\s*#{1,6}\s|\s*\*\*[^*]+\*\*:?\s*$")
_ITEM = re.compile(r"\s*(?:[-*+]|\d+[.)])\s")
PROSE, ITEM, HEADING = "prose", "item", "heading"
_EMPHASIS = re.compile(r"(\*\*|__)(?=\S)(.+?)(?<=\S)\1")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)\s]*\)")
_RULE_LINE = re.compile(r"^[\s|:=_*─━-]*$")


def plain_lines(text: str) -> list[tuple[str, str]]:
    """Return the lines of prose of a markdown text without its marks, and each one's kind.

    The kind is PROSE, ITEM of a list, or HEADING. Code, tables and rules are left out.
    """
    lines = []
    for line in _CODE.sub("\n", text).splitlines() if "```" in text else text.splitlines():
        begin = line.lstrip()[:1]
        kind, plain = PROSE, line
        if not begin.isalpha():
            if begin in ("", "|") or _RULE_LINE.match(line):
                continue
            kind = HEADING if _HEADING.match(line) else ITEM if _ITEM.match(line) else PROSE
            plain = _MARKUP.sub("", line)
        if "**" in plain or "__" in plain or "](" in plain:
            plain = _EMPHASIS.sub(r"\2", _LINK.sub(r"\1", plain))
        if plain := plain.strip():
            lines.append((plain, kind))
    return lines


@lru_cache(maxsize=64)
def sentences(text: str) -> tuple[str, ...]:
    """Return the sentences of a markdown text: first of its prose, then of its lists."""
    lines = plain_lines(text)
    return tuple(
        sentence
        for wanted in (PROSE, ITEM)
        for line, kind in lines
        if kind == wanted
        for sentence in blocks.split(line)
    )


def tail(text: str, limit: int) -> str:
    """Return the end of a text, at most `limit` characters, from the beginning of a line or word."""
    text = text.strip()
    if len(text) <= limit:
        return text
    cut = text[-limit:]
    for mark in ("\n", ". ", " "):
        start = cut.find(mark)
        if 0 <= start < limit // 2:
            return cut[start + len(mark) :].strip()
    return cut.strip()


MIN_CORRECTION = 8  # characters of one in another language than English
_LOOKED_AT = 400  # characters of a prompt, where a correction is said


def _any_of(alternatives: str, *, begin: str = r"\b", end: str = r"\b") -> re.Pattern[str]:
    """Return a pattern of alternatives; each line has one kind."""
    lines = "|".join(line.strip() for line in alternatives.strip().splitlines())
    return re.compile(f"{begin}(?:{lines}){end}", re.IGNORECASE)


def _named(begin: str = r"\b", **alternatives: str) -> dict[str, re.Pattern[str]]:
    return {name: _any_of(words, begin=begin) for name, words in alternatives.items()}


_CORRECTION = _any_of(
    r"""
    (?:or |well,? |oh,? |hmm+,? |uh,? )?(?:no|nope|nah)
    wrong|stop|wait|actually|never|instead|undo|revert
    not (?:that|quite|what|so|like)
    (?:please )?(?:do not|don't)
    (?:that|this|it)(?:'s| is| was) (?:wrong|not|incorrect|incomplete)
    that (?:doesn't|isn't|won't)
    why (?:did|are|do|would) you
    you (?:should(?: not|n't)?|missed|forgot|did(?: not|n't)|are wrong)
    i (?:said|meant|told|asked|don't (?:want|like)|do not want|wanted|would rather|changed)
    """,
    begin=r"\s*",
)
_CORRECTS = _any_of(
    r"""
    changed my mind
    i (?:don't|do not) want
    (?:use|do) \S+(?: \S+){0,3} instead
    should(?: not|n't) (?:have|be)
    not what I
    """
)
_NOT_A_QUESTION = re.compile(r"\s*(?:or,? )?(?:no|don't|why|you)", re.IGNORECASE)
_CHOICE = _any_of(
    r"""
    let's (?:do|use|keep|drop|stick)|go with|prefer
    option [A-D1-4]
    the (?:first|second|third|former|latter|other) (?:one|option|approach|way|idea)
    """
)
_BY_SUBJECT = _named(
    begin=r"\s*",
    bugfix="fix|fixes",
    feature="feat|feature|add",
    refactor="refactor|rename|simplify|split",
)
_BY_REQUEST = _named(
    bugfix="fix|bug|broken|fails?|failing|error|wrong|doesn't work",
    refactor=r"refactor\w*|renam\w+|extract|simplif\w+|clean ?up|split",
    feature="add|implement|create|build|support",
)
_BY_CONCEPT = _named(
    **{
        "why-it-exists": "why (?:do|does|did|was|we)|exists? (?:because|to|for)",
        "gotcha": "gotcha|caveat|silently|subtle|misleading",
        "pattern": r"(?:this|same|common|design|usual|existing) patterns?|conventions?|idiom\w*",
        "trade-off": "trade-?offs?|pros|cons|downsides?|alternatives?|option [ab12]",
    }
)
_EXIT_CODE = re.compile(r"Exit code \d+")
_WRONG = re.compile(r"\b(?:error|fatal|panic|exception|undefined|cannot|FAIL)\b", re.IGNORECASE)
_ABSENT = re.compile(r"\b(?:not found|no such|denied|failed|unable|refused)\b", re.IGNORECASE)
# By these words a result says that the user refused the call.
_REFUSED = r"(?:The user doesn't want to|The tool use was rejected)"
_IS_REFUSED = _any_of(_REFUSED, begin=r"\s*(?:<tool_use_error>)?")
# A call that did not run: another one beside it failed, or the user stopped the agent.
_ABORTED = r"(?:Sibling tool call|Cancelled: parallel|\[Request interrupted)"
_IS_ABORTED = _any_of(_ABORTED, begin=r"\s*(?:<tool_use_error>)?", end="")
_MUNDANE = _any_of(
    rf"""
    {_ABORTED}|EISDIR
    File (?:has not been read|has been modified since|does not exist)
    Found \d+ matches|String to replace
    {_REFUSED}
    """,
    begin=r"\s*(?:<tool_use_error>)?",
    end="",
)
# Openings of what the agent says about itself, about the next step or out of courtesy.
_CHATTER = _any_of(
    r"""
    let(?: me|'s)
    i(?:'ll| will|'m (?:going|now)| need| want| have| should| see| can see| understand| think i)
    i've (?:read|looked|reviewed|gone|got)
    (?:now|next|first|great|perfect|good|excellent|nice|fair|alright|right|ready|sure|done|ok|okay)
    all (?:set|good|done|tests? pass)
    you're (?:right|welcome|absolutely)
    (?:ah|oh|hmm|interesting|wait|understood|thanks?|correct|exactly|agreed|absolutely|got it)
    (?:sorry|apologies|please|still|one concern|time to|so let|actually, let)
    (?:looking at|checking|running|here's|here is|here are|both|summary)
    (?:would you|want me|shall|should i|do you|what would)
    (?:compil|read|go|add|updat|creat|implement|mov|start|fix|verify|test|build|apply|remov)ing
    (?:committed|pushed)
    (?:yes|no|fixed|updated)(?=[.,!]?$)
    option [a-d1-4]
    """,
    begin="",
)
_SIGNS = re.compile(r"^[^\w`(\[]+")  # an emoji in front
_CONCLUDES = _any_of(
    r"""
    because|since|root cause|caused? by|so that|means|confirmed
    the (?:problem|issue|bug|reason|cause|fix|difference|answer|key|real)
    instead of|must|never|always|only|requires?|needs?|fails?|failed
    won't|cannot|can't|doesn't
    """
)
_REMAINS = _any_of(
    r"""
    next steps?|remain(?:s|ing)|to-?do|not yet|follow-?ups?|out of scope|later
    want me to|should i|would you like|once you|you(?:'ll| will)? (?:still )?need to
    """
)
_GOES_ON = re.compile(r"i'm |i'll |i will |let me |now ", re.IGNORECASE)
_CORRECTION_ABROAD = re.compile(
    r"(?i)\s*(?:"
    r"nein\b|falsch\b|nicht so\b|stopp?\b|halt\b|doch nicht\b|das (?:ist|war) (?:falsch|nicht)"
    r"|hay[\u0131i]r\b|yanl[\u0131i][şs]\b|dur\b|öyle değil|yapma\b"
    r"|아니|틀렸|잘못|그게 아니|하지 ?마|멈춰"
    r"|いや|いいえ|違[うい]|ちがう|そうじゃな|やめて|間違"
    r"|non\b|pas (?:comme|ça)|no,? (?:así|eso)"
    r")"
)


def corrects(prompt: str) -> bool:
    """Whether a prompt says that the agent got something wrong: "no, use X"."""
    text = straight(prompt[:_LOOKED_AT])
    if _CORRECTION_ABROAD.match(text) and len(text) > MIN_CORRECTION:
        return True
    if _CORRECTION.match(text):
        is_question = text.rstrip().endswith("?") and len(prompt) <= _LOOKED_AT
        return not is_question or bool(_NOT_A_QUESTION.match(text))
    return bool(_CORRECTS.search(text))


def chooses(prompt: str) -> bool:
    """Whether a prompt chooses among offers: "the second one"."""
    return len(prompt) < _LOOKED_AT and bool(_CHOICE.search(straight(prompt[:200])))


def type_of_subject(subject: str) -> str:
    """Return the type of an observation by the subject of its commit."""
    kind = subject.split(":")[0] if ":" in subject[:40] else subject
    return next((name for name, words in _BY_SUBJECT.items() if words.match(kind)), "change")


def type_of_request(prompt: str) -> str:
    """Return the type of an observation with changes by the prompt that asked for them."""
    text = straight(prompt[:600])
    return next((name for name, words in _BY_REQUEST.items() if words.search(text)), "change")


def concepts(text: str) -> set[str]:
    """Return the concepts that a text names."""
    text = straight(text).lower()
    return {name for name, words in _BY_CONCEPT.items() if words.search(text)}


def has_error(text: str) -> bool:
    """Whether a text names an error."""
    return bool(_WRONG.search(text) or _ABSENT.search(text))


def error_line(text: str) -> str:
    """Return the line of an output that describes the failure best."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    lines = [line for line in lines if not _EXIT_CODE.fullmatch(line)] or [""]
    return next(filter(_WRONG.search, lines), lines[0])


def is_mundane_error(text: str) -> bool:
    """Whether an error is one of the agent's tools that says nothing of the work."""
    return bool(_MUNDANE.match(text))


def is_aborted(error: str) -> bool:
    """Whether an error is that a call did not run for another call's sake."""
    return bool(_IS_ABORTED.match(error))


def is_refusal(error: str) -> bool:
    """Whether an error is that the user refused a call of a tool."""
    return bool(_IS_REFUSED.match(error))


def is_chatter(sentence: str) -> bool:
    """Whether a sentence is about the next step, or a courtesy."""
    return bool(_CHATTER.match(_SIGNS.sub("", straight(sentence[:100]))))


def concludes(sentence: str) -> bool:
    """Whether a sentence says why something is as it is, or what must be."""
    return bool(_CONCLUDES.search(straight(sentence)))


def remains(sentence: str) -> bool:
    """Whether a sentence names work left to do."""
    sentence = straight(sentence)
    return bool(_REMAINS.search(sentence)) and not _GOES_ON.match(sentence)


_LANGUAGES = {
    "Korean": re.compile(r"[\uac00-\ud7a3]"),
    "Japanese": re.compile(r"[\u3040-\u30ff]"),
    "Chinese": re.compile(r"[\u4e00-\u9fff]"),
    "Russian": re.compile(r"(?i)[\u0430-\u044f]{2,}"),
    "German": re.compile(r"(?i)\b(?:und|nicht|das|der|ist|ich|bitte|wir|noch)\b"),
    "Turkish": re.compile(r"(?i)\b(?:ve|bir|için|değil|bu|şimdi|lütfen)\b"),
    "French": re.compile(r"(?i)\b(?:les|est|pas|une|dans|pour|nous|avec)\b"),
    "Spanish": re.compile(r"(?i)\b(?:los|las|que|para|una|por|esto|pero)\b"),
}


def language(text: str) -> str:
    """Return the language of a text, by its letters or its most common words; English else."""
    words = len(text.split())
    shares = {name: len(form.findall(text)) for name, form in _LANGUAGES.items()}
    best = max(shares, key=lambda name: shares[name])
    return best if shares[best] > words / 12 else "English"


# the beginning of a line that a program printed
_OUTPUT = re.compile(
    r"(?im)^[ \t]*(?:\W{0,3}(?:[\w.-]+\W{1,3})?(?:error|fatal|panic|exception|warning|failed|failure)"
    r"(?:\[\w+\])?:|[\w.]+(?:Error|Exception)\b:?|Traceback \(|File \"|at \S+ ?\(|[$%] |>>> |E   "
    r"|npm ERR|make(?:\[\d+\])?: |\[?\d{4}-\d\d-\d\d[T ]\d|\d\d:\d\d:\d\d"
    r"|\S+[:(]\d+\S*\s+(?:error|warning|fatal)\b)"  # of a compiler, behind the place
)


def language_of(prompts: Iterable[str]) -> str:
    """Return the language in which a person typed most prompts, whatever is pasted in them."""
    votes = Counter(language(text) for text in map(_shortest_end, prompts) if text)
    return max(votes, key=lambda name: votes[name], default="English")


def _shortest_end(prompt: str) -> str:
    """Return a prompt's first or last paragraph, whichever is shorter: a long one is pasted."""
    paragraphs = [each for each in re.split(r"\n\s*\n", typed(prompt)) if word_count(each) > 2]
    return min(paragraphs[:1] + paragraphs[-1:], key=len, default=prompt)


def typed(prompt: str) -> str:
    """Return a prompt without the code and the output of programs that a person pasted."""
    paragraphs = re.split(r"\n[ \t]*\n", _CODE.sub("\n\n", prompt))
    typed_parts = (_OUTPUT.split(each, maxsplit=1)[0] for each in paragraphs)
    return "\n\n".join(typed_parts).strip()


def word_count(text: str) -> int:
    """Return the number of a text's words; a script without spaces has one in three signs."""
    wide = sum("\u3040" <= char <= "\u9fff" for char in text)
    return len(re.sub(r"[\u3040-\u9fff]+", " ", text).split()) + wide // 3


def straight(text: str) -> str:
    """Return a text with straight apostrophes."""
    return text.replace("\u2019", "'")
