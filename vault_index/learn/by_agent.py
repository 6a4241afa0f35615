"""Entries of the agent at hand: its context has the session, and its entries pass the same gate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from vault_index.errors import VaultError
from vault_index.features import LearnTable
from vault_index.learn import agent_entries, gate, gather, grounding, runs, stages
from vault_index.learn.material import LearnedLesson
from vault_index.learn.run import (
    AGENT,
    MAX_AT_ONCE,
    MAX_TITLE_CHARS,
    Dropped,
    LearnCaller,
    Proposed,
    SessionText,
    context_of,
    prepare,
    propose_entries,
    request_of,
    status_of,
)
from vault_index.lesson.passages import text_of
from vault_index.proposals import draft, review
from vault_index.vault import Vault

_OTHER_NAMES = {"what_to_do": "summary", "failing_lines": "fires_on_error", "files": "applies_to"}
MATERIAL_TOKENS = 7_000  # of a session that an agent reads


def propose(
    vault: Vault,
    caller: LearnCaller,
    entries: Sequence[Mapping[str, Any]],
    session: str = "",
    folder: str = "",
) -> Proposed:
    """Make proposals of the entries of an agent in a folder: see `api.learn.propose`."""
    if len(entries) > MAX_AT_ONCE:
        why = f"{len(entries)} entries are more than a person reviews"
        raise VaultError(why, f"choose the {MAX_AT_ONCE} best of them")
    material = gather.at_hand(vault, session, Path(folder or vault.root))
    work = prepare(vault, caller, material, by=AGENT)
    answer = Proposed(material.session, bool(material.moments))
    if not entries:
        waiting = [(each.id, each.title) for each in review.waiting(vault)]
        categories = request_of(work.safe, caller).categories
        return replace(answer, waiting=waiting, categories=categories)
    context = context_of(work)
    proposals, refused = propose_entries(work, context, list(map(_lesson_of, entries)))
    dropped = [_dropped(each, why, context) for each, why in refused]
    run = replace(
        work.run(runs.AGENT),
        at=datetime.now(UTC).isoformat(timespec="microseconds"),
        status=status_of(proposals),
        proposals=tuple(each.id for each in proposals),
        dropped=dict(Counter(why for _, why in refused)),
    )
    runs.end(vault.config, run)
    unknown = tuple(agent_entries.unknown(entries))
    return replace(answer, proposals=proposals, dropped=dropped, unknown=unknown)


def _lesson_of(values: Mapping[str, Any]) -> LearnedLesson:
    """Return the lesson of an entry: what to do comes first, then why."""
    names = (name for name in agent_entries.FIELDS if name in values)
    named = {_OTHER_NAMES.get(name, name): values[name] for name in names}
    first, _, rest = str(named.get("summary", "")).strip().partition("\n\n")
    explained = "\n\n".join(filter(None, (rest, str(named.get("cause", "")))))
    return stages.entry_of({**named, "summary": first, "explanation": explained})


def _dropped(entry: LearnedLesson, reason: str, context: gate.Context) -> Dropped:
    dropped = Dropped(entry.title[:MAX_TITLE_CHARS], reason)
    if reason == gate.NO_QUOTE:
        passages = (grounding.nearest_passage(each, context.texts) for each in entry.quotes)
        return replace(dropped, passages=[each for each in passages if each])
    if reason in (gate.LESSON, gate.GIVEN):
        with suppress(VaultError):
            drafted = draft.create(entry.title, text_of(entry.parts))
            return replace(dropped, lesson=context.lessons.compare(drafted).nearest)
    return dropped


def material_of(vault: Vault, caller: LearnCaller, session: str, folder: str) -> SessionText:
    """Return a session that is kept as the text that a model would be sent."""
    material = gather.session(vault, session, Path(folder))
    settings = replace(vault.config[LearnTable], tokens=MATERIAL_TOKENS, stages=1)
    work = prepare(vault, caller, material, by=AGENT)
    request = request_of(work.safe, caller)
    text = stages.instructed(work.safe, vault.config.with_tables(settings), request)
    return SessionText(material.session, text)
