"""A proposal as a reviewer sees it: what it says, why it was proposed, what is like it, what finds it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from vault_index.entrypoints.cli import output

MAX_PLACE = 3  # as many as a hook injects
_LABEL = 8  # columns
_ADDED, _REMOVED = {"fg": "green"}, {"fg": "red"}

Card = Mapping[str, Any]


def show(card: Card, place: str = "") -> None:
    """Print a proposal that `review` returned. `place` is where it is among the others."""
    output.say(output.styled(card["title"], bold=True), f"  {place}" if place else "")
    output.say(" · ".join(_about(card)), indent=2)
    rows = [("why", card["why"])] if card["why"] else []
    rows += [("quote", f"“{' '.join(quote.split())}”") for quote in card["quotes"]]
    rows += _likeness(card)
    rows += [("check", _finding(finding)) for finding in card["findings"]]
    for label, text in rows:
        _row(label, text)
    for prompt in card["prompts"]:
        _show_prompt(prompt)
    output.say()
    if card["target"] and card["target"]["diff"]:
        show_diff(card["target"]["diff"])
    else:
        output.text(card["text"])


def line(proposal: Card) -> str:
    """Return a proposal in a line: when, where to, its title, what there is to know of it."""
    about = [proposal["created"][:10], f"[{proposal['category'] or 'no category'}]"]
    about.append(proposal["title"])
    notes = [note for note, holds in _notes(proposal) if holds]
    if notes:
        about.append(f"({', '.join(notes)})")
    return "  ".join(filter(None, about))


def show_diff(diff: str) -> None:
    """Print a unified diff."""
    for text in diff.splitlines():
        style: dict[str, Any] = _ADDED if text.startswith("+") else {}
        style = _REMOVED if text.startswith("-") else style
        output.say(output.styled(text, **style))


def _notes(proposal: Card) -> Iterator[tuple[str, bool]]:
    yield "a draft by rule", bool(proposal["is_draft"])
    yield f"changes {proposal['changes']}", bool(proposal["changes"])
    yield f"{len(proposal['findings'])} to look at", bool(proposal["findings"])
    yield f"expires {proposal['expires']}", bool(proposal["expires"])


def _about(card: Card) -> Iterator[str]:
    suggested = f"{card['suggested']}?" if card["suggested"] else ""
    yield f"[{card['category'] or suggested or 'no category'}] {card['id']}"
    if card["type"]:
        yield str(card["type"])
    yield f"confidence {card['confidence']} of 5"
    if card["is_draft"]:
        yield "a draft by rule: its text is what was said"
    by = f"by {card['by']}, " if card["by"] else ""
    yield f"{by}{card['created'][:10]}"
    if card["session"]:
        yield f"session {card['session']}"
    if card["expires"]:
        yield f"expires {card['expires']}"


def _likeness(card: Card) -> Iterator[tuple[str, str]]:
    target = card["target"]
    if target:
        yield "changes", target["problem"] or target["id"]
        if target["is_outdated"]:
            yield (
                "",
                "it says something else now than when this was proposed: merge, edit or reject",
            )
    if card["nearest"]:
        id, title, likeness = card["nearest"]
        yield "nearest", f"{likeness:.0%} like {id} ({title})"


def _finding(finding: Card) -> str:
    return f"{finding['level']}: {finding['rule']}: {finding['message']}"


def _show_prompt(found: Card) -> None:
    _row("silent" if found["is_silent"] else "fires", f"“{found['prompt']}”")
    now, then = found["now"], found["then"]
    today = f"{now['title']}, {_score(now)}" if now else "nothing"
    _row("", f"now   {today}")
    place = "" if then["place"] == 1 else f" in place {then['place']}"
    place = f", not among the first {MAX_PLACE}" if then["place"] > MAX_PLACE else place
    _row("", f"then  this one{place}, {_score(then)}{_judged(found)}")


def _judged(found: Card) -> str:
    """Return a note where a prompt would do what it should not."""
    is_found = found["then"]["is_above"] and found["then"]["place"] <= MAX_PLACE
    if is_found == found["is_silent"]:
        return ": it should stay silent" if is_found else ": it should be found"
    return ""


def _score(found: Card) -> str:
    return f"{max(0, found['score']):.0%}, {'above' if found['is_above'] else 'below'} the floor"


def _row(label: str, text: str) -> None:
    head = output.styled(f"{label:<{_LABEL}}", dim=True)
    output.say(head, text, indent=_LABEL)


def summary(counts: Sequence[tuple[int, str]]) -> str:
    """Return what was done in a line: `2 accepted, 1 skipped`."""
    return ", ".join(f"{count} {what}" for count, what in counts if count)
