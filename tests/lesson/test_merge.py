"""Two people edit one lesson file: lists are merged as sets, and git merges the rest by line."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.commands import run
from tests.support.files import commit, write
from vault_index.lesson import edits, merge
from vault_index.share import git_hooks

BASE = """\
---
title: Heap
# by hand
tags: [node, ci]
confidence: 3
---
Raise the heap.

## Lesson: One
First.

## Lesson: Two
fires_on: [the second one]

Second.
"""


def sides(ours: str, theirs: str, base: str = BASE) -> list[str]:
    """Return the versions (ours, theirs, base) that git is given."""
    made = merge.with_merged_lists(ours.encode(), theirs.encode(), base.encode())
    return [data.decode() for data in made]


def merged(folder: Path, ours: str, theirs: str) -> tuple[str, bool]:
    """Merge as the driver does; return the result and whether it is clean."""
    given = zip(("ours", "theirs", "base"), sides(ours, theirs), strict=True)
    for name, text in given:
        write(folder / name, text)
    labels = ("-L", "ours", "-L", "base", "-L", "theirs")
    ran = run("git", "merge-file", *labels, "ours", "base", "theirs", cwd=folder, check=False)
    return (folder / "ours").read_text(), ran.code == 0


def test_what_either_side_adds_stays_and_what_either_removes_goes(tmp_path: Path) -> None:
    ours = BASE.replace("[node, ci]", "[node, ci, heap]")
    theirs = BASE.replace("[node, ci]", "[node, build]")
    assert merged(tmp_path, ours, theirs) == (
        BASE.replace("[node, ci]", "[node, heap, build]"),
        True,
    )


def test_a_list_with_comments_is_left_to_git() -> None:
    base = BASE.replace("[node, ci]", "\n- node  # why\n- ci")
    ours, theirs = base.replace("- ci", "- ci\n- heap"), base.replace("- ci", "- ci\n- vpn")
    assert sides(ours, theirs, base) == [ours, theirs, base]
    ours, theirs = (each.replace("  # why", "") for each in (ours, theirs))
    assert sides(ours, theirs, base.replace("  # why", "")) != [ours, theirs, base]


def test_a_list_that_one_side_takes_out_is_a_conflict_and_no_loss(tmp_path: Path) -> None:
    ours = BASE.replace("tags: [node, ci]\n", "")
    text, clean = merged(tmp_path, ours, BASE.replace("[node, ci]", "[node, ci, heap]"))
    assert not clean
    assert "tags: [node, ci, heap]\n" in text


def test_what_both_changed_stands_between_the_markers_of_git(tmp_path: Path) -> None:
    ours = BASE.replace("First.", "Mine.").replace("ci]", "ci, heap]")
    theirs = BASE.replace("First.", "Yours.").replace("ci]", "ci, vpn]")
    text, clean = merged(tmp_path, ours, theirs)
    assert not clean
    assert text == BASE.replace("ci]", "ci, heap, vpn]").replace(
        "First.\n", "<<<<<<< ours\nMine.\n=======\nYours.\n>>>>>>> theirs\n"
    )


@pytest.mark.parametrize(
    "broken",
    ["---\ntags: [\n---\n", "---\n{tags: [a], b: 2}\n---\n", "---\ntags: [&a a, *a]\n---\n"],
)
def test_a_file_that_cannot_be_edited_is_left_to_git(broken: str) -> None:
    theirs = BASE.replace("ci]", "vpn]")
    assert sides(broken, theirs) == [broken, theirs, BASE]
    assert sides(theirs, broken) == [theirs, broken, BASE]


ITEMS = st.lists(st.sampled_from(["node", "ci", "C#", "1.0", "yes", "a: b", "über"]), unique=True)


@settings(deadline=None)
@given(ITEMS, ITEMS, ITEMS)
@pytest.mark.slow
def test_merged_lists_are_those_of_sets(
    base: list[str], ours: list[str], theirs: list[str]
) -> None:
    versions = [edits.set_keys(BASE.encode(), {"tags": tags}) for tags in (ours, theirs, base)]
    made = merge.with_merged_lists(*versions)
    added = set(ours) - set(base) | set(theirs) - set(base)
    for data in made:
        found = edits.keys_of(data)["tags"]
        assert set(found) == added | (set(base) & set(ours) & set(theirs))
        assert len(found) == len(set(found))
    assert made[0] == made[1] == made[2]


@pytest.mark.slow
def test_git_merges_with_the_driver_that_init_sets_up(tmp_path: Path) -> None:
    run("git", "init", "-q", "-b", "main", cwd=tmp_path)
    write(tmp_path / "lessons/vault.toml", "")
    note = write(tmp_path / "lessons/a.md", BASE)
    write(tmp_path / ".gitignore", "home/\n")
    git_hooks.set_up(tmp_path)
    commit(tmp_path)
    run("git", "switch", "-q", "-c", "other", cwd=tmp_path)
    write(note, BASE.replace("ci]", "ci, heap]").replace("First", "1st"))
    commit(tmp_path)
    run("git", "switch", "-q", "main", cwd=tmp_path)
    write(note, BASE.replace("ci]", "ci, vpn]").replace("Second", "2nd"))
    commit(tmp_path)
    ran = run("git", "merge", "-q", "-m", "both", "other", cwd=tmp_path)
    assert "warning" not in ran.err
    wanted = BASE.replace("ci]", "ci, vpn, heap]").replace("First", "1st").replace("Second", "2nd")
    assert note.read_text() == wanted


def test_the_driver_changes_no_file_through_a_link(tmp_path: Path) -> None:
    names = [write(tmp_path / f"in/{n}.md", BASE.replace("ci]", f"{n}]")) for n in range(3)]
    (tmp_path / "link.md").symlink_to(names[0])
    link = tmp_path / "link.md"
    ran = run("lessons", "merge-driver", link, *names[1:], cwd=tmp_path, check=False)
    assert (ran.code, ran.err[:7]) == (1, "Error: ")
    assert [name.read_text() for name in names] == [BASE.replace("ci]", f"{n}]") for n in range(3)]
