"""An embedder whose documents go to the workers of Ray: on this machine, or on a cluster.

This process alone writes the published tables: workers need no access to the store. Ray starts a worker
that was killed again, and repeats what it had not answered.
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
    from vault_index.vault import Vault

_TEXTS = 32  # that a worker is asked for at once: half a second
_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",  # no report to its makers
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # its new default, of which it warns otherwise
    "RAY_DEDUP_LOGS_SKIP_REGEX": ".",  # nothing of its own between the lines of this program
}


class RayEmbedder:
    """An embedder whose documents are embedded by workers, queries by this process."""

    def __init__(self, here: Embedder, workers: Sequence[Any]) -> None:
        self.name = here.name
        self.dimension = here.dimension
        self.embed_query = here.embed_query
        self._workers = list(workers)

    def embed_documents(self, texts: Sequence[str]) -> np.ndarray:
        import numpy as np
        from ray.util import ActorPool

        parts = [list(texts[start : start + _TEXTS]) for start in range(0, len(texts), _TEXTS)]
        pool = ActorPool(self._workers)
        made = list(pool.map(lambda worker, part: worker.embed.remote(part), parts))
        return np.concatenate([np.empty((0, self.dimension), np.float32), *made])


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
    if embedder := open_embedder(config):
        return embedder
    raise EmbedderError("the settings name no embedder", "lessons config set embedder minilm")


@contextmanager
def embedding(vault: Vault, engine: str) -> Iterator[None]:
    """Embed a vault's documents by workers, one for each processor, and stop them.

    The engine `ray` is the cluster of RAY_ADDRESS, else this machine. Raises EmbedderError.
    """
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    try:
        import ray
    except ImportError:
        message = "the engine ray is not installed"
        raise EmbedderError(message, "install the package again with its extra: `.[ray]`") from None
    here = _open(vault.config)
    workers: list[Any] = []
    try:
        _start(vault.config, engine)
        worker = ray.remote(num_cpus=1, max_restarts=-1, max_task_retries=-1)(_Worker)
        count = max(1, int(ray.cluster_resources().get("CPU", 1)))
        workers += [worker.remote(vault.config, here.name) for _ in range(count)]
        vault.embedder = RayEmbedder(here, workers)
        yield
    except (ConnectionError, ray.exceptions.RayError) as error:
        line = (str(error).strip().splitlines() or [type(error).__name__])[-1][:160]
        hint = "look at `ray status` there, or publish without --engine"
        raise EmbedderError(f"ray: {line}", hint) from None
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
