"""A SKILL.md, read as a `Skill`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from vault_index.errors import LessonError
from vault_index.lesson.category import normalise
from vault_index.lesson.file import LessonFile, hash_of_file
from vault_index.lesson.frontmatter import metadata_of

FILE = "SKILL.md"
PROMPTS = "learned-prompts"  # in a skill's metadata: prompts that it is for, a line each
SILENT = "learned-silent"  # the same: prompts that it is not for
CATEGORIES = "categories"  # of its frontmatter or its metadata: a list, or a text with commas
MAX_PROMPTS = 200
MAX_CATEGORIES = 20
MAX_BYTES = 256 * 1024  # of a SKILL.md; a larger one is left out


@dataclass(frozen=True, slots=True)
class Skill:
    """A skill as in its SKILL.md. `path` is absolute; `scope` is vault, user or project."""

    name: str
    description: str
    path: str
    scope: str
    when_to_use: str = ""
    by_model: bool = True  # whether an agent may load it by itself
    file_hash: str = ""
    prompts: tuple[str, ...] = ()  # that it is for, where it was built of lessons that have some
    silent: tuple[str, ...] = ()  # and those that it is not for
    categories: tuple[str, ...] = ()
    withheld: str = ""  # why hooks do not suggest it: an error in its file


def read(data: bytes, path: str, scope: str) -> Skill:
    """Return the skill in a SKILL.md.

    `path` is absolute. Without a `name` the folder's is used, without a `description` the first
    paragraph, as in Claude Code. Raises LessonError with the line if it does not parse or has neither.
    """
    if len(data) > MAX_BYTES:
        raise LessonError(f"{path}: larger than {MAX_BYTES // 1024} KB")
    file = LessonFile.of(data, path)
    metadata, body = metadata_of(file), file.text(file.body).strip()
    name = _text(metadata.get("name")) or Path(path).parent.name
    paragraphs = (part.strip() for part in body.split("\n\n"))
    first = next((part for part in paragraphs if part and not part.startswith("#")), "")
    description = _text(metadata.get("description")) or _text(first)
    if not description:
        raise LessonError(f"{path}: nothing says what it is for: write a description")
    hidden = metadata.get("disable-model-invocation") in (True, "true", "yes")
    when = _text(metadata.get("when_to_use"))
    more = metadata.get("metadata")
    more = more if isinstance(more, dict) else {}
    return Skill(
        name=name[:64],
        description=description[:1536],
        path=path,
        scope=scope,
        when_to_use=when[:1536],
        by_model=not hidden,
        file_hash=hash_of_file(data),
        prompts=_prompts(more.get(PROMPTS)),
        silent=_prompts(more.get(SILENT)),
        categories=_categories(metadata.get(CATEGORIES)) or _categories(more.get(CATEGORIES)),
    )


def _categories(listed: object) -> tuple[str, ...]:
    names = listed.split(",") if isinstance(listed, str) else listed
    paths = map(normalise, map(_text, names if isinstance(names, list) else ()))
    return tuple(dict.fromkeys(filter(None, paths)))[:MAX_CATEGORIES]


def _prompts(listed: object) -> tuple[str, ...]:
    lines = listed.splitlines() if isinstance(listed, str) else []
    prompts = (_text(line)[:300] for line in lines)
    return tuple(dict.fromkeys(filter(None, prompts)))[:MAX_PROMPTS]


def _text(value: object) -> str:
    return " ".join(value.split()) if isinstance(value, str) else ""
