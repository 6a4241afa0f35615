"""Vectors that a team shares: published once, taken by laptops, and never believed."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import httpx
import numpy as np
import pytest

from tests.publish.object_store import URI, ObjectStore, environ_of, object_store
from tests.store.tables import connect
from tests.support.amounts import amount
from tests.support.commands import BIN, run
from tests.support.embedders import WordEmbedder
from tests.support.files import lesson_text, write
from tests.support.indexed import with_words
from tests.support.watchers import soon, watched
from vault_index import publish
from vault_index.api import silent
from vault_index.edit import init
from vault_index.errors import SettingsError, StoreError, VaultError
from vault_index.features import IndexTable
from vault_index.index import reconcile
from vault_index.publish import vectors as vectors_module
from vault_index.publish.vectors import SharedVectors, make_once, table_name
from vault_index.retrieval import query
from vault_index.retrieval.hit import Query
from vault_index.store.lance import Remote, Table
from vault_index.store.schema import RECIPE
from vault_index.store.sync import Progress
from vault_index.vault import Vault, open_vault

WORDS = "heap lock pipe cache queue token index merge branch deploy".split()


def texts(count: int, first: int = 0) -> dict[str, str]:
    return {
        f"topic/lesson-{n}.md": lesson_text(
            f"Lesson {n}",
            f"The {WORDS[n % 10]} of service {n} wants {WORDS[n // 10 % 10]} {n * 7}.",
        )
        for n in range(first, first + count)
    }


def filled(root: Path, lessons: Mapping[str, str]) -> Path:
    """Make a vault of lessons by the command; return its root."""
    run("lessons", "init", root, cwd=root.parent)
    for path, text in lessons.items():
        write(root / "lessons" / path, text)
    return root


def vault_at(root: Path, lessons: Mapping[str, str], uri: str | Path) -> Vault:
    if not (root / "lessons").exists():
        init(root)
    for path, text in lessons.items():
        write(root / "lessons" / path, text)
    home = root.parent / f"home-of-{root.name}"
    home.mkdir(exist_ok=True)
    vault = open_vault(
        root, environ={**os.environ, "LESSONS_HOME": str(home), "LESSONS_INDEX_SHARED": str(uri)}
    )
    with_words(vault)
    return vault


def embedded(vault: Vault) -> list[str]:
    embedder = vault.embedder
    assert isinstance(embedder, WordEmbedder)
    return embedder.documents


def publish_all(vault: Vault, progress: Progress = silent) -> publish.Published:
    return publish.publish(vault, lambda: reconcile.sync(vault), lambda _what: progress, "")


def vectors_of(vault: Vault) -> dict[str, np.ndarray]:
    there, matrix = vault.open_index().store.rows_and_vectors(("id",))
    assert matrix is not None
    return {row["id"]: vector for row, vector in zip(there, matrix, strict=True)}


@pytest.fixture(scope="module")
def store() -> Iterator[ObjectStore]:
    with object_store() as running:
        yield running


def at(store: ObjectStore, patch: pytest.MonkeyPatch, place: str) -> str:
    """Return an address of its own in the store, with the environment set to reach it."""
    for name, value in store.env.items():
        patch.setenv(name, value)
    return f"{URI}/{place}"


@pytest.mark.slow
def test_only_what_nobody_published_is_embedded(tmp_path: Path) -> None:
    publish_all(vault_at(tmp_path / "ci", texts(40), tmp_path / "shared"))
    laptop = vault_at(tmp_path / "laptop", texts(45), tmp_path / "shared")
    stats = reconcile.sync(laptop)
    assert (stats.taken, stats.embedded) == (40, 5)
    done = publish_all(laptop)
    assert (done.uri, done.added, done.vectors) == (str(tmp_path / "shared"), 5, 45)


@pytest.mark.slow
@pytest.mark.parametrize("table", ["vectors", "lessons"])
@pytest.mark.parametrize("size", [0, 50])
def test_published_files_that_were_cut_are_noticed(tmp_path: Path, table: str, size: int) -> None:
    """The number of rows is in another file, so `status --check` said nothing."""
    vault = vault_at(tmp_path / "ci", texts(40), tmp_path / "shared")
    publish_all(vault)
    assert [*publish.troubles(vault)] == []
    (folder,) = (tmp_path / "shared").glob(f"*{table}*.lance")
    for file in (folder / "data").iterdir():
        os.truncate(file, size)
    (trouble,) = publish.troubles(vault)
    assert trouble.what.startswith(f"{tmp_path / 'shared'}: a file there is cut, damaged or gone: ")
    assert trouble.fix.startswith("remove the tables there")


def test_rows_are_marked_with_the_path_of_the_remote(tmp_path: Path) -> None:
    vault = vault_at(tmp_path / "laptop", texts(1), "")
    run("git", "remote", "add", "origin", "git@git.example:mill/lessons.git", cwd=vault.root)
    assert publish.name_of(vault) == "mill/lessons"


@pytest.mark.slow
def test_a_hook_and_a_rebuild_ask_nobody(tmp_path: Path) -> None:
    publish_all(vault_at(tmp_path / "ci", texts(40), tmp_path / "shared"))
    laptop = vault_at(tmp_path / "laptop", texts(40), tmp_path / "shared")
    assert reconcile.at_once(laptop, full=True).taken == 0
    assert reconcile.rebuild(laptop).taken == 0


@pytest.mark.slow
def test_without_a_place_or_a_network_nothing_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    laptop = vault_at(tmp_path / "laptop", texts(40), tmp_path / "nowhere")
    stats = reconcile.sync(laptop)
    assert (stats.taken, stats.embedded) == (0, 40)
    assert "nothing is published there" in stats.shared
    assert not (tmp_path / "nowhere").exists()
    for name, value in environ_of(9).items():
        monkeypatch.setenv(name, value)
    away = vault_at(tmp_path / "away", texts(40), URI)
    stats = reconcile.sync(away)
    assert (stats.taken, stats.embedded, stats.shared) == (0, 40, f"{URI}: not reached")


def poison(uri: Path, recipe: str, id: str, column: str, value: object) -> None:
    table = connect(uri).open_table(table_name(recipe))
    table.update(where=f"id = '{id}'", values={column: value})


@pytest.mark.parametrize(
    ("column", "value", "reason"),
    [
        ("vector", [2.0] + [0.0] * 63, "its length is 2"),
        ("vector", [0.0] * 64, "its length is 0"),
        ("embedder", "another", "it is of the embedder 'another'"),
    ],
)
@pytest.mark.slow
def test_a_poisoned_row_is_refused_and_named(
    tmp_path: Path, column: str, value: object, reason: str
) -> None:
    lessons, uri = texts(40), tmp_path / "shared"
    publisher = vault_at(tmp_path / "ci", lessons, uri)
    publish_all(publisher)
    where = "lesson_id = 'topic/lesson-3'"
    (row,) = publisher.open_index().store.rows(("content_hash",), where)
    poison(uri, f"words {RECIPE}", row["content_hash"], column, value)
    laptop = vault_at(tmp_path / "laptop", lessons, uri)
    stats = reconcile.sync(laptop)
    assert (stats.taken, stats.embedded) == (39, 1)
    assert stats.shared == f"{uri}: refused row {row['content_hash']}: {reason}"
    assert (
        vectors_of(laptop)["topic/lesson-3@0"] == vectors_of(publisher)["topic/lesson-3@0"]
    ).all()


@pytest.mark.slow
def test_vectors_of_other_texts_are_refused(tmp_path: Path) -> None:
    lessons, uri = texts(40), tmp_path / "shared"
    publish_all(vault_at(tmp_path / "ci", lessons, uri))
    table = connect(uri).open_table(table_name(f"words {RECIPE}"))
    table.update(values={"vector": [1.0] + [0.0] * 63})  # unit vectors, of no text here
    stats = reconcile.sync(vault_at(tmp_path / "laptop", lessons, uri))
    assert (stats.taken, stats.embedded) == (0, 40)
    assert "it is not the vector of its text" in stats.shared


POEM = "please write a poem about the sea"


def poisoned(uri: Path, publisher: Vault) -> None:
    """Give one lesson the vector of a prompt, so that it would come there."""
    assert publisher.embedder is not None
    (row,) = publisher.open_index().store.rows(("content_hash",), "lesson_id = 'topic/lesson-7'")
    recipe, vector = (
        f"{publisher.embedder.name} {RECIPE}",
        publisher.embedder.embed_queries([POEM])[0],
    )
    poison(uri, recipe, row["content_hash"], "vector", vector.tolist())


def taken_poisoned(tmp_path: Path, patch: pytest.MonkeyPatch) -> tuple[Vault, Vault]:
    """Return who published 120 lessons, and a laptop that took them with the one wrong vector."""
    patch.setattr(vectors_module, "PROBES", 0)  # of 120 vectors 8 are compared at once
    lessons, uri = texts(120), tmp_path / "shared"
    publisher = vault_at(tmp_path / "ci", lessons, uri)
    publish_all(publisher)
    poisoned(uri, publisher)
    laptop = vault_at(tmp_path / "laptop", lessons, uri)
    assert reconcile.sync(laptop).taken == 120
    assert first_for(laptop, POEM) == "topic/lesson-7"
    return publisher, laptop


def first_for(vault: Vault, prompt: str) -> str:
    return query.run(vault, Query(prompt)).hits[0].lesson_id


@pytest.mark.slow
def test_one_wrong_vector_of_120_is_found_mended_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The attack of somebody who may write to the bucket: an accepted lesson comes at a prompt."""
    uri = tmp_path / "shared"
    publisher, laptop = taken_poisoned(tmp_path, monkeypatch)
    assert publish.state(laptop) == publish.VectorsStatus(120)
    turns = 1
    while publish.compare_some(vault_at(tmp_path / "laptop", {}, uri)):  # each a new process
        turns += 1
    assert turns == 4
    assert first_for(laptop, POEM) != "topic/lesson-7"
    ours, theirs = vectors_of(publisher), vectors_of(laptop)
    assert all((ours[id] == theirs[id]).all() for id in ours)
    assert publish.state(laptop) == publish.VectorsStatus()
    (trouble,) = publish.troubles(laptop)
    assert "it is not the vector of its text" in trouble.what
    connect(uri).drop_table(table_name(f"words {RECIPE}"))
    publish_all(publisher)
    assert not list(publish.troubles(laptop)), "the publisher corrected it"


@pytest.mark.slow
def test_no_other_vault_of_the_user_believes_a_vector_that_was_not_compared(tmp_path: Path) -> None:
    publish_all(vault_at(tmp_path / "ci", texts(40), tmp_path / "shared"))
    laptop = vault_at(tmp_path / "laptop", texts(40), tmp_path / "shared")
    assert reconcile.sync(laptop).taken == 40
    before, after = (vault_at(tmp_path / name, texts(40), "") for name in ("before", "after"))
    for vault in (before, after):
        vault.config = replace(vault.config, home=laptop.config.home)
    assert reconcile.sync(before).embedded == 40
    (laptop.config.home / "vectors.sqlite3").unlink()
    while publish.compare_some(laptop):
        pass
    assert reconcile.sync(after).embedded == 0


@pytest.mark.slow
def test_a_rebuild_believes_no_vector_of_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, laptop = taken_poisoned(tmp_path, monkeypatch)
    reconcile.rebuild(laptop)
    assert first_for(laptop, POEM) != "topic/lesson-7"
    assert publish.state(laptop) == publish.VectorsStatus()


@pytest.mark.slow
@pytest.mark.no_arithmetic
def test_a_quiet_watcher_compares_what_was_taken(
    tmp_path: Path, with_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors_module, "PROBES", 0)
    lessons, uri = texts(40), tmp_path / "shared"
    monkeypatch.setenv("LESSONS_INDEX_SHARED", str(uri))
    publisher, laptop = (open_vault(filled(tmp_path / name, lessons)) for name in ("ci", "laptop"))
    publish_all(publisher)
    poisoned(uri, publisher)
    (with_model / "vectors.sqlite3").unlink()  # of this user, who is both
    assert reconcile.sync(laptop).taken == 40
    assert "40 vectors are not compared yet" in run("lessons", "status", cwd=laptop.root).out
    right = vectors_of(publisher)["topic/lesson-7@0"]
    with watched(laptop):
        soon(lambda: float(vectors_of(laptop)["topic/lesson-7@0"] @ right) > 0.99)
        soon(lambda: "not compared" not in run("lessons", "status", cwd=laptop.root).out)
    checked = run("lessons", "status", "--check", cwd=laptop.root, check=False).out
    assert "it is not the vector of its text" in checked


@pytest.mark.slow
def test_an_embedder_sees_only_its_own_vectors(tmp_path: Path) -> None:
    lessons, uri = texts(40), tmp_path / "shared"
    publish_all(vault_at(tmp_path / "ci", lessons, uri))
    laptop = vault_at(tmp_path / "laptop", lessons, uri)
    with_words(laptop, WordEmbedder("other words", 32))
    assert reconcile.sync(laptop).taken == 0


@pytest.mark.parametrize(
    "wrong", ["s3://user:key@bucket/x", "s3://bucket?token=1", "relative/path", "db://x", "s3://"]
)
def test_an_address_holds_no_secret(tmp_path: Path, wrong: str) -> None:
    with pytest.raises(SettingsError):
        vault_at(tmp_path / "vault", {}, wrong)


def test_a_vault_cannot_choose_a_bucket(tmp_path: Path) -> None:
    vault_at(tmp_path / "vault", {}, "")
    file = tmp_path / "vault" / "lessons" / "vault.toml"
    file.write_text('[index]\nshared = "s3://theirs/x"\n')
    vault = open_vault(tmp_path / "vault")
    assert vault.config[IndexTable].shared == ""
    assert any("index.shared" in str(each) for each in vault.config.unknown_keys)


# against a server of S3


@pytest.mark.slow
def test_two_publishers_at_once_make_no_duplicate(
    tmp_path: Path, store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = at(store, monkeypatch, "two")
    vaults = [vault_at(tmp_path / f"ci-{n}", texts(60, 20 * n), uri) for n in range(2)]
    for vault in vaults:
        reconcile.sync(vault)
    errors: list[VaultError] = []

    def work(vault: Vault) -> None:
        try:
            publish_all(vault)
        except VaultError as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(vault,)) for vault in vaults]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    shared = SharedVectors(uri, f"words {RECIPE}", 64, tmp_path)
    assert shared.count() == 80
    laptops = [vault_at(tmp_path / f"laptop-{n}", texts(80), uri) for n in range(amount(3, 20))]
    before, bytes_before = store.requests, store.bytes_read
    with ThreadPoolExecutor(len(laptops)) as pool:
        every = [*pool.map(reconcile.sync, laptops)]
    assert {(stats.taken, stats.embedded, stats.shared) for stats in every} == {(80, 0, "")}
    requests, size = store.requests - before, store.bytes_read - bytes_before
    assert requests <= 20 * len(laptops)
    assert size <= 200_000 * len(laptops)


@pytest.mark.slow
def test_a_wrong_key_and_a_cut_connection_are_a_line(
    tmp_path: Path, store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = at(store, monkeypatch, "cut")
    publish_all(vault_at(tmp_path / "ci", texts(40), uri))
    store.is_cut = True
    try:
        stats = reconcile.sync(vault_at(tmp_path / "laptop", texts(40), uri))
    finally:
        store.is_cut = False
    assert (stats.taken, stats.embedded) == (0, 40)
    assert stats.shared in (f"{uri}: the connection was cut", f"{uri}: not reached")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "somebody-else")
    stats = reconcile.sync(vault_at(tmp_path / "other", texts(40), uri))
    assert (stats.taken, stats.embedded, stats.shared) == (0, 40, f"{uri}: access denied")
    with pytest.raises(StoreError, match="access denied"):
        publish_all(vault_at(tmp_path / "ci", texts(41), uri))


@pytest.mark.slow
def test_a_killed_publisher_leaves_a_table_that_the_next_completes(
    tmp_path: Path, store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = at(store, monkeypatch, "killed")
    vault = vault_at(tmp_path / "ci", texts(200), uri)
    reconcile.sync(vault)
    code = (
        "import sys; from pathlib import Path; from tests.publish import test_published as t;"
        "from vault_index.publish import vectors; vectors.ROWS = 10;"
        "v = t.vault_at(Path(sys.argv[1]), {}, sys.argv[2]);"
        "t.publish_all(v, lambda done, of: print(done, flush=True))"
    )
    for lines in (1, 4, 9):
        process = subprocess.Popen(
            [BIN / "python", "-c", code, str(vault.root), uri],
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[2],
        )
        assert process.stdout is not None
        for _ in range(lines):
            assert process.stdout.readline()
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
    publish_all(vault)
    shared = SharedVectors(uri, f"words {RECIPE}", 64, tmp_path)
    assert shared.count() == 200
    stats = reconcile.sync(vault_at(tmp_path / "laptop", texts(200), uri))
    assert (stats.taken, stats.embedded, stats.shared) == (200, 0, "")


@pytest.mark.slow
@pytest.mark.parametrize("does_before", [False, True], ids=["asked", "done"])
@pytest.mark.parametrize("part", [0.1, 0.4, 0.8])
def test_a_store_that_goes_away_meanwhile_keeps_what_is_published(
    tmp_path: Path,
    store: ObjectStore,
    monkeypatch: pytest.MonkeyPatch,
    part: float,
    does_before: bool,
) -> None:
    """It is gone after a part of a publisher's requests, or after it did one and did not say so."""
    uri = at(store, monkeypatch, f"gone-{part}-{does_before}")
    vault = vault_at(tmp_path / "ci", texts(40), uri)
    asked = store.requests
    publish_all(vault)
    asked = store.requests - asked
    for path, text in texts(20, first=40).items():
        write(vault.lessons_dir / path, text)
    (vault.lessons_dir / "topic" / "lesson-5.md").unlink()
    monkeypatch.setattr(store, "does_before", does_before)
    store.cut_after = int(part * asked)
    with pytest.raises(StoreError, match=re.escape(uri)) as failed:
        publish_all(vault)
    assert "Generic S3 error" not in failed.value.message
    store.cut_after, store.is_cut = None, False
    rows = Table(Remote(uri), 64, publish.schema_of("words"))
    assert len(rows.rows(("id",))) >= 39
    assert SharedVectors(uri, f"words {RECIPE}", 64, tmp_path).count() >= 40
    assert [*publish.troubles(vault)] == []
    done = publish_all(vault)
    assert (len(rows.rows(("id",))), done.vectors) == (59, 60)


@pytest.mark.slow
def test_the_command_publishes_and_says_what(
    tmp_path: Path, with_model: Path, store: ObjectStore
) -> None:
    env = {**store.env, "LESSONS_INDEX_SHARED": f"{URI}/command"}
    root = filled(tmp_path / "vault", texts(40))
    no_place = run("lessons", "index", "--publish", cwd=root, check=False)
    assert no_place.code == 1
    assert no_place.err.splitlines()[-2:] == [
        "Error: no place to publish to is set",
        "Try: lessons config set index.shared s3://bucket/prefix",
    ]
    done = run("lessons", "index", "--publish", cwd=root, env=env)
    assert done.out == f"{URI}/command: 40 vectors added, 40 in all, 40 rows written\n"
    again = run("lessons", "index", "--publish", "--json", cwd=root, env=env).json
    assert (again["added"], again["vectors"]) == (0, 40)
    (with_model / "vectors.sqlite3").unlink()
    other = filled(tmp_path / "laptop", texts(40))
    stats = json.loads(run("lessons", "index", "--json", cwd=other, env=env).out)
    assert (stats["taken"], stats["embedded"]) == (40, 0)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    words = ("search", "--index", f"{URI}/command", "--json", "cache of service 3")
    here = run("lessons", "search", "--json", words[-1], cwd=root, env=env).json["hits"]
    there = run("lessons", *words, cwd=elsewhere, env=env).json["hits"]
    assert [f"vault: {hit['id']}" for hit in here] == [hit["id"] for hit in there]
    (root / "lessons" / "topic" / "lesson-3.md").unlink()
    write(root / "lessons" / "topic" / "new.md", lesson_text("Quokka", "A quokka sleeps."))
    changed = run("lessons", "index", "--publish", "--json", cwd=root, env=env).json
    assert (changed["added"], changed["rows"]) == (1, 1)
    ids = [hit["id"] for hit in run("lessons", *words, cwd=elsewhere, env=env).json["hits"]]
    assert "vault: topic/lesson-3" not in ids
    stranger = {**env, "AWS_ACCESS_KEY_ID": "x"}
    wrong = run("lessons", "status", "--check", cwd=other, env=stranger, check=False)
    assert f"{URI}/command: access denied" in wrong.out


@pytest.mark.slow
def test_a_table_whose_maker_was_killed_is_made_by_the_next(
    store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri, made = at(store, monkeypatch, "killed-maker"), []

    def die() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(vectors_module, "CREATE_SECONDS", 0.0)
    with pytest.raises(KeyboardInterrupt):
        make_once(uri, "table", lambda: False, die)
    make_once(uri, "table", lambda: False, lambda: made.append(1))
    assert made == [1]


@pytest.mark.slow
def test_servers_answer_from_a_published_index_while_a_publisher_writes(
    tmp_path: Path, with_model: Path, store: ObjectStore
) -> None:
    root, uri = filled(tmp_path / "vault", texts(40)), f"{URI}/servers"
    env = {**store.env, "LESSONS_INDEX_SHARED": uri}
    run("lessons", "index", "--publish", cwd=root, env=env)
    refused = run("lessons", "serve", "--index", uri, "--background", cwd=tmp_path, check=False)
    assert "--index goes without --background" in refused.err
    servers = [
        subprocess.Popen(
            [BIN / "lessons", "serve", "--index", uri, "--port", "0"],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **env},
        )
        for _ in range(2)
    ]

    def texts_for(address: str, prompt: str) -> str:
        answer = httpx.post(f"{address}/api/query", json={"prompt": prompt}, timeout=60)
        assert answer.status_code == 200, answer.text
        return answer.text

    try:
        addresses = []
        for server in servers:
            assert server.stdout is not None
            address = re.search(r"http://[\d.:]+", server.stdout.readline())
            assert address
            addresses.append(address[0])
            assert "vault: topic/lesson-3" in texts_for(address[0], "cache of service 3")
        whole = httpx.get(f"{addresses[0]}/api/lessons/topic/lesson-3", timeout=60)
        assert whole.status_code >= 400
        assert "published index" in whole.text
        write(root / "lessons" / "topic" / "new.md", lesson_text("Quokka", "A quokka sleeps."))
        publisher = subprocess.Popen(
            [BIN / "lessons", "index", "--publish"],
            cwd=root,
            env={**os.environ, **env},
            stdout=subprocess.DEVNULL,
        )
        while publisher.poll() is None:
            for each in addresses:
                assert "vault: topic/lesson-3" in texts_for(each, "cache of service 3")
        assert publisher.returncode == 0
        new = "vault: topic/new"
        soon(lambda: all(new in texts_for(each, "the quokka sleeps") for each in addresses))
    finally:
        for server in servers:
            server.terminate()
            server.wait()
            assert server.stdout is not None
            server.stdout.close()


@pytest.mark.slow
def test_a_store_that_accepts_and_never_answers_is_named_before_anything_is_embedded(
    tmp_path: Path,
) -> None:
    root = filled(tmp_path / "vault", texts(3))
    with socket.create_server(("127.0.0.1", 0)) as silent_store:  # the system accepts, nobody reads
        env = environ_of(silent_store.getsockname()[1])
        done = run("lessons", "index", "--publish", root, cwd=tmp_path, env=env, check=False)
    assert done.code == 1
    assert done.err.startswith(f"Error: {URI}: no answer in time\n")
    with pytest.raises(VaultError, match="no index"):
        open_vault(root).open_index()
