"""`lessons` is on the PATH but does not run: git merges and commits as if it were not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.commands import PATH, run
from tests.support.files import lesson_text, write
from tests.support.planted import SECRETS
from vault_index.share import git_hooks

TRACEBACK = "echo 'Traceback (most recent call last):' >&2\necho 'ImportError: no click' >&2\n"
BROKEN = {
    "moved environment": "#!/nowhere/bin/python\n",
    "not found": "#!/bin/sh\nexit 127\n",
    "traceback": f"#!/bin/sh\n{TRACEBACK}exit 1\n",
    "usage": "#!/bin/sh\nexit 2\n",
    "killed": "#!/bin/sh\nkill -9 $$\n",
    "half an upgrade": "#!/usr/bin/env python3\nfrom vault_index.nowhere import main\n",
}
OTHER = "#!/bin/sh\nexit 0\n"  # another program of that name


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    root = tmp_path / "repo"
    run("git", "init", "-q", "-b", "main", root, cwd=tmp_path)
    write(root / "lessons/vault.toml", "")
    write(root / "lessons/a.md", "".join(f"line {n}\n" for n in range(9)))
    git_hooks.set_up(root)
    save(root, "start", "--no-verify")
    return root


def save(root: Path, message: str, *options: str) -> str:
    run("git", "add", "-A", cwd=root)
    return run("git", "commit", "-q", "-m", message, *options, cwd=root).err


def put_on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    for name in ("lessons", "lessons-hook"):
        write(tmp_path / "bin" / name, program).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")


def diverge(root: Path, ours: str, theirs: str) -> None:
    """Change line `ours` on main and line `theirs` on a branch."""
    text = (root / "lessons/a.md").read_text()
    run("git", "switch", "-q", "-c", "other", cwd=root)
    write(root / "lessons/a.md", text.replace(theirs, f"theirs {theirs}"))
    save(root, "theirs", "--no-verify")
    run("git", "switch", "-q", "main", cwd=root)
    write(root / "lessons/a.md", text.replace(ours, f"ours {ours}"))
    save(root, "ours", "--no-verify")


@pytest.mark.slow
@pytest.mark.parametrize("program", [*BROKEN.values(), OTHER], ids=[*BROKEN, "another"])
def test_a_clean_merge_is_clean(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    diverge(repo, "line 1", "line 7")
    put_on_path(tmp_path, monkeypatch, program)
    ran = run("git", "merge", "-q", "-m", "both", "other", cwd=repo)
    text = (repo / "lessons/a.md").read_text()
    assert "ours line 1" in text
    assert "theirs line 7" in text
    is_told = "git merges lists by line" in ran.err + ran.out
    assert is_told == (program != OTHER)
    assert "Traceback" not in ran.err + ran.out


@pytest.mark.slow
def test_a_conflict_has_both_sides_and_markers(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(repo / ".gitattributes", f"{git_hooks.ATTRIBUTES} conflict-marker-size=10\n")
    save(repo, "longer markers", "--no-verify")
    diverge(repo, "line 4", "line 4")
    put_on_path(tmp_path, monkeypatch, BROKEN["traceback"])
    assert run("git", "merge", "-q", "other", cwd=repo, check=False).code == 1
    assert (
        "<<<<<<<<<< ours\nours line 4\n==========\ntheirs line 4\n>>>>>>>>>> theirs\n"
        in (repo / "lessons/a.md").read_text()
    )


@pytest.mark.parametrize("program", BROKEN.values(), ids=BROKEN)
def test_a_commit_passes_with_a_line_of_warning(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    put_on_path(tmp_path, monkeypatch, program)
    write(repo / "lessons/b.md", lesson_text("B", "Text."))
    (line,) = (one for one in save(repo, "b").splitlines() if "Killed" not in one)
    assert line.startswith("lessons: warning: lessons were not checked, status ")


@pytest.mark.slow
def test_what_is_found_still_stops_a_commit_and_a_merge(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", PATH)
    write(repo / "lessons/b.md", lesson_text("B", SECRETS[0]))
    run("git", "add", "-A", cwd=repo)
    ran = run("git", "commit", "-q", "-m", "b", cwd=repo, check=False)
    assert ran.code == 1
    assert "lessons/b.md:4: secret: an AWS key" in ran.err
    write(repo / "lessons/b.md", lesson_text("B", "Clean."))
    write(repo / "lessons/vault.toml", "[")
    run("git", "add", "-A", cwd=repo)
    assert run("git", "commit", "-q", "-m", "settings", cwd=repo, check=False).code == 1
    run("git", "reset", "-q", "--hard", cwd=repo)
    diverge(repo, "line 4", "line 4")
    ran = run("git", "merge", "-q", "other", cwd=repo, check=False)
    assert "git merges lists by line" not in ran.err + ran.out
    assert (repo / "lessons/a.md").read_text().count("<<<<<<<") == 1
