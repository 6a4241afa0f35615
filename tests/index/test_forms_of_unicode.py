"""One name, two forms of Unicode: some systems take letters apart, keyboards put them together (P07)."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.support.commands import run
from tests.support.files import MakeVault, commit, write
from vault_index.index import reconcile
from vault_index.retrieval import entries
from vault_index.vault import Vault

TOGETHER: Callable[[str], str] = partial(unicodedata.normalize, "NFC")
APART: Callable[[str], str] = partial(unicodedata.normalize, "NFD")
TEXT = "---\ntitle: {name} first\ntags: [{name}]\n---\nThe oven needs {name} before the dough.\n"
NAMES = [("küche", "öfen"), ("bếp", "lò-nướng"), ("ガラス", "バグ"), ("주방", "오븐")]


@pytest.fixture
def vault(make_vault: MakeVault, text_only: None) -> Vault:
    return make_vault()


def put(vault: Vault, form: Callable[[str], str], folder: str, name: str) -> Path:
    file = vault.lessons_dir / form(folder) / form(f"{name}.md")
    write(file, form(TEXT.format(name=name)))
    commit(vault.root)
    reconcile.sync(vault)
    return file


@pytest.mark.parametrize(("folder", "name"), NAMES)
@pytest.mark.slow
def test_a_name_that_the_disk_takes_apart_is_found_by_what_people_type(
    vault: Vault, folder: str, name: str
) -> None:
    file = put(vault, APART, folder, name)
    data = file.read_bytes()
    for typed in (TOGETHER, APART):
        id = typed(f"{folder}/{name}")
        entry = entries.entry(vault, id)
        assert entry.id == TOGETHER(f"{folder}/{name}")
        assert entries.entries(vault, category=typed(folder), tag=typed(name))
        found = run("lessons", "search", "--tag", typed(name), "oven", cwd=vault.root)
        assert TOGETHER(name) in found.out
        assert run("lessons", "log", id, cwd=vault.root).out
        path = typed(f"lessons/{folder}/{name}.md")
        assert run("lessons", "check", "--", path, cwd=vault.root).code == 0
    assert file.read_bytes() == data
    assert str(file.relative_to(vault.root)) == entry.path


@pytest.mark.slow
def test_the_list_shows_two_forms_of_one_name_apart(vault: Vault) -> None:
    """Issue 55, row 14: both were `café`, and both had one title."""
    for form in (TOGETHER, APART):
        write(vault.lessons_dir / form("café.md"), "The oven needs coffee.\n")
    if len(list(vault.lessons_dir.glob("*.md"))) < 2:
        pytest.skip("this disk takes both for one name")
    commit(vault.root)
    titles = [
        line.partition("\t")[2] for line in run("lessons", "list", cwd=vault.root).out.split("\n")
    ]
    assert {r"café (lessons/caf\xe9.md)", r"café (lessons/cafe\u0301.md)"} <= {
        *map(TOGETHER, titles)
    }
