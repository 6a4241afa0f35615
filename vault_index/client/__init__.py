"""Asking a vault: its watcher answers, or else this process does, from an index that is up to date.

    client.ask("path/to/vault", api.search.find(query=Query("heap")), Options(note=print))

Every door but the hook comes through here. Nothing is printed: notes and progress go to callbacks. `here`
and all that it needs load only when this process has to answer from the index.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

from vault_index import api
from vault_index.api import codec
from vault_index.errors import VaultError
from vault_index.hotpath import index_files, protocol, spool

if TYPE_CHECKING:
    from pathlib import Path

    from vault_index.api.question import AskOptions
    from vault_index.vault import Vault


Note = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Options:
    """The freshness of an answer, the parts that it may lack, and the receivers of its notes.

    A watcher waits for what was saved until now, `settled` also for what follows from it; `as_is` it
    answers from the index it has, half a second behind at most. Without `fetch` a missing model stays
    missing. With `start`, for processes that stay, a watcher is started rather than the model loaded.
    `put` answers the questions of a command, which come here without.
    """

    as_is: bool = False
    settled: bool = False
    fetch: bool = True
    start: bool = False
    note: Note = api.silent
    progress: api.Progress = api.silent
    event: Callable[[Mapping[str, Any]], None] = api.silent  # parts of an answer before the whole
    put: Callable[..., Any] | None = None  # called as put(vault, question, **AskOptions)


USUAL = Options()


def ask(
    location: Vault | Path | str | None,
    question: api.Question[api.Answer],
    options: Options = USUAL,
) -> api.Answer:
    """Answer a question, or carry out a command, of `api`.

    `location` is a vault, a folder in it or, for None, found from here upwards; the journal needs none.
    Raises VaultError; BusyError with `start`, where a watcher does not answer in time.
    """
    if uri := getattr(location, "uri", ""):
        return _ask_published(uri, location, question)
    options = replace(options, note=_each_once(options.note))
    _finish_forgetting(options.note)
    form = question.form
    if not form.is_command and (answered := _from_watcher(location, question, options)) is not None:
        return answered[0]
    if question.is_about_journal:
        from vault_index.client import journal

        return journal.answer(question, options)
    vault = open_vault(location)
    for line in vault.config.warnings():
        options.note(line)
    if not (form.is_command or form.needs_index):
        return question.answer(vault)
    from vault_index.client import local

    if form.is_command:
        return local.run(vault, question, options, partial(_put, vault, options))
    return local.answer(vault, question, options)


def _ask_published(uri: str, published: Any, question: api.Question[api.Answer]) -> api.Answer:
    if not question.name.startswith("search.") or question.form.is_command:
        raise VaultError(f"{uri} is a published index, which is only searched", "use a clone")
    return question.answer(published)


def _put(
    vault: Vault, options: Options, question: api.Question[api.Answer], **more: Unpack[AskOptions]
) -> api.Answer:
    if options.put is not None:
        answered: api.Answer = options.put(vault, question, **more)
        return answered
    inner = Options(start=options.start, note=options.note, progress=options.progress)
    return ask(vault, question, replace(inner, **more))


def _finish_forgetting(on_note: Note) -> None:
    if os.path.lexists(f"{index_files.home_folder(os.environ)}/{spool.JOURNAL}/{spool.FORGETTING}"):
        from vault_index.client import journal

        journal.finish_forgetting(on_note)


def _each_once(note: Note) -> Note:
    """Return a callback that passes on each line once: waiting for another process tries again."""
    lines: set[str] = set()

    def pass_on(line: str) -> None:
        if line not in lines:
            lines.add(line)
            note(line)

    return pass_on


def open_vault(location: Vault | Path | str | None) -> Vault:
    """Return a vault, the vault of a folder or, for None, the one found from here upwards."""
    if location is not None and not isinstance(location, (str, os.PathLike)):
        return location
    from vault_index import vault

    return vault.open_vault(location)


def name_in_vault(folder: str | None, lesson: str) -> str:
    """Return the path from the vault's root of a lesson named by its file, else the name itself.

    A file is named from the current folder, or by its absolute path; a section as `file.md#section`.
    """
    path, mark, section = lesson.partition("#")
    # Path.expanduser raises for ~nobody
    file = os.path.expanduser(path if path.endswith(".md") else f"{path}.md")
    root = _root(folder)
    with contextlib.suppress(OSError, ValueError):
        if root is not None and os.path.isfile(file):
            inside = os.path.relpath(os.path.realpath(file), os.path.realpath(root))
            if inside.startswith(f"{index_files.FOLDER}/"):
                return inside.removesuffix(".md") + mark + section
    return lesson


def _root(location: Vault | Path | str | None) -> str | None:
    if location is None or isinstance(location, (str, os.PathLike)):
        try:
            return index_files.find(None if location is None else str(location), ".", os.environ)
        except (ValueError, OSError):  # of the user's settings, which whoever loads them explains
            return None
    return str(location.root)


def _from_watcher(
    location: Vault | Path | str | None, question: api.Question[api.Answer], options: Options
) -> tuple[api.Answer] | None:
    root = _root(location)
    if root is None:
        if not question.is_about_journal:
            return None
        root = ""
    request = {
        "ask": question.name,
        "with": codec.to_json(question.values),
        "fresh": not options.as_is,
        "settled": options.settled,
    }
    answer: dict[str, Any] | None = None
    if options.start:
        from vault_index.watch import launch

        answer = launch.ask_started(root, request)
    else:
        with contextlib.suppress(protocol.NoWatcher, protocol.NoAnswer):
            answer = protocol.ask_alive(root, request)
    if answer is None:
        return None
    if "refused" in answer:
        raise VaultError(answer["refused"], answer["hint"])
    for note in answer["notes"]:
        options.note(note)
    return (codec.from_wire(answer),)
