"""A cluster -> its SKILL.md and reference.md, by the templates beside this module."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Sequence
from importlib import resources
from string import Template

from vault_index.learn.skills.cluster import Cluster, UsedLesson
from vault_index.lesson import category, passages
from vault_index.lesson.file import hash_of_file
from vault_index.lesson.skill import CATEGORIES, FILE, PROMPTS, SILENT
from vault_index.text import quote
from vault_index.text.blocks import one_line
from vault_index.text.quote import clean
from vault_index.text.words import count

REFERENCE = "reference.md"
MAX_DESCRIPTION_CHARS = 1024  # by the format


def files_of(cluster: Cluster) -> dict[str, bytes]:
    """Return the files of a skill by name, SKILL.md last: the same for the same lessons."""
    patterns = cluster.patterns
    number = count(len(patterns), "pattern")
    headings = [f"{index}. {line(each.title, 100)}" for index, each in enumerate(patterns, 1)]
    reference = _filled(
        REFERENCE,
        tag=cluster.tag,
        count=number,
        contents="\n".join(f"- [{_bare(each)}](#{anchor(each)})" for each in headings),
        patterns="\n\n".join(map(_section, headings, patterns)),
    )
    skill = _filled(
        FILE,
        name=cluster.name,
        description=quoted(description(cluster)),
        metadata="".join(_metadata(patterns)),
        tag=cluster.tag,
        count=number,
        confidence=f"{cluster.confidence:.1f}",
        areas="\n".join(map(_area, headings, patterns)),
    )
    return {REFERENCE: reference, FILE: skill}


def description(cluster: Cluster) -> str:
    """Describe when to use a skill, by its lessons' titles and prompts.

    Each lesson has its turn before another has a second.
    """
    turns = itertools.zip_longest(*((each.title, *each.fires_on) for each in cluster.patterns))
    titles, *more = ([phrase(text) for text in turn if text] for turn in turns)
    requests = "; ".join(f"'{text}'" for text in itertools.chain.from_iterable(more))
    use = f"for requests like {requests}" if requests else f"when the work is about {cluster.tag}"
    about = f"Patterns learned in this project about {cluster.tag}: {'; '.join(titles)}. Use {use}."
    return one_line(about, MAX_DESCRIPTION_CHARS)


def _metadata(patterns: Sequence[UsedLesson]) -> Iterator[str]:
    for key, name in ((PROMPTS, "fires_on"), (SILENT, "silent_on")):
        if prompts := [line(text) for each in patterns for text in getattr(each, name)]:
            yield f"  {key}: {quoted(chr(10).join(prompts))}\n"
    if filed := sorted({path for each in patterns for path in each.categories}):
        yield f"  {CATEGORIES}: {quoted(', '.join(filed))}\n"


def _area(heading: str, pattern: UsedLesson) -> str:
    title, summary = heading.partition(" ")[2], line(passages.summary_of(pattern.text))
    return f"- [{_bare(title)}]({REFERENCE}#{anchor(heading)}): {summary}"


def _section(heading: str, pattern: UsedLesson) -> str:
    id = line(pattern.id).replace("`", "'")
    about = f"Confidence: {pattern.confidence} of 5. Lesson: `{id}`"
    prompts = "\n".join(f"- {line(text)}" for text in pattern.fires_on)
    prompt_lines = ["Asked as:", prompts] if prompts else []
    return "\n\n".join(
        [f"## {heading}", about, "\n".join(quote.lines(clean(pattern.text))), *prompt_lines]
    )


def anchor(heading: str) -> str:
    """Return the anchor of a heading, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", category.heading_of(f"# {heading}").lower()).replace(" ", "-")


def _bare(text: str) -> str:
    return text.replace("[", "(").replace("]", ")")


def quoted(text: str) -> str:
    """Return a text as YAML reads it: JSON is YAML, but for escapes of half characters.

    Some readers end the frontmatter at any `---` in it.
    """
    plain = json.dumps(text.encode("utf-8", "replace").decode(), ensure_ascii=False)
    return plain.replace("---", "--\\u002d")


# Texts of lessons as they may be written into a skill's files: data, whatever they say.
#
# In a SKILL.md an agent's program may run what is between `` !` `` and a backtick, fill in
# `$ARGUMENTS`, and read in the file that a word names which begins with `@`. In a reference a lesson
# is a quotation, so that its headings and what it leaves open end with it.
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


# Each file has its hash as it was built, with zeros in its place, on a line that no lesson can
# write above: in the metadata of SKILL.md, and first in the reference.
MARK = b"learned-hash: "
_UNSIGNED = "0" * 32
_SIGNATURE = re.compile(rb'(?m)^((?:  |<!-- )learned-hash: )"([0-9a-f]{32})"')


def _filled(file: str, **values: str) -> bytes:
    template = resources.files("vault_index.learn.skills").joinpath(f"{file}.template")
    data = plain(Template(template.read_text("utf-8")).substitute(values, hash=_UNSIGNED).encode())
    return _signed(data, hash_of_file(data))


def is_as_built(data: bytes) -> bool:
    """Whether a file still is as it was built."""
    found = _SIGNATURE.search(plain(data))
    unsigned = _signed(plain(data), _UNSIGNED)
    return found is not None and found[2].decode() == hash_of_file(unsigned)


def plain(data: bytes) -> bytes:
    """Return a file with line feeds: git may change them."""
    return data.replace(b"\r\n", b"\n")


def _signed(data: bytes, signature: str) -> bytes:
    return _SIGNATURE.sub(rb'\1"' + signature.encode() + rb'"', data, count=1)
