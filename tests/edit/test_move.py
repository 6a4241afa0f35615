"""Renaming a branch of the tree: shown first, all of it or nothing, and no byte more than needed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.commands import run
from tests.support.files import MakeVault, commit, lesson_text, write
from vault_index import files
from vault_index.edit.categories import apply, move, plan
from vault_index.errors import VaultError, WriteError
from vault_index.index import reconcile
from vault_index.retrieval import entries
from vault_index.vault import Vault

DECLARED = b"""\xef\xbb\xbf---\r
# who wrote this\r
title: "Heap"   # short\r
categories: [devops/ci-cd, 'DevOps/CI CD/Cache', conventions]\r
odd: {a: 1}\r
---\r
Raise the heap.\r
"""


def tree_of(vault: Vault) -> dict[str, bytes]:
    files = (file for file in vault.lessons_dir.rglob("*") if file.is_file())
    return {str(file.relative_to(vault.lessons_dir)): file.read_bytes() for file in files}


def test_folders_move_and_frontmatter_is_rewritten_and_the_rest_stays(
    make_vault: MakeVault,
) -> None:
    plain = lesson_text("Cache", "Cache packages.")
    vault = make_vault(
        {
            "devops/ci-cd/cache.md": plain,
            "devops/ci-cd/deep/er.md": plain,
            "devops/docker/layers.md": plain,
            "top.md": DECLARED,
        }
    )
    before = tree_of(vault)
    planned = plan(vault, "devops/ci-cd", "build/pipelines")
    assert tree_of(vault) == before  # a plan changes nothing
    apply(vault, planned)
    after = tree_of(vault)
    assert set(after) == {
        "build/pipelines/cache.md",
        "build/pipelines/deep/er.md",
        "devops/docker/layers.md",
        "top.md",
        "vault.toml",
    }
    assert after["top.md"] == DECLARED.replace(
        b"[devops/ci-cd, 'DevOps/CI CD/Cache', conventions]",
        b"[build/pipelines, build/pipelines/cache, conventions]",
    )
    assert after["build/pipelines/cache.md"] == plain.encode()
    reconcile.sync(vault)
    assert "devops/ci-cd" not in entries.categories(vault)


def test_a_branch_can_be_merged_into_another(make_vault: MakeVault) -> None:
    vault = make_vault(
        {"a/one.md": lesson_text("One", "1"), "b/two.md": lesson_text("Two", "2")}
        | {"c.md": "---\ncategories: [a, b]\n---\nText.\n"}
    )
    apply(vault, plan(vault, "a", "b"))
    assert set(tree_of(vault)) == {"b/one.md", "b/two.md", "c.md", "vault.toml"}
    assert b"categories: [b]" in tree_of(vault)["c.md"]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("devops", "devops/old", "cannot become"),
        ("devops", "DevOps", "are the same category"),
        ("devops", "misc", "is no category"),
        ("", "x", "not a category"),
        ("devops", "..", "not a category"),
        ("nothing", "x", "no lesson is in nothing"),
    ],
)
def test_what_cannot_be_is_refused(old: str, new: str, said: str, make_vault: MakeVault) -> None:
    vault = make_vault({"devops/a.md": lesson_text("A", "a")})
    with pytest.raises(VaultError, match=said):
        plan(vault, old, new)


def test_a_file_in_the_way_stops_all_of_it(make_vault: MakeVault) -> None:
    vault = make_vault(
        {"a/x.md": lesson_text("X", "x"), "a/y.md": "y", "b/y.md": lesson_text("Y", "other")}
    )
    before = tree_of(vault)
    with pytest.raises(VaultError, match="that is there already"):
        plan(vault, "a", "b")
    assert tree_of(vault) == before


def test_a_failure_in_the_middle_undoes_what_was_done(
    make_vault: MakeVault, monkeypatch: pytest.MonkeyPatch
) -> None:
    vault = make_vault({f"a/{n}.md": f"---\ncategories: [a]\n---\n{n}\n" for n in range(4)})
    before = tree_of(vault)
    planned = plan(vault, "a", "b")
    rename, calls = os.rename, []

    def full(old: str, new: str, **folders: int) -> None:
        calls.append(new)
        if len(calls) == 3:
            raise OSError(28, "No space left on device")
        rename(old, new, **folders)

    monkeypatch.setattr(os, "rename", full)
    with pytest.raises(WriteError, match="No space left"):
        apply(vault, planned)
    assert tree_of(vault) == before


def test_what_changed_or_came_since_the_plan_stops_it(make_vault: MakeVault) -> None:
    vault = make_vault({"a/x.md": lesson_text("X", "x"), "a/y.md": lesson_text("Y", "y")})
    planned = plan(vault, "a", "b")
    write(vault.lessons_dir / "a/y.md", lesson_text("Y", "edited"))
    before = tree_of(vault)
    with pytest.raises(VaultError, match="has changed meanwhile"):
        apply(vault, planned)
    assert tree_of(vault) == before
    planned = plan(vault, "a", "b")
    write(vault.lessons_dir / "b/x.md", lesson_text("X", "another"))
    with pytest.raises(VaultError, match="there already"):
        apply(vault, planned)


KILLED = """\
import os, signal, sys
from pathlib import Path
from vault_index import files

os.replace = lambda *names, **folders: os.kill(os.getpid(), signal.SIGKILL)
place = Path(sys.argv[1])
files.change_file(place, b"new", expected=place.read_bytes(), within=place.parent)
"""


def left_over(place: Path) -> Path:
    """Let a process be killed while it changes a file, and return what it leaves beside it."""
    done = subprocess.run([sys.executable, "-c", KILLED, place], check=False)
    assert done.returncode == -signal.SIGKILL
    (left,) = place.parent.glob(f".{place.name}.*")
    return left


def test_what_a_killed_command_leaves_is_not_committed_and_is_removed(
    make_vault: MakeVault,
) -> None:
    vault = make_vault({f"devops/{name}.md": lesson_text(name, "Text.") for name in "abc"})
    commit(vault.root)
    left = left_over(vault.lessons_dir / "devops/b.md")
    run("git", "add", "-A", cwd=vault.root)
    assert run("git", "status", "--short", cwd=vault.root).out == ""
    run("lessons", "categories", "rename", "devops", "ops", "--write", cwd=vault.root)
    assert not left.exists()
    assert not (vault.lessons_dir / "devops").exists()


def test_what_a_running_command_writes_is_left_alone(make_vault: MakeVault) -> None:
    vault = make_vault({"a.md": lesson_text("A", "Text.")})
    left = left_over(vault.lessons_dir / "a.md")
    owner = re.search(r"-(\d+)-", left.name)
    assert owner
    ours = left.rename(left.with_name(left.name.replace(owner[0], f"-{os.getpid()}-")))
    elsewhere = left.with_name(f".a.md.00000000{owner[0]}abcdefgh{files.TEMPORARY}")
    elsewhere.write_text("of another machine")
    of_somebody = write(left.with_name(f".notes{files.TEMPORARY}"), "mine")
    vault.files()
    files.change_file(
        vault.lessons_dir / "a.md",
        b"Other.\n",
        expected=(vault.lessons_dir / "a.md").read_bytes(),
        within=vault.root,
    )
    assert all(file.exists() for file in (ours, elsewhere, of_somebody))
    os.utime(elsewhere, (0, 0))
    vault.files()
    assert not elsewhere.exists()


def test_one_lesson_moves_with_what_it_declares_beside_its_first_category(
    make_vault: MakeVault,
) -> None:
    vault = make_vault({"devops/b.md": DECLARED, "ops/b.md": lesson_text("In the way", "x")})
    with pytest.raises(VaultError, match="that is there already"):
        move(vault, "devops/b.md", "ops")
    assert tree_of(vault)["devops/b.md"] == DECLARED
    move(vault, "devops/b.md", "Ops/Node JS")
    after = tree_of(vault)["ops/node-js/b.md"]
    assert b"categories: [ops/node-js, DevOps/CI CD/Cache, conventions]" in after
    assert after.endswith(b"Raise the heap.\r\n")
    assert not (vault.lessons_dir / "devops").exists()
