"""Drafts without a model: what a person stated, or a failure, its cause, and how it passed.

Rules see little of what a session teaches, and say it in the words that were said. So a draft is made of
the surest alone: a sentence for what, one for why, some lines of the change, and the quote that it rests
on. A mere hint is a point to look at.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from vault_index.learn import timeline
from vault_index.learn.material import Entry
from vault_index.learn.timeline import AGENT, CHANGES, FAILED, HOOK, PERSON, REFUSED, Moment
from vault_index.lesson.passages import Parts
from vault_index.proposals.points import Point
from vault_index.text import blocks, failure
from vault_index.transcripts import events, tools, vocabulary

MAX_ENTRIES, MAX_POINTS = 3, 5  # of a session
MAX_LINES, MAX_LINE, MAX_SENTENCE = 6, 160, 300  # of a change; characters
DRAFTED, HINTED, ANY = 4.0, 2.5, 0.25  # points of a draft, of a hint, of a cause at all
# what a point is about
SAID, REFUSAL, CAUSE = "you said", "you refused a call", "the agent named a cause"
PASSED, BROKEN = "it failed, and passed later", "it failed"
_NOT_TYPED = (events.SHELL_COMMAND, events.ANSWER)
_WHILE_WORKING = (events.BESIDE_RESULT, events.QUEUED, events.REFUSAL)

_Made = tuple[float, Entry | Point]  # behind its importance


def read(there: Sequence[Moment]) -> tuple[list[Entry], list[Point]]:
    """Return what a session taught and what hints at more, the most important first."""
    spans = [*_spans(there)]
    made = sorted([*_stated(spans), *_failed(spans, there)], key=lambda pair: -pair[0])
    entries: list[Entry] = []
    for _, each in made:
        if isinstance(each, Entry) and not any(_is_same(each, other) for other in entries):
            entries.append(each)
    entries = entries[:MAX_ENTRIES]
    told = " ".join(quote for entry in entries for quote in entry.quotes)
    points = [each for _, each in made if isinstance(each, Point) and each.quote not in told]
    different = {failure.normalise(each.quote): each for each in reversed(points)}
    return entries, [*different.values()][::-1][:MAX_POINTS]


@dataclass(frozen=True, slots=True)
class _Span:
    """A prompt as it was typed, and all between the prompt before it and the next."""

    said: Moment
    before: tuple[Moment, ...]
    steps: tuple[Moment, ...]

    @property
    def changes(self) -> list[Moment]:
        """Return the changes of files."""
        return [each for each in self.steps if each.kind in CHANGES]


def _spans(there: Sequence[Moment]) -> Iterator[_Span]:
    said, before, steps = Moment(PERSON, ""), tuple[Moment, ...](), list[Moment]()
    for each in [*there, Moment(PERSON, "")]:
        if each.kind == PERSON:
            yield (span := _Span(said, before, tuple(steps)))
            said, before, steps = each, span.steps, []
        else:
            steps.append(each)


def _is_same(entry: Entry, other: Entry) -> bool:
    texts = (f"{each.title} {each.parts.summary}".lower() for each in (entry, other))
    mine, others = ({*_WORD.findall(text)} - vocabulary.STOP_WORDS for text in texts)
    return len(mine & others) > 0.5 * max(1, min(len(mine), len(others)))


def _entry(
    type: str, title: str, what: str, why: str, changes: Iterable[Moment], quotes: Iterable[str]
) -> Entry:
    explanation = "\n\n".join(filter(None, (why, _shown(changes))))
    text = _capital(blocks.one_line(_reworded(what), MAX_SENTENCE))
    ends = text.endswith((".", "!", "?", "`")) or not text[-1:].isascii()
    parts, quoted = Parts(text if ends else f"{text}.", explanation), tuple(filter(None, quotes))
    return Entry(type=type, title=title, parts=parts, confidence=2, quotes=quoted, by_rule=True)


def _shown(changes: Iterable[Moment]) -> str:
    """Return the path and the first lines of the first change as a block, "" without one."""
    for each in changes:
        lines = [line[:MAX_LINE] for line in each.text.splitlines() if line[1:].strip()]
        if lines and "```" not in each.text:
            return "\n".join(["```diff", each.about, *lines[: MAX_LINES - 1], "```"])
    return ""


def _capital(text: str) -> str:
    """Return a text with a capital, unless its first word is a name in code."""
    first = text.split(" ")[0].replace("'", "")
    return text[:1].upper() + text[1:] if first.isalpha() and first.islower() else text


# What a person stated: corrections, refusals with a reason, rules of the project.


def _any(*words: str) -> re.Pattern[str]:
    """Return a pattern of alternatives that are whole words."""
    return re.compile(rf"\b(?:{'|'.join(words)})(?!\w)", re.IGNORECASE)


_CONTRAST = re.compile(
    r"\b(?:instead of|rather than|sondern|statt|yerine|but not|but the|not\b.*\bbut"
    r"|not (?:correct|right|true), (?:that|it|this) is|both\b.*\band"
    r"|stays?|only\b.*\b(?:if|when|for))\b|, not \S|\bONLY\b|대신|말고|ではなく"
)  # the case of ONLY matters
# a request of the moment: it has no effect on later work
_REQUEST = re.compile(
    r"(?i)^\W*(?:(?:no|ok|okay|yes|great|now|then|and|also|please|so|next)[, !.]+)*"
    r"(?:please |can you |could you |can we |let's |let us |i'd like (?:to|you) |we (?:should|need to"
    r"|have to|could) )?(?:also |please )?"
    r"(?:commit|push|re-?run|run|continue|go|proceed|merge|open|show|explain|look|check|tell|review"
    r"|summari[sz]e|write|make|add|create|build|implement|put|rename|remove|delete|change|update|fix"
    r"|bump|install|try|start|set up|copy|do|give|find|replace|search|list|print|read|help|see|work"
    r"|move|port|investigate|take|have|clean|leave|close|discuss|figure|separate)\b"
)
_DECIDES = _any(
    r"(?:no|nope|wait|stop|actually|instead|nein|non)[,.!: ]+(?:please |rather |just )?(?:use|keep|take"
    r"|call|read|store|return|raise|log|pass|wrap|test|send|sort|split|validate)"
)
_NO_NOUN = re.compile(  # "No matching tests"
    r"(?i)^\W*no (?!(?:i|we|you|it|that|this|the|don't|do|use|not|just|need)\b)[a-z]"
)
_OF_THE_MOMENT = _any(
    r"in this (?:branch|pr|session|chat|conversation)|should have been|for now|right now|yet|today",
    r"yesterday|tomorrow|this time|at the moment|next step|thank|sorry|you (?:deleted|wrote|broke|made)",
    r"i (?:need|have|tried|did|just|was|can|can't|saw|see|deleted|moved|already|guess|assume)",
    r"let's see|screenshot|colou?r|button|font|pixel|wider|bigger|smaller|wonder|curious|a bit",
    r"confus\w+|maybe|might|would|seem",
)
_OUTBURST = re.compile(  # and questions
    r"(?i)\b(?:fuck\w*|shit\w*|(?:god)?damn\w*|wtf|idiot\w*|stupid|crap|hell|bullshit|oh my god|painful"
    r"|you are (?:always )?wrong|mess)\b|[!?]{3,}|\?\s*$"
    r"|^\W*(?:why|what|how|is there|are there|does|do you|did|which|who|where|could|can we"
    r"|would|should we|is it|are you|any)\b"
)
# what a task demands is no rule of the project, unless it says so
_OF_PROJECT = re.compile(
    r"(?i)\b(?:we|our|us|this (?:project|repo\w*|codebase|team)|from now on|in future|convention"
    r"|commits?|tests?|pull requests?|PRs?|branch(?:es)?|migrations?|releases?|wir|unser\w*|biz\w*)\b"
    r"|[\uac00-\ud7a3\u3040-\u30ff]"
)


def _stated(spans: Iterable[_Span]) -> Iterator[_Made]:
    """Yield the best sentence of each prompt that is worth more than its moment."""
    for span in spans:
        said = span.said
        texts = _prose(said.text) if said.origin not in _NOT_TYPED else []
        scored = ((_points_of_statement(text, span), text) for text in texts)
        points, text, quote = _best(scored, [said.text], HINTED)
        title = _title(text) if points >= DRAFTED else ""
        if quote and title:
            what = _entry("project_rule", title, text, _answered(span), span.changes, [quote])
            yield points, what
        elif quote:
            yield points, Point(REFUSAL if said.origin == events.REFUSAL else SAID, quote)


def _best(
    scored: Iterable[tuple[float, str]], texts: Iterable[str], least: float
) -> tuple[float, str, str]:
    """Return the points of the best sentence, it, and how it stands in a text; "" below the least."""
    points, sentence = max(scored, key=lambda pair: pair[0], default=(0.0, ""))
    return points, sentence, vocabulary.verbatim(sentence, texts) if points >= least else ""


def _points_of_statement(sentence: str, span: _Span) -> float:
    text, said, plain = vocabulary.straight(sentence), span.said, _reworded(sentence)
    words, named = vocabulary.word_count(text), min(2, len({*_NAME.findall(text)}))
    if words < 4 or _OUTBURST.search(text):
        return 0
    strength = vocabulary.rule_strength(text)
    is_addressed = said.is_correction or said.origin in _WHILE_WORKING
    is_answer = is_addressed or any(each.kind == AGENT for each in span.before)
    corrects = is_answer and vocabulary.corrects(text)
    is_task = strength and not (is_addressed or corrects or _OF_PROJECT.search(text))
    points_of = (
        (2.0, said.origin == events.REFUSAL or corrects),
        (1.0, is_addressed),
        (1.0, is_addressed and _DECIDES.search(text)),
        (1.5 * strength, strength),
        (1.0, vocabulary.has_reason(text)),
        (1.5 if named else 1.0, _CONTRAST.search(text)),
        (0.5 + 0.5 * named, named),
        (-2.0, strength < 2 and any(map(_REQUEST.search, (text, plain)))),
        (-2.0, _OF_THE_MOMENT.search(text)),
        (-2.0, is_task),
        (-1.0, _POINTS_AWAY.search(plain)),
        (-3.0, _NO_NOUN.search(text)),
        (-1.0, words > 40 or words < 6),
    )
    return sum(points for points, holds in points_of if holds)


def _answered(span: _Span) -> str:
    """Return the call that was refused, or what the agent had said, as a sentence."""
    refused = [each.about for each in span.before if each.text.startswith(REFUSED)]
    if refused and span.said.origin == events.REFUSAL:
        return f"The user refused `{blocks.one_line(refused[-1], MAX_LINE)}`."
    told = [each.text for each in span.before if each.kind == AGENT]
    long = (text for text in vocabulary.sentences("".join(told[-1:])) if len(text) > 20)
    said = [text for text in long if text[-1] != ":" and not vocabulary.is_chatter(text)]
    return f"The agent had said: {blocks.one_line(said[-1], MAX_SENTENCE)}" if said else ""


# What failed: checks that passed later, and errors whose cause the agent named.

_ENVIRONMENT = re.compile(
    r"(?i)command not found|not recognized|permission|denied|protected branch|GH\d{3}|\b40[13]\b|\b429\b"
    r"|no module named|cannot find module|module not found|not installed"
    r"|ENOENT|ECONN|EACCES|ENOMEM|EADDRINUSE|out of memory|\bheap\b|timed? ?out|rate limit|deprecated"
    r"|unsupported|incompatible|version mismatch|requires? \S+ version|certificate|ssl|signing|locked"
    r"|already in use|no space|quota|(?:unable to|could not) resolve|conflict|peer dep|hook declined"
    r"|disallowed|not allowed"
)
_NO_ERROR = re.compile(r"Exit code \d+$|===|\?|ok\b|(?:---? )?PASS|.*\(cached\)$|> |\$ ")
_SAYS_NOTHING = re.compile(r"(?i)(?:\b(?:fail(?:ed|ure)?s?|error|task|tests?|\d+|ok)\b|[\W_])*")
_BEFORE_ERROR = re.compile(
    r"^(?:(?:remote|error|fatal|\S*sh|npm error): |[!*#\-\s]+)*|https?://\S+"
)
_DENIES = re.compile(
    r"\b(?:still|again|not working|(?:doesn't|didn't) work|broken|wrong|same (?:error|issue|problem)"
    r"|NO|nope|never|regress|are you sure|cannot fix|immer noch|weiterhin|hâlâ)\b|여전히|まだ"
)  # the case of NO matters
_OWN_WORK = re.compile(
    r"(?i)^\W*(?:added|created|updated|wrote|fixed|changed|documented|committed|removed|moved|renamed)\b"
    r"|\bnot (?:caused|because|due)\b|\b(?:i|my|i've|i'd|i'm|we just|our (?:fix|change)|the new test"
    r"|the test|just (?:added|fixed|wrote|changed))\b|\blines? \d+|\bindent|\btypo\b"
)


def _failed(spans: Sequence[_Span], there: Sequence[Moment]) -> Iterator[_Made]:
    """Yield what failed and may fail again: by how it passed, or by the cause that was named."""
    repairs = {id(there[begin]): there[begin : end + 1] for begin, end in timeline.repairs(there)}
    for number, span in enumerate(spans):
        after = spans[number + 1].said if number + 1 < len(spans) else Moment(PERSON, "")
        points, cause, quote = _cause(span, after.text)
        title, is_own = _title(cause) if points >= DRAFTED else "", False
        for step in span.steps:
            is_own |= step.kind in CHANGES
            line = _error_in(step) if step.kind == FAILED and not step.is_routine else ""
            is_environment = bool(_ENVIRONMENT.search(line)) or step.about == HOOK
            if step.text.startswith(REFUSED):
                if after.origin != events.REFUSAL and " " in step.about:
                    yield 1.2, Point(REFUSAL, vocabulary.head(step.about, MAX_LINE))
            elif line and id(step) in repairs and (is_environment or not is_own):
                yield _repaired(repairs[id(step)], line, "" if is_own else cause, quote)
            elif line and is_environment:
                yield 1.0, Point(BROKEN, line)
        if title:
            kind = "bug_fix" if span.changes else "architecture"
            yield points, _entry(kind, title, cause, "", span.changes, [quote])
        elif quote and points >= HINTED:
            yield points - 1, Point(CAUSE, quote)


def _repaired(between: Sequence[Moment], error: str, cause: str, quote: str) -> _Made:
    """Return what a check that failed and passed teaches."""
    check, strength = tools.same_as(between[0].about), vocabulary.cause_strength(cause)
    points = 2.0 + strength + 2.0 * bool(_ENVIRONMENT.search(error))
    words = _BEFORE_ERROR.sub("", error)
    title = _title(cause) or _as_title(f"`{check}` fails: {words.strip(' .:')}")
    if points < DRAFTED or not _is_title(title) or not tools.is_check(between[0].about):
        return 1.5, Point(PASSED, error)
    ran = [each.about for each in between[1:] if tools.is_change(each.about)]
    cure = f"; after `{blocks.one_line(ran[-1], MAX_LINE)}` it passed" if ran else ""
    what = cause or f"`{check}` fails: {words.strip(' .:')}{cure}"
    why = f"`{check}` printed: {error.rstrip('.')}{cure}." if cause else ""
    changes = (each for each in between if each.kind in CHANGES)
    return points, _entry("bug_fix", title, what, why, changes, [quote if cause else "", error])


def _cause(span: _Span, after: str) -> tuple[float, str, str]:
    """Return the points of the best cause that the agent named, its sentence, and how it stands there."""
    texts = [each.text for each in span.steps if each.kind == AGENT]
    said = [sentence for text in texts for sentence in vocabulary.sentences(text)]
    scored = ((_points_of_cause(sentence, span, after), sentence) for sentence in reversed(said))
    best = _best(scored, texts, ANY)
    return best if best[2] else (0.0, "", "")


def _points_of_cause(sentence: str, span: _Span, after: str) -> float:
    strength = vocabulary.cause_strength(sentence)
    if strength < 2 or not _is_prose(sentence):
        return 0
    points = {2: 1.5, 3: 2.5, 4: 3.0}[strength] + min(2.0, 0.75 * len({*_NAME.findall(sentence)}))
    points += 0.5 if span.changes else -1  # where nothing was changed, nothing shows that it is so
    points -= 2 * bool(_DENIES.search(after[:300])) + 2 * bool(_OWN_WORK.search(sentence))
    return points - 1.5 * bool(_POINTS_AWAY.search(_reworded(sentence)))


def _error_in(failed: Moment) -> str:
    """Return the line of an output that says what was wrong, "" if all only say that something was."""
    lines = [line.strip() for line in failed.text.splitlines()]
    lines = [line for line in lines if line[-1:] != ":" and not _NO_ERROR.match(line)]
    line = next(filter(_ENVIRONMENT.search, lines), "") or vocabulary.error_line("\n".join(lines))
    return "" if _SAYS_NOTHING.fullmatch(line) or len(line) > MAX_SENTENCE else line


# The title: the clause of a sentence that says the point. A person edits it.

MIN_TITLE, MAX_TITLE, MAX_CHARS = 5, 10, 110  # words, characters
MAX_ENDS = 12  # of clauses: each pair of them is tried
_OPENING = re.compile(
    r"(?i)^(?:nit\b\W*|(?:no|nope|nein|wait|stop|ok|okay|oh|well|yes|again|actually|sorry|u[hm]+|and|but|so|also|now"
    r"|please|bitte|hey|hay\u0131r|non|wrong|아니요?|いいえ|いや)\b(?![-_./'`])[,.!:\u3001 ]+"
    r"|i (?:think|mean|guess|believe|know|said|told you)(?: that)?,? |just to be sure,? |in short:? "
    r"|(?:it )?(?:seems|looks) like |(?:it )?turns out(?: that)? |from now on,? |in future,? "
    r"|(?:the|a|our|this) (?:\w+ )?(?:problem|issue|bug|reason|cause|error)(?: here)?"
    r"(?: is| was)?(?::| that| because|(?= the\b)|(?= `)) ?"
    r"|(?:can|could|would) you |you (?:did(?:n't| not)|forgot|should have|need)(?: \w+ out)? to "
    r"|let's (?!not)|(?:you|we) should |/[\w:-]+ |(?:we|wir) (?=\w))"
)
_WISHES = {
    r"(?i)^let's not ": "Do not ",
    r"(?i)^i (?:don't|do not) (?:want|need|like) (?:to (?:have|see) )?"
    r"(?:a (?:bunch|lot) of |any )?": "No ",
    r"(?i)^i(?:'d| would)? (?:want|like|prefer) ([^,;]{2,60}?) to be ": r"\1 should be ",
    r"(?i) (?:is|are) not (?:correct|right|true),? (?:that|it|this) is ": " is ",
    r"(?i)\bour\b": "the",
    r"(?i)\bmy\b": "the user's",
    r"!?\[([^\]]*)\]\([^)\s]*\)|\*\*|(?<!\w)_(?=\w)|(?<=\w)_(?!\w)": r"\1",
}
_ASIDE = re.compile(r"\s+(?:\([^()]+\)|\[[^\[\]]*\])(?!\()")
_CLAUSE_END = re.compile(
    r"(?i)[,;:](?=\s|$)|\s[-\u2013\u2014]{1,2}\s|\.\s|[\u3001\u3002\uff0c]"
    r"|,?\s(?:because|since|so that|so|but|although|unless|weil|aber|denn|damit|çünkü)\s"
)
_POINTS_AWAY = re.compile(  # at what only the conversation shows
    r"(?i)^(?:if|then|which|because|of|this|that|it|they|he|she|these|those|there|here|i'[mdv]\w?|you|your|das|es"
    r"|was|is|are|were|would|has|have|and|or)\b(?!-)"
    r"|\b(?:option \w|lines? \d+|first part|number \d|above|below|this one|these|those|i|me|we|us)\b"
)
_TAIL = re.compile(r"\s(?:at|in|on|during|for|with|as|via)\s\S+(?:\s\S+){0,4}$", re.IGNORECASE)
_NAME = re.compile(  # of code: in backticks, paths, identifiers, flags, versions
    r"`[^`]+`|(?<!\w)'[^'\n]{2,40}'(?!\w)|\"[^\"\n]{2,40}\"|\b\w+[_./-]\w+|\b[a-z]+[A-Z]\w+"
    r"|\b[A-Z]{2,}\b|\b[A-Z][a-z]+[A-Z]\w*|--\w+|\b\d+\.\d+"
)
_WORD = re.compile(r"[^\W\d_]{3,}")


def _reworded(sentence: str) -> str:
    """Return a sentence without the words by which talk begins, a wish as the rule that it is."""
    text = vocabulary.straight(sentence).strip()
    while (shorter := _OPENING.sub("", text).strip()) not in ("", text):
        text = shorter
    for wish, rule in _WISHES.items():
        text = re.sub(wish, rule, text)
    return text


def _title(sentence: str) -> str:
    """Return a title of 5 to 10 words that a sentence has in it, never in the first person; or ""."""
    text = " ".join(_ASIDE.sub("", _reworded(sentence)).split()).strip(" .!?-")
    ends = [match.span() for match in islice(_CLAUSE_END.finditer(text), MAX_ENDS)]
    begins, stops = [0, *(end for _, end in ends)], [*(at for at, _ in ends), len(text)]
    clauses = [text[begin:stop] for begin in begins for stop in stops if stop > begin]
    shorter = [_TAIL.sub("", clause) for clause in clauses]
    return next(filter(_is_title, map(_as_title, (*clauses, *shorter))), "")


def _is_title(text: str) -> bool:
    if not MIN_TITLE <= vocabulary.word_count(text) <= MAX_TITLE or len(text) > MAX_CHARS:
        return False
    is_whole = text.count("`") % 2 == 0 and text.count("(") == text.count(")")
    return is_whole and not _POINTS_AWAY.search(text)


def _as_title(clause: str) -> str:
    text = re.sub(r"(?i)^\W*(?:so|and|but) ", "", clause).strip(' ,;:.!?-"\u2014\u3001')
    return _capital(text.replace('"', "") if text.count('"') % 2 else text)


# The sentences that a person wrote, without the output and the code that was pasted.

_PASTED = re.compile(
    r"^\s*(?:[$#>%\u276f+]\s|\d{4}-\d\d-\d\d|\d+[.:|]\s*\S*[{}();=]|at \S+\(|File \"|Traceback"
    r"|\[[\w:-]+\]|-{2,}|={2,}|@@|remote:|error:|fatal:|warning:|hint:|npm |ERROR|INFO|WARN|DEBUG"
    r"|https?://\S+\s*$|[\w.-]+@[\w.-]+[ :])|[{};]\s*$|^\s*[\w./-]+:\d+|\)\s*\{?$|^\s*\S+\s*$"
)
_OF_PEOPLE = _any(
    "i|we|you|our|my|your|let's|please|should|must|always|don't|want|need|ich|wir|bitte|biz|lütfen"
)
MAX_PROSE, MAX_SENTENCES, MAX_WORDS = 12_000, 40, 60  # characters, sentences, words of one
LONG = 700  # characters: of a longer prompt, which may be pasted, only what people say counts


def _prose(text: str) -> list[str]:
    """Return the sentences of a prompt that a person wrote, in their order."""
    lines = vocabulary.plain_lines(re.sub(r"\[(?:Image|Pasted text)[^\]]*\]", "", text[:MAX_PROSE]))
    is_pasted = len(text) > LONG or text.count("\n") > 3
    there = [
        sentence
        for line, kind in lines
        if kind != vocabulary.HEADING and not line.lstrip().startswith(">")
        if not (line.isascii() and _PASTED.search(line) and is_pasted)
        for sentence in vocabulary.split_sentences(line)
        if _is_prose(sentence)
        and not (is_pasted and sentence.isascii() and not _OF_PEOPLE.search(sentence))
    ]
    return there[:MAX_SENTENCES]


def _is_prose(sentence: str) -> bool:
    """Whether a line is words of a person, not output."""
    bare = re.sub(r"`[^`]*`|\S*/\S+", "", sentence)
    letters = sum(map(str.isalpha, bare))
    marks = len(re.findall(r"[{}<>=|\\;$_/\[\]#*+~^]", bare))
    count = len(sentence.split())
    is_words = letters >= 4 and letters > 0.55 * len(bare.replace(" ", ""))
    return count <= MAX_WORDS and is_words and marks <= 2 + count // 12
