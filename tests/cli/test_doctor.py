"""`lessons status --check` names each thing that is wrong with a command, and that fixes it."""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.commands import BIN, Ran, run
from tests.support.files import MakeVault, lesson_text, write
from tests.support.indexed import copy_of, full_text_vault
from vault_index.entrypoints import agents, doctor
from vault_index.hotpath import log
from vault_index.share import git_hooks
from vault_index.vault import Vault, open_vault

HEAP = lesson_text("Heap", "Raise the heap.")


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One index for all of these tests, which copy it."""
    root = full_text_vault(tmp_path_factory.mktemp("shelf") / "team", {"heap.md": HEAP})
    git_hooks.set_up(root)
    return root


@pytest.fixture
def team(shelf: Path, tmp_path: Path, own_world: Path, monkeypatch: pytest.MonkeyPatch) -> Vault:
    """A vault with which all is well, and where commands find ours on the PATH."""
    monkeypatch.setenv("LESSONS_EMBEDDER", "none")
    monkeypatch.setenv("PATH", f"{BIN}:{os.environ['PATH']}")
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    root = copy_of(shelf, tmp_path / "team").root
    monkeypatch.chdir(root)
    agents.install(agents.AGENTS["claude"].place(None), str(BIN / "lessons-hook"))
    return open_vault(root)


def troubles() -> list[tuple[str, str]]:
    return [(one.about, one.fix) for one in doctor.examine(None)]


def fix(vault: Vault) -> None:
    """Run every command that the doctor names, as typed, with an editor that corrects a file."""
    script = '#!/bin/sh\ncase $1 in *.md) echo Repaired. > "$1";; *) : > "$1";; esac\n'
    editor = write(vault.root.parent / "repair", script)
    editor.chmod(0o755)
    for one in doctor.examine(None):
        run("bash", "-c", one.fix, cwd=vault.root, env={"EDITOR": str(editor)})


def said(vault: Vault, *words: str, env: dict[str, str] | None = None) -> Ran:
    return run("lessons", "status", "--check", *words, cwd=vault.root, check=False, env=env)


@pytest.mark.slow
def test_the_command_where_all_is_well_and_where_it_is_not(team: Vault) -> None:
    assert (said(team).code, said(team).out) == (0, "everything is fine\n")
    assert said(team, "--json").json == {"ok": True, "troubles": []}
    agents.uninstall(agents.AGENTS["claude"].place(None))
    trouble = {"about": "hooks", "what": "no agent runs the hooks", "fix": "lessons install claude"}
    assert said(team, "--json").json["troubles"] == [trouble]


def no_hooks(vault: Vault) -> None:
    agents.uninstall(agents.AGENTS["claude"].place(None))


def half_of_the_hooks(_vault: Vault) -> None:
    settings = agents.AGENTS["claude"].place(None)
    values = json.loads(settings.read_text())
    del values["hooks"]["SessionStart"]
    settings.write_text(json.dumps(values))


def hooks_of_a_program_that_is_gone(vault: Vault) -> None:
    settings = agents.AGENTS["claude"].place(None)
    settings.write_text(settings.read_text().replace(str(BIN), str(vault.root / "gone")))


def no_index(vault: Vault) -> None:
    shutil.rmtree(vault.root / ".vault_index")


def an_index_of_another_checkout(vault: Vault) -> None:
    (vault.root / ".vault_index/owner").write_text("somebody")


def a_damaged_index(vault: Vault) -> None:
    shutil.rmtree(vault.open_index().store.index / "lessons.lance/data")


def an_index_that_is_a_link(vault: Vault) -> None:
    no_index(vault)
    (vault.root / ".vault_index").symlink_to(vault.root.parent)


def no_git_hooks(vault: Vault) -> None:
    run("git", "config", "--unset", "core.hooksPath", cwd=vault.root)


def no_merge_driver(vault: Vault) -> None:
    run("git", "config", "--remove-section", "merge.lessons", cwd=vault.root)


def git_hooks_that_are_gone(vault: Vault) -> None:
    (vault.root / ".githooks/pre-commit").unlink()


def a_lesson_with_conflict_markers(vault: Vault) -> None:
    write(vault.lessons_dir / "bad.md", "Raise it.\n<<<<<<< HEAD\nA\n=======\nB\n>>>>>>> theirs\n")


def a_lesson_that_does_not_parse(vault: Vault) -> None:
    write(vault.lessons_dir / "my bad.md", "---\ntitle: [\n---\ntext")


def a_link_among_lessons(vault: Vault) -> None:
    (vault.lessons_dir / "there.md").symlink_to(vault.root.parent)


def a_secret_in_the_settings(vault: Vault) -> None:
    token = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"
    write(vault.lessons_dir / "vault.toml", f'[keywords]\n"token {token}" = "devops"\n')


BREAK: list[tuple[Callable[[Vault], None], str]] = [
    (no_hooks, "hooks"),
    (half_of_the_hooks, "hooks"),
    (hooks_of_a_program_that_is_gone, "hooks"),
    (no_index, "index"),
    (an_index_of_another_checkout, "index"),
    (a_damaged_index, "index"),
    (an_index_that_is_a_link, "index"),
    (a_link_among_lessons, "index"),
    (a_secret_in_the_settings, "lessons"),
    (no_git_hooks, "git"),
    (no_merge_driver, "git"),
    (git_hooks_that_are_gone, "git"),
    (a_lesson_with_conflict_markers, "lessons"),
    (a_lesson_that_does_not_parse, "lessons"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("spoil", "about"), BREAK, ids=lambda one: getattr(one, "__name__", one))
def test_what_is_named_mends_it(team: Vault, spoil: Callable[[Vault], None], about: str) -> None:
    spoil(team)
    found = troubles()
    assert {one for one, _ in found} == {about}, found
    fix(team)
    if spoil is an_index_that_is_a_link:
        fix(team)  # it is gone, and there is none yet
    assert troubles() == []


@pytest.mark.slow
def test_settings_that_do_not_parse_are_all_that_is_looked_at(team: Vault) -> None:
    file = write(team.lessons_dir / "vault.toml", "= broken")
    assert troubles() == [("settings", "${EDITOR:-vi} lessons/vault.toml")]
    assert said(team).code == 1
    file.write_text('embedder = "ollama"\nprompt_lesons = 2\n')
    first, second = doctor.examine(None)
    assert "a vault may not set 'embedder'" in first.what
    assert "did you mean 'prompt_lessons'" in second.what


def test_a_model_that_is_not_here(team: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LESSONS_EMBEDDER")
    assert ("model", "lessons model fetch") in troubles()


def test_a_server_of_embeddings_that_does_not_answer(
    team: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LESSONS_EMBEDDER", "ollama")
    monkeypatch.setenv("OLLAMA_HOST", "127.0.0.1:9")
    (one,) = doctor.examine(None)
    assert one.about == "model"
    assert one.fix
    assert re.match(r"degraded since \d{4}-\d\d-\d\d \d\d:\d\d: .*127\.0\.0\.1:9", one.what)
    assert doctor.examine(None) == [one]


LINE = "lessons check --staged"


@pytest.mark.parametrize(
    ("path", "managed"),
    [
        ("own", ""),
        (".husky/_", ".husky/pre-commit"),
        ("", "lefthook.yml"),
    ],
)
def test_beside_hooks_of_others_the_line_to_add_and_its_file_are_named(
    team: Vault, path: str, managed: str
) -> None:
    root = team.root
    words = ["core.hooksPath", path] if path else ["--unset", "core.hooksPath"]
    run("git", "config", *words, cwd=root)
    folder = path or ".git/hooks"
    hook = write(root / folder / "pre-commit", "#!/bin/sh\nmake lint\n")
    hook.chmod(0o755)
    file = managed or f"{folder}/pre-commit"
    if managed:
        write(root / managed, f"# {LINE}\n")
    assert troubles() == [("git", f"have {file} run `{LINE}`")]
    assert file in run("lessons", "init", cwd=root).err
    write(root / file, f"#!/bin/sh\n{LINE}\n")
    assert troubles() == []
    assert "to add ours" not in run("lessons", "init", cwd=root).err
    hook.chmod(0o644)
    (trouble,) = troubles()
    assert trouble == ("git", "lessons init" if not path else f"chmod +x {folder}/pre-commit")


# PATH, and installing twice


def install(vault: Vault, *words: str, env: dict[str, str] | None = None) -> list[str]:
    said = run("lessons", "install", "claude", *words, cwd=vault.root, env=env).err
    expected = ("sessions are not recorded", "your agent proposes", "a command for your agent")
    return [line for line in said.splitlines() if not any(each in line for each in expected)]


def test_a_prompt_before_the_index_is_no_failure_of_a_hook(team: Vault) -> None:
    event: dict[str, object] = {"cwd": str(team.root), "vault": str(team.root)}
    log.log(event, log.NO_INDEX, time.monotonic())
    assert troubles() == []
    log.log(event, "the disk is on fire", time.monotonic())
    (one,) = doctor.examine(None)
    assert "hooks failed 1 time in the last 24 hours: the disk is on fire" in one.what


def test_install_says_that_the_other_settings_have_the_hooks(team: Vault) -> None:
    assert install(team) == []
    user = agents.AGENTS["claude"].place(None)
    assert install(team, "--project")[:2] == [
        f"note: {user} has them, too: of two hooks of a prompt the second is silent",
        "      to have them once: lessons uninstall claude --user",
    ]
    assert install(team)[1] == "      to have them once: lessons uninstall claude --project"
    assert troubles() == []


def test_hooks_that_another_program_adds_and_git_does_not_run_are_named_once(team: Vault) -> None:
    for name in ("pre-push", "commit-msg", "pre-rebase.sample"):
        write(team.root / ".git/hooks" / name, "#!/bin/sh\nmake test\n").chmod(0o755)
    (one,) = doctor.examine(None)
    assert (
        "commit-msg, pre-push in .git/hooks does not run: core.hooksPath is .githooks" in one.what
    )
    for name in ("pre-push", "commit-msg"):
        write(team.root / ".githooks" / name, f'#!/bin/sh\nexec "$GIT_DIR/hooks/{name}" "$@"\n')
    assert troubles() == []


def test_husky_writes_its_hooks_anew_so_its_file_gets_the_line(team: Vault) -> None:
    run("git", "config", "core.hooksPath", ".husky/_", cwd=team.root)
    write(team.root / ".husky/_/pre-commit", '#!/bin/sh\n. "${0%/*}/h"\n').chmod(0o755)
    assert troubles() == [("git", f"have .husky/pre-commit run `{LINE}`")]


@pytest.mark.slow
def test_a_clone_without_an_index_is_no_trouble(make_vault: MakeVault, text_only: None) -> None:
    """Issue 55, row 15: it said "has no index yet; run `lessons index`"."""
    vault = make_vault({"a.md": lesson_text("Heap", "Raise it.")})
    shown = run("lessons", "status", cwd=vault.root).out
    assert "index      none yet: made at the first search\n" in shown
    assert "has no index yet" not in shown
    run("lessons", "search", "heap", cwd=vault.root)
    assert "index      1 lesson in 1 file" in run("lessons", "status", cwd=vault.root).out
