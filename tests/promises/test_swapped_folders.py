"""A folder that is swapped for a link while we write leads nowhere else (issue 55, attacks)."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from itertools import cycle
from pathlib import Path

import pytest

from tests.support.files import write
from vault_index import files
from vault_index.errors import VaultError

OWN, FOREIGN = b"ours", b"of somebody else"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    write(tmp_path / "vault/lessons/ops/a.md", OWN)
    write(tmp_path / "elsewhere/a.md", FOREIGN)
    return tmp_path


def change(vault: Path) -> None:
    files.change_file(vault / "lessons/ops/a.md", b"new", expected=OWN, within=vault)


def create(vault: Path) -> None:
    files.create_file(vault / "lessons/ops/b.md", b"new", within=vault)


def move_out(vault: Path) -> None:
    files.move_file(vault / "lessons/ops/a.md", vault / "lessons/b.md", within=vault)


def move_in(vault: Path) -> None:
    write(vault / "lessons/c.md", OWN)
    files.move_file(vault / "lessons/c.md", vault / "lessons/ops/c.md", within=vault)


def remove(vault: Path) -> None:
    files.remove_file(vault / "lessons/ops/a.md", expected=OWN, within=vault)


WRITERS = [change, create, move_out, move_in, remove]


def swap(folder: Path) -> None:
    """Put a link to `elsewhere` in the place of a folder."""
    folder.rename(folder.with_name("aside"))
    folder.symlink_to(folder.parents[2 if folder.name == "ops" else 1] / "elsewhere")


def untouched(place: Path) -> bool:
    kept = {each.name: each.read_bytes() for each in (place / "elsewhere").iterdir()}
    return kept == {"a.md": FOREIGN}


@pytest.mark.parametrize(
    ("write_it", "name"),
    [
        *((change, "replace"), (change, "unlink"), (create, "rename"), (create, "unlink")),
        *((move_out, "rename"), (move_in, "rename"), (remove, "unlink")),
    ],
)
def test_a_folder_swapped_before_the_last_step_leads_nowhere(
    place: Path, write_it: Callable[[Path], None], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = getattr(os, name)

    def swapped_first(*words: object, **options: object) -> object:
        ops = place / "vault/lessons/ops"
        if not ops.is_symlink():
            monkeypatch.undo()
            swap(ops)
        return step(*words, **options)

    monkeypatch.setattr(os, name, swapped_first)
    write_it(place / "vault")
    assert (place / "vault/lessons/ops").is_symlink()
    assert untouched(place)
    left = [each.name for each in place.rglob(f"*{files.TEMPORARY}")]
    assert left == []


@pytest.mark.parametrize("write_it", WRITERS)
@pytest.mark.parametrize("link", ["ops", "lessons"])
def test_a_folder_that_is_a_link_is_refused(
    place: Path, write_it: Callable[[Path], None], link: str
) -> None:
    vault = place / "vault"
    folder = vault / "lessons" if link == "lessons" else vault / "lessons/ops"
    write(place / "elsewhere/ops/a.md", OWN)
    swap(folder)
    with pytest.raises(VaultError, match="is a link"):
        write_it(vault)
    assert (place / "elsewhere/a.md").read_bytes() == FOREIGN
    assert (place / "elsewhere/ops/a.md").read_bytes() == OWN
    assert not (place / "elsewhere/b.md").exists()


def test_a_folder_that_is_swapped_again_and_again_leads_nowhere(place: Path) -> None:
    """As somebody does who does not know when: each write is refused, or is done in our folder."""
    vault, ended = place / "vault", threading.Event()
    ops, aside = vault / "lessons/ops", vault / "lessons/aside"

    def swap_on() -> None:
        for is_ours in cycle((False, True)):
            if ended.is_set() and not is_ours:
                return
            if is_ours:
                ops.unlink()
                aside.rename(ops)
            else:
                ops.rename(aside)
                ops.symlink_to(place / "elsewhere")

    swapping = threading.Thread(target=swap_on)
    swapping.start()
    try:
        for number in range(300):
            with suppress(VaultError):
                now = aside / "a.md" if aside.exists() else ops / "a.md"
                expected = files.read_if_any(now) or b""
                files.change_file(ops / "a.md", b"%d" % number, expected=expected, within=vault)
    finally:
        ended.set()
        swapping.join()
    assert untouched(place)
    assert [each.name for each in ops.iterdir()] == ["a.md"]
