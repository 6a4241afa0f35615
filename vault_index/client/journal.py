"""Answering about the journal in this process: it is there without a vault."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from vault_index import api, config
from vault_index.client.local import fetch_model
from vault_index.errors import EmbedderError, IndexStateError, VaultError, WriteError
from vault_index.journal import forget, index
from vault_index.journal.journal import Journal

if TYPE_CHECKING:
    from vault_index.client import Options
    from vault_index.client.local import Note


def answer(question: api.Question[api.Answer], options: Options) -> api.Answer:
    """Answer a question about the journal in this process, or carry out a command.

    Raises VaultError.
    """
    journal = Journal(config.load())
    note, progress = options.note, options.progress
    for line in journal.config.warnings():
        note(line)
    if question.form.is_command:
        if question.name == "journal.import_transcripts" and not question.values.get("dry_run"):
            fetch_model(journal.config, note)
        caller = api.Caller(note, progress, _refuse, _refuse, _refuse)
        return question.answer(journal, caller)
    if not question.form.needs_index:
        return question.answer(journal)
    if options.fetch:
        fetch_model(journal.config, note)
    _bring_up_to_date(journal, note, progress)
    for rebuild in (False, True):
        try:
            return question.answer(journal)
        except IndexStateError as error:
            if error.newer:
                raise
            if rebuild:  # only the search showed the damage
                note(f"note: {error.message}; it is built again")
            index.sync(journal, rebuild=rebuild)  # another process may just make the first
    return question.answer(journal)


def finish_forgetting(on_note: Note) -> None:
    """Finish the forgetting that a kill or a full disk interrupted. Never raises."""
    try:
        forgotten = forget.finish(Journal(config.load()))
    except VaultError as error:
        on_note(f"warning: something is still to be forgotten: {error.message}")
        return
    if forgotten is not None:
        on_note(f"note: what an earlier `lessons journal forget` began is done: {forgotten.proof}")


def _bring_up_to_date(journal: Journal, on_note: Note, on_progress: api.Progress) -> None:
    progress = partial(on_progress, "indexing the journal")
    try:
        stats = index.sync(journal, wait=False, completes=False, progress=progress)
        index.complete_later(journal, stats)
    except (WriteError, EmbedderError) as error:
        on_note(f"warning: {error.message}; searching the index as it is")
        return
    if stats.no_vectors:
        on_note(f"warning: full text only: {stats.no_vectors}")
    if stats.busy:
        on_note("note: another process is indexing; searching the index as it is")


def _refuse(*_: Any, **_options: Any) -> Any:
    raise NotImplementedError("no command of the journal asks, indexes or answers in parts")
