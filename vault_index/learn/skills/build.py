"""Building skills, `skills/learned-<tag>/` of the vault, two files each, and copying them to agents.

A file holds its hash as it was built. One that has it still is written again when its lessons change;
one that somebody changed is kept until its folder is removed. Which lessons are new is in the difference
that git shows. A skill that was built once follows its lessons also when they become fewer; it is never
deleted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from vault_index import check, files
from vault_index.check.finding import WARNING, Finding, Trouble, to_edit
from vault_index.errors import VaultError
from vault_index.index import skills
from vault_index.learn.skills import cluster, render
from vault_index.learn.skills.cluster import PREFIX, Cluster
from vault_index.learn.skills.render import REFERENCE
from vault_index.lesson.skill import FILE
from vault_index.retrieval import query
from vault_index.store import injections
from vault_index.text.words import count

if TYPE_CHECKING:
    from vault_index.vault import Vault

FOLDER = "skills"  # of a vault
BEHIND, EDITED_RULE = "skill-behind", "skill-edited"  # rules of findings
# the state of a skill after a build
NEW, CHANGED, UNCHANGED = "new", "changed", "unchanged"
EDITED, GONE, SKIPPED, FAILED = "edited", "gone", "skipped", "failed"
_NO_LESSONS = "its lessons are gone, or have another type or tag: remove its folder"
_KEPT = "it was changed by hand, so it is kept: remove its folder to have it built again"
_INSTEAD = "write one with your agent: `/lessons:skill TOPIC`"


@dataclass(frozen=True, slots=True)
class Existing:
    """The folder of a skill that was built, and its files as they are now, by name."""

    folder: Path
    files: Mapping[str, bytes]

    @property
    def is_edited(self) -> bool:
        return not all(map(render.is_as_built, self.files.values()))


def built_in(top: Path) -> dict[str, Existing]:
    """Return the built skills of a folder, by tag. Links are not followed."""
    found: dict[str, Existing] = {}
    for folder in [] if top.is_symlink() else sorted(top.glob(f"{PREFIX}*")):
        if folder.is_symlink() or not folder.is_dir():
            continue
        try:
            read = {name: files.read_if_any(folder / name) for name in (REFERENCE, FILE)}
        except VaultError:  # a link or a pipe: not built here
            continue
        tag = folder.name.removeprefix(PREFIX)
        if render.MARK in (read[FILE] or b"") and tag == cluster.tag_name(tag):
            present = {name: data for name, data in read.items() if data is not None}
            found[tag] = Existing(folder, present)
    return found


@dataclass(frozen=True, slots=True)
class SkillsStatus:
    """The skills for `lessons status`: None without an index, and the tags that are ready for one."""

    skills: int | None = None
    skills_ready: Sequence[str] = ()


def state(vault: Vault) -> SkillsStatus:
    """Count the skills, and look for tags that are ready for one."""
    built = built_in(vault.root / FOLDER)
    with suppress(VaultError):
        clusters = cluster.collect(vault, built)
        ready = [each.tag for each in clusters if each.is_ready and each.tag not in built]
        return SkillsStatus(query.count_skills(vault), ready)
    return SkillsStatus()


def troubles(vault: Vault) -> Iterator[Trouble]:
    """Look for skills that cannot be used."""
    for problem in skills.problems(vault):
        what = f"{problem.path}:{problem.line}: {problem.message}"
        yield Trouble("skills", what, to_edit(Path(problem.path)))


@dataclass(frozen=True, slots=True)
class Built:
    """A skill after a build. `left_out` are lessons that it must not repeat, with the reason.

    `uses` is how often agents on this machine were given its lessons, `last_used` when they were last:
    ISO 8601, "" for never. No file has them: they would differ on each machine.
    """

    tag: str
    name: str
    path: str
    state: str
    why: str = ""
    lessons: int = 0
    confidence: float = 0.0
    uses: int = 0
    last_used: str = ""
    left_out: Mapping[str, str] = field(default_factory=dict)


def build(vault: Vault, tags: Sequence[str] = (), *, dry_run: bool = False) -> list[Built]:
    """Build the skills of the clusters that are ready, or of these tags, and return each, by tag.

    A skill that fails has that as its state, and the others are built. Raises VaultError, before
    anything is written, for a tag that has no skill and is not ready.
    """
    before = built_in(vault.root / FOLDER)
    clusters = {each.tag: each for each in cluster.collect(vault, before)}
    wanted = {*before, *(tag for tag, each in clusters.items() if each.is_ready or each.left_out)}
    named = {cluster.tag_name(tag): tag for tag in tags}
    for name, tag in named.items():
        if name not in wanted:
            has = _has(clusters.get(name) or Cluster(name, ()))
            raise VaultError(f"{tag!r} is not ready for a skill: {has}", _INSTEAD)
    built = []
    for tag in sorted(named or wanted):
        now = clusters.get(tag) or Cluster(tag, ())
        try:
            state, why = _make(vault, now, tag in before, dry_run)
        except VaultError as error:
            state, why = FAILED, error.message
        built.append(_built(vault, now, state, why))
    return built


def _has(now: Cluster) -> str:
    of = count(len(now.patterns), "lesson")
    return f"{of}, confidence {now.confidence:.1f}, uses {now.uses}"


def _built(vault: Vault, now: Cluster, state: str, why: str) -> Built:
    ids = [each.id for each in now.patterns]
    return Built(
        tag=now.tag,
        name=now.name,
        path=f"{FOLDER}/{now.name}/{FILE}",
        state=state,
        why=why,
        lessons=len(ids),
        confidence=round(now.confidence, 1),
        uses=now.uses,
        last_used=max(
            (injections.last_use(vault.config.home, vault.root, id) for id in ids), default=""
        ),
        left_out=now.left_out,
    )


def _make(vault: Vault, now: Cluster, is_built: bool, dry_run: bool) -> tuple[str, str]:
    """Build a skill; return its state, and why. Raises VaultError."""
    if not is_built and not now.is_ready:
        return SKIPPED, f"too little is left of it: {_has(now)}"
    if not now.patterns:
        return GONE, _NO_LESSONS
    contents, folder = render.files_of(now), vault.root / FOLDER / now.name
    # hooks may withhold it as a whole, whatever each lesson of it says alone
    withheld = check.withheld(f"{FOLDER}/{now.name}/{FILE}", contents[FILE], is_lesson=False).why
    if withheld:
        return FAILED, f"it would be withheld: {withheld}"
    files.refuse_other_repository(folder, vault.root)
    state = _put(vault.root, folder, contents, dry_run)
    return state, _KEPT if state == EDITED else ""


def _put(top: Path, folder: Path, contents: Mapping[str, bytes], dry_run: bool = False) -> str:
    """Write the files of a skill, unless somebody changed them; return the state. Raises VaultError."""
    files.refuse_links(folder, top)
    read = {name: files.read_if_any(folder / name) for name in contents}
    present = {name: render.plain(data) for name, data in read.items() if data is not None}
    if present == contents:
        return UNCHANGED
    if any(
        not render.is_as_built(data) and data != contents[name] for name, data in present.items()
    ):
        return EDITED
    for name in () if dry_run else contents:
        if read[name] != contents[name]:
            files.put_file(folder / name, contents[name], expected=read[name], within=top)
    return CHANGED if FILE in present else NEW


def findings(vault: Vault) -> Iterator[Finding]:
    """Find the skills that are behind their lessons, and those that somebody edited.

    Raises IndexStateError without an index.
    """
    tags = list(built_in(vault.root / FOLDER))
    for skill in build(vault, tags, dry_run=True) if tags else ():
        rule = EDITED_RULE if skill.state == EDITED else BEHIND
        why = skill.why or f"it is behind its lessons: run `lessons skills build {skill.tag}`"
        if skill.state != UNCHANGED:
            yield Finding(skill.path, 1, rule, why, WARNING)


KEPT = "kept: it was changed by hand, or comes from elsewhere"
REMOVED = "removed"


def folder_for(project: Path | None) -> Path:
    """Return the folder of Claude Code's skills: a project's, else the user's."""
    return project / ".claude" / "skills" if project else skills.user_folder()


def copy(vault: Vault, top: Path) -> dict[str, str]:
    """Copy the vault's built skills into a folder; return the state of each: new, changed ...

    A copy that somebody changed stays, and so does another skill of that name. Raises WriteError.
    """
    states: dict[str, str] = {}
    for built in built_in(vault.root / FOLDER).values():
        target, contents = top / built.folder.name, built.files
        is_linked = any(each.is_symlink() for each in (target, *map(target.joinpath, contents)))
        copied = {name: render.plain(data) for name, data in contents.items()}
        state = EDITED if is_linked else _put(top, target, copied)
        states[str(target)] = KEPT if state == EDITED else state
    return states


def remove(top: Path) -> dict[str, str]:
    """Remove the copies of built skills from a folder; return the state of each. Raises WriteError."""
    states: dict[str, str] = {}
    for copied in built_in(top).values():
        states[str(copied.folder)] = KEPT if copied.is_edited else REMOVED
        if not copied.is_edited:
            with files.writing(copied.folder):
                for name in copied.files:
                    (copied.folder / name).unlink(missing_ok=True)
                files.remove_empty(copied.folder, top)
    return states
