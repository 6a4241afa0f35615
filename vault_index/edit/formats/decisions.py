"""Decision records that say which one supersedes which: the newer says so as a lesson does.

adr-tools writes `Superseded by [2. Use Kafka](0002-use-kafka.md)` and `Supersedes [1. ...](0001-...md)`,
once with a c in the place of the s, and MADR has it in the frontmatter's `status`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from vault_index.edit.formats.lesson_file import Draft, pieces, stem_of
from vault_index.lesson import passages
from vault_index.lesson.parse import parse_file

_BY = re.compile(r"\bsuper[sc]eded[ \t]+by\b(?P<links>[^\n]*)", re.IGNORECASE)
_OF = re.compile(r"\bsuper[sc]edes\b(?P<links>[^\n]*)", re.IGNORECASE)
_TARGET = re.compile(r"\]\(([^)\s#]+)")
_RELATED = re.compile(rf"^## {passages.RELATED}[ \t]*\n+", re.MULTILINE)


def with_links(drafts: Sequence[tuple[str, Draft]]) -> list[tuple[str, Draft]]:
    """Return drafts, each with its source, where each newer one names those that it supersedes.

    A record is found by the file that a link leads to; one that is not imported is not named.
    """
    numbers = {
        stem_of(source): number for number, (source, draft) in enumerate(drafts) if not draft.why
    }
    pairs = dict.fromkeys(
        pair for number in numbers.values() for pair in _pairs(drafts, numbers, number)
    )
    linked = list(drafts)
    for newer, older in pairs:
        source, draft = linked[newer]
        linked[newer] = source, replace(draft, data=_naming(draft.data, _title(*drafts[older])))
    return linked


def _pairs(
    drafts: Sequence[tuple[str, Draft]], numbers: dict[str, int], number: int
) -> Iterator[tuple[int, int]]:
    """Yield the numbers of a newer and an older record, as one of them says."""
    text = "".join(
        piece for is_code, piece in pieces(drafts[number][1].data.decode()) if not is_code
    )
    for says, is_newer in ((_OF, True), (_BY, False)):
        for statement in says.finditer(text):
            for target in _TARGET.findall(statement["links"]):
                other = numbers.get(stem_of(target))
                if other is not None and other != number:
                    yield (number, other) if is_newer else (other, number)


def _title(source: str, draft: Draft) -> str:
    return next((lesson.title for lesson in parse_file(draft.data, source)), draft.name)


def _naming(data: bytes, title: str) -> bytes:
    text, item = data.decode(), f"- {passages.SUPERSEDES}: {title}\n"
    if item in text:
        return data
    heading = _RELATED.search(text)
    if heading:
        return f"{text[: heading.end()]}{item}{text[heading.end() :]}".encode()
    return f"{text.rstrip()}\n\n## {passages.RELATED}\n\n{item}".encode()
