"""Asking a vault: its watcher answers, or else this process does, from an index that is up to date.

    client.ask("path/to/vault", {"ask": "search", "with": {"text": "heap"}}, on_note=print)

Every door but the hook comes through here. Nothing is printed: notes and progress go to callbacks.
What `here` needs loads only when this process has to answer from the index.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import os
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from vault_index import api
from vault_index.errors import VaultError
from vault_index.hotpath import index_files, protocol, spool

if TYPE_CHECKING:
    from pathlib import Path

    from vault_index.vault import Vault


Note = Callable[[str], None]


def silent(*_: object) -> None:
    """Take a note or progress, and show it to nobody."""


def ask(
    place: Vault | Path | str | None,
    question: Mapping[str, Any],
    *,
    fresh: bool = True,
    as_is: bool = False,
    settled: bool = False,
    fetch: bool = True,
    start: bool = False,
    names_only: bool = False,
    prompts: bool = True,
    on_note: Note = silent,
    on_progress: api.Progress = silent,
    on_problem: Note | None = None,
    on_event: Callable[[Mapping[str, Any]], None] = silent,
    put: Callable[..., dict[str, Any]] | None = None,
) -> dict[str, Any]:
    """Answer a question, or carry out a command, of `api`: `{"ask": name, "with": {...}}`.

    `place` is a vault, a folder in it or, for None, found from here upwards; the journal needs none.
    `fresh` waits for what was saved until now, `settled` also for what follows from it; with `as_is` a
    watcher answers from the index it has, half a second behind at most. Without `fetch` a missing model
    stays missing. With `start`, for processes that stay, a watcher is started rather than the model
    loaded. `names_only` is for callers that show no more of a lesson than id, title and path; without
    `prompts` it may lack those. `on_problem` takes notes on files, `on_event` parts of an answer that
    a command has before the whole of it; `put` takes a vault and a question of a command, which comes
    here without. Raises VaultError; BusyError with `start`, where a watcher does not answer in time.
    """
    on_note = _each_once(on_note)
    on_problem = on_problem or on_note
    _finish_forgetting(on_note)
    if (name := question["ask"]) in api.QUESTIONS:
        asked = {**question, "fresh": fresh and not as_is, "settled": settled}
        if (answer := _from_watcher(place, asked, on_problem, start=start)) is not None:
            return answer
    if api.is_about_journal(name):
        return _of_journal(question, on_note, on_progress, fetch=fetch)
    vault = _warned(open_vault(place), on_problem)
    read = name in api.QUESTIONS and _from_files(vault, question, names_only, prompts, on_problem)
    if read:
        return read
    from vault_index.client import here

    if name not in api.QUESTIONS:
        put = put or functools.partial(ask, start=start)
        return here.run(vault, question, put, on_note, on_progress, on_event)
    return here.answer(
        vault, question,
        fresh=fresh, fetch=fetch, on_note=on_note, on_progress=on_progress, on_problem=on_problem,
    )  # fmt: skip


def _finish_forgetting(on_note: Note) -> None:
    """Take out of the journal what an earlier command noted and did not finish."""
    if os.path.lexists(f"{index_files.home_folder(os.environ)}/{spool.JOURNAL}/{spool.FORGETTING}"):
        importlib.import_module(f"{__name__}.journal").finish_forgetting(on_note)


def _warned(vault: Vault, on_problem: Note) -> Vault:
    """Return a vault after notes on the settings that are ignored."""
    for line in vault.config.warnings():
        on_problem(line)
    return vault


def _of_journal(
    question: Mapping[str, Any], on_note: Note, on_progress: api.Progress, *, fetch: bool
) -> dict[str, Any]:
    journal = importlib.import_module(f"{__name__}.journal")
    answered: dict[str, Any] = journal.answer(question, on_note, on_progress, fetch=fetch)
    return answered


def _each_once(note: Note) -> Note:
    """Return a callback that passes on each line once: waiting for another process tries again."""
    lines: set[str] = set()

    def pass_on(line: str) -> None:
        if line not in lines:
            lines.add(line)
            note(line)

    return pass_on


def open_vault(place: Vault | Path | str | None) -> Vault:
    """Return a vault, the vault of a folder or, for None, the one found from here upwards."""
    if place is not None and not isinstance(place, (str, os.PathLike)):
        return place
    from vault_index import vault

    return vault.open_vault(place)


def name_in_vault(place: str | None, lesson: str) -> str:
    """Return the path from the vault's root of a lesson named by its file, else the name itself.

    A file is named from the current folder, or by its absolute path; a section as `file.md#section`.
    """
    path, mark, section = lesson.partition("#")
    # Path.expanduser raises for ~nobody
    file = os.path.expanduser(path if path.endswith(".md") else f"{path}.md")
    root = _root(place)
    with contextlib.suppress(OSError, ValueError):
        if root is not None and os.path.isfile(file):
            inside = os.path.relpath(os.path.realpath(file), os.path.realpath(root))
            if inside.startswith(f"{index_files.FOLDER}/"):
                return inside.removesuffix(".md") + mark + section
    return lesson


def _root(place: Vault | Path | str | None) -> str | None:
    """Return the root of a vault as its settings file shows it; None without one."""
    if place is None or isinstance(place, (str, os.PathLike)):
        try:
            return index_files.find(None if place is None else str(place), ".", os.environ)
        except (ValueError, OSError):  # of the user's settings, which whoever loads them explains
            return None
    return str(place.root)


def _from_watcher(
    place: Vault | Path | str | None, question: Mapping[str, Any], on_problem: Note, *, start: bool
) -> dict[str, Any] | None:
    """Ask the watcher; None without one, and where it cannot answer. Raises VaultError."""
    root = _root(place)
    if root is None:
        if not api.is_about_journal(question["ask"]):
            return None
        root = ""
    answer: dict[str, Any] | None
    try:
        answer = protocol.ask(root, question, protocol.WATCHER_SECONDS)
    except protocol.NoWatcher:
        answer = _staying().from_started(root, question) if start and root else None
    except (protocol.Gone, protocol.DeclinedForNow):
        answer = _staying().from_next(root, question) if start and root else None
    except protocol.Declined:
        return None
    except protocol.NoAnswer:
        if start:
            raise _staying().busy() from None
        return None
    if answer is None:
        return None
    if "refused" in answer:
        raise VaultError(answer["refused"], answer["hint"])
    for note in answer["notes"]:
        on_problem(note)
    return answer


def _staying() -> Any:
    """Return the module for processes that stay: it loads what starts a watcher."""
    return importlib.import_module(f"{__name__}.staying")


def _from_files(
    vault: Vault, question: Mapping[str, Any], names_only: bool, prompts: bool, on_problem: Note
) -> dict[str, Any] | None:
    """Answer from the files alone; None where only the index can."""
    with _without_garbage_collection():
        read = api.from_files(vault, question, names_only=names_only, prompts=prompts)
    if read is None:
        return None
    for problem in read[1]:
        on_problem(api.warning(problem))
    return read[0]


@contextlib.contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Do not look for circles among thousands of small values: it takes a third of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
