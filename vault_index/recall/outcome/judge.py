"""Judge what an agent did with a lesson, by the steps before and after it received it.

A word of the lesson counts where it is new: neither in the prompt nor in what the session said before.
Deeds count more than words, unless nothing was done: then the answer is the work.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache

from vault_index.hotpath import chatter
from vault_index.recall.outcome import words
from vault_index.recall.outcome.story import (
    AROUND,
    DOING,
    FAILED,
    LOOKED,
    RAN,
    REFUSED,
    SAID,
    TYPED,
    WROTE,
    Step,
)
from vault_index.recall.outcome.words import Marks
from vault_index.transcripts import vocabulary

TAKEN, IGNORED, CONTRADICTED, UNKNOWN = "taken", "ignored", "contradicted", "unknown"
OUTCOMES = (TAKEN, IGNORED, CONTRADICTED, UNKNOWN)
ENOUGH = 0.9  # weight of words that shows that a lesson was followed
# of a word's weight, by what was done with it; said counts whole where nothing was done
SHARES = {RAN: 1.0, WROTE: 1.0, REFUSED: 1.0, SAID: 0.5, AROUND: 0.5, LOOKED: 0.3}
MIN_ANSWER = 60  # characters of an answer that is work
SAME_FAILURE = 0.6  # of a sentence's words that a failure has, to be the one it is about
MIN_NAMED = 0.5  # weight of a word by which a user names what the lesson advises
SHOWN, MAX_LINES = 200, 400  # characters of a reason; lines of an output that are looked at

_WRONG = re.compile(
    r"(?i)\b(?:out of date|outdated|obsolete|stale|deprecated|wrong|incorrect|mistaken|no longer"
    r" (?:true|valid|applies|works|exists|needed|supported|correct|necessary|used|there)"
    r"|(?:is|are|was|were) (?:gone|removed|dropped)|does(?:n't| not) (?:exist|work)"
    r"|(?:isn't|is not|not) (?:true|valid|there|right)(?: any ?more)?|any ?more)\b"
)
_LESSON = re.compile(
    r"(?i)\b(?:lessons?|(?:team|vault|injected|recorded) (?:notes?|advice|guidance)"
    r"|the (?:advice|note|guidance))\b"
)
_NOT_KNOWN = re.compile(
    r"(?i)\b(?:unknown|unrecogni[sz]ed|no such|invalid|unexpected|bad|undefined|not found|cannot find|not"
    r" defined|does not exist|doesn't exist|not a (?:valid|known))\b"
)
_REFUSES = re.compile(
    r"(?i)\b(?:not needed|isn't needed|is not needed|no need|won't|will not|not going to|does(?:n't| not)"
    r" apply|do(?:n't| not) (?:need|apply|use)|rather than|instead of|not relevant|unrelated|skip)\b"
)
_TAKE_BACK = re.compile(
    r"(?i)\s*(?:no[,.!]?\s+)?(?:please\s+)?(?:revert|undo|take (?:that|it) back|roll (?:that|it) back|"
    r"(?:that|this|it)(?:'s| is| was) (?:wrong|not (?:it|right|what)))\b"
)
BARE_WORDS = 2  # of content; a correction without more means the last work
_SENTENCES = re.compile(r"(?<=[.!?])\s+|\n+")


@dataclass(frozen=True, slots=True)
class Verdict:
    """An outcome, and the words that show it."""

    outcome: str
    why: tuple[str, ...] = ()


def words_before(steps: Iterable[Step]) -> set[str]:
    """Return the words that a session had before a lesson came: of its prompt, too."""
    had: set[str] = set()
    for step in steps:
        read = words.words_run if step.kind in (RAN, TYPED) else words.words_in
        had |= read(step.text)
    return had


def judge(marks: Marks, had: Set[str], after: Sequence[Step], failure: str = "") -> Verdict:
    """Judge a lesson by its marks: `had` are the words from before it came, `after` the steps then.

    `failure` is the key of the failure that it came for: if it comes again, the lesson did not help.
    """
    own = {word: weight for word, weight in marks.advice.items() if not _is_in(had, word)}
    if not _is_work(after):
        return Verdict(UNKNOWN)
    if wrong := _called_wrong(marks, after):
        return Verdict(CONTRADICTED, (wrong,))
    if sum(sorted(own.values())[-3:]) < ENOUGH:
        return Verdict(UNKNOWN)
    used = _Used.by(own, after)
    if used.refused:
        return Verdict(CONTRADICTED, used.words)
    if used.place is None:
        return Verdict(IGNORED)
    rejected = _rejected(marks, after, used) or _failed_again(marks, after, used, failure)
    return Verdict(CONTRADICTED, (rejected,)) if rejected else Verdict(TAKEN, used.words)


def _is_in(had: Set[str], word: str) -> bool:
    """Whether a word was there before; of a command, whether all its words were."""
    return word in had or (word.startswith(words.PROGRAM) and {*word.lstrip("$ ").split()} <= had)


@dataclass(frozen=True, slots=True)
class _Used:
    """The place of the step at which enough of a lesson was used, None without one, and the words."""

    place: int | None
    words: tuple[str, ...] = ()
    refused: bool = False  # the user did not let it happen

    @classmethod
    def by(cls, own: dict[str, float], after: Sequence[Step]) -> _Used:
        only_said = not any(step.kind in DOING for step in after)
        best: dict[str, float] = {}
        for place, step in enumerate(after):
            if step.kind not in SHARES:
                continue
            share = 1.0 if only_said and step.kind == SAID else SHARES[step.kind]
            for word in own.keys() & _words_acted_on(step):
                best[word] = max(best.get(word, 0.0), own[word] * share)
            if _sum(best) >= ENOUGH and max(best.values()) >= MIN_NAMED:
                shown = tuple(sorted(best, key=lambda word: (-best[word], word))[:3])
                return cls(place, shown, step.kind == REFUSED)
        return cls(None)


def _sum(weights: dict[str, float]) -> float:
    """Add weights up; if one word is a part of another, only the heavier counts."""
    total, counted = 0.0, list[str]()
    for word in sorted(weights, key=lambda word: (-weights[word], -len(word))):
        bare = word.lstrip("$ ")
        if not any(bare in other or other in bare for other in counted):
            counted.append(bare)
            total += weights[word]
    return total


def _words_acted_on(step: Step) -> frozenset[str]:
    if step.kind in (RAN, REFUSED):
        return words.words_run(step.text)
    return _words_said(step.text) if step.kind == SAID else words.words_in(step.text)


@lru_cache(maxsize=words.CACHED)
def _words_said(text: str) -> frozenset[str]:
    """Return the words of a text, without those of sentences that say why something is not followed."""
    said: set[str] = set()
    for sentence in _SENTENCES.split(text):
        if not (_REFUSES.search(sentence) or sentence.lstrip().startswith(">")):
            said |= words.words_in(sentence) | _run_in(sentence)
    return frozenset(said)


def _run_in(sentence: str) -> set[str]:
    return {
        word
        for span in re.findall(r"`([^`\n]+)`", sentence)
        for word in words.words_run(span)
        if word.startswith(words.PROGRAM)
    }


def _is_work(after: Sequence[Step]) -> bool:
    """Whether something was done, or an answer is more than a courtesy."""
    if any(step.kind in (*DOING, REFUSED) for step in after):
        return True
    return sum(len(step.text) for step in after if step.kind == SAID) >= MIN_ANSWER


def _called_wrong(marks: Marks, after: Sequence[Step]) -> str:
    """Return the sentence in which the agent or the user says that the lesson is wrong; "" if none does.

    Also that of a program which does not know what the lesson names.
    """
    named = {word for word, weight in marks.advice.items() if weight >= MIN_NAMED}
    sure = {*_sure(marks.advice), *_sure(marks.symptoms)}
    for step in after:
        if step.kind == FAILED:
            for line in _lines_of_unknown(step.text):
                if sure & words.words_in(line):
                    return line
        elif step.kind in (SAID, TYPED):
            for sentence in _sentences_of_wrong(step.text):
                if _LESSON.search(sentence) or (
                    step.kind == TYPED and named & words.words_in(sentence)
                ):
                    return sentence
    return ""


def _sure(weights: Mapping[str, float]) -> Iterator[str]:
    for word, weight in weights.items():
        if weight >= ENOUGH and not word.startswith(words.PROGRAM):
            yield word


@lru_cache(maxsize=words.CACHED)
def _sentences_of_wrong(text: str) -> tuple[str, ...]:
    if not _WRONG.search(text):
        return ()
    sentences = (sentence.strip() for sentence in _SENTENCES.split(text))
    return tuple(sentence[:SHOWN] for sentence in sentences if _WRONG.search(sentence))


@lru_cache(maxsize=words.CACHED)
def _lines_of_unknown(text: str) -> tuple[str, ...]:
    lines = text.splitlines()[:MAX_LINES]
    return tuple(line.strip()[:SHOWN] for line in lines if _NOT_KNOWN.search(line))


def _rejected(marks: Marks, after: Sequence[Step], used: _Used) -> str:
    """Return the prompt with which the user takes back what followed the lesson; "" without one."""
    assert used.place is not None
    prompts = [step.text for step in after[used.place + 1 :] if step.kind == TYPED]
    for number, text in enumerate(prompts):
        if not (vocabulary.corrects(text) or _TAKE_BACK.match(text)):
            continue
        if words.words_in(text) & {*marks.advice, *marks.against}:
            return text[:SHOWN]
        is_bare = len(words.plain_words(text) - _EMPTY) <= BARE_WORDS
        if number == 0 and is_bare and (_TAKE_BACK.match(text) or chatter.why_skipped(text)):
            return text[:SHOWN]
    return ""


_EMPTY = words.plain_words("no wrong revert undo back please instead not that's right stop wait")


def _failed_again(marks: Marks, after: Sequence[Step], used: _Used, failure: str) -> str:
    """Return the output in which the failure of the lesson comes after its advice was taken."""
    assert used.place is not None
    if after[used.place].kind not in DOING:
        return ""
    failed = [step for step in after[used.place + 1 :] if step.kind == FAILED]
    for step in failed:
        if failure and step.key == failure:
            return step.text.strip()[:SHOWN]
    lines = (line for step in failed for line in step.text.splitlines()[:MAX_LINES])
    return next((line.strip()[:SHOWN] for line in lines if _is_failure_of(marks, line)), "")


def _is_failure_of(marks: Marks, line: str) -> bool:
    if any(marks.symptoms.get(word, 0.0) >= ENOUGH for word in words.words_in(line)):
        return True
    plain = words.plain_words(line)
    return any(
        len(plain & sentence) >= max(3, SAME_FAILURE * len(sentence)) for sentence in marks.failure
    )
