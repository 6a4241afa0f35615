"""Learning sees of a session, of commits and of files all that it may."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.learn.projects import a_project, a_vault, taken
from tests.support.commands import run
from tests.support.conversations import Conversation, about_redirects, about_retries
from tests.support.files import commit, write
from vault_index.config import load
from vault_index.errors import VaultError
from vault_index.journal import forget
from vault_index.journal.journal import Journal
from vault_index.learn import gather, timeline
from vault_index.learn.material import ADDED, CHANGED, MOVED, REMOVED, Material
from vault_index.transcripts import events, moments
from vault_index.vault import Vault

MakeVault = Callable[..., Vault]
FENCE = "<lessons>\n# Raise the heap of the build\n</lessons>"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return a_project(
        tmp_path / "shop",
        {"store/login.py": "redirect(path)\n", "store/old.py": "x = 1\n" * 9, "gone.py": "y\n"},
    )


def all_text(material: Material) -> str:
    return "\n".join([*material.texts, material.diff, *map(str, material.changes)])


def said(material: Material) -> list[str]:
    return [each.text for each in material.moments if each.kind == moments.PERSON]


def test_a_session_that_failed_and_passed(project: Path) -> None:
    vault = a_vault(project)
    talk = about_redirects(project, began=datetime.now(UTC) + timedelta(seconds=1))
    write(project / "store/login.py", "redirect(path + query)\n")
    material = gather.session(vault, taken(talk))
    assert said(material) == ["The login redirect loses the query string, please correct that"]
    assert [*moments.repairs(material.moments)] == [(1, 3)]
    assert material.moments[1].text == "FAILED test_redirect_keeps_query"
    assert material.moments[2].text == "-redirect(path)\n+redirect(path + query)"
    assert [(change.path, change.kind) for change in material.changes] == [
        ("store/login.py", CHANGED)
    ]
    assert "-redirect(path)\n+redirect(path + query)\n" in material.diff
    assert (material.scope, material.session, material.project) == ("session", talk.id, "shop")
    assert [(each.kind, each.about) for each in material.moments] == [
        (moments.PERSON, ""),
        (moments.FAILED, "pytest tests/test_login.py"),
        (moments.EDIT, "store/login.py"),
        (moments.RAN, "pytest tests/test_login.py"),
        (moments.AGENT, ""),
    ]
    assert material.digest


def test_a_correction_and_what_it_answers(project: Path) -> None:
    vault = a_vault(project)
    material = gather.session(vault, taken(about_retries(project)))
    asked, told, corrected, edited, _ = material.moments
    assert (asked.is_correction, corrected.is_correction) == (False, True)
    assert "Three retries with exponential backoff" in told.text
    assert edited.about == "store/upload.py"


def test_the_last_session_of_this_project(project: Path, tmp_path: Path) -> None:
    vault = a_vault(project)
    other = a_project(tmp_path / "other")
    now = datetime.now(UTC)
    first = taken(about_redirects(project, began=now - timedelta(hours=3)))
    assert gather.session(vault, "last").session == first
    last = taken(about_retries(project, began=now - timedelta(hours=2)))
    taken(about_redirects(other, began=now - timedelta(hours=1)))
    assert gather.session(vault, "last").session == last
    assert gather.session(vault, first[:8]).session == first
    assert gather.session(vault, "last", other).project == "other"


def test_a_session_that_is_nowhere_or_not_recorded_is_an_error(project: Path) -> None:
    vault = a_vault(project)
    for name in ("last", "00000000"):
        with pytest.raises(VaultError) as raised:
            gather.session(vault, name)
        assert raised.value.hint
    talk = about_redirects(project)
    with pytest.raises(VaultError, match="not recorded"):
        gather.session(vault, talk.id)


def test_what_is_excluded_later_is_not_learned_from(project: Path) -> None:
    vault = a_vault(project)
    talk = about_redirects(project)
    talk.asks("Now look at plans/launch.md and say when we begin")
    talk.edits("plans/launch.md", "June", "the 4th of May")
    talk.edits("store/old.py", "x = 1", "x = 2")
    talk.runs("cat plans/launch.md && false", "We begin on the 4th of May", failed=True)
    talk.says("I wrote the day of the launch into plans/launch.md.")
    session = taken(talk)
    assert "plans/launch.md" in all_text(gather.session(vault, session))
    write(vault.config.home / "config.toml", '[journal]\nexclude = ["plans/*"]\n')
    material = gather.session(Vault(project, load(project / "lessons/vault.toml")), session)
    text = all_text(material)
    assert "launch.md" not in text
    assert "4th of May" not in text
    assert "Now look at [left out] and say when we begin" in text
    assert {each.about for each in material.moments} >= {"store/login.py", "store/old.py"}


def test_without_a_repository_the_edits_are_the_changes(
    tmp_path: Path, make_vault: MakeVault
) -> None:
    folder = tmp_path / "bare"
    folder.mkdir()
    material = gather.session(make_vault(), taken(about_redirects(folder)))
    (change,) = material.changes
    assert (change.path, change.lines_added, change.lines_removed) == ("store/login.py", 1, 1)


def test_what_a_person_forgot_is_not_learned_from(project: Path) -> None:
    vault = a_vault(project)
    session = taken(about_retries(project))
    forget.forget(Journal(vault.config), matching="No, use five retries")
    material = gather.session(vault, session)
    assert said(material) == ["How many times should the uploader retry?"]
    assert not [each for each in material.moments if "RETRIES" in each.text or "five" in each.text]


def test_the_diff_is_since_the_session_began(project: Path) -> None:
    vault = a_vault(project)
    write(project / "before.py", "print('before')\n")
    now = datetime.now(UTC)
    commit(project, "Fix what was before", now + timedelta(seconds=10))
    talk = about_redirects(project, began=now + timedelta(seconds=10))  # says nothing for 10
    write(project / "committed.py", "print('committed')\n")
    run("git", "mv", "store/old.py", "store/new.py", cwd=project)
    run("git", "rm", "-q", "gone.py", cwd=project)
    commit(project, "Improve the store\n\nBecause it was slow.", now + timedelta(seconds=60))
    write(project / "store/login.py", "redirect(path + query)\n")
    write(project / "untracked.py", "print('untracked')\n")
    material = gather.session(vault, taken(talk))
    kinds = {change.path: change.kind for change in material.changes}
    assert kinds == {
        "committed.py": ADDED,
        "gone.py": REMOVED,
        "store/login.py": CHANGED,
        "store/new.py": MOVED,
        "untracked.py": ADDED,
    }
    assert "Improve the store" in material.subjects
    assert "Fix what was before" not in material.subjects
    assert "+print('untracked')" in material.diff


def test_ignored_paths(project: Path) -> None:
    write(project / ".gitignore", "ignored/\n*.secret\n")
    vault = a_vault(project)
    write(vault.config.home / "config.toml", '[learn]\nexclude = ["private/*"]\n')
    vault = Vault(project, load(project / "lessons/vault.toml"))
    talk = about_redirects(project, began=datetime.now(UTC) + timedelta(seconds=1))
    names = (
        *("node_modules/a/index.js", "vendor/b/b.go", "ignored/c.py", "d.secret", "uv.lock"),
        *("package-lock.json", "sub/yarn.lock", "go.sum", "Cargo.lock", "app.min.js", "x_pb2.py"),
        *("private/notes.py", "lessons/devops/heap.md", ".vault_index/x.json", "picture.png"),
    )
    for name in names:
        write(project / name, f"IGNORED = '{name}'\n")
    write(project / "generated.py", "# Code generated by a tool. DO NOT EDIT.\nIGNORED = 1\n")
    write(project / "minified.js", f"IGNORED={'x' * 5000}\n")
    write(project / "binary.bin", b"IGNORED\0\1")
    write(project / "kept.py", "KEPT = 1\n")
    os.mkfifo(project / "pipe.py")
    (project / "link.py").symlink_to("/etc/passwd")
    material = gather.session(vault, taken(talk))
    assert "IGNORED" not in material.diff
    assert "root:" not in material.diff
    # of a link the diff has its target's name
    assert [change.path for change in material.changes] == ["kept.py", "link.py"]
    assert "+KEPT = 1" in material.diff


def test_what_we_injected_does_not_come_back(project: Path) -> None:
    vault = a_vault(project)
    talk = Conversation(project, "fenced", began=datetime.now(UTC) + timedelta(seconds=1))
    talk.asks(f"Make the build pass\n{FENCE}")
    talk.says(f"The lesson says:\n{FENCE}\nSo I raise it.")
    talk.edits("a.py", "x = 1", f"x = 2\n{FENCE}")
    write(project / "notes.txt", f"{FENCE}\nafter\n")
    material = gather.session(vault, taken(talk))
    assert "Raise the heap" not in all_text(material)
    assert "+after" in material.diff
    assert events.without_own_text(material.diff) == material.diff


def test_commits(project: Path) -> None:
    vault = a_vault(project)
    write(project / "a.py", "a = 1\n")
    commit(project, "Add a\n\nIt was missing because nobody wrote it.")
    write(project / "b.py", "b = 1\n")
    commit(project, "Fix b")
    head = gather.commits(vault, "HEAD")
    assert (head.scope, head.subjects) == ("commit", ("Fix b",))
    assert [change.path for change in head.changes] == ["b.py"]
    both = gather.commits(vault, "HEAD~2..HEAD")
    assert both.subjects == ("Add a", "Fix b")
    messages = [each.text for each in both.moments if each.kind == timeline.COMMIT]
    assert "It was missing because nobody wrote it." in messages[0]
    assert ("+a = 1", "a.py") in [(each.text, each.about) for each in both.moments]
    first = gather.commits(vault, "HEAD~2")
    assert "store/login.py" in [change.path for change in first.changes]
    for revisions in ("nothing", "--output=x", "HEAD...HEAD", "nothing..HEAD"):
        with pytest.raises(VaultError) as raised:
            gather.commits(vault, revisions)
        assert raised.value.hint
