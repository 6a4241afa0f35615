"""What each agent event means: a prompt is searched for, a session start looks at the project.

A hook has no time to index much. It takes in a few changed files itself; for more, and for who
wrote them, it starts `lessons index` in the background and answers from the index as it is.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from vault_index import floor, index, manifest, recall
from vault_index.errors import IndexStateError, NoVaultError, WriteError
from vault_index.recall import Injection
from vault_index.vault import Vault, open_vault

FILES_AT_ONCE = 8  # changed files that a hook embeds itself: about 0.1 s
RESTART_SECONDS = 20  # ten agents that prompt at once start one indexing, not ten
SESSION_DAYS = 7  # how long it is kept what a session was given


def answer(event: dict[str, Any]) -> dict[str, Any] | None:
    """Answer one Claude Code hook event; None for silence. Anything may be raised."""
    name = event["hook_event_name"]
    project = Path(str(event.get("cwd") or "."))
    try:
        vault = _vault(project)
    except NoVaultError:
        return None  # most projects have none
    if (
        name == "SessionStart"
        and event.get("source", "startup") not in vault.config.session_sources
    ):
        return None
    try:
        found = _found(vault, event, project) if _bring_up_to_date(vault) else None
    except IndexStateError as error:
        if not error.newer:  # damaged in a way that only searching shows
            index_in_background(vault, rebuild=True)
        raise
    if found is None or not found.text:
        return None
    _remember(vault, str(event.get("session_id") or ""), found)
    return {"hookSpecificOutput": {"hookEventName": name, "additionalContext": found.text}}


def _found(vault: Vault, event: dict[str, Any], project: Path) -> Injection:
    already = _given(vault, str(event.get("session_id") or ""))
    if event["hook_event_name"] == "SessionStart":
        _forget_old_sessions(vault)
        return recall.for_session(vault, project, already)
    return recall.for_prompt(vault, str(event.get("prompt") or ""), already)


def _vault(project: Path) -> Vault:
    """Open the vault of a project: named by the environment, around it, or the user's default."""
    if os.environ.get("LESSONS_VAULT") or not project.is_dir():
        return open_vault()
    os.chdir(project)
    return open_vault()


def _bring_up_to_date(vault: Vault) -> bool:
    """Take in a few changes, leave more to the background. False if there is nothing to ask yet."""
    try:
        stats = index.sync(vault, at_most=FILES_AT_ONCE, wait=False)
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
    if behind:
        index_in_background(vault)
    return opened is not None


def index_in_background(vault: Vault, *, rebuild: bool = False) -> None:
    """Start `lessons index` for a vault, detached, unless that was done a moment ago.

    The index's lock sees to it that one at a time works.
    """
    log = vault.index_folder / "background.log"
    if log.exists() and time.time() - log.stat().st_mtime < RESTART_SECONDS:
        return
    with manifest.writing(vault.index_folder):
        vault.index_folder.mkdir(mode=0o700, exist_ok=True)
        output = log.open("wb")
    options = ["--no-wait", "--rebuild"] if rebuild else ["--no-wait"]
    with output:
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
        return set(_session_file(vault, session).read_text("utf-8").splitlines())
    except (OSError, UnicodeDecodeError):
        return set()


def _remember(vault: Vault, session: str, found: Injection) -> None:
    if not session:
        return
    file = _session_file(vault, session)
    try:
        file.parent.mkdir(mode=0o700, exist_ok=True)
        with file.open("a", encoding="utf-8") as given:
            given.writelines(f"{hit.lesson_id}\n" for hit in found.hits)
    except OSError:  # a read-only vault: a lesson may then come twice
        return


def _forget_old_sessions(vault: Vault) -> None:
    folder = vault.index_folder / "sessions"
    oldest = time.time() - SESSION_DAYS * 86_400
    for file in folder.iterdir() if folder.is_dir() else ():
        if file.stat().st_mtime < oldest:
            file.unlink(missing_ok=True)
