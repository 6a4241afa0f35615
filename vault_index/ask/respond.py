"""A question -> its answer: the model decides whether to search; without one the passages answer.

The search is the caller's (`find`), so this loads no embedder and no index. Decided here and not by a
model: how often it may search, which numbers it may cite, and that the vault does not know where the
search returned nothing. The model is not asked then: of nothing it could only invent. An answer is passed
on as it is written, and its citations are checked at its end.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vault_index.ask import passages, tool
from vault_index.ask.citations import check
from vault_index.ask.conversations import Exchange, turns
from vault_index.ask.passages import JOURNAL, Passage, SearchRequest, SearchResult
from vault_index.errors import ModelCallError, ModelRefusedError, ModelToolsError, VaultError
from vault_index.hotpath import chatter
from vault_index.llm.backend import ASSISTANT, TOOL, ModelQuestion, Reply, Turn, is_refusal
from vault_index.text import blocks

if TYPE_CHECKING:
    from vault_index.llm.metered import Model

# how a question ended
ANSWERED = "answered"  # a model wrote the answer
PASSAGES = "passages"  # no model is set: the passages are the answer
UNKNOWN = "unknown"  # nothing reaches the floor, or nothing answers; `passages` has the nearest
FAILED = "failed"  # the model did not answer; `trouble` says why, the passages are there

SPARE_ROUNDS = 2  # calls of a model that come to nothing: a wrong name, arguments that are no JSON
MAX_SHOWN, SHOWN_CHARS = 4, 2_000  # passages without a model, and their characters in all
SHORT_WORDS = 6  # a question of fewer goes on from the one before
NO_MODEL = 'set `model` in [ask] of your config.toml, such as "ollama:qwen3", for a written answer'
MAX_HELD_CHARS = 400  # of a text that cites nothing, and yet is an answer
_CITES = re.compile(r"\[\d{1,3}\]")
_CALL_IN_WORDS = re.compile(r'\s*(?:```\w*\s*)?\{\s*"name"\s*:\s*"[^"]*"\s*,\s*"arguments"\s*:')
_PROMPTS = Path(__file__).parent.parent / "prompts"


@dataclass(frozen=True, slots=True)
class Search:
    """The search that was made for a question. `place` is the document or category it was made in."""

    query: str
    kind: str = "lessons"
    category: str = ""
    place: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer, which cites numbers of `sources` alone, and these are in the order of citing."""

    answer: str
    status: str
    sources: tuple[Passage, ...]
    passages: tuple[Passage, ...]  # all that were returned, best first
    session_id: str
    model: str = ""  # name of the model, "" without one
    search: Search | None = None  # None: answered without a search
    trouble: str = ""  # why the model did not answer, or not to its end
    hint: str = ""  # what to do about it, or how to get a written answer


Find = Callable[[SearchRequest], SearchResult]
Event = Callable[[Mapping[str, Any]], None]


@dataclass(slots=True)
class _Course:
    """The course of a question so far. `name` is the model's, "" without one."""

    query: str
    event: Event
    name: str
    passages: tuple[Passage, ...] = ()
    notes: tuple[str, ...] = ()  # of the searches
    search: Search | None = None
    shown: str = ""  # the text that was passed on

    def show(self, text: str) -> None:
        if text:
            self.shown += text
            self.event({"event": "piece", "text": text})

    def checked(self) -> tuple[str, list[int]]:
        """Return the answer without numbers that were not returned, and those that it cites."""
        return check(self.shown, [each.number for each in self.passages])


def answer(
    query: str,
    model: Model | None,
    find: Find,
    event: Event,
    before: tuple[Exchange, ...] = (),
    max_searches: int = 1,
) -> Answer:
    """Answer a question; `session_id` is the caller's to set. Raises VaultError of `find` alone."""
    course = _Course(query, event, model.name if model else "")
    if model is None:
        return _without_model(course, find)
    try:
        if model.can_call_tools and max_searches:
            try:
                return _deciding(course, model, find, before, max_searches)
            except ModelToolsError:
                if course.shown or course.search:
                    raise
        return _searched_first(course, model, find, before)
    except ModelCallError as error:
        return _failed(course, find, error)


def _without_model(course: _Course, find: Find) -> Answer:
    """Return the best passages, short enough to read; thanks and the like are not searched for."""
    if _is_chatter(course.query):
        course.show("This is no question to the vault.")
        return _answer(course, UNKNOWN, hint=NO_MODEL)
    if course.search is None:
        _search(course, find, SearchRequest(course.query, best=True))
    course.passages = course.passages[:MAX_SHOWN]
    _look_in_journal(course, find)
    room = SHOWN_CHARS // max(1, len(course.passages))
    course.passages = tuple(_shortened(each, room) for each in course.passages)
    status = UNKNOWN if all(each.is_weak for each in course.passages) else PASSAGES
    if status == UNKNOWN:
        course.show(_unknown(course))
    return _answer(course, status)


def _look_in_journal(course: _Course, find: Find) -> None:
    """Add the first record of the journal, or put some in the place of passages that are weak."""
    wanted = SearchRequest(course.query, kind=JOURNAL)
    found = find(wanted).passages
    if found and all(each.is_weak for each in course.passages):
        course.passages, most = (), MAX_SHOWN
    else:
        most = 1
    if found:
        _search(course, lambda _: SearchResult(found[:most]), wanted)


def _shortened(passage: Passage, room: int) -> Passage:
    """Return a passage around the sentences that answer, or the first of them, and code whole."""
    text = passage.text
    spans = [(start, start + len(each)) for each in passage.best if (start := text.find(each)) >= 0]
    first, last = min(spans, default=(0, 0))[0], max((end for _, end in spans), default=0)
    if last - first > room:
        first, last = spans[0]
    begin, end = blocks.with_whole_code(text, *passages.window(text, first, last, room))
    part = text[begin:end].strip()
    best = tuple(each for each in passage.best if each in part)
    return replace(passage, text=f"{part}\n…" if end < len(text) else part, best=best)


def _deciding(
    course: _Course, model: Model, find: Find, before: tuple[Exchange, ...], max_searches: int
) -> Answer:
    """Let the model search as often as it may, and answer."""
    allowed = "one search" if max_searches == 1 else f"{max_searches} searches"
    system = _prompt("ask").replace("{searches}", allowed)
    question = ModelQuestion(system, course.query, before=turns(before), tools=(tool.SEARCH,))
    searches = 0
    for _ in range(max_searches + SPARE_ROUNDS):
        reply = _ask(course, model, question)
        if reply is None:
            return _written(course)
        if not reply.calls and _CALL_IN_WORDS.match(reply.text):
            break  # it cannot call tools, though its server says so
        if not reply.calls:
            if course.search is None and is_refusal(reply.text.strip()):
                # after a search the same words are an answer: "unfortunately, [1] does not say"
                raise ModelRefusedError(f"{model.name} declined to answer", "choose another model")
            if course.search and not course.passages:
                break  # it could only invent
            course.show(reply.text)
            return _written(course)
        results: list[Turn] = []
        for call in reply.calls:
            wanted = tool.parse_call(call)
            if isinstance(wanted, str):
                text = wanted
            elif searches == max_searches:
                text = f"You had {allowed}. Answer from what was returned."
            else:
                searches += 1
                seen = tuple((each.id, *each.span) for each in course.passages)
                text = _search(course, find, replace(wanted, seen=seen))
            results.append(Turn(TOOL, text, call=call.id))
        after = (*question.after, Turn(ASSISTANT, reply.text, reply.calls), *results)
        question = replace(question, after=after)
        if searches == max_searches:
            if not course.passages:
                break
            question = replace(question, tools=())
    if course.search and not course.passages:
        course.show(_unknown(course))
        return _answer(course, UNKNOWN)
    return _searched_first(course, model, find, before)


def _searched_first(
    course: _Course, model: Model, find: Find, before: tuple[Exchange, ...]
) -> Answer:
    """Search for the question, and ask the model once, with the passages in the prompt."""
    prompt = course.query
    if not _is_chatter(course.query):
        text = course.query
        if before and len(text.split()) < SHORT_WORDS:  # "and on production?"
            text = f"{before[-1].question[: tool.MAX_QUERY_CHARS]} {text}"
        result = _search(course, find, SearchRequest(text))
        if not course.passages:
            course.show(_unknown(course))
            return _answer(course, UNKNOWN)
        prompt = f"{result}\n\nQuestion: {course.query}"
    question = ModelQuestion(_prompt("ask_passages"), prompt, before=turns(before))
    _ask(course, model, question)
    return _written(course)


def _search(course: _Course, find: Find, wanted: SearchRequest) -> str:
    """Search, and return the result as the model reads it. Numbers go on from an earlier search."""
    result = find(wanted)
    seen = {(each.id, each.text) for each in course.passages}
    new = [each for each in result.passages if (each.id, each.text) not in seen]
    first = len(course.passages) + 1
    new = [replace(each, number=number) for number, each in enumerate(new, start=first)]
    course.passages += tuple(new)
    course.notes += result.notes
    course.search = Search(wanted.query, wanted.kind, wanted.category, result.place)
    course.event({"event": "search", "search": asdict(course.search)})
    course.event({"event": "passages", "passages": course.passages})
    return tool.render(new, result.place, result.notes)


def _ask(course: _Course, model: Model, question: ModelQuestion) -> Reply | None:
    """Ask, and pass the answer on as it comes; return a reply that calls tools, or says little.

    A model may speak before it calls a tool, which is no answer. So where it has tools, its text is held
    until it cites a passage or is long. Raises ModelCallError; what came before it is passed on.
    """
    pieces: list[str] = []
    is_answer = not question.tools

    def take(piece: str) -> None:
        nonlocal is_answer
        if not piece:
            course.event({"event": "waiting"})
        if is_answer:
            course.show(piece)
            return
        pieces.append(piece)
        text = "".join(pieces)
        is_long = len(text) > MAX_HELD_CHARS
        if course.passages and (is_long or ("]" in piece and _CITES.search(text))):
            is_answer = True
            course.show(text)

    try:
        reply = model.converse(question, take)
    except ModelCallError:
        if not is_answer:
            course.show("".join(pieces))
        raise
    if is_answer and not course.shown:
        course.show(reply.text)
    return None if is_answer else reply


def _failed(course: _Course, find: Find, error: ModelCallError) -> Answer:
    """Return the text of the model before it failed, else the answer without a model."""
    try:
        if course.shown and course.search is None and not _is_chatter(course.query):
            _search(course, find, SearchRequest(course.query))
        result = _answer(course, FAILED) if course.shown else _without_model(course, find)
    except VaultError as other:  # the model's trouble is the one to report
        error = ModelCallError(f"{error.message}; {other.message}", error.hint)
        result = _answer(course, FAILED)
    status = UNKNOWN if result.status == UNKNOWN else FAILED
    return replace(result, status=status, trouble=error.message, hint=error.hint)


def _answer(course: _Course, status: str, hint: str = "") -> Answer:
    by_number = {each.number: each for each in course.passages}
    text, cited = course.checked()
    sources = tuple(by_number[number] for number in cited)
    return Answer(
        answer=text,
        status=status,
        sources=sources,
        passages=course.passages,
        session_id="",
        model=course.name,
        search=course.search,
        hint=hint,
    )


def _written(course: _Course) -> Answer:
    """Return the answer that a model wrote. Raises ModelCallError if nothing is left of it."""
    is_weak = bool(course.passages) and all(each.is_weak for each in course.passages)
    text, cited = course.checked()
    if not text:
        course.shown = ""
        raise ModelCallError(f"{course.name} answered with nothing", "choose another model")
    return _answer(course, UNKNOWN if is_weak and not cited else ANSWERED)


def _unknown(course: _Course) -> str:
    """Return the sentence that says that the vault does not know, with what is nearest."""
    search = course.search
    inside = f" in {search.place}" if search and search.place else ""
    text = f"The vault does not know{inside}: nothing in it is near enough to the question."
    if search and search.kind == JOURNAL:
        closed = course.notes[0] if course.notes else "nothing in it is near enough"
        return f"The journal does not answer this: {closed}."
    if course.notes:
        text += f" {'. '.join(note[:1].upper() + note[1:] for note in course.notes)}."
    return f"{text} The nearest, below the floor:" if course.passages else text


def _is_chatter(query: str) -> bool:
    """Whether a question is thanks or the like; a short one, such as "heap", is not."""
    return bool(chatter.why_skipped(f"thanks, {query} thanks"))


def _prompt(name: str) -> str:
    today = datetime.now(UTC).astimezone().strftime("%A, %Y-%m-%d")
    return (_PROMPTS / f"{name}.md").read_text("utf-8").strip().replace("{today}", today)
