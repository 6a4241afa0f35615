"""The text of a proposal: a lesson file with one key more, `proposal`, of what a reviewer should know.

    ---
    title: Raise the heap
    categories: [devops/ci-cd]
    fires_on: [our build dies with heap out of memory]
    created: 2026-11-22T15:30:00Z
    proposal: {by: claude-code, findings: [...], near: [...], quotes: [...], session: 3f2a91c0}
    ---
    When the build dies, raise the heap.

The id is made of the text, so the same text proposed twice is one proposal. Unknown keys stay.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any

from vault_index.errors import VaultError
from vault_index.lesson import category, edits
from vault_index.lesson.category import DEFAULT_CONFIDENCE
from vault_index.lesson.parse import parse_file
from vault_index.text import failure

KEY = "proposal"
MIN_IDENTITY_WORDS = 8  # of a text: a shorter one may be said under many titles
ID_BYTES = 4
# in the frontmatter as a lesson has them, and in the key `proposal`
_FLAGS = ("is_draft", "only_prompts")
_KEYS = (
    *("tags", "type", "confidence", "prompts", "fires_on", "silent_on", "fires_on_error"),
    "applies_to",
)
_TEXTS = ("why", "session", "project", "day", "changes", "batch")
_LISTS = ("findings", "near", "quotes", "speakers", "background", "again")
_ABOUT = ("by", *_LISTS, *_TEXTS, *_FLAGS)
ANSWERS = ("prompts", "fires_on", "fires_on_error")  # each of which a person may strike
# Who says a quote. A card shows the first of these: words before what was printed.
CHECK, PERSON, PROGRAM = "a check", "a person", "a program"
COMMIT, AGENT = "a commit", "the agent"
SPEAKERS = (PERSON, AGENT, CHECK, PROGRAM, COMMIT)

Json = Mapping[str, Any]
_EDIT_IT = "give it both, without `## Lesson:` headings, or reject it: see `lessons review`"


@dataclass(frozen=True, slots=True)
class Proposal:
    """A draft lesson that waits. `findings` are the warnings of its check, `near` lessons like it.

    A finding has `level`, `rule` and `message`; a near lesson is [id, title, likeness]. A proposal
    from a session has `quotes` as evidence, each with one of SPEAKERS, `why` it was worth it, and the
    private id of the `session`, with its `project` and `day`; `again` are others that taught the same,
    whose quotes it has, too. One that `changes` a lesson has as its
    `text` what it adds to that; with `only_prompts` it adds prompts, and its text is for the reviewer.
    """

    id: str
    title: str
    text: str
    category: str = ""
    tags: tuple[str, ...] = ()
    fires_on: tuple[str, ...] = ()  # that a person typed
    by: str = ""  # the agent or person that proposed it
    created: str = ""  # ISO 8601
    findings: tuple[Json, ...] = ()
    near: tuple[Sequence[Any], ...] = ()
    type: str = ""
    confidence: int = DEFAULT_CONFIDENCE
    prompts: tuple[str, ...] = ()  # that it answers
    silent_on: tuple[str, ...] = ()
    fires_on_error: tuple[str, ...] = ()
    applies_to: tuple[str, ...] = ()  # files
    anchors: tuple[str, ...] = ()  # regions of the code that it is about
    quotes: tuple[str, ...] = ()
    speakers: tuple[str, ...] = ()
    why: str = ""
    session: str = ""
    again: tuple[str, ...] = ()  # private ids of further sessions
    project: str = ""
    day: str = ""  # ISO 8601
    changes: str = ""  # the id of a lesson
    only_prompts: bool = False
    batch: str = ""  # the id of those that a person accepts at once
    background: tuple[Sequence[str], ...] = ()  # (label, text) of the work that it is from
    is_draft: bool = False  # made by rule: no model and no person wrote it

    @property
    def times(self) -> int:
        """In how many sessions it was taught; 1 where a person wrote it."""
        return max(1, len({self.session, *self.again} - {""}))

    @property
    def witness(self) -> tuple[str, str]:
        """The quote that proves most, and who says it; "" where nobody knows."""
        pairs = zip(self.quotes, self.speakers, strict=False)
        attributed = [pair for pair in pairs if pair[1] in SPEAKERS]
        first = self.quotes[0] if self.quotes else ""
        return min(attributed, key=lambda pair: SPEAKERS.index(pair[1]), default=(first, ""))


def create(
    title: str,
    text: str,
    category_path: str = "",
    tags: Sequence[str] = (),
    fires_on: Sequence[str] = (),
    by: str = "",
    **learned: Any,
) -> Proposal:
    """Return a new proposal, without what a file cannot hold. `learned` are further fields of it."""
    title, body = _line(title), _clean(text.replace("\r\n", "\n").replace("\r", "\n")).strip()
    return Proposal(
        id=id_of(title, body),
        title=title,
        text=body,
        category=category.normalise(category_path),
        tags=tuple(dict.fromkeys(map(_line, tags))),
        fires_on=tuple(dict.fromkeys(map(_line, fires_on))),
        by=_line(by),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        **learned,
    )


def _clean(text: str) -> str:
    return failure.without_escapes(text).encode("utf-8", "replace").decode().replace("\0", " ")


def _line(text: str) -> str:
    return " ".join(_clean(text).split())


def seen_again(proposal: Proposal, other: Proposal) -> Proposal:
    """Return a proposal with the further sessions and the quotes of another that says the same."""
    speaker_of = dict(zip(other.quotes, other.speakers, strict=False))
    speaker_of |= dict(zip(proposal.quotes, proposal.speakers, strict=False))
    quotes = tuple(dict.fromkeys((*proposal.quotes, *other.quotes)))
    return replace(
        proposal,
        again=tuple(dict.fromkeys((*proposal.again, *other.again))),
        quotes=quotes,
        speakers=tuple(speaker_of.get(quote, AGENT) for quote in quotes),
    )


def to_bytes(proposal: Proposal) -> bytes:
    """Return the file of a proposal. Raises VaultError for a text that holds several lessons."""
    keys = {
        "title": proposal.title,
        "categories": [proposal.category] if proposal.category else None,
        **_filled(proposal, (*_KEYS, "anchors")),
        "confidence": None if proposal.confidence == DEFAULT_CONFIDENCE else proposal.confidence,
        "created": datetime.fromisoformat(proposal.created),
        KEY: about(proposal),
    }
    keys = {name: value for name, value in keys.items() if value}
    data = edits.new_file(proposal.text, keys)
    if len(parse_file(data, f"{proposal.id}.md")) != 1:
        hint = "split it: one proposal for each, without `## Lesson:` headings"
        raise VaultError("a proposal is one lesson", hint)
    return data


def about(proposal: Proposal) -> dict[str, Any]:
    """Return the key `proposal` of its file."""
    return _filled(proposal, _ABOUT)


def _filled(proposal: Proposal, names: Sequence[str]) -> dict[str, Any]:
    fields = ((name, getattr(proposal, name)) for name in names)
    return {name: _plain(value) for name, value in fields if value}


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return dict(value) if isinstance(value, Mapping) else value


def from_bytes(id: str, data: bytes) -> Proposal:
    """Return the proposal of a file, which a person may have edited. Raises LessonError, VaultError."""
    lessons = parse_file(data, f"{id}.md")
    if len(lessons) != 1 or not lessons[0].text or lessons[0].title == id:
        raise VaultError(f"the proposal {id} is not one lesson with a title and a text", _EDIT_IT)
    lesson, keys = lessons[0], edits.keys_of(data)
    about = keys[KEY] if isinstance(keys.get(KEY), dict) else {}
    filed = [path for path in map(category.normalise, lesson.categories) if path]
    values: dict[str, Any] = {name: getattr(lesson, name) for name in ("title", "text", *_KEYS)}
    values |= {name: str(about.get(name) or "") for name in ("by", *_TEXTS)}
    values |= {name: about.get(name) is True for name in _FLAGS}
    values |= {name: _tuple(about.get(name)) for name in _LISTS}
    values["text"] = str(about.get("added") or lesson.text)  # a change had the whole lesson once
    return Proposal(
        id,
        **values,
        category=filed[0] if filed else "",
        created=lesson.created.isoformat() if lesson.created else "",
        anchors=_tuple(keys.get("anchors")),
    )


def id_of(title: str, text: str) -> str:
    """Return the id of a draft: the same for texts that differ in case, space and marks only."""
    tokens = words(text)
    whole = tokens if len(set(tokens)) >= MIN_IDENTITY_WORDS else [*words(title), "", *tokens]
    return blake2b(" ".join(whole).encode(), digest_size=ID_BYTES).hexdigest()


def words(text: str) -> list[str]:
    """Return the words of a text, without case, marks and the ways to write one character."""
    return re.findall(r"\w+", unicodedata.normalize("NFKC", text).casefold())


def _tuple(values: Any) -> tuple[Any, ...]:
    """Return a list of YAML as a tuple of values, its own lists as tuples."""
    listed = values if isinstance(values, list) else []
    return tuple(tuple(each) if isinstance(each, list) else each for each in listed)
