"""Whether a file is a lesson that others can find: frontmatter, categories, size, conflict marks."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from datetime import date
from typing import Any

from vault_index.check.finding import ERROR, WARNING, Finding, line_of_key
from vault_index.errors import LessonError
from vault_index.lesson.category import MAX_DEPTH, from_folder, normalise, prefixes
from vault_index.lesson.file import KEYS, LessonFile, names_keys
from vault_index.lesson.frontmatter import brief, metadata_of, oddities, own_of
from vault_index.lesson.parse import TYPES, Lesson, anchor_of, lessons_of, parse_time, words
from vault_index.text import failure
from vault_index.text.blocks import one_line

HEAD = "frontmatter"
GIANT_CHARS = 20_000  # some 5,000 tokens, of which an agent gets 600
TYPO_LETTERS = 4  # shorter names are often one letter apart: ack and awk

_LISTS = (
    *("categories", "tags", "prompts", "fires_on", "silent_on"),
    *("fires_on_error", "silent_on_error", "applies_to", "anchors", "harmless"),
)
_DATES = ("created", "confirmed")
_NAME = re.compile(r"\w")
_ELSEWHERE = re.compile(r"[/~]|[A-Za-z]:|.*\\|(?:.*/)?\.\.(?:/|$)")  # no path below a repository
_TEXTS = ("id", "title", "type", "source", "category")
_WORDS = (*_TEXTS, *_LISTS)


def findings(path: str, data: bytes, shown: str, categories: Collection[str]) -> list[Finding]:
    """Check one file.

    `path` is relative to the vault's folder, `shown` to its root; `categories` are of the
    other lessons.
    """
    try:
        file = LessonFile.of(data, path)
        metadata = metadata_of(file)
        lessons = lessons_of(file, metadata)
    except LessonError as error:
        message = ": ".join(filter(None, (error.message.removeprefix(f"{path}: "), error.hint)))
        return [Finding(shown, error.line, HEAD, message)]
    text = file.text(range(len(file.lines)))
    above = len(lessons) - len(file.sections)
    owns = [own_of(file, section) for section in file.sections]
    sharing = [
        lesson for lesson, own_keys in zip(lessons[above:], owns, strict=False) if not own_keys
    ]
    problems = [
        *_head(shown, file, metadata),
        *_types(shown, text, metadata),
        *_categories(shown, text, path, _declared(metadata), categories),
        *_size(shown, lessons),
        *_taught(shown, text, [*lessons[:above], *sharing]),
    ]
    for own_keys, section, lesson in zip(owns, file.sections, lessons[above:], strict=False):
        if own_keys:
            lines, filed = file.own_keys(section), _declared(own_keys)
            text = file.text(lines)
            odd = oddities(file, lines, _WORDS)
            problems += [Finding(shown, line, HEAD, message, WARNING) for line, message in odd]
            of_section = (
                *_types(shown, text, own_keys),
                *(_categories(shown, text, path, filed, categories) if filed else ()),
                *_taught(shown, text, [replace(lesson, applies_to=())]),
            )
            problems += [replace(each, line=each.line + lines.start) for each in of_section]
    return problems


def _head(shown: str, file: LessonFile, metadata: dict[Any, Any]) -> Iterator[Finding]:
    """Find surprises for a reader: a second block, keys that mean nothing here."""
    above = (n for n in file.body if not file.lines[n].strip().startswith(("#", "<!--")))
    start = next((n for n in above if file.lines[n].strip()), file.body.stop)
    below = LessonFile.of_lines(file.lines[start:], file.path)
    if names_keys(below.lines[below.frontmatter.start : below.frontmatter.stop]):
        message = "frontmatter that is not the first is text: move its keys to the top of the file"
        yield Finding(shown, start + below.frontmatter.start, HEAD, message, WARNING)
    if metadata and KEYS.isdisjoint(metadata):
        keys = brief(", ".join(map(str, metadata)))
        message = f"no key that a lesson knows, but {keys}: if it is text, put a blank line above"
        yield Finding(shown, file.frontmatter.start, HEAD, message, WARNING)
    if metadata:
        for line, message in oddities(file, file.frontmatter, _WORDS):
            yield Finding(shown, line, HEAD, message, WARNING)


def _declared(metadata: dict[Any, Any]) -> Sequence[str]:
    return words(metadata.get("categories", metadata.get("category")))


def _types(shown: str, text: str, metadata: dict[Any, Any]) -> Iterator[Finding]:
    def wrong(key: str, wanted: str) -> Finding:
        line = line_of_key(text, key)
        return Finding(shown, line, "type", f"{key} must be {wanted}, not {brief(metadata[key])}")

    for key, value in metadata.items():
        if value is None:
            continue
        if key in _LISTS:
            members = value if isinstance(value, list) else [value]
            if not all(isinstance(member, (str, int, float, date)) for member in members):
                yield wrong(key, "a list of texts")
        elif key in _TEXTS and isinstance(value, (list, dict)):
            yield wrong(key, "a text")
        elif key == "confidence" and (type(value) is not int or not 1 <= value <= 5):
            yield wrong(key, "a whole number from 1 to 5")
        elif key in _DATES and parse_time(value) is None:
            yield wrong(key, "a date such as 2025-11-15 or 2025-11-15T10:30:00Z")
    for anchor in words(metadata.get("anchors")):
        if anchor_of(anchor) is None:
            message = f"anchors: {brief(anchor)} names no code: write store/upload.py#retry"
            yield Finding(shown, line_of_key(text, "anchors"), "anchor", message, WARNING)
    kind = metadata.get("type")
    if isinstance(kind, str) and kind and kind not in TYPES:
        message = f"{brief(kind)} is not one of {', '.join(TYPES)}: agents cannot search by it"
        yield Finding(shown, line_of_key(text, "type"), "type", message, WARNING)


def _categories(
    shown: str, text: str, path: str, declared: Sequence[str], existing: Collection[str]
) -> Iterator[Finding]:
    line = line_of_key(text, "categories")
    filed = []
    for raw in declared:
        category = normalise(raw)
        filed.append(category)
        problem, severity = "", WARNING
        if not category:
            problem, severity = f"{brief(raw)} is not a category: write devops/ci-cd", ERROR
        elif category != raw:
            problem = f"write {category[:200]}, not {brief(raw, 200)}"
        elif category.count("/") >= MAX_DEPTH:
            problem = f"{category} is deeper than {MAX_DEPTH} levels: a filter ends there"
        if problem:
            yield Finding(shown, line, "category", problem, severity)
    for category in filed or [from_folder(path) or ""]:
        meant = _one_typo_away(category, existing)
        if meant:
            message = f"{category} is new, and one letter away from {meant}"
            yield Finding(shown, line, "category", message, WARNING)


def _one_typo_away(category: str, existing: Collection[str]) -> str:
    """Return the existing category that differs by one letter in one part; "" if none does."""
    new = next((prefix for prefix in prefixes(category) if prefix not in existing), "")
    above, _, name = new.rpartition("/")
    if len(name) < TYPO_LETTERS:
        return ""
    from rapidfuzz.distance import OSA  # 20 ms, for new categories only

    for other in sorted(existing):
        parent, _, last = other.rpartition("/")
        # one insertion, deletion, change or swap of neighbours
        if parent == above and OSA.distance(name, last, score_cutoff=1) <= 1:
            return other
    return ""


def _taught(shown: str, text: str, lessons: list[Lesson]) -> Iterator[Finding]:
    """Report texts in both lists of a file, lines that any failure has, and globs of any file.

    A prompt or line can fire the file's lessons or silence them, not both.
    """
    for fires, silent, same in (
        ("fires_on", "silent_on", lambda prompt: " ".join(prompt.split()).casefold()),
        ("fires_on_error", "silent_on_error", failure.normalise),
    ):
        for lesson in lessons[:1]:  # each lesson of a file has the file's prompts
            taught = set(map(same, getattr(lesson, fires)))
            for prompt in getattr(lesson, silent):
                if same(prompt) in taught:
                    message = f"{brief(prompt)} is in {fires}, too: remove it from one of them"
                    yield Finding(shown, line_of_key(text, silent), "taught-both", message)
    for key in ("fires_on_error", "silent_on_error"):
        for prompt in getattr(lessons[0], key) if lessons else ():
            if not failure.is_specific(prompt):
                message = f"{key}: many failures say {brief(prompt)}: write more of the message"
                yield Finding(shown, line_of_key(text, key), "any-failure", message)
    for glob in lessons[0].applies_to if lessons else ():
        if not _NAME.search(glob) or _ELSEWHERE.match(glob):
            message = f"applies_to: {brief(glob)} names no files here: write migrations/**"
            yield Finding(shown, line_of_key(text, "applies_to"), "any-file", message)


def _size(shown: str, lessons: list[Lesson]) -> Iterator[Finding]:
    if not any(lesson.text.strip() for lesson in lessons):
        yield Finding(shown, 1, "empty", "there is no text: say what was learned")
    for lesson in lessons:
        if len(lesson.text) > GIANT_CHARS:
            size = f"{one_line(lesson.title, 60)!r} has {len(lesson.text):,} characters"
            hint = "an agent gets the first few hundred words; split it into lessons"
            yield Finding(shown, 1, "giant", f"{size}: {hint}", WARNING)


RULE = "conflict-markers"
MESSAGE = "a merge conflict that was not resolved"

# `=======` also underlines headings: that mark counts only inside a conflict
_BEGIN = re.compile(r"<{7,}(?: .*)?")
_MIDDLE = re.compile(r"={7,}(?: .*)?")
_END = re.compile(r">{7,}(?: .*)?")
_LABELLED = re.compile(r"[<>]{7,} \S.*")


def conflict_markers(path: str, text: str) -> Iterator[Finding]:
    """Find conflict markers at the beginning of lines, once for each conflict.

    A whole conflict inside one code fence is an example in a lesson about merges: a warning.
    """
    file = LessonFile.of_text(text, path)
    begin = middle = 0  # line numbers; 0: not seen
    for number, line in enumerate(file.text(range(len(file.lines))).split("\n"), start=1):
        if _BEGIN.fullmatch(line):
            if begin:
                yield Finding(path, begin, RULE, MESSAGE)
            begin, middle = number, 0
        elif begin and _MIDDLE.fullmatch(line):
            middle = number
        elif _END.fullmatch(line) and (begin or _LABELLED.fullmatch(line)):
            fence = file.fence_starts[begin - 1] if begin and middle else None
            shown = (
                fence is not None and fence < begin - 1 and fence == file.fence_starts[number - 1]
            )
            yield Finding(path, begin or number, RULE, MESSAGE, WARNING if shown else ERROR)
            begin = 0
    if begin and (middle or _LABELLED.fullmatch(file.text(range(begin - 1, begin)).rstrip("\n"))):
        yield Finding(path, begin, RULE, MESSAGE)
