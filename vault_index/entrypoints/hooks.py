"""What each agent event means: a prompt is searched for, a session start looks at the project.

A hook has no time to index much. It takes in a few changed files itself; for more, and for who
wrote them, there is the watcher, or without it a `lessons index` in the background.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from vault_index import files, floor, index, injections, once, ownership, recall, search, skills
from vault_index.errors import IndexStateError, NoVaultError, WriteError
from vault_index.recall import Injection
from vault_index.vault import Vault, open_vault

FILES_AT_ONCE = 8  # changed files that a hook embeds itself: about 0.1 s
BUSY_SECONDS = (
    0.4  # to wait for who is indexing: the few files of a pull or a commit take that long
)
RESTART_SECONDS = 20  # ten agents that prompt at once start one indexing, not ten
SESSION_DAYS = 7  # how long it is kept what a session was given


def answer(
    event: dict[str, Any], began: float, *, may_start: bool, text_only: bool
) -> dict[str, Any] | None:
    """Answer one Claude Code hook event in this process; None for silence. Anything may be raised.

    `began` is when the hook did (monotonic). `may_start`: there is no watcher, and none starts.
    `text_only`: there is one that is hung, so that there is little time left.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # others would only spin: see the commands
    project = Path(str(event.get("cwd") or "."))
    try:
        vault = _vault(project)
    except NoVaultError:
        return None  # most projects have none
    if may_start and vault.config.watch_autostart:
        _start_watcher(vault)
    try:
        query = "" if text_only else str(event.get("prompt") or project.name)
        with _embedding(vault, query):
            if not _bring_up_to_date(vault):
                return None
            if query:
                search.load_ahead(vault)
        ms = 1000 * (time.monotonic() - began)
        return respond(vault, event, by="process", ms=ms, text_only=text_only)
    except IndexStateError as error:
        if not error.newer and not vault.config.watch_autostart:  # only searching shows this damage
            index_in_background(vault, rebuild=True)
        raise


@contextlib.contextmanager
def _embedding(vault: Vault, query: str) -> Iterator[None]:
    """Embed a query in a thread meanwhile: half of what a cold search takes, on a core of its own."""
    embedder = vault.embedder if query and vault.config.embedder == "minilm" else None
    if embedder is None:  # nothing to do, or a server is to be waited for
        yield
        return
    thread = threading.Thread(target=search.embed_ahead, args=(vault, query), daemon=True)
    thread.start()
    yield
    thread.join()


def respond(
    vault: Vault,
    event: dict[str, Any],
    *,
    by: str,
    ms: float,
    text_only: bool = False,
    until: float = float("inf"),
) -> dict[str, Any] | None:
    """Search for an event and note what was given; None for silence.

    `ms` is how long the hook has taken so far; after `until`, by the monotonic clock, it has gone
    on without this answer, and nothing was given. Of two hooks of one event the second is silent.
    Raises VaultError.
    """
    began = time.monotonic()
    since = float(event.get("began") or time.time() - ms / 1000)
    name = str(event["hook_event_name"])
    source = event.get("source", "startup")
    if name == "SessionStart" and source not in vault.config.session_sources:
        return None
    session = str(event.get("session_id") or "")
    found = _found(vault, event, session, text_only)
    if time.monotonic() > until:
        return None
    if session and not once.claim(_session_file(vault, session), event, since):
        return None
    injections.record(
        vault.index_folder,
        name,
        session,
        str(event.get("prompt") or ""),
        [(hit.lesson_id, hit.score) for hit in found.hits],
        [(hit.title, hit.score) for hit in found.skills],
        found.floor,
        ms + 1000 * (time.monotonic() - began),
        by,
    )
    if not found.text:
        return None
    _remember(vault, session, found)
    return {"hookSpecificOutput": {"hookEventName": name, "additionalContext": found.text}}


def _start_watcher(vault: Vault) -> None:
    """Start the watcher unless there is one: for the next prompt, as this one found none."""
    from vault_index.watch import launch

    with contextlib.suppress(WriteError):  # a read-only vault has no watcher
        launch.start(vault.root, vault.index_folder)


def _found(vault: Vault, event: dict[str, Any], session: str, text_only: bool) -> Injection:
    already = _given(vault, session)
    project = Path(str(event.get("cwd") or "."))
    skills.register(vault, project)
    if event["hook_event_name"] == "SessionStart":
        _forget_old_sessions(vault)
        return recall.for_session(vault, project, already, text_only=text_only)
    prompt = str(event.get("prompt") or "")
    return recall.for_prompt(vault, prompt, already, project=project, text_only=text_only)


def _vault(project: Path) -> Vault:
    """Open the vault of a project: named by the environment, around it, or the user's default."""
    if os.environ.get("LESSONS_VAULT") or not project.is_dir():
        return open_vault()
    os.chdir(project)
    return open_vault()


def _bring_up_to_date(vault: Vault) -> bool:
    """Take in a few changes, leave more to the background. False if there is nothing to ask yet."""
    try:
        stats = index.sync(vault, at_most=FILES_AT_ONCE, wait=False, ask_git=False)
        patience = time.monotonic() + BUSY_SECONDS
        while stats.busy and time.monotonic() < patience:  # such as what a pull began
            time.sleep(0.02)
            stats = index.sync(vault, at_most=FILES_AT_ONCE, wait=False, ask_git=False)
        behind = bool(stats.pending or stats.wrote)
    except WriteError:  # a read-only vault answers from what it has
        behind = False
    opened = None
    try:
        opened = vault.open_index()
        behind = behind or floor.is_stale(vault)
    except IndexStateError as error:
        if error.newer:
            raise
        behind = True
    if behind and not vault.config.watch_autostart:
        index_in_background(vault)
    return opened is not None


def look_in_background(root: str) -> None:
    """Start one `lessons index` for a vault that has an index: who never searched needs none yet.

    No watcher: a worktree that git makes and removes again should leave no process behind.
    """
    vault = open_vault(root)
    if vault.index_folder.is_dir():
        index_in_background(vault)


def index_in_background(vault: Vault, *, rebuild: bool = False) -> None:
    """Start `lessons index` for a vault, detached, unless that was done a moment ago.

    The index's lock sees to it that one at a time works.
    """
    import subprocess

    log = vault.index_folder / "background.log"
    with files.writing(vault.index_folder):
        ownership.claim(vault.index_folder)
        if log.exists() and 0 <= time.time() - log.lstat().st_mtime < RESTART_SECONDS:
            return
        handle = ownership.open_file(log, os.O_WRONLY | os.O_CREAT)
        os.ftruncate(handle, 0)
        os.utime(handle)
    options = ["--no-wait", "--no-fetch", *(["--rebuild"] if rebuild else [])]
    with os.fdopen(handle, "wb") as output:
        subprocess.Popen(
            [sys.executable, "-m", "vault_index", "--vault", str(vault.root), "index", *options],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            cwd="/",
        )


def _session_file(vault: Vault, session: str) -> Path:
    name = "".join(char for char in session if char.isalnum() or char in "-_")[:80]
    return vault.index_folder / "sessions" / name


def _given(vault: Vault, session: str) -> set[str]:
    """Give the ids of the lessons that a session has had."""
    if not session:
        return set()
    try:
        return set(ownership.read_text(_session_file(vault, session)).splitlines())
    except (OSError, UnicodeDecodeError):
        return set()


def _remember(vault: Vault, session: str, found: Injection) -> None:
    if not session:
        return
    file = _session_file(vault, session)
    try:
        ownership.make_folder(file.parent)
        handle = ownership.open_file(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        with os.fdopen(handle, "a", encoding="utf-8") as given:
            given.writelines(f"{hit.lesson_id}\n" for hit in [*found.hits, *found.skills])
    except OSError:  # a read-only vault: a lesson may then come twice
        return


def _forget_old_sessions(vault: Vault) -> None:
    folder = vault.index_folder / "sessions"
    oldest = time.time() - SESSION_DAYS * 86_400
    for file in folder.iterdir() if ownership.is_folder(folder) else ():
        if file.lstat().st_mtime < oldest and not ownership.is_folder(file):
            file.unlink(missing_ok=True)
