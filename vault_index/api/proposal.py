"""Proposals: draft lessons of agents and of sessions, which a person reviews."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from vault_index import api
from vault_index.api.question import Caller, command, question
from vault_index.errors import VaultError
from vault_index.index import classifier
from vault_index.lesson.category import NO_CATEGORY, UNCATEGORIZED
from vault_index.lesson.parse import Lesson, id_of
from vault_index.proposals import fingerprint, review, similarity
from vault_index.proposals.accept import change_of, write_lesson
from vault_index.proposals.draft import Proposal
from vault_index.proposals.fingerprint import NOT_COMPARED, Comparison, Like
from vault_index.proposals.similarity import Outlook
from vault_index.retrieval import entries
from vault_index.retrieval.hit import Named
from vault_index.vault import Vault


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The lesson that a proposal changes: how, or the `problem` with it."""

    id: str
    diff: str = ""
    is_done: bool = False
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Card(Proposal):
    """A proposal as a reviewer sees it.

    `quote` proves most, with its `speaker`. Only `cards` has the rest: `same` and `nearest` are lessons,
    `suggested` is the category of the classifier, `nearer` another one that it clearly fits better
    than its own, and `source` the file as an editor gets it.
    """

    quote: str = ""
    speaker: str = ""
    same: Like | None = None
    nearest: Like | None = None
    outlook: tuple[Outlook, ...] = ()  # of its prompts
    suggested: str = ""
    why_suggested: str = ""
    nearer: str = ""
    target: Target | None = None
    source: str = ""

    @property
    def needs_category(self) -> bool:
        """Whether it becomes a lesson that says nowhere where it belongs."""
        return not (self.category or self.changes or self.same)

    @property
    def fitting(self) -> str:
        """The category that suits it best, else the nearest lesson's; "" where none is known."""
        nearest = str(self.nearest[0]) if self.nearest else ""
        return self.category or self.suggested or nearest.rpartition("/")[0]


@command
def select(
    vault: Vault, caller: Caller, id: str = "", session: str = "", batch: str = ""
) -> tuple[Card, ...]:
    """List the proposals that wait; with `id` that one, also by its beginning.

    Those that several sessions taught come first, then the oldest.

    `session` is the private id of one, `batch` the id of one, or the beginning of either.
    """
    del caller
    listed = [review.find(vault, id, broken=True)] if id else review.waiting(vault)
    chosen = [
        each
        for each in listed
        if any(one.startswith(session) for one in (each.session, *each.again))
        and each.batch.startswith(batch)
    ]
    return tuple(card_of(each) for each in sorted(chosen, key=lambda each: -each.times))


@command
def cards(vault: Vault, caller: Caller, id: str = "", session: str = "") -> tuple[Card, ...]:
    """List the proposals as `select` does, with all that a reviewer wants to know of each."""
    listed = caller.ask(api.proposal.select(id=id, session=session))
    return tuple(_compared(vault, caller, each) if each.text else each for each in listed)


@command
def edit(vault: Vault, caller: Caller, id: str, text: str, seen: str) -> Card:
    """Write the edited `source` of a proposal, of which the editor got `seen`: the proposal.

    It is checked again: what `check` calls an error is refused, and the proposal stays as it was.
    """
    categories: Sequence[str] = ()
    try:
        categories = list(caller.ask(api.lesson.count(), fetch=False).counts)
    except VaultError as error:
        caller.note(f"warning: its category is not compared with the others: {error.message}")
    return card_of(review.edit(vault, id, text, seen, categories))


@dataclass(frozen=True, slots=True)
class Merged:
    """A lesson with a proposal at its end: the `diff`, and what it was `before`, as a hash."""

    id: str
    path: str
    title: str
    diff: str
    before: str
    written: bool


@command
def merge(
    vault: Vault,
    caller: Caller,
    id: str,
    into: str,
    seen: str = "",
    commit: bool = False,
    write: bool = False,
) -> Merged:
    """Add a proposal to the end of a lesson.

    Only with `write`, and where `seen` is the `before` of what a person saw, it is written; a lesson
    that was saved in between stays as it is.
    """
    proposal = review.find(vault, id)
    entry = caller.ask(api.lesson.show(name=into))
    change = change_of(proposal, entry)
    if write:
        write_lesson(vault, id, entry, seen, commit=commit)
    return Merged(entry.id, entry.path, entry.title, change.diff, change.before, write)


@dataclass(frozen=True, slots=True)
class Accepted:
    """The lesson that a proposal became or changed, with its path from the vault's root."""

    id: str
    path: str


@command
def accept(
    vault: Vault, caller: Caller, id: str, category: str = "", commit: bool = False
) -> Accepted:
    """Make a proposal a lesson, or change the lesson it is a change of.

    One that a lesson says already only goes. `category` is where it belongs, NO_CATEGORY for none.
    Raises VaultError, with nothing written, for a proposal that names none where `category` is "".
    """
    proposal = review.find(vault, id)
    named, same = proposal.changes, None
    with suppress(VaultError):  # without an index
        if not named:
            same = caller.ask(api.proposal.compare(proposal=proposal), fetch=False).same
            named = same[0] if same else ""
    entry = caller.ask(api.lesson.show(name=named)) if named else None
    if entry and same:
        review.drop(vault, id)
        return Accepted(entry.id, entry.path)
    if not (entry or category or proposal.category):
        raise _no_category(caller, proposal)
    path = write_lesson(vault, id, entry, category=category, commit=commit)
    lesson = entry.id if entry else id_of(str(path.relative_to(vault.lessons_dir)))
    return Accepted(lesson, str(path.relative_to(vault.root)))


def _no_category(caller: Caller, proposal: Proposal) -> VaultError:
    """Return the error for a proposal in no category, which names the one that fits."""
    fitting = ""
    with suppress(VaultError):  # without an index
        card = card_of(proposal)
        fitting = caller.ask(api.proposal.preview(card=card), fetch=False).fitting
    hint = f"name one, such as `-c {fitting or 'devops/ci-cd'}`, or `-c {NO_CATEGORY}` for none"
    return VaultError(f"{proposal.id} is in no category", hint)


@command
def strike(vault: Vault, caller: Caller, id: str, text: str) -> Card:
    """Take a prompt or a line of output out of a proposal: the proposal."""
    del caller
    return card_of(review.strike(vault, id, text))


@command
def reject(vault: Vault, caller: Caller, id: str) -> Named:
    """Take a proposal away; one with the same quote or prompt is recognised.

    For a week `take_back` undoes it.
    """
    proposal = review.find(vault, id, broken=True)
    compared = NOT_COMPARED
    try:
        if proposal.text:
            compared = caller.ask(api.proposal.compare(proposal=proposal), fetch=False)
    except VaultError as error:
        caller.note(f"warning: only its words are kept to recognise it: {error.message}")
    rejected = review.reject(vault, id, compared)
    return Named(rejected.id, rejected.title)


@command
def take_back(vault: Vault, caller: Caller, id: str) -> Named:
    """Let a proposal wait again that was rejected in the last seven days."""
    del caller
    proposal = review.take_back(vault, id)
    return Named(proposal.id, proposal.title)


def card_of(proposal: Proposal) -> Card:
    """Return a proposal as a card."""
    values = {name: getattr(proposal, name) for name in Proposal.__dataclass_fields__}
    values["day"] = proposal.day or proposal.created[:10]
    quote, speaker = proposal.witness
    return Card(**values, quote=quote, speaker=speaker)


def _compared(vault: Vault, caller: Caller, card: Card) -> Card:
    try:
        card = caller.ask(api.proposal.preview(card=card), fetch=False)
    except VaultError as error:
        caller.note(f"warning: not compared with the lessons: {error.message}")
    target = _target(caller, card) if card.changes else None
    return replace(card, target=target, source=review.source(vault, card.id))


def _target(caller: Caller, proposal: Proposal) -> Target:
    try:
        entry = caller.ask(api.lesson.show(name=proposal.changes))
    except VaultError as error:
        return Target(id=proposal.changes, problem=error.message)
    diff = change_of(proposal, entry).diff
    return Target(id=entry.id, diff=diff, is_done=not diff)


@question
def compare(vault: Vault, proposal: Proposal) -> Comparison:
    """Compare a draft with lessons and with rejected proposals.

    Its prompts, its quotes and the private id of its session are evidence: with the same one a draft
    in other words is recognised.
    """
    return similarity.compare(vault, proposal)


@question
def preview(vault: Vault, card: Card) -> Card:
    """Return a card with the facts on its lessons that a reviewer wants to know."""
    title, text, changes = card.title, card.text, card.changes
    compared = similarity.compare(vault, card, without=changes)
    if changes and (entry := entries.entry_or_near(vault, changes)[0]):
        text = change_of(card, entry).text
    filed = (card.category,) if card.category else ()
    lesson = Lesson(
        id="proposal",
        path=similarity.PATH,
        title=title,
        text=text,
        categories=filed,
        tags=card.tags,
        confidence=card.confidence,
    )
    card = replace(
        card,
        same=(*compared.same, 1.0) if compared.same else None,
        near=compared.near,
        nearest=compared.nearest,
        outlook=tuple(similarity.outlook(vault, lesson, [*card.fires_on, *card.prompts], changes)),
    )
    if changes or card.same:
        return card
    vector = fingerprint.unpack(compared.vector)
    if filed:
        return replace(card, nearer=classifier.nearer(vault, card.category, title, text, vector))
    verdict = classifier.of_draft(vault, title, text, vector)
    first = verdict.categories[0]
    suggested = "" if first == UNCATEGORIZED else first
    return replace(card, suggested=suggested, why_suggested=verdict.why[0])
