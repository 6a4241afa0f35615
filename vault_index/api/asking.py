"""A question to the vault, answered with its sources, and the search behind it."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from vault_index import api, llm
from vault_index.api.question import Caller, command, question
from vault_index.ask import conversations, passages, respond, suggestions
from vault_index.ask.conversations import Exchange
from vault_index.ask.passages import JOURNAL, MAX_PASSAGES, Passage, SearchRequest, SearchResult
from vault_index.ask.respond import FAILED, UNKNOWN, Answer
from vault_index.check.redact import redact
from vault_index.errors import SettingsError, VaultError
from vault_index.features import AskTable
from vault_index.journal import archive, projects
from vault_index.journal.journal import Journal
from vault_index.journal.record import OBSERVATION, PROMPT
from vault_index.store import times
from vault_index.text import blocks

if TYPE_CHECKING:
    from vault_index.journal.record import JournalHit
    from vault_index.llm.metered import Model
    from vault_index.vault import Vault

MAX_QUERY_CHARS = 20_000
MAX_ANSWER_CHARS = 500  # of a person, to a question of the agent
MAX_LATER = 20  # records after one, among which is its answer: other sessions went on beside it
_ASKED = re.compile(r"\?\W*\Z")  # a text that ends with a question
NO_JOURNAL = "the journal is off on this machine"
CLOSED_JOURNAL = "the journal is private and not open to this caller"


@command
def ask(
    vault: Vault,
    caller: Caller,
    query: str,
    session_id: str = "",
    document: str = "",
    category: str = "",
    model: str = "",
    session_name: str = "",
    journal: bool = True,
    lesson: int | None = None,
    owner: str = "",
) -> Answer:
    """Answer a question.

    `session_id` goes on with a conversation; one that is unknown begins it, for its `owner` alone, a
    secret of who asks. `session_name` is a name that the user chose for one. `document`, the number of a
    `lesson` of it and `category` narrow every search. `model` is one that the user names, in place of the
    one in the settings. Without `journal` the journal is not searched, for callers that may not read it.
    While it works, the caller's `event` takes {"event": "search", "search": {...}}, {"event": "passages",
    "passages": [...]} and {"event": "piece", "text": "..."}, the pieces of the answer as they are
    written, and {"event": "waiting"} in each second that the model is silent; what it raises ends the
    model's call. Raises VaultError.
    """
    checked = _checked(query)
    conversation = conversations.open_(vault, session_id, session_name, owner)
    if session_name and not vault.config[AskTable].record:
        caller.note(
            f"note: the conversation {session_name!r} ends with this process; set `record` in [ask]"
            " to keep conversations"
        )
    name = model or vault.config[AskTable].model
    opened, trouble = _open(vault, name)
    named = SearchRequest("", document, lesson, category)
    find = _search_of(vault, caller, named, is_journal_open=journal)
    before, most = conversation.exchanges, vault.config[AskTable].max_searches
    answer = respond.answer(checked, opened, find, caller.event, before, most)
    if trouble:
        status = UNKNOWN if answer.status == UNKNOWN else FAILED
        answer = replace(
            answer, status=status, model=name, trouble=trouble.message, hint=trouble.hint
        )
    is_answered = bool(answer.model) and answer.status != FAILED  # what is not is not sent again
    try:
        exchange = Exchange(checked, answer.answer) if is_answered else None
        if went := conversations.add(vault, conversation, exchange):
            caller.note(f"note: {went}")
    except VaultError as error:
        caller.note(f"warning: the conversation is not kept: {error.message}")
    return replace(answer, session_id=session_id or conversation.id)


def _checked(query: str) -> str:
    if not isinstance(query, str) or not query.strip():
        raise VaultError("there is no question", "ask in a sentence or a few words")
    if len(query) > MAX_QUERY_CHARS:
        raise VaultError(
            f"the question is longer than {MAX_QUERY_CHARS:,} characters", "shorten it"
        )
    return query.strip()


def _search_of(
    vault: Vault, caller: Caller, named: SearchRequest, *, is_journal_open: bool
) -> respond.Find:
    """Return the search of a question: the caller asks the watcher, in the place the user named."""
    number = named.lesson_number
    if number is not None and not named.document:
        raise VaultError(f"lesson {number} of no document", "name the document, too")

    def find(wanted: SearchRequest) -> SearchResult:
        narrowed = replace(
            wanted,
            document=named.document or wanted.document,
            lesson_number=wanted.lesson_number if number is None else number,
            category=named.category or wanted.category,
        )
        if wanted.kind == JOURNAL and (named.document or named.category):
            return SearchResult(())
        if wanted.kind == JOURNAL:
            return _in_journal(vault, caller, narrowed, is_open=is_journal_open)
        result = caller.ask(
            api.asking.search(wanted=narrowed),
            settled=bool(narrowed.document),  # the names of documents follow a save later
        )
        for note in result.notes if named.document or named.category else ():
            caller.note(f"note: {note}")
        return result

    return find


@question
def search(vault: Vault, wanted: SearchRequest) -> SearchResult:
    """Find the passages for a question: see `ask.passages.find`."""
    return passages.find(vault, wanted)


def _open(vault: Vault, name: str) -> tuple[Model | None, SettingsError | None]:
    try:
        return llm.open_model(name, vault.config) if name else None, None
    except SettingsError as error:
        return None, error


def _in_journal(
    vault: Vault, caller: Caller, wanted: SearchRequest, *, is_open: bool
) -> SearchResult:
    """Search the journal, if it is on and open to the caller: all of it where the days have nothing."""
    if not is_open:
        return SearchResult((), notes=(CLOSED_JOURNAL,))
    journal = Journal(vault.config)
    is_kept = not archive.is_empty(journal)
    if not (is_kept or projects.recorded_folders(journal)):
        return SearchResult((), notes=(NO_JOURNAL,))
    notes: list[str] = []
    try:
        window = times.window(wanted.since or None, wanted.until)
        about: dict[str, Any] = {"text": wanted.query, "k": MAX_PASSAGES, "project": wanted.project}
        answered = caller.ask(api.journal.search(**about, **window))
        if not answered.hits:
            answered = caller.ask(api.journal.search(**about, since=""))
            notes += ["nothing of those days: this is of all times"] if answered.hits else []
    except VaultError as error:  # an unknown project or day
        return SearchResult((), notes=(": ".join(filter(None, [error.message, error.hint])),))
    if answered.older:
        notes.append(f"{answered.older} older records match, too: search with an earlier `since`")
    return SearchResult(tuple(_record(caller, hit) for hit in answered.hits), notes=tuple(notes))


def _record(caller: Caller, hit: JournalHit) -> Passage:
    return Passage(
        number=0,
        kind=JOURNAL,
        id=hit.id,
        title=redact(hit.title),
        path="",
        section=hit.type or hit.kind,
        line=0,
        link="",
        author=hit.project,
        date=hit.at,
        score=round(hit.score, 4),
        text=_beginning(redact(_with_answer(caller, hit)), passages.MAX_CHARS),
    )


def _with_answer(caller: Caller, hit: JournalHit) -> str:
    """Return the text of a record with what answers it: a question of the agent, a person's request.

    The question alone reads like a decision, and the person may have said the opposite; a request says
    nothing of what came of it.
    """
    text = hit.text
    wanted, word = PROMPT, "The person answered"
    try:
        if hit.kind == PROMPT:
            (prompt,) = caller.ask(api.journal.show(name=hit.id)).records
            if text in prompt.context:
                return f"The agent said: {text}\n\nThe person: {_beginning(prompt.text)}"
            wanted, word = OBSERVATION, "What came of it"
        elif not _ASKED.search(text):
            return text
        around = api.journal.timeline(anchor=hit.id, before=0, after=MAX_LATER)
        later = caller.ask(around).records
    except VaultError:  # it went meanwhile
        return text
    for record in later[1:]:
        if record.session == hit.session and record.kind == wanted:
            text = f"{text}\n\n{word}: {_beginning(record.text)}"
            if wanted == PROMPT or not _ASKED.search(record.text):
                break
            wanted, word = PROMPT, "The person answered"
    return text


def _beginning(text: str, most: int = MAX_ANSWER_CHARS) -> str:
    return text[: blocks.with_whole_code(text, 0, most)[1]]


@question
def suggest(vault: Vault, count: int = suggestions.COUNT) -> list[str]:
    """Return some questions that lessons of the vault answer, of its latest lessons first."""
    return suggestions.suggested(vault, count)
