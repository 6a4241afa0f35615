"""SKILL.md files as rows of the table `skills`: those of the vault, of the user, of projects.

A skill is found by what its name and description say: that is also what an agent chooses by. There
are few, so a change of any makes the whole table anew; their vectors are kept by content.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from stat import S_ISREG
from typing import TYPE_CHECKING

from vault_index import files, lesson, ownership, rows
from vault_index import store as stores
from vault_index.embed.cache import VectorCache
from vault_index.errors import ForeignIndexError, LessonError, WriteError
from vault_index.store import Row, Store

if TYPE_CHECKING:
    from vault_index.embed import Embedder
    from vault_index.manifest import Manifest
    from vault_index.vault import Vault

FILE = "SKILL.md"
VAULT, USER, PROJECT = "vault", "user", "project"
MOST_BYTES = 256 * 1024  # of a SKILL.md; a larger one is no skill
MOST_PROJECTS = 50  # whose skills are known, the latest

_PROJECTS = "projects"
_SILENT = "not for the model"  # a tag: only the user calls it


@dataclass(frozen=True, slots=True)
class Skill:
    """A skill as its SKILL.md tells it. `path` is absolute; `scope` is vault, user or project."""

    name: str
    description: str
    path: str
    scope: str
    when_to_use: str = ""
    by_model: bool = True  # whether an agent may load it by itself
    file_hash: str = ""
    withheld: str = ""  # why hooks do not suggest it: an error in its file


def read(data: bytes, path: str, scope: str) -> Skill | None:
    """Read a SKILL.md; None if it does not parse or does not say what it is for.

    `path` is absolute. Without a `name` the folder's counts, without a `description` the first
    paragraph, as in Claude Code.
    """
    try:
        metadata, body = lesson.split_frontmatter(lesson.decode(data, path), path)
    except LessonError:
        return None
    name = _text(metadata.get("name")) or Path(path).parent.name
    paragraphs = (one.strip() for one in body.replace("\r\n", "\n").split("\n\n"))
    first = next((one for one in paragraphs if one and not one.startswith("#")), "")
    description = _text(metadata.get("description")) or _text(first)
    if not description:
        return None
    hidden = metadata.get("disable-model-invocation") in (True, "true", "yes")
    when = _text(metadata.get("when_to_use"))
    file_hash = lesson.hash_of_file(data)
    return Skill(name[:64], description[:1536], path, scope, when[:1536], not hidden, file_hash)


def project_folder(start: Path) -> Path | None:
    """Give the nearest `.claude/skills` from a folder upwards; the user's own is none of a project."""
    own = user_folder()
    for folder in (start, *start.parents):
        found = folder / ".claude" / "skills"
        if found == own or folder == folder.parent:
            return None
        if found.is_dir():
            return found
    return None


def user_folder() -> Path:
    """Give the folder of the user's own skills."""
    return Path(os.environ.get("CLAUDE_CONFIG_DIR") or Path.home() / ".claude") / "skills"


def folders(vault: Vault) -> dict[Path, str]:
    """Give the folders whose skills are known in a vault, with their scopes."""
    found = {vault.root / "skills": VAULT, user_folder(): USER}
    return found | dict.fromkeys(_projects(vault), PROJECT)


def register(vault: Vault, project: Path) -> bool:
    """Have the skills of a project known from now on; True if there are some and they were not.

    `project` is any folder in it. Never raises: a read-only vault knows none.
    """
    folder = project_folder(project)
    known = _projects(vault)
    if folder is None or folder in known or not str(folder).isprintable():
        return False
    listed = "".join(f"{one}\n" for one in [folder, *known][:MOST_PROJECTS])
    try:
        ownership.claim(vault.index_folder)
        files.replace_file(vault.index_folder / _PROJECTS, listed.encode())
    except (OSError, ForeignIndexError, WriteError):
        return False
    return True


def differ(vault: Vault, known: dict[str, list[int]]) -> bool:
    """Whether the skills on disk are others than those an index knows, by their stamps."""
    return {path: list(stamp) for path, (stamp, _) in _files(vault).items()} != known


def sync(
    vault: Vault,
    index: Path,
    known: Manifest,
    embedder: Embedder | None,
    cache: VectorCache,
) -> int | None:
    """Make the table say what is on disk. Return the number of skills, None if nothing changed.

    The caller holds the index's lock and saves the manifest. Raises WriteError, EmbedderError.
    """
    listed = _files(vault)
    stamps = {
        path: [] if files.is_racy(stamp) else list(stamp) for path, (stamp, _) in listed.items()
    }
    found = [_row(vault, skill) for skill in _read_all(listed)]
    digest = lesson.hash_of(*(f"{row['id']} {row['file_hash']}" for row in found))
    if digest == known.skills_hash:
        known.skills = stamps
        return None
    table = Store(index, known.dimension, stores.SKILLS)
    if found or table.exists():
        if not table.exists():
            table.create()
        if known.dimension and embedder is not None:
            _embed(found, embedder, cache)
        table.replace_all(found)
        table.settle()
    known.skills, known.skills_hash = stamps, digest
    return len(found)


def visible(vault: Vault, project: Path | None) -> set[str]:
    """Give the folders whose skills somebody in a project has: the `document` of their rows."""
    folder = project_folder(project) if project else None
    return {str(vault.root / "skills"), str(user_folder()), *([str(folder)] if folder else [])}


def may_be_suggested(tags: Sequence[str]) -> bool:
    """Tell, by the tags of its row, whether an agent may load a skill by itself."""
    return _SILENT not in tags


def problems(vault: Vault) -> list[str]:
    """List the SKILL.md files that are no skill, with the reason."""
    found = []
    for path, ((size, *_), scope) in _files(vault).items():
        try:
            data = Path(path).read_bytes() if size <= MOST_BYTES else b""
        except OSError as error:
            found.append(f"{path}: cannot be read: {error.strerror}")
            continue
        if size > MOST_BYTES:
            found.append(f"{path}: larger than {MOST_BYTES // 1024} KB")
        elif read(data, path, scope) is None:
            found.append(f"{path}: its frontmatter does not parse, or nothing says what it is for")
    return found


def _files(vault: Vault) -> dict[str, tuple[files.Stamp, str]]:
    """Return the stamp and scope of each SKILL.md. Only the user's own may be links."""
    found: dict[str, tuple[files.Stamp, str]] = {}
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
                found[str(file)] = (files.stamp_of(stat), scope)
    return found


def _read_all(listed: dict[str, tuple[files.Stamp, str]]) -> Iterator[Skill]:
    from vault_index import check  # compiles its patterns: only where a skill changed

    for path, ((size, *_), scope) in listed.items():
        if size > MOST_BYTES:
            continue
        try:
            data = Path(path).read_bytes()
        except OSError:
            continue
        skill = read(data, path, scope)
        if skill is not None:  # those of a project and of the user the agent has loaded itself
            why = check.withheld(path, data, is_lesson=False) if scope == VAULT else ""
            yield replace(skill, withheld=why)


def _row(vault: Vault, skill: Skill) -> Row:
    words = skill.name.replace("-", " ")
    says = " ".join(filter(None, [skill.description, skill.when_to_use]))
    file = Path(skill.path)
    shown = str(file.relative_to(vault.root)) if skill.scope == VAULT else skill.path
    return Row(
        id=f"{skill.scope}:{skill.path}",
        lesson_id=f"{skill.scope}:{skill.name}",
        path=shown,
        title=skill.name,
        document=str(file.parent.parent),
        description=skill.description,
        text=says,
        fulltext=f"{words}\n{words}\n{says}",
        is_whole=True,
        type=skill.scope,
        categories=[],
        tags=[] if skill.by_model else [_SILENT],
        confidence=lesson.DEFAULT_CONFIDENCE,
        file_hash=skill.file_hash,
        withheld=skill.withheld,
        content_hash=lesson.hash_of(words, says),
    )


def _embed(found: list[Row], embedder: Embedder, cache: VectorCache) -> None:
    """Give the rows vectors, made as those of lessons are."""
    by_hash = {row["content_hash"]: _as_lesson(row) for row in found}
    vectors = cache.get_or_make(by_hash, lambda new: rows.embed(embedder, new))
    for row in found:
        row["vector"] = vectors[row["content_hash"]]


def _as_lesson(row: Row) -> Row:
    return row | Row(document="", title=row["title"].replace("-", " "))


def _projects(vault: Vault) -> list[Path]:
    """Give the skill folders of the projects that asked this vault; of those that are still there."""
    try:
        lines = ownership.read_text(vault.index_folder / _PROJECTS).split("\n")
    except (OSError, UnicodeDecodeError, ForeignIndexError):
        return []
    return [Path(line) for line in lines if line and Path(line).is_dir()]


def _text(value: object) -> str:
    return " ".join(value.split()) if isinstance(value, str) else ""
