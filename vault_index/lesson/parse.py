"""A lesson: one frontmatter markdown file, or one `## Lesson: title` section of a file.

Parsing only; `edits` writes. `parse_file` never guesses at a file it cannot read: it raises
`LessonError` with the line, and the index keeps the file's last good rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from typing import Any

from vault_index.errors import LessonError
from vault_index.lesson.category import DEFAULT_CONFIDENCE, free_slug, has_text, heading_of
from vault_index.lesson.file import LessonFile, Section
from vault_index.lesson.frontmatter import metadata_of, own_of
from vault_index.text.blocks import composed

LessonId = str

TYPES = ("code_pattern", "bug_fix", "architecture", "project_rule")
MAX_SECTIONS = 5_000  # of one file: an hour's course has some twenty
_ANCHOR = re.compile(  # a path that leads out of its repository is no anchor
    r"(?P<path>(?![/~])(?!(?:[^#]*/)?\.\.(?:[/#@]|$))[^#@\s\0][^#\0]*?)(?:#(?P<name>[\w.$-]+))?"
    r"(?:@(?P<hash>[0-9a-f]{8}))?"
)


@dataclass(frozen=True, slots=True)
class Lesson:
    """One lesson as its author wrote it. Every frontmatter key is optional, so most have defaults.

    `id` is unique within a vault, `path` is relative to the vault's folder, `text` is markdown
    without the title. `categories` are as declared: the folder is not in them. A file of several
    lessons is a document: each of them carries its title.
    """

    id: LessonId
    path: str
    title: str
    text: str
    categories: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()  # other titles
    type: str = ""
    confidence: int = DEFAULT_CONFIDENCE
    created: datetime | None = None
    source: str = ""
    prompts: tuple[str, ...] = ()  # that it answers
    fires_on: tuple[str, ...] = ()
    silent_on: tuple[str, ...] = ()
    fires_on_error: tuple[str, ...] = ()
    silent_on_error: tuple[str, ...] = ()
    applies_to: tuple[str, ...] = ()  # globs of files
    anchors: tuple[str, ...] = ()  # the code that it is about: see `anchor_of`
    declared: str = ""  # the frontmatter `id`, from which `id` comes
    document: str = ""  # the title of the file that this is a section of
    description: str = ""  # of the file: what it is about
    link: str = ""  # where the file's content comes from
    written_by: str = ""  # the frontmatter `author`: of a course, a talk, an article


def parse_file(data: bytes, path: str) -> list[Lesson]:
    """Parse one file of a vault into its lessons, in their order.

    `path` is relative to the vault's folder. Ids come from the frontmatter key `id`, else from the path;
    the index makes them unique. Raises LessonError, with the line, for text that is not UTF-8 and
    frontmatter that is not a YAML mapping.
    """
    file = LessonFile.of(data, path)
    return lessons_of(file, metadata_of(file))


def lessons_of(file: LessonFile, metadata: dict[Any, Any]) -> list[Lesson]:
    """Return the lessons of a file, of which `metadata` is the frontmatter."""
    path = file.path
    declared = _one_line(metadata.get("id")).replace("#", "-")  # a "#" begins a section
    base = declared or id_of(path)
    shared: dict[str, Any] = {
        "path": path,
        **_ownable(metadata),
        "confidence": _confidence(metadata.get("confidence")),
        "created": parse_time(metadata.get("created")),
        "source": _one_line(metadata.get("source")),
        **{name: _texts(metadata.get(name)) for name in ("applies_to", "anchors")},
        "declared": declared,
        "description": _one_line(metadata.get("description")),
        "link": _one_line(metadata.get("link")),
        "written_by": _one_line(metadata.get("author")),
    }
    declared_title = _one_line(metadata.get("title"))
    if len(file.sections) > MAX_SECTIONS:
        raise LessonError(f"{path}: more than {MAX_SECTIONS} sections", 1, "split it into files")
    preamble = composed(file.text(file.preamble))
    title, text = _title_of(preamble, declared_title, path)
    if file.sections:
        shared["document"] = title
    lessons: list[Lesson] = []
    if not file.sections or has_text(preamble):
        if not file.sections and not text and not metadata:
            return []
        lessons.append(Lesson(id=base, title=title, text=text, **shared))
    for slug, section in slugs_of(file):
        text = composed(file.text(range(file.own_keys(section).stop, section.end))).strip()
        keys = _ownable(own_of(file, section))
        lesson = Lesson(id=f"{base}#{slug}", title=composed(section.title), text=text, **shared)
        lessons.append(replace(lesson, **keys) if keys else lesson)
    return lessons


def _ownable(metadata: dict[Any, Any]) -> dict[str, Any]:
    """Return the values of the keys that a section may have of its own, as far as they are there."""
    values: dict[str, Any] = {}
    for name, read in _OWNABLE.items():
        if name in metadata:
            values[name] = read(metadata[name])
    if "category" in metadata and "categories" not in metadata:
        values["categories"] = words(metadata["category"])
    return values


def slugs_of(file: LessonFile) -> Iterator[tuple[str, Section]]:
    """Yield the sections of a file, each with the name that its id ends with."""
    numbers: dict[str, int] = {}
    for section in file.sections:
        yield free_slug(section.title, numbers), section


def id_of(path: str) -> LessonId:
    """Return the id that a file's path makes; a "#" in a name begins no section."""
    return composed(path.removesuffix(".md").replace("#", "%23"))


def _title_of(body: str, declared: str, path: str) -> tuple[str, str]:
    body = body.strip()
    first, _, rest = body.partition("\n")
    heading = heading_of(first)
    if heading and (not declared or declared == heading):
        return heading, rest.strip()
    name = composed(path).rpartition("/")[2].removesuffix(".md")
    return declared or " ".join(name.replace("_", "-").split("-")).strip() or path, body


def _one_line(value: Any) -> str:
    if value is None or isinstance(value, (list, dict, set, tuple)):
        return ""
    try:
        return composed(" ".join(str(value).split()))
    except ValueError:  # a whole number of more than 4,300 digits
        return ""


def _texts(value: Any) -> tuple[str, ...]:
    values = value if isinstance(value, (list, tuple, set)) else [value]
    return tuple(text for text in map(_one_line, values) if text)


def words(value: Any) -> tuple[str, ...]:
    """Return a list of words; the string `a, b` has two."""
    if isinstance(value, str):
        value = value.split(",")
    return _texts(value)


_OWNABLE: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("categories", "tags"), words),
    "type": _one_line,
    "aliases": _texts,
    **dict.fromkeys(("prompts", "fires_on", "silent_on"), _texts),
    **dict.fromkeys(("fires_on_error", "silent_on_error"), _texts),
}


def _confidence(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value:
        return DEFAULT_CONFIDENCE
    return int(min(5, max(1, value)))


def parse_time(value: Any) -> datetime | None:
    """Return a date as UTC, which is also assumed without a zone; None for any other value."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.strip())
        except ValueError:
            return None
    if isinstance(value, datetime):
        try:
            return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
        except OverflowError:  # year 1 or 9999 with an offset
            return None
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    return None


@dataclass(frozen=True, slots=True)
class Anchor:
    """A region of a file, from the top of the repository; `hash` is "" until it is confirmed."""

    path: str
    name: str = ""
    hash: str = ""

    def __str__(self) -> str:
        return self.shown + (f"@{self.hash}" if self.hash else "")

    @property
    def shown(self) -> str:
        return self.path + (f"#{self.name}" if self.name else "")


def anchor_of(text: str) -> Anchor | None:
    """Return the anchor that a text spells; None for a path that leads out, and for any other text."""
    match = _ANCHOR.fullmatch(text.strip())
    return Anchor(match["path"], match["name"] or "", match["hash"] or "") if match else None
