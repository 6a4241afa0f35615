"""A proposal in words, as a reviewer sees it: first what decides it, then all that is known of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from vault_index.entrypoints.wording import spent
from vault_index.lesson import passages
from vault_index.lesson.category import offered
from vault_index.proposals.draft import AGENT, CHECK
from vault_index.retrieval.hit import strength_of
from vault_index.text import blocks
from vault_index.text.words import count

if TYPE_CHECKING:
    from vault_index.api.proposal import Card
    from vault_index.learn.agent_entries import UnknownField
    from vault_index.learn.run import Learned, Proposed
    from vault_index.learn.runs import LearnStatus
    from vault_index.learn.tend import Tended
    from vault_index.proposals.similarity import BestLesson, Outlook

MAX_UNSURE = 2  # of the five steps of confidence
_UNFILED = ", in no category: a person names one with -c"
MAX_SUMMARY, MAX_QUOTE = 240, 160  # characters on the card

Values = Mapping[str, Any]


def line(proposal: Card) -> str:
    """Return a proposal in a line: its day, its category, its title, and notes about it."""
    about = [proposal.created[:10], f"[{proposal.category or 'no category'}]"]
    about.append(proposal.title)
    notes = [f"seen in {proposal.times} sessions"] if proposal.times > 1 else []
    notes += ["a draft by rule"] if proposal.is_draft else []
    notes += [f"changes {proposal.changes}"] if proposal.changes else []
    notes += [f"{len(proposal.findings)} to look at"] if proposal.findings else []
    return "  ".join(filter(None, [*about, f"({', '.join(notes)})" if notes else ""]))


def origin(card: Card) -> str:
    """Return the project, the day, whose words a proposal rests on, and whether it is unsure."""
    if card.speaker:
        words = {AGENT: "the agent's word", CHECK: "seen in a check"}
        word = words.get(card.speaker, f"in the words of {card.speaker}")
    else:  # it was proposed as it is, with no session to look at
        word = f"proposed by {card.by}" if card.by else ""
    unsure = card.confidence <= MAX_UNSURE and not card.is_draft
    sure = f"confidence {card.confidence} of 5" if unsure else ""
    seen = f"seen in {card.times} sessions" if card.times > 1 else ""
    return " · ".join(filter(None, (card.project, card.day, word, seen, sure)))


def summary(card: Card) -> str:
    """Return the summary of a proposal, in a sentence or two; of a change its additions."""
    text = card.text if card.changes else passages.summary_of(card.text)
    return blocks.shorten_line(" ".join(text.split()), MAX_SUMMARY)


def quoted(card: Card) -> str:
    """Return the quote that proves most, with its speaker; "" without one."""
    quote = blocks.shorten_line(" ".join(card.quote.split()), MAX_QUOTE)
    return _with_speaker(quote, card.speaker) if quote else ""


def _with_speaker(quote: str, speaker: str) -> str:
    return f"“{' '.join(quote.split())}”" + (f", {speaker}" if speaker else "")


def state(card: Card) -> tuple[bool, str]:
    """Whether nothing is in the way of a proposal; and the line that says so, or the obstacle.

    It names the key that settles it.
    """
    target = card.target
    if not card.text:
        return False, "it cannot be read: [r] rejects it"
    same = card.same[0] if card.same else target.id if target and target.is_done else ""
    if same:
        return False, f"{same} says this already: [r] rejects it"
    if target and target.problem:
        return False, f"{target.problem}: [r] rejects it"
    if card.near and not target:
        return False, f"{like(card.near[0])}: [m] adds it there"
    if card.findings:
        more = len(card.findings) - 1
        others = f", and {more} more" if more else ""
        return False, f"{finding(card.findings[0])}{others}: [e] edits it"
    if card.is_draft:
        return False, "a draft in the words you typed: [e] edits it"
    if target:
        return True, f"ready: changes {target.id}"
    if card.nearer:
        return (
            False,
            f"nearer to lessons of {card.nearer} than of {card.category}: [c] names another",
        )
    if card.needs_category and not card.suggested:
        return False, "no category: [c] names one"
    return True, f"ready: goes to {card.category or card.suggested}"


def nothing_made(answer: Learned) -> str:
    """Return the reason for which a run made no proposal."""
    if not answer.waits_already:
        return "nothing was worth a proposal"
    if not answer.waiting:
        return "it waits already: `lessons review`"
    return (
        f"it waits already, {count(answer.waiting, 'proposal')} of this session: `lessons review`"
    )


def about(card: Card) -> str:
    """Return the facts of a proposal: its category, id, type, author, day, session."""
    suggested = f"{card.suggested}?" if card.suggested else ""
    parts = [f"[{card.category or suggested or 'no category'}] {card.id}"]
    parts += [card.type] if card.type else []
    parts.append(f"confidence {card.confidence} of 5")
    parts += ["a draft in the words you typed"] if card.is_draft else []
    by = f"by {card.by}, " if card.by else ""
    parts.append(f"{by}{card.created[:10]}")
    parts += [f"session {card.session}"] if card.session else []
    return " · ".join(parts)


def rows(card: Card) -> Iterator[tuple[str, str]]:
    """Yield the evidence for a proposal, each with its label; "" goes on with the last."""
    if card.why:
        yield "why", card.why
    for quote, speaker in zip_longest(card.quotes, card.speakers[: len(card.quotes)]):
        yield "quote", _with_speaker(quote, speaker or "")
    for label, text in card.background:
        yield label, text
    if target := card.target:
        yield "changes", target.problem or target.id
    for near in card.near[:1] if card.nearest is None else [card.nearest]:
        yield "nearest", like(near)
    for each in card.findings:
        yield "check", finding(each)
    for prompt in card.outlook:
        yield from _prompt("fires" if prompt.prompt in card.fires_on else "answers", prompt)
    unknown = [("fires", card.fires_on), ("answers", card.prompts)] if not card.outlook else []
    taught = [*unknown, ("silent", card.silent_on)]
    more = [("error", card.fires_on_error), ("tag", card.tags), ("file", card.applies_to)]
    for label, texts in (*taught, *more, ("anchor", card.anchors)):
        yield from ((label, text) for text in texts)


def answers(card: Card) -> list[tuple[str, str]]:
    """Return the prompts and lines of output of a proposal, each with what is known of it."""
    notes = {each.prompt: finds(each) for each in card.outlook}
    prompts = [(text, notes.get(text, "")) for text in (*card.prompts, *card.fires_on)]
    lines = [(line, "a line that a failed command prints") for line in card.fires_on_error]
    return prompts + lines


def finding(found: Values) -> str:
    """Return a finding of the check in a line."""
    return f"{found['level']}: {found['rule']}: {found['message']}"


def proposed(answer: Proposed) -> Iterator[str]:
    """Yield the outcome of an agent's entries, a line each, and help to correct one.

    Without entries it is the vault's categories and what waits.
    """
    if answer.categories is not None:
        waiting = [f"{title} ({id})" for id, title in answer.waiting]
        yield f"Waiting: {'; '.join(waiting) or 'nothing'}"
        yield f"Categories, with a lesson of each: {offered(answer.categories) or 'none yet'}"
    for each in answer.proposals:
        new = f", in a new category: {each.new_category}" if each.new_category else ""
        changes = f", changes {each.changes}" if each.changes else ""
        unfiled = "" if each.category or each.changes else _UNFILED
        again = f", seen in {each.times} sessions" if each.times > 1 else ""
        yield f"{each.id} waits: {each.title}{changes}{new}{unfiled}{again}"
        yield from (f"  {like(near)}" for near in each.near[:1])
        yield from (f"  without the prompt {text!r}: {why}" for text, why in each.left_out)
        yield from (f"  without the relation to {text!r:.80}: {why}" for text, why in each.unlinked)
    for field in answer.unknown:
        yield f"warning: {field.entry}: left out, no field of an entry: {field.name!r}{_meant(field)}"
    for entry in answer.dropped:
        yield f"dropped: {entry.title}: {entry.reason}"
        if entry.lesson:
            yield f"  {like(entry.lesson)}"
        yield from (f"  the session has: “{text}”" for text in entry.passages)


def _meant(field: UnknownField) -> str:
    return f"; did you mean {field.meant}?" if field.meant else ""


def tended(answer: Tended) -> Iterator[str]:
    """Yield the outcome of prompts for lessons, a line each."""
    for each in answer.proposals:
        yield f"{each.id} waits: {each.changes}"
        yield from (f"  without {text!r:.80}: {why}" for text, why in each.left_out)
    for entry in answer.dropped:
        yield f"dropped: {entry.title}: {entry.reason}"


def like(near: Sequence[Any]) -> str:
    """Return the likeness to a lesson in words, with the lesson's id and title."""
    id, title, likeness = near
    return f"{likeness:.0%} like {id} ({title})"


def into(card: Card) -> str:
    """Return the lesson to merge a proposal into: the one it changes, else the nearest."""
    target = card.target
    if target and not target.problem:
        return target.id
    return str(card.nearest[0]) if card.nearest else ""


def _prompt(label: str, prompt: Outlook) -> Iterator[tuple[str, str]]:
    yield label, f"“{prompt.prompt}”"
    yield "", finds(prompt)


def finds(prompt: Outlook) -> str:
    """Return a line on the lesson that a draft's prompt finds now, and whether the draft needs it."""
    now = prompt.now
    today = f"{now.title}, {_score(now)}" if now else "nothing"
    addition = "and this one by its words" if prompt.finds else "and this one only with its help"
    return f"finds {today} now, {addition}"


def _score(found: BestLesson) -> str:
    strength = strength_of(found.score, by_words=found.by_words)
    return f"{strength}, {'above' if found.is_above else 'below'} the floor"


def status_lines(waiting: LearnStatus) -> Iterator[str]:
    """Yield the proposals and the usage of learning, and the trouble of the last run."""
    if waiting.proposals:
        again = f", {waiting.unfound} of a lesson that was not found" if waiting.unfound else ""
        yield f"proposals  {count(waiting.proposals, 'proposal')} waiting{again}: see `lessons review`"
    if shown := waiting.nudges.shown:
        followed = f"{waiting.nudges.followed} followed within a day"
        yield f"nudges     {count(shown, 'line')} to learn from a session shown, {followed}"
    if waiting.lessons:
        is_all = waiting.with_prompts == waiting.lessons
        of = f"{waiting.with_prompts:,} of {count(waiting.lessons, 'lesson')}"
        yield f"found by   {of} have prompts{'' if is_all else '; `/lessons:tend` has them written'}"
    learned = waiting.learning
    if not learned.runs and not learned.auto:
        return
    took = f"; {spent(learned.usage)}" if learned.usage.calls else ""
    auto = ", at the end of sessions" if learned.auto else ""
    runs, new = count(learned.runs, "run"), count(learned.proposed, "proposal")
    failed = f", {learned.failed} failed" if learned.failed else ""
    yield f"learning   {runs}{failed}, {new}{took}{auto}"
    if learned.trouble:
        yield f"problem    learning: {learned.trouble}"
