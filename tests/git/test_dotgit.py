"""What is read from git's plain files is what git says, or is left to git."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.commands import run
from tests.support.files import write
from vault_index import git
from vault_index.git import dotgit


@pytest.mark.parametrize("name", [".vault_index/x", "sub/.VAULT_INDEX/deep/x", ".vault_index"])
@pytest.mark.parametrize("form", [(), ("--index-version", "4"), ("--split-index",)])
def test_what_is_tracked_is_seen_in_every_form_of_the_index(
    tmp_path: Path, form: tuple[str, ...], name: str
) -> None:
    write(tmp_path / ".vault_foo", "x")
    write(tmp_path / name, "x")
    for words in (("init", "-q"), ("add", "-f", "-A"), ("update-index", *form)):
        run("git", *words, cwd=tmp_path)
    folder = tmp_path / "sub" if name.startswith("sub") else tmp_path
    assert not dotgit.tracks_nothing_named(tmp_path, ".vault_index")
    assert git.is_tracked(folder, ".vault_index")
