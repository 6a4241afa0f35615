"""Building skills: `skills/learned-<tag>/` of the vault, two files each, and what is behind.

A skill that says the same as its lessons is not touched, so its uses and commit are those of its last
change and a second build writes nothing. Files that somebody changed are kept and reported; with
`force` they are set aside in the same folder, as `SKILL.edited.md`, and written again. A skill that
was built once follows its lessons also when they become fewer; it is never deleted.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from vault_index import check, files, git
from vault_index.check.finding import WARNING, Finding
from vault_index.errors import GitError, VaultError
from vault_index.hotpath import chatter
from vault_index.learn.skills import cluster, render
from vault_index.learn.skills.cluster import PREFIX, Cluster
from vault_index.learn.skills.render import REFERENCE, Files, Lineage, Templates
from vault_index.search import floor
from vault_index.search.query import Query
from vault_index.skill import FILE

if TYPE_CHECKING:
    from vault_index.vault import Vault

FOLDER = "skills"  # of a vault
BEHIND, EDITED_RULE = "skill-behind", "skill-edited"  # rules of findings
MAX_IDS = 3  # of lessons in a message
# the state of a skill after a build
NEW, CHANGED, UNCHANGED = "new", "changed", "unchanged"
EDITED, GONE, SKIPPED, FAILED = "edited", "gone", "skipped", "failed"
WRITTEN = (NEW, CHANGED)
_KEPT = "kept as it is; `--force` sets it aside and builds it"
_CANDIDATES = "see how near each is: `lessons skills candidates`"


@dataclass(frozen=True, slots=True)
class Existing:
    """The folder of a skill that was built, and its files as they are; None for one that is gone."""

    folder: Path
    lineage: Lineage
    skill: bytes
    reference: bytes | None

    def is_as_built(self, file: str) -> bool:
        """Whether a file is as it was built; one that was deleted loses nothing."""
        if file == FILE:
            return self.lineage.is_as_built
        return self.reference is None or render.digest(self.reference) == self.lineage.reference

    @property
    def is_edited(self) -> bool:
        """Whether a file is not as it was built."""
        return not (self.is_as_built(FILE) and self.is_as_built(REFERENCE))

    @property
    def is_whole(self) -> bool:
        """Whether both files are there, as they were built."""
        return self.reference is not None and not self.is_edited

    def is_cut_short(self, made: Files) -> bool:
        """Whether a build ended between the two files: the reference is the new one already."""
        return self.lineage.is_as_built and self.reference == made.reference

    def behind(self, now: Cluster | None) -> str:
        """Return how the skill is behind its lessons; "" if it is not."""
        if now is None or not now.patterns:
            why = "its lessons are gone, or are no patterns with this tag any more"
            return f"{why}: remove its folder"
        then, digests = self.lineage.lessons, {each.id: each.digest for each in now.patterns}
        groups = {
            "changed": [id for id in digests if id in then and then[id] != digests[id]],
            "new": sorted(digests.keys() - then.keys()),
            "gone": sorted(then.keys() - digests.keys()),
        }
        said = []
        for word, ids in groups.items():
            some = ", ".join([*ids[:MAX_IDS], *(["..."] if len(ids) > MAX_IDS else [])])
            said += [f"{len(ids)} {word} ({some})"] if ids else []
        return f"it is behind its lessons: {', '.join(said)}" if said else ""


def existing(vault: Vault) -> dict[str, Existing]:
    """Return the skills that were built, by tag. Links are not followed."""
    return built_in(vault.root / FOLDER)


def built_in(top: Path) -> dict[str, Existing]:
    """Return the built skills of a folder, by tag. Links are not followed."""
    there: dict[str, Existing] = {}
    for folder in [] if top.is_symlink() else sorted(top.glob(f"{PREFIX}*")):
        if folder.is_symlink() or not folder.is_dir():
            continue
        try:
            skill, reference = (files.read_if_any(folder / name) for name in (FILE, REFERENCE))
        except VaultError:  # a link or a pipe: not built here
            continue
        path = f"{FOLDER}/{folder.name}/{FILE}"
        lineage = render.read_lineage(skill, path) if skill else None
        if skill and lineage and PREFIX + lineage.tag == folder.name:
            there[lineage.tag] = Existing(folder, lineage, skill, reference)
    return there


def findings(vault: Vault) -> Iterator[Finding]:
    """Find the skills that are behind their lessons, and those that somebody edited.

    Raises IndexStateError without an index.
    """
    built = existing(vault)
    clusters = {each.tag: each for each in cluster.collect(vault, built)} if built else {}
    for tag, skill in built.items():
        now = clusters.get(tag)
        why = skill.behind(now)
        if why and now:  # what it must not repeat may be all that is new
            now = cluster.safe(now)[0]
            why = skill.behind(now)
        path = f"{FOLDER}/{skill.folder.name}/{FILE}"
        edited = "was changed by hand, so `lessons skills build` keeps it as it is"
        if why:
            also = f"; it {edited}" if skill.is_edited else f": run `lessons skills build {tag}`"
            yield Finding(path, 1, BEHIND, why + also if now else why, WARNING)
        elif skill.is_edited:
            yield Finding(path, 1, EDITED_RULE, edited, WARNING)


@dataclass(frozen=True, slots=True)
class Rates:
    """The number of a built skill's prompts that do right, and those that do wrong."""

    tag: str
    name: str
    fires_on: int
    fires: int
    silent_on: int
    silent: int
    missed: Sequence[str]
    wrong: Sequence[str]


@dataclass(frozen=True, slots=True)
class Built:
    """A skill after a build. `left_out` are lessons that it must not repeat, with the reason.

    `aside` are the files that somebody had changed, as they are called now, from the vault's root.
    """

    tag: str
    name: str
    path: str
    state: str
    why: str = ""
    lessons: int = 0
    left_out: Mapping[str, str] = field(default_factory=dict)
    aside: Sequence[str] = ()
    triggers: Rates | None = None  # of a skill that was written


@dataclass(frozen=True, slots=True)
class _Build:
    """The parts that all skills of a build share."""

    vault: Vault
    commit: str
    templates: Templates
    dry_run: bool
    force: bool


def build(
    vault: Vault,
    tags: Sequence[str] = (),
    *,
    dry_run: bool = False,
    force: bool = False,
    templates: Templates | None = None,
) -> list[Built]:
    """Build the skills of the clusters that are ready, or of these tags, and return each, by tag.

    A skill that fails has that as its state, and the others are built. Raises VaultError, before
    anything is written, for a tag that has no skill and is not ready.
    """
    there = existing(vault)
    clusters = {each.tag: each for each in cluster.collect(vault, there)}
    wanted = {*there, *(tag for tag, each in clusters.items() if each.is_ready)}
    named = {cluster.tag_name(tag): tag for tag in tags}
    for name, tag in named.items():
        if name not in wanted:
            raise VaultError(_not_ready(tag, clusters.get(name)), _CANDIDATES)
    commit = ""
    with suppress(GitError):
        commit = git.head(vault.root) or ""
    making = _Build(vault, commit, templates or render.templates(), dry_run, force)
    built = []
    for tag in sorted(named or wanted):
        names = (tag, PREFIX + tag, f"{FOLDER}/{PREFIX}{tag}/{FILE}")
        now, before, left_out = clusters.get(tag), there.get(tag), dict[str, str]()
        if now and before and before.is_whole and not (now.same_as or before.behind(now)):
            # all its lessons were checked when it was built
            built.append(Built(*names, UNCHANGED, lessons=len(now.patterns)))
            continue
        if now:
            now, left_out = cluster.safe(now)
        state, why, aside = _made(making, now, before)
        count = len(now.patterns) if now else 0
        built.append(Built(*names, state, why, count, left_out, aside))
    return built


def _made(
    making: _Build, now: Cluster | None, before: Existing | None
) -> tuple[str, str, Sequence[str]]:
    """Build a skill; return its state, why, and the files that were set aside."""
    if before is None:
        if now is None or not now.is_ready:  # without what it must not repeat
            return SKIPPED, "too little is left of it", ()
    elif now is None or not now.patterns:
        return GONE, "its lessons are gone: remove its folder", ()
    elif now.same_as:
        return SKIPPED, f"it has the lessons of {PREFIX}{now.same_as}: remove one", ()
    try:
        made = render.files_of(now, making.commit, making.templates)
        # hooks may withhold it as a whole, whatever each lesson of it says alone
        withheld = check.withheld(f"{FOLDER}/{now.name}/{FILE}", made.skill, is_lesson=False).why
        if withheld:
            return FAILED, f"it would be withheld: {withheld}", ()
        late = before.behind(now) if before else ""
        if before and before.is_edited and not before.is_cut_short(made):
            if not making.force:
                return EDITED, "; ".join(filter(None, [late, _KEPT])), ()
        elif before and before.is_whole and not late:
            return UNCHANGED, "", ()
        aside = [] if making.dry_run else _write(making, now.name, made, before)
    except _Foreign as error:
        return EDITED, f"{error.message}; {_KEPT}", ()
    except VaultError as error:
        return FAILED, error.message, ()
    return CHANGED if before else NEW, "", aside


class _Foreign(VaultError):
    """Files in the place of a new skill that were not built here."""


def _write(making: _Build, name: str, made: Files, before: Existing | None) -> list[str]:
    """Write the files of a skill, SKILL.md last. Return what was set aside.

    Raises WriteError, and _Foreign for files of somebody else.
    """
    root = making.vault.root
    folder = root / FOLDER / name
    files.refuse_links(folder, root)
    files.refuse_other_repository(folder, root)
    was = {FILE: before.skill, REFERENCE: before.reference} if before else {}
    aside: list[str] = []
    for file, data in ((REFERENCE, made.reference), (FILE, made.skill)):
        there = files.read_if_any(folder / file)
        if there == data:
            continue
        is_ours = before and there == was[file] and before.is_as_built(file)
        if there is not None and not is_ours:
            if not making.force:
                raise _Foreign(f"{FOLDER}/{name}/{file} was not built here")
            aside.append(_set_aside(root, folder / file, there))
        files.put_file(folder / file, data, expected=there, within=root)
    return aside


def _set_aside(root: Path, file: Path, data: bytes) -> str:
    """Keep what somebody wrote under a free name beside it; return that, from the vault's root."""
    endings = itertools.chain(["edited"], (f"edited-{number}" for number in itertools.count(2)))
    places = (file.with_name(f"{file.stem}.{ending}{file.suffix}") for ending in endings)
    free = next(place for place in places if files.create_file(place, data, within=root))
    return free.relative_to(root).as_posix()


def _not_ready(tag: str, named: Cluster | None) -> str:
    if named is None:
        return f"no accepted pattern has the tag {tag!r}"
    if named.same_as:
        return f"{tag!r} has the same lessons as {named.same_as!r}"
    least, lessons = named.least, len(named.patterns)
    return (
        f"{tag!r} is not ready: {lessons}/{least.least_lessons} lessons, confidence"
        f" {named.confidence:.2f}/{least.least_confidence}, {named.uses}/{least.least_uses} uses"
    )


# The prompts that lessons carry: whether they find the skill that was built of these. Each is searched
# as a hook does. One of `fires_on` is right with any skill that its lesson is in, one of `silent_on`
# without this one.


def rates(vault: Vault, tags: Sequence[str] = ()) -> Iterator[Rates]:
    """Yield for each built skill, or those of these tags, how many of its prompts do right.

    The index must have the skills. Raises IndexStateError without one.
    """
    built = existing(vault)
    clusters = {each.tag: each for each in cluster.collect(vault, built)}
    holders: dict[str, set[str]] = {}  # of a lesson: the skills that it is in
    for tag, skill in built.items():
        for id in skill.lineage.lessons:
            holders.setdefault(id, set()).add(PREFIX + tag)

    @cache
    def suggested(prompt: str) -> frozenset[str]:
        if chatter.why_skipped(prompt):
            return frozenset()
        asked = Query(prompt, max(1, vault.config.prompt_skills), for_agent=True)
        hits = floor.skills_above(vault, asked).hits
        return frozenset(hit.title for hit in hits if not hit.withheld)

    for tag in [tag for tag in built if not tags or tag in tags]:
        name = PREFIX + tag
        there = clusters[tag].patterns if tag in clusters else ()
        patterns = [each for each in there if each.id in built[tag].lineage.lessons]
        fires = [(each.id, prompt) for each in patterns for prompt in each.fires_on]
        silent = [prompt for each in patterns for prompt in each.silent_on]
        missed = [prompt for id, prompt in fires if not holders[id] & suggested(prompt)]
        wrong = [prompt for prompt in silent if name in suggested(prompt)]
        fired, quiet = len(fires) - len(missed), len(silent) - len(wrong)
        yield Rates(tag, name, len(fires), fired, len(silent), quiet, missed, wrong)
