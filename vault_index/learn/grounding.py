"""Whether an entry rests on the material: its quotes, its prompts; and whether it repeats other texts."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from vault_index.check.redact import redact
from vault_index.learn import timeline
from vault_index.learn.material import Material
from vault_index.learn.particular import points
from vault_index.learn.timeline import LEFT_OUT, without_labels
from vault_index.proposals import draft
from vault_index.proposals.draft import words
from vault_index.text import blocks, failure
from vault_index.transcripts import events, moments, vocabulary
from vault_index.transcripts.moments import Moment

MIN_QUOTE_CHARS, MIN_QUOTE_WORDS = 20, 4
SURE_WORDS = 5  # of a quote that is shorter: the command asks for so many
MAX_QUOTE_CHARS = 500
MAX_PROMPT_CHARS = 300
NEARLY = 0.8  # of a prompt's words that the session's own prompt has, too
SHINGLE = 6  # words in a row
REPEATS = 0.15  # of an entry's shingles that are in one other text
ORDER_WORDS = 5  # in a row, of an order
RUN = 12  # words in a row that are in another text, whatever else an entry says
MIN_LIKE = 60.0  # of 100: how like a quote the passage is that may have been meant
CHECK = "CHECK"  # that failed and then passed
SPEAKERS = {
    **{CHECK: draft.CHECK, moments.PERSON: draft.PERSON, timeline.COMMIT: draft.COMMIT},
    **dict.fromkeys(
        (moments.FAILED, moments.REFUSED, moments.RAN, moments.CALLED, moments.OPEN), draft.PROGRAM
    ),
}
_FIRST = (CHECK, moments.PERSON, moments.FAILED, moments.RAN, moments.CALLED)
_HEADER = re.compile(  # of a diff: `--- PASS: TestLogin (0.00s)` says something
    r"^(?:diff --git |index [0-9a-f]|@@ |new file mode|deleted file"
    r"|(?:---|\+\+\+) (?:\"?[ab]/|/dev/null|\S+(?: \d{4}-\d\d-\d\d .*)?$))"
)
_ADDRESS = re.compile(r"(?<![\w.])(?:[\w-]+\.)+[a-z]{2,}(?=[/:])|(?<=://)[\w.-]+")
_SPACE = re.compile(r"\s+")
MIN_CLAIM_WORDS = 3  # of weight, of a sentence that explains something
_DENIES = re.compile(
    r"(?i)\b(?:(?:that|this|it)(?:'s| is| was) (?:wrong"
    r"|not (?:it|right|true|the (?:cause|reason|problem)))"
    r"|(?:did(?:n't| not)|does(?:n't| not)) (?:help|work|fix|change)"
    r"|still (?:fails?|failing|broken|crash\w*|happens?|the same|hangs?|red)|(?:same|the) error again)\b"
)
_CHOICE = re.compile(r"(?m)^- .*$")  # of a question: see `tools.shown_to_user`
_SIGN = re.compile(r"(?m)^[+-](?![+-])")


def squeezed(text: str) -> str:
    """Return a text whose white space is single spaces."""
    return _SPACE.sub(" ", text).strip()


def texts_of(texts: Iterable[str]) -> tuple[str, ...]:
    """Return texts in which quotes must stand, without line breaks; also without signs of a change."""
    forms = [each for text in texts for each in (text, _SIGN.sub("", text))]
    return tuple(dict.fromkeys(filter(None, map(squeezed, forms))))


def proven(
    quotes: Iterable[str],
    texts: Sequence[str],
    given: Iterable[str] = (),
    typed: Iterable[str] = (),
) -> list[str]:
    """Return the quotes that stand word for word in a text; only white space and labels may differ.

    A quote proves nothing if it is too short and not a whole text that a person `typed` ("or no, do
    c"), only names files of a diff, or stands in a lesson that was `given` to the agent.
    """
    lessons, whole = tuple(map(squeezed, given)), set(map(squeezed, typed))
    proofs: list[str] = []
    for text in map(_bare, quotes):
        count = len(words(text))
        is_short = count < MIN_QUOTE_WORDS or (len(text) < MIN_QUOTE_CHARS and count < SURE_WORDS)
        if is_short and not (text in whole and count > 1):
            continue
        if len(text) > MAX_QUOTE_CHARS or _HEADER.match(text) or LEFT_OUT in text:
            continue
        is_given = any(text.lstrip("+- ") in lesson for lesson in lessons)
        if not is_given and any(_stands_in(text, other) for other in texts):
            proofs.append(text)
    return list(dict.fromkeys(proofs))


def _bare(quote: str) -> str:
    text = moments.MARKS.sub("", failure.without_escapes(quote))
    return squeezed(without_labels(redact(text)))


class AnsweredText(NamedTuple):
    """The words of a text of the agent, and the person's next prompt where that denies something."""

    words: frozenset[str]
    denial: str


def replies(material: Material) -> tuple[AnsweredText, ...]:
    """Return each text of a session's agent with the person's reply to it, in the order of time."""
    answer, found = "", list[AnsweredText]()
    for each in reversed(material.transcript or material.moments):
        if each.kind == moments.PERSON:
            is_denial = _DENIES.search(vocabulary.straight(each.text))
            answer = squeezed(each.text) if is_denial else ""
        elif each.kind == moments.AGENT:
            found.append(AnsweredText(frozenset(words(each.text)), answer))
    return tuple(reversed(found))


def contradicted(explained: str, answers: Iterable[AnsweredText], least: float = 0.0) -> str:
    """Return the words of a person who contradicts an agent's explanation; "" where nobody does.

    It is the reply to the agent that said so last. A sentence of under `least` points claims nothing.
    """
    answers = tuple(answers)
    if not any(reply.denial for reply in answers):
        return ""
    for sentence in blocks.split(explained):
        claim_words = {word for word in words(sentence) if len(word) > 3}
        if len(claim_words) < MIN_CLAIM_WORDS or (least and points(sentence) < least):
            continue
        agreeing = [
            reply
            for reply in answers
            if len(claim_words & reply.words) >= NEARLY * len(claim_words)
        ]
        if agreeing and agreeing[-1].denial:
            return agreeing[-1].denial
    return ""


def unproven(quotes: Iterable[str]) -> list[str]:
    """Return quotes of a usual length as they are, where nothing is there to look them up in."""
    texts = (squeezed(failure.without_escapes(quote)) for quote in quotes)
    return [text for text in dict.fromkeys(texts) if 0 < len(text) <= MAX_QUOTE_CHARS]


def nearest_passage(quote: str, texts: Iterable[str]) -> str:
    """Return the passage of the texts that is most like a quote; "" for none that is much like it."""
    from rapidfuzz import fuzz

    wanted, best, passage = squeezed(without_labels(quote)), MIN_LIKE, ""
    for text in texts:
        found = fuzz.partial_ratio_alignment(wanted, text, score_cutoff=best) if wanted else None
        if found and found.score > best:
            begin, end = text.rfind(" ", 0, found.dest_start + 1), text.find(" ", found.dest_end)
            best, passage = found.score, text[begin + 1 : end if end > 0 else None]
    return passage[:MAX_QUOTE_CHARS]


def origin(quotes: Iterable[str], material: Material) -> dict[str, Any]:
    """Return the origin of a proposal: the project, the day, the speaker of each quote."""
    checks = [material.moments[failed].text for failed, _ in moments.repairs(material.moments)]
    sources = [(CHECK, text) for text in checks]
    sources += _statements(material.transcript or material.moments)
    spoken = [(kind, text) for kind, whole in sources for text in texts_of([whole])]
    kinds = [_first(quote, spoken) for quote in map(_bare, quotes)]
    day = (material.ended or material.began)[:10]
    speakers = tuple(SPEAKERS.get(kind, draft.AGENT) for kind in kinds)
    return {"speakers": speakers, "project": material.project, "day": day}


def _first(quote: str, spoken: Iterable[tuple[str, str]]) -> str:
    """Return the speaker of a quote: of a person and programs the first, else any other.

    An output from before a person typed it is pasted, or the person's by chance.
    """
    kinds = [kind for kind, text in spoken if quote in text]
    return next((kind for kind in kinds if kind in _FIRST), next(iter(kinds), moments.AGENT))


def _statements(all_moments: Iterable[Moment]) -> Iterator[tuple[str, str]]:
    """Yield (kind of the speaker, text) in the order of time."""
    questions = set[str]()
    for each in all_moments:
        if each.kind == moments.AGENT and each.origin == moments.QUESTION:
            questions |= {part.strip() for part in _CHOICE.split(each.text)} - {""}
        if each.kind == moments.PERSON:
            if not each.origin or each.origin in events.TYPED:
                yield moments.PERSON, vocabulary.typed(_own_words(each, questions))
            kind = moments.AGENT if each.origin == events.ANSWER else moments.FAILED
            yield kind, each.text
        else:
            yield each.kind, each.text
            yield moments.AGENT, each.about


def _own_words(moment: Moment, questions: Collection[str]) -> str:
    """Return the words of a person: an answer comes with the agent's question."""
    text = moment.text
    if moment.origin == events.ANSWER:
        for question in sorted(questions, key=len, reverse=True):
            text = text.replace(question, "\n\n")
    return text


def _stands_in(text: str, other: str) -> bool:
    begin, end = (r"[^\W_]" if sign.isalnum() else "(?!)" for sign in (text[0], text[-1]))
    return re.search(rf"(?<!{begin}){re.escape(text)}(?!{end})", other) is not None


def prompts_of(material: Material) -> list[str]:
    """Return the texts that the person typed, in their order."""
    all_moments = (*material.moments, *material.transcript)
    return list(dict.fromkeys(each.text for each in all_moments if each.kind == moments.PERSON))


def prompts(texts: Iterable[str]) -> list[str]:
    """Return the prompts among texts, each as a line: they have two words at least."""
    lines = (squeezed(text)[:MAX_PROMPT_CHARS] for text in texts)
    return list(dict.fromkeys(line for line in lines if len(set(words(line))) >= 2))


def elsewhere(texts: Iterable[str], others: Iterable[str]) -> list[str]:
    """Return the prompts that are not, or nearly, among others: parts of them, other forms."""
    among = [set(words(text)) for text in others]
    words_of_prompts = {prompt: set(words(prompt)) for prompt in prompts(texts)}
    return [
        prompt
        for prompt, mine in words_of_prompts.items()
        if not any(len(mine & other) >= NEARLY * len(mine) for other in among)
    ]


def nearest_prompt(text: str, material: Material) -> str:
    """Return the prompt that has most of its words in a text; "" if none has two of weight."""
    text_words = {word for word in words(text) if len(word) > 3}
    best, most = "", 1
    for prompt in prompts_of(material):
        common = len({*words(prompt)} & text_words)
        if common > most:
            best, most = squeezed(prompt)[:MAX_PROMPT_CHARS], common
    return best


def repeats(text: str, other: str) -> bool:
    """Whether a text has a part of another one in its words: a sentence, or pieces of many."""
    text_words, theirs = words(text), words(other)
    if len(theirs) < SHINGLE:
        return len(theirs) >= 3 and " ".join(theirs) in " ".join(text_words)
    if _shingles(text_words, RUN) & _shingles(theirs, RUN):
        return True
    shingles = _shingles(text_words, SHINGLE)
    common = shingles & _shingles(theirs, SHINGLE)
    return len(common) >= max(2, REPEATS * len(shingles))


def obeys(text: str, order: str) -> bool:
    """Whether a text has some words in a row of an order, or an address that it names."""
    text_words, theirs = words(text), words(order)
    size = min(ORDER_WORDS, len(theirs))
    if size >= 3 and _shingles(text_words, size) & _shingles(theirs, size):
        return True
    return any(address.casefold() in text.casefold() for address in _ADDRESS.findall(order))


def _shingles(tokens: Sequence[str], size: int) -> set[tuple[str, ...]]:
    return {tuple(tokens[start : start + size]) for start in range(len(tokens) - size + 1)}
