"""What a shell and a terminal are good for: completion, names half typed, a picker, a pager, help."""

from __future__ import annotations

import contextlib
import re
import shutil
from pathlib import Path

import click
import pytest
from click.shell_completion import BashComplete

from tests.support import documents
from tests.support.commands import PATH, run
from tests.support.files import lesson_text, write
from tests.support.terminals import at_terminal
from vault_index import api
from vault_index.entrypoints.cli import HIDDEN, MORE, SECTIONS, main
from vault_index.errors import VaultError
from vault_index.retrieval import entries
from vault_index.retrieval.hit import Entry
from vault_index.vault import Vault

FILES = {
    "devops/ci-cd/node-heap-out-of-memory.md": lesson_text("Raise the heap", "When it dies."),
    "devops/docker/layers.md": lesson_text("Docker layers", "Copy late."),
    "devops/docker/heap.md": "---\ntitle: Heap in Docker\ntags: [Memory]\ntype: bug_fix\n---\nMore.\n",
    "conventions.md": "## Lesson: Dates are UTC\nAlways.\n\n## Lesson: Names\nText.\n",
    "short/long.md": lesson_text("Long", "\n".join(f"line {n} of many" for n in range(100))),
}

# completion


def completed(folder: Path, *words: str) -> list[tuple[str, str]]:
    """Ask click as its script for bash does, from a folder: (type, value) of each item."""
    with contextlib.chdir(folder):
        asked = BashComplete(main, {}, "lessons", "_LESSONS_COMPLETE")
        return [(one.type, one.value) for one in asked.get_completions([*words[:-1]], words[-1])]


def values(found: list[tuple[str, str]]) -> list[str]:
    assert {kind for kind, _ in found} <= {"plain"}
    return [value for _, value in found]


def test_ids_are_completed_from_their_beginning_and_from_that_of_their_end(team: Vault) -> None:
    docker = ["devops/docker/heap", "devops/docker/layers"]
    assert values(completed(team.root, "show", "devops/do")) == docker
    assert values(completed(team.root, "edit", "conv")) == [
        "conventions#dates-are-utc",
        "conventions#names",
    ]
    assert values(completed(team.root, "rm", "node-")) == ["node-heap-out-of-memory"]
    assert values(completed(team.root, "log", "dat")) == ["dates-are-utc"]
    write(team.lessons_dir / "new/just-saved.md", "text")
    assert values(completed(team.root, "show", "new")) == ["new/just-saved"]
    assert completed(team.root, "show", "./") == [("file", "./")]
    elsewhere = completed(team.root.parent, "--vault", str(team.root), "show", "lay")
    assert elsewhere == [("plain", "layers")]


def test_categories_tags_and_types_are_completed(team: Vault) -> None:
    assert "devops/docker" in values(completed(team.root, "list", "-c", "devops/d"))
    assert values(completed(team.root, "search", "--tag", "M")) == ["Memory"]
    assert values(completed(team.root, "list", "--type", "b")) == ["bug_fix"]
    assert "conventions" not in values(completed(team.root, "categories", "rename", "devops"))
    assert {"show", "status", "sync", "search"} <= {*values(completed(team.root, "s"))}


def test_what_a_shell_would_read_as_more_than_a_name_is_not_completed(team: Vault) -> None:
    hostile = (
        "a;touch x",
        "a$(touch x)",
        "a b",
        "a*",
        "a\nplain,b",
        "-rf",
        "a`x`",
        "a'b",
        "a\x1b[2J",
    )
    for name in hostile:
        write(team.lessons_dir / f"evil/{name}.md", lesson_text("x", "y"))
        write(team.lessons_dir / f"{name}/x.md", lesson_text("x", "y"))
    assert values(completed(team.root, "show", "evil/")) == ["evil/-rf"]
    for typed in ("", "-", "a"):
        for _, value in completed(team.root, "list", "-c", typed) + completed(
            team.root, "show", typed
        ):
            assert re.fullmatch(r"[\w./#+@%,-]*", value), value
            assert not value.startswith("-r")


@pytest.mark.skipif(not shutil.which("bash"), reason="there is no bash here")
@pytest.mark.slow
def test_the_real_bash_completes(team: Vault) -> None:
    (line,) = re.findall(r'eval "\$\(_LESSONS_COMPLETE=bash_source lessons\)"', page())
    script = f"""
{line}
for words in "lessons show devops/docker/l" "lessons list -c devops/ci"; do
  COMP_WORDS=($words); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); COMPREPLY=()
  _lessons_completion lessons 2>/dev/null
  printf '%s\\n' "${{COMPREPLY[@]}}"
done"""
    env = {"PATH": PATH}
    ran = run("bash", "--norc", "-c", script, cwd=team.root, env=env)
    assert ran.out.splitlines() == ["devops/docker/layers", "devops/ci-cd"]


def page() -> str:
    return documents.page("edit")


# names


def test_the_beginning_of_a_name_is_enough_for_people(team: Vault) -> None:
    for words in (["show", "devops/ci-cd/node"], ["log", "lay"]):
        assert run("lessons", *words, cwd=team.root).code == 0
    asked = api.lesson.show(name="node-h")  # what the watcher answers
    assert asked.answer(team).title == "Raise the heap"
    ran = run("lessons", "rm", "node-h", "--yes", cwd=team.root, check=False)
    assert (ran.code, ran.err) == (
        1,
        "Error: 'node-h' is only the beginning of a name\n"
        "Try: lessons rm devops/ci-cd/node-heap-out-of-memory --yes\n",
    )
    assert run("lessons", "rm", "node-heap-out-of-memory", "--yes", cwd=team.root).code == 0


KNOWN = [
    Entry(id=one, path=f"lessons/{one.partition('#')[0]}.md", title=one)
    for one in (
        "a/docker/layers",
        "a/docker/logs",
        "b/heap",
        "c#dates",
        "c#names",
        "heap-2",
        "a/só",
    )
]


@pytest.mark.parametrize(
    ("name", "id"),
    [
        ("a/docker/layers", "a/docker/layers"),
        ("heap", "b/heap"),  # the whole of an end comes before the beginning of another
        ("hea", None),  # b/heap, heap-2
        ("lay", "a/docker/layers"),
        ("docker/lay", "a/docker/layers"),
        ("docker", None),  # a folder means none of its lessons
        ("a/docker", None),
        ("lo", None),  # too short
        ("dat", "c#dates"),
        ("c#d", "c#dates"),
        ("c", None),  # two of one file
        ("lessons/b/heap.md", "b/heap"),
        ("", None),
        ("/", None),
    ],
)
def test_which_lesson_a_name_means(name: str, id: str | None) -> None:
    if id:
        assert entries.named(name, KNOWN, beginnings=True).id == id
    else:
        with pytest.raises(VaultError):
            entries.named(name, KNOWN, beginnings=True)


# picker


@pytest.mark.slow
def test_a_lesson_is_picked_at_a_terminal(team: Vault) -> None:
    typed = [("stop:", "docker\n"), ("stop:", "2\n")]
    code, shown = at_terminal("lessons", "show", cwd=team.root, typed=typed)
    assert code == 0
    assert re.search(r"  1  Heap in Docker.*\n  2  Docker layers", shown)
    assert shown.endswith(
        "[devops/docker] lessons/devops/docker/layers.md · not committed\n\nCopy late.\n"
    )


QUESTION = "what a colleague types who needs it"


@pytest.mark.slow
@pytest.mark.parametrize("typed", [(), ("why does it hang",), ("why does it hang", "no answer")])
def test_a_new_lesson_is_asked_for_two_prompts(
    team: Vault, tmp_path: Path, typed: tuple[str, ...]
) -> None:
    """Issue 57, section 1; an empty line ends it, and in a pipe nothing is asked."""
    editor = write(tmp_path / "editor", '#!/bin/sh\necho "Wait." >> "$1"\n')
    editor.chmod(0o755)
    env = {"EDITOR": str(editor), "VISUAL": ""}
    lines = zip((QUESTION, "another:"), (*typed, ""), strict=False)
    answers = [(question, f"{line}\n") for question, line in lines]
    words = ("lessons", "new", "Wait for it", "-c", "devops/docker")
    code, shown = at_terminal(*words, cwd=team.root, typed=answers, env=env)
    assert code == 0, shown
    made = (team.lessons_dir / "devops/docker/wait-for-it.md").read_text()
    assert [line for line in typed if line in made] == list(typed)
    assert ("prompts:" in made) == bool(typed)
    piped = run("lessons", "new", "In a pipe", "-c", "devops", cwd=team.root, env=env)
    assert "colleague" not in piped.out + piped.err


@pytest.mark.slow
def test_a_refused_text_stays_for_a_second_try(team: Vault, tmp_path: Path) -> None:
    key = "AKIA" + "IOSFODNN7" + "ABCDEFG"
    editor = tmp_path / "editor"
    editor.write_text(f'#!/bin/sh\necho "Use {key} and wait." >> "$1"\n')
    editor.chmod(0o755)
    words = ("lessons", "new", "Wait for it", "-c", "devops/docker")
    typed = [(QUESTION, "the container is too early\n"), ("another:", "\n")]
    code, shown = at_terminal(*words, cwd=team.root, typed=typed, env={"EDITOR": str(editor)})
    assert code == 1
    plain = " ".join(shown.split())
    assert "--prompts 'the container is too early' -c devops/docker" in plain
    draft = Path(plain.rpartition("-c devops/docker ")[2].strip())
    assert draft.read_text() == f"Use {key} and wait.\n"
    assert draft.stat().st_mode & 0o777 == 0o600
    draft.write_text("Wait.\n")
    run("lessons", "add", "--title", "Wait for it", "-c", "devops/docker", draft, cwd=team.root)
    assert (team.lessons_dir / "devops/docker/wait-for-it.md").read_text().endswith("\nWait.\n")


def test_a_category_that_is_nearly_another_gets_a_note(team: Vault) -> None:
    words = ("lessons", "add", "--title", "Pin it", "--text", "Pin the image.", "-c")
    made = run(*words, "devops/dokcer", cwd=team.root)
    assert made.err == "note: devops/dokcer is a new category; there is devops/docker, too\n"
    assert not run(*words, "security", cwd=team.root).err
    moved = run("lessons", "move", "security/pin-it", "devops/dockr", cwd=team.root)
    assert "there is devops/docker, too" in moved.err


def test_in_a_pipe_an_id_is_asked_for(team: Vault) -> None:
    for command in ("show", "edit"):
        ran = run("lessons", command, cwd=team.root, check=False)
        assert (ran.code, ran.out) == (2, "")
        assert ran.err.endswith("Error: name a lesson by its ID; `lessons list` shows the ids\n")


# pager


@pytest.mark.slow
def test_what_is_longer_than_the_screen_goes_to_the_pager(team: Vault, tmp_path: Path) -> None:
    got = tmp_path / "paged"
    pager = write(tmp_path / "my pager", f"#!/bin/sh\necho \"LESS=$LESS\"; cat > '{got}'\n")
    pager.chmod(0o755)
    env = {"PAGER": f"'{pager}'"}
    run("lessons", "index", cwd=team.root)
    code, shown = at_terminal("lessons", "show", "short/long", cwd=team.root, env=env)
    assert (code, shown) == (0, "LESS=FRX\n")
    assert "line 99 of many" in got.read_text()
    got.unlink()
    _, shown = at_terminal("lessons", "show", "short/long", cwd=team.root, env=env, size=(120, 80))
    assert "line 99 of many" in shown
    assert not got.exists()
    run("lessons", "show", "short/long", cwd=team.root, env=env)
    assert not got.exists()  # a pipe


@pytest.mark.parametrize(
    "env",
    [{"PAGER": "no-such-pager"}, {"PAGER": "'"}, {"TERM": "dumb"}],
)
@pytest.mark.slow
def test_without_a_pager_all_is_printed(team: Vault, env: dict[str, str]) -> None:
    code, shown = at_terminal("lessons", "show", "short/long", cwd=team.root, env=env)
    assert code == 0
    assert shown.endswith("line 99 of many\n")


# help


def test_commands_are_listed_in_sections_and_no_summary_is_cut_off(tmp_path: Path) -> None:
    visible = {*main.list_commands(click.Context(main))} - {*HIDDEN}
    listed = [name for names in (SECTIONS | MORE).values() for name in names.split()]
    assert sorted(listed) == sorted(visible)
    for columns in ("80", "50"):  # click wraps at no less
        shown = run("lessons", "--help", cwd=tmp_path, env={"COLUMNS": columns}).out
        assert "..." not in shown.replace("[ARGS]...", "")
        assert max(map(len, shown.splitlines())) <= int(columns)
        heads = [
            line[:-1] for line in shown.splitlines() if line in {f"{one}:" for one in SECTIONS}
        ]
        assert heads == [*SECTIONS]
        assert re.search(r"\n  show +Print one lesson, or a document whole\.\n", shown)
