"""A cluster -> the texts of its SKILL.md and reference.md, by the templates beside this module."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from string import Template

from vault_index.errors import LessonError, VaultError
from vault_index.learn.skills.cluster import MAX_NAME_CHARS, Cluster, Pattern
from vault_index.lesson import category
from vault_index.lesson.file import LessonFile, hash_of_file
from vault_index.lesson.frontmatter import metadata_of
from vault_index.skill import CATEGORIES, FILE, PROMPTS, SILENT
from vault_index.text import blocks
from vault_index.text.blocks import one_line
from vault_index.text.quote import clean

# Texts of lessons as they may be written into a skill's files: data, whatever they say.
#
# In a SKILL.md an agent's program may run what is between `` !` `` and a backtick, fill in
# `$ARGUMENTS`, and read in the file that a word names which begins with `@`. A heading of a lesson
# must not become one of the file's; and what a lesson leaves open - a fence, a comment - must not
# swallow the next.

_HEADING = re.compile(r"(#{1,6})([ \t]+\S)")
_BELOW = 3  # headings of a reference that are above those of a lesson
_RUN = re.compile(r"!(?=`)")
_FILLED_IN = re.compile(r"\$(?=[A-Z0-9{])")
_READ_IN = re.compile(r"(?<!\w)@(?=[^\s@])")  # not the sign of an address: ada@example.org


def line(text: str, most: int = 300) -> str:
    """Return a text in one line for a SKILL.md, cut at a word."""
    plain = " ".join(clean(text).split())
    plain = _READ_IN.sub("@ ", _FILLED_IN.sub("$ ", _RUN.sub("! ", plain)))
    return one_line(plain.lstrip("#-*+>|=@ "), most)


def phrase(text: str, most: int = 160) -> str:
    """Return a text for a description: in one line, and without angle brackets, which it may not have."""
    return line(text.replace("<", " ").replace(">", " "), most).replace('"', "'").rstrip(" .;:,")


def part(text: str) -> str:
    """Return a part of a lesson's text for a reference: headings lowered, what is open closed."""
    lines = clean(text).strip("\n").split("\n")
    there = blocks.of_text("\n".join(lines))
    inside = blocks.flags(there, len(lines), blocks.CODE)

    def lower(heading: re.Match[str]) -> str:
        return "#" * min(6, len(heading[1]) + _BELOW) + heading[2]

    pairs = zip(lines, inside, strict=True)
    shown = [each if is_code else _HEADING.sub(lower, each, count=1) for each, is_code in pairs]
    if there and there[-1].kind == blocks.FENCE and not there[-1].is_closed:
        shown.append(there[-1].mark)
    whole = "\n".join(shown).rstrip()
    return f"{whole}\n-->" if whole.rfind("<!--") > whole.rfind("-->") else whole


def with_examples(text: str) -> tuple[str, str]:
    """Split an explanation before its first block of code: the prose, and the examples."""
    lines = text.split("\n")
    first = next((each.start for each in blocks.of_text(text) if each.kind == blocks.FENCE), None)
    if first is None:
        return text, ""
    while first > 0 and not lines[first - 1].strip():
        first -= 1
    if first > 0 and lines[first - 1].rstrip().endswith(":"):  # what introduces it stays with it
        while first > 0 and lines[first - 1].strip():
            first -= 1
    return "\n".join(lines[:first]).strip(), "\n".join(lines[first:]).strip()


def anchor(heading: str) -> str:
    """Return the anchor of a heading, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", category.heading_of(f"# {heading}").lower()).replace(" ", "-")


REFERENCE = "reference.md"
MAX_DESCRIPTION_CHARS = 1024  # by the format
MAX_BODY_LINES = 500  # below it
MAX_AREAS = 200  # in SKILL.md; the reference has all
_FRAME_CHARS = 120  # of a description: the words around titles and prompts


@dataclass(frozen=True, slots=True)
class Templates:
    """The texts that a skill is made by, with `$names` to fill in."""

    skill: str
    reference: str
    pattern: str


@dataclass(frozen=True, slots=True)
class Files:
    """The two files of a skill."""

    skill: bytes
    reference: bytes


def templates() -> Templates:
    """Return the templates of this package."""
    folder = resources.files("vault_index.learn.skills")
    names = (f"{FILE}.template", f"{REFERENCE}.template", "pattern.md.template")
    return Templates(*(folder.joinpath(name).read_text("utf-8") for name in names))


def files_of(cluster: Cluster, commit: str, by: Templates) -> Files:
    """Return the files of a skill. `commit` is where the lessons were read.

    Raises VaultError where a template cannot be filled in, or makes no skill.
    """
    patterns, tag = cluster.patterns, cluster.tag
    count = "1 pattern" if len(patterns) == 1 else f"{len(patterns)} patterns"
    headings = map(_heading, itertools.count(1), patterns)
    sections = (_section(by.pattern, number, each) for number, each in enumerate(patterns, 1))
    reference = _filled(
        by.reference,
        tag=tag,
        count=count,
        contents="\n".join(f"- [{_bare(each)}](#{anchor(each)})" for each in headings),
        patterns="\n\n".join(sections),
    ).encode()
    times = "once" if cluster.uses == 1 else f"{cluster.uses} times"
    used = f"agents had got them {times} since {cluster.since}"
    skill = _filled(
        by.skill,
        name=cluster.name,
        description=quoted(description(cluster)),
        metadata="\n".join(lines_of(cluster, commit, reference)),
        tag=tag,
        summary=(
            f"{count} that people of this project accepted as lessons about {tag}, with a mean"
            f" confidence of {cluster.confidence:.1f} of 5. When this was built,"
            f" {used if cluster.since else 'no agent had got any of them'}."
        ),
        areas="\n".join(_areas(patterns)),
    )
    _check(cluster, skill)
    return Files(signed(skill.encode()), reference)


def description(cluster: Cluster) -> str:
    """Return when to use a skill, by its lessons' prompts, titles and conditions, in that order.

    Each lesson has its turn before another has a second, until the room is used up.
    """
    room = MAX_DESCRIPTION_CHARS - _FRAME_CHARS - len(cluster.tag)
    into: dict[str, list[str]] = {"asked": [], "title": [], "when": []}
    for turn in itertools.zip_longest(*map(_turns, cluster.patterns), fillvalue=("when", "")):
        for kind, text in turn:
            if text and text not in into[kind] and len(text) + 4 <= room:
                into[kind].append(text)
                room -= len(text) + 4
    said = [f"Patterns learned in this project about {cluster.tag}: {'; '.join(into['title'])}."]
    said += [f"Use when {'; '.join(into['when'])}."] if into["when"] else []
    quoted = "; ".join(f"'{text}'" for text in into["asked"])
    said += [f"Use for requests like {quoted}."] if quoted else []
    said += [] if len(said) > 1 else [f"Use when the work is about {cluster.tag}."]
    return one_line(" ".join(said), MAX_DESCRIPTION_CHARS)


def _turns(pattern: Pattern) -> list[tuple[str, str]]:
    """Return what a lesson would have in a description, the most telling first."""
    prompts = [("asked", phrase(text)) for text in pattern.fires_on]
    when = pattern.parts.when.partition("\n\n")[0]
    first = [("title", phrase(pattern.title, 100)), *prompts[:1]]
    return [*first, *prompts[1:2], ("when", phrase(when)), *prompts[2:]]


def _areas(patterns: Sequence[Pattern]) -> Iterator[str]:
    for number, pattern in enumerate(patterns[:MAX_AREAS], start=1):
        title = line(pattern.title, 100)
        place = f"{REFERENCE}#{anchor(_heading(number, pattern))}"
        yield f"- [{_bare(title)}]({place}): {line(pattern.parts.summary)}"
    if len(patterns) > MAX_AREAS:
        yield f"- and {len(patterns) - MAX_AREAS} more in [{REFERENCE}]({REFERENCE})"


def _heading(number: int, pattern: Pattern) -> str:
    return f"{number}. {line(pattern.title, 100)}"


def _bare(text: str) -> str:
    """Return a text that ends no link that it is in."""
    return text.replace("[", "(").replace("]", ")")


def _section(template: str, number: int, pattern: Pattern) -> str:
    return _filled(
        template,
        number=number,
        title=line(pattern.title, 100),
        confidence=pattern.confidence,
        uses=f"{pattern.uses} since {pattern.since[:10]}" if pattern.since else pattern.uses,
        type=pattern.type,
        id=line(pattern.id).replace("`", "'"),
        sections="\n\n".join(f"### {name}\n\n{text}" for name, text in _parts(pattern) if text),
    ).rstrip("\n")


def _parts(pattern: Pattern) -> Iterator[tuple[str, str]]:
    """Yield the headings of a pattern and what is below each; "" where the lesson says nothing."""
    of = pattern.parts
    explained, examples = with_examples(of.explanation)
    prompts = "\n".join(f"- {line(text)}" for text in pattern.fires_on)
    asked = f"Asked as:\n\n{prompts}" if prompts else ""
    yield "Problem", part(of.problem)
    yield "Solution", "\n\n".join(filter(None, map(part, (of.summary, explained))))
    yield "When to apply", "\n\n".join(filter(None, [part(of.when), asked]))
    yield "When not to apply", part(of.when_not)
    sides = [*(f"- for: {line(text)}" for text in of.pro)]
    sides += [f"- against: {line(text)}" for text in of.con]
    yield "Trade-offs", "\n".join(sides)
    yield "Examples", part(examples)
    yield "Related", "\n".join(f"- {kind}: {line(name)}" for kind, name in of.related)


def _filled(template: str, **values: object) -> str:
    try:
        return Template(template).substitute(values)
    except (KeyError, ValueError) as error:
        raise VaultError(f"a template cannot be filled in: {error}") from None


def _check(cluster: Cluster, skill: str) -> None:
    """Raise VaultError for what the format does not allow."""
    body = skill.split("\n---\n", 1)[-1]
    if len(cluster.name) > MAX_NAME_CHARS or not skill.startswith("---\n") or body == skill:
        raise VaultError("the template makes no SKILL.md: it has no frontmatter")
    if body.count("\n") >= MAX_BODY_LINES:
        raise VaultError(f"the body would have {MAX_BODY_LINES} lines or more")


# What a skill was built from: lesson ids and hashes, the commit, and the hashes of its files.
#
# It is in the metadata of the skill's own SKILL.md, all of it strings:
#
#     metadata:
#       learned-tag: "retries"
#       learned-commit: "4f2a..."          the commit that was checked out, "" for none
#       learned-reference: "91c0..."       the hash of reference.md as built
#       learned-skill: "77ab..."           the hash of SKILL.md as built, with zeros in this place
#       learned-prompts: "how ..."         prompts of the lessons, a line each: the index knows them
#       learned-silent: "how ..."          the same, of those that must not find them
#       categories: "backend, devops"      those of the lessons
#       lesson-1: "03de... backend/retry"  the hash of what the skill says of a lesson, and its id
#
# Line ends do not count: git may change them. An id is no key: a hash behind `password:` reads
# like one.

TAG, COMMIT = "learned-tag", "learned-commit"
REFERENCE_HASH, SKILL = "learned-reference", "learned-skill"
MARK = f"{TAG}:".encode()  # in each SKILL.md that was built
LESSON = "lesson-"  # begins the key of a lesson
_UNSIGNED = "0" * 32
_SIGNATURE = re.compile(rb'(?m)^(  learned-skill: )"[0-9a-f]{32}"$')


@dataclass(frozen=True, slots=True)
class Lineage:
    """The metadata of a skill, and whether SKILL.md still is as it was built."""

    tag: str
    reference: str
    lessons: Mapping[str, str]  # id -> hash
    is_as_built: bool


def lines_of(cluster: Cluster, commit: str, reference: bytes) -> Iterator[str]:
    """Yield the lines of the metadata, not yet signed."""
    values = {TAG: cluster.tag, COMMIT: commit, REFERENCE_HASH: digest(reference), SKILL: _UNSIGNED}
    for key, name in ((PROMPTS, "fires_on"), (SILENT, "silent_on")):
        prompts = [line(text) for each in cluster.patterns for text in getattr(each, name)]
        values |= {key: "\n".join(prompts)} if prompts else {}
    filed = sorted({path for each in cluster.patterns for path in each.categories})
    values |= {CATEGORIES: ", ".join(filed)} if filed else {}
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


def read_lineage(skill: bytes, path: str) -> Lineage | None:
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
    hashed = [value.partition(" ") for key, value in values.items() if key.startswith(LESSON)]
    lessons = {id: hash for hash, _, id in hashed}
    is_as_built = digest(unsigned) == values.get(SKILL)
    return Lineage(values[TAG], values.get(REFERENCE_HASH, ""), lessons, is_as_built)


def digest(data: bytes) -> str:
    """Hash a file as it is with line feeds."""
    return hash_of_file(data.replace(b"\r\n", b"\n"))
