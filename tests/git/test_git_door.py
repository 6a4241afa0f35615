"""A repository may name programs in its settings, attributes and hooks. Nothing that we run in it
starts one: the list is walked, each entry with a program that leaves a mark."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.support.commands import BIN, run
from tests.support.files import commit, lesson_text, write
from vault_index import git
from vault_index.errors import NoGitError

# each setting names a program that leaves a mark; {mark} is the program
SETTINGS = {
    "filter.evil.clean": "{mark}",
    "filter.evil.smudge": "{mark}",
    "filter.e=v.il.process": "{mark}",
    "filter.evil.required": "true",
    "core.fsmonitor": "{mark}",
    "core.hooksPath": "{hooks}",
    "core.pager": "{mark}",
    "pager.log": "{mark}",
    "core.editor": "{mark}",
    "sequence.editor": "{mark}",
    "core.askPass": "{mark}",
    "core.sshCommand": "{mark}",
    "core.alternateRefsCommand": "{mark}",
    "core.gitProxy": "{mark}",
    "gpg.program": "{mark}",
    "gpg.openpgp.program": "{mark}",
    "gpg.x509.program": "{mark}",
    "gpg.ssh.program": "{mark}",
    "gpg.ssh.defaultKeyCommand": "{mark}",
    "log.showSignature": "true",
    "diff.external": "{mark}",
    "diff.evil.textconv": "{mark}",
    "diff.evil.command": "{mark}",
    "merge.evil.driver": "{mark}",
    "merge.lessons.driver": "{mark}",
    "credential.helper": "!{mark}",
    "credential.https://example.org.helper": "!{mark}",
    "interactive.diffFilter": "{mark}",
    "trailer.evil.command": "{mark}",
    "alias.log": "!{mark}",
    "alias.status": "!{mark}",
    "uploadpack.packObjectsHook": "{mark}",
    "hook.evil.command": "{mark}",
    "hook.evil.event": "reference-transaction",
    "protocol.ext.allow": "always",
    "protocol.allow": "always",
    "remote.origin.url": "ext::{mark}",
    "remote.origin.uploadpack": "{mark}",
    "remote.origin.receivepack": "{mark}",
    "remote.origin.promisor": "true",
    "submodule.recurse": "true",
    "submodule.sub.update": "!{mark}",
    "status.submoduleSummary": "true",
}
HOOKS = (
    *("pre-commit", "post-commit", "post-checkout", "post-merge", "post-rewrite", "pre-push"),
    *("post-index-change", "reference-transaction", "fsmonitor-watchman", "pre-auto-gc"),
)
SIGNED = """\
tree {tree}
parent {parent}
author Ada Lovelace <ada@example.org> 1924992000 +0000
committer Ada Lovelace <ada@example.org> 1924992000 +0000
gpgsig -----BEGIN PGP SIGNATURE-----
 iQ==
 -----END PGP SIGNATURE-----

signed
"""


@pytest.fixture
def marking(tmp_path: Path) -> tuple[Path, Path]:
    """A program, and the file that it leaves a line in."""
    marks = tmp_path / "marks"
    program = write(tmp_path / "bin" / "mark", f'#!/bin/sh\necho "$0 $*" >> {marks}\nexit 1\n')
    program.chmod(0o755)
    return program, marks


@pytest.fixture
def copied(tmp_path: Path, marking: tuple[Path, Path]) -> Path:
    return copied_vault(tmp_path / "copied", marking[0])


def copied_vault(root: Path, program: Path, message: str = "a change") -> Path:
    """Make a vault of lessons that came with `.git/config`, and with hooks and attributes for each."""
    run("git", "init", "-q", "-b", "main", root, cwd=root.parent)
    write(root / "lessons/vault.toml", "")
    write(root / "lessons/stage.md", lesson_text("Stage", "Run `deploy/stage.sh` with the VPN."))
    write(root / "deploy/stage.sh", "ssh stage\n")
    run("git", "init", "-q", root / "sub", cwd=root.parent)
    write(root / "sub/a", "a\n")
    commit(root / "sub")
    commit(root, message)
    (root / "deploy/stage.sh").unlink()  # which a lesson cites
    later = {f"GIT_{who}_DATE": "2030-01-01T00:00:00Z" for who in ("AUTHOR", "COMMITTER")}
    run("git", "commit", "-q", "-a", "-m", "no script", cwd=root, env=later)
    parent, tree = run("git", "rev-parse", "HEAD", "HEAD^{tree}", cwd=root).out.split()
    made = run("git", "hash-object", "-t", "commit", "-w", "--stdin", cwd=root,
               stdin=SIGNED.format(parent=parent, tree=tree)).out.strip()  # fmt: skip
    run("git", "reset", "-q", "--soft", made, cwd=root)
    write(root / ".gitattributes", '* filter=evil diff=evil merge=evil\n*.toml filter="e=v.il"\n')
    hooks = root / "hooks"
    for folder in (hooks, root / ".git/hooks", root / "sub/.git/hooks"):
        for name in HOOKS:
            write(folder / name, f"#!/bin/sh\nexec {program} {name}\n").chmod(0o755)
    for where in (root, root / "sub"):
        for key, value in SETTINGS.items():
            text = value.format(mark=program, hooks=hooks)
            run("git", "config", "--local", key, text, cwd=where)
    for file in (root / "lessons/stage.md", root / "sub/a"):  # git must look into it
        os.utime(file, (1_800_000_000, 1_800_000_000))
    return root


@pytest.mark.slow
def test_a_git_that_does_not_tell_its_settings_is_asked_nothing_else(
    copied: Path, marking: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = 'case "$*" in *--show-scope*) echo "error: unknown option" >&2; exit 129;; esac\n'
    write(tmp_path / "old/git", f'#!/bin/sh\n{old}exec {shutil.which("git")} "$@"\n').chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'old'}:{os.environ['PATH']}")
    for run_git in (git.ask, git.command):
        with pytest.raises(NoGitError, match="lessons needs git"):
            run_git(copied, "status")
    assert not marking[1].exists(), marking[1].read_text()


@pytest.mark.slow
def test_the_editor_is_the_users(copied: Path, marking: tuple[Path, Path]) -> None:
    run("git", "config", "--global", "core.editor", "true", cwd=copied)
    run("lessons", "edit", "stage", cwd=copied, env={"EDITOR": "", "VISUAL": ""})
    assert not marking[1].exists(), marking[1].read_text()


@pytest.mark.slow
def test_core_worktree_moves_no_work_tree(tmp_path: Path) -> None:
    outside = write(tmp_path / "outside" / "lessons" / "heap.md", "mine\n").parent.parent
    root = tmp_path / "copied"
    remote = tmp_path / "remote.git"
    run("git", "init", "-q", "--bare", "-b", "main", remote, cwd=tmp_path)
    run("git", "clone", "-q", remote, root, cwd=tmp_path)
    run("git", "switch", "-q", "-c", "main", cwd=root)
    write(root / "lessons/vault.toml", "")
    write(root / "lessons/heap.md", lesson_text("Heap", "Raise the heap."))
    commit(root)
    run("git", "push", "-q", "-u", "origin", "main", cwd=root)
    other = tmp_path / "other"
    run("git", "clone", "-q", remote, other, cwd=tmp_path)
    write(other / "lessons/heap.md", lesson_text("Heap", "Raise it further."))
    commit(other)
    run("git", "push", "-q", cwd=other)
    run("git", "config", "core.worktree", outside, cwd=root)
    run("lessons", "sync", cwd=root)
    assert (outside / "lessons/heap.md").read_text() == "mine\n"
    assert "further" in (root / "lessons/heap.md").read_text()


@pytest.mark.slow
def test_a_pre_push_hook_is_neither_run_nor_passed_over(
    tmp_path: Path, marking: tuple[Path, Path]
) -> None:
    program, marks = marking
    remote, root = tmp_path / "remote.git", tmp_path / "mine"
    run("git", "init", "-q", "--bare", "-b", "main", remote, cwd=tmp_path)
    run("git", "init", "-q", "-b", "main", root, cwd=tmp_path)
    run("git", "remote", "add", "origin", remote, cwd=root)
    write(root / "lessons/vault.toml", "")
    commit(root)
    write(root / ".git/hooks/pre-push", f"#!/bin/sh\nexec {program}\n").chmod(0o755)
    ran = run("lessons", "sync", cwd=root, check=False)
    assert ran.code == 1
    assert "pre-push" in ran.err
    assert not marks.exists()
    assert run("git", "for-each-ref", cwd=remote).out == ""


# what a setting may send a fetch or a push to: {mark} is the program, {root} the copied folder
REMOTES = [
    {"remote.origin.uploadpack": "{mark}"},
    {"remote.origin.receivepack": "{mark}"},
    {"include.path": "included"},
    {"remote.origin.vcs": "evil"},
    {"remote.origin.url": "evil.git"},
    {"remote.origin.url": "./lessons/../evil.git"},
    {"remote.origin.url": "../beside.git"},
    {"remote.origin.url": "file://{root}/evil.git"},
    {"remote.origin.url": "{root}/evil.git"},
    {"remote.origin.url": "/proc/self/cwd/evil.git"},
    {"remote.origin.url": "file:///./proc/self/cwd/evil.git"},
    {"remote.origin.url": "{root}/out/evil.git"},
    {"remote.origin.pushurl": "evil.git"},
    {"url.{root}/evil.git.insteadOf": "{team}"},
    {"url.{root}/evil.git.pushInsteadOf": "{team}"},
    {"branch.main.remote": "./evil.git"},
    {"remote.origin.url": "ext::{mark}"},
    {"url.ext::{mark}.insteadOf": "{team}", "protocol.ext.allow": "always"},
    {"core.sshCommand": "{mark}", "remote.origin.url": "ssh://127.0.0.1:1/team.git"},
    {"core.sshCommand": "{mark}", "remote.origin.pushurl": "127.0.0.1:team.git"},
    {"core.gitProxy": "{mark}", "remote.origin.url": "git://127.0.0.1:1/team.git"},
    {"remote.evil.promisor": "true", "remote.evil.url": ".", "remote.evil.uploadpack": "{mark}"},
    {"core.alternateRefsCommand": "{mark}"},
    {"gpg.program": "{mark}", "commit.gpgSign": "true", "push.gpgSign": "if-asked"},
    {"filter.evil.smudge": "{mark}", "filter.evil.clean": "{mark}"},
    {"merge.evil.driver": "{mark}"},
    {"sequence.editor": "{mark}", "rebase.autoSquash": "true"},
]


@pytest.fixture
def followed(tmp_path: Path, marking: tuple[Path, Path]) -> Path:
    """A vault with something to fetch, to rebase and to push, and remotes whose hooks leave a mark."""
    program, _ = marking
    team, root, other = tmp_path / "team.git", tmp_path / "mine", tmp_path / "other"
    run("git", "init", "-q", "--bare", "-b", "main", team, cwd=tmp_path)
    run("git", "clone", "-q", team, root, cwd=tmp_path)
    run("git", "switch", "-q", "-c", "main", cwd=root)
    write(root / "lessons/vault.toml", "")
    write(root / ".gitattributes", "* filter=evil merge=evil\n")
    write(root / ".gitignore", "evil.git\nout\n")
    write(root / "lessons/heap.md", "Raise the heap.\n\nTo 4 GB.\n\nOr more.\n")
    commit(root)
    run("git", "push", "-q", "-u", "origin", "main", cwd=root)
    run("git", "clone", "-q", team, other, cwd=tmp_path)
    write(other / "lessons/heap.md", "Raise it.\n\nTo 4 GB.\n\nOr more.\n")
    commit(other)
    run("git", "push", "-q", cwd=other)
    write(root / "lessons/heap.md", "Raise the heap.\n\nTo 4 GB.\n\nOr to 8.\n")
    commit(root)
    for evil in (root / "evil.git", tmp_path / "beside.git"):
        run("git", "clone", "-q", "--bare", team, evil, cwd=tmp_path)
        for name in ("pre-receive", "update", "post-update", "reference-transaction"):
            write(evil / "hooks" / name, f"#!/bin/sh\n{program} {name}\n").chmod(0o755)
    (root / "out").symlink_to(tmp_path)
    (tmp_path / "evil.git").symlink_to(root / "evil.git")
    write(root / ".git/included", f'[remote "origin"]\nuploadpack = {program}\n')
    return root


@pytest.mark.slow
@pytest.mark.parametrize("settings", REMOTES, ids=lambda each: " ".join(each))
def test_a_sync_starts_no_program_that_a_folder_brings_along(
    followed: Path, marking: tuple[Path, Path], tmp_path: Path, settings: dict[str, str]
) -> None:
    names = {"mark": str(marking[0]), "root": str(followed), "team": str(tmp_path / "team.git")}
    for key, value in settings.items():
        run("git", "config", "--local", key.format(**names), value.format(**names), cwd=followed)
    ran = run("lessons", "sync", cwd=followed, check=False)
    assert not marking[1].exists(), marking[1].read_text()
    assert ran.code == 0 or ran.err.startswith("Error: ")


@pytest.mark.slow
def test_a_remote_that_came_with_the_folder_is_refused(followed: Path) -> None:
    run("git", "remote", "set-url", "origin", "evil.git", cwd=followed)
    assert run("lessons", "sync", cwd=followed, check=False).err == (
        "Error: the remote evil.git may have come with this folder, and git would run its hooks\n"
        "Try: git remote -v, then git remote set-url origin URL: an address, or a full path elsewhere\n"
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "url", ["evil::ssh://example.org/x", "evil::/a/path", "evil://example.org/x", "e-v.il::x"]
)
@pytest.mark.parametrize("key", ["remote.origin.url", "remote.origin.pushurl"])
def test_a_remote_that_names_a_helper_program_is_refused(
    followed: Path, marking: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    url: str, key: str,
) -> None:  # fmt: skip
    for name in ("evil", "e-v.il"):
        shutil.copy(marking[0], tmp_path / f"git-remote-{name}")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    run("git", "config", "--local", key, url, cwd=followed)
    run("git", "config", "--local", "protocol.allow", "always", cwd=followed)
    ran = run("lessons", "sync", cwd=followed, check=False)
    assert not marking[1].exists(), marking[1].read_text()
    assert ran.err.startswith(f"Error: the remote {url} is reached by the program git-remote-e")


@pytest.mark.slow
def test_a_relative_remote_is_to_be_named_by_its_full_path(followed: Path, tmp_path: Path) -> None:
    run("git", "remote", "set-url", "origin", "../beside.git", cwd=followed)
    refused = run("lessons", "sync", cwd=followed, check=False)
    assert refused.err.startswith("Error: name the remote by a full path: ../beside.git may have")
    assert f"Try: git remote set-url origin {tmp_path}/beside.git, if it is yours" in refused.err


@pytest.mark.slow
@pytest.mark.parametrize(
    "url", ["ssh://127.0.0.1:1/x", "https://127.0.0.1:1/x", "git://127.0.0.1:1/x", "file://{team}"]
)
def test_an_ordinary_address_names_no_program(followed: Path, tmp_path: Path, url: str) -> None:
    url = url.format(team=tmp_path / "team.git")
    run("git", "remote", "set-url", "origin", url, cwd=followed)
    ran = run("lessons", "sync", cwd=followed, check=False)
    assert "is reached by the program" not in ran.err
    assert "git fetch: " in ran.err or ran.code == 0 or "different ways" in ran.err


def test_the_merge_driver_imports_nothing_from_the_work_tree(tmp_path: Path) -> None:
    from vault_index.git import run as programs

    setting = programs.GitSetting("local", "merge.lessons.driver", "touch proof")
    ((_, driver),) = programs.instead([setting], filters=True)
    write(tmp_path / "click.py", "open('proof', 'w')\n")
    for name in ("base", "ours", "theirs"):
        write(tmp_path / name, lesson_text("Heap", "Raise the heap."))
    words = driver
    for name, value in {"%O": "base", "%A": "ours", "%B": "theirs", "%L": "7"}.items():
        words = words.replace(name, value)
    run("sh", "-c", words, cwd=tmp_path)
    assert not (tmp_path / "proof").exists()
    assert str(BIN) in words


def test_helpers_of_the_user_stay() -> None:
    from vault_index.git.run import GitSetting, instead

    said = [
        GitSetting("global", "credential.helper", "store"),
        GitSetting("global", "credential.https://example.org.helper", "!tool"),
        GitSetting("local", "credential.helper", "!evil"),
    ]
    assert instead(said, filters=True) == [
        ("credential.helper", ""),
        ("credential.helper", "store"),
        ("credential.https://example.org.helper", "!tool"),
    ]
    assert instead(said[:2], filters=True) == []


def test_the_author_of_commits_is_named_as_git_names_him(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("git", "init", "-q", cwd=tmp_path)
    for key, value in (("user.name", "Ada"), ("author.name", "Countess"), ("", "Grace")):
        if key:
            monkeypatch.delenv("GIT_AUTHOR_NAME", raising=False)
            run("git", "config", key, value, cwd=tmp_path)
        else:
            monkeypatch.setenv("GIT_AUTHOR_NAME", value)
        write(tmp_path / "who", value)
        commit(tmp_path, value)
        said = run("git", "log", "-1", "--format=%an", cwd=tmp_path).out.strip()
        assert git.author_name(tmp_path) == said == value
