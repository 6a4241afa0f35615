"""Conversations by id: the last exchanges of each, in memory and, where the user wants it, in files.

    ~/.lessons/ask/<project>/<vault>/<id>.json      0600; see `journal.projects`

No passage is kept, only questions and answers, without their secrets in files. A file goes as sessions
of the journal do, `journal.retention_days` after the last question. An id is random, so that nobody
goes on with a conversation whose id was not returned to them. An id that a client chose is kept as a hash
with what only this client has. A name, which a user chooses on the command line, is in the file and never
an id.
"""

from __future__ import annotations

import json
import re
import secrets
import threading
from collections import OrderedDict
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from vault_index import files
from vault_index.check.redact import redact
from vault_index.errors import VaultError
from vault_index.features import AskTable, JournalTable
from vault_index.journal import projects
from vault_index.lesson.file import hash_of
from vault_index.llm.backend import ASSISTANT, USER, Turn
from vault_index.store import moments

if TYPE_CHECKING:
    from vault_index.vault import Vault

MAX_SENT_CHARS = 8_000  # of a question or an answer that is sent again
_CITED = re.compile(r"[ \t]*\[\d+\]")


@dataclass(frozen=True, slots=True)
class Exchange:
    """A question and its answer; no passage of the vault is in it."""

    question: str
    answer: str


def turns(before: Iterable[Exchange]) -> tuple[Turn, ...]:
    """Return exchanges as a model is sent them: without citations, whose numbers are of their time."""
    sent: list[Turn] = []
    for each in before:
        said = _CITED.sub("", each.answer)[:MAX_SENT_CHARS] or "-"
        sent += [Turn(USER, each.question[:MAX_SENT_CHARS]), Turn(ASSISTANT, said)]
    return tuple(sent)


FOLDER = "ask"
MAX_IN_MEMORY = 256  # conversations of a process; those used longest ago go
MAX_NAME_CHARS = 100
MAX_CHARS = 20_000  # of a question or an answer that is kept
_ID = re.compile(r"[A-Za-z0-9_-]{20,100}")


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation; `exchanges` are the last ones, the latest at the end."""

    id: str
    name: str = ""
    exchanges: tuple[Exchange, ...] = ()


_lock = threading.Lock()
_in_memory: OrderedDict[tuple[str, str], Conversation] = OrderedDict()  # by vault and id


def open_(vault: Vault, session_id: str = "", name: str = "", owner: str = "") -> Conversation:
    """Return the conversation of an id or of a name; else a new one.

    An id that is not one of ours was chosen by its client, whose secret `owner` is: to another client the
    same id is another conversation.
    """
    own = "own-" + hash_of(json.dumps([owner, session_id])) if session_id else ""
    with _lock:
        there = [each for (root, _), each in _in_memory.items() if root == str(vault.root)]
    if vault.config[AskTable].record and (session_id or name):
        # another process may have continued the conversation
        ids = [id for id in (session_id, own) if _ID.fullmatch(id)] if session_id else ["*"]
        if folder := projects.private_folder(vault, FOLDER):
            stored = (file for id in ids for file in folder.glob(f"{id}.json"))
            there += filter(None, map(_load, stored))
    for each in reversed(there):
        if (session_id and each.id in (session_id, own)) or (name and each.name == name):
            return each
    return Conversation(own or secrets.token_urlsafe(24), name[:MAX_NAME_CHARS])


def add(vault: Vault, conversation: Conversation, exchange: Exchange | None) -> str:
    """Keep a conversation with a further exchange, as many as are sent again.

    Exchanges that another question of the same conversation added meanwhile stay. Return a line
    about what expired, "" if nothing did. Raises WriteError.
    """
    most, went = vault.config[AskTable].history, ""
    with _lock:
        latest = _in_memory.get((str(vault.root), conversation.id))
        exchanges = conversation.exchanges
        if latest is not None:
            exchanges += tuple(each for each in latest.exchanges if each not in exchanges)
        if exchange is not None:
            short = Exchange(exchange.question[:MAX_CHARS], exchange.answer[:MAX_CHARS])
            exchanges = (*exchanges, short)
        now = Conversation(conversation.id, conversation.name, exchanges[-most:] if most else ())
        _in_memory[str(vault.root), now.id] = now
        _in_memory.move_to_end((str(vault.root), now.id))
        while len(_in_memory) > MAX_IN_MEMORY:
            _in_memory.popitem(last=False)
    if vault.config[AskTable].record:
        with projects.hold_private_folder(vault, FOLDER) as folder:
            went = _expire(folder, vault)
            said = [[redact(text) for text in astuple(each)] for each in now.exchanges]
            text = json.dumps(
                {"id": now.id, "name": now.name, "exchanges": said}, ensure_ascii=False
            )
            files.replace_file(folder / f"{now.id}.json", text.encode("utf-8", "replace"))
    return went


def _load(file: Path) -> Conversation | None:
    """Return the conversation of a file; None for one that is damaged or not ours."""
    with suppress(VaultError, ValueError, TypeError, KeyError):
        values = json.loads(files.read_if_any(file) or b"null")
        exchanges = tuple(Exchange(str(asked), str(said)) for asked, said in values["exchanges"])
        if values["id"] == file.stem and _ID.fullmatch(file.stem):
            return Conversation(file.stem, str(values["name"]), exchanges)
    return None


def _expire(folder: Path, vault: Vault) -> str:
    days = vault.config[JournalTable].retention_days
    oldest = moments.days_ago(days)
    if oldest is None:
        return ""
    old = [file for file in folder.glob("*.json") if file.lstat().st_mtime < oldest.timestamp()]
    for file in old:
        file.unlink(missing_ok=True)
    return (
        f"{moments.count_of(len(old), 'conversation')} older than {days} days went" if old else ""
    )
