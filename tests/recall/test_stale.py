"""Lessons that need another look: those that only cost, and those whose subject is gone."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.support.commands import run
from tests.support.files import commit, lesson_text, write
from vault_index.index import reconcile
from vault_index.recall import citations, stale
from vault_index.vault import Vault, open_vault

JANUARY, MARCH, JUNE = "2026-01-10", "2026-03-10", "2026-06-10"
LONG = "".join(f"line {number} of the file\n" for number in range(40))
CODE = {
    "src/shop/pool.py": "def open_pool(url):\n    return Pool(url)\n\n\nclass PoolSettings:\n    pass\n",
    "src/shop/cli.py": "from shop.pool import open_pool\n",
    "deploy/staging.sh": "echo staging\n",
    "docs/limits.txt": LONG,
    "requirements.txt": "lancedb==0.40.1\nclick==8.1.0\n",
    "README.md": LONG,
}


@pytest.fixture
def project(make_vault: Callable[..., Vault], monkeypatch: pytest.MonkeyPatch) -> Vault:
    """A project with code, whose vault is still empty."""
    monkeypatch.setenv("LESSONS_EMBEDDER", "none")
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
    return [(reason.kind, reason.why) for reason in stale.reasons(vault)]


def test_a_file_that_is_gone(project: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    learned(project, monkeypatch, "Run `deploy/staging.sh` with the VPN.")
    assert found(project) == []
    changed(project, monkeypatch, {"deploy/staging.sh": None})
    assert found(project) == [
        ("file", f"deploy/staging.sh is gone since {MARCH}, when it was written")
    ]


def test_a_file_that_moved(project: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    learned(project, monkeypatch, "Connections are made in src/shop/pool.py alone.")
    changed(
        project,
        monkeypatch,
        {"src/shop/pool.py": None, "src/shop/db/connections.py": CODE["src/shop/pool.py"]},
    )
    (reason,) = found(project)
    assert reason[0] == "file"
    assert reason[1].endswith("it is src/shop/db/connections.py now")


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
    moved = {"src/shop/pool.py": None, "src/shop/db/pool.py": CODE["src/shop/pool.py"]}
    changed(project, monkeypatch, {**moved, "README.md": None})
    assert found(project) == []


def test_a_lesson_about_what_was_gone_before(
    project: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed(project, monkeypatch, {"deploy/staging.sh": None}, "2026-02-10")
    learned(project, monkeypatch, "There is no `deploy/staging.sh` any more.")
    changed(project, monkeypatch, {"src/shop/cli.py": "pass\n"})
    assert found(project) == []


@pytest.mark.slow
def test_a_name_that_is_gone(project: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "Use `open_pool(url)`; `PoolSettings` has its limits. `NODE_OPTIONS` is not ours."
    learned(project, monkeypatch, text)
    changed(project, monkeypatch, {"src/shop/pool.py": "class PoolSettings:\n    pass\n"})
    assert found(project) == []  # another module still has it
    changed(project, monkeypatch, {"src/shop/cli.py": "pass\n"})
    assert found(project) == [
        ("name", f"open_pool is gone from the code since {MARCH}, when it was written")
    ]


def test_a_name_that_moved_or_is_not_committed(
    project: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    learned(project, monkeypatch, "Use `open_pool(url)`.")
    changed(project, monkeypatch, {"src/shop/pool.py": "x = 1\n", "src/shop/cli.py": "y = 1\n"})
    assert [kind for kind, _ in found(project)] == ["name"]
    write(project.root / "src/shop/cli.py", "open_pool = 2\n")
    assert found(project) == []


def test_a_version_that_is_another(project: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    learned(
        project, monkeypatch, "With `lancedb 0.40` close the table. Before click 7.0 it crashed."
    )
    changed(project, monkeypatch, {"requirements.txt": "lancedb==0.40.2\nclick==8.1.0\n"})
    assert found(project) == []
    changed(project, monkeypatch, {"requirements.txt": "lancedb==0.45.0\nclick==8.2.0\n"})
    assert found(project) == [("version", "lancedb 0.40 is 0.45.0 now")]


def test_a_lock_file_says_more_than_what_may_be_installed(
    project: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = '[[package]]\nname = "httpx"\nversion = "{}"\n'
    may = '[project]\ndependencies = ["httpx>=0.28"]\n'
    changed(
        project, monkeypatch, {"uv.lock": lock.format("0.28.1"), "pyproject.toml": may}, JANUARY
    )
    learned(project, monkeypatch, "With `httpx 0.28` a timeout has to be named.")
    changed(project, monkeypatch, {"web/uv.lock": lock.format("0.28.1")}, "2026-04-10")
    changed(project, monkeypatch, {"uv.lock": lock.format("0.30.0")})
    assert found(project) == []  # one of the two has it
    changed(project, monkeypatch, {"web/uv.lock": lock.format("0.30.0")})
    assert found(project) == [("version", "httpx 0.28 is 0.30.0 now")]


@pytest.mark.slow
def test_a_file_that_changed_much(project: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    learned(project, monkeypatch, "The limits in docs/limits.txt are those of the provider.")
    half = LONG.splitlines(keepends=True)
    changed(project, monkeypatch, {"docs/limits.txt": "".join(half[:25])})
    assert found(project) == []
    changed(project, monkeypatch, {"docs/limits.txt": "all is new\n" * 40, "README.md": "new\n"})
    ((kind, why),) = found(project)
    assert kind == "changed"
    assert why.startswith("100% of the lines of docs/limits.txt changed")


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


def test_a_lesson_that_only_moved_is_as_old_as_before(
    project: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    learned(project, monkeypatch, "Run `deploy/staging.sh` with the VPN.", "2026-02-10")
    changed(project, monkeypatch, {"deploy/staging.sh": None}, MARCH)
    (project.lessons_dir / "devops").mkdir()
    (project.lessons_dir / "it.md").rename(project.lessons_dir / "devops" / "it.md")
    commit_at(project, JUNE, monkeypatch)
    assert [kind for kind, _ in found(project)] == ["file"]


def test_what_is_not_committed_gives_no_reason(project: Vault) -> None:
    write(project.lessons_dir / "it.md", lesson_text("It", "Run `deploy/staging.sh`."))
    (project.root / "deploy/staging.sh").unlink()
    assert found(project) == []


def test_no_program_of_the_repository_starts(
    project: Vault, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    learned(project, monkeypatch, "Use `open_pool(url)` of src/shop/pool.py.")
    changed(project, monkeypatch, {"src/shop/pool.py": None, "src/shop/cli.py": "pass\n"})
    trap = f"touch {tmp_path}/ran; cat"
    write(project.root / ".git/info/attributes", "* diff=trap filter=trap\n")
    for key in ("diff.external", "diff.trap.command", "diff.trap.textconv", "filter.trap.clean"):
        run("git", "config", key, trap, cwd=project.root)
    run("git", "config", "core.fsmonitor", trap, cwd=project.root)
    run("git", "config", "diff.noprefix", "true", cwd=project.root)
    (tmp_path / "ran").unlink(missing_ok=True)
    assert {kind for kind, _ in found(project)} == {"file", "name"}
    assert not (tmp_path / "ran").exists()


@pytest.mark.slow
def test_the_commands(project: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    learned(project, monkeypatch, "Run `deploy/staging.sh` with the VPN.")
    assert (
        run("lessons", "check", "--stale", cwd=project.root).out == "no lesson needs another look\n"
    )
    changed(project, monkeypatch, {"deploy/staging.sh": None})
    listed = run("lessons", "check", "--stale", cwd=project.root)
    assert listed.out.splitlines()[1] == "  lessons edit it"
    answer = json.loads(run("lessons", "check", "--stale", "--json", cwd=project.root).out)
    assert (answer["lessons"], answer["waiting"]) == (1, 0)
    assert {"lesson", "title", "path", "kind", "why", "do"} == answer["reasons"][0].keys()


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


@pytest.mark.slow
def test_confirming_a_lesson_that_is_not_there_writes_nothing(project: Vault) -> None:
    write(project.lessons_dir / "one.md", lesson_text("One", "Text."))
    failed = run("lessons", "check", "--confirm", "one", "nothing", cwd=project.root, check=False)
    assert failed.code == 1
    assert failed.err.startswith("Error: no lesson 'nothing'")
    assert b"confirmed" not in (project.lessons_dir / "one.md").read_bytes()


@pytest.mark.slow
def test_a_date_that_is_none(project: Vault) -> None:
    write(project.lessons_dir / "one.md", "---\nconfirmed: soon\n---\nText of it.\n")
    checked = run("lessons", "check", cwd=project.root, check=False)
    assert "confirmed must be a date" in checked.out


@pytest.mark.parametrize(
    ("path", "content", "versions"),
    [
        ("uv.lock", '[[package]]\nname = "LanceDB"\nversion = "0.40.0"\n', {"lancedb": "0.40.0"}),
        ("web/package.json", '{"dependencies": {"react": "^19.1.0"}}', {"react": "19.1.0"}),
        (
            "package-lock.json",
            '{"packages": {"node_modules/vite": {"version": "7.1.2"}, "": {}}}',
            {"vite": "7.1.2"},
        ),
        (
            "pyproject.toml",
            '[project]\ndependencies = ["httpx[http2]>=0.28,<1", "click"]\n',
            {"httpx": "0.28"},
        ),
        ("Cargo.toml", '[dependencies]\nserde = { version = "1.0.2" }\n', {"serde": "1.0.2"}),
        (
            "go.mod",
            "require (\n\tgithub.com/spf13/cobra v1.9.1\n)\n",
            {"github.com/spf13/cobra": "1.9.1", "cobra": "1.9.1"},
        ),
        ("package.json", "{", {}),
        ("setup.cfg", "lancedb==0.40", {}),
    ],
)
def test_versions_of_manifests(path: str, content: str, versions: dict[str, str]) -> None:
    assert citations.versions(path, content.encode()) == versions


def test_what_a_text_cites() -> None:
    cited = citations.cited_in(
        "See ./src/shop/pool.py:12 and https://example.org/a/b.html, not `<name>/x.py`.\n"
        "`open_pool()` of `shop.pool.PoolSettings`, React 19.1, `lancedb==0.40`, and/or e.g. so.\n"
    )
    assert cited.paths >= {"src/shop/pool.py"}
    assert not any("example.org" in path or "name" in path for path in cited.paths)
    assert cited.names == {"open_pool", "PoolSettings"}
    assert cited.versions == {("react", "19.1"), ("lancedb", "0.40")}


def test_the_days_of_a_past_are_those_of_its_commits(
    project: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    from vault_index import git

    learned(project, monkeypatch, "Text.")
    monkeypatch.setenv("TZ", "Pacific/Auckland")
    past = git.look_back(project.root)
    assert past
    assert list(past.days()) == [MARCH, JANUARY]
    assert past.last_changes(project.lessons_dir)["it.md"] == MARCH
    assert git.look_back(Path(os.environ["HOME"])) is None
