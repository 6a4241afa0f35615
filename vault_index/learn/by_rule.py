"""Drafts without a model: what a person stated, and what failed and how it passed.

Few, since most sessions teach nothing that rules can see. A draft is a beginning that a person edits: a
sentence for what, one for why, some lines of the change, and the sentence that it rests on.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from vault_index.hotpath import chatter
from vault_index.learn.material import Entry, Material, Repair, Said
from vault_index.lesson.passages import Parts
from vault_index.transcripts import events, signs, tools, vocabulary

MAX_ENTRIES = 3  # of a session
MAX_SUMMARY, MAX_QUOTED, MAX_LINE = 500, 300, 200  # characters
MAX_LINES = 6  # of a change, or of an output
MIN_STATEMENT, MIN_FAILURE, MIN_REPAIR = 3.5, 4.5, 3.5  # points
SURE = 5.5  # points from which a draft has confidence 3
_TYPED_WHILE_WORKING = (events.BESIDE_RESULT, events.QUEUED)
_NOT_TYPED = (events.PLAN, events.SHELL_COMMAND, events.ANSWER)


_Draft = tuple[float, Entry]  # a draft behind its importance


def entries(material: Material) -> list[Entry]:
    """Return what a session taught, the most important first, each with its evidence."""
    statements = list(_statements(material))
    told = {each.number for each in statements}
    drafts = [_from_statement(material, each, told) for each in statements]
    drafts += [_from_failure(material, each, told) for each in _failures(material)]
    chosen: list[Entry] = []
    for _, entry in sorted(filter(None, drafts), key=lambda draft: -draft[0]):
        is_quoted = all(any(each in text for text in material.texts) for each in entry.quotes)
        if is_quoted and not any(_is_same(entry, other) for other in chosen):
            chosen.append(entry)
    return chosen[:MAX_ENTRIES]


def _is_same(entry: Entry, other: Entry) -> bool:
    mine, others = (_words(f"{each.title} {each.parts.summary}") for each in (entry, other))
    return len(mine & others) > 0.5 * max(1, min(len(mine), len(others)))


def _from_statement(material: Material, stated: _Statement, told: set[int]) -> _Draft | None:
    said = stated.said
    is_sure = vocabulary.rule_strength(stated.text) == 2 or stated.points >= SURE
    entry = Entry(
        type="project_rule",
        title=_title(stated.text),
        parts=Parts(_sentence(stated.text), _shown_change(said.change), _answered(said)),
        category=_category(said.files),
        tags=_tags((*said.files, *_names(stated.text)), said.did),
        confidence=3 if is_sure else 2,
        quotes=(vocabulary.verbatim(stated.text, [said.text]),),
    )
    return _complete(material, entry, stated.number, told, stated.points)


def _from_failure(material: Material, failure: _Failure, told: set[int]) -> _Draft | None:
    repair, cause = failure.repair, failure.cause
    said = material.prompts[failure.number] if failure.number >= 0 else Said("")
    error = _error_of(repair) if repair else ""
    title = _title(cause) or (_title_of_repair(repair, error) if repair else "")
    change, files = (repair.change, repair.files) if repair else (said.change, said.files)
    problem = f"Reported as: {vocabulary.one_line(said.text, MAX_QUOTED)}"
    explanation = [_shown_change(change)]
    if repair:
        command = vocabulary.one_line(repair.command, 120)
        problem = f"`{command}` failed:\n\n{_fenced(repair.failed)}"
        passed = vocabulary.one_line(repair.passed, MAX_LINE)
        explanation += [f"Then it passed: {passed}"] if passed else []
    ran = [line[2:] for line in change.splitlines() if line.startswith("$ ")]
    after = f" After this it passed: `{vocabulary.one_line(ran[-1], 160)}`." if ran else ""
    entry = Entry(
        type="bug_fix" if files or repair or _REPORTS.search(said.text) else "architecture",
        title=title,
        parts=Parts(
            _sentence(cause or f"{title}.{after}"),
            "\n\n".join(filter(None, explanation)),
            problem,
        ),
        category=_category(files),
        tags=_tags((*files, *_names(cause or title)), [repair.command] if repair else []),
        confidence=3 if cause and (repair or failure.points >= SURE) else 2,
        quotes=(vocabulary.verbatim(cause, material.narrative), error) if cause else (error,),
    )
    return _complete(material, entry, failure.number, told - {failure.number}, failure.points)


def _complete(
    material: Material, entry: Entry, number: int, told: set[int], points: float
) -> _Draft | None:
    """Return a draft with its prompts; None without a title, a quote, or a prompt to fire on."""
    subject = f"{entry.parts.summary} {entry.parts.problem}"
    fires = _fires_on(material, number, subject, told)
    quotes = tuple(filter(None, entry.quotes))
    if not entry.title or not quotes or not fires:
        return None
    silent = _silent_on(material, " ".join([subject, *fires]))
    whole = replace(entry, fires_on=fires, silent_on=silent, quotes=quotes, by_rule=True)
    return points, whole


def _answered(said: Said) -> str:
    """Return what the agent had said, or the call that was refused."""
    if said.is_refusal and said.did:
        return f"The user refused `{vocabulary.one_line(said.did[-1], 160)}`."
    lines = [line for line, _ in vocabulary.plain_lines(said.answers) if len(line) > 20]
    return f"The agent had said: {vocabulary.tail(lines[-1], MAX_QUOTED)}" if lines else ""


def _shown_change(change: str) -> str:
    return f"What was changed:\n\n{_fenced(change, 'diff')}" if change else ""


def _fenced(text: str, language: str = "") -> str:
    lines = [vocabulary.one_line(line, MAX_LINE) if len(line) > MAX_LINE else line
             for line in text.splitlines()[:MAX_LINES]]  # fmt: skip
    fence = "````" if any("```" in line for line in lines) else "```"
    return "\n".join([f"{fence}{language}", *lines, fence])


def _sentence(text: str) -> str:
    """Return a text that begins and ends as a sentence."""
    text = vocabulary.one_line(_reworded(text), MAX_SUMMARY)
    if text.split(" ")[0].replace("'", "").isalpha():
        text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "!", "?", "`")) or not text[-1:].isascii() else f"{text}."


# What a person stated: corrections, refusals with a reason, rules of the project.


@dataclass(frozen=True, slots=True)
class _Statement:
    """A sentence of a prompt. `number` is that of the prompt."""

    text: str
    said: Said
    number: int
    points: float


def _any(*words: str) -> re.Pattern[str]:
    """Return a pattern of alternatives that are whole words."""
    return re.compile(rf"\b(?:{'|'.join(words)})(?!\w)", re.IGNORECASE)


_WRONG = re.compile(
    r"(?i)\b(?:not|isn't|aren't|is|are|was|that's) (?:\w+ )?(?:correct|right|true|incorrect|wrong)\b"
    r"|\b(?:doesn't|does not|won't|can't|didn't) work\b|\bi (?:already )?(?:said|told you)\b"
    r"|\byou (?:didn't|did not|forgot|missed|should(?:n't| not)? have|keep)\b"
    r"|\b(?:ist|war) (?:falsch|nicht richtig)\b|yanl\u0131ş|değil\b|틀렸|잘못|아니라|違|間違|ではなく"
)
_NO_NOUN = re.compile(
    r"(?i)^\W*no (?!(?:i|we|you|it|that|this|the|don't|do|use|not|just|need)\b)[a-z]"
)
_WANTS = _any(
    r"i (?:don't|do not) (?:want|like|need)",
    r"(?:i|we) want",
    r"i(?:'d| would)? (?:prefer|rather)",
    r"let's (?:not|keep|always|never|stick)",
    r"(?:ich|wir) (?:will|wollen|möchten?)",
    r"(?:no|nope|wait|stop|actually|instead|nein|non)[,.!: ]+(?:please |rather |just )?(?:use|keep|take"
    r"|call|read|store|return|raise|log|pass|wrap|test|send|sort|split|validate)",
    "istemiyor",
)
_CONTRAST = re.compile(
    r"\b(?:instead of|rather than|sondern|statt|yerine|but not|but the|not\b.*\bbut"
    r"|not (?:correct|right|true), (?:that|it|this) is|both\b.*\band"
    r"|stays?|only\b.*\b(?:if|when|for))\b|, not \S|\bONLY\b|대신|말고|ではなく",
)  # the case of ONLY matters
_FACT = re.compile(
    r"(?i)\b(?:is|are|was|has|have|can|can't|cannot|never|always|will|won't|doesn't|does|uses?|stays?"
    r"|ist|sind|hat|wird)\b|합니다|입니다|です|ます"
)
# a request of the moment: it has no effect on later work
_REQUEST = re.compile(
    r"(?i)^\W*(?:(?:ok|okay|yes|great|now|then|and|also|please|so|next)[, !.]+)*"
    r"(?:please |can you |could you |can we |let's |let us |i'd like (?:to|you) |we (?:should|need to"
    r"|have to|could) )?(?:also |please )?"
    r"(?:commit|push|re-?run|run|continue|go|proceed|merge|open|show|explain|look|check|tell|review"
    r"|summari[sz]e|write|make|add|create|build|implement|put|rename|remove|delete|change|update|fix"
    r"|bump|install|try|start|set up|copy|do|give|find|replace|search|list|print|read|help|see|work"
    r"|move|port|investigate|take|have|clean|leave|close|discuss|figure)\b"
)
_OF_THE_MOMENT = _any(
    r"in this (?:branch|pr|session|chat|conversation)",
    "should have been|for now|right now|yet|today|yesterday|tomorrow|this time|at the moment",
    "next step|thank|sorry",
    r"i (?:need|have|tried|did|just|was|can|can't|saw|see|deleted|moved|already|guess|assume)",
    r"you (?:deleted|wrote|said|broke|made)",
    r"let's see|screenshot|colou?r|button|font|pixel|wider|bigger|smaller|wonder|curious|a bit",
    r"confus\w+|maybe|might|would|seem",
)
_FOUL = re.compile(
    r"(?i)\b(?:fuck\w*|shit\w*|(?:god)?damn\w*|wtf|idiot\w*|stupid|crap|hell|bullshit|oh my god|painful"
    r"|you are (?:always )?wrong|mess)\b|[!?]{3,}"
)
_QUESTION = re.compile(
    r"(?i)\?\s*$|^\W*(?:why|what|how|is there|are there|does|do you|did|which|who|where|could|can we"
    r"|would|should we|is it|are you|any)\b"
)
# what a task demands is no rule of the project, unless it says so
_OF_PROJECT = re.compile(
    r"(?i)\b(?:we|our|us|this (?:project|repo\w*|codebase|team)|from now on|in future|convention"
    r"|commits?|tests?|pull requests?|PRs?|branch(?:es)?|migrations?|releases?|wir|unser\w*|biz\w*)\b"
    r"|[\uac00-\ud7a3\u3040-\u30ff]"
)
_PERSON = _any(
    "i|we|you|our|my|your|let's|please|should|must|always|don't|want|need|ich|wir|bitte|biz|lütfen"
)
_CHANGED = re.compile(r"\b(?:renam\w+|once more|instead|no longer|changed? (?:my mind|in plan))\b")


def _statements(material: Material) -> Iterator[_Statement]:
    """Yield the best sentence of each prompt that is worth more than its moment."""
    there = []
    for number, said in enumerate(material.prompts):
        if said.origin in _NOT_TYPED:
            continue
        texts = _prose(said.text)
        is_pasted = len(said.text) > 700 or said.text.count("\n") > 3
        scored = [
            _Statement(
                text, said, number, _points_of_statement(text, said, place < 3 or len(texts) < 5)
            )
            for place, text in enumerate(texts[:40])
            if not is_pasted or _PERSON.search(vocabulary.straight(text)) or not text.isascii()
        ]
        best = max(scored, key=lambda each: each.points, default=None)
        if best and best.points >= MIN_STATEMENT:
            there.append(best)
    numbers = {each.number for each in there}
    yield from (each for each in there if not _is_overtaken(each, numbers, material.prompts))


def _points_of_statement(sentence: str, said: Said, is_near: bool) -> float:
    text = vocabulary.straight(sentence)
    words = _word_count(text)
    if words < 4 or _FOUL.search(text) or _QUESTION.search(text):
        return 0
    strength, named = vocabulary.rule_strength(text), min(2, len(_names(text)))
    is_addressed = said.is_correction or said.is_refusal or said.origin in _TYPED_WHILE_WORKING
    contradicts = is_addressed and vocabulary.corrects(text) and not _NO_NOUN.search(text)
    is_wrong = contradicts or bool(_WRONG.search(text))
    wants = bool(_WANTS.search(text))
    is_task = strength and not is_addressed and not is_wrong and not _OF_PROJECT.search(text)
    signs_of = (
        (2.0, said.is_refusal and is_near),
        (2.0 if said.answers else 1.0, is_wrong and not said.is_refusal),
        (1.0, said.is_correction and is_near and not is_wrong),
        (1.5 * strength, strength == 2),
        (1.0, strength == 1),
        (1.0, vocabulary.has_reason(text)),
        (1.5 if named else 1.0, _CONTRAST.search(text)),
        (0.5 + 0.5 * named, named),
        (1.5, wants),
        (1.0, said.origin in _TYPED_WHILE_WORKING and (wants or strength)),
        (0.5, _FACT.search(text)),
        (-2.0, _REQUEST.search(text) and strength < 2),
        (-2.0, _OF_THE_MOMENT.search(text)),
        (-1.5, is_task),
        (-1.0, _is_vague(text)),
        (-1.0, words > 40 or words < 6),
    )
    return sum(points for points, holds in signs_of if holds)


def _is_overtaken(stated: _Statement, numbers: set[int], prompts: Sequence[Said]) -> bool:
    """Whether a later prompt says something else about the same names."""
    mine = {name.lower() for name in _names(stated.text)}
    for number in range(stated.number + 1, len(prompts)):
        text = prompts[number].text.lower()
        is_about_them = mine and 2 * sum(name in text for name in mine) >= len(mine)
        if is_about_them and (number in numbers or _CHANGED.search(text)):
            return True
    return False


# What failed: checks that passed later, errors whose cause the agent named.

_ENVIRONMENT = re.compile(
    r"(?i)command not found|not recognized|permission|denied|protected branch|GH\d{3}|\b40[13]\b|\b429\b"
    r"|exit(?:ed with)? code 12[67]|no module named|cannot find module|module not found|not installed"
    r"|ENOENT|ECONN|EACCES|ENOMEM|EADDRINUSE|out of memory|heap|timed? ?out|rate limit|deprecated"
    r"|unsupported|incompatible|version mismatch|requires? \S+ version|certificate|ssl|signing|locked"
    r"|already in use|no space|quota|(?:unable to|could not) resolve|conflict|peer dep|hook declined"
    r"|disallowed|not allowed"
)
_NO_ERROR = re.compile(r"Exit code \d+$|===|\?|ok\b|(?:---? )?PASS|.*\(cached\)$|> |\$ ")
_REPORTS = re.compile(
    r"(?i)\b(?:error|fail\w*|broken?|crash\w*|bug|exception|traceback|denied|fatal|doesn't work|wrong"
    r"|not working|stopped|issue|problem|corrupt\w*|hang\w*|stuck|regress\w*|unable|cannot|can't|why"
    r"|fix|Fehler|kaputt|geht nicht|hata|çal\u0131şm\u0131yor)\b|오류|에러|실패|エラー|失敗|動かない"
)
_DENIES = re.compile(
    r"\b(?:still|again|not working|(?:doesn't|didn't) work|broken|wrong|same (?:error|issue|problem)"
    r"|NO|nope|never|regress|are you sure|cannot fix|immer noch|weiterhin|hâlâ)\b|여전히|まだ"
)  # the case of NO matters
_OWN_WORK = re.compile(
    r"(?i)^\W*(?:added|created|updated|wrote|fixed|changed|documented|committed|removed|moved|renamed)\b"
    r"|\bnot (?:caused|because|due)\b|\b(?:i|my|i've|i'd|i'm|we just|our (?:fix|change)|the new test"
    r"|the test|just (?:added|fixed|wrote|changed))\b|\blines? \d+|\bindent|\btypo\b"
    r"|\bspaces?\b.*\balign"
)
_LASTS = _any(
    r"always|never|only|requires?|no longer|by default|does(?:n't| not) support|read-only|must",
    r"overwrites?|registers?|silently|cannot|can't|removed in|deprecated|before|until|without|gets?",
)


@dataclass(frozen=True, slots=True)
class _Failure:
    """Something that failed. `cause` is the agent's sentence, "" for a repair without one."""

    cause: str
    points: float
    number: int  # of the prompt, -1 before the first
    repair: Repair | None = None


def _failures(material: Material) -> list[_Failure]:
    """Return what failed and may fail again; a repair with its cause counts once."""
    causes = {each.number: each for each in _causes(material)}
    repaired = [_repaired(each, causes.get(each.prompt)) for each in material.repairs]
    there = [each for each in repaired if each]
    told = {each.cause for each in there}
    return [*there, *(each for each in causes.values() if each.cause not in told)]


def _repaired(repair: Repair, cause: _Failure | None) -> _Failure | None:
    """Return a failure that was repaired; None for one of the agent's own making."""
    if cause and not repair.is_own and vocabulary.cause_strength(repair.conclusion) < 2:
        repair = replace(repair, conclusion=cause.cause)
    strength = vocabulary.cause_strength(repair.conclusion)
    is_environment = bool(_ENVIRONMENT.search(repair.failed))
    may_come_again = is_environment or (strength > 1 and not repair.is_own)
    if not (may_come_again and repair.change and tools.is_check(repair.command)):
        return None
    points = 2.0 + min(strength, 3) + 1.5 * is_environment + 0.5 * bool(repair.passed)
    points += (0.5 if _error_of(repair) else -1.0) - repair.is_own
    if points < MIN_REPAIR:
        return None
    return _Failure(repair.conclusion if strength else "", points + 1, repair.prompt, repair)


def _causes(material: Material) -> Iterator[_Failure]:
    """Yield the best cause that the agent named after each prompt."""
    prompts = material.prompts
    for number, said in enumerate(prompts):
        end = prompts[number + 1].first if number + 1 < len(prompts) else len(material.narrative)
        after = next((each.text[:300] for each in prompts[number + 1 :] if each.text[0] != "/"), "")
        named = [
            _Failure(text, _points_of_cause(text, said, after), number)
            for told in material.narrative[said.first : end]
            for text in vocabulary.sentences(told)
        ]
        best = max(reversed(named), key=lambda each: each.points, default=None)
        if best and best.points >= MIN_FAILURE:
            yield best


def _points_of_cause(sentence: str, said: Said, after: str) -> float:
    strength = vocabulary.cause_strength(sentence)
    if strength < 2 or not _is_prose(sentence):
        return 0
    points = {2: 1.5, 3: 2.5, 4: 3.0}[strength] + min(2.0, 0.75 * len(_names(sentence)))
    points += 0.5 if said.files else -1  # where nothing was changed, nothing shows that it is so
    points += bool(_REPORTS.search(said.text)) + 0.75 * bool(_LASTS.search(sentence))
    points -= 2 * bool(_DENIES.search(after)) + 2 * bool(_OWN_WORK.search(sentence))
    return points - 1.5 * _is_vague(sentence)


def _error_of(repair: Repair) -> str:
    """Return the line of the output that says what was wrong, "" if all only say that something was."""
    lines = map(str.strip, repair.failed.splitlines())
    telling = (line for line in lines if _ENVIRONMENT.search(line) and not _NO_ERROR.match(line))
    line = next(telling, "") or signs.error_line(repair.failed)
    bare = re.sub(r"(?i)\b(?:fail(?:ed|ure)?s?|error|task|tests?|\d+|ok)\b|[^\w ]", "", line)
    return line if bare.split() and not _NO_ERROR.match(line) else ""


# The title: the clause of a sentence that says the point. A person edits it.

MIN_TITLE, MAX_TITLE = 4, 10  # words
_OPENING = re.compile(
    r"(?i)^(?:(?:no|nope|nein|wait|stop|ok|okay|oh|well|yes|again|actually|sorry|u[hm]+|and|but|so|also|now"
    r"|please|bitte|hey|hay\u0131r|non|아니요?|いいえ|いや)\b(?![-_./'`])[,.!:\u3001 ]+"
    r"|i (?:think|mean|guess|believe|know|said|told you)(?: that)?,? |just to be sure,? |in short:? "
    r"|(?:it )?(?:seems|looks) like |(?:it )?turns out(?: that)? |from now on,? |in future,? "
    r"|(?:the|a|our|this) (?:\w+ )?(?:problem|issue|bug|reason|cause|error)(?: here)?"
    r"(?: is| was)?(?::| that| because|(?= the\b)|(?= `)) ?"
    r"|(?:can|could|would) you |you (?:did(?:n't| not)|forgot|should have|need)(?: \w+ out)? to "
    r"|(?:you|we) should |/[\w:-]+ |(?:we|wir) (?=\w))"
)
_WISHES = {
    r"(?i)^i (?:don't|do not) (?:want|need|like) (?:to (?:have|see) )?"
    r"(?:a (?:bunch|lot) of |any )?": "No ",
    r"(?i)^i(?:'d| would)? (?:want|like|prefer) ([^,;]{2,60}?) to be ": r"\1 should be ",
    r"(?i) (?:is|are) not (?:correct|right|true),? (?:that|it|this) is ": " is ",
    r"(?i) that (?:is|are) (\w+ed)\b": r" \1",
}
_ASIDE = re.compile(r"\s+(?:\([^()]+\)|\[[^\[\]]*\])(?!\()")
_CLAUSE_END = re.compile(
    r"(?i)[,;:](?=\s|$)|\s[-\u2013\u2014]{1,2}\s|\.\s|[\u3001\u3002\uff0c]"
    r"|,?\s(?:because|since|so that|so|but|although|unless|weil|aber|denn|damit|çünkü)\s"
)
_POINTS_AWAY = re.compile(  # at what only the conversation shows
    r"(?i)^(?:then|which|because|of|this|that|it|they|he|she|these|those|there|here|i|i'[mdv]\w?|you|your|das|es"
    r"|was|is|are|were|would|has|have|and|or)\b(?!-)"
    r"|\b(?:option \w|lines? \d+|first part|number \d|above|below|this one|these|those|i)\b"
)
_TAIL = re.compile(r"\s(?:at|in|on|during|for|with|as|via)\s\S+(?:\s\S+){0,4}$", re.IGNORECASE)
_NAME = re.compile(
    r"`[^`]+`|(?<!\w)'[^'\n]{2,40}'(?!\w)|\"[^\"\n]{2,40}\"|\b\w+[_./-]\w+|\b[a-z]+[A-Z]\w+"
    r"|\b[A-Z]{2,}\b|\b[A-Z][a-z]+[A-Z]\w*|--\w+|\b\d+\.\d+"
)


def _names(text: str) -> list[str]:
    """Return the names of code in a text: in backticks, paths, identifiers, flags, versions."""
    return list(dict.fromkeys(match.strip("`'\"") for match in _NAME.findall(text)))


def _is_vague(sentence: str) -> bool:
    return bool(_POINTS_AWAY.search(_reworded(sentence)))


def _reworded(sentence: str) -> str:
    """Return a sentence without the words by which talk begins, a wish as the rule that it is."""
    text = sentence.strip()
    while (shorter := _OPENING.sub("", text).strip()) not in ("", text):
        text = shorter
    for wish, rule in _WISHES.items():
        text = re.sub(wish, rule, text)
    return text


def _title(sentence: str) -> str:
    """Return a title of 4 to 10 words that a sentence has in it, never in the first person; or ""."""
    plain = re.sub(
        r"!?\[([^\]]*)\]\([^)\s]*\)|\*\*|(?<!\w)_(?=\w)|(?<=\w)_(?!\w)",
        r"\1",
        vocabulary.straight(sentence),
    )
    text = _reworded(" ".join(_ASIDE.sub("", plain).split()).strip(" .!?-"))
    text = re.sub(r"(?i)\bmy\b", "the user's", re.sub(r"(?i)\bour\b", "the", text))
    spans = [match.span() for match in _CLAUSE_END.finditer(text)]
    begins, ends = [0, *(end for _, end in spans)], [*(at for at, _ in spans), len(text)]
    clauses = [text[begin:end] for begin, end in zip(begins, ends, strict=True)]
    longer = [text[begin:end] for begin, end in zip(begins, ends[1:], strict=False)]
    shorter = [_TAIL.sub("", clause) for clause in clauses]
    return next(filter(_is_title, map(_as_title, (*clauses, *shorter, *longer))), "")


def _is_title(text: str) -> bool:
    is_wide = not text.isascii()
    if not MIN_TITLE - is_wide <= _word_count(text) <= MAX_TITLE or len(text) > 110:
        return False
    is_whole = text.count("`") % 2 == 0 and text.count("(") == text.count(")")
    return is_whole and not _POINTS_AWAY.search(text)


def _as_title(clause: str) -> str:
    text = clause.strip(' ,;:.!?-"\u2014\u3001')
    text = text.replace('"', "") if text.count('"') % 2 else text
    first = text.split(" ")[0]
    is_word = first.replace("'", "").isalpha() and first.islower()
    return text[:1].upper() + text[1:] if is_word else text


def _title_of_repair(repair: Repair, error: str) -> str:
    """Return such as: `just fmt` fails: prettier: command not found."""
    command = tools.same_as(repair.command)
    bare = re.sub(r"^(?:\w+: ){0,2}|^[!*#\-\s]+|\[[^\]]*\]|https?://\S+", "", error)
    words = bare.split()
    fits = 0 < len(words) <= MAX_TITLE + 1 - len(command.split())
    return f"`{command}` fails: {' '.join(words).strip(' .:')}" if fits else ""


def _word_count(text: str) -> int:
    """Return how many words a text has; a script without spaces has one in three signs."""
    wide = sum("\u3040" <= char <= "\u9fff" for char in text)
    return len(re.sub(r"[\u3040-\u9fff]+", " ", text).split()) + wide // 3


# The sentences that a person wrote, without the output and the code that was pasted.

_PASTED = re.compile(
    r"^\s*(?:[$#>%\u276f+]\s|\d{4}-\d\d-\d\d|\d+[.:|]\s*\S*[{}();=]|at \S+\(|File \"|Traceback"
    r"|\[[\w:-]+\]|-{2,}|={2,}|@@|remote:|error:|fatal:|warning:|hint:|npm |ERROR|INFO|WARN|DEBUG"
    r"|https?://\S+\s*$|[\w.-]+@[\w.-]+[ :])|[{};]\s*$|^\s*[\w./-]+:\d+|\)\s*\{?$|^\s*\S+\s*$"
)
_MAX_PROMPT = 12_000  # characters that are looked at
_MAX_WORDS = 60  # of a sentence


def _prose(text: str) -> list[str]:
    """Return the sentences of a prompt that a person wrote, in their order."""
    lines = vocabulary.plain_lines(
        re.sub(r"\[(?:Image|Pasted text)[^\]]*\]", "", text[:_MAX_PROMPT])
    )
    is_long = len(lines) > 12
    return [
        sentence
        for line, kind in lines
        if kind != vocabulary.HEADING and not line.lstrip().startswith(">")
        if not (line.isascii() and _PASTED.search(line) and (is_long or len(line.split()) < 4))
        for sentence in vocabulary.split_sentences(line)
        if _is_prose(sentence)
    ]


def _is_prose(sentence: str) -> bool:
    """Whether a line is words of a person, not output."""
    bare = re.sub(r"`[^`]*`|\S*/\S+", "", sentence)
    letters = sum(map(str.isalpha, bare))
    marks = len(re.findall(r"[{}<>=|\\;$_/\[\]#*+~^]", bare))
    count = len(sentence.split())
    is_words = letters >= 4 and letters > 0.55 * len(bare.replace(" ", ""))
    return count <= _MAX_WORDS and is_words and marks <= 2 + count // 12


# The prompts that a draft is for, its tags and category.

MAX_FIRES, MAX_TAGS = 3, 5
_WORD = re.compile(r"[^\W\d_]{3,}")
_COMMON = vocabulary.STOP_WORDS | frozenset(
    "add again code file files like look new please see want work working works".split()
)
_OUTPUT = re.compile(r"::|\S@\S|<[^>]+>|\s{3,}|\.\.\.$|[%$] \S+/|\[[\w/]+ [0-9a-f]{7,}\]")
_ERROR = _any("error|fatal|denied|exception|cannot|failed")
_LANGUAGES = {
    **{name: name for name in "go java php swift c cpp sql vue css html yaml toml".split()},
    **{"py": "python", "rs": "rust", "ts": "typescript", "tsx": "typescript", "js": "javascript"},
    **{"jsx": "javascript", "mjs": "javascript", "kt": "kotlin", "rb": "ruby", "cs": "csharp"},
    **{"sh": "shell", "tf": "terraform", "yml": "yaml", "md": "docs"},
}
_TOOLS = frozenset(
    "git npm pnpm yarn pip uv pytest mypy ruff docker go cargo make just mise terraform kubectl gh"
    " eslint prettier vitest jest tsc gradle mvn cmake poetry tox pre-commit brew goreleaser"
    " golangci-lint".split()
)
_PLACES = {
    "devops/ci-cd": r"(?:^|/)\.github/|\.gitlab-ci|\.circleci/|Jenkinsfile|azure-pipelines|goreleaser",
    "devops/docker": r"(?:^|/)(?:Dockerfile|docker-compose|compose\.ya?ml)|\.dockerfile$",
    "devops/deployment": r"\.tf$|(?:^|/)(?:helm|k8s|kubernetes|charts|terraform|deploy)/",
    "workflow/claude-code": r"(?:^|/)(?:CLAUDE|AGENTS)\.md$|(?:^|/)\.claude/",
    "development/frontend": r"\.(?:tsx|jsx|vue|svelte|css|scss)$",
}


def _words(text: str) -> set[str]:
    """Return the words of a text that say what it is about."""
    return {*_WORD.findall(text.lower())} - _COMMON


def _fires_on(material: Material, number: int, text: str, told: Collection[int]) -> tuple[str, ...]:
    """Return the prompts that led to what was taught at a prompt, those about its subject first.

    A prompt that was `told` something is no request. The error stands for a prompt with an output.
    """
    subject = _words(text)
    asked = [(at, texts) for at, texts in _requests(material) if at not in told]
    scored = []
    for rank, (at, texts) in enumerate([each for each in asked if each[0] <= number][::-1]):
        error = _error_in(material.prompts[at].text) if at == number else ""
        best = error or max(texts, key=lambda one: (len(_words(one) & subject), len(one) > 30))
        common = 4 if error else min(4, len(_words(best) & subject))
        is_first = at == asked[0][0]  # it says what the session is about
        scored.append((common + 2 / (1 + rank) + is_first, best))
    scored.sort(key=lambda each: -each[0])
    if not scored:  # it was taught before anybody asked
        return tuple(asked[0][1][:1]) if asked else ()
    near = [best for points, best in scored if points >= 2][:MAX_FIRES]
    return tuple(dict.fromkeys(near or [scored[0][1]]))


def _error_in(prompt: str) -> str:
    """Return the line of an output in a prompt that names the error, "" without one."""
    line = signs.error_line(prompt) if prompt.count("\n") > 2 else ""
    is_error = 20 <= len(line) <= MAX_LINE and line in prompt and _ERROR.search(line)
    return line if is_error else ""


def _silent_on(material: Material, text: str) -> tuple[str, ...]:
    """Return the session's longest prompt on another subject, if it has one."""
    subject = _words(text)
    others = [
        texts[0]
        for at, texts in _requests(material)
        if len(_words(texts[0])) > 3 and not _words(material.prompts[at].text) & subject
    ]
    return tuple(sorted(others, key=lambda each: -len(_words(each)))[:1])


def _requests(material: Material) -> list[tuple[int, list[str]]]:
    """Return the prompts that somebody may type again, each by its number, whole or in sentences."""
    there = []
    for number, said in enumerate(material.prompts):
        if said.origin in _NOT_TYPED or said.is_correction or said.is_refusal:
            continue
        text = said.text.strip()
        if said.origin == events.SLASH_COMMAND:
            text = text.partition(" ")[2].strip()
        is_short = len(text) <= MAX_LINE and "\n" not in text
        texts = list(filter(_is_request, [text] if is_short else _prose(text)[:8]))
        if texts:
            there.append((number, texts))
    return there


def _is_request(text: str) -> bool:
    """Whether somebody may type a text again: no output, no outburst, no acknowledgement."""
    if not chatter.MIN_CHARS <= len(text) <= MAX_LINE or _OUTPUT.search(text) or _FOUL.search(text):
        return False
    return not text.isascii() or (len(text.split()) > 3 and not chatter.why_skipped(text))


def _tags(names: Iterable[str], commands: Iterable[str]) -> tuple[str, ...]:
    """Return tags by programs that ran or are named, and by the kinds of files."""
    ran = [word for command in commands for word in re.findall(r"[\w.-]+", command)[:40]]
    words = [word.lower() for word in (*ran, *names)]
    found = [word for word in words if word in _TOOLS]
    endings = [PurePosixPath(word).suffix.lstrip(".") for word in words]
    found += [_LANGUAGES[ending] for ending in endings if ending in _LANGUAGES]
    return tuple(dict.fromkeys(found))[:MAX_TAGS]


def _category(files: Sequence[str]) -> str:
    """Return the category that the paths of files make evident, "" if they do not."""
    for path, form in _PLACES.items():
        there = sum(bool(re.search(form, file)) for file in files)
        if there and there * 2 > len(files):
            return path
    return ""
