"""Let an entry pass as a proposal, or say why it does not.

    form        title, type, confidence; put right where that needs no guess
    evidence    quotes that stand in the material, lines of failures; prompts that find it later
    worth       particular, no secret, nothing that the session was given
    likeness    no lesson, no waiting and no rejected proposal says it; near a lesson: a change of it
    warnings    an order to an agent that it repeats, a proposal that waits with another cure

No model is asked here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

from vault_index import check
from vault_index.check import secrets
from vault_index.check.redact import redact
from vault_index.errors import CheckError, VaultError
from vault_index.hotpath import chatter
from vault_index.index.rows import hash_of_prompt
from vault_index.journal.record import private_id
from vault_index.learn import grounding, particular, refuted
from vault_index.learn.material import SESSION, LearnedLesson, Material
from vault_index.lesson import category, parse, passages
from vault_index.proposals import draft, fingerprint, review
from vault_index.proposals.draft import Proposal
from vault_index.proposals.fingerprint import NOT_COMPARED, Comparison
from vault_index.proposals.similarity import Outlook
from vault_index.recall import anchors
from vault_index.retrieval.hit import WholeEntry
from vault_index.store import delivery
from vault_index.text import blocks, failure
from vault_index.transcripts import vocabulary
from vault_index.transcripts.moments import CHANGES, FAILED

TITLE_WORDS = (5, 10)
MAX_TITLE_CHARS = 200
MIN_TYPED_WORDS = 3  # of a title in the words of a person: "Never retry a 409"
CONFIDENCE = (1, 5)
MAX_TEXT_CHARS = 6_000
MAX_LINE_CHARS = 500  # of a failure
MAX_QUOTES, MAX_PROMPTS, MAX_ERROR_LINES = 3, 3, 2
MIN_PROMPT_WORDS = 3
MAX_TAGS, MAX_TAG_CHARS = 8, 40  # also of each part of a category
MAX_COMPARED = 5  # waiting proposals whose vectors are compared: those with most words in common
MIN_WORDS_IN_COMMON = 0.1  # with a proposal whose vector is worth a look
MAX_ADDED = 5  # items of a change
MAX_ROWS, MAX_ROW_CHARS = 40, 300  # of the work around a proposal
NEW_WORDS, NEW_SHARE = 3, 0.4  # of an item that a lesson does not have

# why an entry is dropped
TITLE = "its title does not have 5 to 10 words"
TYPE = "its type is not one of " + ", ".join(parse.TYPES)
CONFIDENT = "its confidence is not 1 to 5"
EMPTY = "it says nothing"
LONG = f"it has more than {MAX_TEXT_CHARS:,} characters"
NO_QUOTE = "none of its quotes is in the session"
QUOTELESS = "it has no quote: copy a passage of the session, word for word"
GENERIC = "it is generic"
SECRET = "it holds a secret"
GIVEN = "it repeats a lesson that the session was given"
LESSON = "a lesson says it already"
WAITS = "a proposal says it already"
REJECTED = "it was rejected before"
DECIDED = "a person has just decided about a proposal that says it: propose it again if need be"
ABSENT = "the vault had the lesson, and it did not come"
# why a prompt is left out
COPIED = "it is of this session"
CHATTER = "it asks for nothing"
SHORT = "it has under three words"
OTHER = "another lesson answers it"
# why a relation is left out
NO_LESSON = "no lesson is called so"
IN_A_CHANGE = "it becomes a change of {id}: name it there"
# rules of warnings on a card
ORDER, LIKE, QUOTES, CAUSE = "order", "like", "quotes", refuted.RULE
_BREAK = re.compile(
    r"(?i)[,;:.(\u2013\u2014]|\s-\s"
    r"|\b(?:because|since|so that|when|if|by|instead of|and|to avoid|which)\b"
)
# of an entry that its proposal has, too
_CARRIED = ("type", "confidence", "prompts", "fires_on_error", "applies_to", "quotes")
_ITEM = re.compile(r"(?<=[.!?])\s+(?=[A-Z`\"'])|\n+")
_CODE_BLOCK = re.compile(r"(?ms)^(```|~~~).*?^\1[^\n]*$")


@dataclass(frozen=True, slots=True)
class Lessons:
    """The lessons of the vault, from whoever holds its index. Each raises VaultError without one."""

    show: Callable[[str], WholeEntry]
    compare: Callable[[Proposal], Comparison]
    outlook: Callable[[Proposal], Sequence[Outlook]]


@dataclass(frozen=True, slots=True)
class Context:
    """All that an entry is held against. `given` is the text of each lesson that the session had, by id.

    `orders` are lines of the material that give orders, `refuted` the lessons that its person denied,
    each with the person's words.
    """

    material: Material
    texts: tuple[str, ...]
    given: Mapping[str, str]
    orders: tuple[str, ...]
    waiting: tuple[Proposal, ...]
    lessons: Lessons
    by: str
    why: str
    refuted: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Admitted:
    """A proposal that passed, and what it was `compared` with.

    `left_out` are prompts that it does without, `unlinked` relations, each with the reason.
    """

    proposal: Proposal
    compared: Comparison
    left_out: Sequence[tuple[str, str]] = ()
    unlinked: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True, slots=True)
class Recurring:
    """A proposal that waits, with the session and the quotes of an entry that says the same."""

    proposal: Proposal


class _Dropped(Exception):
    """An entry does not pass: why, and which lesson says it already, "" for none that is known."""

    def __init__(self, why: str, lesson: str = "") -> None:
        super().__init__(why)
        self.why, self.lesson = why, lesson


def admit(entry: LearnedLesson, context: Context) -> Admitted | Recurring | str:
    """Return the proposal of an entry, the one that it says once more, or why it does not pass."""
    try:
        entry = _proven(_formed(entry), context)
        _refuse_worthless(entry, context)
        return _compared_with_all(entry, context)
    except _Dropped as dropped:
        taught = _teaching(entry, dropped.lesson, context) if dropped.lesson else None
        return taught or dropped.why
    except CheckError as error:
        return SECRET if error.rule == secrets.RULE else error.message
    except VaultError as error:  # of a proposal that cannot be
        return error.message


def _words_of(material: Material) -> frozenset[str]:
    paths = [path for change in material.changes for path in (change.path, change.before)]
    paths += [each.about for each in material.moments if each.kind in CHANGES]
    words = {word for path in paths for word in re.split(r"[^A-Za-z0-9]+", path) if len(word) > 3}
    return frozenset(words | {material.project})


def _formed(entry: LearnedLesson) -> LearnedLesson:
    """Return an entry in the form of a lesson. Raises _Dropped."""
    least = MIN_TYPED_WORDS if entry.by_rule else TITLE_WORDS[0]
    title, text = title_of(entry.title, least), passages.text_of(entry.parts)
    says_nothing = len(draft.words(text)) < draft.MIN_IDENTITY_WORDS
    faults = {
        TYPE: entry.type not in parse.TYPES and not entry.by_rule,
        CONFIDENT: not CONFIDENCE[0] <= entry.confidence <= CONFIDENCE[1],
        TITLE: not title or len(title) > MAX_TITLE_CHARS,
        EMPTY: not entry.parts.summary.strip() or says_nothing,
        LONG: len(text) > MAX_TEXT_CHARS,
    }
    if why := next((why for why, is_so in faults.items() if is_so), ""):
        raise _Dropped(why)
    tags = [re.sub(r"[^\w.+#-]+", "-", tag.strip().lower()).strip("-") for tag in entry.tags]
    short = tuple(dict.fromkeys(tag for tag in tags if 0 < len(tag) <= MAX_TAG_CHARS))[:MAX_TAGS]
    parts = category.normalise(entry.category).split("/")[: category.MAX_DEPTH]
    path = "/".join(part[:MAX_TAG_CHARS] for part in parts)
    return replace(entry, title=title, tags=short, category=path)


def title_of(title: str, least: int) -> str:
    """Return a title of `least` to 10 words: a longer one to its last break; "" if that leaves none."""
    most = TITLE_WORDS[1]
    text = " ".join(title.strip().rstrip(".").split())
    ends = [len(text), *(match.start() for match in reversed([*_BREAK.finditer(text)]))]
    pieces = (text[:end].strip() for end in ends)
    cut = next((each for each in pieces if least <= vocabulary.word_count(each) <= most), "")
    return cut if cut == text else cut.rstrip(",;:.( \u2013\u2014-")


def _proven(entry: LearnedLesson, context: Context) -> LearnedLesson:
    """Return an entry with the quotes that hold, and with lines of failures. Raises _Dropped.

    Quotes from an agent whose transcripts nobody reads are kept, and the card says so: see `_checked`.
    """
    prompts = grounding.prompts_of(context.material)
    quotes = grounding.proven(entry.quotes, context.texts, context.given.values(), prompts)
    if context.material.is_transcribed and not quotes:
        raise _Dropped(NO_QUOTE if entry.quotes else QUOTELESS)
    if not context.material.is_transcribed:
        quotes = grounding.unproven(entry.quotes)
    return replace(
        entry,
        quotes=tuple(quotes[:MAX_QUOTES]),
        prompts=tuple(grounding.prompts(entry.prompts)),
        fires_on=tuple(grounding.prompts(entry.fires_on)),
        fires_on_error=tuple(_failed_lines(entry, context.material)[:MAX_ERROR_LINES]),
    )


def _failed_lines(entry: LearnedLesson, material: Material) -> list[str]:
    """Return the lines of failures that an entry is about: it quotes them.

    They find it when the same fails again. A test's own assertion is no key.
    """
    about = [*entry.quotes, *entry.fires_on_error, *passages.text_of(entry.parts).splitlines()]
    quoted = {failure.normalise(text) for text in about} - {""}
    lines: list[str] = []
    for each in material.moments:
        failed = failure.read(each.about, each.text) if each.kind == FAILED else None
        if failed and not failed.is_assertion and not failed.is_none:
            lines += [
                line
                for line in failed.lines
                if failure.is_specific(line)
                and len(line) <= MAX_LINE_CHARS
                and any(failure.normalise(line) in text for text in quoted)
            ]
    return list(dict.fromkeys(lines))


def _refuse_worthless(entry: LearnedLesson, context: Context) -> None:
    """Raise _Dropped for an entry that is not worth a person's time."""
    text = f"{entry.title}\n\n{passages.text_of(entry.parts)}"
    taught = (*entry.prompts, *entry.fires_on, *entry.fires_on_error, *entry.applies_to)
    everything = "\n".join([text, *entry.tags, *taught, *entry.quotes])
    if redact(everything) != everything:
        raise _Dropped(SECRET)
    for id, given_text in context.given.items():
        if id not in context.refuted and grounding.repeats(text, given_text):
            raise _Dropped(GIVEN, id)
    project_words = _words_of(context.material)
    if entry.by_rule:  # what a person stated is particular, unless it is a stock phrase
        is_generic = particular.points(text, project_words) < 0
    else:
        is_generic = particular.is_generic(text, project_words, entry.quotes)
    if is_generic:
        raise _Dropped(GENERIC)


def _compared_with_all(entry: LearnedLesson, context: Context) -> Admitted | Recurring:
    """Return the proposal of an entry that no lesson says yet. Raises _Dropped, VaultError."""
    entry, unlinked = _linked(entry, context)
    text = passages.text_of(entry.parts)
    about = "\n".join([entry.title, *entry.quotes, text])
    filed = (entry.category, entry.tags, entry.fires_on)
    proposal = replace(
        draft.create(entry.title, text, *filed, context.by),
        **{name: getattr(entry, name) for name in _CARRIED},
        **_origin(entry, context),
        why=context.why,
        anchors=anchors.proposed(context.material.diff, about),
    )
    compared = _compare(context, proposal)
    replaced = {name for kind, name in entry.parts.related if kind == passages.SUPERSEDES}
    near = [each[0] for each in compared.near if each[0] not in replaced]
    if compared.same:
        raise _Dropped(LESSON, compared.same[0])
    if compared.rejected:
        raise _Dropped(REJECTED)
    other = _waiting(proposal, compared, context)
    if other and not _new_items(entry, f"{other.title} {other.text}"):
        return _again(other, proposal)
    if context.given.keys() & {*near} - context.refuted.keys():
        raise _Dropped(GIVEN, near[0])
    if near:
        proposal = _change(entry, proposal, near[0], context)
        why = IN_A_CHANGE.format(id=proposal.changes)
        unlinked += [(name, why) for _, name in entry.parts.related if name != proposal.changes]
    proposal, left_out = _with_prompts_that_work(proposal, context)
    checked = _checked(proposal, compared, context, other)
    return Admitted(_with_denials(checked, entry, context), compared, left_out, unlinked)


def _with_denials(proposal: Proposal, entry: LearnedLesson, context: Context) -> Proposal:
    """Return a proposal with warnings of what the person denied in its session."""
    findings = list(proposal.findings)
    replies = grounding.replies(context.material)
    if denied := grounding.contradicted(entry.parts.explanation, replies):
        quoted = blocks.shorten_line(denied, refuted.MAX_DENIED)
        findings.append(_warning(CAUSE, f"the person said after this explanation: {quoted}"))
    if denied := context.refuted.get(proposal.changes, ""):
        findings.append(refuted.warning(f"its session denies {proposal.changes}", denied))
    return replace(proposal, findings=tuple(findings))


def _linked(entry: LearnedLesson, context: Context) -> tuple[LearnedLesson, list[tuple[str, str]]]:
    """Return an entry that names related lessons by their ids, and the names that no lesson has.

    The names stay as they are if nobody can look lessons up.
    """
    related, unlinked = list[tuple[str, str]](), list[tuple[str, str]]()
    for kind, name in entry.parts.related:
        try:
            lesson = context.lessons.show(name)
            if lesson.withheld:
                unlinked.append((name, NO_LESSON))
            else:
                related.append((kind, lesson.id))
        except VaultError as error:
            if type(error) is VaultError:  # it says that no lesson, or several, are called so
                unlinked.append((name, NO_LESSON))
            else:
                related.append((kind, name))
    parts = replace(entry.parts, related=tuple(dict.fromkeys(related)))
    return replace(entry, parts=parts), unlinked


def _origin(entry: LearnedLesson, context: Context) -> dict[str, Any]:
    about = grounding.origin(entry.quotes, context.material)
    session = private_id(context.material.session)
    rows = [*context.material.facts, *entry.background]
    background = [(label, blocks.one_line(redact(text), MAX_ROW_CHARS)) for label, text in rows]
    return {
        **{**about, "session": session, "is_draft": entry.by_rule},
        "background": tuple(
            row
            for row in dict.fromkeys(background)
            if row[1] and check.first_error("row.md", row[1].encode()) is None
        )[:MAX_ROWS],
    }


def _with_prompts_that_work(
    proposal: Proposal, context: Context
) -> tuple[Proposal, list[tuple[str, str]]]:
    """Return a proposal with the prompts that may find it, and the others with the reason.

    One that the text alone would not find is the one that is needed. A prompt of the session is no
    prompt of the future, but a draft by rule has no other.
    """
    of_session = set(proposal.prompts)
    of_session -= {*grounding.elsewhere(proposal.prompts, grounding.prompts_of(context.material))}
    left_out = [(each, COPIED) for each in proposal.prompts if each in of_session]
    try:
        outlook = context.lessons.outlook(proposal)
    except VaultError:  # without an index nobody knows what finds what
        outlook = []
    other = {each.prompt: each.other for each in outlook}
    for prompt in (*proposal.fires_on, *proposal.prompts):
        why = why_no_prompt(prompt) or (OTHER if other.get(prompt) else "")
        left_out += [(prompt, why)] if why and prompt not in of_session else []
    refused = {each for each, _ in left_out}
    return replace(
        proposal,
        prompts=tuple(each for each in proposal.prompts if each not in refused)[:MAX_PROMPTS],
        fires_on=tuple(each for each in proposal.fires_on if each not in refused),
    ), left_out


def why_no_prompt(text: str) -> str:
    """Return the reason for which a text is no prompt that finds a lesson, or ""."""
    if vocabulary.word_count(text) < MIN_PROMPT_WORDS:
        return SHORT
    return CHATTER if chatter.why_skipped(text) else ""


def _compare(context: Context, proposal: Proposal) -> Comparison:
    try:
        return context.lessons.compare(proposal)
    except VaultError:  # without an index the words of proposals are all there is
        return NOT_COMPARED


def _checked(
    proposal: Proposal,
    compared: Comparison,
    context: Context,
    other: Proposal | None = None,
) -> Proposal:
    """Return a proposal with its warnings, also of another that waits. Raises CheckError for an error.

    An order that it repeats is one: a person sees whether it is. Our own ids are not checked: a hash
    behind "login:" reads like a password.
    """
    bare = replace(proposal, session="", changes="", background=())
    findings = list(review.checked(bare, compared.categories).findings)
    prompts = (*proposal.prompts, *proposal.fires_on)
    lists = (proposal.tags, prompts, proposal.fires_on_error, proposal.quotes)
    whole = "\n".join([proposal.title, proposal.text, *chain.from_iterable(lists)])
    if order := next((each for each in context.orders if grounding.obeys(whole, each)), ""):
        quoted = blocks.one_line(order.strip("+- \t"))
        findings.append(_warning(ORDER, f"the session read this as an order to an agent: {quoted}"))
    if proposal.quotes and not context.material.is_transcribed:
        findings.append(
            _warning(QUOTES, "quotes were not looked up: no transcript of this session")
        )
    if other:
        also = f"{other.id} waits, too, and has another cure: accept one, then [m] adds the other"
        findings.append(_warning(LIKE, also))
    return replace(proposal, findings=tuple(findings))


def _warning(rule: str, message: str) -> dict[str, str]:
    return {"level": check.WARNING, "rule": rule, "message": message}


def _waiting(proposal: Proposal, compared: Comparison, context: Context) -> Proposal | None:
    """Return the proposal that waits and is about the same, by its words or its vector."""
    own_words = fingerprint.create(proposal).words
    alike = [
        (fingerprint.words_in_common(own_words, fingerprint.create(each).words), each)
        for each in context.waiting
    ]
    alike.sort(key=lambda pair: -pair[0])
    if alike and alike[0][0] >= fingerprint.SAME_WORDS:
        return alike[0][1]
    vector = fingerprint.unpack(compared.vector)
    for common, each in alike[:MAX_COMPARED] if vector is not None else ():
        if common < MIN_WORDS_IN_COMMON:
            break
        bare = replace(each, session="", prompts=(), fires_on=(), quotes=())
        other = fingerprint.unpack(_compare(context, bare).vector)
        if fingerprint.cosine(vector, other) >= fingerprint.SAME_COSINE:
            return each
    return None


def _again(waiting: Proposal, proposal: Proposal) -> Recurring:
    """Add the evidence of another session to a waiting proposal. Raises _Dropped for the same one."""
    if not proposal.session or proposal.session in (waiting.session, *waiting.again):
        raise _Dropped(WAITS)
    return Recurring(draft.seen_again(waiting, replace(proposal, again=(proposal.session,))))


def _teaching(entry: LearnedLesson, id: str, context: Context) -> Admitted | None:
    """Return the proposal that a lesson fires at a prompt at which it did not come; None without one."""
    if context.material.scope != SESSION:
        return None
    try:
        lesson = context.lessons.show(id)
        taught = {*map(hash_of_prompt, (*lesson.fires_on, *lesson.silent_on))}
        about = f"{entry.title} {entry.parts.summary} {entry.parts.problem}"
        prompt = grounding.nearest_prompt(about, context.material)
        is_new = prompt and hash_of_prompt(prompt) not in taught and not chatter.why_skipped(prompt)
        if not is_new or lesson.withheld or _came(id, prompt, context.material):
            return None
        text = f"It fires at this prompt from now on: {prompt}"
        proposal = draft.create(lesson.title, text, "", (), [prompt], context.by)
        proposal = replace(
            proposal,
            quotes=entry.quotes,
            **_origin(entry, context),
            why=f"{ABSENT}; {context.why}",
            changes=lesson.id,
            only_prompts=True,
        )
        return Admitted(_checked(proposal, NOT_COMPARED, context), NOT_COMPARED)
    except VaultError:  # it was deleted since
        return None


def _came(id: str, prompt: str, material: Material) -> bool:
    """Whether a session had a lesson when it was asked a prompt: at its start, before, or then."""
    if id not in material.injected:
        return False
    prompts = grounding.prompts_of(material)
    keys = [delivery.key_of(text) for text in prompts]
    matches = [prompt.casefold() in grounding.squeezed(text).casefold() for text in prompts]
    if material.injected[id] not in keys or True not in matches:
        return True
    return keys.index(material.injected[id]) <= matches.index(True)


def _change(entry: LearnedLesson, proposal: Proposal, id: str, context: Context) -> Proposal:
    """Return the proposal to add the new sentences of an entry to a lesson. Raises _Dropped for nothing.

    The lesson's text stays as it is, word for word: rewritten texts lose what made them useful.
    """
    lesson = context.lessons.show(id)
    lesson_text = f"{lesson.title} {lesson.text}"
    added = [*_new_items(entry, lesson_text), *_new_sides(entry, lesson_text)]
    if not added:
        raise _Dropped(LESSON, id)
    items = "\n".join(f"- {item}" for item in added)
    changed = draft.create(lesson.title, items)
    return replace(proposal, id=changed.id, title=changed.title, text=items, changes=lesson.id)


def _new_items(entry: LearnedLesson, text: str) -> list[str]:
    """Return the sentences of an entry that say something new to a lesson."""
    lesson_words = set(draft.words(text))
    explanation = _CODE_BLOCK.sub("", entry.parts.explanation)
    entry_text = f"{entry.parts.summary}\n{explanation}\n{entry.parts.problem}"
    items: list[str] = []
    for sentence in filter(None, (item.strip().lstrip("-*# ") for item in _ITEM.split(entry_text))):
        mine = [word for word in dict.fromkeys(draft.words(sentence)) if len(word) > 2]
        new = [word for word in mine if word not in lesson_words]
        if len(new) >= NEW_WORDS and len(new) >= NEW_SHARE * len(mine):
            items.append(sentence)
            lesson_words |= set(mine)
    return items[:MAX_ADDED]


def _new_sides(entry: LearnedLesson, text: str) -> list[str]:
    """Return the points for an entry and against it that a lesson does not have."""
    lesson_words = set(draft.words(text))
    sides = [("For it", each) for each in entry.parts.pro]
    sides += [("Against it", each) for each in entry.parts.con]
    return [
        f"{label}: {each}"
        for label, each in sides
        if not lesson_words.issuperset(draft.words(each))
    ]
