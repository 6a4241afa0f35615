"""Lessons over HTTP as a program uses them: run twice, in bulk, whole, and with a word misspelt."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.embed.ollama_server import OllamaServer
from tests.support.commands import run
from tests.support.files import MakeVault, lesson_text
from tests.support.serving import Answering, answering
from vault_index.store import times

pytestmark = pytest.mark.slow

LONG = "Raise the heap.\n\n" + "Then look at the log of the build. " * 200


@pytest.fixture
def served(make_vault: MakeVault, own_world: Path, text_only: None) -> Iterator[Answering]:
    """A server without a watcher, of a vault with a long lesson."""
    root = make_vault({"devops/heap.md": lesson_text("Heap", LONG)}).root
    with answering(root, own_world, LESSONS_EMBEDDER="none") as server:
        yield server


def sent(server: Answering, method: str, path: str, status: int = 200, **json: Any) -> Any:
    """Return the answer to a request, which has a status."""
    answer = server.ask(method, path, json=json)
    assert answer.status_code == status, answer.text
    return answer.json()


def test_an_import_that_runs_twice_collects_no_errors(served: Answering) -> None:
    text = "Close the pool before a fork."
    record: dict[str, Any] = {"id": "db/pool", "text": text, "categories": ["db"]}
    assert sent(served, "POST", "/api/ingest", **record)["status"] == "ingested"
    record["text"] = "Close the pool after a fork."
    assert sent(served, "POST", "/api/ingest", **record)["status"] == "updated"
    bulk = sent(served, "POST", "/api/ingest/bulk", lessons=[record, record])
    assert [each["status"] for each in bulk["lessons"]] == ["updated", "updated"]
    whole = sent(served, "GET", "/api/lessons/db/pool")
    assert (whole["text"], whole["title"]) == (record["text"], "Close the pool after a fork")
    only_new = served.ask("POST", "/api/ingest", json=record, headers={"If-None-Match": "*"})
    assert only_new.status_code == 409


def test_health_says_since_when_the_model_is_away(make_vault: MakeVault, own_world: Path) -> None:
    root = make_vault({"devops/heap.md": lesson_text("Heap", LONG)}).root
    with contextlib.ExitStack() as stack:
        ollama = stack.enter_context(OllamaServer())
        (own_world / "config.toml").write_text(f'ollama_host = "{ollama.url}"\n')
        with answering(root, own_world, LESSONS_EMBEDDER="ollama") as server:
            assert sent(server, "GET", "/api/health")["status"] == "ok"
            stack.close()
            first = sent(server, "GET", "/api/health")
            assert (first["status"], first["model"]) == ("degraded", "none")
            assert first["reason"]
            assert sent(server, "GET", "/api/health")["since"] == first["since"]
            since = times.local(first["since"])
            page = server.ask("GET", "/page/vault/overview", token=False).text
            assert "Degraded since" in page
            assert f'title="{since}' in page
            env = {"LESSONS_EMBEDDER": "ollama"}
            said = run("lessons", "status", "--check", cwd=root, env=env, check=False)
            assert f"degraded since {since}: " in said.out + said.err
            hits = sent(server, "POST", "/api/query", prompt="raise the heap")
    assert hits["lessons"][0]["id"] == "devops/heap"


def test_the_source_that_a_client_sent_comes_back(make_vault: MakeVault, own_world: Path) -> None:
    vault = make_vault({"own.md": lesson_text("Own", "Zyzzyva of the vault itself.")})
    with answering(vault.root, own_world, LESSONS_EMBEDDER="none") as served:
        body = {"id": "ops/heap", "text": "Zyzzyva needs a heap.", "source_file": "wiki/ops.html"}
        served.ask("POST", "/api/ingest", json=body)
        shown = served.ask("GET", "/api/lessons/ops/heap").json()
        assert shown["source_file"] == "wiki/ops.html"
        asked = {"prompt": "zyzzyva", "min_score": None}
        found = served.ask("POST", "/api/query", json=asked).json()["lessons"]
        sources = {hit["id"]: hit["source_file"] for hit in found}
        assert sources == {"ops/heap": "wiki/ops.html", "own": "lessons/own.md"}
