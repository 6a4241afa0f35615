"""One warm process for all vaults of a user: they share it, and none delays another."""

from __future__ import annotations

import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import run
from tests.support.files import MakeVault, lesson_text, write
from tests.support.watchers import soon, status, watched
from vault_index.hotpath import protocol
from vault_index.index import reconcile
from vault_index.vault import Vault
from vault_index.watch import launch

pytestmark = pytest.mark.slow


@pytest.fixture
def vaults(make_vault: MakeVault, own_world: Path) -> Iterator[tuple[Vault, Vault]]:
    """Two indexed vaults of a lesson each, without a model; no watcher is left at the end."""
    both = (
        make_vault({"heap.md": lesson_text("Heap", "Raise the heap.")}, name="first"),
        make_vault({"sand.md": lesson_text("Sand", "Shovel the sand.")}, name="second"),
    )
    for vault in both:
        reconcile.sync(vault)
    yield both
    launch.stop()


def titles(vault: Vault, text: str) -> list[str]:
    """Ask the watcher itself: no answer comes from anywhere else."""
    question = {"ask": "search.find", "with": {"query": {"text": text}}}
    hits: list[dict[str, Any]] = protocol.ask(str(vault.root), question, 60)["answer"]["hits"]
    return [hit["title"] for hit in hits]


def test_one_process_answers_for_two_vaults(vaults: tuple[Vault, Vault]) -> None:
    first, second = vaults
    with watched(first) as one, watched(second) as other:
        assert one["pid"] == other["pid"]
        assert other["vaults"] == [str(vault.root) for vault in vaults]
        assert (titles(first, "heap"), titles(second, "sand")) == (["Heap"], ["Sand"])
        write(second.lessons_dir / "new.md", lesson_text("New", "Zyzzyva."))
        soon(lambda: titles(second, "zyzzyva") == ["New"])
        assert titles(first, "zyzzyva") == []


def test_a_vault_is_opened_by_its_first_question(
    vaults: tuple[Vault, Vault], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = vaults
    # hooks may open none, by the settings of the tests
    with watched(first), pytest.raises(protocol.NotOpen):
        titles(second, "sand")
    monkeypatch.setenv("LESSONS_WATCH_AUTOSTART", "true")
    with watched(first):
        assert not status(second)["running"]
        assert titles(second, "sand") == ["Sand"]
        assert status(second)["running"]


def test_what_was_saved_in_a_closed_vault_is_taken_in_by_its_next_question(
    vaults: tuple[Vault, Vault], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = vaults
    monkeypatch.setenv("LESSONS_WATCH_AUTOSTART", "true")
    with watched(first):
        assert not status(second)["running"]
        write(second.lessons_dir / "new.md", lesson_text("New", "Zyzzyva."))
        assert titles(second, "zyzzyva") == ["New"]


def _is_deleted(folder: Path) -> bool:
    """Whether a folder is gone after another try: the watcher may write beside the first."""
    shutil.rmtree(folder, ignore_errors=True)
    return not folder.exists()


def test_a_vault_that_is_deleted_is_closed_and_the_other_stays(vaults: tuple[Vault, Vault]) -> None:
    first, second = vaults
    with watched(first) as state, watched(second):
        soon(lambda: _is_deleted(first.root))
        soon(lambda: status(second)["vaults"] == [str(second.root)])
        assert titles(second, "sand") == ["Sand"]
        assert status(second)["pid"] == state["pid"]
    assert not first.root.exists()


def test_a_broken_vault_keeps_no_other_from_an_answer(vaults: tuple[Vault, Vault]) -> None:
    first, second = vaults
    with watched(second) as state:
        write(first.lessons_dir / "vault.toml", "floor = \n")
        with pytest.raises(protocol.Declined, match="not TOML"):
            protocol.ask(str(first.root), {"ask": "open"}, 60)
        assert titles(second, "sand") == ["Sand"]
        write(first.lessons_dir / "vault.toml", "")
        soon(lambda: run("lessons", "watch", "--background", cwd=first.root).code == 0)
        assert status(first)["pid"] == state["pid"]


def test_a_watcher_may_open_the_files_of_many_vaults() -> None:
    """Issue 56, row 8: 200 vaults had 1,191 files open, and the usual limit is 1,024."""
    program = (
        "import resource; from vault_index import native; limit = resource.RLIMIT_NOFILE;"
        "hard = resource.getrlimit(limit)[1]; resource.setrlimit(limit, (64, hard));"
        "native.allow_open_files(4096); print(*resource.getrlimit(limit))"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    soft, hard = map(int, done.stdout.split())
    assert soft == (4096 if hard == resource.RLIM_INFINITY else min(4096, hard))
