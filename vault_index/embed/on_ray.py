"""An embedder whose documents go to the workers of Ray: on this machine, or on a cluster.

`lessons index --publish --engine ray` uses it; all that is not the embedding stays with this process,
which writes the published tables alone. Workers therefore need no access to the store, and a write by
key makes no duplicate, which an append from each worker would. Ray starts a worker again that was
killed, and repeats what it had not answered.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from vault_index.config import home_folder
from vault_index.embed import download, open_embedder
from vault_index.errors import EmbedderError

if TYPE_CHECKING:
    import numpy as np

    from vault_index.config import Config
    from vault_index.embed import Embedder

_TEXTS = 32  # that a worker is asked for at once: half a second
_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",  # no report to its makers
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # its new default, of which it warns otherwise
    "RAY_DEDUP_LOGS_SKIP_REGEX": ".",  # nothing of its own between the lines of this program
}
_HINT = "look at `ray status` there, or publish without --engine"


class RayEmbedder:
    """The embedder `own`, whose documents are embedded by workers; queries by this process."""

    def __init__(self, own: Embedder, workers: Sequence[Any]) -> None:
        self.own = own
        self.name = own.name
        self.dimension = own.dimension
        self.workers = len(workers)
        self._workers = list(workers)

    def embed_documents(self, texts: Sequence[str]) -> np.ndarray:
        import numpy as np
        import ray
        from ray.util import ActorPool

        parts = [list(texts[start : start + _TEXTS]) for start in range(0, len(texts), _TEXTS)]
        try:
            pool = ActorPool(self._workers)
            made = list(pool.map(lambda worker, part: worker.embed.remote(part), parts))
        except ray.exceptions.RayError as error:
            raise EmbedderError(f"ray: {_line(error)}", _HINT) from None
        return np.concatenate([np.empty((0, self.dimension), np.float32), *made])

    def embed_query(self, text: str) -> np.ndarray:
        return self.own.embed_query(text)


class _Worker:
    """A process of Ray with the embedder of whoever asks."""

    def __init__(self, config: Config, name: str) -> None:
        self._embedder = _open(replace(config, home=home_folder()))
        if self._embedder.name != name:
            raise EmbedderError(f"a worker has the embedder {self._embedder.name}, not {name}")

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        return self._embedder.embed_documents(texts)


def _open(config: Config) -> Embedder:
    if config.embedder == "minilm" and not download.is_ready(config.home):
        download.fetch(config.home)
    embedder = open_embedder(config)
    if embedder is None:
        raise EmbedderError("the settings name no embedder", "lessons config set embedder minilm")
    return embedder


@contextmanager
def embedding(config: Config, engine: str) -> Iterator[RayEmbedder]:
    """Start workers, one for each processor, and stop them: `engine` is `ray` or an address of it.

    `ray` alone means the cluster of RAY_ADDRESS, else this machine. Raises EmbedderError.
    """
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    try:
        import ray
    except ImportError:
        message = "the engine ray is not installed"
        raise EmbedderError(message, "install the package again with its extra: `.[ray]`") from None
    own = _open(config)
    workers: list[Any] = []
    try:
        try:
            _start(config, engine)
            worker = ray.remote(num_cpus=1, max_restarts=-1, max_task_retries=-1)(_Worker)
            count = max(1, int(ray.cluster_resources().get("CPU", 1)))
            workers += [worker.remote(config, own.name) for _ in range(count)]
        except (ConnectionError, ray.exceptions.RayError) as error:
            raise EmbedderError(f"ray: {_line(error)}", _HINT) from None
        yield RayEmbedder(own, workers)
    finally:
        for each in workers:
            ray.kill(each)


def _start(config: Config, engine: str) -> None:
    """Start Ray, or reach its cluster, for this process; the vault before this one may have."""
    import ray

    address = engine if "://" in engine else os.environ.get("RAY_ADDRESS", "")
    options: dict[str, Any] = {"address": address} if address else {"include_dashboard": False}
    if not address:  # workers of this machine have this user's folder
        options["runtime_env"] = {"env_vars": {"LESSONS_HOME": str(config.home)}}
        # of its sockets, whose paths have 107 bytes at most
        os.environ.setdefault("RAY_TMPDIR", "/tmp")
    if not ray.is_initialized():
        ray.init(log_to_driver=False, logging_level=logging.ERROR, **options)


def _line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[-1][:160]
