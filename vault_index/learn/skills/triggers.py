"""Whether the prompts that lessons carry find the skill that was built of them.

Each is searched as a hook does: the skills above their floor, as many as a prompt may get. A prompt of
`fires_on` is right with any skill that its lesson is in, one of `silent_on` without this one.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from vault_index.hotpath import chatter
from vault_index.learn.skills import build, cluster
from vault_index.learn.skills.cluster import PREFIX
from vault_index.search import floor
from vault_index.search.query import Query

if TYPE_CHECKING:
    from vault_index.vault import Vault


def rates(vault: Vault, tags: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Return for each built skill, or those of these tags, how many of its prompts do right.

    As JSON values: `fires` of `fires_on`, `silent` of `silent_on`, and the prompts that fail. The
    index must have the skills. Raises IndexStateError without one.
    """
    built = build.existing(vault)
    clusters = {each.tag: each for each in cluster.collect(vault, built)}
    holders: dict[str, set[str]] = {}  # of a lesson: the skills that it is in
    for tag, one in built.items():
        for id in one.lineage.lessons:
            holders.setdefault(id, set()).add(PREFIX + tag)

    @cache
    def suggested(prompt: str) -> frozenset[str]:
        return frozenset() if chatter.why_skipped(prompt) else frozenset(_search(vault, prompt))

    answers = []
    for tag in [tag for tag in built if not tags or tag in tags]:
        name = PREFIX + tag
        there = clusters[tag].patterns if tag in clusters else ()
        patterns = [each for each in there if each.id in built[tag].lineage.lessons]
        fires = [(each.id, prompt) for each in patterns for prompt in each.fires_on]
        silent = [prompt for each in patterns for prompt in each.silent_on]
        missed = [prompt for id, prompt in fires if not holders[id] & suggested(prompt)]
        wrong = [prompt for prompt in silent if name in suggested(prompt)]
        answer: dict[str, Any] = {"tag": tag, "name": name}
        answer |= {"fires_on": len(fires), "fires": len(fires) - len(missed)}
        answer |= {"silent_on": len(silent), "silent": len(silent) - len(wrong)}
        answers.append({**answer, "missed": missed, "wrong": wrong})
    return answers


def _search(vault: Vault, prompt: str) -> list[str]:
    """Return the names of the skills that a prompt gets, as `recall.select` chooses them."""
    asked = Query(prompt, max(1, vault.config.prompt_skills), for_agent=True)
    results = floor.skills_above(vault, asked)
    return [hit.title for hit in results.hits if not hit.withheld]
