"""`lessons uninstall --all`: what is here is listed, and then gone; lessons stay."""

from __future__ import annotations

import shutil

import pytest

from tests.support.commands import run
from tests.support.files import MakeVault, lesson_text
from vault_index.entrypoints import agents


@pytest.mark.slow
def test_everything_is_listed_and_removed(make_vault: MakeVault) -> None:
    vault = make_vault({"ops/heap.md": lesson_text("Raise the heap", "Raise it.")})
    home, root = vault.config.home, vault.root
    run("git", "init", "-q", cwd=root)
    run("lessons", "init", cwd=root)
    for agent in ("claude", "codex"):
        run("lessons", "install", agent, cwd=root)
    run("lessons", "index", cwd=root)
    refused = run("lessons", "uninstall", "--all", cwd=root, check=False)
    assert (refused.code, refused.err.splitlines()) == (
        1, ["Error: nothing is removed without asking", "Try: pass --yes"]
    )  # fmt: skip
    listed = refused.out.splitlines()
    for agent in ("claude", "codex"):
        assert f"{agents.AGENTS[agent].place(None)}: the hooks for {agent}" in listed
    assert f"{root / '.githooks/pre-commit'}: a git hook" in listed
    assert agents.AGENTS["claude"].runs_hooks(agents.AGENTS["claude"].place(None))
    done = run("lessons", "uninstall", "--all", "--purge", "-y", cwd=root)
    assert done.out.splitlines()[-1] == "removed; lessons stay"
    assert not home.exists()
    assert not (root / ".vault_index").exists()
    assert not list((root / ".githooks").glob("*"))
    assert not agents.AGENTS["codex"].runs_hooks(agents.AGENTS["codex"].place(None))
    for key in ("core.hooksPath", "merge.lessons.driver", "lessons.program"):
        assert run("git", "config", key, cwd=root, check=False).out == ""
    assert (root / "lessons/ops/heap.md").is_file()
    assert "nothing of this product is here\n" in run("lessons", "uninstall", "--all", cwd=root).out


def test_what_is_in_the_repository_stays_for_the_team(
    make_vault: MakeVault, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = make_vault({"heap.md": lesson_text("Heap", "Raise it.")}).root
    (root / ".vault_index").mkdir()
    monkeypatch.setattr(shutil, "rmtree", lambda at: (at / "gone").stat())
    run("lessons", "init", root, cwd=root)
    run("git", "add", "-A", cwd=root)
    run("git", "commit", "-q", "--no-verify", "-m", "start", cwd=root)
    done = run("lessons", "uninstall", "--all", "-y", cwd=root)
    assert f"warning: left: {root / '.vault_index'}: the index: " in done.err
    assert "note: .githooks, .gitattributes and .gitignore stay: your repository" in done.err
    assert run("git", "status", "--porcelain", cwd=root).out == ""
