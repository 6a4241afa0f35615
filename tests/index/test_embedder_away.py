"""The embedder goes away and comes back: what is saved meanwhile is found by its words, and gets its
vectors later. No setting of one command rebuilds an index. Issue 56, items 3 and 6."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.embed.ollama_server import OllamaServer
from tests.support.commands import run
from tests.support.files import MakeVault, lesson_text, write
from tests.support.journals import a_journal, keep, prompt
from tests.support.watchers import soon, watched
from vault_index.errors import EmbedderError
from vault_index.index import reconcile
from vault_index.journal import forget
from vault_index.journal import index as journal_index
from vault_index.journal.journal import Journal
from vault_index.journal.journal import open_index as open_journal
from vault_index.retrieval import query
from vault_index.store import manifest
from vault_index.store.lance import LanceTable, Table
from vault_index.store.sync import Stats
from vault_index.vault import Vault, open_vault

pytestmark = pytest.mark.slow

NEW = lesson_text("Brewery", "Drain the queue of the brewery before noon.")


def save_while_away(vault: Vault, server: OllamaServer) -> None:
    server.fault = "broken"
    write(vault.lessons_dir / "brewery.md", NEW)
    reconcile.sync(vault)


@pytest.fixture
def server() -> Iterator[OllamaServer]:
    with OllamaServer() as serving:
        yield serving


@pytest.fixture
def vault(make_vault: Callable[..., Vault], own_world: Path, server: OllamaServer) -> Vault:
    files = {
        "heap.md": lesson_text("Node heap", "Raise the heap of the build."),
        "dates.md": lesson_text("Dates", "Store dates in UTC."),
    }
    root = make_vault(files).root
    host = f"127.0.0.1:{server.port}"
    write(own_world / "config.toml", f'embedder = "ollama"\nollama_host = "{host}"\n')
    vault = open_vault(root)
    reconcile.sync(vault)
    return vault


def vectors(vault: Vault) -> Mapping[str, bool]:
    """Return whether each lesson has a vector."""
    store = vault.open_index().store
    ids = [row["lesson_id"] for row in store.rows(["lesson_id"])]
    found = store.of_lessons(ids)
    return {id: id in found for id in ids}


def current(vault: Vault) -> Path:
    index = manifest.current(vault.index_dir)
    assert index is not None
    return index


def found(vault: Vault, text: str) -> list[str]:
    return [hit.lesson_id for hit in query.find(vault, text)]


def test_what_is_saved_meanwhile_is_found_by_words_and_completed(
    vault: Vault, server: OllamaServer
) -> None:
    before = current(vault)
    server.fault = "broken"
    write(vault.lessons_dir / "brewery.md", NEW)
    stats = reconcile.sync(vault)
    assert (stats.added, stats.lacking) == (1, 1)
    assert "llama runner process has terminated" in stats.no_vectors
    assert found(vault, "drain the brewery") == ["brewery"]
    assert vectors(vault) == {"heap": True, "dates": True, "brewery": False}
    assert reconcile.sync(vault).lacking == 1  # it is tried, and changes nothing
    server.fault = ""
    server.inputs.clear()
    stats = reconcile.sync(vault)
    assert (stats.lacking, stats.no_vectors, stats.rebuilt) == (0, "", "")
    assert all(vectors(vault).values())
    sent = [text for texts in server.inputs for text in texts]
    assert not any("heap" in text for text in sent)  # only what lacked vectors
    assert current(vault) == before
    assert not reconcile.sync(vault).wrote


def test_a_watcher_completes_what_lacks_vectors_without_a_command(
    vault: Vault, server: OllamaServer
) -> None:
    with watched(vault):
        server.fault = "broken"
        write(vault.lessons_dir / "brewery.md", NEW)
        soon(lambda: vectors(vault).get("brewery") is False)
        assert found(vault, "drain the brewery") == ["brewery"]
        server.fault = ""
        soon(lambda: vectors(vault)["brewery"])


def test_a_change_of_a_lesson_that_lacks_vectors_keeps_what_it_has(
    vault: Vault, server: OllamaServer
) -> None:
    save_while_away(vault, server)
    write(vault.lessons_dir / "brewery.md", NEW.replace("noon", "midnight"))
    write(vault.lessons_dir / "heap.md", lesson_text("Node heap", "Lower the heap of the build."))
    assert reconcile.sync(vault).lacking == 2
    assert found(vault, "midnight") == ["brewery"]
    server.fault = ""
    assert reconcile.sync(vault).lacking == 0
    assert all(vectors(vault).values())


def test_an_unchanged_text_never_takes_over_a_vector_of_zeros(
    vault: Vault, server: OllamaServer
) -> None:
    save_while_away(vault, server)
    (vault.lessons_dir / "brewery.md").rename(vault.lessons_dir / "beer.md")
    server.fault = ""
    reconcile.sync(vault)
    assert vectors(vault)["beer"]


def test_a_pass_that_only_adds_vectors_counts_as_a_write() -> None:
    assert Stats(unchanged=3, embedded=1).wrote  # so a watcher opens the tables again


def test_a_lesson_that_lacks_vectors_gets_them_while_it_is_broken(
    vault: Vault, server: OllamaServer
) -> None:
    server.fault = "broken"
    brewery = write(vault.lessons_dir / "brewery.md", NEW)
    reconcile.sync(vault)
    server.fault = ""
    brewery.write_text(f"{NEW[:10]}\ttitle: [\n{NEW[10:]}")
    assert reconcile.sync(vault).lacking == 0
    assert all(vectors(vault).values())
    server.inputs.clear()
    brewery.write_text(NEW)
    reconcile.sync(vault)
    assert server.inputs == []
    assert all(vectors(vault).values())
    assert len(vectors(vault)) == 3


@pytest.mark.parametrize(
    "step", [(LanceTable, "merge_arrow"), (Table, "replace"), (manifest, "save")]
)
@pytest.mark.parametrize("fault", ["broken", ""])
def test_a_kill_at_any_step_leaves_what_the_next_sync_completes(
    vault: Vault, server: OllamaServer, monkeypatch: pytest.MonkeyPatch, step: Any, fault: str
) -> None:
    """Both while rows are written by words, and while they get their vectors."""
    write(vault.lessons_dir / "brewery.md", NEW)
    server.fault = "broken"
    if not fault:
        reconcile.sync(vault)
        server.fault = ""
    holder, name = step
    real = getattr(holder, name)

    def killed(*args: Any, **named: Any) -> None:
        if name != "save":
            real(*args, **named)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(holder, name, killed)
        with pytest.raises(KeyboardInterrupt):
            reconcile.sync(vault)
    server.fault = ""
    again = open_vault(vault.root)
    assert reconcile.sync(again).lacking == 0
    assert all(vectors(again).values())
    assert len(vectors(again)) == 3


def test_a_setting_of_one_command_rebuilds_no_index(vault: Vault, own_world: Path) -> None:
    before = current(vault)
    for command in (("search", "raise the heap"), ("index",)):
        ran = run("lessons", *command, cwd=vault.root, env={"LESSONS_EMBEDDER": "none"})
        assert "LESSONS_EMBEDDER asks for none" in ran.err
        assert "lessons index --rebuild" in ran.err
    assert current(vault) == before
    assert all(vectors(vault).values())
    run("lessons", "index", "--rebuild", cwd=vault.root, env={"LESSONS_EMBEDDER": "none"})
    assert manifest.load(current(vault)).embedder == "none"


def sessions(journal: Journal) -> list[str]:
    rows = open_journal(journal).store.rows(("text",))
    return [row["text"] for row in rows]


def test_the_journal_takes_in_a_session_without_its_embedder(
    vault: Vault, server: OllamaServer
) -> None:
    at = "2026-11-20T14:01:00.000Z"
    journal = a_journal(vault.config.home)
    journal.config = vault.config
    keep(journal, "1" * 8, prompt("1" * 8, 1, "keep the query of the redirect", at))
    journal_index.sync(journal)
    server.fault = "broken"
    keep(journal, "2" * 8, prompt("2" * 8, 1, "retry the upload", at))
    stats = journal_index.sync(journal)
    assert (stats.added, stats.lacking) == (1, 1)
    assert "retry the upload" in sessions(journal)
    server.fault = ""
    assert journal_index.sync(journal).lacking == 0
    store = open_journal(journal).store
    assert all(vector.any() for vector in store.vectors(_hashes(store)).values())
    assert len(store.vectors(_hashes(store))) == len(_hashes(store))


def _hashes(store: Table) -> set[str]:
    return {row["content_hash"] for row in store.rows(("content_hash",))}


def test_a_command_that_wants_no_vectors_leaves_the_journal_its_own(
    vault: Vault, own_world: Path
) -> None:
    journal = a_journal(vault.config.home)
    journal.config = vault.config
    keep(journal, "1" * 8, prompt("1" * 8, 1, "keep the query", "2026-11-20T14:01:00.000Z"))
    journal_index.sync(journal)
    before = manifest.current(journal.index_dir)
    env = {"LESSONS_EMBEDDER": "none"}
    words = ("journal", "search", "--all-projects", "keep the query")
    ran = run("lessons", *words, cwd=vault.root, env=env)
    assert "LESSONS_EMBEDDER asks for none" in ran.err
    assert "lessons config set embedder" in ran.err
    assert "keep the query" in ran.out
    assert manifest.current(journal.index_dir) == before


def test_a_rebuild_that_would_lose_vectors_fails(vault: Vault, server: OllamaServer) -> None:
    server.fault = "broken"
    with pytest.raises(EmbedderError):
        reconcile.rebuild(vault)
    assert all(vectors(vault).values())


def test_a_setting_of_one_command_gives_an_index_no_vectors(
    make_vault: MakeVault, own_world: Path, server: OllamaServer
) -> None:
    """Nor does the next command take them away again."""
    write(own_world / "config.toml", 'embedder = "none"\n')
    vault = make_vault({"heap.md": lesson_text("Node heap", "Raise the heap of the build.")})
    reconcile.sync(vault)
    before = current(vault)
    env = {"LESSONS_EMBEDDER": "ollama", "LESSONS_OLLAMA_HOST": f"127.0.0.1:{server.port}"}
    for command in (("search", "raise the heap"), ("index",)):
        ran = run("lessons", *command, cwd=vault.root, env=env)
        assert "LESSONS_EMBEDDER asks for ollama/" in ran.err
    assert current(vault) == before
    write(own_world / "config.toml", 'embedder = "ollama"\n')
    ran = run("lessons", "index", cwd=vault.root, env={"OLLAMA_HOST": f"127.0.0.1:{server.port}"})
    assert "built from scratch" in ran.out
    assert manifest.load(current(vault)).embedder.startswith("ollama/")


def test_forgetting_needs_no_embedder(vault: Vault, server: OllamaServer) -> None:
    """Other sessions keep their vectors, also where none can be made."""
    at = "2026-11-20T14:01:00.000Z"
    journal = a_journal(vault.config.home)
    journal.config = vault.config
    keep(journal, "1" * 8, prompt("1" * 8, 1, "keep the query of the redirect", at))
    keep(journal, "2" * 8, prompt("2" * 8, 1, "retry the upload", at))
    journal_index.sync(journal)
    server.fault = "broken"
    asked = len(server.inputs)
    forget.forget(journal, session="2" * 8)
    assert sessions(journal) == ["keep the query of the redirect"]
    store = open_journal(journal).store
    assert len(store.vectors(_hashes(store))) == 1
    assert len(server.inputs) == asked
    server.fault = ""
    assert journal_index.sync(journal).lacking == 0
