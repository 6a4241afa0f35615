"""A lesson: one frontmatter markdown file, or one `## Lesson: title` section of a file.

Parsing only; `frontmatter_edit` writes. `parse_file` never guesses at a file it cannot read: it
raises `LessonError` with the line, and whoever indexes keeps the file's last good rows.
"""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

from vault_index import yaml_bounds
from vault_index.errors import LessonError

LessonId = str

TYPES = ("code_pattern", "bug_fix", "architecture", "project_rule")
DEFAULT_CONFIDENCE = 3  # the middle of 1..5: neither lifts nor lowers a hit

MOST_BYTES = 2_200_000  # of a lesson file: 500 pages; a rule reads that in seconds
MOST_SECTIONS = 5_000  # of one file: an hour's course has some twenty
_PROBLEM_CHARS = 200  # of what YAML says, which repeats what it does not like
_LINES_TRIED = 1_000  # to find the line of frontmatter that does not load
BOM = "\ufeff"
_SECTION = re.compile(r"##[ \t]+Lesson:")
_HEADING = re.compile(r"#{1,6}[ \t]+(?=\S)")
_FENCE = re.compile(r"^[ ]{0,3}(?P<mark>`{3,}(?=[^`]*$)|~{3,})")  # "```x``` y" is inline code
_BOUNDARY = re.compile(r"-{3,}\s*")
_KEY_LINE = re.compile(r"""^(['"]?)[\w.-]+\1\s*:(\s|$)""")
_NOT_SLUG = re.compile(r"[^\w]+")


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
    type: str = ""
    confidence: int = DEFAULT_CONFIDENCE
    created: datetime | None = None
    source: str = ""
    fires_on: tuple[str, ...] = ()
    silent_on: tuple[str, ...] = ()
    declared: str = ""  # the frontmatter `id`, from which `id` comes
    document: str = ""  # the title of the file that this is a section of
    description: str = ""  # of the file: what it is about
    link: str = ""  # where the file's content comes from
    written_by: str = ""  # the frontmatter `author`: of a course, a talk, an article


def parse_file(data: bytes, path: str) -> list[Lesson]:
    """Parse one file of a vault into its lessons, in the order they stand.

    `path` is relative to the vault's folder. Ids come from the frontmatter key `id`, else from the
    path; making them unique across files is the index's job. An empty file holds no lesson.

    Raises LessonError, with the line, for text that is not UTF-8 and frontmatter that is not a
    YAML mapping.
    """
    text = decode(data, path).replace("\r\n", "\n")
    metadata, body = split_frontmatter(text, path)
    declared = _one_line(metadata.get("id")).replace("#", "-")  # a "#" begins a section
    base = declared or id_of(path)
    shared: dict[str, Any] = {
        "path": path,
        "categories": _words(metadata.get("categories", metadata.get("category"))),
        "tags": _words(metadata.get("tags")),
        "type": _one_line(metadata.get("type")),
        "confidence": _confidence(metadata.get("confidence")),
        "created": _moment(metadata.get("created")),
        "source": _one_line(metadata.get("source")),
        "fires_on": _texts(metadata.get("fires_on")),
        "silent_on": _texts(metadata.get("silent_on")),
        "declared": declared,
        "description": _one_line(metadata.get("description")),
        "link": _one_line(metadata.get("link")),
        "written_by": _one_line(metadata.get("author")),
    }
    preamble, sections = sections_of(body)
    if len(sections) > MOST_SECTIONS:
        raise LessonError(f"{path}: more than {MOST_SECTIONS} sections", 1, "split it into files")
    if sections:
        shared["document"] = _title_of(preamble, _one_line(metadata.get("title")), path)[0]
    lessons: list[Lesson] = []
    if not sections or says_something(preamble):
        title, rest = _title_of(preamble, _one_line(metadata.get("title")), path)
        if not sections and not rest and not metadata:
            return []
        lessons.append(Lesson(id=base, title=title, text=rest, **shared))
    taken: dict[str, int] = {}
    for title, rest in sections:
        slug = free_slug(title, taken)
        lessons.append(Lesson(id=f"{base}#{slug}", title=title, text=rest, **shared))
    return lessons


def id_of(path: str) -> LessonId:
    """Give the id that a file's path makes; a "#" in a name is not the beginning of a section."""
    return path.removesuffix(".md").replace("#", "%23")


def decode(data: bytes, path: str) -> str:
    """Decode a lesson file; a byte-order mark is dropped. Raises LessonError when it is not text."""
    if len(data) > MOST_BYTES:
        raise LessonError(
            f"{path}: larger than {MOST_BYTES // 1024**2} MB", 1, "split it into lessons"
        )
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise LessonError(
            f"{path}: not UTF-8 text", line, "save it as UTF-8, or rename it if it is not markdown"
        ) from None
    if "\0" in text:
        line = text[: text.index("\0")].count("\n") + 1
        raise LessonError(f"{path}: a binary file", line, "rename it: only markdown ends in .md")
    return text


def split_frontmatter(text: str, path: str) -> tuple[dict[Any, Any], str]:
    """Split decoded text into its frontmatter mapping and its body.

    python-frontmatter's `parse()` does the work (`loads()` fails on keys that are not strings).
    What it would drop in silence is an error here: a block that is never closed, and a block that
    is not a mapping. Raises LessonError with the line.
    """
    import frontmatter  # 25 ms: not at import time, the command line's help does not need it
    import yaml
    from frontmatter.default_handlers import YAMLHandler

    first, _, rest = text.lstrip().partition("\n")
    offset = text[: len(text) - len(text.lstrip())].count("\n") + 1  # the line of the opening ---
    if not is_boundary(first):
        return {}, text.strip()
    if not any(map(is_boundary, lines_of(rest))):
        head = next((line for line in lines_of(rest) if line.strip()), "")
        if _KEY_LINE.match(head):
            raise LessonError(f"{path}: frontmatter is not closed", offset, "add a line with ---")
        return {}, text.strip()
    try:
        yaml_bounds.refuse_expensive(_block(rest))
        metadata, body = frontmatter.parse(text, handler=YAMLHandler())
        block = None if metadata else _load(_block(rest))
    except yaml.MarkedYAMLError:
        line, problem = _yaml_problem(_block(rest))
        raise LessonError(f"{path}: frontmatter is not YAML: {problem}", offset + line) from None
    except Exception as error:  # noqa: BLE001  # a bad date is a ValueError, deep nesting a RecursionError
        line = offset + _line_that_fails(rest)
        problem = " ".join(str(error).split())[:_PROBLEM_CHARS]
        raise LessonError(f"{path}: frontmatter is not usable: {problem}", line) from None
    if block is not None and block != {}:
        raise LessonError(
            f"{path}: frontmatter is a {type(block).__name__}, not `key: value` lines", offset
        )
    return metadata, body


def slugify(title: str) -> str:
    """Make a file or section name of a title: `"Don't  retry POST"` -> `"don-t-retry-post"`."""
    return _NOT_SLUG.sub("-", title.lower()).strip("-_")[:80].rstrip("-_")


def heading_of(line: str) -> str:
    """Give the title of a heading without its marks; "" for a line that is none.

    `# Why C#` is "Why C#": closing marks stand apart.
    """
    mark = _HEADING.match(line)
    return _unmarked(line[mark.end() :]) if mark else ""


def section_of(line: str) -> str | None:
    """Give the title that a `## Lesson: title` line begins a lesson with; None for any other line."""
    mark = _SECTION.match(line)
    return (_unmarked(line[mark.end() :]) or "Lesson") if mark else None


def says_something(preamble: str) -> bool:
    """Tell whether text before the first section is a lesson, or only headings and blank lines."""
    return any(line.strip() and not heading_of(line) for line in preamble.split("\n"))


def lines_of(text: str) -> list[str]:
    """Split at line feeds only, which stay: `splitlines()` also splits at form feeds and the like."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def fenced(lines: Iterable[str]) -> Iterator[bool]:
    """Tell of each line (without its end) whether a code fence is open after it."""
    fence = ""
    for line in lines:
        mark = _FENCE.match(line)
        if mark and not fence:
            fence = mark["mark"]
        elif mark and mark["mark"].startswith(fence) and not line.strip().strip(fence[0]):
            fence = ""
        yield bool(fence)


def is_boundary(line: str) -> bool:
    """Tell whether a line opens or closes frontmatter: three or more dashes and nothing else."""
    return bool(_BOUNDARY.fullmatch(line))


def hash_of_file(data: bytes) -> str:
    """Hash the content of a file, whatever its encoding: see `hash_of`."""
    return hash_of(data.decode("latin-1"))


def hash_of(*texts: str) -> str:
    """Hash texts into 32 hexadecimal digits (SHA-256, first half): the identity of content."""
    return hashlib.sha256("\0".join(texts).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _block(rest: str) -> str:
    """Give the lines between the opening --- and the closing one."""
    return "".join(itertools.takewhile(lambda line: not is_boundary(line), lines_of(rest)))


def _load(block: str) -> Any:
    """Load YAML as python-frontmatter does: PyYAML's own loader takes fewer tabs than libyaml's."""
    import yaml

    return yaml.load(block, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def _yaml_problem(block: str) -> tuple[int, str]:
    """Tell in which line of a block (1-based) YAML fails, and why.

    By loading it again: what python-frontmatter loads begins at a line that depends on blank lines.
    """
    import yaml

    try:
        _load(block)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = " ".join(str(error.problem or error.context or error).split())[:_PROBLEM_CHARS]
        return (mark.line + 1 if mark else 0), problem
    return 0, "unclear"


def _line_that_fails(rest: str) -> int:
    """Find which frontmatter line does not load by itself (1-based within the block; 0: none)."""
    import yaml

    lines = itertools.islice(lines_of(_block(rest)), _LINES_TRIED)
    for number, line in enumerate(lines, start=1):
        try:
            yaml_bounds.refuse_expensive(line)
            _load(line.strip())
        except yaml.YAMLError:
            continue
        except Exception:  # noqa: BLE001  # the same ValueError or RecursionError as above
            return number
    return 0


def sections_of(body: str) -> tuple[str, list[tuple[str, str]]]:
    """Cut a body at its `## Lesson:` headings; those inside code fences do not count."""
    preamble: list[str] = []
    sections: list[tuple[str, list[str]]] = []
    lines = body.split("\n")
    for line, inside in zip(lines, fenced(lines), strict=True):
        title = None if inside else section_of(line)
        if title is not None:
            sections.append((title, []))
        else:
            (sections[-1][1] if sections else preamble).append(line)
    return "\n".join(preamble), [(title, "\n".join(lines).strip()) for title, lines in sections]


def free_slug(title: str, taken: dict[str, int]) -> str:
    """Make a section's name of its title: the first free one of `heap`, `heap-2`...

    `taken` are the names so far, with the number from which on one is free; the new one goes in.
    """
    slug = base = slugify(title) or "lesson"
    number = taken.get(base, 1)
    while slug in taken:
        number += 1
        slug = f"{base}-{number}"
    taken[base] = number
    taken.setdefault(slug, 1)
    return slug


def _unmarked(title: str) -> str:
    """Take closing marks off a heading; no regular expression, which would go back and forth."""
    title = title.strip(" \t")
    bare = title.rstrip("#")
    return bare.rstrip(" \t") if bare.endswith((" ", "\t")) and bare.strip() else title


def _title_of(body: str, declared: str, path: str) -> tuple[str, str]:
    """Choose a title (frontmatter, else the first heading, else the file name) and the text."""
    body = body.strip()
    first, _, rest = body.partition("\n")
    heading = heading_of(first)
    if heading and (not declared or declared == heading):
        return heading, rest.strip()
    name = path.rpartition("/")[2].removesuffix(".md")
    return declared or " ".join(name.replace("_", "-").split("-")).strip() or path, body


def _one_line(value: Any) -> str:
    """Give a scalar as one line of text; lists and mappings are not scalars and give ""."""
    if value is None or isinstance(value, (list, dict, set, tuple)):
        return ""
    try:
        return " ".join(str(value).split())
    except ValueError:  # a whole number of more than 4,300 digits
        return ""


def _texts(value: Any) -> tuple[str, ...]:
    """Give a list of texts; a lone scalar is a list of one; what is not text is dropped."""
    values = value if isinstance(value, (list, tuple, set)) else [value]
    return tuple(text for text in map(_one_line, values) if text)


def _words(value: Any) -> tuple[str, ...]:
    """Give a list of words; `a, b` in one string is two."""
    if isinstance(value, str):
        value = value.split(",")
    return _texts(value)


def _confidence(value: Any) -> int:
    """Give 1..5; anything that is not a number is the default."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value:
        return DEFAULT_CONFIDENCE
    return int(min(5, max(1, value)))


def _moment(value: Any) -> datetime | None:
    """Give a date as UTC; a time without a zone is taken as UTC; None for what is no date."""
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
