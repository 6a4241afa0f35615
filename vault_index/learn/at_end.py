"""Learn from sessions when they end: `[learn] auto = true`, in the process that takes transcripts in.

The hook of a session's end notes its transcript, see `hotpath.grown`. Each session is analysed once,
however often it is taken up again, and nothing of it is in the agent's way: errors are in a log, and
`lessons status` names them.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from vault_index.errors import VaultError
from vault_index.files.private import alone, make_folder
from vault_index.hotpath import locate
from vault_index.journal import expiry, kept, spool
from vault_index.journal.journal import Journal
from vault_index.learn import record
from vault_index.learn.material import SESSION

LOCK = "at_end.lock"
PATIENCE_DAYS = 2  # that a session waits for a model that is away


@dataclass(frozen=True, slots=True)
class Ended:
    """A session that ended, and the vault that may learn from it."""

    session: str
    root: str


Learn = Callable[[str, dict[str, Any]], dict[str, Any]]  # a vault's root, the command's values


def run(journal: Journal, learn: Learn, say: Callable[[str], None]) -> int:
    """Learn from the sessions that ended; return of how many. `learn` puts the command to a vault.

    Without `[learn] auto` their notes are removed. Nothing happens while another process does it.
    Raises WriteError.
    """
    if not journal.config.learn_auto:
        for note in spool.ended(journal):
            spool.remove(journal, note)
        return 0
    done = 0
    tried: set[str] = set()
    folder = record.folder_of(journal.config)
    make_folder(folder)
    with alone(folder / LOCK) as is_alone:
        while is_alone:
            notes = [note for note in spool.ended(journal) if note.name not in tried]
            if not notes:
                break
            oldest = expiry.oldest(journal.config.home, PATIENCE_DAYS)
            for note in notes:
                tried.add(note.name)
                ended = _ended(journal, note)
                status = _learned(ended, learn, say) if ended else ""
                done += bool(status)
                is_old = oldest is not None and note.at < oldest.timestamp()
                if status not in record.LATER or is_old:
                    spool.remove(journal, note)
    return done


def _learned(ended: Ended, learn: Learn, say: Callable[[str], None]) -> str:
    """Return the status of what was learned from a session; what went wrong is said."""
    values = {"scope": SESSION, "target": ended.session, "asked_by": record.NOBODY}
    try:
        answer = learn(ended.root, values)
    except VaultError as error:
        say(f"error: learning from session {ended.session[:8]}: {error.message}")
        return record.FAILED
    except Exception as error:  # noqa: BLE001  # a bug of ours; others still get their turn
        say(f"error: learning from session {ended.session[:8]}: {type(error).__name__}: {error}")
        return record.FAILED
    if answer["trouble"]:
        say(f"error: learning from session {ended.session[:8]}: {answer['trouble']}")
    return str(answer["status"])


def _ended(journal: Journal, note: spool.Note) -> Ended | None:
    """Return the session of a note; None if the journal has none, or no vault is for its folder.

    The sessions of this product, of subagents, and forgotten ones are not there.
    """
    head = kept.look_for(journal.folder, note.transcript).by_transcript.get(str(note.transcript))
    if head is None:
        return None
    try:
        session = kept.read(head.file)
        root = locate.find(None, session.folder, os.environ) if session and session.folder else None
    except (VaultError, ValueError, OSError):
        return None
    if session is None or session.parent or root is None:
        return None
    return Ended(session.id, root)
