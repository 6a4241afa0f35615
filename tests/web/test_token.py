"""The token of HTTP clients: made once, for its user alone, and no link is followed."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from vault_index.entrypoints import guard
from vault_index.errors import VaultError


def test_a_token_is_made_once(tmp_path: Path) -> None:
    home = tmp_path / "new"
    with ThreadPoolExecutor(8) as threads:
        (made,) = set(threads.map(guard.load_token, [home] * 16))
    assert len(made) >= 32
    assert (home / "token").read_text() == f"{made}\n"
    assert (home / "token").stat().st_mode & 0o777 == 0o600


def test_a_token_that_others_could_read_is_taken_from_them(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("chosen-by-its-user")
    (tmp_path / "token").chmod(0o644)
    assert guard.load_token(tmp_path) == "chosen-by-its-user"
    assert (tmp_path / "token").stat().st_mode & 0o777 == 0o600


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("0123456789abcdef")
    (tmp_path / "token").symlink_to("elsewhere")
    with pytest.raises(VaultError, match="cannot write"):
        guard.load_token(tmp_path)
    (tmp_path / "token").unlink()
    os.link(tmp_path / "elsewhere", tmp_path / "token")
    with pytest.raises(VaultError, match="cannot write"):
        guard.load_token(tmp_path)
    assert (tmp_path / "elsewhere").read_text() == "0123456789abcdef"


@pytest.mark.parametrize("written", ["short", "two words that are long", "x" * 300, "é" * 20])
def test_a_file_that_holds_something_else_is_left_alone(tmp_path: Path, written: str) -> None:
    (tmp_path / "token").write_text(written)
    with pytest.raises(VaultError, match="holds no token"):
        guard.load_token(tmp_path)
    with pytest.raises(VaultError, match="holds no token"):
        guard.read_token(tmp_path / "token")
    assert (tmp_path / "token").read_text() == written


def test_a_named_file_may_be_anywhere(tmp_path: Path) -> None:
    (tmp_path / "of-the-team").write_text("a-token-for-the-team\n")
    assert guard.read_token(tmp_path / "of-the-team") == "a-token-for-the-team"
    with pytest.raises(VaultError, match="cannot be read"):
        guard.read_token(tmp_path / "missing")
