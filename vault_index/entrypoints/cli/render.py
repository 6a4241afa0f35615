"""Hits as text for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from vault_index.recall.block import named, signed
from vault_index.search.hit import Hit
from vault_index.search.query import TERMS
from vault_index.text.characters import clean, visible_line


def terminal(hits: Sequence[Hit], first: int = 1, *, width: int = 100) -> str:
    """Return ranked hits for people: two or three lines each, numbered from `first`."""
    out = []
    for number, hit in enumerate(hits, start=first):
        text = " ".join(clean(hit.text[: 40 * width]).split())
        filed = ", ".join(hit.filed_under) or hit.type
        about = visible_line(f"[{filed}] {hit.path}{signed(hit.author, hit)}")
        out.append(
            f"{number}. {visible_line(named(hit))} ({hit.percent}%{', taught' * bool(hit.taught)})\n"
            f"   {about}\n"
            f"   {text[: width - 4] + ('…' if len(text) > width - 4 else '')}".rstrip()
        )
    return "\n".join(out)


def evidence(hit: Hit) -> str:
    """Return the terms of a hit's score in one line."""
    parts = f"{hit.score:.3f} = {' + '.join(f'{name} {term:.3f}' for name, term in hit.terms)}"
    if hit.no_reason:
        parts += f", of which {hit.reason:.3f} counts for the floor"
    terms = (f"{term:.3f} {name}" for term, name in zip(hit.weighted, TERMS, strict=False))
    by_weights = f"{sum(hit.weighted):.3f} = {' + '.join(terms)}; " if hit.weighted else ""
    return f"{by_weights}{parts}, confidence {hit.confidence}"
