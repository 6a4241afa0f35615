"""Take orders to an agent, and secrets once more, out of what a model reads.

A session may have read a page or a file that says what an agent should do, or a model that learns.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from vault_index.check import prompt_injection, time_limit
from vault_index.check.finding import ERROR
from vault_index.check.redact import redact
from vault_index.learn.timeline import COMMIT, LEFT_OUT, MAX_TEXT
from vault_index.text import blocks, failure
from vault_index.transcripts.moments import PERSON, Moment

_ROUNDS = 4
_PAGE_CHARS = 8_000
# whole lines as far as possible: a rule may take long on a page, and not on all
_PAGE = re.compile(rf"(?s).{{1,{_PAGE_CHARS - 1}}}(?:\n|\Z)|.{{{_PAGE_CHARS}}}")
_SECONDS = 2.0  # of processor time to look for orders in a page
_MARKS = re.compile(r"(?m)^[+-]?[ \t]*(?:#+|//+|/?\*+|--|;+)?[ \t]*")  # of a change, of comments
_ACCEPTED = re.compile(r"\A(?:Add|Add to|Change) lesson: ")  # by `proposals.accept`: no order
# orders to a model that learns, which are harmless in a lesson, and so no finding of a check
_LEARNER = r"(?:models?|llms?|ais?|assistants?|agents?|claude|gpt|copilot|codex|gemini)"
_TO_LEARNER = re.compile(
    r"(?i)\b(?:when|while|if|before|after)\b(?: you)?(?: are)? (?:summari[sz]|distil)\w*"
    r"[^\n]{0,60}\b(?:include|add|write|output|propose|say|mention|insert|answer|keep)\b"
    rf"|\b(?:dear|attention)\b[ ,:]{{1,3}}(?:\w{{1,12}} ){{0,2}}{_LEARNER}\b"
    rf"|\b(?:system|{_LEARNER}) ?: ?you (?:must|should|shall|will|have to)\b"
)


def without_orders(moments: Iterable[Moment]) -> tuple[tuple[Moment, ...], tuple[str, ...]]:
    """Return moments without secrets, once more, and without orders to an agent; and those lines.

    They are lines that `lessons check` calls an error, and what speaks to a model that learns where
    no person said it. To look for them takes some 20 ms a page.
    """
    orders: list[str] = []
    cleaned = []
    for each in moments:
        pages = _PAGE.findall(redact(blocks.ends(failure.without_escapes(each.text), MAX_TEXT)))
        text = "".join(_page_cleaned(page, orders, each.kind) for page in pages)
        cleaned.append(replace(each, text=text))
    return tuple(cleaned), tuple(dict.fromkeys(orders))


def _page_cleaned(text: str, orders: list[str], kind: str) -> str:
    """Return a page without orders, which are added to a list."""
    for _ in range(_ROUNDS):
        form = _MARKS.sub("", text)
        if kind == COMMIT:
            form = _ACCEPTED.sub("", form)
        try:
            findings = time_limit.within(_SECONDS, prompt_injection.findings, "", form)
        except time_limit.TooSlow:
            orders.append(text)
            return f"{LEFT_OUT}\n"
        numbers = {each.line for each in findings if each.severity == ERROR}
        if kind != PERSON:
            for view in {form, prompt_injection.as_read(form)}:
                to_learner = _TO_LEARNER.finditer(view)
                numbers |= {view.count("\n", 0, match.start()) + 1 for match in to_learner}
        if not numbers:
            return text
        lines = [*enumerate(text.split("\n"), 1)]
        orders += [line for number, line in lines if number in numbers]
        text = "\n".join(LEFT_OUT if number in numbers else line for number, line in lines)
    return text
