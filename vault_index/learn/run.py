"""Learn from a session, from commits or files: the story from the material to proposals that wait.

material -> significance -> entries, by a model or by rule -> gate -> proposals
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vault_index import llm
from vault_index.check.redact import redact
from vault_index.errors import (
    ModelAwayError,
    ModelBudgetError,
    ModelCallError,
    ModelRefusedError,
    ProposalsFullError,
    VaultError,
)
from vault_index.features import LearnTable
from vault_index.journal.record import private_id
from vault_index.learn import (
    by_rule,
    cost,
    gate,
    gather,
    grounding,
    memory,
    refuted,
    runs,
    significance,
    stages,
    timeline,
)
from vault_index.learn.agent_entries import UnknownField
from vault_index.learn.material import COMMITS, FILES, MEMORY, SESSION, LearnedLesson, Material
from vault_index.learn.orders import without_orders
from vault_index.learn.runs import Run
from vault_index.learn.significance import Significance
from vault_index.learn.stages import CallPlan, Request
from vault_index.llm.backend import Usage
from vault_index.proposals import draft, review
from vault_index.proposals.draft import Proposal
from vault_index.proposals.fingerprint import NOT_COMPARED, Like
from vault_index.text import blocks
from vault_index.transcripts import events, vocabulary
from vault_index.transcripts.moments import PERSON
from vault_index.vault import Vault

if TYPE_CHECKING:
    from vault_index.llm.metered import Model

SCOPES = (SESSION, COMMITS, FILES, MEMORY)
RULES = "rules"  # what a run is by, without a model
AGENT = "agent"  # what a run is by, whose entries the agent at hand wrote
MAX_AT_ONCE = 6  # entries of an agent
MANY = "more than the {most} that may be proposed of it (learn.max_entries)"
_FULL = {
    "status": runs.FULL,
    "trouble": f"{review.MAX_WAITING} proposals wait already, as many as may",
    "hint": "decide some of them with `lessons review`, then do it again",
}
MAX_GIVEN = 50  # lessons that a session was given, and whose texts are compared
MAX_TITLE_CHARS = 200  # of an entry that was dropped
MAX_SUBJECT = 1_500  # characters of what was said, by which those are found
_STATUS = {
    ModelAwayError: runs.AWAY,
    ModelRefusedError: runs.REFUSED,
    ModelBudgetError: runs.BUDGET,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A proposal that waits now: `near` which lessons it is, and prompts that were `left_out`, with why.

    `category` is "" for none, `new_category` one that the vault has not, or "". `times` are the sessions
    that taught it, more than one for a proposal that waited before. `unlinked` are relations that it does
    without, with why.
    """

    id: str
    title: str
    status: str
    near: Sequence[Like] = ()
    findings: Sequence[Mapping[str, Any]]
    changes: str
    is_draft: bool
    category: str
    new_category: str = ""
    left_out: Sequence[tuple[str, str]] = ()
    quotes: Sequence[str]
    times: int
    unlinked: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True, slots=True)
class Dropped:
    """An entry without a proposal, and why. An agent gets what helps to correct it.

    That is the `lesson` that says it, or the `passages` that a quote may mean.
    """

    title: str
    reason: str
    lesson: Like | None = None
    passages: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """The outcome of a run: its `status` is one of `record`'s, and `trouble` is why a model failed.

    `plan` is what is sent; a dry run has as `text` all of it. `no_cost` is what to do where the cost of a
    model with a key is not known. So many proposals of the same session were `waiting` before.
    """

    status: str
    scope: str
    target: str
    significance: Significance
    threshold: int
    plan: Mapping[str, Any]
    sends: str
    proposals: Sequence[Made] = ()
    dropped: Sequence[Dropped] = ()
    usage: Usage
    no_cost: str = ""
    trouble: str = ""
    hint: str = ""
    text: str = ""
    waiting: int = 0

    @property
    def waits_already(self) -> bool:
        """Whether nothing was proposed because proposals say it."""
        says = {each.reason for each in self.dropped}
        return not self.proposals and (self.waiting > 0 or says == {gate.WAITS})


@dataclass(frozen=True, slots=True)
class Proposed:
    """The outcome of an agent's entries of a session; no quote is checked unless that `is_read`.

    Without entries it is what waits, as ids with titles, and the `categories` of the vault. `unknown` are
    fields that were left out.
    """

    session: str
    is_read: bool
    proposals: Sequence[Made] = ()
    dropped: Sequence[Dropped] = ()
    waiting: Sequence[tuple[str, str]] = ()
    categories: Mapping[str, str] | None = None
    unknown: Sequence[UnknownField] = ()


@dataclass(frozen=True, slots=True)
class SessionText:
    """A session as the text that a model would be sent, with its instructions."""

    session: str
    text: str


@dataclass(frozen=True, slots=True)
class LearnCaller:
    """The caller of `learn`."""

    note: Callable[[str], None]  # takes a line for people
    progress: Callable[[str, int, int], None]  # what is being done, how much is done, of how much
    lessons: gate.Lessons


@dataclass(frozen=True, slots=True)
class RunInputs:
    """All that a run knows before it asks anybody. `seen` is the material without orders."""

    vault: Vault
    caller: LearnCaller
    material: Material
    safe: Material
    orders: tuple[str, ...]
    worth: Significance
    by: str  # the name of the model, RULES without one, or an agent
    model: Model | None
    request: Request
    plan: CallPlan

    def run(self, asked_by: str) -> Run:
        return Run(
            vault=str(self.vault.root),
            scope=self.material.scope,
            target=self.material.target,
            digest=self.material.digest,
            by=self.by,
            session=self.material.session,
            points=self.worth.points,
            asked_by=asked_by,
        )

    def answer(self, **outcome: Any) -> Learned:
        """Return the answer to a run with this outcome."""
        new_ids = {each.id for each in outcome.get("proposals", ())}
        session = private_id(self.material.session) if self.material.session else ""
        others = [each for each in review.waiting(self.vault) if each.id not in new_ids]
        return Learned(
            waiting=sum(bool(session) and each.session == session for each in others),
            **outcome,
            scope=self.material.scope,
            target=self.material.target,
            significance=self.worth,
            threshold=self.vault.config[LearnTable].significance,
            plan=self.plan.as_json(),
            sends=str(self.plan),
            usage=cost.of(self.model, self.vault.config[LearnTable]),
            no_cost=cost.missing(self.model, self.vault.config[LearnTable]),
        )


def learn(
    vault: Vault,
    caller: LearnCaller,
    scope: str,
    target: str | Sequence[str],
    *,
    folder: str = "",
    force: bool = False,
    dry_run: bool = False,
    tokens: int = 0,
    asked_by: str = runs.PERSON,
) -> Learned:
    """Learn from material, and make proposals. `folder` is where the user works.

    A request counts whatever the significance is, with `force` also where the same was learned before. A
    session that ended is learned from once. With `dry_run` nothing is sent or written, and `text` is what
    would be, also to a model if none is set; `tokens` is another budget than in the settings. Raises
    VaultError.
    """
    if scope not in SCOPES:
        raise VaultError(f"there is no scope {scope!r}", f"choose one of {', '.join(SCOPES)}")
    user_folder = Path(folder) if folder else None
    name = target if isinstance(target, str) else " ".join(target)
    if scope == FILES:
        paths = target.splitlines() if isinstance(target, str) else target
        material = gather.files(vault, list(filter(None, map(str.strip, paths))), user_folder)
    elif scope == MEMORY:
        return _learn_from_memory(vault, caller, user_folder or vault.root, dry_run=dry_run)
    elif scope == COMMITS:
        material = gather.commits(vault, name or "HEAD", user_folder)
    else:
        material = gather.session(vault, name or gather.LAST, user_folder)
    if tokens:
        settings = vault.config.with_tables(replace(vault.config[LearnTable], tokens=tokens))
        vault = Vault(vault.root, settings)
    return learn_from(vault, caller, material, force=force, dry_run=dry_run, asked_by=asked_by)


def _learn_from_memory(
    vault: Vault, caller: LearnCaller, folder: Path, *, dry_run: bool
) -> Learned:
    """Make a proposal of each note that an agent keeps for itself. Raises VaultError without any."""
    material, entries = memory.material_of(vault, folder)
    work = prepare(vault, caller, material, by=memory.BY)
    if dry_run:
        text = "\n".join(each.title for each in entries)
        return work.answer(status=runs.DRY, text=text)
    proposals, refused = propose_entries(work, context_of(work), entries, most=len(entries))
    dropped = [Dropped(each.title[:MAX_TITLE_CHARS], why) for each, why in refused]
    return work.answer(status=status_of(proposals), proposals=proposals, dropped=dropped)


def learn_from(
    vault: Vault,
    caller: LearnCaller,
    material: Material,
    *,
    force: bool = False,
    dry_run: bool = False,
    asked_by: str = runs.PERSON,
) -> Learned:
    """Make proposals of a material: see `learn`."""
    work, config = prepare(vault, caller, material, dry_run=dry_run), vault.config
    run = work.run(asked_by)
    if dry_run:
        plan = work.plan if work.model else stages.plan(work.safe, config, work.request)
        return work.answer(status=runs.DRY, text="\n\n".join(call.text for call in plan.calls))
    is_unasked = asked_by == runs.NOBODY
    if is_unasked and not work.worth.is_worth(config[LearnTable].significance):
        return work.answer(status=runs.NOT_WORTH)
    is_over = is_unasked and run.session and runs.was_analysed(config, run.vault, run.session)
    if not force and (is_over or runs.is_learned(config, run)):
        return work.answer(status=runs.LEARNED)
    if len(review.waiting(vault)) >= review.MAX_WAITING:
        return work.answer(**_FULL)
    begun = runs.begin(config, run)
    if begun is None:
        return work.answer(status=runs.RUNNING)
    try:
        answer = _analyse(work)
    except BaseException:
        answer = work.answer(status=runs.STOPPED)
        runs.end(config, replace(begun, status=answer.status, usage=asdict(answer.usage)))
        raise
    ended = replace(
        begun,
        status=answer.status,
        usage=asdict(answer.usage),
        trouble=answer.trouble,
        proposals=tuple(each.id for each in answer.proposals),
        dropped=dict(Counter(each.reason for each in answer.dropped)),
    )
    runs.end(config, ended)
    return answer


def prepare(
    vault: Vault, caller: LearnCaller, material: Material, *, dry_run: bool = False, by: str = ""
) -> RunInputs:
    """Prepare a run before it asks anybody: its material without orders, model and plan."""
    config = vault.config
    name = "" if by else config[LearnTable].model
    worth = significance.score(material, config[LearnTable])
    moments, orders = without_orders(material.moments)
    safe = replace(material, moments=moments)
    model = llm.open_model(name, config) if name else None
    request = request_of(safe, caller) if model or dry_run else Request()
    plan = stages.plan(safe, config, request) if model else CallPlan()
    by = by or (model.name if model else RULES)
    return RunInputs(
        vault=vault,
        caller=caller,
        material=material,
        safe=safe,
        orders=orders,
        worth=worth,
        by=by,
        model=model,
        request=request,
        plan=plan,
    )


def request_of(material: Material, caller: LearnCaller) -> Request:
    """Return the request that goes to a model beside the material."""
    typed = "\n".join(each.text for each in material.moments if each.kind == PERSON)
    try:
        subject = blocks.ends(typed, MAX_SUBJECT) or material.project
        proposal = draft.create(material.project or material.target, subject)
        compared = caller.lessons.compare(proposal)
    except VaultError:  # there is no index
        compared = NOT_COMPARED
    return Request(
        project=material.project,
        date=material.began[:10],
        language=vocabulary.language_of(
            each.text
            for each in material.moments
            if each.kind == PERSON and each.origin in events.TYPED
        ),
        categories=compared.offered,
        lessons=[each[1] for each in compared.closest],
    )


def _analyse(work: RunInputs) -> Learned:
    """Return the answer to a run: proposals that wait now, and what was dropped."""
    if not any(text.strip() for text in work.material.texts):
        return work.answer(status=runs.NOTHING)
    try:
        entries = _entries(work)
    except ModelCallError as error:
        status = _STATUS.get(type(error), runs.FAILED)
        return work.answer(status=status, trouble=redact(error.message), hint=error.hint)
    proposals, refused = propose_entries(work, context_of(work), entries)
    outcome = (
        _FULL if any(why == runs.FULL for _, why in refused) else {"status": status_of(proposals)}
    )
    dropped = [Dropped(each.title[:MAX_TITLE_CHARS], why) for each, why in refused]
    return work.answer(proposals=proposals, dropped=dropped, **outcome)


def status_of(proposals: Sequence[Made]) -> str:
    """Return the status of a run that ended with these proposals."""
    return runs.PROPOSED if proposals else runs.NOTHING


def _entries(work: RunInputs) -> list[LearnedLesson]:
    if work.model is None:
        return by_rule.read(work.safe.moments)
    work.caller.note(f"sending {work.plan}")
    progress = partial(work.caller.progress, "analysing")
    config, note = work.vault.config, work.caller.note
    return stages.run(work.model, work.safe, config, work.request, progress, note)


def propose_entries(
    work: RunInputs, context: gate.Context, entries: list[LearnedLesson], most: int = 0
) -> tuple[list[Made], list[tuple[LearnedLesson, str]]]:
    """Keep entries that pass the gate, most confident first.

    Return the proposals, and the dropped entries with reasons.
    """
    usual = stages.max_entries(work.vault.config, work.material)
    most = most or (MAX_AT_ONCE if work.by == AGENT else usual)
    proposals, dropped = list[Made](), list[tuple[LearnedLesson, str]]()
    for entry in sorted(entries, key=lambda entry: -entry.confidence):
        is_room = len(proposals) < most
        admitted = gate.admit(entry, context) if is_room else MANY.format(most=most)
        outcome = admitted if isinstance(admitted, str) else _store(work.vault, admitted)
        if isinstance(outcome, str) or isinstance(admitted, str):
            dropped.append((entry, str(outcome)))
        else:
            proposals.append(outcome)
            new = admitted.proposal
            others = (each for each in context.waiting if each.id != new.id)
            context = replace(context, waiting=(*others, new))
    return proposals, dropped


def _store(vault: Vault, admitted: gate.Admitted | gate.Recurring) -> Made | str:
    """Return a proposal that waits now, or why it does not."""
    proposal = admitted.proposal
    if isinstance(admitted, gate.Recurring):
        waits = review.recur(vault, proposal.id, proposal)
        return made_of(waits) if waits else gate.DECIDED
    try:
        answer = review.propose(vault, proposal, admitted.compared)
    except ProposalsFullError:
        return runs.FULL
    if answer["status"] != review.WAITING:
        return _REASONS[answer["status"]]
    categories = admitted.compared.categories or (proposal.category,)
    return made_of(
        proposal,
        near=answer["near"],
        new_category="" if proposal.category in categories else proposal.category,
        left_out=admitted.left_out,
        unlinked=admitted.unlinked,
    )


def made_of(proposal: Proposal, **more: Any) -> Made:
    """Return a proposal that waits now; `more` is what it does not say itself."""
    return Made(
        id=proposal.id,
        title=proposal.title,
        status=review.WAITING,
        findings=proposal.findings,
        changes=proposal.changes,
        is_draft=proposal.is_draft,
        category=proposal.category,
        quotes=proposal.quotes,
        times=proposal.times,
        **more,
    )


_REASONS = {review.WAITS: gate.WAITS, review.REJECTED: gate.REJECTED, review.IS_LESSON: gate.LESSON}


def context_of(work: RunInputs) -> gate.Context:
    """Return all that the entries of a run are held against.

    A proposal that waits and is refuted by the material gets a warning before.
    """
    refuted.note(work.vault, work.material)
    lessons, given = work.caller.lessons, dict[str, str]()
    for id in [*work.material.injected][:MAX_GIVEN]:
        with suppress(VaultError):  # it was deleted since
            given[id] = lessons.show(id).text
    texts: Sequence[str] = work.material.texts + work.material.spoken  # with the orders it read
    if work.model:  # quotes must stand in what it was sent
        texts = [timeline.plain(stages.shown(work.safe, work.vault.config, work.request))]
    addends = ", ".join(f"{each.name} +{each.points}" for each in work.worth.addends)
    return gate.Context(
        material=work.material,
        texts=grounding.texts_of(texts),
        given=given,
        orders=work.orders,
        waiting=tuple(review.waiting(work.vault)),
        lessons=lessons,
        by=work.by,
        why=""
        if work.by in (AGENT, memory.BY)
        else f"{work.worth.points} points: {addends}".removesuffix(": "),
        refuted=refuted.of_lessons(work.material, given),
    )
