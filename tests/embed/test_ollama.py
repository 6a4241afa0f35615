"""Embeddings from an Ollama server: a real HTTP server that answers, dawdles, refuses and breaks."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.embed.ollama_server import DIMENSION, OllamaServer, vector
from tests.support.commands import run
from tests.support.files import lesson_text, write
from vault_index.embed.ollama import OllamaEmbedder
from vault_index.errors import EmbedderError
from vault_index.vault import Vault


@pytest.fixture
def server() -> Iterator[OllamaServer]:
    with OllamaServer() as serving:
        yield serving


def embedder(
    server: OllamaServer, model: str = "nomic-embed-text", timeout: float = 30
) -> OllamaEmbedder:
    return OllamaEmbedder(model, f"127.0.0.1:{server.port}", timeout=timeout)


def test_unit_vectors_in_the_order_of_the_texts(server: OllamaServer) -> None:
    texts = [f"text number {n}" for n in range(70)]
    vectors = embedder(server, "other").embed_documents(texts)
    assert vectors.shape == (70, DIMENSION)
    assert vectors.dtype == np.float32
    expected = np.array([vector(text) for text in texts])
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(vectors, expected, rtol=1e-5)
    assert [len(texts) for texts in server.inputs if texts != ["dimension"]] == [32, 32, 6]


def test_queries_go_together_as_texts_do(server: OllamaServer) -> None:
    vectors = embedder(server).embed_queries([f"prompt {n}" for n in range(40)])
    assert vectors.shape == (40, DIMENSION)
    sent = [texts for texts in server.inputs if texts != ["dimension"]]
    assert list(map(len, sent)) == [32, 8]
    assert sent[0][0] == "search_query: prompt 0"


@pytest.mark.parametrize(
    ("fault", "said", "hint"),
    [
        ("missing", "not found", "ollama pull nomic-embed-text"),
        ("broken", "llama runner process has terminated", "ollama serve"),
        ("cut", "cannot be reached", "ollama serve"),
        ("few", "0 vectors for 1 texts", "embedding model"),
        ("page", ": <html>", "ollama serve"),
        ("list", "answered oddly", "OLLAMA_HOST"),
        ("garbage", "answered oddly", "OLLAMA_HOST"),
        ("endless", "larger than 8 MB", "OLLAMA_HOST"),
        ("packed", "answered oddly", "OLLAMA_HOST"),
        ("nan", "not made of numbers", "another model"),
    ],
)
def test_every_fault_is_one_line_that_says_what_to_do(
    server: OllamaServer, fault: str, said: str, hint: str
) -> None:
    server.fault = fault
    with pytest.raises(EmbedderError) as caught:
        embedder(server).embed_queries(["text"])
    assert said in caught.value.message
    assert hint in caught.value.hint
    assert "\n" not in caught.value.message + caught.value.hint


@pytest.mark.slow
def test_a_server_that_dawdles_is_given_up(server: OllamaServer) -> None:
    server.delay = 1
    with pytest.raises(EmbedderError, match=r"did not answer in 0\.5 s") as caught:
        embedder(server, timeout=0.5).embed_queries(["text"])
    assert caught.value.hint


def test_no_redirect_is_followed_with_a_text(server: OllamaServer) -> None:
    with OllamaServer() as other:
        server.fault, server.elsewhere = "elsewhere", other.url
        with pytest.raises(EmbedderError, match="leads elsewhere, where no text is sent"):
            embedder(server).embed_queries(["text"])
        assert not other.inputs


def test_no_key_goes_in_the_clear_to_another_machine(
    server: OllamaServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OLLAMA_API_KEY", "made-up-for-this-test")
    monkeypatch.setenv("HTTP_PROXY", server.url)
    for host in ("http://ollama.example", f"127.0.0.1:{server.port}"):
        OllamaEmbedder("all-minilm", host).embed_queries(["text"])
    assert server.keys == [None, None, *["Bearer made-up-for-this-test"] * 2]


def test_another_dimension_than_before_is_refused(server: OllamaServer) -> None:
    asked = embedder(server)
    assert asked.dimension == DIMENSION
    server.fault = "dimension"
    with pytest.raises(EmbedderError, match="changed its dimension from 8 to") as caught:
        asked.embed_queries(["text"])
    assert "--rebuild" in caught.value.hint


@pytest.mark.parametrize(
    "host", ["\x01", "127.0.0.1:99999", "127.0.0.1:port", "http://ada:s3cret@[half"]
)
def test_a_host_that_is_none(host: str) -> None:
    with pytest.raises(EmbedderError) as caught:
        OllamaEmbedder("all-minilm", host).embed_queries(["text"])
    assert "OLLAMA_HOST" in caught.value.hint
    assert "\n" not in caught.value.message
    assert "s3cret" not in caught.value.message


def test_nobody_there() -> None:
    with pytest.raises(EmbedderError, match="cannot be reached") as caught:
        OllamaEmbedder("all-minilm", "127.0.0.1:9").embed_queries(["text"])
    assert "ollama serve" in caught.value.hint


def test_its_address_is_repeated_without_the_key_in_it(team: Path) -> None:
    env = {"OLLAMA_HOST": "http://ada:s3cret@127.0.0.1:9/?key=s3cret"}
    write(Path(os.environ["LESSONS_HOME"], "config.toml"), f'embedder = "ollama"\n{URL}')
    for words in (("index",), ("search", "heap"), ("config",), ("config", "--json"), ("status",)):
        done = run("lessons", *words, cwd=team, env=env, check=False)
        assert "s3cret" not in done.out + done.err
    said = run("lessons", "config", "set", "llm.openai_url", "https://a:s3cret@b.c/v1", cwd=team)
    assert said.out.endswith('llm.openai_url = "https://…@b.c/v1"\n')


URL = '[llm]\nopenai_url = "https://ada:s3cret@models.example/v1"\n'


@pytest.fixture
def team(make_vault: Callable[..., Vault], own_world: Path, server: OllamaServer) -> Path:
    """A vault whose user chose Ollama."""
    files = {
        "devops/heap.md": lesson_text("Node heap", "Raise the heap of the build."),
        "conventions/dates.md": lesson_text("Dates", "Store dates in UTC."),
    }
    root = make_vault(files).root
    write(own_world / "config.toml", 'embedder = "ollama"\n')
    return root


@pytest.mark.slow
def test_a_server_that_went_away_leaves_full_text(team: Path, server: OllamaServer) -> None:
    run("lessons", "index", cwd=team, env={"OLLAMA_HOST": f"127.0.0.1:{server.port}"})
    gone = {"OLLAMA_HOST": "127.0.0.1:9"}
    found = run("lessons", "search", "raise the heap", cwd=team, env=gone)
    assert "Node heap" in found.out
    assert "full text only: Ollama at 127.0.0.1:9 cannot be reached" in found.err
    write(team / "lessons" / "new.md", lesson_text("New", "Drain the queue of the brewery."))
    indexed = run("lessons", "index", cwd=team, env=gone)
    assert "full text only: Ollama at 127.0.0.1:9 cannot be reached" in indexed.err
    assert "Node heap" in run("lessons", "search", "raise the heap", cwd=team, env=gone).out
    assert "New" in run("lessons", "search", "drain the brewery", cwd=team, env=gone).out
    rebuilt = run("lessons", "index", "--rebuild", cwd=team, env=gone, check=False)
    # one line of what happened, one of what to do
    assert [line.partition(":")[0] for line in rebuilt.err.splitlines()] == ["Error", "Try"]


@pytest.fixture
def shop(
    make_vault: Callable[..., Vault], server: OllamaServer, monkeypatch: pytest.MonkeyPatch
) -> Vault:
    monkeypatch.setenv("LESSONS_EMBEDDER", "ollama")
    monkeypatch.setenv("OLLAMA_HOST", f"127.0.0.1:{server.port}")
    shelves = "Shelf seven has the flour and shelf eight the salt of the bakery. " * 60
    return make_vault({
        "shop/alarm.md": lesson_text("The alarm of the cold room", "It rings when the door is open."),
        "shop/shelves.md": lesson_text("Where the shelves are", shelves),
    })  # fmt: skip


@pytest.mark.slow
def test_the_lesson_of_a_refused_text_is_named_and_the_others_get_vectors(
    shop: Vault, server: OllamaServer
) -> None:  # P15
    server.fault = "long"
    ran = run("lessons", "index", cwd=shop.root)
    assert "lessons/shop/shelves.md" in ran.out
    assert "first part alone" in ran.out
    assert "alarm.md" not in ran.out
    assert shop.open_index().embedder.startswith("ollama/")
    assert "cold room" in run("lessons", "search", "alarm of the cold room", cwd=shop.root).out
