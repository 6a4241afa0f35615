"""A clone may lack history or contents: what it cannot know is said, and nobody is made an author."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import run
from tests.support.files import MakeVault, commit, lesson_text, write
from vault_index.git import UNKNOWN_AUTHOR
from vault_index.index import reconcile
from vault_index.retrieval import entries
from vault_index.vault import open_vault

pytestmark = pytest.mark.slow

Clone = Callable[..., Path]


def commit_by(who: str, root: Path) -> None:
    run("git", "add", "-A", cwd=root)
    run("git", "commit", "-q", "-m", f"by {who}", f"--author={who} <{who}@mill.example>", cwd=root)


@pytest.fixture
def clone(make_vault: MakeVault, tmp_path: Path, text_only: None) -> Clone:
    """Clone a vault of four commits: `old` by Ada, renamed and edited by Bob; `new` by Cy and Dee."""
    root = make_vault({"first.md": lesson_text("Old", "The belt stops at noon.\n" * 9)}).root
    run("git", "config", "uploadpack.allowFilter", "true", cwd=root)
    commit_by("Ada", root)
    (root / "lessons/first.md").rename(root / "lessons/old.md")
    write(root / "lessons/old.md", lesson_text("Old", "The belt stops at noon.\n" * 9 + "Wait."))
    commit_by("Bob", root)
    write(root / "lessons/new.md", lesson_text("New", "The oven is hot."))
    commit_by("Cy", root)
    write(root / "lessons/new.md", lesson_text("New", "The oven is hot, and loud."))
    commit_by("Dee", root)

    def make(*how: str) -> Path:
        place = tmp_path / "clone"
        run("git", "clone", "-q", *how, root.as_uri(), place, cwd=tmp_path)
        return place

    return make


def authors(root: Path) -> dict[str, str]:
    vault = open_vault(root)
    reconcile.sync(vault)
    return {entry.id: entry.author for entry in entries.entries(vault)}


def log(root: Path, id: str) -> list[str]:
    edits: list[dict[str, Any]] = json.loads(run("lessons", "log", id, "--json", cwd=root).out)
    return [edit["who"] for edit in edits]


@pytest.mark.parametrize(
    ("depth", "old", "new"),
    [("1", [""], [""]), ("2", [""], ["Dee", ""]), ("3", [""], ["Dee", "Cy"])],
)
def test_a_shallow_clone_has_no_author_from_where_it_was_cut(
    clone: Clone, depth: str, old: list[str], new: list[str]
) -> None:
    root = clone("--depth", depth)
    assert authors(root) == {"new": new[0], "old": old[0]}
    assert (log(root, "old"), log(root, "new")) == (old, new)
    assert "author unknown" in run("lessons", "show", "old", cwd=root).out
    assert "before this shallow clone begins" in run("lessons", "log", "old", cwd=root).out
    run("git", "fetch", "-q", "--unshallow", cwd=root)
    write(root / "lessons/other.md", lesson_text("Other", "The door is shut."))
    commit_by("Eve", root)
    assert authors(root) == {"new": "Dee", "old": "Bob", "other": "Eve"}


def test_a_clone_without_old_contents_has_authors_and_a_log(clone: Clone) -> None:
    root = clone("--filter=blob:none")
    assert authors(root) == {"new": "Dee", "old": "Bob"}
    assert log(root, "new") == ["Dee", "Cy"]
    assert log(root, "old") == ["Bob"]  # that it was renamed is in the contents
    run("git", "log", "-p", "--follow", "--", "lessons/old.md", cwd=root)
    assert log(root, "old") == ["Bob", "Ada"]


def test_a_clone_without_old_trees_says_what_fetches_the_history(clone: Clone) -> None:
    root = clone("--filter=tree:0")
    assert authors(root) == {"new": UNKNOWN_AUTHOR, "old": UNKNOWN_AUTHOR}
    ran = run("lessons", "log", "new", cwd=root, check=False)
    assert ran.code == 1
    assert "not in this partial clone" in ran.err
    run("git", "log", "-p", "--", "lessons/new.md", cwd=root)
    assert log(root, "new")[0] == "Dee"


@pytest.mark.parametrize("place", ["lessons", "vendor/team"])
def test_a_vault_in_a_submodule_that_was_not_fetched_is_named(tmp_path: Path, place: str) -> None:
    """`init` wrote its settings there, and git then refused to fetch it."""
    inner, outer, clone = tmp_path / "inner", tmp_path / "outer", tmp_path / "clone"
    for each in (inner, outer):
        run("git", "init", "-q", each, cwd=tmp_path)
    write(inner / "lessons" / "heap.md", "# Heap\n\nRaise it.\n")
    commit(inner)
    files = ("-c", "protocol.file.allow=always")
    run("git", *files, "submodule", "--quiet", "add", inner, place, cwd=outer)
    run("git", "commit", "-q", "-m", "add the team's", cwd=outer)
    run("git", "clone", "-q", outer, clone, cwd=tmp_path)
    start = clone if place == "lessons" else clone / place
    for words in (("init",), ("search", "heap"), ("status",)):
        ran = run("lessons", *words, cwd=start, check=False)
        assert ran.err.splitlines() == [
            f"Error: {clone / place} is a submodule that was not fetched",
            f"Try: git submodule update --init {clone / place}",
        ]
    assert not [*(clone / place).iterdir()]
    run("git", *files, "submodule", "--quiet", "update", "--init", clone / place, cwd=clone)
    assert (clone / place / "lessons" / "heap.md").exists()
