"""Disks that are full, and folders that nobody can write, for as long as a test wants them."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

SPARE_BYTES = 256 * 1024  # of a disk, beside what is put on it


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Let nobody write below a folder: root may write whatever its mode says, so it is mounted."""
    if os.geteuid() != 0:
        modes = {each: each.stat().st_mode for each in (folder, *folder.rglob("*"))}
        for each, mode in modes.items():
            each.chmod(mode & ~0o222)
        try:
            yield
        finally:
            for each, mode in modes.items():
                each.chmod(mode)
        return
    with _mounted(folder, "--bind", "-o", "ro", str(folder)):
        yield


@contextmanager
def full(folder: Path) -> Iterator[None]:
    """Put a folder on a disk of its own, which is full."""
    size = SPARE_BYTES + sum(
        each.stat().st_size + 4096 for each in folder.rglob("*") if each.is_file()
    )
    aside = folder.with_name(f"{folder.name}.aside")
    shutil.copytree(folder, aside, symlinks=True)
    with _mounted(folder, "-t", "tmpfs", "-o", f"size={size},mode=0700", "tmpfs"):
        shutil.copytree(aside, folder, symlinks=True, dirs_exist_ok=True)
        with (folder / "filler").open("wb", buffering=0) as filler:
            try:
                while filler.write(bytes(4096)):
                    pass
            except OSError:
                pass  # the disk is full
        yield
    shutil.rmtree(aside)


@contextmanager
def _mounted(folder: Path, *options: str) -> Iterator[None]:
    if os.geteuid() != 0 or not shutil.which("mount"):
        pytest.skip("only root can mount")
    done = subprocess.run(["mount", *options, folder], check=False, capture_output=True)
    if done.returncode:
        pytest.skip(f"nothing can be mounted here: {done.stderr.decode()}")
    try:
        yield
    finally:
        subprocess.run(["umount", folder], check=True)


@contextmanager
def failing(folder: Path) -> Iterator[None]:
    """Put a folder on a disk that answers nothing any more, as after a cable was pulled."""
    image = folder.with_name(f"{folder.name}.img")
    with image.open("wb") as disk:
        disk.truncate(16 << 20)
    if not shutil.which("mkfs.ext4") or not shutil.which("losetup"):
        pytest.skip("no disk can be made here")
    words = ["mkfs.ext4", "-q", "-O", "^has_journal", "-d", str(folder), str(image)]
    subprocess.run(words, check=True, capture_output=True)
    with _mounted(folder, "-o", "loop,ro", str(image)):
        with image.open("wb") as disk:
            disk.truncate(0)
        yield
