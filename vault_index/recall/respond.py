"""An agent event -> a context block: a prompt is searched for, a session start looks at the project.

A call of a tool gets at most one lesson. At a failed command its decision comes first, of the lessons
that the agent does not have; it comes once more at the second same failure, said as such. At an edit it
is one line: a lesson names files in `applies_to`, globs of a path in the repository that has the file, of
a part of that path or of a name, as in `[journal] exclude`. An agent of a session gets a lesson once,
until its context is emptied. A subagent has a context of its own: it does not know what
the main agent was given.

A hook has no time to index much. It indexes a few changed files itself; more files, and their
authors, are left to the watcher or, without one, to a `lessons index` in the background.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from vault_index import features, git, state
from vault_index.check.redact import redact
from vault_index.errors import WriteError
from vault_index.hotpath import hook_event, log
from vault_index.hotpath.hook_event import Event
from vault_index.index.rows import MAX_TAUGHT_CHARS
from vault_index.recall import allowed, block, select, signpost, silence
from vault_index.retrieval import above, failures
from vault_index.retrieval.hit import ContextBlock, Hit
from vault_index.store import delivery, filters
from vault_index.store.delivery import LINE, NEAR, SKILL, WHOLE, Delivery, Given, HookReply
from vault_index.store.reader import Reader, once
from vault_index.text import failure
from vault_index.text.failure import Failure
from vault_index.text.globs import matcher
from vault_index.vault import Vault

COMPACT = "compact"  # a session that restarts after compaction
TIMES = 2  # that a session gets a lesson for the same failure
AGAIN = "The same failure as before; this was shown for it already:"
_LOOKED_AT = 5  # lessons for a failure: the agent has some, and may not get others
# the events that are answered while there is no index
WITHOUT_INDEX = (hook_event.PROMPT, hook_event.START, hook_event.ASKED, hook_event.SUBAGENT)
_WITH_RECEIPT = (hook_event.PROMPT, hook_event.FAILURE, hook_event.EDIT)


def respond(
    vault: Vault,
    event: Event,
    *,
    by: str,
    ms: float,
    text_only: bool = False,
    from_files: bool = False,
    until: float = float("inf"),
) -> dict[str, Any] | None:
    """Search for an event and record the injection; None for silence.

    `ms` is how long the hook has taken so far; `from_files` asks no index. After `until`, by the
    monotonic clock, the hook has gone on without this answer, so nothing is recorded. The second of two
    hooks of one event is silent. Raises VaultError.
    """
    began = time.monotonic()
    name, agent = event.hook_event_name, event.agent_id
    reply, receipt, line = None, "", ""
    if name == hook_event.START and event.source not in vault.config.session_sources:
        if event.is_emptied:
            with suppress(WriteError):
                delivery.forget_given(vault.config.home, vault.root, event.session_id, agent)
        return None
    if name == hook_event.SUBAGENT:
        line = "" if event.is_fork else signpost.line(vault, event)
    else:
        injection = _injection(vault, event, text_only, from_files)
        if time.monotonic() > until or (name == hook_event.EDIT and not injection.text):
            return None
        record = _record(event, injection, ms + 1000 * (time.monotonic() - began), by)
        reply, given = HookReply(injection.text, record), [*injection.hits, *injection.skills]
        if name in _WITH_RECEIPT and vault.config.receipt and given and injection.text:
            receipt = block.receipt(given)
    try:
        with state.writing(vault.config.home, delivery.HOOK_SECONDS):
            reply = _claim_and_record(vault, event, reply)
    except WriteError as error:  # the agent gets it all the same, and perhaps twice
        log.log({"hook_event_name": name, "vault": str(vault.root)}, error.message, began)
        reply = None if name == hook_event.ASKED else reply
    if reply and line:
        reply = replace(reply, text=block.with_signpost(reply.text, line))
    return _answer(vault, event, reply, receipt) if reply else None


def _claim_and_record(vault: Vault, event: Event, reply: HookReply | None) -> HookReply | None:
    """Record the reply to an event, and return it; None if another hook answers, or another event."""
    name, home, root = event.hook_event_name, vault.config.home, vault.root
    if event.session_id and not delivery.claim(home, root, event):
        return None
    if name == hook_event.SUBAGENT and event.session_id:
        if event.is_fork:
            delivery.inherit(home, root, event)
        reply = delivery.take_note(home, root, event)
        if reply is None:  # nothing was searched for it
            return HookReply("", Delivery(event=name))
    if reply and name == hook_event.ASKED:
        delivery.leave_note(home, root, event, reply)
        return None
    if reply:
        if event.is_emptied:
            delivery.forget_given(home, root, event.session_id, event.agent_id)
        new = replace(reply.record, event=name, session=event.session_id, agent=event.agent_id)
        delivery.record(home, root, new)
        for feature in features.FEATURES:
            feature.at_project(vault, Path(event.cwd))
    return reply


def _answer(vault: Vault, event: Event, reply: HookReply, receipt: str) -> dict[str, Any] | None:
    """Return the answer in Claude Code's form; the receipt is for the person alone."""
    if event.hook_event_name == hook_event.START and event.shows_lines:
        lines = (
            feature.nudge(vault, Path(event.cwd), event.session_id) for feature in features.FEATURES
        )
        with suppress(WriteError):  # the next session has it
            receipt = next(filter(None, lines), "")
    if not reply.text:
        return {"systemMessage": receipt} if receipt else None
    name = hook_event.ASKED if event.hook_event_name == hook_event.EDIT else event.hook_event_name
    output = {"hookEventName": name, "additionalContext": reply.text}
    return {"hookSpecificOutput": output} | ({"systemMessage": receipt} if receipt else {})


def _given(hit: Hit, form: str, score: float) -> Given:
    is_taught = bool(hit.taught) and form != NEAR
    return Given(hit.lesson_id, round(score, 4), form, is_taught, hit.by_words)


def _record(event: Event, injection: ContextBlock, ms: float, by: str) -> Delivery:
    given = [_given(hit, LINE if hit.as_line else WHOLE, hit.reason) for hit in injection.hits]
    given += [_given(hit, SKILL, hit.score) for hit in injection.skills]
    if (near := injection.near) and not injection.text:
        given.append(_given(near, NEAR, near.reason))
    return Delivery(
        event=event.hook_event_name,
        prompt=delivery.key_of(injection.about or event.prompt),
        said=injection.said,
        floor=None if injection.floor is None else round(injection.floor, 4),
        ms=round(ms, 1),
        by=by,
        silent="" if injection.text else injection.silent,
        given=tuple(given),
    )


def _injection(vault: Vault, event: Event, text_only: bool, from_files: bool) -> ContextBlock:
    name, home, session = event.hook_event_name, vault.config.home, event.session_id
    if name == hook_event.FAILURE:
        return _at_failure(vault, event, text_only)
    if name == hook_event.EDIT:
        return _at_edit(vault, event)
    is_new = name == hook_event.ASKED and not event.is_fork  # it was given nothing yet
    is_new = is_new or (event.is_emptied and event.source != COMPACT)
    received = ([], []) if is_new else delivery.received(home, vault.root, session, event.agent_id)
    given, pointed = received
    project = Path(event.cwd)
    if name == hook_event.START:
        line = signpost.line(vault, event)
        if from_files:
            return select.without_index(vault.config, project, session, line)
        if event.source == COMPACT:
            return select.after_compaction(vault, given, line)
        return select.for_session(
            vault, project, session, text_only=text_only, given=given, line=line
        )
    if from_files:
        return select.from_files(vault, event.prompt, given)
    how = {"text_only": text_only, "leads_on": name == hook_event.PROMPT}
    return select.for_prompt(
        vault, event.prompt, project=project, given=given, pointed=pointed, **how
    )


def _at_failure(vault: Vault, event: Event, text_only: bool) -> ContextBlock:
    """Return the injection for the failure that an event reports."""
    home, root = vault.config.home, vault.root
    failed = failure.read(event.command, event.error)
    earlier = delivery.told_about(home, root, event, delivery.key_of(failed.signature))
    given, pointed = delivery.received(home, root, event.session_id, event.agent_id)
    received = Received(given, pointed, earlier)
    injection = for_failure(vault, failed, received=received, text_only=text_only)
    prompt = redact(failed.lines[0] if failed.lines else failed.command)[:MAX_TAUGHT_CHARS]
    return replace(injection, about=failed.signature, said=prompt)


@dataclass(frozen=True, slots=True)
class Received:
    """The lessons of an agent when a command fails: `given` whole, `pointed` at by a line.

    `earlier` are those that it got at the same failure, each time.
    """

    given: Collection[str] = ()
    pointed: Collection[str] = ()
    earlier: Sequence[Collection[str]] = ()

    def is_again(self, lesson: str) -> bool:
        return any(lesson in each for each in self.earlier)

    def refuses(self, hit: Hit) -> bool:
        if hit.as_line:
            return hit.lesson_id in self.given or hit.lesson_id in self.pointed
        return hit.lesson_id in self.given and not self.is_again(hit.lesson_id)

    def of(self, origin: above.Above) -> Received:
        earlier = [origin.own_ids(each) for each in self.earlier]
        return Received(origin.own_ids(self.given), origin.own_ids(self.pointed), earlier)


def for_failure(
    vault: Vault, failed: Failure, *, received: Received = Received(), text_only: bool = False
) -> ContextBlock:
    """Return the injection for a failure: the strongest lesson that is new to the agent.

    At the same failure a lesson comes once more, said as such; after that nothing does.
    """
    floors: dict[str, float | None] = {}

    def search(name: str, vault: Vault, received: Received) -> ContextBlock:
        found = _strongest(vault, failed, received, text_only)
        floors[name] = found.floor
        return found

    nearest = search("", vault, received)
    hits = above.joined(
        vault, nearest, lambda origin, other: search(origin.name, other, received.of(origin))
    )
    if not hits:
        return replace(nearest, others=())
    # the strongest; of equal ones the nearer
    first = max(hits, key=lambda hit: (not hit.as_line, hit.score))
    least = floors.get(first.lesson_id.partition(":")[0], floors[""])
    if len(received.earlier) >= TIMES:
        return ContextBlock("", floor=least, silent="given twice already", near=first)
    before = AGAIN if received.is_again(first.lesson_id) else ""
    failed_lines = "\n".join(failed.lines)
    text = block.at_failure(first, vault.config.prompt_tokens, before, failed_lines)
    if not text:
        return ContextBlock("", floor=least, silent=silence.NO_ROOM, near=first)
    return ContextBlock(text, [first], floor=least)


def _strongest(vault: Vault, failed: Failure, received: Received, text_only: bool) -> ContextBlock:
    """Return the strongest lesson of a vault that may come at a failure, or why none comes.

    One that may not is passed over: the next look is as if the vault did not have it.
    """
    passed: dict[str, str] = {}  # lessons, and why they may not come
    kept_out: list[Hit] = []
    near: Hit | None = None
    for _ in range(_LOOKED_AT):
        answer = failures.find(vault, failed, 1, text_only=text_only, passed=passed)
        least = answer.floors.line if vault.config.pointers else answer.floors.whole
        kept_out += answer.kept_out
        found = next(iter([*answer.hits, *answer.kept_out]), None)
        if found is None:
            break
        hit, why = _allowed(vault, replace(found, as_line=not answer.is_whole))
        near = near or hit
        if not (answer.taught or answer.strength > least):
            break
        why = why or answer.why_silent
        if hit and received.refuses(hit):
            why, kept_out = silence.ALREADY_GIVEN, [*kept_out, hit]
        if hit and not why:
            hit = select.shown(vault, hit, failed.lines)
            return ContextBlock("", [hit], floor=least, others=kept_out)
        passed[found.lesson_id] = why
    silent = next(iter(passed.values()), answer.why_silent or silence.NOTHING)
    return ContextBlock("", floor=least, silent=silent, near=near, others=kept_out)


def _allowed(vault: Vault, hit: Hit) -> tuple[Hit | None, str]:
    """Return the newest lesson with a hit's content, or the reason for which no agent may get it."""
    if not allowed.only_trusted(vault, [hit]):
        return None, silence.UNTRUSTED
    right = allowed.newest(vault, allowed.only_right(vault, [hit]))
    return (right[0], "") if right else (None, silence.LEFT_OUT)


def _path_of(event: Event) -> str:
    file = Path(event.cwd, event.file)
    folder = Path(os.path.realpath(file.parent))
    top = git.top_of(folder) or Path(os.path.realpath(event.cwd))
    return Path(os.path.relpath(folder / file.name, top)).as_posix()


def _at_edit(vault: Vault, event: Event) -> ContextBlock:
    """Return the injection for an edit."""
    path, home, root = _path_of(event), vault.config.home, vault.root
    key = delivery.key_of(path)
    if path.startswith("../") or delivery.told_about(home, root, event, key):
        return ContextBlock("", silent=silence.NOTHING)
    given, _ = delivery.received(home, root, event.session_id, event.agent_id)
    nearest = ContextBlock("", _hits_for(vault, path))
    hits = above.joined(vault, nearest, lambda _, other: ContextBlock("", _hits_for(other, path)))
    first = next((hit for hit in hits if hit.lesson_id not in given), None)
    if first is None:
        return ContextBlock("", silent=silence.ALREADY_GIVEN if hits else silence.NOTHING)
    prompt = redact(path)[:MAX_TAUGHT_CHARS]
    return ContextBlock(block.at_edit(first), [first], about=path, said=prompt)


def _hits_for(vault: Vault, path: str) -> list[Hit]:
    lessons = _lessons_for(vault, path)
    hits = [replace(hit, score=1.0, cosine=1.0) for hit in select.of_ids(vault, lessons)]
    hits.sort(key=lambda hit: lessons.index(hit.lesson_id))
    return allowed.newest(vault, hits)


def _lessons_for(vault: Vault, path: str) -> list[str]:
    """Return the lessons for a path, the most specific glob first."""
    globs = _globs(vault.open_index().store)
    return list(dict.fromkeys(lesson for lesson, _, is_for in globs if is_for(path)))


@once
def _globs(store: Reader) -> list[tuple[str, str, Callable[..., bool]]]:
    rows = store.rows(("lesson_id", "applies_to"), filters.all_of(filters.WHOLE, filters.APPLIES))
    globs = [
        (row["lesson_id"], glob, matcher([glob[:MAX_TAUGHT_CHARS]]))
        for row in rows
        for glob in row["applies_to"]
    ]
    return sorted(globs, key=lambda each: (-len(each[1]), each[0]))
