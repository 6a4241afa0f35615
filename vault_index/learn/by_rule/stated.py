"""Statements of a person in a session: corrections, refusals with a reason, rules of the project."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from vault_index.learn.by_rule import title
from vault_index.learn.material import Material, Said
from vault_index.transcripts import events, vocabulary

LEAST_POINTS = 3.5
_SHORT, _FEW_LINES = 700, 4  # characters and line ends of a prompt without a paste
_PERSON = re.compile(
    r"\b(?:i|we|you|our|my|your|let's|please|should|must|always|don't|want|need|ich|wir|bitte|ben"
    r"|biz|lütfen)\b"
    r"|[\uac00-\ud7a3\u3040-\u30ff]",
    re.IGNORECASE,
)
_NO_NOUN = re.compile(
    r"^\W*no (?!(?:i|we|you|it|that|this|the|don't|do|use|not|just|need"
    r"|way)\b)[a-z]",
    re.IGNORECASE,
)
_NOT_LOOKED_AT = frozenset({events.PLAN, events.SHELL_COMMAND, events.ANSWER})
_MEANWHILE = (events.BESIDE_RESULT, events.QUEUED)  # typed while the agent worked
_WRONG = re.compile(
    r"\b(?:is|are|was|that's|it's|isn't|aren't|not) (?:also )?(?:not (?:correct|right|true|what|how"
    r"|fully true)|incorrect|wrong)"
    r"|\bnot (?:fully |quite |entirely )?(?:correct|true|right)\b|\b(?:doesn't|does not|won't|can't"
    r"|didn't) work\b"
    r"|\byou (?:didn't|did not|forgot|missed|should(?:n't| not)? have|keep)\b|\bhow YOU\b"
    r"|\bi (?:said|told you|already said)\b"
    r"|\b(?:ist|war) (?:falsch|nicht richtig)\b|yanl\u0131ş|değil\b|틀렸|잘못|아니라|違|間違|ではなく",
    re.IGNORECASE,
)
_WANTS = re.compile(
    r"\bi (?:don't|do not) (?:want|like|need)\b|\bi (?:want|prefer|'d prefer|would prefer"
    r"|'d rather)\b|\bwe want\b"
    r"|\blet's (?:not|keep|always|never|stick)\b|\bno \w+-?\w*ing\b|\b(?:ich|wir) (?:will|wollen"
    r"|möchte\w*)\b|istemiyor",
    re.IGNORECASE,
)
_CONTRAST = re.compile(
    r"\bnot (?:correct|right|true),? (?:that|it|this)(?:'s| is)\b|"
    r"\binstead of\b|\brather than\b|\bnot\b.*\bbut\b|,? (?:it's|that is|that's|is|are) (?:just "
    r"|only |actually )?\S+(?: \S+){0,4} not \S"
    r"|\bbut the \w+\b|\bbut not\b|, not \S|\bsondern\b|\bstatt\b|\byerine\b|\bONLY\b|\bstays? \S"
    r"|\bonly\b.*\b(?:if|when|for)\b|대신|말고|ではなく",
    re.IGNORECASE,
)
_FACT = re.compile(
    r"\b(?:is|are|was|were|has|have|can|can't|cannot|never|always|will|won't|doesn't|does|contains?"
    r"|goes|uses?|adds?|stays?|works?"
    r"|ist|sind|hat|wird|nutzt|içerir|vard\u0131r)\b|입니다|이에요|합니다|です|ます|である",
    re.IGNORECASE,
)
_ONE_OFF = re.compile(
    r"^\W*(?:(?:ok|okay|yes|great|cool|now|then|and|also|please|hmm?|so|next)[, !.]+)*(?:please "
    r"|can you |could you |can we |could we |let's |let us "
    r"|i'd like (?:to|you)|we (?:should|need to|have to|could) )?(?:also )?(?:please )?"
    r"(?:commit|push|run|rerun|continue|go ahead|proceed|merge|open|show|explain|look|check|tell"
    r"|review|summari[sz]e|write up|write|make it"
    r"|make|add|create|build|implement|put|rename|remove|delete|change|update|fix|bump|install|try"
    r"|start|set up|log|copy|do|give|find|replace"
    r"|search|list|print|read|help|see|work|move|release|swap|port|investigate|reference|go|take"
    r"|have|clean up|clean|leave|close|discuss|figure)\b",
    re.IGNORECASE,
)
_TRANSIENT = re.compile(
    r"\b(?:in this (?:branch|pr|session|chat|conversation)|for now|right now|yet|today|yesterday"
    r"|tomorrow|just now|this time|at the moment"
    r"|i (?:need|have|tried|did|just|was|can|can't|saw|see|hid|think we're|deleted|moved|continued"
    r"|already)|you (?:deleted|wrote|said|broke|made)"
    r"|see if|let's see|screenshot|colou?r|button|font|pixel|wider|bigger|smaller|bold|thank|sorry"
    r"|wonder|learning q|curious|confus\w+"
    r"|a bit|short version|full version|again with|next step|what happened|look at what)\b",
    re.IGNORECASE,
)
FOUL = re.compile(
    r"\b(?:fuck\w*|shit\w*|damn\w*|goddamn|wtf|idiot\w*|stupid|crap|hell|bullshit|ass"
    r"|oh my god|painful|maddening|you are (?:always )?wrong|mess)\b|[!?]{3,}",
    re.IGNORECASE,
)
_QUESTION = re.compile(
    r"\?\s*$|,? (?:right|or|correct|no)\s*$|^\W*(?:why|what|how|is there|are there|does|do you|did"
    r"|which|who|where|could|can we|would|should we"
    r"|is it|are you|any)\b",
    re.IGNORECASE,
)
_ASKED_AT_END = re.compile(
    r"[,.;] ?(?:have you|did you|do you|can we|can you|is that|isn't it"
    r"|any ideas|right|or|ok|what|how|do we|are you)\b[^,.;]*\?\s*$",
    re.IGNORECASE,
)
_HYPOTHETICAL = re.compile(
    r"^\W*(?:if|like|in theory|maybe|perhaps|i wonder|wondering"
    r"|thinking about|what if|assuming)\b|\b(?:maybe|might|would|seem)\b|\bi (?:guess|feel like"
    r"|assume)\b",
    re.IGNORECASE,
)

_RATHER = re.compile(
    r"^\W*(?:no|nope|wait|stop|actually|instead|nein|hay\u0131r|non)\b[,.!: ]+(?:please |rather |just )?"
    r"(?:use|keep|take|call|read|store|return|raise|log|pass|wrap|test|send|sort|split|validate|nimm"
    r"|nutze|verwende)\b",
    re.IGNORECASE,
)
# what a task demands is no rule of the project, unless it says so
_OF_PROJECT = re.compile(
    r"\b(?:we|our|us|this (?:project|repo\w*|codebase|team)|from now on|in future|convention"
    r"|commits?|tests?"
    r"|pull requests?|PRs?|branch(?:es)?|reviews?|migrations?|releases?|wir|unser\w*|biz\w*)\b"
    r"|[\uac00-\ud7a3\u3040-\u30ff]",
    re.IGNORECASE,
)
_CHANGED = re.compile(r"\b(?:renam\w+|once more|instead|no longer|changed? (?:my mind|in plan))\b")


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence of a prompt that may be a lesson. `number` is that of the prompt."""

    text: str
    said: Said
    number: int
    points: float
    strength: int  # of the rule in it

    @property
    def names(self) -> frozenset[str]:
        """Return the names of code in it."""
        return frozenset(title.names(self.text))


def statements(material: Material) -> list[Statement]:
    """Return what a person stated that is worth more than its moment; the last of those that disagree."""
    there: list[Statement] = []
    for number, said in enumerate(material.prompts):
        if said.origin not in _NOT_LOOKED_AT:
            there += _of_prompt(said, number)
    return [one for one in there if not _is_overtaken(one, there, material.prompts)]


def _of_prompt(said: Said, number: int) -> Iterator[Statement]:
    """Yield the sentences that count, the best of a prompt only."""
    sentences = title.sentences(said.text)
    scored = []
    for place, sentence in enumerate(sentences[:40]):
        text = _ASKED_AT_END.sub("", sentence)
        is_own = len(said.text) < _SHORT and said.text.count("\n") < _FEW_LINES
        if not is_own and not _PERSON.search(vocabulary.straight(text)):
            continue  # of a report, or of an output that reads like prose
        points, strength = _points(text, said, place, len(sentences))
        if points >= LEAST_POINTS:
            scored.append(Statement(text, said, number, points, strength))
    yield from sorted(scored, key=lambda one: -one.points)[:1]


def _points(sentence: str, said: Said, place: int, count: int) -> tuple[float, int]:
    text = vocabulary.straight(sentence)
    words = title.words_of(text)
    strength = vocabulary.rule_strength(text)
    if words < 4 or FOUL.search(text) or _QUESTION.search(text):
        return 0, strength
    corrects = said.is_correction or said.is_refusal or said.origin in _MEANWHILE
    is_near = place < 3 or count <= 4
    is_wrong = bool(_WRONG.search(text)) or (
        corrects and vocabulary.corrects(text) and not _NO_NOUN.search(text)
    )
    points = 0.0
    if said.is_refusal and is_near:
        points += 2
    elif is_wrong:
        points += 2 if said.answers else 1
    elif said.is_correction and is_near:
        points += 1
    points += strength * (1.5 if strength == 2 else 1)
    points += 1 if vocabulary.has_reason(text) else 0
    named = min(2, len(title.names(text)))
    points += 1 + 0.5 * bool(named) if _CONTRAST.search(text) else 0
    points += 0.5 * (named + bool(named))
    points += 1.5 if is_wrong and _RATHER.search(text) else 0
    wants = bool(_WANTS.search(text))
    points += 1.5 if wants else 0
    points += 1 if said.origin in _MEANWHILE and (wants or strength) else 0
    points += 0.5 if _FACT.search(text) else 0
    points -= 2 if _ONE_OFF.search(text) and strength < 2 else 0
    points -= 2 if _TRANSIENT.search(text) else 0
    is_task = strength > 0 and not corrects and not is_wrong and not _OF_PROJECT.search(text)
    points -= 1.5 if is_task else 0
    points -= 1.5 if _HYPOTHETICAL.search(text) else 0
    points -= 1 if title.is_vague(title.without_fillers(text)) else 0
    points -= 1 if words > 40 or words < 6 else 0
    return points, strength


def _is_overtaken(one: Statement, others: Sequence[Statement], prompts: Sequence[Said]) -> bool:
    """Whether a later prompt says something else about the same names."""
    mine = {name.lower() for name in one.names}
    if not mine:
        return False
    for number, said in enumerate(prompts[one.number + 1 :], start=one.number + 1):
        text = said.text.lower()
        common = sum(name in text for name in mine)
        states = any(other.number == number for other in others)
        if common * 2 >= len(mine) and (states or _CHANGED.search(text)):
            return True
    return False
