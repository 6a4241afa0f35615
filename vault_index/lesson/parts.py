"""The parts of a lesson that was learned: its text as headings and back.

    The summary, a paragraph.

    The explanation, with code.

    ## Problem
    ## When to apply
    ## When not to apply
    ## Trade-offs        - `+ for` and `- against`, a line each
    ## Related           - `- kind: lesson or subject`

A lesson may have any of them; text under another heading belongs to what comes before it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

PROBLEM, WHEN, WHEN_NOT = "Problem", "When to apply", "When not to apply"
TRADE_OFFS, RELATED = "Trade-offs", "Related"
RELATIONS = ("related", "alternative", "prerequisite", "supersedes")
_HEADING = re.compile(
    rf"^## ({'|'.join((PROBLEM, WHEN, WHEN_NOT, TRADE_OFFS, RELATED))})[ \t]*$", re.MULTILINE
)
_RELATED = re.compile(rf"- ({'|'.join(RELATIONS)}): (.+)")


@dataclass(frozen=True, slots=True)
class Parts:
    """`pro` and `con` are trade-offs; `related` is (kind, lesson or subject), the kind of RELATIONS."""

    summary: str
    explanation: str = ""
    problem: str = ""
    when: str = ""
    when_not: str = ""
    pro: tuple[str, ...] = ()
    con: tuple[str, ...] = ()
    related: tuple[tuple[str, str], ...] = ()


def text_of(parts: Parts) -> str:
    """Return the text of a lesson with these parts; empty ones are left out."""
    trade_offs = [*(f"+ {text}" for text in parts.pro), *(f"- {text}" for text in parts.con)]
    related = [f"- {kind}: {name}" for kind, name in parts.related]
    under = {
        PROBLEM: parts.problem,
        WHEN: parts.when,
        WHEN_NOT: parts.when_not,
        TRADE_OFFS: "\n".join(trade_offs),
        RELATED: "\n".join(related),
    }
    blocks = [parts.summary, parts.explanation]
    blocks += [f"## {heading}\n\n{text}" for heading, text in under.items() if text]
    return "\n\n".join(filter(None, (block.strip() for block in blocks)))


def of(text: str) -> Parts:
    """Return the parts of a lesson's text."""
    before, *rest = _HEADING.split(text)
    under = {heading: body.strip() for heading, body in zip(rest[::2], rest[1::2], strict=True)}
    summary, _, explanation = before.strip().partition("\n\n")
    trade_offs = [line.strip() for line in under.get(TRADE_OFFS, "").splitlines()]
    related = map(_RELATED.fullmatch, map(str.strip, under.get(RELATED, "").splitlines()))
    return Parts(
        summary=summary,
        explanation=explanation.strip(),
        problem=under.get(PROBLEM, ""),
        when=under.get(WHEN, ""),
        when_not=under.get(WHEN_NOT, ""),
        pro=tuple(line[2:] for line in trade_offs if line.startswith("+ ")),
        con=tuple(line[2:] for line in trade_offs if line.startswith("- ")),
        related=tuple((match[1], match[2]) for match in related if match),
    )


def with_items(text: str, added: str) -> str:
    """Return a lesson's text with more of it before its first section of these, or at its end."""
    match = _HEADING.search(text)
    end = match.start() if match else len(text)
    return "\n\n".join(filter(None, (text[:end].rstrip(), added, text[end:]))).strip()
