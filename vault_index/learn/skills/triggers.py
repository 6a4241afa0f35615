"""Whether the prompts that lessons carry find the skill that was built of them.

Each is searched as a hook does: the skills above their floor, as many as a prompt may get. A prompt of
`fires_on` is right with any skill that its lesson is in, one of `silent_on` without this one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from vault_index.hotpath import chatter
from vault_index.learn.skills import behind, cluster
from vault_index.learn.skills.cluster import PREFIX, Pattern
from vault_index.search import floor, query
from vault_index.search.options import Query

if TYPE_CHECKING:
    from vault_index.vault import Vault


def rates(vault: Vault, tags: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Return for each built skill, or those of these tags, how many of its prompts do right.

    As JSON values: `fires` of `fires_on`, `silent` of `silent_on`, and the prompts that fail. The
    index must have the skills. Raises IndexStateError without one.
    """
    built = behind.existing(vault)
    wanted = [tag for tag in built if not tags or tag in tags]
    clusters = {each.tag: each for each in cluster.of(vault, built)}
    holders: dict[str, set[str]] = {}
    for tag, one in built.items():
        for id in one.lineage.lessons:
            holders.setdefault(id, set()).add(PREFIX + tag)
    patterns = {
        tag: [
            each
            for each in (clusters[tag].patterns if tag in clusters else ())
            if each.id in built[tag].lineage.lessons
        ]
        for tag in wanted
    }
    suggested: dict[str, list[str]] = {}
    return [_rates(vault, tag, patterns[tag], holders, suggested) for tag in wanted]


def _rates(
    vault: Vault,
    tag: str,
    patterns: Sequence[Pattern],
    holders: Mapping[str, set[str]],
    suggested: dict[str, list[str]],
) -> dict[str, Any]:
    name = PREFIX + tag
    missed, wrong = [], []
    fires = silent = 0
    for pattern in patterns:
        for prompt in pattern.fires_on:
            fires += 1
            if not holders[pattern.id] & set(_suggested(vault, prompt, suggested)):
                missed.append(prompt)
        for prompt in pattern.silent_on:
            silent += 1
            if name in _suggested(vault, prompt, suggested):
                wrong.append(prompt)
    return {
        "tag": tag,
        "name": name,
        "fires_on": fires,
        "fires": fires - len(missed),
        "silent_on": silent,
        "silent": silent - len(wrong),
        "missed": missed,
        "wrong": wrong,
    }


def _suggested(vault: Vault, prompt: str, known: dict[str, list[str]]) -> list[str]:
    """Return the names of the skills that a prompt gets, as `recall.select` chooses them."""
    if prompt not in known:
        known[prompt] = [] if chatter.why_skipped(prompt) else _searched(vault, prompt)
    return known[prompt]


def _searched(vault: Vault, prompt: str) -> list[str]:
    most = max(1, vault.config.prompt_skills)
    for text_only in (False, True):
        least = floor.for_skills(vault, text_only=text_only)
        if least is None:
            return []
        asked = Query(prompt, most, min_score=least, text_only=text_only, for_agent=True)
        results = query.skills(vault, asked)
        if text_only or not results.text_only:
            break
    return [hit.title for hit in results.hits if not hit.withheld]
