"""The test of an entry: it is about something in particular, or says what every handbook says.

It counts what can be looked up: code, identifiers, paths, flags, versions, sizes, names. Words that
every project has (`git`, `test`, `null`) count nothing, and stock phrases ("best practices") count
against it. A lesson that only helps who knows it already costs an agent's attention and brings nothing.
"""

from __future__ import annotations

import re
from collections.abc import Collection

MIN_POINTS = 0.75
SAID = 0.25  # points of a word that the text shares with its quotes
STEM = 5  # letters of a word that are compared
_CODE = re.compile(r"`([^`\n]{2,200})`")
_FENCED = re.compile(r"(?ms)^(?:```|~~~).*?^(?:```|~~~)\s*$")
_IDENTIFIER = re.compile(
    r"(?<![\w./-])(?:"
    r"--?[a-z][\w-]+(?:=[\w./-]+)?"  # a flag
    r"|[A-Za-z_]\w*(?:_\w+)+"  # snake_case
    r"|[a-z]+[a-z0-9]*(?:[A-Z][a-z0-9]+)+|(?:[A-Z][a-z0-9]+){2,}"  # camelCase, PascalCase
    r"|[\w-]+(?:/[\w.-]+)+"  # a path
    r"|[\w-]+\.(?:py|js|ts|tsx|go|rs|java|rb|c|h|cpp|toml|ya?ml|json|sql|sh|ini|cfg|lock|md|html|css)"
    r"\b"
    r"|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+(?:\(\))?"  # dotted
    r"|[A-Za-z_]\w*\(\)"
    r"|[A-Z][A-Z0-9_]{3,}"  # an error code, a variable
    r")"
)
# a command of git without a name of the project: every handbook has it
_OF_GIT = re.compile(r"\bgit(?: -{0,2}[a-z][a-z-]*)+(?![\w./=:-])")
_NUMBER = re.compile(
    r"(?<![\w.])(?:v?\d+(?:\.\d+)+|\d[\d,]*(?:\.\d+)?\s?"
    r"(?:ms|s|seconds?|minutes?|hours?|days?|kB|KB|MB|GB|%|bytes|tokens|retries|rows|connections"
    r"|requests|files|workers|characters)\b|\d{3,}|[A-Z]\w+ \d+(?:\.\d+)*\b)"
)
_NAME = re.compile(r"(?<=[a-z,;] )[A-Z][a-zA-Z0-9]{2,}\b")
_STOCK = re.compile(
    r"(?i)\b(?:best practices?|clean code|meaningful (?:variable |function )?names?"
    r"|(?:write|add|have|run) (?:\w+ ){0,3}tests?\b|handle (?:\w+ )?(?:errors|exceptions)"
    r"|error handling|single responsibility|separation of concerns"
    r"|keep (?:it|things|functions|code) (?:simple|small|short|clean)|don'?t repeat yourself"
    r"|\bDRY\b|\bKISS\b|\bSOLID\b|well[- ]documented|document (?:your|the|all) "
    r"(?:code|changes|functions)|code quality|maintainab\w+|readab\w+|robust(?:ness)?|scalab\w+"
    r"|edge cases|carefully|thoroughly|appropriate(?:ly)?|properly"
    r"|when (?:possible|appropriate|needed)|as needed|consider (?:using|adding)"
    r"|validate (?:\w+ )?inputs?|version control|commit often|code reviews?|technical debt"
    r"|refactor (?:regularly|often|code)|communicat\w+"
    r"|understand the (?:problem|codebase|code|requirements)|before making changes|root cause"
    r"|systematic\w*|modular\w*|reusab\w+|consisten(?:t|cy)\w*)\b"
)
COMMON = frozenset(
    "api apis cli ci cd ui url urls http https json yaml toml html css sql git github gitlab "
    "npm pip python javascript typescript java node nodejs docker linux readme todo null none "
    "nil true false self this test tests testing pytest unittest jest main init index utils "
    "helper helpers try catch except throw raise return async await print console.log console "
    "log logging logger error errors exception exceptions function class classes module file "
    "files config configuration data value values input output user users app code debug "
    "production development e.g i.e etc tdd dry kiss solid yagni oop mvc rest crud and/or src "
    "src/ tests/ import const let var def new string int bool list dict array object try/catch "
    "try/except if else for while valueerror typeerror".split()
)


def points(text: str, project_words: Collection[str] = (), quotes: Collection[str] = ()) -> float:
    """Return the points of a text for being particular.

    `project_words` are words of the project, such as names of its files.

    A text that shares words with its `quotes` says what was said there, however plain the words are.
    """
    normal = _OF_GIT.sub("git", text)
    plain = _CODE.sub(" ", normal)
    blocks, prose = "\n".join(_FENCED.findall(plain)), _FENCED.sub(" ", plain)
    counted = [(match[1], 1.0) for match in _CODE.finditer(normal)]
    counted += [(match[0], 0.5) for match in _IDENTIFIER.finditer(blocks)]
    for form, value in ((_IDENTIFIER, 1.0), (_NUMBER, 0.75), (_NAME, 0.5)):
        counted += [(match[0].rstrip("."), value) for match in form.finditer(prose)]
    words = {word.casefold() for word in re.findall(r"[A-Za-z][\w-]{3,}", prose)}
    counted += [(word, 0.5) for word in words & {word.casefold() for word in project_words}]
    things: dict[str, float] = {}
    for thing, value in counted:  # once, as what it counts most
        name = thing.casefold().strip("()`'\" ")
        if len(name) > 1 and name not in COMMON:
            things[name] = max(value, things.get(name, 0.0))
    stock = {match[0].casefold() for match in _STOCK.finditer(text)}
    shared = _stems(text) & _stems(" ".join(quotes))
    return sum(things.values()) - 0.75 * len(stock) + SAID * len(shared)


def is_generic(
    text: str, project_words: Collection[str] = (), quotes: Collection[str] = ()
) -> bool:
    """Whether a text could be in any handbook."""
    return points(text, project_words, quotes) < MIN_POINTS


def _stems(text: str) -> set[str]:
    return {word.casefold()[:STEM] for word in re.findall(r"[^\W\d_]{4,}", text)}
