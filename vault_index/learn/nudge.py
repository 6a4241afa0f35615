"""A line for the person at the start of a session: the last one here taught what nobody proposed.

It is worked out when a session ends; the next start of one in that project reads it and takes it away.
Else the line may name proposals that wait for a week, once a week.
"""

from __future__ import annotations

import time
from pathlib import Path

from vault_index import state
from vault_index.features import LearnTable
from vault_index.hotpath import clock
from vault_index.journal import archive, projects
from vault_index.journal.journal import Journal
from vault_index.journal.record import Session
from vault_index.learn import runs
from vault_index.proposals import store
from vault_index.transcripts import events
from vault_index.transcripts.moments import REFUSED, repairs
from vault_index.vault import Vault

WAIT_SECONDS = 0.3  # for another writer: a hook waits for the line
LONG_SECONDS, MANY = 7 * 86_400, 2  # how long so many proposals wait before a line names them
_WORDS = (
    ("failure that passed", "failures that passed"),
    ("refused call", "refused calls"),
    ("correction", "corrections"),
)


def keep(journal: Journal, session: Session) -> None:
    """Store the nudge of the session that ended, in place of the last one."""
    moments = archive.moments_of(journal, session)
    counts = [
        sum(1 for _ in repairs(moments)),
        sum(each.kind == REFUSED for each in moments),
        sum(each.is_correction and each.origin != events.REFUSAL for each in moments),
    ]
    worth = [session.id, *counts] if any(counts) and not session.parent else None
    state.keep_fact(journal.home, _name(session.project), worth)


def line(vault: Vault, folder: Path, session: str) -> str:
    """Return the line for the start of a session in a folder, once; "" for none. Raises WriteError."""
    home = vault.config.home
    if not vault.config[LearnTable].nudge:
        return ""
    name = _name(projects.find_project(home, str(folder)))
    with state.writing(home, WAIT_SECONDS):
        nudge = state.fact(home, name)
        if nudge and nudge[0] != session:
            state.keep_fact(home, name, None)
            if not runs.has_proposed(vault.config, nudge[0]):
                counts = zip(nudge[1:], _WORDS, strict=True)
                parts = [f"{'a' if n == 1 else n} {words[n > 1]}" for n, words in counts if n]
                runs.note_nudge(vault)
                joined = " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))
                return f"lessons: the last session here had {joined}: /lessons:learn last"
        reminder = f"nudge {state.vault_of(vault.root)}"
        old = store.count_older(vault, LONG_SECONDS)
        if old >= MANY and not clock.is_near(state.fact(home, reminder) or 0, LONG_SECONDS):
            state.keep_fact(home, reminder, time.time())
            return f"lessons: {old} proposals have waited for a week: lessons review"
    return ""


def _name(project: str) -> str:
    return f"nudge of {project}"
