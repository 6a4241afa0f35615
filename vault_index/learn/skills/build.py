"""Building skills: `skills/learned-<tag>/` of the vault, two files each.

A skill that says the same as its lessons is not touched, so its uses and commit are those of its last
change and a second build writes nothing. Files that somebody changed are kept and reported; with
`force` they are set aside in the same folder, as `SKILL.edited.md`, and written again. A skill that
was built once follows its lessons also when they become fewer; it is never deleted.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vault_index import check, files, git
from vault_index.errors import GitError, VaultError
from vault_index.learn.skills import behind, cluster, render
from vault_index.learn.skills.behind import FOLDER, Existing
from vault_index.learn.skills.cluster import Cluster
from vault_index.learn.skills.render import REFERENCE, Files, Templates
from vault_index.skill import FILE

if TYPE_CHECKING:
    from vault_index.vault import Vault

# of a skill after a build
NEW, CHANGED, UNCHANGED, EDITED, GONE, SKIPPED, FAILED = (
    "new", "changed", "unchanged", "edited", "gone", "skipped", "failed",
)  # fmt: skip
WRITTEN = (NEW, CHANGED)


@dataclass(frozen=True, slots=True)
class Built:
    """A skill after a build. `left_out` are lessons that it must not repeat, with the reason.

    `aside` are the files that somebody had changed, as they are called now, from the vault's root.
    """

    tag: str
    name: str
    state: str
    why: str = ""
    lessons: int = 0
    left_out: Mapping[str, str] = field(default_factory=dict)
    aside: Sequence[str] = ()

    def as_json(self) -> dict[str, Any]:
        """Return JSON values."""
        return {
            "tag": self.tag,
            "name": self.name,
            "path": f"{FOLDER}/{self.name}/{FILE}",
            "state": self.state,
            "why": self.why,
            "lessons": self.lessons,
            "left_out": dict(self.left_out),
            "aside": list(self.aside),
        }


def build(
    vault: Vault,
    tags: Sequence[str] = (),
    *,
    dry_run: bool = False,
    force: bool = False,
    templates: Templates | None = None,
) -> list[Built]:
    """Build the skills of the clusters that are ready, or of these tags, and return each, by tag.

    A trouble with one skill is its state, and the others are built. Raises VaultError, before anything is
    written, for a tag that has no skill and is not ready.
    """
    existing = behind.existing(vault)
    clusters = {each.tag: each for each in cluster.of(vault, existing)}
    wanted = sorted({*existing, *(tag for tag, each in clusters.items() if each.is_ready)})
    if tags:
        named = [cluster.tag_name(tag) for tag in tags]
        for tag, name in zip(tags, named, strict=True):
            if name not in wanted:
                raise VaultError(_not_ready(tag, clusters.get(name)), _CANDIDATES)
        wanted = sorted(set(named))
    step = _Step(vault, _commit(vault), templates or render.templates(), dry_run, force)
    known: dict[str, str] = {}
    built = []
    for tag in wanted:
        now, before, left_out = clusters.get(tag), existing.get(tag), dict[str, str]()
        if (
            now
            and before
            and before.is_whole
            and not (now.same_as or behind.behind(before.lineage, now))
        ):  # all were checked when it was built
            built.append(Built(tag, now.name, UNCHANGED, lessons=len(now.patterns)))
            continue
        if now:
            now, left_out = cluster.safe(now, known)
        built.append(_build(step, tag, now, before, left_out))
    return built


_CANDIDATES = "see how near each is: `lessons skills candidates`"


@dataclass(frozen=True, slots=True)
class _Step:
    """The inputs that all skills of a build share."""

    vault: Vault
    commit: str
    templates: Templates
    dry_run: bool
    force: bool


def _build(
    step: _Step,
    tag: str,
    now: Cluster | None,
    before: Existing | None,
    left_out: Mapping[str, str],
) -> Built:
    name = cluster.PREFIX + tag
    count = len(now.patterns) if now else 0

    def ended(state: str, why: str = "", aside: Sequence[str] = ()) -> Built:
        return Built(tag, name, state, why, count, left_out, aside)

    if before is None:
        if now is None or not now.is_ready:  # without what it must not repeat
            return ended(SKIPPED, "too little is left of it")
    elif now is None or not now.patterns:
        return ended(GONE, "its lessons are gone: remove its folder")
    elif now.same_as:
        return ended(SKIPPED, f"it has the lessons of {cluster.PREFIX}{now.same_as}: remove one")
    assert now is not None
    try:
        made = render.files_of(now, step.commit, step.templates)
        _refuse_unsafe(name, made)
        late = behind.behind(before.lineage, now) if before else ""
        if before and before.is_edited and not _is_cut_short(before, made):
            if not step.force:
                return ended(EDITED, "; ".join(filter(None, [late, _KEPT])))
        elif before and before.is_whole and not late:
            return ended(UNCHANGED)
        state = CHANGED if before else NEW
        return ended(state, aside=[] if step.dry_run else _write(step, name, made, before))
    except _Foreign as error:
        return ended(EDITED, f"{error.message}; {_KEPT}")
    except VaultError as error:
        return ended(FAILED, error.message)


_KEPT = "kept as it is; `--force` sets it aside and builds it"


class _Foreign(VaultError):
    """Files in the place of a new skill that were not built here."""


def _refuse_unsafe(name: str, made: Files) -> None:
    """Raise VaultError if hooks would withhold the skill, whatever each lesson of it says alone."""
    why = check.withheld(f"{FOLDER}/{name}/{FILE}", made.skill, is_lesson=False).why
    if why:
        raise VaultError(f"it would be withheld: {why}")


def _is_cut_short(before: Existing, made: Files) -> bool:
    """Whether a build ended between the two files: the reference is the new one already."""
    return before.lineage.is_as_built and before.reference == made.reference


def _write(step: _Step, name: str, made: Files, before: Existing | None) -> list[str]:
    """Write the files of a skill, SKILL.md last. Return what was set aside.

    Raises WriteError, and _Foreign for files of somebody else.
    """
    root = step.vault.root
    folder = root / FOLDER / name
    files.refuse_links(folder, root)
    files.refuse_other_repository(folder, root)
    aside: list[str] = []
    for file, data in ((REFERENCE, made.reference), (FILE, made.skill)):
        there = files.read_if_any(folder / file)
        if there == data:
            continue
        if there is not None and not _is_ours(file, there, before):
            if not step.force:
                raise _Foreign(f"{FOLDER}/{name}/{file} was not built here")
            aside.append(_set_aside(root, folder / file, there))
        files.put_file(folder / file, data, expected=there, within=root)
    return aside


def _is_ours(file: str, there: bytes, before: Existing | None) -> bool:
    """Whether a file that is about to be replaced is as it was built."""
    if before is None:
        return False
    if file == FILE:
        return before.lineage.is_as_built and there == before.skill
    return there == before.reference and not _is_edited_reference(before)


def _is_edited_reference(before: Existing) -> bool:
    from_build = before.lineage.reference
    return before.reference is not None and render.digest(before.reference) != from_build


def _set_aside(root: Path, file: Path, data: bytes) -> str:
    """Keep what somebody wrote under a free name beside it; return that, from the vault's root."""
    for name in _names_aside(file):
        if files.create_file(file.with_name(name), data, within=root):
            return file.with_name(name).relative_to(root).as_posix()
    raise AssertionError


def _names_aside(file: Path) -> Iterator[str]:
    """Yield the names that a file may be kept under: `SKILL.edited.md`, `SKILL.edited-2.md`..."""
    yield f"{file.stem}.edited{file.suffix}"
    for number in itertools.count(2):
        yield f"{file.stem}.edited-{number}{file.suffix}"


def _not_ready(tag: str, named: Cluster | None) -> str:
    if named is None:
        return f"no accepted pattern has the tag {tag!r}"
    if named.same_as:
        return f"{tag!r} has the same lessons as {named.same_as!r}"
    return (
        f"{tag!r} is not ready: {len(named.patterns)}/{named.least_lessons} lessons, confidence"
        f" {named.confidence:.2f}/{named.least_confidence}, {named.uses}/{named.least_uses} uses"
    )


def _commit(vault: Vault) -> str:
    try:
        return git.head(vault.root) or ""
    except GitError:
        return ""
