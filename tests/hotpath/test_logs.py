"""Logs do not grow for ever: a full one is moved away, and two files are kept."""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.files import lesson_text, write
from tests.support.watchers import rows, soon, watched
from vault_index.hotpath import log
from vault_index.hotpath.log import MAX_BYTES
from vault_index.vault import Vault
from vault_index.watch import launch


def test_the_log_of_hooks(own_world: Path) -> None:
    file = own_world / log.HOOK_LOG
    file.write_bytes(b"x" * MAX_BYTES)
    for message in ("still fits", "is in a new file"):
        log.log({"hook_event_name": "UserPromptSubmit"}, message, time.monotonic())
    assert (own_world / "hook.log.old").read_text().endswith('"still fits"}\n')
    assert json.loads(file.read_text())["message"] == "is in a new file"
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_log_that_is_in_use_stays(tmp_path: Path) -> None:
    """For instance a background index's log, which it holds a lock on."""
    file = tmp_path / "background.log"
    file.write_bytes(b"x" * (MAX_BYTES + 1))
    folder = os.open(tmp_path, os.O_RDONLY)
    with file.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        log.append(folder, file.name, b"more")
    assert file.read_bytes().endswith(b"x\nmore")
    log.append(folder, file.name, b"new")
    os.close(folder)
    assert file.read_bytes() == b"new"


def test_a_line_that_a_full_disk_cut_spoils_no_other(tmp_path: Path) -> None:
    file = write(tmp_path / "record.jsonl", '{"n": 1}\n{"n": ')
    folder = os.open(tmp_path, os.O_RDONLY)
    for number in (2, 3):
        log.append(folder, file.name, b'{"n": %d}\n' % number)
    os.close(folder)
    assert file.read_text().splitlines() == ['{"n": 1}', '{"n": ', '{"n": 2}', '{"n": 3}']


@pytest.mark.slow
def test_the_log_of_a_watcher_that_runs(make_vault: Callable[..., Vault]) -> None:
    vault = make_vault({"heap.md": lesson_text("Raise the heap", "Zyzzyva.")}, indexed=True)
    file = launch.folder() / launch.LOG
    with watched(vault):
        soon(lambda: " watching " in file.read_text())
        with file.open("ab") as full:
            full.write(b"x" * MAX_BYTES + b"\n")
        write(vault.lessons_dir / "new.md", lesson_text("New", "Xylophone."))
        soon(lambda: len(rows(vault)) == 2)
        soon(lambda: file.exists() and "1 added" in file.read_text())
        assert file.stat().st_size < MAX_BYTES
        assert " watching " in file.with_name("log.old").read_text()
