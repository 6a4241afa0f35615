"""A proposal in words, as a reviewer sees it: what it says, why, what is like it, what finds it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

MAX_PLACE = 3  # as many as a hook injects
SHOULD_BE_SILENT, SHOULD_BE_FOUND = "it should stay silent", "it should be found"
OUTDATED = "it says something else now than when this was proposed: merge, edit or reject"

Values = Mapping[str, Any]


def line(proposal: Values) -> str:
    """Return a proposal in a line: its day, its category, its title, and notes about it."""
    about = [proposal["created"][:10], f"[{proposal['category'] or 'no category'}]"]
    about.append(proposal["title"])
    notes = ["a draft by rule"] if proposal["is_draft"] else []
    notes += [f"changes {proposal['changes']}"] if proposal["changes"] else []
    notes += [f"{len(proposal['findings'])} to look at"] if proposal["findings"] else []
    notes += [f"expires {proposal['expires']}"] if proposal["expires"] else []
    return "  ".join(filter(None, [*about, f"({', '.join(notes)})" if notes else ""]))


def about(card: Values) -> str:
    """Return what a proposal is: its category, id, type, author, day, session, end."""
    suggested = f"{card['suggested']}?" if card["suggested"] else ""
    parts = [f"[{card['category'] or suggested or 'no category'}] {card['id']}"]
    parts += [card["type"]] if card["type"] else []
    parts.append(f"confidence {card['confidence']} of 5")
    parts += ["a draft by rule: its text is what was said"] if card["is_draft"] else []
    by = f"by {card['by']}, " if card["by"] else ""
    parts.append(f"{by}{card['created'][:10]}")
    parts += [f"session {card['session']}"] if card["session"] else []
    parts += [f"expires {card['expires']}"] if card["expires"] else []
    return " · ".join(parts)


def rows(card: Values) -> Iterator[tuple[str, str]]:
    """Yield the evidence for a proposal, each with its label; "" goes on with the last."""
    if card["why"]:
        yield "why", card["why"]
    for quote in card["quotes"]:
        yield "quote", f"“{' '.join(quote.split())}”"
    if target := card["target"]:
        yield "changes", target["problem"] or target["id"]
        if target["is_outdated"]:
            yield "", OUTDATED
    if card["nearest"]:
        yield "nearest", like(card["nearest"])
    for each in card["findings"]:
        yield "check", finding(each)
    for prompt in card["prompts"]:
        yield from _prompt(prompt)


def finding(found: Values) -> str:
    """Return a finding of the check in a line."""
    return f"{found['level']}: {found['rule']}: {found['message']}"


def like(near: tuple[str, str, float]) -> str:
    """Return how like a lesson something is, with the lesson's id and title."""
    id, title, likeness = near
    return f"{likeness:.0%} like {id} ({title})"


def judged(prompt: Values) -> str:
    """Return what is wrong where a prompt would do what it should not."""
    then = prompt["then"]
    is_found = then["is_above"] and then["place"] <= MAX_PLACE
    if is_found != prompt["is_silent"]:
        return ""
    return SHOULD_BE_SILENT if is_found else SHOULD_BE_FOUND


def into(card: Values) -> str:
    """Return the lesson to merge a proposal into: the one it changes, else the nearest."""
    target = card["target"]
    if target and not target["problem"]:
        return str(target["id"])
    return str(card["nearest"][0]) if card["nearest"] else ""


def _prompt(prompt: Values) -> Iterator[tuple[str, str]]:
    """Yield what a prompt finds today, and would find with the proposal."""
    now, then = prompt["now"], prompt["then"]
    yield "silent" if prompt["is_silent"] else "fires", f"“{prompt['prompt']}”"
    today = f"{now['title']}, {_score(now)}" if now else "nothing"
    yield "", f"now   {today}"
    place = "" if then["place"] == 1 else f" in place {then['place']}"
    place = f", not among the first {MAX_PLACE}" if then["place"] > MAX_PLACE else place
    wrong = judged(prompt)
    yield "", ": ".join(filter(None, [f"then  this one{place}, {_score(then)}", wrong]))


def _score(hit: Values) -> str:
    return f"{max(0, hit['score']):.0%}, {'above' if hit['is_above'] else 'below'} the floor"
