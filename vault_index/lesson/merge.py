"""Merge the lists in the frontmatter of a lesson file as sets; the rest is for git to merge.

Git merges by line, so tags that two people add to one line are a conflict. With the merged list in
all three versions of the file there is nothing left of it to merge.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from vault_index.errors import LessonError
from vault_index.lesson.edits import COMMENT, set_keys, set_own_keys
from vault_index.lesson.file import LessonFile, lines_of
from vault_index.lesson.frontmatter import metadata_of, own_of
from vault_index.lesson.parse import slugs_of


def with_merged_lists(ours: bytes, theirs: bytes, base: bytes) -> list[bytes]:
    """Return three versions of a file with the merged lists of its keys and its sections' keys.

    An item that a side added is there, one that a side removed is not. Unchanged are lists with
    comments, lists that a side does not have, and files that do not parse.
    """
    versions = [ours, theirs, base]
    try:
        keys = [_keys_by_slug(version) for version in versions]
        for slug in keys[0]:
            values = [each.get(slug, {}) for each in keys]
            for key in filter(lambda each: isinstance(each, str), values[0]):
                versions = _with_merged(versions, slug, key, [each.get(key) for each in values])
    except (LessonError, ValueError):
        return [ours, theirs, base]
    return versions


def _keys_by_slug(data: bytes) -> dict[str, Mapping[Any, Any]]:
    """Return the keys of a file, under "", and of each section by its slug."""
    file = LessonFile.of(data, "lesson.md")
    of_sections = {slug: own_of(file, section) for slug, section in slugs_of(file) if slug}
    return {"": metadata_of(file), **of_sections}


def _with_merged(
    versions: Sequence[bytes], slug: str, key: str, values: Sequence[Any]
) -> list[bytes]:
    """Return the versions with the merged value of a key; as they are if that is left to git."""
    same = list(versions)
    ours, theirs, base = values
    if not isinstance(ours, list) or not isinstance(theirs, list) or ours == theirs == base:
        return same
    is_by_one = base in (ours, theirs)
    merged = _union(ours, theirs, base if isinstance(base, list) else [])
    if is_by_one:
        merged = theirs if base == ours else ours
    # a version without the key does not get it: the base, where both sides added it
    written = [
        version if value is None else _with_key(version, slug, key, merged)
        for version, value in zip(versions, values, strict=True)
    ]
    if any(map(_has_lost_a_comment, versions, written)):
        return same
    if is_by_one and written[base == ours] != versions[base == ours]:
        return same  # git takes it as its author wrote it
    return written


def _union(ours: list[Any], theirs: list[Any], base: list[Any]) -> list[Any]:
    by_text = {repr(item): item for item in (*base, *ours, *theirs)}
    old, mine, yours = ({repr(item) for item in side} for side in (base, ours, theirs))
    return [item for text, item in by_text.items() if text not in old or text in mine & yours]


def _with_key(data: bytes, slug: str, key: str, value: list[Any]) -> bytes:
    return set_own_keys(data, slug, {key: value}) if slug else set_keys(data, {key: value})


def _has_lost_a_comment(before: bytes, after: bytes) -> bool:
    old, new = (set(lines_of(each.decode("utf-8", "replace"))) for each in (before, after))
    return any(map(COMMENT.search, old - new))
