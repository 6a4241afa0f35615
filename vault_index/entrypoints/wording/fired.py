"""The effect of a change on lessons, in words: at which prompts they come, and which it is about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from vault_index.check.finding import Finding
from vault_index.text.blocks import shorten_line
from vault_index.text.quote import visible_line
from vault_index.text.words import count

if TYPE_CHECKING:
    from vault_index.api.search import TaughtLesson
    from vault_index.recall.outdated import Reason

MARK = "<!-- lessons check -->"  # begins a comment, so that the next run replaces it
SHOWN = 10  # prompts of a lesson; lessons that did not change themselves
MAX_LESSONS = 50
MAX_CHARS = 120  # of a prompt or a title
MAX_COMMENT = 60_000  # characters: GitHub takes 65,536
NEW, CHANGED, REMOVED, SAME = "new", "changed", "removed", "not changed"


@dataclass(slots=True)
class VaultSnapshot:
    """A vault at a time: its lessons by id, and the ids of those that come at each prompt."""

    lessons: dict[str, TaughtLesson] = field(default_factory=dict)
    fired: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    text_only: str = ""


@dataclass(frozen=True, slots=True)
class FiringChange:
    """A lesson that is NEW, CHANGED, REMOVED or SAME, and the prompts at which it comes or not now."""

    id: str
    title: str
    state: str
    newly: list[str]
    no_longer: list[str]


def changes(before: VaultSnapshot, now: VaultSnapshot) -> list[FiringChange]:
    """Return the lessons that changed, and others that come elsewhere now: the first ones first."""
    were, are = before.lessons, now.lessons
    found: list[FiringChange] = []
    for id in sorted({*were, *are}):
        state = SAME if id in were and id in are else NEW if id in are else REMOVED
        if state == SAME and were[id].digest != are[id].digest:
            state = CHANGED
        had, has = ([p for p, ids in each.fired.items() if id in ids] for each in (before, now))
        newly = [prompt for prompt in has if prompt not in had]
        no_longer = [prompt for prompt in had if prompt not in has]
        if state != SAME or newly or no_longer:
            found.append(FiringChange(id, (are.get(id) or were[id]).title, state, newly, no_longer))
    return sorted(found, key=lambda each: each.state == SAME)


def lines(
    changed: Sequence[FiringChange], prompts: int, touched: Sequence[Reason] = ()
) -> Iterator[str]:
    """Yield the changes for a terminal, and why other lessons are `touched`: `recall.stale`."""
    yield _sum(changed, prompts)
    for each in changed:
        yield f"{visible_line(each.title)} ({each.id}, {each.state})"
        yield from (f"  {what}: {prompt}" for what, some in _fires(each) for prompt in some)
    if touched:
        yield _touches(touched)
        yield from (f"  {each.title} ({each.lesson}): {each.why}" for each in touched)


def comment(
    changed: Sequence[FiringChange],
    prompts: int,
    errors: int,
    text_only: str,
    touched: Sequence[Reason] = (),
) -> str:
    """Return the changes as the comment of a pull request, in markdown; all texts are data in it."""
    blocks = [f"{MARK}\n### Lessons of this pull request", _sum(changed, prompts)]
    if errors:
        blocks.append(f"`lessons check` has {count(errors, 'error')}: see the annotations.")
    of_itself = [each for each in changed if each.state != SAME]
    others = [each for each in changed if each.state == SAME][:SHOWN]
    for each in of_itself[:MAX_LESSONS]:
        head = f"**{_code(each.title)}** ({_code(each.id)}, {each.state})"
        blocks.append("\n".join([head, *_items(each)]))
    if len(of_itself) > MAX_LESSONS:
        blocks.append(f"and {len(of_itself) - MAX_LESSONS} more lessons")
    if others:
        blocks.append("Lessons that did not change themselves:")
        blocks += ["\n".join([_code(each.id), *_items(each)]) for each in others]
    if touched:
        some = [
            f"- {_code(each.title)} ({_code(each.lesson)}): {_code(each.why)}"
            for each in touched[:MAX_LESSONS]
        ]
        some += [f"- and {len(touched) - MAX_LESSONS} more"] if len(touched) > MAX_LESSONS else []
        blocks.append("\n".join([_touches(touched), *some]))
    if text_only:
        blocks.append(f"By words alone: {visible_line(text_only)}.")
    text = "\n\n".join(blocks) + "\n"
    if len(text) > MAX_COMMENT:
        text = text[: text.rindex("\n", 0, MAX_COMMENT)] + "\n\nand more: it is cut here\n"
    return text


def _sum(changed: Sequence[FiringChange], prompts: int) -> str:
    number = sum(each.state != SAME for each in changed)
    return f"{count(number, 'lesson')} changed, {count(prompts, 'prompt')} tried."


def _touches(touched: Sequence[Reason]) -> str:
    number = len({each.lesson for each in touched})
    return f"This change touches what {count(number, 'lesson')} {'is' if number == 1 else 'are'} about:"


def _items(each: FiringChange) -> Iterator[str]:
    for what, some in _fires(each):
        first = ", ".join(map(_code, some[:SHOWN]))
        more = f", and {len(some) - SHOWN} more" if len(some) > SHOWN else ""
        yield f"- {what} {first}{more}"
    if not any(some for _, some in _fires(each)):
        is_removed = each.state == REMOVED
        yield "- fired at none" if is_removed else "- fires at the same prompts as before"


def _fires(each: FiringChange) -> list[tuple[str, Sequence[str]]]:
    both = (("newly fires at", each.newly), ("no longer fires at", each.no_longer))
    return [(what, some) for what, some in both if some]


def _code(text: str) -> str:
    return f"`{shorten_line(visible_line(text).replace('`', chr(39)), MAX_CHARS)}`"


def annotation(finding: Finding, prefix: str = "") -> str:
    """Return a finding as a command of GitHub's workflows; `prefix` leads to the vault's root."""
    head = f"file={_escaped(prefix + finding.path, ':,')},line={max(1, finding.line)}"
    kind = "error" if finding.severity == "error" else "warning"
    title = _escaped(finding.rule, ":,")
    return f"::{kind} {head},title={title}::{_escaped(finding.message)}"


def _escaped(text: str, more: str = "") -> str:
    return "".join(f"%{ord(char):02X}" if char in f"%\r\n{more}" else char for char in text)
