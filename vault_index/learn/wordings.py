"""The words by which people correct an agent, state a rule or name a cause, in several languages.

The journal's `phrases` are English and say what a record is; these decide what is worth a proposal.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from vault_index.transcripts import events, phrases, wording

_NO_CORRECTION = frozenset({events.ANSWER, events.PLAN, events.SHELL_COMMAND})
_LOOKED_AT = 400  # characters of a prompt, where a correction is said
LEAST_CORRECTION = 8  # characters
_CORRECTION = re.compile(
    r"\s*(?:"
    r"nein\b|falsch\b|nicht so\b|stopp?\b|halt\b|doch nicht\b|das (?:ist|war) (?:falsch|nicht)"
    r"|hay[\u0131i]r\b|yanl[\u0131i][şs]\b|dur\b|öyle değil|yapma\b"
    r"|아니|틀렸|잘못|그게 아니|하지 ?마|멈춰"
    r"|いや|いいえ|違[うい]|ちがう|そうじゃな|やめて|間違"
    r"|non\b|pas (?:comme|ça)|no,? (?:así|eso)"
    r")",
    re.IGNORECASE,
)
_INSTEAD = re.compile(
    r"\bstatt(?:dessen)?\b|\bsondern\b|\byerine\b|대신|말고"
    r"|ではなく|じゃなくて|の代わりに|\bau lieu\b|\ben lugar de\b",
    re.IGNORECASE,
)
# A rule is said with one of these words; a request is not.
_RULE = re.compile(
    r"\b(?:always|never|must(?:n't| not)?|do(?:n't| not) (?:ever |just |edit |use |commit |put |add "
    r"|change "
    r"|touch |push |run |want |need |allow|support|create|modify|write|include|mock|rely|import|call)"
    r"|let's (?:not|never|always|only|keep|stick)|we (?:don't|do not|never|always|only|use|prefer"
    r"|keep|decided|agreed|want|require|follow|should)"
    r"|should (?:always|never|not|only|be|use|stay|keep|go|live|match|have|get)|shouldn't"
    r"|has to|have to|needs? to be|not allowed|prefer|instead of|rather than|from now on|in future"
    r"|the convention|by convention|make sure|be sure|ensure|only (?:use|ever|when|if|for)|at most"
    r"|at least"
    r"|each|every|keep (?:it|the|each|every|them|all)|avoid|no longer|stick (?:to|with))\b"
    r"|\b(?:immer|niemals|nie|müssen|darf nicht|dürfen nicht|nicht verwenden|grundsätzlich|stattdessen"
    r"|wir (?:verwenden|nutzen|benutzen|machen)|bitte (?:immer|nie))\b"
    r"|\b(?:her zaman|asla|sak[\u0131i]n|kullanma(?:y[\u0131i]n)?|gerekir|zorunda"
    r"|kullan[\u0131i]yoruz|yerine)\b"
    r"|항상|절대|반드시|하지 ?마|하면 안|쓰지 마|사용하지|대신|해야"
    r"|必ず|常に|絶対|決して|しないで|使わない|べき|ではなく|てはいけない|禁止",
    re.IGNORECASE,
)
_STRONG_RULE = re.compile(
    r"\b(?:always|never|must(?:n't| not)?|from now on|every time|in future|we (?:don't|do not|never"
    r"|always|only"
    r"|use|prefer|decided|agreed|require)|not allowed|by convention|the convention|immer|niemals"
    r"|grundsätzlich"
    r"|wir (?:verwenden|nutzen|benutzen)|her zaman|asla|sak[\u0131i]n|kullan[\u0131i]yoruz)\b"
    r"|항상|절대|반드시|必ず|常に|絶対|決して|禁止",
    re.IGNORECASE,
)
_REASON = re.compile(
    r"\b(?:because|since|so that|otherwise|that's why|as it|which means|due to|the reason"
    r"|for (?:clarity|consistency|safety|security|performance|readability|simplicity)|weil|damit|sonst"
    r"|denn|çünkü|yoksa|aksi halde)\b|때문|그래서|않으면|から|ので|ため|さもないと",
    re.IGNORECASE,
)
_CAUSES = (
    (re.compile(r"\broot cause\b|\bculprit\b|\bturns out\b|근본 원인|원인은|原因は|\bUrsache\b"
        r"|kök neden", re.I), 4),
    (
        re.compile(
            r"\bthe (?:real |actual |underlying |main )?(?:problem|issue|bug|reason|cause)"
            r"(?: here| there)? (?:is|was|comes|occurs|happens)\b"
            r"|\bthe (?:error|failure) (?:is|was|comes|occurs|happens) (?:because|caused|due|from"
            r"|when|that)\b"
            r"|\bdas (?:Problem|eigentliche Problem) (?:ist|war|lag)\b|\bSorun\b.*\b(?:çünkü"
            r"|nedeniyle)\b|문제는|問題は",
            re.I,
        ),
        3,
    ),
    (re.compile(r"\b(?:caused by|because|due to|çünkü|nedeniyle|weil|wegen)\b|때문|ため|ので", re.I), 2),
    (
        re.compile(
            r"\b(?:was|were|is|are|isn't|wasn't|aren't|don't|doesn't|didn't) (?:\w+ )?(?:getting "
            r"|being )?(?:clobbered"
            r"|overwritten|removed|missing|ignored|dropped|skipped|not (?:installed|found|set)"
            r"|installed|deprecated)\b"
            r"|\b(?:requires?|doesn't support|does not support|no longer|silently)\b",
            re.I,
        ),
        1,
    ),
)  # fmt: skip
_DOUBTS = re.compile(
    r"\b(?:maybe|might|perhaps|probably|possibly|could be|may be|let me|i'll|i will|i need|i think"
    r"|not sure|if you"
    r"|would|want me|should i|should now|now fixed|be fixed|something is wrong)\b|\?$",
    re.IGNORECASE,
)
LEAST_CAUSE, MOST_CAUSE = 30, 320  # characters of a sentence that names a cause


def corrects(prompt: str) -> bool:
    """Whether a prompt says that the agent got something wrong, in a language other than English."""
    text = prompt[:_LOOKED_AT]
    return bool(_CORRECTION.match(text)) and len(text) > LEAST_CORRECTION


def kind_of(prompt: str, answers: str, origin: str) -> tuple[bool, bool]:
    """Return whether a prompt with this origin refuses a call of a tool, and whether it corrects."""
    if origin == events.REFUSAL:
        return True, False
    if not answers or origin in _NO_CORRECTION:
        return False, False
    return False, phrases.corrects(prompt) or corrects(prompt)


def rule_strength(sentence: str) -> int:
    """Return how much a sentence sounds like a rule that stays: 0, 1 or 2."""
    text = straight(sentence)
    return (
        2 if _STRONG_RULE.search(text) else 1 if _RULE.search(text) or _INSTEAD.search(text) else 0
    )


def has_reason(sentence: str) -> bool:
    """Whether a sentence says why."""
    return bool(_REASON.search(straight(sentence)))


def cause_strength(sentence: str) -> int:
    """Return how surely a sentence names the cause of something: 0 to 4."""
    text = straight(sentence)
    if not LEAST_CAUSE <= len(text) <= MOST_CAUSE or text.endswith((":", "?")):
        return 0
    if _DOUBTS.search(text) or phrases.is_chatter(text):
        return 0
    return max((points for words, points in _CAUSES if words.search(text)), default=0)


def cause(texts: Sequence[str]) -> str:
    """Return the sentence of the agent that names the cause best, "" if none does."""
    best, most = "", 0
    for sentence in _sentences(texts):
        points = cause_strength(sentence)
        if points > most or (points == most and points > 2):  # of those as sure, the last
            best, most = sentence, points
    return best if most >= 1 else ""


def _sentences(texts: Iterable[str]) -> Iterable[str]:
    for text in texts:
        yield from wording.sentences(text)


def verbatim(sentence: str, texts: Iterable[str]) -> str:
    """Return a sentence as it stands in a text, whose marks it may lack; "" if none has it."""
    spoken = re.compile(r"[\W_]{1,8}?".join(map(re.escape, re.findall(r"[^\W_]+", sentence))))
    for text in texts:
        if sentence in text:
            return sentence
        if match := spoken.search(text):
            return match[0]
    return ""


def straight(text: str) -> str:
    """Return a text with straight apostrophes."""
    return text.replace("\u2019", "'")
