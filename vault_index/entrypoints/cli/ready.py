"""Getting a vault ready for a question: the model there, the index up to date, the floor fitted."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vault_index.entrypoints.cli import output
from vault_index.errors import (
    EmbedderError,
    IndexStateError,
    ModelError,
    SettingsError,
    VaultError,
    WriteError,
)

if TYPE_CHECKING:
    from vault_index.stats import Problem, Stats
    from vault_index.vault import Vault

WATCHER_SECONDS = 10  # it waits up to three itself for what was saved just now
PATIENCE_SECONDS = 3  # a small change is indexed by then, whoever does it


def open_vault(named: str | None) -> Vault:
    """Open the vault that --vault names, or find one."""
    from vault_index import vault

    return vault.open_vault(named)


def note(message: str) -> None:
    """Tell something beside the answer, on stderr."""
    output.say(message, err=True)


@contextlib.contextmanager
def progress(label: str) -> Iterator[Callable[[int, int], None]]:
    """Give a callback (done, all) that draws a bar on a terminal and nothing in a pipe."""
    if not sys.stderr.isatty() or output.color() is False:  # a bar moves by escapes
        yield lambda _done, _all: None
        return
    with contextlib.ExitStack() as stack:
        bars: list[Any] = []

        def show(done: int, of: int) -> None:
            if not bars:  # none is drawn where nothing has to be done
                bars.append(stack.enter_context(output.progress(label)))
            bars[0].length = max(1, of)
            bars[0].update(done - bars[0].pos)

        yield show


def bring_up_to_date(
    vault: Vault,
    *,
    rebuild: bool = False,
    wait: bool = True,
    fetch: bool = True,
    read_all: bool = False,
) -> Stats:
    """Fetch the model if need be, sync the index, fit the floor; say on stderr what is amiss."""
    from vault_index import floor
    from vault_index import index as indexing

    if fetch:
        fetch_model(vault)
    with progress("indexing lessons") as show:
        stats = indexing.sync(vault, rebuild=rebuild, wait=wait, read_all=read_all, progress=show)
    if not stats.busy and floor.is_stale(vault):
        fit_floor(vault)
    return stats


def fit_floor(vault: Vault) -> None:
    """Fit the floor to the index as it is."""
    from vault_index import floor

    with progress("fitting the floor") as show:
        floor.fit(vault, show)


def ask(
    named: str | None,
    what: str,
    *,
    settled: bool = False,
    fetch: bool = True,
    indexed: bool = False,
    names_only: bool = False,
    prompts: bool = True,
    say: Callable[[str], None] = note,
    **arguments: Any,
) -> dict[str, Any]:
    """Put a question of `requests` to the watcher of the vault, or answer it in this process.

    Where the files alone have the answer no table is opened, unless it is to be `indexed`.
    `names_only` is for callers that show no more of a lesson than its id, title and path, `prompts`
    as in `entry`. `settled` is for questions about what follows from the lessons: catalog, proposals,
    skills. Without `fetch` the model is not fetched if it was never: there is full text. `say` gets
    what is to be said of files that are not in the index as they are.
    """
    question = {"ask": what, "with": arguments, "fresh": True, "settled": settled}
    found = _ask_watcher(named, question)
    if found is not None:
        for said in found["notes"]:
            say(said)
        return found
    from vault_index.entrypoints import requests

    vault = open_vault(named)
    question = {"ask": what, "with": arguments}
    read = None
    if not indexed:
        with _no_garbage():
            read = requests.without_table(vault, question, names_only=names_only, prompts=prompts)
    if read is not None:
        for problem in read[1]:
            say(_warning(problem))
        return read[0]
    try:
        up_to_date_or_stale(vault, fetch=fetch, say=say)
        return requests.answer(vault, question)
    except IndexStateError as error:
        if error.newer:
            raise
        note(f"note: {error.message}; it is built anew")  # a table found damaged only now
    bring_up_to_date(vault, rebuild=True, fetch=fetch)
    return requests.answer(vault, question)


@contextlib.contextmanager
def _no_garbage() -> Iterator[None]:
    """Do not look for circles among thousands of small values: it takes a third of the time."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _ask_watcher(named: str | None, question: dict[str, Any]) -> dict[str, Any] | None:
    """Ask the watcher; None if there is none, or none that can answer. Raises VaultError."""
    from vault_index import locate
    from vault_index.watch import line

    root = locate.walk_up(named) if named else locate.for_hook(".", os.environ)
    if root is None:
        return None
    try:
        found = line.ask(root, question, WATCHER_SECONDS)
    except (line.NobodyListens, line.NoAnswer):
        return None
    if "refused" in found:
        raise VaultError(found["refused"], found["hint"])
    return found


def entry(named: str | None, lesson: str, *, names_only: bool = False, prompts: bool = True) -> Any:
    """Return a lesson with its text, by id, by the end of it, or by a path as a shell completes it.

    `names_only` is for callers that need no author, date or category of it; without `prompts` it may
    lack those that should find it and those that should not.
    """
    name = in_vault(named, lesson)
    return ask(named, "show", names_only=names_only, prompts=prompts, name=name)["entry"]


def in_vault(named: str | None, lesson: str) -> str:
    """Return the path from the vault's root where a lesson is named by its file, else the name.

    A file is named from the current folder, or by its absolute path; a section as `file.md#section`.
    """
    from vault_index import locate

    path, mark, section = lesson.partition("#")
    name = path if path.endswith(".md") else f"{path}.md"
    file = Path(os.path.expanduser(name))  # noqa: PTH111  # which raises for ~nobody
    root = locate.walk_up(named) if named else locate.for_hook(".", os.environ)
    with contextlib.suppress(OSError, ValueError):
        if root is not None and file.is_file():
            inside = os.path.relpath(os.path.realpath(file), os.path.realpath(root))
            if inside.startswith(f"{locate.FOLDER}/"):
                return inside.removesuffix(".md") + mark + section
    return lesson


def up_to_date_or_stale(
    vault: Vault, *, fetch: bool = True, say: Callable[[str], None] = note
) -> Stats | None:
    """Do the same before a search, but rather answer from the index as it is than not at all.

    That is so where nothing can be written or embedded, and while another process takes long.
    """
    try:
        stats = bring_up_to_date(vault, wait=False, fetch=fetch)
        patience = time.monotonic() + PATIENCE_SECONDS
        while stats.busy and (time.monotonic() < patience or not _has_index(vault)):
            time.sleep(0.1)
            stats = bring_up_to_date(vault, wait=False, fetch=fetch)
    except (WriteError, EmbedderError) as error:
        if not _has_index(vault):
            raise
        note(f"warning: {error.message}; searching the index as it is")
        return None
    if stats.busy:
        note("note: another process is indexing; searching the index as it is")
    if stats.rebuilt and stats.rebuilt not in ("first index", "asked for"):
        note(f"note: {stats.rebuilt}; it was built anew")
    for problem in stats.problems:
        say(_warning(problem))
    return stats


def _warning(problem: Problem) -> str:
    return f"warning: {problem.path}:{problem.line}: {problem.message}"


def _has_index(vault: Vault) -> bool:
    try:
        vault.open_index()
    except IndexStateError:
        return False
    return True


def fetch_model(vault: Vault) -> None:
    """Get the built-in model here if it is the embedder and was never fetched; offline is no error."""
    from vault_index.embed import fetching, models

    home = vault.config.home
    if vault.config.embedder != "minilm" or models.is_ready(home):
        return
    if not fetching.is_due(vault.config):
        if fetching.state(home).state == fetching.FETCHING:
            note(f"note: {fetching.announcement(vault.config)}")
            return
        note("note: no embedding model here, so full text only; get it with `lessons model fetch`")
        return
    note(f"fetching the embedding model ({fetching.SIZE}, once)")
    try:
        fetching.attempt(home, progress=sys.stderr.isatty())
    except (ModelError, WriteError) as error:
        note(f"note: {error.message}; full text only until `lessons model fetch` succeeds")


def announce_model() -> None:
    """Say, where the built-in model is missing, how it will come here."""
    from vault_index import config
    from vault_index.embed import fetching

    with contextlib.suppress(SettingsError):  # whoever needs the settings says what is wrong
        said = fetching.announcement(config.load())
        if said:
            note(f"note: {said}")
