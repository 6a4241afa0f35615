"""Make a vault, and put lessons into it: files that a person could have written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vault_index import categories as tree
from vault_index import check, files, frontmatter_edit, git, lesson
from vault_index import vault as vaults
from vault_index.errors import VaultError

if TYPE_CHECKING:
    from vault_index.vault import Vault

_SETTINGS = """\
# This vault's settings; every key is optional. `lessons status` shows what is in force.

# prompt_lessons = 3             # at most so many lessons a prompt
# prompt_tokens = 600            # at most so many tokens a prompt (4 characters each)
# token_budget = 2000            # at most so many tokens at the start of a session
# session_sources = ["startup"]  # also: resume, clear, compact, fork
# floor = 0.65                   # score below which nothing is injected; default: fitted
# prompt_skills = 1              # at most so many skills suggested for a prompt; 0 for none

# The categories this vault means to use; those of its lessons are always known.
taxonomy = [
{taxonomy}
]

# [keywords]                     # phrases that file a lesson without a category
# "GitHub Actions" = "devops/ci-cd"
""".format(taxonomy="\n".join(f'  "{one}",' for one in tree.DEFAULT_TAXONOMY))


@dataclass(frozen=True, slots=True)
class Made:
    """What `init` had to do; all false when everything was there."""

    repository: bool
    vault: bool
    ignored: bool


def init(folder: Path) -> Made:
    """Make a vault in a folder: a git repository, `lessons/vault.toml`, the index ignored.

    What is there stays as it is, so a second run changes nothing. Raises WriteError.
    """
    with files.writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    settings = folder / vaults.FOLDER / vaults.SETTINGS
    files.refuse_links(settings.parent, folder)
    files.read_if_any(folder / ".gitignore")  # refuses before anything is made
    repository = git.start_repository(folder)
    made = files.create_file(settings, _SETTINGS.encode(), within=folder)
    ignored = files.add_line(folder / ".gitignore", f"{vaults.INDEX}/")
    return Made(repository, made, ignored)


def write(
    vault: Vault,
    source: bytes,
    *,
    title: str = "",
    categories: Sequence[str] = (),
    tags: Sequence[str] = (),
    type: str = "",
) -> Path:
    """Write a lesson file where its category says, and give its path.

    `source` is markdown with or without frontmatter; what is passed beside it is set in the
    frontmatter, `created` if it is missing. Raises LessonError, WriteError, and VaultError if there
    is no text or what `lessons check` calls an error, the file exists, or its folder is in another
    git repository.
    """
    wanted: dict[str, Any] = {"title": title, "tags": list(tags), "type": type}
    filed = [path for path in map(tree.normalise, categories) if path]
    if type and type not in lesson.TYPES:
        raise VaultError(f"no type {type!r}", f"one of: {', '.join(lesson.TYPES)}")
    wanted["categories"] = filed if len(filed) > 1 else None
    parsed = lesson.parse_file(frontmatter_edit.set_keys(source, _given(wanted)), "new.md")
    if not parsed or not any(one.text for one in parsed):
        raise VaultError("a lesson needs some text", "pipe it in, or name a file that has some")
    if parsed[0].created is None:
        wanted["created"] = datetime.now(UTC).replace(microsecond=0)
    data = frontmatter_edit.set_keys(source, _given(wanted))
    declared = filed or [path for path in map(tree.normalise, parsed[0].categories) if path]
    named = title or parsed[0].title
    if not title and named == "new":
        raise VaultError("a lesson needs a title", "pass --title, or begin with `# Title`")
    name = lesson.slugify(named) or "lesson"
    path = vault.folder.joinpath(*(declared[0].split("/") if declared else []), f"{name}.md")
    files.refuse_other_repository(path.parent, vault.folder)
    data = data if data.endswith(b"\n") else data + b"\n"
    check.refuse_errors(str(path.relative_to(vault.folder)), data)
    if not files.create_file(path, data, within=vault.root):
        where = path.relative_to(vault.root)
        raise VaultError(f"{where} is there already", "edit it, or give another --title")
    return path


def _given(values: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value}


def from_json_lines(vault: Vault, lines: Sequence[tuple[int, dict[str, Any]]]) -> int:
    """Write lessons given as JSON objects (id, title, text, category) as files; give their number.

    For a vault that is made to be measured. Raises VaultError with the line for what is no lesson.
    """
    for number, values in lines:
        name = "/".join(filter(None, map(lesson.slugify, str(values.get("id", "")).split("/"))))
        if not name or not isinstance(values.get("text"), str):
            raise VaultError(f"line {number}: not a lesson", "it needs id, title, text, category")
        keys = {"id": values["id"], "title": values.get("title") or name}
        keys["categories"] = [values["category"]] if values.get("category") else None
        data = frontmatter_edit.set_keys(f"---\n---\n{values['text']}\n".encode(), _given(keys))
        path = vault.folder / f"{name}.md"
        files.refuse_links(path.parent, vault.root)
        with files.writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            files.replace_file(path, data)
    return len(lines)
