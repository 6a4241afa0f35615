"""A user's folder."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

# whoever commits in a test: no test depends on the settings of the machine
GIT_OF_TESTS = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "Ada Lovelace",
    "GIT_AUTHOR_EMAIL": "ada@example.org",
    "GIT_COMMITTER_NAME": "Ada Lovelace",
    "GIT_COMMITTER_EMAIL": "ada@example.org",
}


def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of all processes that run tests side by side."""
    folder = tmp_path_factory.getbasetemp()
    return folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep out the other processes that run tests."""
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def at_home(home: Path) -> dict[str, str]:
    return {"LESSONS_HOME": str(home), "LESSONS_WATCH_AUTOSTART": "false"}


def add_model(home: Path, model_home: Path) -> None:
    """Add the real model to a user's folder, from the one that has it."""
    (home / "models" / ".fetch-failed").unlink()
    (home / "models" / "minilm").symlink_to(model_home / "models" / "minilm")


def make_home(home: Path) -> Path:
    """Make a user's folder: the same user in all tests, so that they can share an index."""
    (home / "models").mkdir(parents=True)
    (home / "models" / ".fetch-failed").touch()
    key = home / "index.key"
    key.write_text("5e" * 32)
    key.chmod(0o600)
    return home
