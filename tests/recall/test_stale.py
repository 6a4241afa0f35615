"""Lessons whose subject changed: their code is another, or a file that they cite is gone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime

import pytest

from tests.support.commands import run
from tests.support.files import commit, lesson_text, write
from vault_index.index import reconcile
from vault_index.recall import outdated
from vault_index.vault import Vault, open_vault

JANUARY, MARCH, JUNE = "2026-01-10", "2026-03-10", "2026-06-10"
POOL = "def open_pool(url):\n    return Pool(url)\n"
CODE = {"src/shop/pool.py": POOL, "deploy/staging.sh": "echo staging\n", "README.md": "# Shop\n"}


@pytest.fixture
def project(
    make_vault: Callable[..., Vault], monkeypatch: pytest.MonkeyPatch, text_only: None
) -> Vault:
    """A project with code, whose vault is still empty."""
    vault = make_vault({})
    for path, text in CODE.items():
        write(vault.root / path, text)
    commit_at(vault, JANUARY, monkeypatch)
    return open_vault(vault.root)


def commit_at(vault: Vault, day: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"):
        monkeypatch.setenv(name, f"{day}T12:00:00Z")
    commit(vault.root, f"of {day}")


def learned(vault: Vault, monkeypatch: pytest.MonkeyPatch, text: str, day: str = MARCH) -> None:
    """Write the lesson `it` and commit it on a day."""
    write(vault.lessons_dir / "it.md", lesson_text("It", text))
    commit_at(vault, day, monkeypatch)


def changed(
    vault: Vault, monkeypatch: pytest.MonkeyPatch, files: Mapping[str, str | None], day: str = JUNE
) -> None:
    for path, text in files.items():
        if text is None:
            (vault.root / path).unlink()
        else:
            write(vault.root / path, text)
    commit_at(vault, day, monkeypatch)


def found(vault: Vault) -> list[tuple[str, str]]:
    reconcile.sync(vault)
    return [(reason.kind, reason.why) for reason in outdated.reasons(vault)]


def test_a_file_that_is_gone(project: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    learned(project, monkeypatch, "Run `deploy/staging.sh` with the VPN.")
    assert found(project) == []
    changed(project, monkeypatch, {"deploy/staging.sh": None})
    assert found(project) == [("file", f"deploy/staging.sh was removed on {JUNE}")]


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "Run `scripts/never-there.sh`.",  # of another repository
        "See `path/to/file.py` and example.py.",
        "The pool is in pool.py.",  # of which there is another by now
        "Read the README.md.",
    ],
)
def test_files_that_are_no_reason(
    project: Vault, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    learned(project, monkeypatch, text)
    moved = {"src/shop/pool.py": None, "src/shop/db/pool.py": POOL}
    changed(project, monkeypatch, {**moved, "README.md": None})
    assert found(project) == []


def test_a_lesson_about_what_was_gone_before(
    project: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed(project, monkeypatch, {"deploy/staging.sh": None}, "2026-02-10")
    learned(project, monkeypatch, "There is no `deploy/staging.sh` any more.")
    assert found(project) == []


@pytest.mark.slow
def test_confirmed_lessons_hold_as_of_that_day(
    project: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    learned(project, monkeypatch, "Run `deploy/staging.sh` with the VPN.")
    changed(project, monkeypatch, {"deploy/staging.sh": None})
    reconcile.sync(project)
    assert found(project)
    run("lessons", "check", "--confirm", "it", cwd=project.root)
    assert found(project) == []
    text = (project.lessons_dir / "it.md").read_text()
    assert f"confirmed: {datetime.now(UTC).date().isoformat()}" in text


@pytest.mark.slow
def test_confirming_keeps_the_file_and_is_safe_twice(project: Vault) -> None:
    before = b"---\r\ntitle: Heap  # of node\r\ntags: [a]\r\n---\r\nRaise it.\r\n"
    before += b"\r\n## Lesson: Two\r\nText.\r\n"
    write(project.lessons_dir / "two.md", before)
    write(project.lessons_dir / "plain.md", "# Plain\n\nNo frontmatter.\n")
    day = datetime.now(UTC).date().isoformat().encode()
    first = run("lessons", "check", "--confirm", "two", "plain", cwd=project.root).out
    assert first.splitlines() == ["confirmed two", "confirmed plain"]
    after = (project.lessons_dir / "two.md").read_bytes()
    assert after == before.replace(b"[a]\r\n", b"[a]\r\nconfirmed: " + day + b"\r\n")
    assert (project.lessons_dir / "plain.md").read_bytes().startswith(b"---\nconfirmed: " + day)
    again = run("lessons", "check", "--confirm", "two#two", "two", cwd=project.root).out
    assert all("already" in line for line in again.splitlines())
    assert (project.lessons_dir / "two.md").read_bytes() == after
    assert run("lessons", "check", cwd=project.root).code == 0


def test_the_paths_that_a_text_cites() -> None:
    cited = outdated.cited_in(
        "See ./src/shop/pool.py:12 and https://example.org/a/b.html, not `<name>/x.py`.\n"
        "Run `deploy/staging.sh`; the README.md says so.\n"
    )
    assert cited == {"src/shop/pool.py", "deploy/staging.sh"}


TWO = "def first():\n    return 1\n\n\ndef second():\n    return 2\n"


@pytest.fixture
def anchored(project: Vault) -> Vault:
    """A project with a lesson about `second`, and one that cites a file."""
    head = "---\ntitle: Second\nanchors: [src/two.py#second]\n---\n"
    write(project.lessons_dir / "second.md", f"{head}It returns two.\n")
    write(project.lessons_dir / "vpn.md", lesson_text("VPN", "Run `staging.sh` with the VPN."))
    write(project.root / "src/two.py", TWO)
    commit(project.root, "base")
    reconcile.sync(project)
    return project


def touched(vault: Vault) -> list[tuple[str, str]]:
    return [(each.lesson, each.why) for each in outdated.touched(vault, "HEAD")]


def test_a_change_names_the_lessons_about_what_it_touches(anchored: Vault) -> None:
    assert touched(anchored) == []
    write(anchored.root / "src/two.py", f"# new\n{TWO.replace('1', '3')}")
    assert touched(anchored) == []  # another region
    write(anchored.root / "src/two.py", TWO.replace("2", "3"))
    (anchored.root / "deploy/staging.sh").unlink()
    assert touched(anchored) == [
        ("second", "it changes src/two.py#second"),
        ("vpn", "it removes staging.sh"),
    ]
    (anchored.root / "src/two.py").unlink()
    write(anchored.root / "tools/staging.sh", "echo staging\n")
    run("git", "add", "-A", cwd=anchored.root)
    assert touched(anchored) == [("second", "it removes src/two.py#second")]
