"""The stream of changes: it follows each save, and holds up nobody."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.support.files import MakeVault, lesson_text, write
from tests.support.serving import Serving, serving

pytestmark = pytest.mark.slow


@pytest.fixture
def served(make_vault: MakeVault, own_world: Path, text_only: None) -> Iterator[Serving]:
    vault = make_vault({"heap.md": lesson_text("Heap", "Raise the heap.")})
    with serving(vault.root, own_world, LESSONS_EMBEDDER="none") as server:
        assert server.ask("GET", "/api/health").status_code == 200
        yield server


@contextmanager
def listening(server: Serving) -> Iterator[Iterator[int]]:
    """Listen to a server; yields the numbers that it sends."""
    with (
        httpx.Client(trust_env=False, timeout=60) as client,
        client.stream("GET", f"{server.url}/page/live") as answer,
    ):
        assert answer.headers["content-type"].startswith("text/event-stream")
        lines = answer.iter_lines()
        yield (int(line[6:]) for line in lines if line.startswith("data: "))


def test_a_save_is_heard_of_by_each_page(served: Serving) -> None:
    with listening(served) as first, listening(served) as second:
        before = next(first)
        assert next(second) == before
        write(served.root / "lessons" / "lock.md", lesson_text("Lock", "Migrations wait."))
        assert next(first) > before
        assert next(second) > before  # a save may count twice, before or after this page looks
