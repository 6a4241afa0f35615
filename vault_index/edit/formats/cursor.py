"""Rule files of coding agents, a lesson each: Cursor's `.mdc`, Copilot's `.instructions.md`.

Their heads look like YAML, and often are not: `globs: **/*.ts`. So each line counts by itself.
Windsurf's and Claude Code's rules have heads of the same kind.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from vault_index.edit.formats.lesson_file import (
    Draft,
    cut,
    file_of,
    first_sentence,
    has_body,
    name_of,
    one_lesson,
    stem_of,
    text_of,
)
from vault_index.errors import LessonError
from vault_index.lesson import category
from vault_index.lesson.category import heading_of
from vault_index.lesson.file import LessonFile
from vault_index.lesson.frontmatter import metadata_of
from vault_index.text import globs

RULE = "project_rule"

_KEY = re.compile(r"(?P<key>[A-Za-z][\w-]*)[ \t]*:(?:[ \t]+(?P<value>.*))?[ \t]*")
_ITEM = re.compile(r"[ \t]*-[ \t]+(?P<value>.*)")
_FOLDED = frozenset(("", "|", ">", "|-", ">-"))  # values that stand in the lines below
_SUFFIXES = (".mdc", ".instructions.md")
_FILES = ("globs", "glob", "applyTo", "paths", "fileMatchPattern")  # keys, each agent's own
_SIGNS = frozenset(("globs", "alwaysApply", "applyTo"))  # keys that no other markdown has
_ALWAYS = frozenset(("always_on", "always"))  # as `trigger` and `inclusion`
_MADE_OF = frozenset((*_FILES, *"description alwaysApply trigger inclusion title name".split()))
_ANY_FILE = re.compile(r"[*./]*")  # a glob without a name
_ELSEWHERE = re.compile(r"[!~]|[A-Za-z]:|.*\\|(?:.*/)?\.\.(?:/|$)")
_LINK = re.compile(r"\]\(mdc:/?(?=[^)\s])")


def looks_like_rule(text: str, name: str) -> bool:
    """Whether a file is a rule, by its name or by a key of its head."""
    if name.lower().endswith(_SUFFIXES):
        return True
    head, _ = _cut(text.split("\n"))
    keys = _loose(head).keys()
    return not _SIGNS.isdisjoint(keys) or (keys <= _MADE_OF and not keys.isdisjoint(_FILES))


def read_cursor(data: bytes, path: str) -> list[Draft]:
    """Read a rule: one draft, or none when it has no text.

    The description goes into the text, where searches and agents see it. The globs become `applies_to`,
    a rule that always applies a `project_rule`; other keys stay. Raises LessonError, with the line, for
    text that is not UTF-8.
    """
    keys, lines = _read(text_of(data, path).split("\n"))
    about = " ".join(str(keys.get("description") or "").split())
    body = _LINK.sub("](/", "\n".join(lines)).strip()
    first, _, rest = body.partition("\n")
    heading = heading_of(first)
    named = " ".join(str(keys.get("title") or "").split())
    title = cut(named or heading) or first_sentence(about) or _title_of(path)
    rest = rest.strip() if heading else body
    text = rest if about in rest else f"{about}\n\n{rest}".strip()
    if not has_body(text):
        return []
    files = _files(keys)
    is_rule = keys.get("alwaysApply") is True or _always(keys)
    written: dict[str, Any] = {
        "title": title,
        "type": keys.get("type") or (RULE if is_rule else None),
        "applies_to": files or None,
        "source": keys.get("source") or (None if path == "-" else path),
    }
    others = {key: value for key, value in keys.items() if key not in _MADE_OF}
    written = {key: value for key, value in (written | others).items() if value not in (None, "")}
    folder = category.from_folder(path) or ""
    declared = [each for each in map(category.normalise, _texts(keys.get("categories"))) if each]
    stem = stem_of(path).removesuffix(".instructions")
    name = name_of(stem if stem.upper() != "RULE" else "", title)
    filed = tuple(dict.fromkeys(declared or filter(None, [folder])))
    return [Draft(name, filed, file_of(written, one_lesson(text)), 1)]


def _read(lines: Sequence[str]) -> tuple[dict[str, Any], Sequence[str]]:
    """Return the keys of a head, and the lines below it. A second head below it adds to the first."""
    keys: dict[str, Any] = {}
    while True:
        head, rest = _cut(lines)
        found = _values(head)
        if not found:
            return keys, lines
        keys |= {key: value for key, value in found.items() if value or key not in keys}
        lines = rest


def _cut(lines: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Return the lines between the dashes at the beginning, and those below; () and all without."""
    start = next((n for n, line in enumerate(lines) if line.strip()), len(lines))
    if start == len(lines) or lines[start].rstrip() != "---":
        return (), lines
    end = next((n for n in range(start + 1, len(lines)) if lines[n].rstrip() == "---"), None)
    if end is None or not all(map(_is_of_head, lines[start + 1 : end])):
        return (), lines
    return lines[start + 1 : end], lines[end + 1 :]


def _is_of_head(line: str) -> bool:
    is_value = line[:1] in ("", " ", "\t", "#") or bool(_ITEM.fullmatch(line))
    return is_value or bool(_KEY.fullmatch(line))


def _values(head: Sequence[str]) -> dict[str, Any]:
    """Return the keys of a head as YAML, or line by line where it is not YAML."""
    text = "".join(f"{line}\n" for line in ("---", *head, "---"))
    try:
        found = metadata_of(LessonFile.of_text(text, ""))
        return {str(key): value for key, value in found.items()}
    except LessonError:
        return {key: _value(value) for key, value in _loose(head).items()}


def _loose(head: Iterable[str]) -> dict[str, str | list[str]]:
    """Return the keys of a head with the text behind or below each."""
    found: dict[str, str | list[str]] = {}
    key = ""
    for line in head:
        match, item = _KEY.fullmatch(line), _ITEM.fullmatch(line)
        if match:
            key = match["key"]
            found[key] = (match["value"] or "").strip()
        elif key and item:
            before = found[key]
            found[key] = [*(before if isinstance(before, list) else []), item["value"].strip()]
        elif key and line.strip() and isinstance(found[key], str):
            before = str(found[key])
            found[key] = " ".join(["" if before in _FOLDED else before, line.strip()]).strip()
    return found


def _value(written: str | list[str]) -> Any:
    """Return a value as YAML reads it, where it is YAML by itself, else as it is written."""
    if isinstance(written, list):
        return [_value(each) for each in written]
    try:
        return metadata_of(LessonFile.of_text(f"---\ntitle: {written}\n---\n", ""))["title"]
    except LessonError:
        return written


def _files(keys: Mapping[str, Any]) -> list[str]:
    """Return the globs of a head, below the top of a repository; none for all of its files."""
    listed = itertools.chain.from_iterable(_globs(keys.get(key)) for key in _FILES)
    inside = (each.removeprefix("./").lstrip("/") for each in listed if not _ELSEWHERE.match(each))
    return list(dict.fromkeys(each for each in inside if not _ANY_FILE.fullmatch(each)))


def _globs(value: Any) -> list[str]:
    return [glob for text in _texts(value) for glob in globs.split(text)]


def _texts(value: Any) -> list[str]:
    values = value if isinstance(value, list) else [value]
    return [each for each in values if isinstance(each, str)]


def _always(keys: Mapping[str, Any]) -> bool:
    """Whether another agent than Cursor gets a rule at each prompt."""
    triggers = {str(keys.get(key)) for key in ("trigger", "inclusion")}
    applied = _globs(keys.get("applyTo"))
    return not _ALWAYS.isdisjoint(triggers) or any(map(_ANY_FILE.fullmatch, applied))


def _title_of(path: str) -> str:
    stem = stem_of(path).removesuffix(".instructions")
    return " ".join(stem.replace("_", " ").replace("-", " ").split()) or "Rule"
