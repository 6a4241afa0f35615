"""Real watchers for tests, and the index that they make."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.commands import run
from tests.support.indexed import assert_alike, unlike
from vault_index.index import reconcile
from vault_index.store import manifest
from vault_index.store.lance import Table
from vault_index.store.schema import DOCUMENTS, LESSONS, SKILLS, VECTOR, Schema
from vault_index.vault import Vault, open_vault
from vault_index.watch import launch


@contextmanager
def watched(vault: Vault, **env: str) -> Iterator[dict[str, Any]]:
    """Run a watcher in the background; gives its status."""
    run("lessons", "watch", "--background", cwd=vault.root, env=env)
    try:
        yield status(vault)
    finally:
        launch.stop()


def status(vault: Vault) -> dict[str, Any]:
    """Ask the real command how the watcher is."""
    answer: dict[str, Any] = run("lessons", "watch", "--status", "--json", cwd=vault.root).json
    return answer


def soon(promise: Callable[[], object], seconds: float = 120) -> None:
    """Wait until something holds; fail if it does not. What asks seldom leaves time to who is asked."""
    until, pause = time.monotonic() + seconds, 0.02
    while not promise():
        assert time.monotonic() < until, f"not within {seconds} s"
        time.sleep(pause)
        pause = min(pause * 1.3, 0.5)


def watchers_of(root: Path) -> list[int]:
    """List the processes that watch a vault."""
    parents: dict[int, int] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                words = (folder / "cmdline").read_bytes().split(b"\0")
                state, parent, *_ = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if os.fsencode(root) in words and b"watch" in words and state != "Z":
                parents[int(folder.name)] = int(parent)
    # what one of them has just forked is not yet something else by name
    return [pid for pid, parent in parents.items() if parent not in parents]


def rows(vault: Vault, schema: Schema = LESSONS) -> list[dict[str, Any]]:
    """Read a table as it is, every row and every column but the vector."""
    found = manifest.current(vault.index_dir)
    assert found is not None
    opened = Table(found, manifest.load(found).dimension, schema)
    columns = [name for name in schema.columns() if name != VECTOR]
    found_rows = opened.rows(columns) if opened.exists() else []
    return sorted(found_rows, key=lambda row: str(row["id"]))


def assert_same_as_a_rebuild(vault: Vault) -> None:
    """Compare the index, row by row, with one built from nothing."""
    before = rows(vault)
    reconcile.sync(vault)  # what follows from the lessons may wait until it is quiet
    derived = rows(vault, DOCUMENTS), rows(vault, SKILLS)
    reconcile.rebuild(vault)
    assert_alike(before, rows(vault))
    assert_alike(derived[0], rows(vault, DOCUMENTS))
    assert_alike(derived[1], rows(vault, SKILLS))


def soon_same_as_a_rebuild(vault: Vault, seconds: float = 120) -> None:
    """Wait until a watcher's index holds what one built from nothing holds; print what differs."""
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch) / "copy"
        shutil.copytree(vault.root, root, ignore=shutil.ignore_patterns(".vault_index"))
        copy = open_vault(root)
        reconcile.sync(copy)
        rebuilt = rows(copy)
    until = time.monotonic() + seconds
    while unlike(rows(vault), rebuilt) and time.monotonic() < until:
        time.sleep(0.2)
    assert_alike(rows(vault), rebuilt)


def save_like_vim(file: Path, text: str) -> None:
    """Backup by rename, a new file, and the swap file and the probe that come with it."""
    probe = file.parent / "4913"
    probe.touch()
    probe.unlink()
    swap = file.parent / f".{file.name}.swp"
    swap.write_text("b0VIM")
    backup = file.parent / f"{file.name}~"
    file.rename(backup)
    with file.open("w", encoding="utf-8") as out:
        out.write(text)
        out.flush()
        os.fsync(out.fileno())
    backup.unlink()
    swap.unlink()
