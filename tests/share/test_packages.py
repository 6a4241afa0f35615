"""A package of a monorepo may have lessons of its own, none lost unsaid (issue 55, row 12, P35)."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.support.commands import run
from tests.support.files import commit, lesson_text, write
from tests.support.terminals import at_terminal
from vault_index.edit import init
from vault_index.recall import select
from vault_index.share import packages
from vault_index.vault import open_vault

pytestmark = [pytest.mark.usefixtures("text_only"), pytest.mark.slow]

GATE = "The harbour gate needs zinnia{}."
PROMPT = "the harbour gate is shut, what does it need"


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """Make a vault whose package `web` has lessons that no vault takes (case P35)."""
    root = tmp_path / "repo"
    init(root)
    write(root / "lessons/port/gate.md", lesson_text("Gate of the root", GATE.format("root")))
    write(root / "packages/web/lessons/gate.md", lesson_text("Gate of web", GATE.format("web")))
    (root / "packages/web/src/deep").mkdir(parents=True)
    return root


def told(folder: Path) -> str:
    vault = open_vault(folder)
    run("lessons", "index", cwd=folder)
    return select.for_prompt(vault, PROMPT).text


def untaken(root: Path) -> list[str]:
    return [str(folder.relative_to(root)) for folder in packages.in_no_vault(root)]


@pytest.mark.parametrize("is_committed", [False, True])
def test_status_names_lessons_that_no_vault_takes(repo: Path, is_committed: bool) -> None:
    if is_committed:
        commit(repo)
    line = "no vault   packages/web/lessons/; to make one there: lessons init packages/web\n"
    assert line in run("lessons", "status", cwd=repo).out
    said = json.loads(run("lessons", "status", "--json", cwd=repo).out)
    assert said["in_no_vault"] == [str(repo / "packages/web/lessons")]
    assert "in no vault" not in run("lessons", "init", "packages/web", cwd=repo).err
    assert "no vault" not in run("lessons", "status", cwd=repo).out


def test_init_in_a_package_says_that_its_lessons_are_in_no_vault(repo: Path) -> None:
    package = repo / "packages/web"
    said = run("lessons", "init", cwd=package)
    assert f"{repo} is a vault" in said.out
    assert "note: in no vault: lessons/; to make one there: lessons init .\n" in said.err
    run("lessons", "init", ".", cwd=package)
    assert "zinniaweb" in told(package / "src/deep")


def test_init_of_a_package_says_how_the_root_is_searched_as_well(repo: Path) -> None:
    package = repo / "packages/web"
    said = run("lessons", "init", package, cwd=repo).err
    assert f"note: {repo}: lessons from there come here no longer" in said
    assert "zinniaroot" not in told(package / "src/deep")
    command = said.partition("in all your vaults: ")[2].splitlines()[0]
    assert command in run("lessons", "status", cwd=package).out
    told(repo)
    run("bash", "-c", command, cwd=repo, env={"PATH": os.environ["PATH"]})
    given = told(package / "src/deep")
    assert "zinniaroot" in given
    assert "zinniaweb" in given
    assert "around" not in run("lessons", "status", cwd=package).out
    assert "no longer" not in run("lessons", "init", package, cwd=repo).err


def test_at_a_terminal_init_asks_whether_both_are_searched(repo: Path) -> None:
    home = Path(os.environ["LESSONS_HOME"])
    write(home / "config.toml", '[vaults]\nabove = ["~/code/team"]\n')
    answers = [("search both", "y\n"), ("record the sessions", "n\n")]
    code, shown = at_terminal("lessons", "init", "packages/web", cwd=repo, typed=answers)
    assert code == 0, shown
    assert "lessons from there come here no longer" in shown
    assert f'above = ["{repo}", "~/code/team"]' in (home / "config.toml").read_text()


# Relatives.


def test_each_vault_around_one_is_named_the_nearest_first(repo: Path) -> None:
    web = repo / "packages/web"
    init(web)
    init(web / "src/deep")
    assert packages.around(web / "src/deep") == [web, repo]
    said = run("lessons", "init", web / "src/deep", cwd=repo).err
    assert f'vaults.above \'["{web}", "{repo}"]\'' in said


def test_several_packages_are_named_in_one_line(repo: Path) -> None:
    for name in ("api", "ops", "site"):
        write(repo / f"packages/{name}/lessons/deep/x.md", lesson_text(name, "Text."))
    line = "packages/api/lessons/, packages/ops/lessons/, packages/site/lessons/ and 1 more"
    assert line in run("lessons", "status", cwd=repo).out


def test_from_one_package_the_lessons_of_another_are_named(repo: Path) -> None:
    init(repo / "packages/api")
    assert packages.in_no_vault(repo / "packages/api") == [repo / "packages/web/lessons"]


def test_a_work_tree_of_the_same_repository_is_no_vault_around_it(repo: Path) -> None:
    commit(repo)
    run("git", "worktree", "add", "-q", "trees/one", cwd=repo)
    assert packages.around(repo / "trees/one") == []
    assert untaken(repo) == ["packages/web/lessons"]
    assert untaken(repo / "trees/one") == ["packages/web/lessons"]


def test_a_vault_in_a_submodule_has_the_one_around_it(repo: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    init(other)
    write(other / "docs/lessons/x.md", lesson_text("X", "Text."))
    commit(other)
    allowed = ("-c", "protocol.file.allow=always")
    run("git", *allowed, "submodule", "add", "-q", other, "vendored/b", cwd=repo)
    assert packages.around(repo / "vendored/b") == [repo]
    assert untaken(repo) == [
        "packages/web/lessons"
    ]  # the submodule's are for its own vault to name
    assert untaken(repo / "vendored/b") == ["docs/lessons"]


def test_links_and_what_is_no_source_are_passed_over(repo: Path, tmp_path: Path) -> None:
    beyond = tmp_path / "beyond"
    write(beyond / "lessons/x.md", "Text.")
    (repo / "packages/linked").symlink_to(beyond)
    (repo / "packages/web/lessons-of-old").mkdir()
    (repo / "packages/odd").mkdir()
    (repo / "packages/odd/lessons").symlink_to(beyond / "lessons")
    write(repo / "packages/web/node_modules/kit/lessons/x.md", "Text.")
    write(repo / "packages/api/lessons/README.md", "Code for the pages of a school.")
    write(repo / "packages/api/lessons/views.py", "")
    write(repo / "out-of-git/lessons/x.md", "Text.")
    write(repo / "lessons/more/lessons/x.md", lesson_text("Of the root", "Text."))
    write(repo / ".gitignore", "out-of-git/\n")
    assert untaken(repo) == ["packages/web/lessons"]


def test_deep_lessons_are_found_by_git_and_few_folders_are_opened(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = "a/b/c/d/e/f/g/lessons"
    write(repo / deep / "x.md", "Text.")
    commit(repo)
    opened: list[str] = []
    listed = os.scandir

    def listing(folder: str) -> object:
        opened.append(str(folder))
        return listed(folder)

    monkeypatch.setattr(os, "scandir", listing)
    monkeypatch.setattr(packages, "MAX_FOLDERS", 4)
    assert untaken(repo) == [deep, "packages/web/lessons"]
    assert len([folder for folder in opened if not folder.endswith("/lessons")]) <= 4


def test_a_folder_that_may_not_be_entered_stops_nothing(repo: Path) -> None:
    closed = repo / "closed"
    (closed / "lessons").mkdir(parents=True)
    closed.chmod(0)
    try:
        assert untaken(repo) == ["packages/web/lessons"]
    finally:
        closed.chmod(0o755)


def test_without_a_repository_the_folders_are_looked_through(repo: Path) -> None:
    (repo / ".git").rename(repo / "no-git")
    assert untaken(repo) == ["packages/web/lessons"]
