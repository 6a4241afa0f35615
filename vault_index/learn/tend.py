"""Prompts for lessons that have none: from the agent at hand or a model, to proposals of one batch.

Each says what somebody types who needs the lesson. A person accepts a batch at once, and only
frontmatter changes.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vault_index import llm
from vault_index.check.redact import redact
from vault_index.errors import CheckError, ModelCallError, ProposalsFullError, VaultError
from vault_index.features import LearnTable
from vault_index.index.rows import hash_of_prompt
from vault_index.learn import cost, gate, grounding, run, runs, stages
from vault_index.learn.run import AGENT, Dropped, LearnCaller, Made
from vault_index.learn.stages import CallPlan, Planned
from vault_index.llm import backend
from vault_index.llm.backend import Usage
from vault_index.proposals import draft, review
from vault_index.recall import allowed
from vault_index.store import filters
from vault_index.text import blocks, failure
from vault_index.transcripts import events

if TYPE_CHECKING:
    from vault_index.proposals.draft import Proposal
    from vault_index.retrieval.hit import WholeEntry
    from vault_index.vault import Vault

MOST = 20  # lessons of a turn: more are not read by whoever accepts them
AT_ONCE = 10  # lessons of a call of a model
MAX_PROMPTS, MAX_LINES = 5, 2  # of a lesson
TEXT_CHARS = 1_500  # of a lesson that is handed over

# why a lesson is left out
GONE = "no lesson is called so"
HELD = "hooks leave it out: see `lessons check`"
NONE_LEFT = "none of its prompts is left"
COMMON = "many failures print that"
HAS = "the lesson has it"

_PROMPTS = Path(__file__).parent.parent / "prompts"
_KEYS = {
    "lessons": stages.objects(
        lesson=stages.string("its ID, as above"),
        prompts=stages.strings("two to five prompts that it answers"),
        failing_lines=stages.strings("up to two lines that a failed command prints, or none"),
    )
}


@dataclass(frozen=True, slots=True)
class Bare:
    """A lesson that has no prompts, with its text as far as a reader needs it."""

    id: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Untended:
    """Some lessons without prompts; how many have some, of how many, and for how many some wait."""

    lessons: tuple[Bare, ...]
    tended: int
    all: int
    waiting: int


@dataclass(frozen=True, slots=True)
class Tended:
    """The outcome of a turn: proposals of one `batch`, and what was dropped.

    `sends` is what a model is sent, in words; a dry run has as `text` all of it. `no_cost` is what to
    do where the cost of a model with a key is not known, `trouble` why the model failed.
    """

    batch: str = ""
    proposals: Sequence[Made] = ()
    dropped: Sequence[Dropped] = ()
    sends: str = ""
    text: str = ""
    usage: Usage = field(default_factory=Usage)
    no_cost: str = ""
    trouble: str = ""
    hint: str = ""


def untended(vault: Vault, most: int = MOST) -> Untended:
    """Return lessons without prompts that an agent may read, the latest first.

    Those for which prompts wait are left out. Raises IndexStateError without an index.
    """
    store = vault.open_index().store
    columns = ("lesson_id", "path", "title", "text", "prompts", "updated_at", "file_hash")
    rows = store.rows(columns, filters.all_of(filters.WHOLE, filters.FOR_AGENTS))
    waiting = {each.changes for each in review.waiting(vault) if each.batch}
    bare = [row for row in rows if not row["prompts"] and row["lesson_id"] not in waiting]
    trusted = allowed.trusted_files(vault, {(row["path"], row["file_hash"]) for row in bare})
    bare = [row for row in bare if (row["path"], row["file_hash"]) in trusted]
    bare.sort(key=lambda row: (-_time(row["updated_at"]), row["lesson_id"]))
    handed = (
        Bare(row["lesson_id"], row["title"], blocks.ends(redact(row["text"]), TEXT_CHARS))
        for row in bare[: min(most, MOST)]
    )
    tended, lessons = runs.count_prompts(vault)
    return Untended(tuple(handed), tended, lessons, len(waiting))


def _time(when: datetime | None) -> float:
    return when.timestamp() if when else float("inf")  # not committed yet: just written


def propose(
    vault: Vault, caller: LearnCaller, answers: Sequence[Mapping[str, Any]], by: str = AGENT
) -> Tended:
    """Make proposals of prompts for lessons: each answer has a lesson, prompts and failing_lines.

    Raises VaultError for more than a person reads at once.
    """
    if len(answers) > MOST:
        why = f"prompts for {len(answers)} lessons are more than a person reads at once"
        raise VaultError(why, f"make them at most {MOST}")
    batch = secrets.token_hex(4)
    proposals, dropped = list[Made](), list[Dropped]()
    for values in answers:
        outcome = _proposed(vault, caller, values, batch, by)
        if isinstance(outcome, str):
            dropped.append(Dropped(str(values.get("lesson", ""))[: run.MAX_TITLE_CHARS], outcome))
        else:
            proposals.append(outcome)
    return Tended(batch if proposals else "", proposals, dropped)


def _proposed(
    vault: Vault, caller: LearnCaller, values: Mapping[str, Any], batch: str, by: str
) -> Made | str:
    """Return the proposal of an answer, which waits now, or why it does not."""
    try:
        lesson = caller.lessons.show(str(values["lesson"]))
    except VaultError:
        return GONE
    if lesson.withheld:
        return HELD
    prompts, left_out = _new_prompts(values.get("prompts", ()), lesson)
    lines, more = _new_lines(values.get("failing_lines", ()), lesson)
    proposal = replace(
        draft.create(lesson.title, _text_of(prompts, lines), by=by),
        prompts=prompts,
        fires_on_error=lines,
        changes=lesson.id,
        only_prompts=True,
        batch=batch,
        why="it had no prompts",
    )
    claimed = _taken(caller, proposal)
    left_out += [*more, *((each, gate.OTHER) for each in prompts if each in claimed)]
    prompts = tuple(each for each in prompts if each not in claimed)[:MAX_PROMPTS]
    if not prompts:
        return "; ".join([NONE_LEFT, *(f"{text!r:.80}: {why}" for text, why in left_out)])
    text = _text_of(prompts, lines)
    proposal = replace(proposal, prompts=prompts, text=text, id=draft.id_of(lesson.id, text))
    return _stored(vault, proposal, left_out)


def _stored(vault: Vault, proposal: Proposal, left_out: Sequence[tuple[str, str]]) -> Made | str:
    if redact(proposal.text) != proposal.text:
        return gate.SECRET
    try:
        proposal = review.checked(proposal)
        answer = review.propose(vault, proposal)
    except ProposalsFullError:
        return runs.FULL
    except CheckError as error:
        return error.message
    if answer["status"] != review.WAITING:
        return gate.REJECTED
    return run.made_of(proposal, left_out=left_out)


def _new_prompts(
    texts: Iterable[str], lesson: WholeEntry
) -> tuple[tuple[str, ...], list[tuple[str, str]]]:
    """Return the prompts that a lesson has not, and the others with the reason."""
    hashes = {*map(hash_of_prompt, (*lesson.prompts, *lesson.fires_on, *lesson.silent_on))}
    new, left_out = list[str](), list[tuple[str, str]]()
    for text in dict.fromkeys(grounding.squeezed(str(each)) for each in texts):
        text = text[: grounding.MAX_PROMPT_CHARS]
        why = HAS if hash_of_prompt(text) in hashes else gate.why_no_prompt(text)
        left_out += [(text, why)] if why and text else []
        new += [text] if text and not why else []
        hashes.add(hash_of_prompt(text))
    return tuple(new), left_out


def _new_lines(
    texts: Iterable[str], lesson: WholeEntry
) -> tuple[tuple[str, ...], list[tuple[str, str]]]:
    old_lines = {*map(failure.normalise, (*lesson.fires_on_error, *lesson.silent_on_error))}
    lines = dict.fromkeys(grounding.squeezed(str(each)) for each in texts)
    new = [each for each in lines if each and failure.normalise(each) not in old_lines]
    good = [each for each in new if failure.is_specific(each) and len(each) <= gate.MAX_LINE_CHARS]
    return tuple(good[:MAX_LINES]), [(each, COMMON) for each in new if each not in good]


def _taken(caller: LearnCaller, proposal: Proposal) -> frozenset[str]:
    """Return the prompts at which another lesson comes whole; none where there is no index."""
    try:
        outlook = caller.lessons.outlook(proposal)
    except VaultError:
        return frozenset()
    return frozenset(each.prompt for each in outlook if each.other)


def _text_of(prompts: Sequence[str], lines: Sequence[str]) -> str:
    """Return the text of a proposal that only adds prompts or lines, for its reviewer."""
    text_lines = ["It answers these prompts from now on:", *(f"- {each}" for each in prompts)]
    text_lines += ["", "It comes when a command prints:"] if lines else []
    return "\n".join([*text_lines, *(f"- `{each}`" for each in lines)])


def by_model(
    vault: Vault, caller: LearnCaller, most: int = MOST, *, dry_run: bool = False
) -> Tended:
    """Have the model of the settings write prompts for lessons that have none.

    With `dry_run` nothing is sent, and `text` is what would be. Raises VaultError without a model.
    """
    name = vault.config[LearnTable].model
    if not name:
        hint = "type `/lessons:tend` to your agent, or `lessons config set learn.model claude`"
        raise VaultError("no model writes prompts: learn.model is not set", f"use one: {hint}")
    bare = untended(vault, most).lessons
    groups = [bare[start : start + AT_ONCE] for start in range(0, len(bare), AT_ONCE)]
    system = (_PROMPTS / "tend.md").read_text("utf-8")
    calls = tuple(_planned(system, group) for group in groups)
    host, leaves = stages.receiver(vault.config)
    plan = CallPlan(name, host, leaves, calls)
    if dry_run or not groups:
        return Tended(sends=str(plan), text="\n\n".join(call.text for call in calls))
    model = llm.open_model(name, vault.config)
    caller.note(f"sending {plan}")
    answers, trouble, hint = list[Mapping[str, Any]](), "", ""
    try:
        for number, group in enumerate(groups):
            caller.progress("writing prompts", number * AT_ONCE, len(bare))
            answer = stages.asked(model, "prompts", system, _handed(group), _KEYS, caller.note)
            ids = {each.id for each in group}
            answers += [each for each in answer["lessons"] if each["lesson"] in ids]
    except ModelCallError as error:  # what came before is kept
        trouble, hint = redact(error.message), error.hint
    tended = propose(vault, caller, answers[:MOST], model.name)
    settings = vault.config[LearnTable]
    return replace(
        tended,
        sends=str(plan),
        usage=cost.of(model, settings),
        no_cost=cost.missing(model, settings),
        trouble=trouble,
        hint=hint,
    )


def _planned(system: str, group: Sequence[Bare]) -> Planned:
    text = f"{system}\n\n{backend.with_schema(_handed(group), _KEYS)}"
    return Planned("prompts", len(text), text)


def _handed(group: Sequence[Bare]) -> str:
    return "\n\n".join([events.MARKER, shown(group)])


def shown(lessons: Iterable[Bare], defused: Callable[[str], str] = str) -> str:
    """Return lessons as whoever writes prompts reads them."""
    return "\n\n".join(
        f"### {defused(each.id)}\n{defused(each.title)}\n\n{defused(each.text)}" for each in lessons
    )
