"""Which skills of a vault were built here, and whether they still say what their lessons say."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vault_index.check.finding import WARNING, Finding
from vault_index.errors import VaultError
from vault_index.files import read_if_any
from vault_index.hotpath import chatter
from vault_index.learn.skills import cluster, render
from vault_index.learn.skills.cluster import PREFIX, Cluster, Pattern
from vault_index.learn.skills.render import REFERENCE, Lineage
from vault_index.search import floor, query
from vault_index.search.query import Query
from vault_index.skill import FILE

if TYPE_CHECKING:
    from vault_index.vault import Vault

FOLDER = "skills"  # of a vault
BEHIND, EDITED = "skill-behind", "skill-edited"  # rules of findings
SHOWN = 3  # ids of lessons in a message


@dataclass(frozen=True)
class Existing:
    """The folder of a skill that was built, and its files as they are; None for one that is gone."""

    folder: Path
    lineage: Lineage
    skill: bytes
    reference: bytes | None

    @cached_property
    def is_edited(self) -> bool:
        """Whether a file is not as it was built; one that was deleted loses nothing."""
        same = self.reference is None or render.digest(self.reference) == self.lineage.reference
        return not (self.lineage.is_as_built and same)

    @property
    def is_whole(self) -> bool:
        """Whether both files are there, as they were built."""
        return self.reference is not None and not self.is_edited


def existing(vault: Vault) -> dict[str, Existing]:
    """Return the skills that were built, by tag. Links are not followed."""
    folder = vault.root / FOLDER
    found: dict[str, Existing] = {}
    if folder.is_symlink():
        return found
    try:
        with os.scandir(folder) as entries:
            names = sorted(
                entry.name
                for entry in entries
                if entry.name.startswith(PREFIX) and entry.is_dir(follow_symlinks=False)
            )
    except OSError:
        return found
    for name in names:
        try:
            skill = read_if_any(folder / name / FILE)
            reference = read_if_any(folder / name / REFERENCE)
        except VaultError:  # a link or a pipe: not built here
            continue
        read = render.read_lineage(skill, f"{FOLDER}/{name}/{FILE}") if skill else None
        if skill and read and PREFIX + read.tag == name:
            found[read.tag] = Existing(folder / name, read, skill, reference)
    return found


def findings(vault: Vault) -> Iterator[Finding]:
    """Find the skills that are behind their lessons, and those that somebody edited.

    Raises IndexStateError without an index.
    """
    built = existing(vault)
    if not built:
        return
    clusters = {each.tag: each for each in cluster.of(vault, built)}
    known: dict[str, str] = {}
    for tag, one in built.items():
        now = clusters.get(tag)
        why = behind(one.lineage, now)
        if why and now:  # what it must not repeat may be all that is new
            now = cluster.safe(now, known)[0]
            why = behind(one.lineage, now)
        path = f"{FOLDER}/{one.folder.name}/{FILE}"
        edited = "was changed by hand, so `lessons skills build` keeps it as it is"
        if why:
            also = f"; it {edited}" if one.is_edited else f": run `lessons skills build {tag}`"
            also = "" if now is None else also
            yield Finding(path, 1, BEHIND, why + also, WARNING)
        elif one.is_edited:
            yield Finding(path, 1, EDITED, edited, WARNING)


def behind(built: Lineage, now: Cluster | None) -> str:
    """Return how a skill is behind its lessons; "" if it is not."""
    if now is None or not now.patterns:
        return "its lessons are gone, or are no patterns with this tag any more: remove its folder"
    digests = {each.id: each.digest for each in now.patterns}
    changed = [id for id in digests if id in built.lessons and built.lessons[id] != digests[id]]
    groups = {
        "changed": changed,
        "new": sorted(digests.keys() - built.lessons.keys()),
        "gone": sorted(built.lessons.keys() - digests.keys()),
    }
    said = [f"{len(ids)} {word} ({_some(ids)})" for word, ids in groups.items() if ids]
    return f"it is behind its lessons: {', '.join(said)}" if said else ""


def _some(ids: list[str]) -> str:
    return ", ".join(ids[:SHOWN]) + (", ..." if len(ids) > SHOWN else "")


# Whether the prompts that lessons carry find the skill that was built of them.
#
# Each is searched as a hook does: the skills above their floor, as many as a prompt may get. A prompt of
# `fires_on` is right with any skill that its lesson is in, one of `silent_on` without this one.


def rates(vault: Vault, tags: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Return for each built skill, or those of these tags, how many of its prompts do right.

    As JSON values: `fires` of `fires_on`, `silent` of `silent_on`, and the prompts that fail. The
    index must have the skills. Raises IndexStateError without one.
    """
    built = existing(vault)
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
