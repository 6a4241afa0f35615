"""Asking the journal, which is there without a vault: the watcher of one around, else this process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from vault_index import api, config
from vault_index.client.here import fetch_model
from vault_index.errors import EmbedderError, IndexStateError, VaultError, WriteError
from vault_index.journal import forget, index
from vault_index.journal.journal import Journal

if TYPE_CHECKING:
    from vault_index.index.stats import Stats

Note = Callable[[str], None]
_FROM_INDEX = ("journal search", "journal timeline")  # the others read the files


def answer(
    question: Mapping[str, Any], on_note: Note, on_progress: api.Progress, *, fetch: bool
) -> dict[str, Any]:
    """Answer a question about the journal in this process, or carry out a command.

    Raises VaultError.
    """
    journal = Journal(config.load())
    for line in journal.config.warnings():
        on_note(line)
    name = question["ask"]
    if name in api.COMMANDS:
        if name == "journal import" and not question["with"].get("dry_run"):
            fetch_model(journal.config, on_note)
        caller = api.Caller(on_note, on_progress, _no_event, _no_question, _no_index)
        return api.run(journal, caller, question)
    if name in _FROM_INDEX:
        if fetch:
            fetch_model(journal.config, on_note)
        _bring_up_to_date(journal, on_note, on_progress)
    for rebuild in (False, True):
        try:
            return api.answer(journal, question)
        except IndexStateError as error:
            if error.newer:
                raise
            if rebuild:  # only the search showed the damage
                on_note(f"note: {error.message}; it is built again")
            index.sync(journal, rebuild=rebuild)  # another process may just make the first
    return api.answer(journal, question)


def finish_forgetting(on_note: Note) -> None:
    """Forget what a kill or a full disk kept an earlier command from forgetting. Never raises."""
    try:
        done = forget.finish(Journal(config.load()))
    except VaultError as error:
        on_note(f"warning: something is still to be forgotten: {error.message}")
        return
    if done is not None:
        on_note(f"note: what an earlier `lessons journal forget` began is done: {done.proof}")


def _bring_up_to_date(journal: Journal, on_note: Note, on_progress: api.Progress) -> None:
    """Bring the journal's index up to date, as far as that can be done now."""

    def progress(done: int, of: int) -> None:
        on_progress("indexing the journal", done, of)

    try:
        stats = index.sync(journal, wait=False, progress=progress)
    except (WriteError, EmbedderError) as error:
        on_note(f"warning: {error.message}; searching the index as it is")
        return
    if stats.busy:
        on_note("note: another process is indexing; searching the index as it is")


def _no_event(_event: Mapping[str, Any]) -> None:
    raise NotImplementedError("no command of the journal answers in parts")


def _no_question(_question: Mapping[str, Any], **_options: Any) -> dict[str, Any]:
    raise NotImplementedError("no command of the journal asks a vault")


def _no_index(*_: Any, **_options: Any) -> Stats | None:
    raise NotImplementedError("no command of the journal indexes a vault")
