"""Programs from npm, installed once into a folder."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.support.commands import run


def program(name: str, package: str, folder: Path) -> Path:
    """Return a program of a package, installed if it is not; a machine without npm skips the test."""
    return file(f".bin/{name}", package, folder)


def file(name: str, package: str, folder: Path) -> Path:
    """Return a file of `node_modules`, its package installed if it is not; see `program`."""
    npm = shutil.which("npm")
    if npm is None:
        assert not os.environ.get("CI"), "CI must have npm: the tests with real agents need it"
        pytest.skip(f"no npm on this machine, so no {package} to test with")
    wanted = folder / "node_modules" / name
    if not wanted.exists():
        words = ("install", "--no-audit", "--no-fund", "--prefix", folder, package)
        folder.mkdir(exist_ok=True)
        run(npm, *words, cwd=folder, timeout=500)
    return wanted
