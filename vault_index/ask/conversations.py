"""Conversations by id: the last exchanges of each, in memory or, where the user wants it, kept.

Only questions and answers are kept, without their secrets, until `journal.retention_days` after the last
question. An id is random, so nobody else goes on with a conversation. An id that a client chose is kept
as a hash with what only this client has. A name from the command line is never an id.
"""

from __future__ import annotations

import json
import re
import secrets
import threading
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from vault_index import state
from vault_index.check.redact import redact
from vault_index.features import AskTable, JournalTable
from vault_index.lesson.file import hash_of
from vault_index.llm.backend import ASSISTANT, USER, Turn
from vault_index.store import times
from vault_index.text.words import count

if TYPE_CHECKING:
    import sqlite3

    from vault_index.vault import Vault

MAX_SENT_CHARS = 8_000  # of a question or an answer that is sent again
_CITED = re.compile(r"[ \t]*\[\d+\]")


class Exchange(NamedTuple):
    """A question and its answer; no passage of the vault is in it."""

    question: str
    answer: str


def turns(before: Iterable[Exchange]) -> tuple[Turn, ...]:
    """Return exchanges as a model is sent them: without citations, whose numbers are of their time."""
    sent: list[Turn] = []
    for each in before:
        answer = _CITED.sub("", each.answer)[:MAX_SENT_CHARS] or "-"
        sent += [Turn(USER, each.question[:MAX_SENT_CHARS]), Turn(ASSISTANT, answer)]
    return tuple(sent)


MAX_IN_MEMORY = 256  # conversations of a process; those used longest ago go
MAX_NAME_CHARS = 100
MAX_CHARS = 20_000  # of a question or an answer that is kept


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation; `exchanges` are the last ones, the latest at the end."""

    id: str
    name: str = ""
    exchanges: tuple[Exchange, ...] = ()


_lock = threading.RLock()
_in_memory: OrderedDict[tuple[str, str], Conversation] = OrderedDict()  # by vault and id


def open_(vault: Vault, session_id: str = "", name: str = "", owner: str = "") -> Conversation:
    """Return the conversation of an id or of a name; else a new one.

    An id that is not one of ours was chosen by its client, whose secret `owner` is: to another client the
    same id is another conversation.
    """
    private = "own-" + hash_of(json.dumps([owner, session_id])) if session_id else ""
    for each in reversed(_conversations(vault)):
        if (session_id and each.id in (session_id, private)) or (name and each.name == name):
            return each
    return Conversation(private or secrets.token_urlsafe(24), name[:MAX_NAME_CHARS])


def _conversations(vault: Vault) -> list[Conversation]:
    vault_key = state.vault_of(vault.root)
    if not vault.config[AskTable].record:
        with _lock:
            return [each for (root, _), each in _in_memory.items() if root == vault_key]
    with state.reading(vault.config.home) as db:
        of = "WHERE vault = ? ORDER BY at"
        return state.select(db, "conversation", Conversation, of, [vault_key])


def add(vault: Vault, conversation: Conversation, exchange: Exchange | None) -> str:
    """Keep a conversation with a further exchange, as many as are sent again.

    Exchanges that another question of the same conversation added meanwhile stay. Return a line
    about what expired, "" if nothing did. Raises WriteError.
    """
    vault_key = state.vault_of(vault.root)
    if not vault.config[AskTable].record:
        with _lock:
            now = _with(vault, conversation, exchange)
            _in_memory[vault_key, now.id] = now
            _in_memory.move_to_end((vault_key, now.id))
            while len(_in_memory) > MAX_IN_MEMORY:
                _in_memory.popitem(last=False)
        return ""
    with state.writing(vault.config.home) as db:
        went = _expire(db, vault)
        now = _with(vault, conversation, exchange)
        exchanges = tuple(Exchange(*map(redact, each)) for each in now.exchanges)
        db.execute("DELETE FROM conversation WHERE vault = ? AND id = ?", [vault_key, now.id])
        when = datetime.now(UTC).isoformat()
        state.insert(
            db, "conversation", replace(now, exchanges=exchanges), vault=vault_key, at=when
        )
    return went


def _with(vault: Vault, conversation: Conversation, exchange: Exchange | None) -> Conversation:
    latest = next(
        (each for each in _conversations(vault) if each.id == conversation.id), conversation
    )
    exchanges = list(dict.fromkeys([*conversation.exchanges, *latest.exchanges]))
    if exchange is not None:
        exchanges.append(Exchange(*(text[:MAX_CHARS] for text in exchange)))
    most = vault.config[AskTable].history
    return replace(conversation, exchanges=tuple(exchanges[-most:] if most else ()))


def _expire(db: sqlite3.Connection, vault: Vault) -> str:
    """Remove old conversations, by the last one but today's: a clock that is wrong today removes none."""
    days = vault.config[JournalTable].retention_days
    yesterday = (datetime.now(UTC) - timedelta(days=1)).isoformat()
    last = "SELECT max(at) FROM conversation WHERE at < ?"
    (latest,) = db.execute(last, [yesterday]).fetchone()
    oldest = times.days_before(days, datetime.fromisoformat(latest)) if latest else None
    if oldest is None:
        return ""
    old = db.execute("DELETE FROM conversation WHERE at < ?", [oldest.isoformat()]).rowcount
    return f"{count(old, 'conversation')} older than {count(days, 'day')} went" if old else ""
