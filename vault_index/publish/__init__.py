"""Shared by many machines: vectors and rows at an address, in a folder or an object store.

CI publishes (`lessons index --publish`, on Ray if asked): vectors by content, and rows of lessons with
their full text, several vaults in one table. Laptops take vectors from there and embed the rest;
a process without a clone searches the rows. The rest of the package calls these functions alone.
"""

from __future__ import annotations

import logging
import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from random import SystemRandom
from typing import TYPE_CHECKING, Any, cast

from vault_index import git
from vault_index.check.finding import Trouble
from vault_index.config import Config, checked, home_folder, load
from vault_index.embed import Embedder, download, open_embedder
from vault_index.embed.cache import VectorCache
from vault_index.errors import EmbedderError, SettingsError, StoreError, VaultError
from vault_index.features import IndexTable
from vault_index.index import rows
from vault_index.lesson.file import hash_of
from vault_index.publish import vectors
from vault_index.publish.vectors import SharedVectors
from vault_index.store import filters, manifest, ownership
from vault_index.store.lance import Remote, Table
from vault_index.store.reader import Reader
from vault_index.store.schema import DOCUMENTS, LESSONS, RECIPE, SKILLS, VECTOR, Schema
from vault_index.vault import OpenIndex, Vault

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np

    from vault_index.store.schema import LessonRow
    from vault_index.store.sync import Progress, Stats

_EVERY = [name for name in LESSONS.columns() if name != VECTOR]
COMPARED_AT_ONCE = 32  # vectors of a quiet turn: half a second of two processors
FOLDER = "published"  # in the user's folder; nothing is kept there
LOOK_SECONDS = 5.0  # between two looks for a new version


def taking(vault: Vault, index: Path | None = None) -> SharedVectors:
    """Return the vectors at `[index] shared` of the vault's embedder. Raises EmbedderError.

    Vectors that are taken are marked in the folder of an `index`.
    """
    config, embedder = vault.config, vault.embedder
    assert embedder is not None
    recipe = f"{embedder.name} {RECIPE}"
    return SharedVectors(config[IndexTable].shared, recipe, embedder.dimension, config.home, index)


def compare_some(vault: Vault) -> bool:
    """Embed some vectors that were taken, compare them, and mend the wrong ones. Whether more are left.

    The watcher does it when it is quiet, until all were compared. The right ones are then kept for all of
    the user's vaults.
    """
    with suppress(VaultError):  # the next sweep tries again
        index, embedder = manifest.current(vault.index_dir), vault.embedder
        hashes = vectors.marked(index) if index else set()
        if (
            not index
            or not hashes
            or not embedder
            or embedder.name != manifest.load(index).embedder
        ):
            return False
        with ownership.held(vault.index_dir, wait=False) as is_free:
            if is_free and index == manifest.current(vault.index_dir):
                some = SystemRandom().sample(sorted(hashes), min(COMPARED_AT_ONCE, len(hashes)))
                if wrong := _mend(vault, index, some):
                    taking(vault).note_refused(dict.fromkeys(wrong, vectors.WRONG))
                hashes -= {*some}
                vectors.mark(index, hashes)
        return bool(hashes)
    return False


def _mend(vault: Vault, index: Path, some: list[str]) -> list[str]:
    """Put vectors that are made here in the place of wrong ones; return whose. Raises VaultError."""
    known, embedder = manifest.load(index), vault.embedder
    assert embedder is not None
    table = Table(index, known.dimension)
    table_rows, stored = table.rows_and_vectors(_EVERY, filters.any_of("content_hash", some))
    assert stored is not None
    texts = {row["content_hash"]: cast("LessonRow", row) for row in table_rows}
    right = dict(zip(texts, rows.embed(embedder, [*texts.values()]), strict=True))
    VectorCache(vault.config.home, f"{known.embedder} {RECIPE}", known.dimension).put(right)
    wrong = [
        {**row, VECTOR: right[row["content_hash"]]}
        for row, vector in zip(table_rows, stored, strict=True)
        if float(vector @ right[row["content_hash"]]) < vectors.MIN_COSINE
    ]
    if wrong:
        manifest.mark_dirty(index, [])
        table.replace(wrong, ())
        manifest.save(index, replace(known, derived={}))  # all that follows is made again
    return sorted({row["content_hash"] for row in wrong})


@dataclass(frozen=True, slots=True)
class VectorsStatus:
    """The vectors that were taken and are not compared yet, for `lessons status`."""

    vectors_to_compare: int = 0


def state(vault: Vault) -> VectorsStatus:
    """Count the vectors that are not compared yet."""
    with suppress(VaultError):  # `status` says what is wrong with the index
        if index := manifest.current(vault.index_dir):
            return VectorsStatus(len(vectors.marked(index)))
    return VectorsStatus()


@dataclass(frozen=True, slots=True)
class Published:
    """A published index: vectors `added`, `vectors` in all, `rows` written."""

    uri: str
    added: int
    vectors: int
    rows: int
    stats: Stats


def publish(
    vault: Vault, index: Callable[[], Any], progress_of: Callable[[str], Progress], engine: str
) -> Published:
    """Bring the index up to date by `index`, and publish its vectors and the rows of its lessons.

    The `engine` embeds: this process for "", `ray` or the address of a cluster. A store that does not
    answer ends it before anything is embedded. Raises SettingsError, StoreError, EmbedderError.
    """
    uri = vault.config[IndexTable].shared
    if not uri:
        hint = "lessons config set index.shared s3://bucket/prefix"
        raise SettingsError("no place to publish to is set", hint)
    vectors.reach(uri, progress_of("reaching the store"))
    with _on_ray(vault, engine) if engine else nullcontext():
        stats = index()
    opened = vault.open_index()
    if vault.embedder is None or opened.embedder != vault.embedder.name:
        raise EmbedderError("the index has no vectors to publish", "lessons model fetch")
    if opened.lacking:
        of = f"{opened.lacking:,} of {opened.files:,} files"
        raise EmbedderError(f"the vectors of {of} are still to be made", "lessons index")
    if opened.unchecked:
        of = f"{opened.unchecked:,} of {opened.files:,} files"
        raise VaultError(f"{of} are not checked yet", "lessons index")
    shared = taking(vault)
    added = shared.publish(opened.store, progress_of("publishing vectors"))
    written = publish_rows(vault, uri, progress_of("publishing lessons"))
    return Published(uri, added, shared.count(), written, stats)


def publish_rows(vault: Vault, uri: str, progress: Progress) -> int:
    """Publish the rows of a vault that differ; return the number of written rows. Raises StoreError."""
    opened = vault.open_index()
    mark = f"{name_of(vault)}: "
    schema = schema_of(opened.embedder)
    table = vectors.table_at(uri, opened.store.dimension, schema)
    here, numbers = opened.store.rows_and_vectors(_EVERY, filters.FOR_AGENTS)
    assert numbers is not None
    names = "id", "lesson_id", "path"
    marked = [{**row, **{name: f"{mark}{row[name]}" for name in names}} for row in here]
    vector_of = dict(zip((row["id"] for row in marked), numbers, strict=True))
    changed, stale = table.differing(marked, filters.begins("path", mark))
    changed = [{**row, VECTOR: vector_of[row["id"]]} for row in changed]
    vectors.write(table, changed, progress, stale, update=True)
    return len(changed)


def name_of(vault: Vault) -> str:
    """Return the mark of a vault's rows: the path of its remote, else the name of its folder."""
    origin = git.setting(vault.root, git.ORIGIN)
    path = origin.partition("://")[2].partition("/")[2] or origin.rpartition(":")[2]
    return path.strip("/").removesuffix(".git") or vault.root.name


def schema_of(embedder: str) -> Schema:
    """Return the table of published lessons, by the name of the embedder."""
    return replace(LESSONS, table=vectors.table_name(f"{embedder} {RECIPE}", "lessons"))


def open_index(uri: str) -> PublishedVault:
    """Open a published index with the user's settings. Raises SettingsError."""
    return PublishedVault(uri, load())


class PublishedVault(Vault):
    """The index at an address, as a vault that has no files. Raises EmbedderError without a model.

    It reads what each search needs once, and looks every few seconds whether a publisher wrote.
    """

    def __init__(self, uri: str, config: Config) -> None:
        super().__init__(config.home / FOLDER / hash_of(uri)[:8], config)
        self.uri = str(checked("index.shared", uri))
        self._index: OpenIndex | None = None
        self._looked = 0.0

    @property
    def is_named_by_user(self) -> bool:
        """Whether the user's settings name this address."""
        return self.config[IndexTable].shared == self.uri

    def open_index(self) -> OpenIndex:
        """Open the newest version. Raises StoreError."""
        last = self._index
        if last is not None and time.monotonic() - self._looked < LOOK_SECONDS:
            return last
        embedder = self.embedder
        if embedder is None:
            raise EmbedderError("a published index is searched by vectors", "lessons model fetch")
        store = Reader(Remote(self.uri), embedder.dimension, schema_of(embedder.name))
        self._looked = time.monotonic()
        if last is not None and last.store.revision() == store.revision():
            return last
        none = replace(SKILLS, table="no_skills"), replace(DOCUMENTS, table="no_documents")
        skills, documents = (Reader(self.root / "none", 0, each) for each in none)
        count, version = store.count(filters.WHOLE), (0, 0, 0, 0)
        self._index = OpenIndex(store, embedder.name, count, 0, version, skills, documents, {})
        return self._index


def troubles(vault: Vault) -> Iterator[Trouble]:
    """Look whether vectors come from `[index] shared`, and what was refused of them."""
    uri = vault.config[IndexTable].shared
    if not uri or vault.embedder is None:
        return
    shared = taking(vault)
    rows = Table(Remote(uri), shared.dimension, schema_of(vault.embedder.name))
    try:
        shared.count()
        for table in (shared.table, rows):
            if table.exists():
                table.rows(("id",))  # of each file, which shows the end of it
        refused = shared.refused()
    except StoreError as error:
        yield Trouble("index", error.message, error.hint)
        return
    for row in refused:
        what = f"{uri}: refused row {row}"
        yield Trouble("index", what, "ask who publishes there; it was embedded here")


# An embedder whose documents go to the workers of Ray: on this machine, or on a cluster.
#
# This process alone writes the published tables: workers need no access to the store. Ray repeats the
# task of a worker that was killed.
_TEXTS = 32  # of a task: half a second
_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",  # no report to its makers
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # its new default, of which it warns otherwise
    "RAY_DEDUP_LOGS_SKIP_REGEX": ".",  # nothing of its own between the lines of this program
}
# Of a Ray on this machine: by itself Ray 2.60 listens on all addresses, and writes a token that others
# can read. Without clusters, which is its default on Windows and macOS, it binds to 127.0.0.1.
_ALONE = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_AUTH_MODE": "token"}


class RayEmbedder:
    """An embedder whose documents are embedded by tasks of Ray, queries by this process."""

    def __init__(self, here: Embedder, config: Config) -> None:
        self.name, self.dimension = here.name, here.dimension
        self.embed_queries, self.knows = here.embed_queries, here.knows
        self._config = config

    def embed_documents(self, texts: Sequence[str]) -> np.ndarray:
        import numpy as np
        import ray

        embed = ray.remote(num_cpus=1, max_retries=-1)(_embedded)
        parts = [list(texts[start : start + _TEXTS]) for start in range(0, len(texts), _TEXTS)]
        vectors = ray.get([embed.remote(self._config, self.name, part) for part in parts])
        return np.concatenate([np.empty((0, self.dimension), np.float32), *vectors])


_opened: dict[str, Embedder] = {}  # of a worker's process, by name: it gets many tasks


def _embedded(config: Config, name: str, texts: Sequence[str]) -> np.ndarray:
    """Embed texts in a worker of Ray. Raises EmbedderError if it has another embedder."""
    if name not in _opened:
        embedder = _open(replace(config, home=home_folder()))
        if embedder.name != name:
            raise EmbedderError(f"a worker has the embedder {embedder.name}, not {name}")
        _opened[name] = embedder
    return _opened[name].embed_documents(texts)


def _open(config: Config) -> Embedder:
    if config.embedder == "minilm" and not download.is_ready(config.home):
        download.fetch(config.home)
    if embedder := open_embedder(config):
        return embedder
    raise EmbedderError("the settings name no embedder", "lessons config set embedder minilm")


@contextmanager
def _on_ray(vault: Vault, engine: str) -> Iterator[None]:
    """Embed a vault's documents by tasks, one at a time for each processor. Raises EmbedderError."""
    address = engine if "://" in engine else os.environ.get("RAY_ADDRESS", "")
    for name, value in (_QUIET if address else _QUIET | _ALONE).items():
        os.environ.setdefault(name, value)  # before the import, which reads some
    try:
        import ray
    except ImportError:
        message = "the engine ray is not installed"
        raise EmbedderError(message, "install the package again with its extra: `.[ray]`") from None
    embedder = vault.embedder
    try:
        with _cluster(address) if address else _this_machine(vault.config):
            vault.embedder = RayEmbedder(_open(vault.config), vault.config)
            yield
    except (ConnectionError, ray.exceptions.RayError) as error:
        line = (str(error).strip().splitlines() or [type(error).__name__])[-1][:160]
        hint = "look at `ray status` there, or publish without --engine"
        raise EmbedderError(f"ray: {line}", hint) from None
    finally:
        vault.embedder = embedder


@contextmanager
def _cluster(address: str) -> Iterator[None]:
    """Reach a cluster, for the rest of this process."""
    import ray

    if not ray.is_initialized():
        ray.init(log_to_driver=False, logging_level=logging.ERROR, address=address)
    yield


@contextmanager
def _this_machine(config: Config) -> Iterator[None]:
    """Start a Ray whose files are in a private folder, as its own is open to everybody, and end it."""
    import ray

    os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_urlsafe(32))
    # the paths of its sockets have 107 bytes at most, so it is not in TMPDIR
    private = tempfile.mkdtemp(prefix="lessons-ray-", dir="/tmp")
    try:
        ray.init(
            log_to_driver=False,
            logging_level=logging.ERROR,
            include_dashboard=False,
            _temp_dir=f"{private}/ray",
            # workers of this machine have this user's folder
            runtime_env={"env_vars": {"LESSONS_HOME": str(config.home)}},
        )
        yield
    finally:
        ray.shutdown()
        shutil.rmtree(private, ignore_errors=True)
