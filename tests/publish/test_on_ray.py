"""Embedding on Ray: the same vectors, a killed worker loses none, and nothing of it stays behind."""

from __future__ import annotations

import contextlib
import importlib.util
import ipaddress
import os
import signal
import stat
import subprocess
from collections.abc import Collection
from pathlib import Path

import pytest

from tests.publish.test_published import filled, texts, vectors_of
from tests.support.commands import BIN, run
from tests.support.watchers import soon
from vault_index.vault import open_vault


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


def listening(pids: Collection[int]) -> set[str]:
    """Return the addresses on which processes listen for TCP, as /proc of Linux has them."""
    sockets = set()
    for pid in pids:
        for file in Path(f"/proc/{pid}/fd").glob("*"):
            with contextlib.suppress(OSError):
                sockets.add(str(file.readlink()))
    found = set()
    for name in ("tcp", "tcp6"):
        for line in Path("/proc/net", name).read_text().splitlines()[1:]:
            _, local, _, status, *_, inode = line.split()[:10]
            if status == "0A" and f"socket:[{inode}]" in sockets:  # LISTEN
                words = bytes.fromhex(local.partition(":")[0])
                packed = b"".join(words[at : at + 4][::-1] for at in range(0, len(words), 4))
                address = ipaddress.ip_address(packed)
                found.add(str(getattr(address, "ipv4_mapped", None) or address))
    return found


@pytest.mark.ray
@pytest.mark.no_arithmetic
@pytest.mark.timeout(600)
def test_workers_of_ray_make_the_same_vectors_though_one_is_killed(
    tmp_path: Path, with_model: Path
) -> None:
    if importlib.util.find_spec("ray") is None:
        assert not os.environ.get("CI"), "CI must have it: .ci/run installs the extra test-models"
        pytest.skip("no ray on this machine: pip install -e '.[ray]'")
    root, uri = filled(tmp_path / "vault", texts(400)), tmp_path / "shared"
    with subprocess.Popen(
        [BIN / "lessons", "index", "--publish", "--engine", "ray", root],
        cwd=tmp_path,
        env={**os.environ, "LESSONS_INDEX_SHARED": str(uri)},
        stdout=subprocess.PIPE,
        text=True,
    ) as publishing:
        soon(lambda: processes("ray::_embedded", with_model), 300)
        every = processes("ray", with_model)
        assert listening(every) == {"127.0.0.1"}
        folders = [*Path("/tmp").glob("lessons-ray-*")]
        assert {stat.S_IMODE(folder.stat().st_mode) for folder in folders} == {0o700}
        os.kill(processes("ray::_embedded", with_model)[0], signal.SIGKILL)
        out, _ = publishing.communicate(timeout=300)
    assert publishing.returncode == 0
    assert not any(folder.exists() for folder in folders)
    assert out == f"{uri}: 400 vectors added, 400 in all, 400 rows written\n"
    # agents of Ray look rarely whether it is there
    soon(lambda: not processes("ray", with_model), 240)
    made = vectors_of(open_vault(root))
    run("lessons", "index", "--rebuild", cwd=root)
    again = vectors_of(open_vault(root))
    assert made.keys() == again.keys()
    assert all((made[id] == again[id]).all() for id in made)
