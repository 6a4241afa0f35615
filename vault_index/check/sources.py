"""Which files of a repository come before an agent, and their text as a scan for secrets needs it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from vault_index import git
from vault_index.errors import GitError
from vault_index.vault import FOLDER, SETTINGS

if TYPE_CHECKING:
    from vault_index.vault import Vault

LESSON, SKILL, VAULT_SETTINGS = "lesson", "skill", "settings"
_SKILL_FILE = "skill.md"
_PROJECT_SKILLS = (".claude", "skills")


def top_and_prefix(vault: Vault) -> tuple[Path, str]:
    """Return the top folder of the repository around a vault, and the vault's path in it.

    The path is "" or ends with a slash. A vault in no repository is its own top.
    """
    try:
        top = git.top(vault.root)
    except GitError:
        return vault.root, ""
    inside = os.path.relpath(os.path.realpath(vault.root), os.path.realpath(top))
    return top, "" if inside == "." else f"{inside}/"


def kind(path: str, prefix: str) -> str:
    """Return what a file is to an agent, "" for nothing.

    `path` is from the repository's top, `prefix` that of the vault. Skills count in the vault's
    folder of skills and in the `.claude/skills` of each project in the repository. Names are
    compared without case, as some file systems do.
    """
    parts = path.casefold().split("/")
    inside = path.removeprefix(prefix) if path.startswith(prefix) else ""
    if inside.startswith(f"{FOLDER}/") and inside.endswith(".md"):
        return LESSON
    if inside == f"{FOLDER}/{SETTINGS}":  # names of categories are shown with each lesson
        return VAULT_SETTINGS
    if parts[-1] != _SKILL_FILE:
        return ""
    in_vault = inside.count("/") == 2 and inside.casefold().startswith("skills/")
    return SKILL if in_vault or tuple(parts[-4:-2]) == _PROJECT_SKILLS else ""


def besides_lessons(vault: Vault) -> Iterator[str]:
    """Yield the other files on disk that come before an agent, relative to the vault's root.

    Files that a link leads to are left out.
    """
    top, prefix = top_and_prefix(vault)
    names = {name for name in git.files(top) if kind(name, prefix) in (SKILL, VAULT_SETTINGS)}
    # also where git does not track them, or is not there
    names |= {f"{prefix}{FOLDER}/{SETTINGS}"}
    root, skills = f"{prefix}skills", "/".join(_PROJECT_SKILLS)
    for folder in (root, prefix + skills, skills):
        names |= {
            f"{folder}/{file.parent.name}/{file.name}" for file in top.glob(f"{folder}/*/SKILL.md")
        }
    for name in sorted(names):
        file = top.resolve() / name
        if file.is_file() and file == file.resolve():
            yield os.path.relpath(name, prefix or ".")


def text_of(data: bytes) -> str:
    """Return what can be read in a file, also in one that is not UTF-8 text.

    A secret is made of ASCII characters: other bytes are replaced, and the zeros dropped that lie
    between the letters of UTF-16.
    """
    return data.replace(b"\0", b"").decode("utf-8", "replace").replace("\r\n", "\n")
