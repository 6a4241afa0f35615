"""An entry -> a proposal, or the reason why not.

    form        title, type, confidence; put right where that needs no guess
    evidence    quotes that stand in the material, prompts that were asked, a prompt that must not find it
    worth       particular, no secret, no order to an agent, nothing that the session was given
    likeness    not a lesson, a proposal that waits a rejected one; near a lesson: a change of it

Nothing is asked of a model here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from vault_index.check import prompt_injection
from vault_index.errors import VaultError
from vault_index.hotpath import chatter
from vault_index.index.rows import hash_of_prompt
from vault_index.journal.record import private_id
from vault_index.journal.redact import redact
from vault_index.learn import evidence
from vault_index.learn.material import SESSION, Entry, Material
from vault_index.lesson import parse, passages
from vault_index.proposals import draft, review, shelf
from vault_index.proposals.draft import Proposal
from vault_index.store import injections

TITLE_WORDS = (5, 10)
CONFIDENCE = (1, 5)
MAX_TEXT_CHARS = 6_000
MAX_QUOTES = 3
MAX_TAGS = 8
COMPARED = 5  # waiting proposals whose vectors are compared: those with most words in common
SOME_WORDS = 0.1  # in common with a proposal whose vector is worth a look
MAX_ADDED = 5  # items of a change
NEW_WORDS, NEW_SHARE = 3, 0.4  # of an item that a lesson does not have

# why an entry is dropped
TITLE = "its title has not 5 to 10 words"
TYPE = "its type is not one of " + ", ".join(parse.TYPES)
CONFIDENT = "its confidence is not 1 to 5"
EMPTY = "it says nothing"
LONG = "it is too long"
NO_QUOTE = "no quote of it stands in the material"
NO_PROMPT = "no prompt of the session would find it"
NO_SILENCE = "no prompt is named that must not find it"
GENERIC = "it is generic"
SECRET = "it holds a secret"
ORDER = "it repeats an order to an agent"
GIVEN = "it repeats a lesson that the session was given"
LESSON = "a lesson says it already"
WAITS = "a proposal says it already"
REJECTED = "it was rejected before"
ABSENT = "the lesson was there and did not come"
_BREAK = re.compile(
    r"[,;:.(\u2013\u2014]|\s-\s|\b(?:because|since|so that|when|if|by|instead of|and|to avoid|which)\b",
    re.IGNORECASE,
)
_ITEM = re.compile(r"(?<=[.!?])\s+(?=[A-Z`\"'])|\n+")

Ask = Callable[[str, Mapping[str, Any]], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Around:
    """The texts that an entry is compared with. `given` is the text of each lesson that the session had,
    by id.

    `orders` are lines of the material that give orders. `ask` puts a question of `api`, and raises
    VaultError where there is no index.
    """

    material: Material
    texts: tuple[str, ...]
    known: frozenset[str]
    given: Mapping[str, str]
    orders: tuple[str, ...]
    waiting: tuple[Proposal, ...]
    ask: Ask
    by: str
    why: str


@dataclass(frozen=True, slots=True)
class Kept:
    """A proposal to be kept, and what it was `compared` with: see `likeness.of`."""

    proposal: Proposal
    compared: Mapping[str, Any]


def sift(entry: Entry, around: Around) -> Kept | str:
    """Return what becomes of an entry: a proposal, or the reason against it."""
    entry, reason = _formed(entry)
    if not reason:
        entry, reason = _proven(entry, around)
    reason = reason or _worth(entry, around)
    if reason == GIVEN:
        return _teaching(entry, _repeated(entry, around), around) or GIVEN
    if reason:
        return reason
    try:
        proposal = _proposal(entry, around)
        evidence_of = {name: list(getattr(proposal, name)) for name in ("fires_on", "quotes")}
        values = {"title": proposal.title, "text": proposal.text, "session": proposal.session}
        compared = _compared(around, {**values, **evidence_of})
        proposal = _filed(proposal, compared)
        reason = _there(proposal, compared, around)
        near = [
            *(compared.get("same") or ())[:1],
            *(each[0] for each in compared.get("near") or ()),
        ]
        if reason in (GIVEN, LESSON) and near:
            return _teaching(entry, near[0], around) or reason
        if not reason and compared.get("near"):
            change = _change(entry, proposal, compared["near"][0][0], around)
            if change is None:
                return _teaching(entry, near[0], around) or LESSON
            proposal, compared = change, {**compared, "same": None}
        return reason or Kept(_checked(proposal, compared), compared)
    except VaultError as error:
        return _refused(error.message)


def _checked(proposal: Proposal, compared: Mapping[str, Any]) -> Proposal:
    """Return a proposal with the warnings of its check. Raises VaultError for an error.

    Our own ids are not checked: a hash behind "login:" reads like a password.
    """
    bare = replace(proposal, session="", changes="", base="")
    checked = review.checked(bare, compared.get("categories", ()))
    return replace(proposal, findings=checked.findings)


def words_of(material: Material) -> frozenset[str]:
    """Return words of the project: the parts of the names of changed files."""
    paths = [path for change in material.changes for path in (change.path, change.before)]
    paths += [path for repair in material.repairs for path in repair.files]
    found = {word for path in paths for word in re.split(r"[^A-Za-z0-9]+", path) if len(word) > 3}
    return frozenset(found | {material.project})


def _formed(entry: Entry) -> tuple[Entry, str]:
    """Return an entry in the form of a lesson, and why it has none."""
    title = _title(entry.title)
    text = passages.text_of(entry.parts)
    if entry.type not in parse.TYPES:
        return entry, TYPE
    if not CONFIDENCE[0] <= entry.confidence <= CONFIDENCE[1]:
        return entry, CONFIDENT
    if not title:
        return entry, TITLE
    if not entry.parts.summary.strip() or len(draft.words(text)) < draft.MIN_IDENTITY_WORDS:
        return entry, EMPTY
    if len(text) > MAX_TEXT_CHARS:
        return entry, LONG
    tags = [re.sub(r"[^\w.+#-]+", "-", tag.strip().lower()).strip("-") for tag in entry.tags]
    short = tuple(dict.fromkeys(tag for tag in tags if 0 < len(tag) <= 40))[:MAX_TAGS]
    return replace(entry, title=title, tags=short), ""


def _title(title: str) -> str:
    """Return a title of 5 to 10 words: a longer one to its last break; "" if that leaves none."""
    least, most = TITLE_WORDS
    own = title.strip().rstrip(".").split()
    if least <= len(own) <= most:
        return " ".join(own)
    if len(own) < least:
        return ""
    text = " ".join(own)
    ends = [match.start() for match in _BREAK.finditer(text)]
    cut = [text[:end].strip() for end in ends if least <= len(text[:end].split()) <= most]
    return cut[-1].rstrip(",;:.( \u2013\u2014-") if cut else ""


def _proven(entry: Entry, around: Around) -> tuple[Entry, str]:
    """Return an entry with the quotes and prompts that hold, and why it has none."""
    material = around.material
    quotes = evidence.proven(entry.quotes, around.texts, around.given.values())
    if not quotes:
        return entry, NO_QUOTE
    fires_on = evidence.asked(entry.fires_on, material)
    if not fires_on:
        text = f"{entry.title} {entry.parts.summary} {entry.parts.problem}"
        fires_on = list(filter(None, [evidence.nearest_prompt(text, material)]))
    if not fires_on and material.scope == SESSION:
        return entry, NO_PROMPT
    silent_on = evidence.elsewhere(entry.silent_on, fires_on)
    if not silent_on and not entry.by_rule:  # no rule knows what else people ask
        return entry, NO_SILENCE
    proven = replace(
        entry,
        quotes=tuple(quotes[:MAX_QUOTES]),
        fires_on=tuple(fires_on[:MAX_QUOTES]),
        silent_on=tuple(silent_on[:MAX_QUOTES]),
    )
    return proven, ""


def _worth(entry: Entry, around: Around) -> str:
    """Return why an entry is not worth a person's time, "" if it is."""
    text = f"{entry.title}\n\n{passages.text_of(entry.parts)}"
    everything = "\n".join([text, *entry.tags, *entry.fires_on, *entry.silent_on, *entry.quotes])
    if redact(everything) != everything:
        return SECRET
    if any(evidence.obeys(everything, order) for order in around.orders):
        return ORDER
    if _repeated(entry, around):
        return GIVEN
    if entry.by_rule:  # what a person stated is particular, unless it is a stock phrase
        return GENERIC if evidence.points(text, around.known) < 0 else ""
    return GENERIC if evidence.is_generic(text, around.known, entry.quotes) else ""


def _repeated(entry: Entry, around: Around) -> str:
    """Return the id of the lesson that the session was given and an entry repeats, "" for none."""
    text = f"{entry.title}\n\n{passages.text_of(entry.parts)}"
    return next((id for id, there in around.given.items() if evidence.repeats(text, there)), "")


def _teaching(entry: Entry, id: str, around: Around) -> Kept | None:
    """Return the proposal that a lesson fires at a prompt at which it did not come; None without one."""
    if around.material.scope != SESSION:
        return None
    try:
        lesson = around.ask("lesson.show", {"name": id})["entry"]
        taught = {*map(hash_of_prompt, (*lesson["fires_on"], *lesson["silent_on"]))}
        prompts = [
            prompt
            for prompt in entry.fires_on
            if len(prompt) <= draft.MAX_MEMBER_CHARS
            and not chatter.why_skipped(prompt)
            and hash_of_prompt(prompt) not in taught
            and not _came(id, prompt, around.material)
        ]
        if not prompts or lesson["withheld"]:
            return None
        proposal = draft.of(lesson["title"], lesson["text"], "", (), prompts[:1], around.by)
        proposal = replace(
            proposal,
            quotes=entry.quotes,
            why=f"{ABSENT}; {around.why}",
            session=private_id(around.material.session),
            changes=lesson["id"],
            base=proposal.id,
            is_draft=entry.by_rule,
        )
        return Kept(_checked(proposal, {}), {})
    except VaultError:  # it was deleted since
        return None


def _came(id: str, prompt: str, material: Material) -> bool:
    """Whether a session had a lesson when it was asked a prompt: at its start, before, or then."""
    given = dict.fromkeys(material.injected, "")
    given |= dict(zip(material.injected, material.given_at, strict=False))
    if id not in given:
        return False
    keys = [injections.key_of(said.text) for said in material.prompts]
    asked = [prompt.casefold() in said.text.casefold() for said in material.prompts]
    if given[id] not in keys or True not in asked:
        return True
    return keys.index(given[id]) <= asked.index(True)


def _proposal(entry: Entry, around: Around) -> Proposal:
    """Return the proposal of an entry. Raises VaultError."""
    return draft.of(
        entry.title,
        passages.text_of(entry.parts),
        entry.category,
        entry.tags,
        entry.fires_on,
        around.by,
        type=entry.type,
        confidence=entry.confidence,
        silent_on=entry.silent_on,
        quotes=entry.quotes,
        why=around.why,
        session=private_id(around.material.session),
        is_draft=entry.by_rule,
    )


def _compared(around: Around, values: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return around.ask("proposal.compare", values)
    except VaultError:  # without an index the words of proposals are all there is
        return {}


def _filed(proposal: Proposal, compared: Mapping[str, Any]) -> Proposal:
    """Return a proposal in a category that lessons have; a model makes up others."""
    if not compared or proposal.category in compared.get("categories", ()):
        return proposal
    return replace(proposal, category="")


def _there(proposal: Proposal, compared: Mapping[str, Any], around: Around) -> str:
    """Return which text says it already: a lesson, a rejected proposal, one that waits."""
    if compared.get("same"):
        return LESSON
    if compared.get("rejected"):
        return REJECTED
    own = shelf.hashed(draft.words(f"{proposal.title} {proposal.text}"))
    alike = sorted(((_in_common(own, each), each) for each in around.waiting), key=_first)[::-1]
    if alike and alike[0][0] >= shelf.SAME_WORDS:
        return WAITS
    for common, each in alike[:COMPARED] if compared.get("vector") else ():
        if common < SOME_WORDS:
            break
        other = _compared(around, {"title": each.title, "text": each.text})
        if _cosine(compared["vector"], other.get("vector", "")) >= shelf.SAME_COSINE:
            return WAITS
    near = [id for id, _, _ in compared.get("near") or ()]
    return GIVEN if around.given.keys() & set(near) else ""


def _in_common(own: tuple[int, ...], other: Proposal) -> float:
    words = shelf.hashed(draft.words(f"{other.title} {other.text}"))
    return shelf.words_in_common(own, words)


def _cosine(one: str, other: str) -> float:
    """Return the cosine of two vectors that were packed, 0 where they are not of one model."""
    own, theirs = shelf.unpacked(one), shelf.unpacked(other)
    if own is None or theirs is None or len(own) != len(theirs):
        return 0.0
    return float(own @ theirs)


def _first(pair: tuple[float, Proposal]) -> float:
    return pair[0]


def _change(entry: Entry, proposal: Proposal, id: str, around: Around) -> Proposal | None:
    """Return the proposal to add to a lesson what an entry has beyond it; None if that is nothing.

    The lesson's text stays as it is, word for word: rewritten texts lose what made them useful.
    """
    lesson = around.ask("lesson.show", {"name": id})["entry"]
    added = _new_items(entry, f"{lesson['title']} {lesson['text']}")
    if not added:
        return None
    items = "\n".join(f"- {item}" for item in added)
    whole = passages.with_items(lesson["text"], items)
    base = draft.id_of(lesson["title"], lesson["text"])
    changed = draft.of(
        lesson["title"], whole, proposal.category, proposal.tags, proposal.fires_on, proposal.by
    )
    kept = ("type", "confidence", "silent_on", "quotes", "why", "session", "is_draft")
    values = {name: getattr(proposal, name) for name in kept}
    return replace(changed, **values, changes=lesson["id"], base=base, added=items)


def _new_items(entry: Entry, text: str) -> list[str]:
    """Return the sentences of an entry that say something new to a lesson."""
    there = set(draft.words(text))
    own = f"{entry.parts.summary}\n{_without_code(entry.parts.explanation)}\n{entry.parts.problem}"
    items: list[str] = []
    for sentence in filter(None, (item.strip().lstrip("-*# ") for item in _ITEM.split(own))):
        mine = [word for word in dict.fromkeys(draft.words(sentence)) if len(word) > 2]
        new = [word for word in mine if word not in there]
        if len(new) >= NEW_WORDS and len(new) >= NEW_SHARE * len(mine):
            items.append(sentence)
            there |= set(mine)
    return items[:MAX_ADDED]


def _without_code(text: str) -> str:
    return re.sub(r"(?ms)^(```|~~~).*?^\1[^\n]*$", "", text)


def _refused(message: str) -> str:
    """Return a reason for what the check refuses, or a proposal cannot be."""
    if f"{prompt_injection.RULE}:" in message:
        return ORDER
    return SECRET if "secret:" in message else message
