"""Judge what an agent did with a lesson, by the steps before and after it received it.

Only deeds show that a lesson was taken: a command, a setting with its value, or two names, new to the
session. Only the opposite contradicts it: a person's words against its advice, and, once that was
followed, a program that does not know it, the same failure again, or a person who has it undone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import takewhile

from vault_index.recall.outcome import words
from vault_index.recall.outcome.story import (
    DOING,
    FAILED,
    RAN,
    REFUSED,
    SAID,
    SEEN,
    TYPED,
    WROTE,
    Step,
)
from vault_index.recall.outcome.words import Marks
from vault_index.transcripts import events

TAKEN, IGNORED, CONTRADICTED, UNKNOWN = "taken", "ignored", "contradicted", "unknown"
OUTCOMES = (TAKEN, IGNORED, CONTRADICTED, UNKNOWN)
TURNS = 5  # prompts after a lesson came, in which it may be of use
MIN_SESSIONS, SESSIONS_SHARE = 2, 1 / 3  # of other sessions that have a word, for it to be common
MIN_NAMES = 2  # that show that advice was followed; one may be there by chance
SAME_FAILURE = 0.6  # of a sentence's words that a failure has, to be the one it is about
SHOWN, MAX_LINES = 200, 400  # characters of a reason; lines of an output that are looked at
MAX_SAID = 2000  # characters of a prompt that are a person's own words; a longer one has a paste
BARE_WORDS = 2  # of content: "revert that" means the last work

_GONE = (
    r"gone|removed|dropped|deprecated|dead|(?:out of date|outdated|obsolete|stale|wrong|incorrect"
    r"|mistaken)(?: by now)?"
)
_NOT_SO = r"(?:\w+ )?(?:correct|right|true|needed|valid|supported|there|available|allowed|what)\b"
_IS_WRONG = re.compile(
    rf"(?i)[`'\"()]*\s+(?:(?:is|are|was|were|has been|have been) (?:\w+ )?(?:{_GONE})\b"
    rf"|(?:is|are|was|were) not {_NOT_SO}|(?:isn't|aren't|wasn't) {_NOT_SO}"
    r"|(?:is |are |\w+ )?no longer\b|do(?:es)? nothing\b|do(?:es)?(?:n't| not) (?:work|exist|help|apply))"
)
_IS_GONE = re.compile(  # of the agent, which calls much of its own work wrong
    r"(?i)[`'\"()]*\s+(?:(?:flag|module|command|option|setting|function|method|class|package)\s+)?"
    r"(?:(?:is|was|were|has been|have been) (?:\w+ )?(?:removed|deprecated|gone|obsolete)\b"
    r"|(?:is |\w+ )?no longer (?:there|exists?|supported|works|available)\b"
    r"|do(?:es)?(?:n't| not) exist\b|(?:isn't|is not) (?:\w+ )?(?:supported|available|allowed)\b)"
)
_WITHOUT = re.compile(
    r"(?i)\b(?:do not|don't|never|not|no|without|remove|drop|revert|undo|instead of|rather than"
    r"|get rid of|stop using)\b(?! (?:forget|only|just|sure))(?:\W+\w+){0,3}\W+$"
)
_LESSON_IS_WRONG = re.compile(
    r"(?i)\b(?:the|that|this) (?:lesson|(?:team |vault |injected )?(?:note|advice|guidance))\b"
    rf"[^.!?]{{0,60}}\b(?:is|was|are) (?:{_GONE}|no longer|not (?:true|valid|right|correct))\b"
)
_NOT_KNOWN = re.compile(
    r"(?i)\b(?:unknown|unrecogni[sz]ed|no such|invalid|unexpected|undefined|not (?:found|defined|allowed"
    r"|supported|a (?:valid|known))|cannot find|does(?:n't| not) exist)\b"
)
_TAKE_BACK = re.compile(
    r"(?i)\s*(?:no[,.!]?\s+)?(?:please\s+)?(?:revert|undo|(?:take|roll) (?:that|it) back)\b"
)
_CLAUSES = re.compile(r"(?<=[.!?])\s+|\n+|[,:;]\s+")
_EMPTY = words.plain_words("no revert undo take roll back please that's stop")


@dataclass(frozen=True, slots=True)
class Verdict:
    """An outcome, and the words that show it."""

    outcome: str
    why: tuple[str, ...] = ()


def words_before(steps: Iterable[Step]) -> set[str]:
    """Return all that a session had before a lesson came: of its prompt, too."""
    had: set[str] = set()
    for step in steps:
        had |= words.there_in(step.text)
        if step.kind == RAN:
            had |= words.commands_in(step.text)
        elif step.kind == TYPED:
            had |= words.commands_typed(step.text)
    return had


def common(signs: Iterable[str], others: Sequence[Set[str]]) -> frozenset[str]:
    """Return the signs that are common in other sessions of a project, by `words_before` of each."""
    least = max(MIN_SESSIONS, len(others) * SESSIONS_SHARE)
    return frozenset(sign for sign in signs if sum(sign in had for had in others) >= least)


def turns_after(steps: Sequence[Step], start: int, turns: int = TURNS) -> Sequence[Step]:
    """Return the steps from `start` that count: until so many prompts later."""
    typed = [at for at in range(start, len(steps)) if steps[at].kind == TYPED]
    return steps[start : typed[turns] if len(typed) > turns else len(steps)]


def judge(marks: Marks, had: Set[str], after: Sequence[Step], failure: str = "") -> Verdict:
    """Judge a lesson by its marks: `had` is what was there before it came, `after` the steps then.

    `failure` is the key of the failure that it came for: if it comes again, the lesson did not help.
    """
    if opposite := next((said for step in after if (said := _opposes(marks, step))), ""):
        return Verdict(CONTRADICTED, (opposite,))
    if unknown := _not_known(marks, after):
        return Verdict(CONTRADICTED, (unknown,))
    own = marks.without(had)
    place, used = _used(own, after)
    if place is None:  # ignored, if work was done and nothing of the lesson is in it or was refused
        worked = [step.text for step in after if step.kind in (*DOING, REFUSED)]
        is_there = any(own.named & words.there_in(text) for text in worked)
        return Verdict(IGNORED if own.can_prove and worked and not is_there else UNKNOWN)
    later = after[place + 1 :]
    turn = list(takewhile(lambda step: step.kind != TYPED, later))
    if wrong := _failed_again(marks, turn, failure) or _undone(later):
        return Verdict(CONTRADICTED, (wrong,))
    return Verdict(TAKEN, tuple(sorted(used)))


def is_done(marks: Marks, had: Set[str], after: Sequence[Step]) -> bool | None:
    """Return whether what a lesson advises was done, told or not; None where nothing can show it."""
    own = marks.without(had)
    return _used(own, after)[0] is not None if own.can_prove else None


def _used(own: Marks, after: Sequence[Step]) -> tuple[int | None, set[str]]:
    """Return the place of the step that proves that advice was followed, or None; and the signs."""
    used: set[str] = set()
    all_names = own.names
    own = replace(own, settings=own.settings - _replaced(after))
    for place, step in enumerate(after):
        if step.kind == SEEN:  # what it has from elsewhere
            own = own.without(words.there_in(step.text))
        elif step.kind == RAN:
            used |= own.commands & words.commands_in(step.text)
            used |= (own.settings | own.names) & words.done_by(step.text)
        elif step.kind == WROTE:
            used |= own.settings & words.settings_in(step.text)
            used |= own.names & words.names_in(step.text)
        names = used & all_names
        apart = [name for name in names if not any(name in other for other in names - {name})]
        if used - names or len(apart) >= MIN_NAMES:
            return place, used
    return None, used


def _replaced(after: Sequence[Step]) -> set[str]:
    """Return the settings that got another value later."""
    latest: dict[str, str] = {}
    every: set[str] = set()
    for step in after:
        if step.kind in DOING:
            for setting in words.settings_in(step.text):
                if not setting.endswith(")"):
                    latest[re.split("[=:]", setting, maxsplit=1)[0]] = setting
                    every.add(setting)
    return every - set(latest.values())


def _opposes(marks: Marks, step: Step) -> str:
    """Return the sentence in which a person says the opposite of a lesson's advice; "" if none does.

    Also that in which the agent calls the lesson itself wrong.
    """
    if step.kind not in (SAID, TYPED) or step.origin in (events.PLAN, events.AUTOMATED):
        return ""
    if is_wrong := _LESSON_IS_WRONG.search(step.text):
        return is_wrong[0]
    is_typed = step.kind == TYPED
    wrong = _IS_WRONG if is_typed else _IS_GONE
    for clause in _clauses(step.text[:MAX_SAID]):
        for word in words.WORD.finditer(clause):
            if word[0].lower() in marks.named and (
                wrong.match(clause, word.end())
                or (is_typed and _WITHOUT.search(clause[: word.start()]))
            ):
                return clause[:SHOWN]
    return ""


@lru_cache(maxsize=words.CACHED)
def _clauses(text: str) -> tuple[str, ...]:
    return tuple(each for each in _CLAUSES.split(text) if not each.rstrip().endswith("?"))


def _not_known(marks: Marks, after: Iterable[Step]) -> str:
    """Return the line in which a program that was run as advised does not know what it got."""
    tried: frozenset[str] = frozenset()
    for step in after:
        if step.kind == RAN:
            signs = marks.commands & words.commands_in(step.text)
            tried = frozenset(sign.rpartition(" ")[2].lstrip("-") for sign in signs)
        elif step.kind == FAILED and tried:
            for line in _lines(step):
                named = {word.lower().lstrip("-") for word in words.WORD.findall(line)}
                if tried & named and _NOT_KNOWN.search(line):
                    return line
    return ""


def _failed_again(marks: Marks, later: Sequence[Step], failure: str) -> str:
    """Return the output in which the failure of the lesson comes after its advice was followed."""
    for step in later:
        if failure and step.kind == FAILED and step.key == failure:
            return step.text.strip()[:SHOWN]
    for line in (line for step in later if step.kind == FAILED for line in _lines(step)):
        plain = words.plain_words(line)
        for sentence in marks.failures:
            if len(plain & sentence) >= max(words.MIN_FAILURE, SAME_FAILURE * len(sentence)):
                return line
    return ""


def _lines(step: Step) -> list[str]:
    return [line.strip()[:SHOWN] for line in step.text.splitlines()[:MAX_LINES]]


def _undone(later: Iterable[Step]) -> str:
    """Return the prompt with which a person has the last work undone; "" without one."""
    text = next((step.text for step in later if step.kind == TYPED), "")
    is_bare = len(words.plain_words(text) - _EMPTY) <= BARE_WORDS
    return text[:SHOWN] if is_bare and _TAKE_BACK.match(text) else ""
