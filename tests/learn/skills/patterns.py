"""Twelve patterns of two tags, as a team would write them, and prompts that nobody wrote them for."""

from __future__ import annotations

import json

from tests.support.places import labelled

# name, title, text, two prompts that should find it, one that should not
BY_TAG: dict[str, list[tuple[str, str, str, str, str, str]]] = {}
for one in labelled("patterns.jsonl"):
    known = (one["name"], one["title"], one["text"], *one["fires_on"], one["silent_on"])
    BY_TAG.setdefault(one["tag"], []).append(known)
# prompts that no lesson carries, and the tag that they are for; "" for none
HELD_OUT = [(one["prompt"], one["tag"]) for one in labelled("pattern_prompts.jsonl")]


def files_of(confidence: int = 5) -> dict[str, str]:
    """Return the lesson files of both tags by path."""
    return {
        f"backend/{tag}/{name}.md": lesson(title, [tag], text, fires_on, [silent], confidence)
        for tag, several in BY_TAG.items()
        for name, title, text, *fires_on, silent in several
    }


def lesson(
    title: str,
    tags: list[str],
    text: str = "",
    fires_on: list[str] | None = None,
    silent_on: list[str] | None = None,
    confidence: int = 5,
) -> str:
    """Return the file of a pattern."""
    keys = {"title": title, "tags": tags, "type": "code_pattern", "confidence": confidence}
    keys |= {"fires_on": fires_on or [], "silent_on": silent_on or []}
    lines = [f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in keys.items()]
    return "\n".join(["---", *lines, "---", text or f"About {title}.", ""])


def ids(tag: str) -> list[str]:
    """Return the ids of a tag's lessons."""
    return [f"backend/{tag}/{name}" for name, *_ in BY_TAG[tag]]
