"""Authors of a lesson, and the vault as it was."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import run
from tests.support.files import MakeVault, commit, lesson_text, write
from tests.support.trust import HEAP, PROMPT
from vault_index.embed.cache import FILE
from vault_index.index import reconcile
from vault_index.retrieval import query
from vault_index.share import history
from vault_index.vault import Vault, open_vault

# provenance


def test_log_tells_who_when_and_why_and_follows_a_rename(make_vault: MakeVault) -> None:
    vault = make_vault({"heap.md": HEAP})
    commit(vault.root, "what the CI taught us")
    (vault.lessons_dir / "devops").mkdir()
    run("git", "mv", "lessons/heap.md", "lessons/devops/heap.md", cwd=vault.root)
    commit(vault.root, "into its folder")
    write(vault.lessons_dir / "devops/heap.md", HEAP + "More.\n")
    run("git", "add", "-A", cwd=vault.root)
    run("git", "commit", "-q", "-m", "more", "--author", "Bob <bob@example.org>", cwd=vault.root)
    edits = run("lessons", "log", "heap", "--json", cwd=vault.root).json
    assert [(one["who"], one["why"]) for one in edits] == [
        ("Bob", "more"),
        ("Ada Lovelace", "into its folder"),
        ("Ada Lovelace", "what the CI taught us"),
    ]
    line = run("lessons", "log", "heap", cwd=vault.root).out.splitlines()[0]
    assert line == f"{edits[0]['commit'][:10]}  {edits[0]['when'][:10]}  Bob: more"


def test_log_of_a_section_has_the_commits_that_changed_it(make_vault: MakeVault) -> None:
    vault = make_vault({"a.md": "## Lesson: One\nFirst.\n\n## Lesson: Two\nSecond.\n"})
    assert run("lessons", "log", "a#one", "--json", cwd=vault.root).json == []
    commit(vault.root, "both")
    write(vault.lessons_dir / "a.md", "## Lesson: One\nFirst.\n\n## Lesson: Two\nChanged.\n")
    commit(vault.root, "the second")
    edits = run("lessons", "log", "a#one", "--json", cwd=vault.root).json
    assert [one["why"] for one in edits] == ["both"]
    edits = run("lessons", "log", "a#two", "--json", cwd=vault.root).json
    assert [one["why"] for one in edits] == ["the second", "both"]


# time


@pytest.mark.slow
def test_a_lesson_is_shown_as_of_a_commit_a_tag_and_a_date(make_vault: MakeVault) -> None:
    vault = make_vault({"old.md": lesson_text("Old", "Zyzzyva of old.")})
    old = {"GIT_AUTHOR_DATE": "2026-01-15T12:00:00Z", "GIT_COMMITTER_DATE": "2026-01-15T12:00:00Z"}
    run("git", "add", "-A", cwd=vault.root)
    run("git", "commit", "-q", "-m", "old", cwd=vault.root, env=old)
    run("git", "tag", "v1", cwd=vault.root)
    (vault.lessons_dir / "old.md").unlink()
    write(vault.lessons_dir / "new.md", lesson_text("New", "Zyzzyva of new."))
    commit(vault.root, "new")

    for revision in ("v1", "HEAD~1", "2026-01-31"):
        shown = run("lessons", "show", "old", "--at", revision, cwd=vault.root).out
        assert "lessons/old.md · Ada Lovelace, 2026-01-15" in shown
    assert run("lessons", "show", "new", "--at", "HEAD", cwd=vault.root).out.startswith("New")
    assert run("git", "status", "--porcelain", cwd=vault.root).out == ""
    for revision in ("no-such-tag", "2025-01-01", "--output=x"):
        ran = run("lessons", "show", f"--at={revision}", "x", cwd=vault.root, check=False)
        assert ran.err.startswith(f"Error: no commit {revision!r}\n")


@pytest.mark.slow
def test_show_at_reads_the_one_file_and_embeds_nothing(
    make_vault: MakeVault, monkeypatch: pytest.MonkeyPatch
) -> None:
    vault = make_vault(
        {
            "old.md": lesson_text("Old", "Zyzzyva of old."),
            "quoted.md": '---\ntitle: "A \\"quoted\\" name"\n---\nText.\n',
            **{f"other-{n}.md": lesson_text(f"Other {n}", f"Text {n}.") for n in range(5)},
        }
    )
    commit(vault.root, "all")
    read: list[int] = []
    write_past = history.at

    @contextmanager
    def counting(*args: Any) -> Iterator[tuple[Vault, str]]:
        with write_past(*args) as (past, revision):
            read.append(len(past.files()[0]))
            assert past.embedder is None or not args[2:]
            yield past, revision

    monkeypatch.setattr(history, "at", counting)
    for name in ("old", "Old", "lessons/old"):
        assert "Zyzzyva" in run("lessons", "show", name, "--at", "HEAD", cwd=vault.root).out
    assert read == [1, 1, 1]
    shown = run("lessons", "show", 'A "quoted" name', "--at", "HEAD", cwd=vault.root).out
    assert shown.startswith('A "quoted" name')  # the file has it in other letters: all are read


@pytest.mark.parametrize("name", ["..", ".git"])
def test_a_tree_that_git_would_not_check_out_is_refused(make_vault: MakeVault, name: str) -> None:
    vault = make_vault({"a.md": HEAP})

    def made(*words: str, stdin: str) -> str:
        return run("git", *words, cwd=vault.root, stdin=stdin).out.strip()

    blob = made("hash-object", "-w", "--stdin", stdin="of others\n")
    tree = made("mktree", stdin=f"100644 blob {blob}\toutside.md\n")
    for folder in (name, "lessons"):
        tree = made("mktree", stdin=f"040000 tree {tree}\t{folder}\n")
    evil = made("commit-tree", tree, "-m", "evil", stdin="")
    ran = run("lessons", "show", "--at", evil, "heap", cwd=vault.root, check=False)
    assert ran.err.startswith(f"Error: no file may have this name: {name}/outside.md\n")
    assert not list(vault.index_dir.rglob("outside.md"))


# vectors are shared


@pytest.mark.slow
def test_a_new_clone_of_a_known_vault_embeds_nothing(
    make_vault: MakeVault, with_model: Path, tmp_path: Path
) -> None:
    vault = make_vault({"a.md": HEAP, "b.md": lesson_text("B", "Other text.")})
    commit(vault.root)
    assert reconcile.sync(vault).embedded == 2
    run("git", "clone", "-q", vault.root, tmp_path / "clone", cwd=tmp_path)
    run("git", "worktree", "add", "-q", tmp_path / "tree", cwd=vault.root)
    for place in ("clone", "tree"):
        again = open_vault(tmp_path / place)
        stats = reconcile.sync(again)
        assert (stats.added, stats.embedded) == (2, 0)
        ours, theirs = (query.find(one, PROMPT)[0] for one in (vault, again))
        assert ours.lesson_id == theirs.lesson_id
        assert ours.score == pytest.approx(theirs.score)
    assert (with_model / FILE).stat().st_mode & 0o777 == 0o600
    assert reconcile.rebuild(vault).embedded == 2, "who asks for a rebuild trusts no cache"
