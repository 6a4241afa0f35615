"""Secrets do not leave: whatever form the file has, in every version that is pushed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.share.test_sync_keeps import git, pair, save
from tests.support.commands import run
from tests.support.files import lesson_text, write
from tests.support.planted import SECRETS
from vault_index import check
from vault_index.errors import VaultError
from vault_index.share import remote
from vault_index.vault import open_vault

__all__ = ["pair"]
SECRET = SECRETS[0]
LESSON = lesson_text("B", SECRET)
SKILL = f"---\nname: deploy\ndescription: Deploys.\n---\nUse {SECRET}\n"


def _link(clone: Path) -> None:
    (clone / "lessons/b.md").symlink_to("a.md")
    save(clone, "a link")
    (clone / "lessons/b.md").unlink()
    write(clone / "lessons/b.md", LESSON)


def _link_that_is_public(clone: Path) -> None:
    (clone / "lessons/b.md").symlink_to("a.md")
    save(clone, "a link")
    git(clone, "push", "-q")
    (clone / "lessons/b.md").unlink()
    write(clone / "lessons/b.md", LESSON)


def _renamed(clone: Path) -> None:
    write(clone / "notes.txt", LESSON)
    save(clone, "notes")
    git(clone, "mv", "notes.txt", "lessons/b.md")


def _odd_name(clone: Path) -> None:
    (clone / b"lessons/caf\xe9.md".decode("utf-8", "surrogateescape")).write_text(LESSON)


def _message(clone: Path) -> None:
    write(clone / "lessons/b.md", "Text.\n")
    run("git", "add", "-A", cwd=clone)
    git(clone, "commit", "-q", "-m", f"Subject\n\nThe key is {SECRET}")


def _file(path: str, text: str | bytes, clone: Path) -> None:
    write(clone / path, text)


FILES: dict[str, tuple[str, str | bytes]] = {
    "not UTF-8": ("lessons/b.md", b"caf\xe9\n" + LESSON.encode()),
    "UTF-16": ("lessons/b.md", LESSON.encode("utf-16")),
    "binary": ("lessons/b.md", b"\0\1\2\n" + LESSON.encode()),
    "long": ("lessons/b.md", "word " * 20_000 + SECRET + "\n"),
    "skill": ("skills/deploy/SKILL.md", SKILL),
    "project skill": (".claude/skills/deploy/SKILL.md", SKILL),
    "nested project skill": ("packages/web/.claude/skills/deploy/SKILL.md", SKILL),
    "settings": ("lessons/vault.toml", f"# {SECRET}\n"),
}
Leak = Callable[[Path], object]
FORMS: dict[str, Leak] = {
    "link": _link,
    "link that is public": _link_that_is_public,
    "renamed": _renamed,
    "odd name": _odd_name,
    **{name: partial(_file, path, text) for name, (path, text) in FILES.items()},
}


@pytest.mark.slow
@pytest.mark.parametrize("leak", [*FORMS.values(), _message], ids=[*FORMS, "message"])
def test_no_secret_is_pushed(pair: tuple[Path, Path], leak: Leak) -> None:
    clone, _ = pair
    leak(clone)
    run("git", "add", "-A", cwd=clone)
    run("git", "commit", "-q", "-m", "a change", cwd=clone, check=False)
    git(clone, "revert", "--no-edit", "HEAD")
    before = git(clone, "ls-remote", "origin")
    with pytest.raises(VaultError, match=r"not pushed: commit .*an AWS key"):
        remote.sync(open_vault(clone))
    assert git(clone, "ls-remote", "origin") == before


@pytest.mark.slow
@pytest.mark.parametrize("leak", FORMS.values(), ids=FORMS)
def test_no_secret_is_committed(pair: tuple[Path, Path], leak: Leak) -> None:
    clone, _ = pair
    leak(clone)
    run("git", "add", "-A", cwd=clone)
    staged = [one for found in check.staged(open_vault(clone)) for one in check.of_text(found)]
    assert "secret" in {one.rule for one in staged}
    if leak is _odd_name:
        return  # the vault has no such file
    everything = check.everything(open_vault(clone))
    found = [one for candidate in everything for one in check.of_text(candidate)]
    assert {one.path for one in found if one.rule == "secret"} == {
        one.path for one in staged if one.rule == "secret"
    }


def test_in_a_merge_commit_and_below_a_replacement(pair: tuple[Path, Path]) -> None:
    clone, _ = pair
    git(clone, "switch", "-q", "-c", "side")
    write(clone / "lessons/b.md", "Text.\n")
    save(clone, "side")
    git(clone, "switch", "-q", "main")
    git(clone, "merge", "-q", "--no-ff", "--no-commit", "side")
    write(clone / "lessons/b.md", LESSON)
    save(clone, "both")
    for setting in ("log.diffMerges=off", "log.showRoot=false", "diff.renames=copies"):
        git(clone, "config", *setting.split("="))
    git(clone, "replace", "HEAD:lessons/b.md", "HEAD:lessons/a.md")
    with pytest.raises(VaultError, match=r"lessons/b.md:4: an AWS key"):
        remote.sync(open_vault(clone))


def test_a_skill_may_give_orders_and_be_named(pair: tuple[Path, Path]) -> None:
    clone, _ = pair
    text = "---\nname: deploy\ndescription: Deploys.\n---\nYou must always run make deploy.\n"
    for folder in ("skills", ".claude/skills"):
        write(clone / folder / "deploy/SKILL.md", text)
    vault = open_vault(clone)
    named = [str(clone / "skills/deploy/SKILL.md"), str(clone / ".claude/skills")]
    found = check.named(vault, named)
    assert [one.shown for one in found] == [
        "skills/deploy/SKILL.md",
        ".claude/skills/deploy/SKILL.md",
    ]
    assert [one for candidate in found for one in check.of_text(candidate)] == []
    assert [one.path for one in check.named(vault, [str(vault.lessons_dir / "a.md")])] == ["a.md"]
    assert len(check.named(vault, [str(clone)])) == len(check.everything(vault)) == 5
