"""A cluster -> the texts of its SKILL.md and reference.md, by the templates beside this module."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from string import Template

from vault_index.errors import VaultError
from vault_index.learn.skills import lineage, plain
from vault_index.learn.skills.cluster import MAX_NAME_CHARS, Cluster, Pattern
from vault_index.skill import FILE

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

    Raises VaultError where a template cannot be filled in, or the result is no skill.
    """
    reference = _filled(
        by.reference,
        tag=cluster.tag,
        count=_count(len(cluster.patterns)),
        contents="\n".join(_contents(cluster.patterns)),
        patterns="\n\n".join(
            _section(by.pattern, number, each)
            for number, each in enumerate(cluster.patterns, start=1)
        ),
    ).encode()
    skill = _filled(
        by.skill,
        name=cluster.name,
        description=lineage.quoted(description(cluster)),
        metadata="\n".join(lineage.lines_of(cluster, commit, reference)),
        tag=cluster.tag,
        summary=_summary(cluster),
        areas="\n".join(_areas(cluster.patterns)),
    )
    _check(cluster, skill)
    return Files(lineage.signed(skill.encode()), reference)


def description(cluster: Cluster) -> str:
    """Return when to use a skill, by its lessons' prompts, titles and conditions, in that order.

    Each lesson has its turn before another has a second, until the room is used up.
    """
    room = MAX_DESCRIPTION_CHARS - _FRAME_CHARS - len(cluster.tag)
    asked: list[str] = []
    titles: list[str] = []
    when: list[str] = []
    turns = [_turns(each) for each in cluster.patterns]
    into = {"asked": asked, "title": titles, "when": when}
    for turn in range(max(map(len, turns), default=0)):
        for kind, text in (each[turn] for each in turns if turn < len(each)):
            if text and text not in into[kind] and len(text) + 4 <= room:
                into[kind].append(text)
                room -= len(text) + 4
    said = [f"Patterns learned in this project about {cluster.tag}: {'; '.join(titles)}."]
    said += [f"Use when {'; '.join(when)}."] if when else []
    quoted = "; ".join(f"'{text}'" for text in asked)
    said += [f"Use for requests like {quoted}."] if asked else []
    said += [] if when or asked else [f"Use when the work is about {cluster.tag}."]
    return plain.shortened(" ".join(said), MAX_DESCRIPTION_CHARS)


def _turns(pattern: Pattern) -> list[tuple[str, str]]:
    """Return what a lesson would have in a description, the most telling first."""
    prompts = [("asked", plain.phrase(text)) for text in pattern.fires_on]
    when = pattern.parts.when.partition("\n\n")[0]
    first = [("title", plain.phrase(pattern.title, 100)), *prompts[:1]]
    return [*first, *prompts[1:2], ("when", plain.phrase(when)), *prompts[2:]]


def _summary(cluster: Cluster) -> str:
    count = _count(len(cluster.patterns))
    return (
        f"{count} that people of this project accepted as lessons about {cluster.tag},"
        f" with a mean confidence of {cluster.confidence:.1f} of 5."
    )


def _areas(patterns: Sequence[Pattern]) -> Iterator[str]:
    for number, pattern in enumerate(patterns[:MAX_AREAS], start=1):
        title = plain.line(pattern.title, 100)
        place = f"{REFERENCE}#{plain.anchor(_heading(number, pattern))}"
        yield f"- [{_bare(title)}]({place}): {plain.line(pattern.parts.summary)}"
    if len(patterns) > MAX_AREAS:
        yield f"- and {len(patterns) - MAX_AREAS} more in [{REFERENCE}]({REFERENCE})"


def _contents(patterns: Sequence[Pattern]) -> Iterator[str]:
    for number, pattern in enumerate(patterns, start=1):
        heading = _heading(number, pattern)
        yield f"- [{_bare(heading)}](#{plain.anchor(heading)})"


def _heading(number: int, pattern: Pattern) -> str:
    return f"{number}. {plain.line(pattern.title, 100)}"


def _bare(text: str) -> str:
    """Return a text that ends no link that it is in."""
    return text.replace("[", "(").replace("]", ")")


def _section(template: str, number: int, pattern: Pattern) -> str:
    return _filled(
        template,
        number=number,
        title=plain.line(pattern.title, 100),
        confidence=pattern.confidence,
        uses=pattern.uses,
        type=pattern.type,
        id=plain.line(pattern.id).replace("`", "'"),
        sections="\n\n".join(
            f"### {heading}\n\n{text}" for heading, text in _parts(pattern) if text
        ),
    ).rstrip("\n")


def _parts(pattern: Pattern) -> Iterator[tuple[str, str]]:
    """Yield the headings of a pattern and what is below each; "" where the lesson says nothing."""
    of = pattern.parts
    explained, examples = plain.with_examples(of.explanation)
    prompts = "\n".join(f"- {plain.line(text)}" for text in pattern.fires_on)
    asked = f"Asked as:\n\n{prompts}" if prompts else ""
    yield "Problem", plain.part(of.problem)
    yield "Solution", "\n\n".join(filter(None, map(plain.part, (of.summary, explained))))
    yield "When to apply", "\n\n".join(filter(None, [plain.part(of.when), asked]))
    yield "When not to apply", plain.part(of.when_not)
    sides = [*(f"- for: {plain.line(text)}" for text in of.pro)]
    sides += [f"- against: {plain.line(text)}" for text in of.con]
    yield "Trade-offs", "\n".join(sides)
    yield "Examples", plain.part(examples)
    yield "Related", "\n".join(f"- {kind}: {plain.line(name)}" for kind, name in of.related)


def _count(number: int) -> str:
    return "1 pattern" if number == 1 else f"{number} patterns"


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
