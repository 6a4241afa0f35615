"""The commands for proposals: learn, propose, and review with list, accept and reject."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from vault_index import api
from vault_index.entrypoints.cli import context, options, output, reviewing
from vault_index.entrypoints.cli.output import from_here
from vault_index.entrypoints.wording import proposals, spent
from vault_index.errors import VaultError
from vault_index.text.words import count

if TYPE_CHECKING:
    from vault_index.learn.run import Learned
    from vault_index.learn.tend import Tended

MAX_TENDED = 20  # lessons of a turn
AGAIN = "learned from already; to repeat it: `lessons learn --again`"
NO_MODEL = (
    "without a model only typed corrections become drafts; your agent finds more:"
    " type `/lessons:learn last` to it (`/lessons-learn last` in opencode and Cursor, with a $ in"
    " Codex), or name a model: `lessons config set learn.model claude`"
)


@options.command("learn", "lessons learn --session last --why --dry-run")
@click.option("--session", metavar="ID", help="A session: its id or its beginning. [default: last]")
@click.option("--commit", metavar="REV|A..B", help="Commits.")
@click.option("--files", multiple=True, metavar="PATH", help="A file as it is; several times.")
@options.flag("--memory", "What your agent noted for itself on this project.")
@options.flag("--why", "Print what makes it worth it, and what was dropped.")
@options.flag("--again", "Learn again from the same material.")
@options.flag("--dry-run", "Only print how much would be sent, and to whom.")
@options.flag("--show", "With --dry-run: print the very text.")
@click.option("--tokens", type=click.IntRange(1), metavar="N", help="The budget. [default: 12000]")
def learn_command(
    session: str | None,
    commit: str | None,
    files: tuple[str, ...],
    memory: bool,
    why: bool,
    again: bool,
    dry_run: bool,
    show: bool,
    tokens: int | None,
) -> options.Answers:
    """Propose lessons from a session, commits, files or notes.

    The model in your settings ([learn] model) analyses what happened; without one, typed corrections
    become drafts. Nothing is a lesson before you accept it: see `lessons review`.
    """
    if sum(map(bool, (session, commit, files, memory))) > 1:
        raise click.UsageError("choose one of --session, --commit, --files and --memory")
    if show and not dry_run:
        raise click.UsageError("--show prints what would be sent: add --dry-run")
    values: dict[str, Any] = {"scope": "session", "target": session or "last"}
    if commit:
        values = {"scope": "commit", "target": commit}
    elif memory:
        values = {"scope": "memory", "target": ""}
    elif files:
        values = {"scope": "files", "target": [str(Path(file).absolute()) for file in files]}
    values |= {"folder": str(Path.cwd()), "force": again, "dry_run": dry_run, "tokens": tokens or 0}
    try:
        answer = context.ask(api.learn.learn(**values))
    except KeyboardInterrupt:
        context.note("stopped; what was proposed until now stays")
        raise
    yield options.AnswerWithStatus(answer, bool(answer.trouble))
    if show:
        output.text(answer.text)
    else:
        _show_learned(answer, why=why, dry_run=dry_run)
    if answer.trouble:
        output.error(answer.trouble, answer.hint)


def _show_learned(answer: Learned, *, why: bool, dry_run: bool) -> None:
    if why or dry_run:
        _addends(answer)
    if dry_run:
        for stage in answer.plan["stages"]:
            about = f"{stage['chars']:,} characters, about {stage['tokens']:,} tokens"
            output.say(f"{stage['stage']:<9}  {about}", indent=11)
        output.say(answer.sends)
        return
    for each in answer.proposals:
        kind = f" (changes {each.changes})" if each.changes else " (draft)" * each.is_draft
        output.row(output.styled(each.id, bold=True), f"  {each.title}{kind}")
        if each.new_category:
            output.say(f"  in a category that is new: {each.new_category}", indent=2)
        for near in [] if each.changes else each.near:
            output.say(f"  {proposals.like(near)}", indent=2)
        for prompt, reason in each.left_out if why else ():
            output.say(f"  without the prompt {prompt!r:.80}: {reason}", indent=2)
    for entry in answer.dropped if why else ():
        output.say(f"dropped: {entry.title}: {entry.reason}", indent=2)
    if not answer.trouble:
        output.say(_closing(answer))
    if not answer.plan["model"] and answer.scope != "memory":
        context.note(NO_MODEL)


def _closing(answer: Learned) -> str:
    proposed, dropped = len(answer.proposals), len(answer.dropped)
    ending = f"; {count(dropped, 'entry', 'entries')} dropped" if dropped else ""
    ending += f" ({spent(answer.usage, 1, answer.no_cost)})" if answer.usage.calls else ""
    if proposed:
        return f"{count(proposed, 'proposal')} to review: `lessons review`{ending}"
    if answer.status == "learned already":
        return AGAIN
    if answer.status == "running already":
        return "another process is learning from it now"
    return f"{proposals.nothing_made(answer)}{ending}"


def _addends(answer: Learned) -> None:
    significance = answer.significance
    for addend in significance.addends:
        output.say(f"+{addend.points}  {addend.name}: {addend.why}", indent=4)
    points, threshold, sign = significance.points, answer.threshold, significance.sign
    enough = "enough" if points >= threshold else "too few"
    counted = f"{points} of {threshold} points, {enough} to learn from it unasked"
    output.say(f"worth learning from: {sign}" if sign else counted)


@options.command("tend", "lessons tend --dry-run")
@options.flag("--list", "Print lessons without prompts, for an agent that writes them.")
@options.flag("--dry-run", "Only print how much would be sent, and to whom.")
@options.flag("--show", "With --dry-run: print the very text.")
@click.option(
    "--most",
    "-n",
    type=click.IntRange(1, MAX_TENDED),
    default=MAX_TENDED,
    metavar="N",
    help="Lessons. [default: 20]",
)
def tend_command(list: bool, dry_run: bool, show: bool, most: int) -> options.Answers:
    """Write prompts for lessons that have none, to be found by.

    The model in your settings ([learn] model) writes them; it is said before how much it is sent. Without
    one, type `/lessons:tend` to your agent. You accept them with `lessons review accept --batch ID`.
    """
    if show and not dry_run:
        raise click.UsageError("--show prints what would be sent: add --dry-run")
    if list:
        from vault_index.entrypoints.wording import for_agents

        answer = context.ask(api.tending.untended(most=most))
        yield answer
        output.text(for_agents.untended(answer))
        return
    tended = context.ask(api.tending.ask_model(most=most, dry_run=dry_run))
    yield options.AnswerWithStatus(tended, bool(tended.trouble))
    if dry_run:
        output.text(tended.text if show else tended.sends)
    else:
        _show_tended(tended)
    if tended.trouble:
        output.error(tended.trouble, tended.hint)


def _show_tended(tended: Tended) -> None:
    """Print the outcome of a turn of prompts for lessons, and how to accept them."""
    for line in proposals.tended(tended):
        output.say(line)
    if tended.usage.calls:
        context.note(spent(tended.usage, 1, tended.no_cost))
    if tended.batch:
        lessons = count(len(tended.proposals), "lesson")
        accept = f"`lessons review accept --batch {tended.batch}`"
        output.say(f"prompts for {lessons} to review: `lessons review`, or all at once: {accept}")
    elif not (tended.dropped or tended.trouble):
        output.say("every lesson that agents may read has prompts, or some wait")


session_option = options.text("--session", "ID", "All that this session taught.")
batch_option = options.text("--batch", "ID", "All of a turn of `lessons tend`.")


def _decide(
    command: Callable[[str], api.Question[api.Answer]],
    line_of: Callable[[api.Answer], str],
    *,
    ids: Sequence[str],
    session: str,
    as_json: bool,
    batch: str = "",
) -> None:
    """Carry out the command of each proposal, and say so; the first error ends it."""
    is_one = len(ids) == 1
    decided: list[api.Answer] = []
    try:
        for id in _chosen(ids, session, batch):
            decided.append(context.ask(command(id)))
            if not as_json:
                output.say(line_of(decided[-1]))
    finally:
        if as_json and decided:
            output.json(decided[0] if is_one else decided)


def _chosen(ids: Sequence[str], session: str, batch: str) -> Sequence[str]:
    if sum(map(bool, (ids, session, batch))) != 1:
        message = "name proposals by their IDs, a session with --session, or a batch with --batch"
        raise click.UsageError(message)
    if ids:
        return ids
    listed = context.ask(api.proposal.select(session=session, batch=batch))
    if not listed:
        what = f"of a session {session!r:.80}" if session else f"of a batch {batch!r:.80}"
        hint = "see the ids of sessions and batches with `lessons review --json`"
        raise VaultError(f"no proposal {what} waits", hint)
    return [proposal.id for proposal in listed]


@click.group("review", cls=options.WithDefault, epilog="Example: lessons review --commit")
def review_command() -> None:
    """Review what waits: accept, edit, merge or reject each.

    At a terminal one after the other, by single keys; in a pipe they are listed, and one that is named
    is shown whole. ID is the id of a proposal or its beginning, and --session the id that
    `lessons review list ID` shows, or its beginning.
    """


@options.command("each", "lessons review each --commit", of=review_command)
@options.proposal
@options.text("--session", "ID", "Only what this session taught.")
@options.flag("--commit", "Commit the file of each accepted one, and no other.")
def review_each(proposal_id: str | None, session: str, commit: bool, as_json: bool) -> None:
    """Review what waits, one after the other: what `lessons review` does."""
    values = {"id": proposal_id or "", "session": session}
    if as_json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        listed = context.ask(api.proposal.cards(**values))
        if as_json:
            output.json(listed)
            return
        for number, proposal in enumerate(listed):
            if number:
                output.say()
            reviewing.show_card(proposal, proposal.id)
        if proposal_id:
            output.say()
            reviewing.show_details(listed[0])
    elif listed := context.ask(api.proposal.select(**values)):
        reviewing.Review([each.id for each in listed], commit).run()
    if not listed:
        context.note("no proposals wait")


@options.command("list", "lessons review list 3f9a --json", of=review_command, paged=True)
@options.proposal
def list_proposals(proposal_id: str | None) -> options.Answers:
    """List proposed lessons, or print one.

    ID is the id of a proposal or its beginning. `lessons review` shows more and decides.
    """
    listed = context.ask(api.proposal.select(id=proposal_id or ""))
    yield listed[0] if proposal_id else listed
    if proposal_id:
        output.say(output.styled(listed[0].title, bold=True))
        reviewing.show_details(listed[0])
    elif not listed:
        context.note("no proposals wait")
    else:
        output.rows(
            (output.styled(each.id, bold=True), f"  {proposals.line(each)}") for each in listed
        )


@options.command("accept", "lessons review accept 3f9a -c devops/ci-cd --commit", of=review_command)
@options.proposals
@session_option
@batch_option
@options.category("Where it belongs, instead of where it says.")
@options.flag("--commit", "Commit its file, and no other.")
def accept(category: str, commit: bool, **which: Any) -> None:
    """Make proposals lessons, and print their paths.

    ID is the id of a proposal or its beginning: see `lessons review list`. A proposal to change a
    lesson changes it. With --commit a batch is one commit. One in no category is asked about at a
    terminal; elsewhere name it with -c (`-c .` for none).
    """
    root = context.vault().root
    if which["batch"] and not (which["ids"] or which["session"]):
        _accept_batch(which["batch"], commit=commit, as_json=which["as_json"])
        return
    _decide(
        lambda id: api.proposal.accept(id=id, category=category or _asked(id), commit=commit),
        lambda accepted: from_here(root / accepted.path, root),
        **which,
    )


def _asked(id: str) -> str:
    """Return the category that a person at a terminal names for a proposal that has none, or ""."""
    if not context.is_typed():
        return ""
    (card,) = context.ask(api.proposal.cards(id=id))
    return reviewing.ask_category(card) if card.needs_category else ""


def _accept_batch(batch: str, *, commit: bool, as_json: bool) -> None:
    root = context.vault().root
    accepted = context.ask(api.tending.accept(batch=batch, commit=commit))
    if as_json:
        output.json(accepted)
    else:
        for path in accepted.paths:
            output.say(from_here(root / path, root))
    for id, why in accepted.left.items():
        context.note(f"left: {id}: {why}")
    if accepted.left:
        click.get_current_context().exit(1)


@options.command("reject", "lessons review reject 3f9a", of=review_command)
@options.proposals
@session_option
@batch_option
@options.flag("--undo", "Let rejected ones wait again: for a week.")
def reject(undo: bool, **which: Any) -> None:
    """Remove proposals; one with the same quote or prompt is recognised.

    ID is the id of a proposal or its beginning: see `lessons review list`. Its text is kept for a week,
    for --undo.
    """
    if undo and (which["session"] or which["batch"]):
        raise click.UsageError("--undo takes the IDs that `lessons review reject` printed")
    if undo:
        _decide(
            lambda id: api.proposal.take_back(id=id),
            lambda back: f"waits again {back.id}: {back.title}",
            **which,
        )
        return
    _decide(
        lambda id: api.proposal.reject(id=id),
        lambda rejected: f"rejected {rejected.id}: {rejected.title}",
        **which,
    )


@options.command("propose", "lessons propose < entries.json")
@click.argument("file", type=click.File(encoding="utf-8"), default="-")
@options.text("--session", "ID", "The session. [default: the latest]")
def propose_command(file: TextIO, session: str) -> options.Answers:
    """Propose what an agent learned; a person accepts it or not.

    FILE, or stdin, is a JSON list of objects with title (the claim, 5 to 10 words), type (bug_fix,
    code_pattern, architecture or project_rule), what_to_do (a sentence, then more) and quotes (1 to 3
    passages of the session, word for word, five words or more); if you like problem, cause,
    failing_lines, prompts (two that a colleague types who knows nothing of it), category, tags, files,
    when, when_not, confidence (1 to 5), and lists of pro, con and related (lessons by id or title, as in
    "supersedes: devops/heap"). Other fields are left out, and named.

    A quote must stand in the session of this folder, where its transcript is read. An entry that you
    write yourself needs none. Objects with lesson, prompts and failing_lines are prompts for lessons
    that have none: see `lessons tend`. An empty list, `[]`, prints the categories and what
    waits. If nothing waits afterwards, the exit status is 1.
    """
    if file.isatty():
        raise click.UsageError("name a FILE, or pipe the entries in")
    listed = _listed(file)
    if listed and all(isinstance(each, dict) and "lesson" in each for each in listed):
        tended = context.ask(api.tending.propose(answers=_of_lessons(listed), by=_by()))
        yield options.AnswerWithStatus(tended, not tended.proposals)
        _show_tended(tended)
        return
    entries = _entries(listed)
    if not (session or output.is_for_agent() or any(each["quotes"] for each in entries)):
        session = "none"  # a person wrote it, of no session
    command = api.learn.propose(entries=entries, session=session, folder=str(Path.cwd()))
    answer = context.ask(command)
    yield options.AnswerWithStatus(answer, bool(entries) and not answer.proposals)
    for line in proposals.proposed(answer):
        output.say(line)


def _by() -> str:
    return "agent" if output.is_for_agent() else "a person"


_HINT = "write a list of objects with title, type, what_to_do and quotes: see `lessons propose -h`"


def _listed(file: TextIO) -> list[Any]:
    """Return the list in a file of JSON. Raises VaultError."""
    try:
        entries = json.load(file)
    except ValueError as error:
        raise VaultError(f"the entries are not JSON: {error}", _HINT) from None
    if not isinstance(entries, list):
        raise VaultError("the entries are no list", _HINT)
    return entries


def _of_lessons(listed: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return prompts for lessons, of which each value is a text or a list of texts. Raises VaultError."""
    from vault_index.learn import agent_entries

    names = ("prompts", "failing_lines")
    for number, each in enumerate(listed, start=1):
        wrong = [name for name in names if not agent_entries.is_texts(each.get(name, []))]
        if wrong or not isinstance(each["lesson"], str):
            hint = "write a list of objects with lesson, prompts and failing_lines"
            fault = f"{wrong[0]} is no list of texts" if wrong else "lesson is no text"
            raise VaultError(f"entry {number}: {fault}", hint)
        if others := [name for name in each if name not in ("lesson", *names)]:
            context.note(f"warning: entry {number}: left out: {', '.join(others)}")
    return [
        {"lesson": each["lesson"], **{name: each.get(name, []) for name in names}}
        for each in listed
    ]


def _entries(entries: list[Any]) -> list[dict[str, Any]]:
    """Return the entries of a list. Raises VaultError."""
    from vault_index.learn import agent_entries

    for number, each in enumerate(entries, start=1):
        if fault := agent_entries.fault(each):
            raise VaultError(f"entry {number}: {fault}", _HINT)
    return entries
