"""What a skill was built from: lesson ids and hashes, the commit, and the hashes of its files.

It is in the metadata of the skill's own SKILL.md, all of it strings:

    metadata:
      learned-tag: "retries"
      learned-commit: "4f2a..."          the commit that was checked out, "" for none
      learned-reference: "91c0..."       the hash of reference.md as built
      learned-skill: "77ab..."           the hash of SKILL.md as built, with zeros in this place
      learned-prompts: "how ..."         prompts of the lessons, a line each: the index knows them
      learned-silent: "how ..."          the same, of those that must not find them
      lesson-1: "03de... backend/retry"  for each lesson the hash of what the skill says of it, and its id

Line ends do not count: git may change them. An id is no key: a hash behind `password:` reads like one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from vault_index.errors import LessonError
from vault_index.learn.skills.cluster import Cluster
from vault_index.learn.skills.plain import line
from vault_index.lesson.digest import hash_of_file
from vault_index.lesson.file import LessonFile
from vault_index.lesson.frontmatter import metadata_of
from vault_index.skill import PROMPTS, SILENT

TAG, COMMIT, REFERENCE, SKILL = (
    "learned-tag",
    "learned-commit",
    "learned-reference",
    "learned-skill",
)
MARK = f"{TAG}:".encode()  # in each SKILL.md that was built
LESSON = "lesson-"  # begins the key of a lesson
_UNSIGNED = "0" * 32
_SIGNATURE = re.compile(rb'(?m)^(  learned-skill: )"[0-9a-f]{32}"$')


@dataclass(frozen=True, slots=True)
class Lineage:
    """What the metadata of a skill says, and whether SKILL.md still is as it was built."""

    tag: str
    commit: str
    reference: str
    lessons: Mapping[str, str]  # id -> hash
    is_as_built: bool


def lines_of(cluster: Cluster, commit: str, reference: bytes) -> Iterator[str]:
    """Yield the lines of the metadata, not yet signed."""
    of = cluster.patterns
    values = {TAG: cluster.tag, COMMIT: commit, REFERENCE: digest(reference), SKILL: _UNSIGNED}
    fires, silent = ([each.fires_on for each in of], [each.silent_on for each in of])
    for key, prompts in ((PROMPTS, fires), (SILENT, silent)):
        listed = "\n".join(line(text) for several in prompts for text in several)
        values |= {key: listed} if listed else {}
    for key, value in values.items():
        yield f"  {key}: {quoted(value)}"
    for number, pattern in enumerate(cluster.patterns, 1):
        yield f"  {LESSON}{number}: {quoted(f'{pattern.digest} {pattern.id}')}"


def quoted(text: str) -> str:
    """Return a text as YAML reads it: JSON is YAML, but for escapes of half characters.

    Some readers end the frontmatter at any `---` in it.
    """
    plain = json.dumps(text.encode("utf-8", "replace").decode(), ensure_ascii=False)
    return plain.replace("---", "--\\u002d")


def signed(skill: bytes) -> bytes:
    """Return a SKILL.md with its own hash in its metadata."""
    return _SIGNATURE.sub(rb'\1"' + digest(skill).encode() + rb'"', skill, count=1)


def read(skill: bytes, path: str) -> Lineage | None:
    """Return what a SKILL.md says that it was built from; None if it was not."""
    try:
        metadata = metadata_of(LessonFile.of(skill, path)).get("metadata")
    except LessonError:
        return None
    if not isinstance(metadata, dict) or TAG not in metadata:
        return None
    values = {str(key): str(value) for key, value in metadata.items()}
    plain = skill.replace(b"\r\n", b"\n")
    unsigned = _SIGNATURE.sub(rb'\1"' + _UNSIGNED.encode() + rb'"', plain, count=1)
    return Lineage(
        values[TAG],
        values.get(COMMIT, ""),
        values.get(REFERENCE, ""),
        {
            value.partition(" ")[2]: value.partition(" ")[0]
            for key, value in values.items()
            if key.startswith(LESSON)
        },
        digest(unsigned) == values.get(SKILL),
    )


def digest(data: bytes) -> str:
    """Hash a file as it is with line feeds."""
    return hash_of_file(data.replace(b"\r\n", b"\n"))
