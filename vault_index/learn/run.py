"""Learn from a session, from commits or files: the story from the material to proposals that wait.

material -> significance -> entries, by a model or by rule -> sift -> proposals
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vault_index import llm
from vault_index.errors import (
    ModelAwayError,
    ModelBudgetError,
    ModelCallError,
    ModelRefusedError,
    VaultError,
    WriteError,
)
from vault_index.files.private import alone, make_folder
from vault_index.hotpath import index_files
from vault_index.journal import archive, backlog, expiry
from vault_index.journal.journal import Journal
from vault_index.journal.redact import redact
from vault_index.learn import (
    by_rule,
    evidence,
    excerpt,
    material_of,
    record,
    sift,
    significance,
    stages,
)
from vault_index.learn.material import COMMITS, FILES, SESSION, Entry, Material
from vault_index.learn.record import Run
from vault_index.learn.significance import Significance
from vault_index.learn.stages import Plan
from vault_index.llm.backend import Usage
from vault_index.proposals import review

if TYPE_CHECKING:
    from vault_index.config import Config
    from vault_index.llm import Model
    from vault_index.vault import Vault

SCOPES = (SESSION, COMMITS, FILES)
LAST = "last"  # the latest session
RULES = "rules"  # what a run is by, without a model
MANY = f"more than may be proposed of a session (learn.most, at most {stages.MOST_ENTRIES})"
FULL = record.FULL
_FULL = {
    "status": FULL,
    "trouble": f"{review.MAX_WAITING} proposals wait already, as many as may",
    "hint": "decide some of them with `lessons review`, then do it again",
}
MAX_GIVEN = 50  # lessons that a session was given, and whose texts are compared
_STATUS = {
    ModelAwayError: record.AWAY,
    ModelRefusedError: record.REFUSED,
    ModelBudgetError: record.BUDGET,
}


@dataclass(frozen=True, slots=True)
class Caller:
    """The questions of `learn` to its caller."""

    note: Callable[[str], None]  # takes a line for people
    progress: Callable[[str, int, int], None]  # what is being done, how much is done, of how much
    ask: Callable[[str, Mapping[str, Any]], Any]  # puts a question of `api`, by its name


@dataclass(frozen=True, slots=True)
class _Work:
    """The knowledge of a run before it asks anybody. `seen` is the material without orders."""

    vault: Vault
    caller: Caller
    material: Material
    seen: Material
    orders: tuple[str, ...]
    worth: Significance
    model: Model | None
    stages: tuple[str, ...]
    plan: Plan


def learn(
    vault: Vault,
    caller: Caller,
    scope: str,
    target: str | Sequence[str],
    *,
    folder: str = "",
    force: bool = False,
    dry_run: bool = False,
    asked_by: str = record.PERSON,
) -> dict[str, Any]:
    """Make proposals of what was learned. `folder` is where the user works.

    Return `status`, one of `record`'s; the `significance` with its addends; the `plan` of what is
    sent; `proposals` as [id, title, status, changes]; `dropped` as [title, reason]; the `usage`, and
    `trouble` where a model failed. A person goes on whatever the significance is, `force` also where
    the same was learned before; nobody asks twice about a session. With `dry_run` nothing is sent or
    written. Raises VaultError.
    """
    material = _material(vault, scope, target, folder)
    return learn_from(vault, caller, material, force=force, dry_run=dry_run, asked_by=asked_by)


def learn_from(
    vault: Vault,
    caller: Caller,
    material: Material,
    *,
    force: bool = False,
    dry_run: bool = False,
    asked_by: str = record.PERSON,
) -> dict[str, Any]:
    """Make proposals of a material: see `learn`."""
    work = _begun(vault, caller, material)
    run = _run_of(work, asked_by)
    answer = _answer(work, "")
    if dry_run:
        return {**answer, "status": record.DRY}
    if asked_by != record.PERSON and run.points < vault.config.learn_significance:
        return {**answer, "status": record.NOT_WORTH}
    if not force and _is_learned(run, vault.config):
        return {**answer, "status": record.LEARNED}
    if went := review.expire(vault):
        caller.note(f"note: {went}")
    if len(review.waiting(vault)) >= review.MAX_WAITING:
        return {**answer, **_FULL}
    begun = record.begin(vault.config, run)
    if begun is None:
        return {**answer, "status": record.RUNNING}
    run = begun
    try:
        run, answer = _learned(work, run)
    except BaseException:
        record.end(vault.config, replace(run, status=record.STOPPED, usage=_usage(work)))
        raise
    record.end(vault.config, run)
    return answer


def _begun(vault: Vault, caller: Caller, material: Material) -> _Work:
    config = vault.config
    worth = significance.of(material, config.learn_ignored)
    model = llm.open_model(config.learn_model, config) if config.learn_model else None
    seen, orders = material, tuple[str, ...]()
    if model:
        chars = config.learn_tokens * excerpt.CHARS_A_TOKEN
        seen, orders = excerpt.without_orders(material, chars)
    names = stages.names(config, model) if model else ()
    calls = tuple(stages.plan(seen, config, names)) if model else ()
    planned = stages.estimate(config, calls) if model else stages.Plan()
    return _Work(vault, caller, material, seen, orders, worth, model, names, planned)


def _material(vault: Vault, scope: str, target: str | Sequence[str], folder: str) -> Material:
    if scope not in SCOPES:
        raise VaultError(f"there is no scope {scope!r}", f"choose one of {', '.join(SCOPES)}")
    place = Path(folder) if folder else None
    if scope == FILES:
        paths = target.splitlines() if isinstance(target, str) else list(target)
        named = [path.strip() for path in paths if path.strip()]
        return material_of.files(vault, named, place)
    name = target if isinstance(target, str) else " ".join(target)
    if scope == COMMITS:
        return material_of.commits(vault, name or "HEAD", place)
    return material_of.session(vault, name or LAST, place)


def _is_learned(run: Run, config: Config) -> bool:
    if run.asked_by == record.NOBODY and record.was_analysed(config, run.vault, run.session):
        return True
    return record.is_learned(config, run)


def _run_of(work: _Work, asked_by: str) -> Run:
    material = work.material
    return Run(
        vault=str(work.vault.root),
        scope=material.scope,
        target=material.target,
        digest=material.digest,
        by=work.model.name if work.model else RULES,
        session=material.session,
        points=work.worth.points,
        asked_by=asked_by,
    )


def _learned(work: _Work, run: Run) -> tuple[Run, dict[str, Any]]:
    """Return the run with what came of it, and the answer."""
    if not any(text.strip() for text in work.material.texts):
        return replace(run, status=record.NOTHING), _answer(work, "") | {"status": record.NOTHING}
    try:
        entries = _entries(work)
    except ModelCallError as error:
        status = _STATUS.get(type(error), record.FAILED)
        usage = _usage(work)
        trouble = redact(error.message)
        run = replace(run, status=status, trouble=trouble, usage=usage)
        answer = _answer(work, trouble) | {"hint": error.hint, "status": status}
        return run, {**answer, "usage": dict(usage)}
    proposals, dropped = _proposed(work, entries)
    kept = [each for each in proposals if each["status"] == review.WAITING]
    status = record.PROPOSED if kept else record.NOTHING
    reasons = Counter(each["reason"] for each in dropped)
    full = _FULL if reasons[FULL] else {}
    status = full.get("status", status)
    usage = _usage(work)
    run = replace(
        run,
        status=status,
        usage=usage,
        proposals=tuple(each["id"] for each in kept),
        dropped=dict(reasons),
    )
    answer = {**_answer(work, ""), "status": status, "proposals": kept, "dropped": dropped}
    return run, {**answer, **full, "usage": dict(usage)}


def _entries(work: _Work) -> list[Entry]:
    """Return what a model, or rules without one, made of the material. Raises ModelCallError."""
    if work.model is None:
        return by_rule.entries(work.material)
    work.caller.note(f"sending {work.plan}")

    def progress(done: int, of: int) -> None:
        work.caller.progress("analysing", done, of)

    return stages.run(work.model, work.seen, work.vault.config, work.stages, progress)


def _proposed(
    work: _Work, entries: list[Entry]
) -> tuple[list[dict[str, Any]], list[dict[str, str]]]:
    """Keep what passes the sift, the surest first; return proposals, and what was dropped and why."""
    around = _around(work)
    kept: list[dict[str, Any]] = []
    dropped: list[dict[str, str]] = []

    def drop(entry: Entry, reason: str) -> None:
        dropped.append({"title": entry.title[:200], "reason": reason})

    for entry in sorted(entries, key=lambda entry: -entry.confidence):
        if len(kept) >= stages.most(work.vault.config):
            drop(entry, MANY)
            continue
        sifted = sift.sift(entry, around)
        if isinstance(sifted, str):
            drop(entry, sifted)
            continue
        proposal = sifted.proposal
        try:
            made = review.propose(work.vault, proposal, sifted.compared)
        except WriteError:
            raise
        except VaultError as error:
            drop(entry, FULL if "wait already" in error.message else error.message)
            continue
        if made["status"] != review.WAITING:
            drop(entry, _REASONS.get(made["status"], made["status"]))
            continue
        shown = {name: made[name] for name in ("id", "title", "status", "near", "findings")}
        kept.append({**shown, "changes": proposal.changes, "is_draft": proposal.is_draft})
        around = replace(around, waiting=(*around.waiting, proposal))
    return kept, dropped


_REASONS = {
    review.WAITS: sift.WAITS,
    review.REJECTED: sift.REJECTED,
    review.IS_LESSON: sift.LESSON,
}


def _around(work: _Work) -> sift.Around:
    ask = work.caller.ask
    given = {}
    for id in work.material.injected[:MAX_GIVEN]:
        try:
            given[id] = str(ask("lesson.show", {"name": id})["entry"]["text"])
        except VaultError:  # it was deleted since
            continue
    return sift.Around(
        material=work.material,
        texts=evidence.texts_of(work.material),
        known=sift.words_of(work.material),
        given=given,
        orders=work.orders,
        waiting=tuple(review.waiting(work.vault)),
        ask=ask,
        by=work.model.name if work.model else RULES,
        why=_why(work.worth),
    )


def _why(worth: Significance) -> str:
    """Return the significance in a line: its points, and what they are for."""
    addends = ", ".join(f"{each.name} +{each.points}" for each in worth.addends)
    return f"{worth.points} points: {addends}" if addends else f"{worth.points} points"


def _usage(work: _Work) -> dict[str, Any]:
    return asdict(work.model.usage if work.model else Usage())


def _answer(work: _Work, trouble: str) -> dict[str, Any]:
    return {
        "status": "",
        "scope": work.material.scope,
        "target": work.material.target,
        "significance": work.worth.as_json(),
        "threshold": work.vault.config.learn_significance,
        "plan": work.plan.as_json(),
        "sends": str(work.plan),
        "proposals": [],
        "dropped": [],
        "usage": _usage(work),
        "trouble": trouble,
        "hint": "",
    }


# Learn from sessions when they end: `[learn] auto = true`, in the process that takes transcripts
# in.
#
# The hook of a session's end notes its transcript, see `hotpath.spool`. Each session is analysed
# once,
# however often it is taken up again, and nothing of it is in the agent's way: errors are in a log,
# and
# `lessons status` names them.

LOCK = "at_end.lock"
PATIENCE_DAYS = 2  # that a session waits for a model that is away


@dataclass(frozen=True, slots=True)
class Ended:
    """A session that ended, and the vault that may learn from it."""

    session: str
    root: str


Learn = Callable[[str, dict[str, Any]], dict[str, Any]]  # a vault's root, the command's values


def run_ended(journal: Journal, learn: Learn, say: Callable[[str], None]) -> int:
    """Learn from the sessions that ended; return of how many. `learn` puts the command to a vault.

    Without `[learn] auto` their notes are removed. Nothing happens while another process does it.
    Raises WriteError.
    """
    if not journal.config.learn_auto:
        for note in backlog.ended(journal):
            backlog.remove(journal, note)
        return 0
    done = 0
    tried: set[str] = set()
    folder = record.folder_of(journal.config)
    make_folder(folder)
    with alone(folder / LOCK) as is_alone:
        while is_alone:
            notes = [note for note in backlog.ended(journal) if note.name not in tried]
            if not notes:
                break
            oldest = expiry.oldest(journal.config.home, PATIENCE_DAYS)
            for note in notes:
                tried.add(note.name)
                ended = _ended(journal, note)
                status = _learn_from(ended, learn, say) if ended else ""
                done += bool(status)
                is_old = oldest is not None and note.at < oldest.timestamp()
                if status not in record.LATER or is_old:
                    backlog.remove(journal, note)
    return done


def _learn_from(ended: Ended, learn: Learn, say: Callable[[str], None]) -> str:
    """Return the status of what was learned from a session; what went wrong is said."""
    values = {"scope": SESSION, "target": ended.session, "asked_by": record.NOBODY}
    try:
        answer = learn(ended.root, values)
    except VaultError as error:
        say(f"error: learning from session {ended.session[:8]}: {error.message}")
        return record.FAILED
    except Exception as error:  # noqa: BLE001  # a bug of ours; others still get their turn
        say(f"error: learning from session {ended.session[:8]}: {type(error).__name__}: {error}")
        return record.FAILED
    if answer["trouble"]:
        say(f"error: learning from session {ended.session[:8]}: {answer['trouble']}")
    return str(answer["status"])


def _ended(journal: Journal, note: backlog.Note) -> Ended | None:
    """Return the session of a note; None if the journal has none, or no vault is for its folder.

    The sessions of this product, of subagents, and forgotten ones are not there.
    """
    head = archive.catalog(journal.folder, note.transcript).by_transcript.get(str(note.transcript))
    if head is None:
        return None
    try:
        session = archive.read(head.file)
        root = (
            index_files.find(None, session.folder, os.environ)
            if session and session.folder
            else None
        )
    except (VaultError, ValueError, OSError):
        return None
    if session is None or session.parent or root is None:
        return None
    return Ended(session.id, root)
