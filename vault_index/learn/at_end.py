"""Learn from sessions when they end: `[learn] auto = true`, in the process that captures transcripts.

The hook of a session's end notes its transcript, see `hotpath.spool`. Each session is analysed once,
however often it is taken up again, and nothing of it is in the agent's way: errors are in a log, and
`lessons status` names them.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from vault_index.errors import VaultError
from vault_index.features import LearnTable
from vault_index.files import make_folder, try_lock
from vault_index.hotpath import clock, index_files
from vault_index.journal import archive, backlog
from vault_index.journal.journal import Journal
from vault_index.learn import nudge, runs
from vault_index.learn.material import SESSION

LOCK = "learn.lock"
PATIENCE_SECONDS = 2 * 86_400  # that a session waits for a model that is away


Learn = Callable[[str, dict[str, Any]], tuple[str, str]]  # (root, values) -> status, trouble


def run_ended(journal: Journal, learn: Learn, say: Callable[[str], None]) -> int:
    """Learn from the sessions that ended; return the number of them. `learn` puts the command to a vault.

    Without `[learn] auto` their notes are removed. Nothing happens while another process does it.
    Raises StateError, WriteError.
    """
    if not journal.config[LearnTable].auto:
        for note in backlog.ended(journal):
            if session := archive.of_transcript(journal, note.transcript):
                nudge.keep(journal, session)
            backlog.remove(journal, note)
        return 0
    learned, tried = 0, set[str]()
    make_folder(journal.config.home)
    with try_lock(journal.config.home / LOCK) as is_alone:
        while is_alone and (due := [e for e in backlog.ended(journal) if e.name not in tried]):
            for note in due:
                tried.add(note.name)
                ended = _ended(journal, note)
                status = _learn_from(*ended, learn, say) if ended else ""
                learned += bool(status)
                is_old = not clock.is_near(note.at, PATIENCE_SECONDS)
                if status not in runs.LATER or is_old:
                    backlog.remove(journal, note)
    return learned


def _learn_from(session: str, root: str, learn: Learn, say: Callable[[str], None]) -> str:
    """Learn from a session and return the status; a failure is said."""
    values = {"scope": SESSION, "target": session, "asked_by": runs.NOBODY}
    try:
        status, trouble = learn(root, values)
    except VaultError as error:
        status, trouble = runs.FAILED, error.message
    except Exception as error:  # noqa: BLE001  # a bug of ours; others still get their turn
        status, trouble = runs.FAILED, f"{type(error).__name__}: {error}"
    if trouble:
        say(f"error: learning from session {session[:8]}: {trouble}")
    return status


def _ended(journal: Journal, note: backlog.Note) -> tuple[str, str] | None:
    """Return a note's session and the root of the vault that may learn from it; None without.

    The sessions of this product, of subagents, and forgotten ones are not there. Raises StateError.
    """
    session = archive.of_transcript(journal, note.transcript)
    try:
        root = index_files.find(None, session.folder, os.environ) if session else None
    except (ValueError, OSError):
        return None
    return (session.id, root) if session and root and not session.parent else None
