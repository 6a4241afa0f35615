"""Lines of instruction files that are no lessons, and headings that name no subject."""

from __future__ import annotations

import re

from vault_index.lesson.category import slugify
from vault_index.text import blocks

MIN_WORDS = 4  # a bullet of fewer is a label: "Node 20", "see below"
GLOSS_WORDS = 8  # that say what a command does, and no more
SUBJECT_CHARS = 40  # of a heading that goes before a title

WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\s\u3040-\u30ff\u3400-\u9fff]+")
# lines that say what the file is, and none of its rules
_INTRO = re.compile(
    r"(?:this|the following|these|what) (?:file|document|are|is|guide|repo|repository|project)?\b"
    r"[^\n]*(?:guidance|guidelines|instructions|conventions|should know|rules)[^\n]*$",
    re.IGNORECASE,
)
_ONLY_A_POINTER = re.compile(
    r"""(?:(?:for[ ][^,\n]{1,60},[ ])?(?:see|refer[ ]to)(?:[ ]also)?:?[ ])?(?:the[ ])?(?:
        \[[^\]\n]*\]\([^)\n]*\) | <?https?://\S+ | `[^`\s/.]*[/.][^`\s]*` | @\S+ | [^\s`/]*/[^\s`]*
    )(?:[ ]for[ ][^.\n]{1,60})?[.,]?""",
    re.VERBOSE | re.IGNORECASE,
)
_SPAN = re.compile(r"`([^`\n]+)`")
_LETTERS = re.compile(r"[^\W\d_][^\W_]*")
_COMMAND = re.compile(
    r"""[$>]?[ ]*(?:[A-Z_][A-Z0-9_]*=\S*[ ]+)*(?:sudo[ ]+)?(?:
        \./\S+ | (?:make|just|task|npm|npx|pnpm|yarn|bun|deno|node|python3?|pip3?|uvx?|poetry|pdm|hatch
        |pytest|tox|nox|ruff|mypy|black|cargo|go|docker|docker-compose|podman|git|gh|bundle|rails|rake
        |ruby|rspec|mvn|gradle|dotnet|composer|php|terraform|kubectl|helm|bash|sh|source|cd|cp|nx|turbo
        |tsc|vitest|jest|mix|swift|flutter|dart|cmake|ctest|bazel|curl|lessons)(?=\s|$)
    )[^\n]*""",
    re.VERBOSE,
)
# words of a rule or its reason: with one of them a line says more than what a command does
_TELLING = frozenset(
    """never not don dont always must should shall only before after because since so instead else
    otherwise unless until if when while whenever first without avoid prefer use keep need needs require
    requires fails breaks cannot can no do ensure make sure""".split()
)
_NO_SUBJECT = frozenset(
    """about basics best-practices coding-conventions coding-guidelines coding-standards commands
    common-commands conventions do-not don-ts dos-and-don-ts essential-commands general general-rules
    getting-started gotchas guidelines important important-notes instructions introduction key-commands
    lessons miscellaneous misc must-know notes other overview pitfalls practices principles
    project-overview quick-start rules standards tips useful-commands usage what-this-is""".split()
)
_OVERVIEW = frozenset("about introduction overview project-overview what-this-is".split())


def subject_of(headings: list[str]) -> str:
    """Return the nearest of some headings, outermost first, that names a subject; "" if none does."""
    named = (each for each in reversed(headings) if slugify(each) not in _NO_SUBJECT)
    return next(named, "")


def titled(subject: str, title: str) -> str:
    """Return a title with the subject before it, unless it is long or the title has its words."""
    words = set(slugify(subject).split("-"))
    if not subject or len(subject) > SUBJECT_CHARS or words <= set(slugify(title).split("-")):
        return title
    return f"{subject}: {title}"


def is_overview(heading: str) -> bool:
    """Whether a heading stands above the description of a project."""
    return slugify(heading) in _OVERVIEW


def is_telling(text: str) -> bool:
    """Whether a text has a word of a rule."""
    return not _TELLING.isdisjoint(map(str.lower, _LETTERS.findall(_SPAN.sub(" ", text))))


def why_none(text: str) -> str:
    """Return the reason for which a text says nothing by itself; "" if it does."""
    if _ONLY_A_POINTER.fullmatch(text):
        return "a pointer"
    if text.startswith("~~") and text.endswith("~~"):
        return "struck out"
    is_line = "\n" not in text
    if is_line and (_INTRO.match(text) or text.rstrip("*_").endswith(":")):
        return "an introduction"
    return "a command" if _is_command(text) else ""


def _is_command(text: str) -> bool:
    """Whether a text is commands and at most some words on each."""
    lines = text.split("\n")
    in_code = blocks.code_lines(lines)
    prose = "\n".join(line for line, code in zip(lines, in_code, strict=True) if not code)
    fenced = [line.strip() for line, code in zip(lines, in_code, strict=True) if code]
    commands = [line for line in fenced if line and not line.startswith(("#", "```", "~~~"))]
    commands += [span.strip() for span in _SPAN.findall(prose)]
    gloss = _SPAN.sub(" ", prose)
    words = [word for word in WORD.findall(gloss) if any(map(str.isalnum, word))]
    has_figure = any(character.isdigit() for character in gloss)
    if not commands or not all(map(_COMMAND.fullmatch, commands)):
        return False
    return len(words) <= GLOSS_WORDS and not has_figure and not is_telling(gloss)
