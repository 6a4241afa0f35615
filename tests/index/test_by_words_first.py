"""Many new lessons are found by their words at once, and get their vectors later. Issue 56, item 9."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.embed.ollama_server import OllamaServer
from tests.support.commands import run
from tests.support.embedders import WordEmbedder
from tests.support.files import MakeVault, lesson_text, write
from tests.support.indexed import assert_same_as_a_rebuild, killed_at, with_words
from tests.support.serving import answering
from tests.support.watchers import soon, watched
from vault_index import embed, files, publish
from vault_index.api import search
from vault_index.entrypoints.hook import fallback
from vault_index.errors import EmbedderError
from vault_index.features import IndexTable
from vault_index.index import reconcile
from vault_index.retrieval import above, entries, query
from vault_index.retrieval.hit import Query
from vault_index.store import completing, manifest, ownership
from vault_index.store.lance import Table
from vault_index.store.schema import DOCUMENTS
from vault_index.store.sync import MANY
from vault_index.vault import Vault, open_vault
from vault_index.watch import background_index
from vault_index.watch.current import take_in_above

pytestmark = pytest.mark.slow

LESSONS = MANY + 40


def some_lessons(count: int = LESSONS) -> dict[str, str]:
    return {
        f"{at:03}.md": lesson_text(f"Kettle {at}", f"Descale number{at} twice a week.")
        for at in range(count)
    }


@pytest.fixture
def vault(make_vault: MakeVault) -> Vault:
    """A vault without an index, of more passages than a sync waits for."""
    return make_vault(some_lessons(), words=True)


def passages(embedder: WordEmbedder) -> list[str]:
    return [text for text in embedder.documents if text.startswith("Descale")]


def current(vault: Vault) -> Path:
    index = manifest.current(vault.index_dir)
    assert index is not None
    return index


def test_a_first_index_answers_by_words_before_anything_is_embedded(vault: Vault) -> None:
    embedder = with_words(vault)
    stats = reconcile.sync(vault, completes=False)
    assert (stats.added, stats.embedded, stats.lacking) == (LESSONS, 0, LESSONS)
    assert passages(embedder) == []
    assert [hit.lesson_id for hit in query.find(vault, "descale number7", 1)] == ["007"]
    results = query.run(vault, Query("descale number7", 1))
    assert results.text_only == f"the vectors of {LESSONS} of {LESSONS} files are still to be made"


def test_what_is_made_later_is_what_would_have_been_made_at_once(vault: Vault) -> None:
    steps: list[tuple[int, int]] = []
    first = reconcile.sync(vault, completes=False)
    index = current(vault)
    done = reconcile.complete(vault, lambda made, every: steps.append((made, every)))
    assert (done.embedded, done.lacking, done.why) == (first.lacking, 0, "")
    assert steps[-1] == (LESSONS, LESSONS)
    assert current(vault) == index
    assert vault.open_index().unmade == ""
    assert not query.run(vault, Query("descale number7", 1)).text_only
    assert not reconcile.sync(vault).wrote
    assert_same_as_a_rebuild(vault)


def test_the_vectors_of_more_categories_than_a_sync_waits_for_are_made_in_the_end(
    make_vault: MakeVault,
) -> None:
    lessons = {f"kettle{name}": text for name, text in some_lessons().items()}
    vault = make_vault(
        {name.replace(".", "/a."): text for name, text in lessons.items()}, words=True
    )
    with_words(vault)
    reconcile.sync(vault)
    assert "places" in manifest.load(current(vault), manifest.SCHEMA).derived
    assert Table(current(vault), WordEmbedder().dimension, DOCUMENTS).has_all_vectors()
    before = manifest.version(current(vault))
    assert not reconcile.sync(vault).wrote
    assert (
        manifest.version(current(vault)) == before
    )  # nothing is owed, so nobody waits for the lock


def test_one_command_does_both_and_counts_what_it_embedded(vault: Vault) -> None:
    ends: list[float] = []
    began = time.monotonic()
    stats = reconcile.sync(
        vault, progress_of_vectors=lambda _done, _all: ends.append(time.monotonic() - began)
    )
    assert (stats.added, stats.embedded, stats.lacking) == (LESSONS, LESSONS, 0)
    assert stats.seconds >= ends[-1]  # of all it did


class StoppedEmbedder(WordEmbedder):
    """Stops at the second batch of passages, as by Ctrl-C or a kill."""

    def embed_documents(self, texts: Sequence[str]) -> np.ndarray:
        if passages(self):
            raise KeyboardInterrupt
        return super().embed_documents(texts)


@pytest.mark.parametrize("at", ["a batch", "the rows", "the manifest"])
def test_a_kill_at_any_step_leaves_what_the_next_pass_completes(
    make_vault: MakeVault, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    monkeypatch.setattr(completing, "BATCH", LESSONS // 3)
    vault = make_vault(some_lessons(), words=True)
    stopped = with_words(vault, StoppedEmbedder() if at == "a batch" else None)
    reconcile.sync(vault, completes=False)

    with killed_at(monkeypatch, at):
        reconcile.complete(vault)
    again = open_vault(vault.root)
    going_on = with_words(again)
    assert reconcile.sync(again).lacking == 0
    assert not set(passages(stopped)) & set(passages(going_on))  # what was made is kept
    assert_same_as_a_rebuild(again)


class SavingEmbedder(WordEmbedder):
    """Has a lesson saved and indexed while it embeds the passages of others."""

    def __init__(self, vault: Vault) -> None:
        super().__init__()
        self.vault = open_vault(vault.root)
        with_words(self.vault)
        self.busy: list[bool] = []

    def embed_documents(self, texts: Sequence[str]) -> np.ndarray:
        if not self.busy and len(texts) > MANY:
            write(self.vault.lessons_dir / "new.md", lesson_text("Brewery", "Drain the queue."))
            write(self.vault.lessons_dir / "007.md", lesson_text("Kettle 7", "Boil it dry."))
            self.busy.append(reconcile.at_once(self.vault, full=False).busy)
            assert [hit.lesson_id for hit in query.find(self.vault, "drain the queue", 1)] == [
                "new"
            ]
        return super().embed_documents(texts)


def test_a_save_is_taken_in_while_vectors_are_made(
    vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "RACY_NS", 0)  # what was saved just now is not looked at again
    reconcile.sync(vault, completes=False)
    saving = SavingEmbedder(vault)
    with_words(vault, saving)
    assert reconcile.complete(vault).lacking == 0
    assert saving.busy == [False]
    assert [hit.lesson_id for hit in query.find(vault, "boil it dry", 1)] == ["007"]
    assert_same_as_a_rebuild(vault)


def index_command_says(vault: Vault) -> str:
    """Return the last line of `lessons index` on stderr, with the embedder of the vault."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(embed, "open_embedder", lambda _config: vault.embedder)
        return run("lessons", "index", cwd=vault.root).err.splitlines()[-1]


def test_two_processes_do_not_make_the_same_vectors(vault: Vault) -> None:
    reconcile.sync(vault, completes=False)
    with ownership.held(vault.index_dir, wait=False, name=completing.LOCK):
        assert completing.is_running(vault.index_dir)
        assert reconcile.complete(vault).busy
        assert reconcile.sync(vault).lacking == LESSONS  # whoever asks is not held up
        assert index_command_says(vault) == (
            f"note: another process makes the vectors of {LESSONS} files; words find them now"
        )
    assert reconcile.sync(vault).lacking == 0


def test_a_pull_and_a_book_are_found_by_words_first(make_vault: MakeVault) -> None:
    vault = make_vault({"one.md": lesson_text("One", "Tea.")}, words=True, indexed=True)
    book = "\n\n".join(f"Paragraph {at} of zyzzyva{at}. " * 30 for at in range(2 * MANY))
    write(vault.lessons_dir / "book.md", lesson_text("Book", book))
    stats = reconcile.at_once(vault, full=True)
    assert (stats.added, stats.lacking, stats.pending) == (1, 1, 0)
    assert [hit.lesson_id for hit in query.find(vault, "zyzzyva7", 1)] == ["book"]
    assert reconcile.sync(vault).lacking == 0


def test_a_few_lessons_are_embedded_at_once(make_vault: MakeVault) -> None:
    vault = make_vault(some_lessons(5), words=True)
    assert reconcile.sync(vault, completes=False).lacking == 0


def test_lessons_like_one_are_told_by_words_while_it_has_no_vector(vault: Vault) -> None:
    reconcile.sync(vault, completes=False)
    entry = next(each for each in entries.entries(vault) if each.id == "007")
    assert {like.likeness for like in query.nearest(vault, entry, 3)} == {None}


def test_publishing_waits_for_all_vectors(vault: Vault, tmp_path: Path) -> None:
    reconcile.sync(vault, completes=False)
    vault.config = vault.config.with_tables(IndexTable(shared=str(tmp_path)))
    with pytest.raises(EmbedderError, match="still to be made"):
        publish.publish(vault, lambda: None, lambda _label: lambda _done, _of: None, "")
    assert list(tmp_path.glob("*.lance")) == []


def test_a_search_says_that_vectors_are_still_made_and_has_them_made(
    make_vault: MakeVault, with_model: Path
) -> None:
    vault = make_vault(some_lessons())
    found = run("lessons", "search", "descale number7", cwd=vault.root)
    assert "note: full text only: the vectors of" in found.err
    assert "lessons/007.md" in found.out
    soon(lambda: not vault.open_index().lacking)
    assert "note" not in run("lessons", "search", "descale number7", cwd=vault.root).err


def test_status_says_that_vectors_are_still_to_be_made(vault: Vault) -> None:
    reconcile.sync(vault, completes=False)
    lines = run("lessons", "status", cwd=vault.root).out
    assert f"vectors    still to be made for {LESSONS} of {LESSONS} files" in lines


def test_a_vault_that_is_being_completed_is_not_called_degraded(vault: Vault) -> None:
    """Issue 56: `health` did, though nothing was wrong."""
    reconcile.sync(vault, completes=False)
    health = search.health().answer(vault)
    assert (health.lacking, health.degraded_since) == (LESSONS, "")
    with_words(vault, AwayEmbedder())
    away = search.health().answer(vault)
    assert away.degraded_since
    assert away.searched.text_only == "the server went away"


class AwayEmbedder(WordEmbedder):
    def embed_queries(self, _texts: Sequence[str]) -> np.ndarray:
        raise EmbedderError("the server went away", "start it again")


def test_the_routes_and_the_page_say_how_many_files_lack_vectors(
    make_vault: MakeVault, own_world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background_index, "start_index", lambda _vault: None)
    root = make_vault(some_lessons()).root
    with contextlib.ExitStack() as stack:
        ollama = stack.enter_context(OllamaServer())
        write(own_world / "config.toml", f'ollama_host = "{ollama.url}"\n')
        served = stack.enter_context(answering(root, own_world, LESSONS_EMBEDDER="ollama"))
        health = served.ask("GET", "/api/health").json()
        assert (health["status"], health["lacking"]) == ("completing", LESSONS)
        assert health["reason"].startswith(f"the vectors of {LESSONS} of {LESSONS} files")
        assert "Being completed: " in served.ask("GET", "/page/vault/overview", token=False).text
        status = run("lessons", "status", cwd=root, env={"LESSONS_EMBEDDER": "ollama"})
        assert "degraded" not in status.out + status.err
        found = run(
            "lessons", "search", "--json", "kettle", cwd=root, env={"LESSONS_EMBEDDER": "ollama"}
        )
        assert found.json["text_only"] == health["reason"]


def test_a_watcher_answers_by_words_and_completes(make_vault: MakeVault, with_model: Path) -> None:
    vault = make_vault(some_lessons())
    with watched(vault):
        soon(lambda: manifest.current(vault.index_dir))
        assert [hit.lesson_id for hit in query.find(vault, "descale number7", 1)] == ["007"]
        soon(lambda: not vault.open_index().lacking)


def test_a_vault_above_that_lacks_vectors_is_completed(
    vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kill may have kept its own index from it."""
    started: list[Vault] = []
    monkeypatch.setattr(files, "RACY_NS", 0)
    reconcile.sync(vault, completes=False)
    monkeypatch.setattr(above, "opened", lambda _vault: [(None, vault)])
    monkeypatch.setattr(background_index, "start_index", started.append)
    take_in_above(vault)
    assert started == [vault]


def test_a_prompt_without_a_watcher_has_vectors_made(
    vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[Vault] = []
    monkeypatch.setenv("LESSONS_WATCH_AUTOSTART", "false")
    monkeypatch.setattr(files, "RACY_NS", 0)
    monkeypatch.setattr(background_index, "start_index", started.append)
    asked = open_vault(vault.root)
    with_words(asked)
    reconcile.sync(asked, completes=False)
    assert fallback._bring_up_to_date(asked, 0.0)
    assert started == [asked]


@pytest.fixture
def server() -> Any:
    with OllamaServer() as serving:
        yield serving


def test_a_save_never_waits_for_a_server_that_hangs(
    make_vault: MakeVault, own_world: Path, server: OllamaServer
) -> None:
    root = make_vault({"heap.md": lesson_text("Node heap", "Raise the heap.")}).root
    host = f"127.0.0.1:{server.port}"
    write(own_world / "config.toml", f'embedder = "ollama"\nollama_host = "{host}"\n')
    vault = open_vault(root)
    reconcile.sync(vault)
    asked = len(server.inputs)
    server.delay = 120.0
    write(vault.lessons_dir / "brewery.md", lesson_text("Brewery", "Drain the queue."))
    for full in (False, True):
        assert reconcile.at_once(vault, full=full).lacking == 1
    assert len(server.inputs) == asked
    assert vault.open_index().lessons == 2


def test_a_first_index_without_its_server_is_built_once(
    make_vault: MakeVault, own_world: Path, server: OllamaServer
) -> None:
    """And again when the server is back, with vectors."""
    root = make_vault({"heap.md": lesson_text("Node heap", "Raise the heap.")}).root
    host = f"127.0.0.1:{server.port}"
    write(own_world / "config.toml", f'embedder = "ollama"\nollama_host = "{host}"\n')
    server.fault = "broken"
    vault = open_vault(root)
    reconcile.sync(vault)
    first = current(vault)
    for full in (False, True):
        stats = reconcile.at_once(vault, full=full)
        assert (stats.pending, stats.unbuilt, stats.lacking) == (0, "", 1)
    done = reconcile.complete(vault)
    assert not done.unbuilt
    assert "llama runner process has terminated" in done.why
    assert current(vault) == first
    server.fault = ""
    again = open_vault(root)
    assert reconcile.complete(again).unbuilt
    with watched(again):
        soon(lambda: manifest.load(current(vault)).embedder.startswith("ollama/"))
