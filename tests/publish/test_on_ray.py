"""Embedding on Ray: the same vectors, a killed worker loses none, and nothing of it stays behind."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.support.commands import BIN, run
from tests.support.files import lesson_text, write
from tests.support.watchers import soon
from vault_index.vault import open_vault

WORDS = "heap lock pipe cache queue token index merge branch deploy build retry table shard".split()


def vault(root: Path, count: int) -> Path:
    run("lessons", "init", root, cwd=root.parent)
    for n in range(count):
        text = " ".join(WORDS[(n * 7 + at * at) % len(WORDS)] for at in range(60))
        write(root / "lessons" / "topic" / f"{n}.md", lesson_text(f"Lesson {n}", f"{n}: {text}."))
    return root


def vectors(root: Path) -> dict[str, bytes]:
    rows, matrix = open_vault(root).open_index().store.rows_and_vectors(("id",))
    assert matrix is not None
    return {row["id"]: vector.tobytes() for row, vector in zip(rows, matrix, strict=True)}


def processes(title: str, home: Path) -> list[int]:
    """Return the processes with a title, such as Ray sets, that have this `LESSONS_HOME`."""
    there = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words, environ = ((entry / name).read_bytes() for name in ("cmdline", "environ"))
            mark = f"LESSONS_HOME={home}".encode()
            if title.encode() in words and mark in environ.split(b"\0"):
                there.append(int(entry.name))
    return there


@pytest.mark.ray
@pytest.mark.no_arithmetic
@pytest.mark.timeout(600)
def test_workers_of_ray_make_the_same_vectors_though_one_is_killed(
    tmp_path: Path, with_model: Path
) -> None:
    if importlib.util.find_spec("ray") is None:
        assert not os.environ.get("CI"), "CI must have it: .ci/run installs the extra test-models"
        pytest.skip("no ray on this machine: pip install -e '.[ray]'")
    root, uri = vault(tmp_path / "vault", 400), tmp_path / "shared"
    with subprocess.Popen(
        [BIN / "lessons", "index", "--publish", "--engine", "ray", root],
        cwd=tmp_path,
        env={**os.environ, "LESSONS_INDEX_SHARED": str(uri)},
        stdout=subprocess.PIPE,
        text=True,
    ) as publishing:
        soon(lambda: processes("ray::_Worker.embed", with_model), 300)
        os.kill(processes("ray::_Worker", with_model)[0], signal.SIGKILL)
        out, _ = publishing.communicate(timeout=300)
    assert publishing.returncode == 0
    assert out == f"{uri}: 400 vectors added, 400 in all, 400 rows written\n"
    # agents of Ray look rarely whether it is there
    soon(lambda: not processes("ray", with_model), 240)
    made = vectors(root)
    run("lessons", "index", "--rebuild", cwd=root)
    assert vectors(root) == made
