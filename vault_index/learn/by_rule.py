"""Drafts without a model: a correction that a person typed, "No, use five retries with a fixed pause".

The person answers the agent and says what to do from now on. The draft has these words, the change that
followed, and the prompt that the agent had answered. A model finds more.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain, takewhile

from vault_index.learn import gate
from vault_index.learn.material import LearnedLesson
from vault_index.lesson.passages import Parts
from vault_index.text import blocks
from vault_index.transcripts import events, vocabulary
from vault_index.transcripts.moments import AGENT, CHANGES, PERSON, Moment

MAX_LINES, MAX_LINE = 3, 160  # of each half of a change; characters
MAX_PROSE, MAX_SENTENCE = 4_000, 300  # characters of a prompt that is read, of a sentence
MIN_WORDS, MAX_WORDS = 4, 40  # of a sentence
_PLAIN = re.compile(r"[\w\s`'\".,;:!?/@&%()+*=<>#-]+")
_OPENING = re.compile(
    r"(?i)^(?:(?:no|nope|wrong|stop|wait|actually|well|oh|ok|and|but|so|please|nein|bitte|hay\wr|lütfen"
    r"|(?:that|this|it)(?:'s| is| was) (?:wrong|incorrect|not (?:right|true))(?=\s*[:,;-])"
    r"|아니요?|いいえ|いや|non|you (?:should|need to|have to)|i (?:said|meant|told you)(?: that)?)"
    r"\b(?![-_/'`]|\.\w)[\s,.!:;、-]*)+"
)
# words by which a correction says what to do from now on, not only now
_ADVISES = re.compile(
    r"(?i)^(?:use|keep|take|call|store|return|raise|log|wrap|test|sort|split|prefer|avoid)\b"
    r"|\b(?:always|never|must|instead of|rather than|from now on|we (?:\w+ )?(?:use|prefer|keep|want)"
    r"|(?:do not|don't) (?:ever )?(?:use|edit|commit|add|change|touch|push|run|write|mock|import|call)"
    r"|should (?:always|never|not|only|be|use|stay|have)|only (?:use|when|if)"
    r"|immer|nie(?:mals)?|statt|sondern|verwenden|nutzen|asla|her zaman|yerine|kullan\w*)\b"
    r"|항상|절대|반드시|말고|대신|必ず|常に|絶対|ではなく|しないで"
)
# what is wrong, or must not be done; the next sentence may say what to do instead
_STATES = re.compile(
    r"(?i)(?:that|this|it)(?:'s| is| was) (?:wrong|incorrect|not (?:right|true))\s*[:,;-].*"
    r"\b(?:is|are|has|have|needs?|comes?|lives?|belongs?|goes|runs?)\b"
)
_FORBIDS = re.compile(
    r"(?i)\b(?:never|not|don't|no longer|avoid|stop|nie(?:mals)?|nicht|kein\w*|asla)\b|말고|절대|しないで"
)
_FORBIDS_NOW = re.compile(
    r"(?i)^(?:please )?(?:do not|don't) (?!worry|know|think|mind|care)\w+(?!.*\bnow\b)"
)
_HELPS = re.compile(  # code, or no sentence about something: an order
    r"(?i)`[^`\n]+`|^(?!(?:the|an?|it|th[aeio]\w+|we|he|she|you|my|our|your|and|but|then|i)\b)[a-z]"
)
# of this moment, or in anger: no later prompt needs it
_PASSES = re.compile(
    r"(?i)^i\b|\?\s*$|[!?]{2,}|:$|\b(?:for now|right now|yet|today|tomorrow|yesterday|next step|thank\w*"
    r"|this (?:time|session|branch|pr)|i (?:see|guess|think|just|already|was|did|have)|sorry|maybe|might"
    r"|you (?:deleted|broke|wrote)|fuck\w*|shit\w*|damn\w*|wtf|stupid)\b"
)


def read(moments: Sequence[Moment]) -> list[LearnedLesson]:
    """Return the corrections of a session, the latest first."""
    entries: dict[str, LearnedLesson] = {}
    prompt, has_answered = "", False
    for index, each in enumerate(moments):
        has_answered |= each.kind == AGENT
        if each.kind != PERSON or each.origin in (events.SHELL_COMMAND, events.ANSWER):
            continue
        corrects = has_answered and (each.is_correction or each.origin == events.REFUSAL)
        if advice := _advice(each.text) if corrects else None:
            entries[advice[0]] = _entry(*advice, prompt, moments[index + 1 :])
        else:
            prompt = each.text
    return [*entries.values()][::-1]


def _advice(prompt: str) -> tuple[str, str] | None:
    """Return the words of a prompt that say what to do from now on, and a title; None without any.

    They are the first such sentence; of what not to do, also the next one.
    """
    lines = vocabulary.plain_lines(prompt[:MAX_PROSE])
    prose = (line for line, kind in lines if kind != vocabulary.HEADING)
    sentences = [*chain.from_iterable(map(blocks.split, prose))]
    for sentence, below in zip(sentences, [*sentences, ""][1:], strict=True):
        if not _is_said(sentence, prompt):
            continue
        helps = _FORBIDS.search(sentence) and _HELPS.search(below) and not _PASSES.search(below)
        remedy = below if helps and _is_said(below, prompt) else ""
        if title := _title(sentence, is_helped=bool(remedy)):
            start = prompt.index(sentence)
            end = prompt.index(remedy, start + len(sentence)) + len(remedy) if remedy else None
            return (prompt[start:end] if end else sentence), title
    return None


def _is_said(sentence: str, prompt: str) -> bool:
    """Whether a sentence is prose of a usual length that stands in a prompt."""
    text = vocabulary.straight(sentence)
    is_prose = sentence in prompt and (not text.isascii() or _PLAIN.fullmatch(text))
    is_usual = MIN_WORDS <= vocabulary.word_count(text) <= MAX_WORDS
    return bool(is_prose) and is_usual and len(text) <= MAX_SENTENCE


def _title(sentence: str, *, is_helped: bool) -> str:
    """Return the beginning of a sentence that has the word by which it advises; "" without one.

    A sentence that `is_helped` by the next one may forbid anything.
    """
    plain = vocabulary.straight(sentence)
    bare = _OPENING.sub("", plain).strip()
    words = bare.split()[: gate.TITLE_WORDS[1]]
    title = gate.title_of(bare, gate.MIN_TYPED_WORDS) or " ".join(words)
    forbids = is_helped and _FORBIDS_NOW.search(bare)
    advises = _ADVISES.search(title) or _STATES.match(plain) or forbids
    return title if advises and not _PASSES.search(bare) else ""


def _capital(text: str) -> str:
    first = text.split(" ")[0].replace("'", "")
    return text[:1].upper() + text[1:] if first.isalpha() and first.islower() else text


def _entry(quote: str, title: str, prompt: str, after: Sequence[Moment]) -> LearnedLesson:
    what = _capital(" ".join(_OPENING.sub("", quote).split()))
    ends = what.endswith((".", "!", "`")) or not what[-1:].isascii()
    answer = takewhile(lambda each: each.kind != PERSON, after)
    changes = (_shown(each) for each in answer if each.kind in CHANGES)
    return LearnedLesson(
        type="",
        title=_capital(title),
        parts=Parts(what if ends else f"{what}.", next(filter(None, changes), "")),
        confidence=2,
        fires_on=(prompt,) if prompt else (),
        quotes=(quote,),
        by_rule=True,
    )


def _shown(change: Moment) -> str:
    """Return the path of a change and the first lines of both its halves as a block; "" for none."""
    lines = [line[:MAX_LINE] for line in change.text.splitlines() if line[1:].strip()]
    halves = [[line for line in lines if line.startswith(sign)][:MAX_LINES] for sign in "-+"]
    if not any(halves) or "```" in change.text:
        return ""
    path = blocks.one_line(change.about, MAX_LINE)
    return "\n".join(["```diff", path, *halves[0], *halves[1], "```"])
