"""SKILL.md files of the vault, the user and projects, as rows of the table `skills`.

A skill is found by its name and description, as an agent chooses it. A skill built from lessons also
has a row for each of their prompts: with these rows 24 of 24 prompts find their skill, without 11.
Prompts that it is not for have rows, too. There are few, so any change writes the whole table.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from stat import S_ISREG

from vault_index import files, state
from vault_index.embed.cache import VectorCache
from vault_index.errors import LessonError, WriteError
from vault_index.hotpath import index_files
from vault_index.index import rows
from vault_index.lesson import passages
from vault_index.lesson.file import hash_of
from vault_index.lesson.skill import FILE, MAX_BYTES, Skill, read
from vault_index.store.lance import Table
from vault_index.store.manifest import Manifest, Problem
from vault_index.store.schema import SKILLS, SkillRow
from vault_index.store.sync import fill
from vault_index.text.words import split_unspaced
from vault_index.vault import Vault

VAULT, USER, PROJECT = "vault", "user", "project"
FOR, NOT_FOR = "for", "not-for"  # rows of prompts, "" for a skill's own
MAX_PROJECTS = 50  # whose skills are known, the latest


def folders(vault: Vault) -> dict[Path, str]:
    """Return the folders whose skills are known in a vault, with their scopes."""
    places = {vault.root / "skills": VAULT, user_folder(): USER}
    return places | dict.fromkeys(_projects(vault), PROJECT)


def project_folder(start: Path) -> Path | None:
    """Return the nearest `.claude/skills` from a folder upwards, except the user's own."""
    user = user_folder()
    for folder in (start, *start.parents):
        skills = folder / ".claude" / "skills"
        if skills == user or folder == folder.parent:
            return None
        if skills.is_dir():
            return skills
    return None


def user_folder() -> Path:
    """Return the folder of the user's own skills."""
    return Path(os.environ.get("CLAUDE_CONFIG_DIR") or Path.home() / ".claude") / "skills"


def register(vault: Vault, project: Path) -> bool:
    """Note the skills of a project, to be indexed from now on; True if it has some and is new.

    `project` is any folder in it. Never raises: where nothing can be written none is noted.
    """
    folder = project_folder(project)
    others = _projects(vault)
    if folder is None or folder in others or not str(folder).isprintable():
        return False
    listed = [str(path) for path in [folder, *others][:MAX_PROJECTS]]
    try:
        state.keep_fact(vault.config.home, _fact(vault), listed)
    except WriteError:
        return False
    return True


def _fact(vault: Vault) -> str:
    return f"projects with skills at {state.vault_of(vault.root)}"


def stamps(vault: Vault) -> dict[str, list[int]]:
    """Return the stamps of the skills on disk."""
    return {path: list(stamp) for path, (stamp, _) in _files(vault).items()}


def refresh(
    vault: Vault, lessons: Table, manifest: Manifest, cache: VectorCache
) -> tuple[Manifest, int | None]:
    """Make the table follow the files. Return the number of skills, None if nothing changed.

    The caller holds the index's lock and saves the manifest. Raises WriteError, EmbedderError.
    """
    listed = _files(vault)
    trusted = {
        path: [] if files.is_racy(stamp) else list(stamp) for path, (stamp, _) in listed.items()
    }
    read_skills = list(_read_all(listed))
    skills = [pair for skill in read_skills for pair in _rows(vault, skill)]
    digest = hash_of(*(f"{row['id']} {row['file_hash']}" for row, _ in skills))
    after = replace(manifest, skills=trusted, skills_hash=digest)
    table = Table(lessons.index, lessons.dimension, SKILLS)
    if digest == manifest.skills_hash or not (skills or table.exists()):
        return after, None
    skill_rows = [row for row, _ in skills]
    embedder = vault.embedder if table.dimension else None
    make = None if embedder is None else partial(rows.embed_titled, embedder)
    titled = {row["content_hash"]: content for row, content in skills}
    vectors, error = cache.get_or_known(make, titled)
    if error is None or not _has(table, skill_rows):
        fill(table, skill_rows, [vectors.get(row["content_hash"]) for row in skill_rows])
    if error:  # the next pass tries again
        after = replace(after, skills_hash="")
    return after, len(read_skills)


def _has(table: Table, wanted: Sequence[SkillRow]) -> bool:
    """Whether a table has these skills, with vectors or without."""
    present = table.rows(("id", "file_hash")) if table.exists() else []
    return sorted((row["id"], row["file_hash"]) for row in present) == sorted(
        (row["id"], row["file_hash"]) for row in wanted
    )


def visible(vault: Vault, project: Path | None) -> set[str]:
    """Return the folders whose skills are seen from a project: the `folder` of their rows."""
    folder = project_folder(project) if project else None
    return {str(vault.root / "skills"), str(user_folder()), *([str(folder)] if folder else [])}


def problems(vault: Vault) -> list[Problem]:
    """List the SKILL.md files that cannot be used, with the reason."""
    return [each for each, _ in _read_each(_files(vault)) if isinstance(each, Problem)]


def _read_each(
    listed: dict[str, tuple[files.Stamp, str]],
) -> Iterator[tuple[Skill | Problem, bytes]]:
    """Yield each skill with its bytes, or why it cannot be used."""
    for path, ((size, *_), scope) in listed.items():
        data = b""
        try:
            # of one that is too large enough to refuse it
            data = index_files.read(path, min(size, MAX_BYTES) + 1, follow=scope == USER)
            yield read(data, path, scope), data
        except LessonError as error:
            yield Problem(path, error.line, error.message.removeprefix(f"{path}: ")), data
        except OSError as error:
            yield Problem(path, 1, f"cannot be read: {error.strerror}"), data


def _files(vault: Vault) -> dict[str, tuple[files.Stamp, str]]:
    """Return the stamp and scope of each SKILL.md. Only the user's own may be links."""
    listed: dict[str, tuple[files.Stamp, str]] = {}
    for folder, scope in folders(vault).items():
        follow = scope == USER
        try:
            with os.scandir(folder) as entries:
                names = sorted(e.name for e in entries if e.is_dir(follow_symlinks=follow))
        except OSError:
            continue
        for name in names:
            file = folder / name / FILE
            try:
                str(file).encode()
                stat = file.stat(follow_symlinks=follow)
            except (OSError, UnicodeEncodeError):  # such a path is no text for a table
                continue
            if S_ISREG(stat.st_mode):
                listed[str(file)] = (files.stamp_of(stat), scope)
    return listed


def _read_all(listed: dict[str, tuple[files.Stamp, str]]) -> Iterator[Skill]:
    from vault_index import check  # compiles its patterns: only where a skill changed

    for skill, data in _read_each(listed):
        if isinstance(skill, Problem):
            continue
        # the agent has loaded a project's and the user's itself
        in_vault = skill.scope == VAULT
        why = check.withheld(skill.path, data, is_lesson=False).why if in_vault else ""
        yield replace(skill, withheld=why)


def prompt_kind(id: str) -> str:
    """Return the kind of a row, by its id: `FOR` of a prompt that the skill is for, else `NOT_FOR`."""
    return id.partition("\0")[2].partition(" ")[0]


def _rows(vault: Vault, skill: Skill) -> Iterator[tuple[SkillRow, tuple[str, str]]]:
    """Yield the row of a skill, and one for each of its prompts, each with what is embedded of it."""
    words = skill.name.replace("-", " ")
    text = " ".join(filter(None, [skill.description, skill.when_to_use]))
    file = Path(skill.path)
    whole = SkillRow(
        id=f"{skill.scope}:{skill.path}",
        name=skill.name,
        scope=skill.scope,
        folder=str(file.parent.parent),
        path=str(file.relative_to(vault.root)) if skill.scope == VAULT else skill.path,
        text=text,
        categories=list(skill.categories),
        fulltext=split_unspaced(f"{words}\n{words}\n{text}"),
        suggestible=skill.by_model,
        file_hash=skill.file_hash,
        withheld=skill.withheld,
        content_hash=hash_of(words, text),
    )
    yield whole, (words, passages.prose(text) or words)
    for kind, prompts in ((FOR, skill.prompts), (NOT_FOR, skill.silent)):
        for number, prompt in enumerate(prompts):
            # no path has the character that sets their ids apart
            id, content = f"{whole['id']}\0{kind} {number}", hash_of(prompt)
            yield whole | SkillRow(id=id, fulltext="", content_hash=content), (prompt, prompt)


def _projects(vault: Vault) -> list[Path]:
    listed = state.fact(vault.config.home, _fact(vault)) or ()
    return [Path(each) for each in listed if Path(each).is_dir()]
