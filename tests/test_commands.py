"""The command line as a person meets it: what is typed, what is printed, how it ends."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import commit, lesson_text, run, write
from vault_index.vault import Vault

COMMANDS = "init add list show search recall index eval status install uninstall hook model".split()
FILES = {
    "devops/ci-cd/heap.md": lesson_text("Node heap", "Raise the heap with NODE_OPTIONS."),
    "devops/docker/layers.md": lesson_text("Docker layers", "Install before you copy sources."),
    "conventions/dates.md": lesson_text("Dates", "Store dates in UTC. Grüße 😀"),
}


@pytest.fixture
def team(make_vault: Callable[..., Vault]) -> Path:
    """A vault of three lessons; there is no model, so full text has to do."""
    vault = make_vault(FILES)
    commit(vault.root, "three lessons")
    return vault.root


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(command: str, tmp_path: Path) -> None:
    shown = run("lessons", command, "--help", cwd=tmp_path).out
    assert f"Usage: lessons {command}" in shown
    assert "Example: " in shown


def test_help_lists_every_command(tmp_path: Path) -> None:
    shown = run("lessons", "--help", cwd=tmp_path).out
    assert all(f"\n  {command} " in shown for command in COMMANDS)


def test_init(tmp_path: Path) -> None:
    root = tmp_path / "fresh"
    assert run("lessons", "init", root, cwd=tmp_path).out.splitlines() == [
        "started a git repository",
        "made lessons/vault.toml",
        "added .vault_index/ to .gitignore",
        f"{root} is a vault",
    ]
    assert run("lessons", "init", cwd=root).out == f"{root} is a vault\n"


def test_add_writes_where_the_category_says(team: Path) -> None:
    title = ["--title", "Größer: VPN & Co", "-c", "DevOps/Deployment", "--tag", "vpn"]
    done = run("lessons", "add", *title, "--text", "Use the VPN.", cwd=team)
    assert done.out == "lessons/devops/deployment/größer-vpn-co.md\n"
    lines = (team / done.out.strip()).read_text("utf-8").splitlines()
    assert lines[:3] == ["---", "title: 'Größer: VPN & Co'", "tags: [vpn]"]
    assert lines[-1] == "Use the VPN."
    again = run("lessons", "add", *title, "--text", "Other.", cwd=team, check=False)
    assert (again.code, again.out) == (1, "")
    assert again.err.splitlines()[0] == f"Error: {done.out.strip()} is there already"


def test_add_takes_stdin_and_files(team: Path, tmp_path: Path) -> None:
    text = "---\ncategories: [workflow/debugging]\nowner: me # keep\n---\n# Print less\nUse a debugger.\n"
    assert run("lessons", "add", "-", cwd=team, stdin=text).out == (
        "lessons/workflow/debugging/print-less.md\n"
    )
    added = (team / "lessons/workflow/debugging/print-less.md").read_text()
    assert "owner: me # keep\n" in added
    file = write(tmp_path / "note.md", "# Ship on Mondays\nNever on Fridays.\n")
    assert run("lessons", "add", file, cwd=team).out == "lessons/ship-on-mondays.md\n"


@pytest.mark.parametrize(
    ("arguments", "stdin", "said"),
    [
        (["-"], "", "some text"),
        (["-"], "no title at all", "title"),
        (["no-such-file.md"], "", "cannot be read"),
        (["-", "--title", "x", "--type", "poem"], "text", "no type"),
        (["-"], "---\na: [\n---\nx", "not YAML"),
    ],
)
def test_add_says_what_is_wrong(team: Path, arguments: list[str], stdin: str, said: str) -> None:
    done = run("lessons", "add", *arguments, cwd=team, stdin=stdin, check=False)
    assert done.code == 1
    assert said in done.err
    assert "Traceback" not in done.err


def test_list_and_show(team: Path) -> None:
    listed = run("lessons", "list", cwd=team).out.splitlines()
    assert [line.split("\t")[0] for line in listed] == [
        "conventions/dates", "devops/ci-cd/heap", "devops/docker/layers",
    ]  # fmt: skip
    below = run("lessons", "list", "-c", "devops", "--json", cwd=team).json
    assert [entry["title"] for entry in below] == ["Node heap", "Docker layers"]
    for name in ("devops/ci-cd/heap", "lessons/devops/ci-cd/heap.md", "heap"):
        shown = run("lessons", "show", name, cwd=team).out
        assert shown.splitlines()[0] == "Node heap"
        assert "lessons/devops/ci-cd/heap.md · Ada Lovelace" in shown
        assert shown.endswith("\nRaise the heap with NODE_OPTIONS.\n")
    assert run("lessons", "show", "dates", "--json", cwd=team).json["text"].endswith("😀")
    missing = run("lessons", "show", "nothing", cwd=team, check=False)
    assert (missing.code, missing.err.count("\n")) == (1, 3)  # a note, the error, what to try


def test_a_name_for_two_lessons_is_not_guessed(team: Path) -> None:
    write(team / "lessons/other/heap.md", lesson_text("Other heap", "x"))
    done = run("lessons", "show", "heap", cwd=team, check=False)
    assert done.code == 1
    assert "2 lessons are called 'heap': devops/ci-cd/heap, other/heap" in done.err


def test_search_without_a_model_is_full_text(team: Path) -> None:
    done = run("lessons", "search", "raise the heap", "--json", cwd=team)
    assert done.json["hits"][0]["lesson_id"] == "devops/ci-cd/heap"
    assert done.json["hits"][0]["cosine"] == 0
    assert "full text only" in done.err
    assert "lessons model fetch" in run("lessons", "status", cwd=team).out
    explained = run("lessons", "search", "raise the heap", "--explain", cwd=team).out
    assert "cosine 0.000 + full text 0." in explained
    assert "floor " in explained


def test_recall_prints_the_injection_or_why_not(team: Path) -> None:
    assert "</lessons>" in run("lessons", "recall", "raise the heap NODE_OPTIONS", cwd=team).out
    silent = run("lessons", "recall", "thanks, looks good", cwd=team)
    assert silent.out == ""
    assert "silent: an acknowledgement" in silent.err


def test_index_tells_what_it_did(team: Path) -> None:
    first = run("lessons", "index", cwd=team).out
    assert first.startswith("3 added; 0 embedded in ")
    assert "built anew: first index" in first
    write(team / "lessons/broken.md", "---\ntitle: [\n---\n")
    second = run("lessons", "index", "--json", cwd=team).json
    assert second["unchanged"] == 3
    assert second["problems"][0]["path"] == "lessons/broken.md"
    assert second["problems"][0]["line"] == 3


def test_status(team: Path) -> None:
    write(team / "lessons/broken.md", "---\ntitle: [\n---\n")
    run("lessons", "index", cwd=team)
    state = run("lessons", "status", "--json", cwd=team).json
    assert state["lessons"] == 3
    assert state["categories"]["devops"] == 2
    assert state["git"]["uncommitted"] == 1
    assert state["index"]["bytes"] > 0
    text = run("lessons", "status", cwd=team).out
    assert "problem    lessons/broken.md:3: frontmatter is not YAML" in text
    assert "not installed: run `lessons install claude`" in text


def test_errors_are_one_line_that_says_what_to_do(tmp_path: Path) -> None:
    done = run("lessons", "search", "x", cwd=tmp_path, check=False)
    assert done.code == 1
    assert done.err.splitlines()[1].startswith("Try: make one with `lessons init`")
    assert run("lessons", "search", cwd=tmp_path, check=False).code == 2
    assert run("lessons", "frobnicate", cwd=tmp_path, check=False).code == 2


def test_a_pipe_that_closes_early_is_no_error(team: Path) -> None:
    for number in range(200):
        write(team / f"lessons/many/{number}.md", lesson_text(f"Lesson {number}", "text"))
    run("lessons", "index", cwd=team)
    done = run(
        "bash",
        "-c",
        f"set -o pipefail; '{_lessons()}' list --json | head -1",
        cwd=team,
        check=False,
    )
    assert "Traceback" not in done.err


def _lessons() -> Path:
    from tests.conftest import BIN

    return BIN / "lessons"


def test_model_show(tmp_path: Path) -> None:
    for command in (["model"], ["model", "show"]):
        assert "lessons model fetch" in run("lessons", *command, cwd=tmp_path).out
