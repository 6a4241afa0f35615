"""A search for a question -> passages: what matched and what is around it, with where it is from.

This is what a watcher answers. Lessons that hooks leave out are not among them, for a model reads these.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from vault_index import files
from vault_index.ask import sentences
from vault_index.ask.sentences import words_of
from vault_index.check.redact import redact
from vault_index.errors import VaultError
from vault_index.index.derived import CATEGORY
from vault_index.lesson import category
from vault_index.lesson.category import heading_of
from vault_index.lesson.passages import number_of
from vault_index.recall import allowed
from vault_index.retrieval import above, documents, floor, query
from vault_index.retrieval.hit import Hit, Query
from vault_index.store import filters, schema
from vault_index.text import blocks

if TYPE_CHECKING:
    from vault_index.retrieval.documents import Document
    from vault_index.vault import Vault

LESSONS, JOURNAL = "lessons", "journal"  # kinds of passages
MAX_PASSAGES = 6
MAX_WEAK = 3  # below the floor, which is for hooks: here a judge may decline
MAX_CHARS = 2_000  # of a passage
MAX_BESIDE_OUTLINES = 3  # passages where the outline of a long lesson takes the place of the others
MIN_HEADINGS = 3  # of an outline
_LINE = re.compile(r"[^\n]+")
CANDIDATES = 12  # hits of which the trusted ones become passages


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """A search for a question; names of places may be misspelt or in part.

    `seen` are passages that the asker has already, each as lesson, begin and end: the search reads on
    beside them. With `best` each passage has the sentences that answer.
    """

    query: str
    document: str = ""
    lesson_number: int | None = None
    category: str = ""
    kind: str = LESSONS
    since: str = ""  # of the journal: a day, as `until`
    until: str = ""
    project: str = ""
    seen: tuple[tuple[str, int, int], ...] = ()
    best: bool = False


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage of the vault, or a record of the journal. `number` is how an answer cites it: [1]."""

    number: int  # 0 before it is part of an answer
    kind: str  # lessons | journal
    id: str  # of the lesson or record
    title: str
    path: str  # of the file from the vault's root; "" for a record
    section: str  # lesson of a document, and heading of what matched, or ""
    line: int  # of the file at which what matched begins; 0 where it has none
    link: str
    author: str
    date: str  # ISO 8601, of the last change
    score: float
    text: str  # what a model is shown
    span: tuple[int, int] = (0, 0)  # characters of the lesson's text that it has; (0, 0): all
    is_weak: bool = False  # whether it is below the floor
    best: tuple[str, ...] = ()  # the sentences of it that answer the question, best first


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The passages above the floor, best first, and the nearest below it, weak; no number is set.

    A person who asks for passages gets these only where there is nothing above the floor. `place` is the
    document or category that was searched, "" for all; `notes` say what of the question could not be
    done, such as a name that nothing has.
    """

    passages: tuple[Passage, ...]
    place: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _SearchScope:
    """The places to search: in a document, in a category, in one lesson of the document."""

    document: str = ""  # its path
    category: str = ""
    lesson: str = ""  # its id
    number: int | None = None  # of the lesson
    title: str = ""
    extra: str = ""  # what goes to the text searched for, as it names no place
    notes: tuple[str, ...] = ()


def find(vault: Vault, wanted: SearchRequest) -> SearchResult:
    """Search the lessons for a question.

    An unknown name narrows nothing, and a note says so. The vaults above are searched, too, unless a
    document is named. Raises IndexStateError without an index.
    """
    here = _find(vault, wanted)
    farther: list[Passage] = []
    for origin, other in [] if wanted.document else above.opened(vault):
        seen = [
            (inner_id, start, end)
            for id, start, end in wanted.seen
            for inner_id in origin.own_ids([id])
        ]
        request = replace(wanted, lesson_number=None, seen=tuple(seen))
        with suppress(VaultError):  # it has no index yet: `lessons vaults` says so
            for each in _find(other, request).passages:
                id, path = origin.marked(each.id, each.path)
                farther.append(replace(each, id=id, path=path))
    if not farther:
        return here
    by_text: dict[str, Passage] = {}
    for each in (*here.passages, *farther):  # the nearer has what both have
        by_text.setdefault(each.text, each)
    ranked = sorted(by_text.values(), key=lambda each: -each.score)
    strong = [each for each in ranked if not each.is_weak][:MAX_PASSAGES]
    weak = [each for each in ranked if each.is_weak][: _room_for_weak(strong, wanted)]
    return replace(here, passages=(*strong, *weak))


def _room_for_weak(strong: Sequence[Passage], wanted: SearchRequest) -> int:
    return 0 if wanted.best and strong else min(MAX_WEAK, MAX_PASSAGES - len(strong))


def _find(vault: Vault, wanted: SearchRequest) -> SearchResult:
    scope = _scope(vault, wanted)
    request = Query(
        f"{wanted.query} {scope.extra}".strip(),
        CANDIDATES + len(wanted.seen),
        categories=(scope.category,) if scope.category else (),
        within=scope.document,
        lesson=scope.number,
        for_agent=True,
        weighted=True,
    )
    lesson = scope.lesson
    hits, near = (_lesson(vault, request, lesson), []) if lesson else split_at_floor(vault, request)
    found = _passages(vault, wanted, allowed.only_trusted(vault, hits), MAX_PASSAGES)
    room = _room_for_weak(found, wanted)
    weak = _passages(vault, wanted, allowed.only_trusted(vault, near), room) if room else []
    if wanted.best:
        chosen = sentences.best(vault, wanted.query, [each.text for each in found])
        found = [replace(each, best=sentence) for each, sentence in zip(found, chosen, strict=True)]
    found += [replace(each, is_weak=True) for each in weak]
    return SearchResult(tuple(found), scope.title, scope.notes)


def split_at_floor(vault: Vault, request: Query) -> tuple[list[Hit], list[Hit]]:
    """Search, and return the hits above the floor and the others."""
    results = query.run(vault, request)
    floors = floor.in_force(vault, request.text, text_only=bool(results.text_only))
    least = floors.line if floors else None
    reach = [hit for hit in results.hits if hit.is_above(least)]
    return reach, [hit for hit in results.hits if not hit.is_above(least)]


def _lesson(vault: Vault, request: Query, lesson: str) -> list[Hit]:
    hits = query.run(vault, replace(request, k=1)).hits
    if not hits:  # full text alone, and no word of it was asked for
        where = filters.all_of(filters.wholes_of([lesson]), filters.FOR_AGENTS)
        rows = vault.open_index().store.rows(schema.LESSONS.shown, where)
        hits = [Hit.of_lesson(row, 0.0, 0.0) for row in rows]
    return hits


def _scope(vault: Vault, wanted: SearchRequest) -> _SearchScope:
    """Return the places to search for a question, and notes on the names that nothing has."""
    notes, number = list[str](), wanted.lesson_number
    within = _named(vault, wanted.document, notes)
    extra = wanted.document.strip() if within is None else ""
    below = _category(vault, wanted.category, notes)
    if within is not None and within.kind == CATEGORY:
        below, within = below or within.path, None
    if within is None:
        notes += (
            [f"lesson {number} of no document that the vault has"] if number is not None else []
        )
        return _SearchScope(category=below, title=below, extra=extra, notes=tuple(notes))
    scope = _SearchScope(within.path, below, title=within.title)
    if number is not None:
        if lesson := documents.lesson_numbered(vault, within.path, number):
            title = f"{within.title}, lesson {number}: {lesson.title}"
            scope = replace(scope, lesson=lesson.id, number=number, title=title)
        else:
            notes.append(f"{within.title!r} has no lesson {number}, so all of it was searched")
    return replace(scope, notes=tuple(notes))


def _named(vault: Vault, name: str, notes: list[str]) -> Document | None:
    if not name.strip():
        return None
    try:
        return documents.resolve(vault, name.strip(), for_agent=True)
    except VaultError as error:
        notes.append(f"{error.message}, so all of the vault was searched ({error.hint})")
        return None


def _category(vault: Vault, name: str, notes: list[str]) -> str:
    path = category.normalise(name)
    if any(each.kind == CATEGORY and each.path == path for each in documents.places(vault)):
        return path
    document = _named(vault, name, notes)
    if document is not None and document.kind == CATEGORY:
        return document.path
    if document is not None:
        notes.append(f"no category is called {name.strip()!r}, so none was searched alone")
    return ""


def _passages(vault: Vault, wanted: SearchRequest, hits: Sequence[Hit], most: int) -> list[Passage]:
    """Return the passages of hits that are not seen yet, with the outlines of long lessons."""
    where = filters.wholes_of([hit.lesson_id for hit in hits])
    rows = vault.open_index().store.rows(("lesson_id", "text"), where)
    wholes = {row["lesson_id"]: row["text"] or "" for row in rows}
    found: list[Passage] = []
    outlines: list[Passage] = []
    for hit in hits:
        if len(found) == most:
            break
        whole = wholes.get(hit.lesson_id, hit.text)
        whole = whole if hit.text in whole else hit.text
        spans = [(begin, end) for id, begin, end in wanted.seen if id == hit.lesson_id]
        span = _unseen(wanted.query, hit, whole, spans)
        if span is None:
            continue
        passage = _passage(vault, wanted.query, hit, whole, *span)
        found.append(passage)
        if not spans and len(found) <= MAX_BESIDE_OUTLINES < most:
            outlines += filter(None, [_outline(passage, whole)])
    return found[: most - len(outlines)] + outlines


def _unseen(
    question: str, hit: Hit, whole: str, spans: Sequence[tuple[int, int]]
) -> tuple[slice, slice] | None:
    """Return the match, or the best line that is not seen yet, and where to widen it; None if all is."""
    start = max(0, whole.find(hit.text))
    match = slice(start, start + len(hit.text))
    if len(hit.text) > MAX_CHARS:  # a code fence, or a lesson that was found as a whole
        start += _matched(question, hit.text)
        match = slice(start, start)
    if not spans:
        return match, slice(0, len(whole))
    rest = _gaps(spans, len(whole))
    for gap in rest:
        if gap.start <= match.start and match.stop <= gap.stop:
            return match, gap
    return _best_line(question, whole, rest, match.start)


def _gaps(spans: Sequence[tuple[int, int]], length: int) -> list[slice]:
    """Return the parts of a text beside the spans seen; (0, 0) is all of it."""
    gaps, start = [], 0
    for begin, end in sorted((begin, end or length) for begin, end in spans):
        if begin > start:
            gaps.append(slice(start, begin))
        start = max(start, end)
    return [*gaps, slice(start, length)] if start < length else gaps


def _outline(passage: Passage, whole: str) -> Passage | None:
    """Return the outline of a lesson that a passage shows a part of; None if it is short."""
    if len(whole) <= 2 * MAX_CHARS:
        return None
    headings = _headings(whole)
    if len(headings) < MIN_HEADINGS:
        return None
    text = redact("\n".join(line.strip() for line in headings.values()))[:MAX_CHARS]
    return replace(passage, section="outline", line=0, text=text, span=(-1, -1))


def _passage(
    vault: Vault, question: str, hit: Hit, whole: str, piece: slice, part: slice
) -> Passage:
    matched = piece.start + _matched(question, whole[piece])
    first = part.start
    begin, end = window(whole[part], piece.start - first, piece.stop - first)
    begin, end = blocks.with_whole_code(whole, begin + first, end + first)
    begin, end = max(begin, first), min(end, part.stop)
    course = number_of(whole)
    text = whole[course.end if course and begin == 0 else begin : end].strip()
    until = whole.count("\n", 0, matched)
    above = [line for number, line in _headings(whole).items() if number <= until]
    heading = heading_of(above[-1]) if above else ""
    of_document = bool(hit.document) and hit.document != hit.title
    when = hit.updated_at or hit.created_at
    sections = [hit.title if of_document else "", heading]
    return Passage(
        number=0,
        kind=LESSONS,
        id=hit.lesson_id,
        title=redact(hit.document if of_document else hit.title),
        path=hit.path,
        section=redact(": ".join(filter(None, sections))),
        line=_line(vault, hit.path, whole, matched),
        link=(course.link if course else "") or hit.link,
        author=hit.author,
        date=when.isoformat() if when else "",
        score=round(hit.score, 4),
        text=redact(text),
        span=(begin, end),
    )


def window(text: str, start: int, end: int, size: int = MAX_CHARS) -> tuple[int, int]:
    """Widen the piece of a text to at most a size, on both sides, by whole lines or words."""
    if len(text) <= size:
        return 0, len(text)
    room = (size - (end - start)) // 2
    first = max(0, min(start - room, len(text) - size))
    last = min(len(text), max(end + room, size))
    if first:
        line = text.find("\n", first, start)
        word = text.find(" ", first, start)
        first = (line if line >= 0 else word if word >= 0 else start - 1) + 1
    if last < len(text):
        line = text.rfind("\n", end, last)
        word = text.rfind(" ", end, last)
        last = line if line >= 0 else word if word >= 0 else end
    return first, last


def _matched(question: str, piece: str) -> int:
    best = _best_line(question, piece, [slice(0, len(piece))])
    return best[0].start if best else 0


def _best_line(
    question: str, text: str, parts: Sequence[slice], after: int = -1
) -> tuple[slice, slice] | None:
    """Return the line with most words of a question, of equal ones one `after` a place; and its part."""
    question_words = words_of(question)
    lines = [
        (slice(part.start + match.start(), part.start + match.end()), part)
        for part in parts
        for match in _LINE.finditer(text[part])
    ]
    return max(
        lines,
        key=lambda line: (len(question_words & words_of(text[line[0]])), line[0].start > after),
        default=None,
    )


def _headings(text: str) -> dict[int, str]:
    lines = text.split("\n")
    pairs = enumerate(zip(lines, blocks.code_lines(lines), strict=True))
    return {number: line for number, (line, code) in pairs if not code and heading_of(line)}


def _line(vault: Vault, path: str, whole: str, start: int) -> int:
    """Return the line of a lesson's file for a place of its text; 0 where the file changed since."""
    with suppress(VaultError, OSError):
        data = files.read_file(vault.root / path)
        text = data.decode("utf-8-sig", "replace").replace("\r\n", "\n")
        begin = text.find(whole)
        if begin >= 0:
            return text.count("\n", 0, begin + start) + 1
    return 0
