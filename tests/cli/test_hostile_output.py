"""No command sends a terminal what a vault, a commit or an argument would have it obey."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.support.commands import run
from tests.support.files import commit, write
from vault_index.entrypoints.cli import main, output

EVIL = "\x1b]52;c;ZXZpbA==\x07\x1b[2J\x9b31m\u202edesrever\u2066\rover\x7f"
NAME = EVIL.replace("/", "")
STEERS = [chr(n) for n in range(32) if chr(n) not in "\n\t"]
STEERS += [chr(n) for n in range(0x7F, 0xA0)] + [*"\u061c\u200e\u200f\u2028\u2029"]
STEERS += [chr(n) for n in (*range(0x202A, 0x202F), *range(0x2066, 0x206A))]
COMMANDS = [
    *(["list"], ["list", "--json"], ["show", "evil"], ["show", "evil", "--json"]),
    *(["log", "evil"], ["log", "evil", "--json"], ["search", "heap"], ["search", "heap", "--json"]),
    *(["search", "--explain", "heap"], ["search", "--kind", "skills", "deploy"], ["status"]),
    *(["show", "--at", NAME, "heap"], ["search", "--in", NAME, "heap"], ["status", "--json"]),
    *(["ask", "raise the heap"], ["ask", "raise the heap", "--json"], ["ask", NAME, "--in", NAME]),
    *(["recall", "heap memory"], ["recall", "heap memory", "--json"], ["check"], ["check", "--json"]),
    *(["check", "--staged"], ["categories"], ["categories", "--json"], ["index"]),
    *(["categories", "propose"], ["categories", "propose", "--json"]),
    *(["categories", "rename", each, "b"] for each in (NAME, "devops")),
    ["categories", "rename", "devops", "b", "--json"],
    *(["show", NAME], ["rm", NAME], ["rm", "evil"], ["edit", NAME], ["log", NAME], ["add", NAME]),
    *([NAME], [f"--{NAME}"], ["search", f"--{NAME}"], ["--vault", NAME, "list"], ["import", NAME]),
    *(["import", "lessons"], ["import", "lessons", "--json"], ["list", "--sort", NAME], ["eval", NAME]),
    *(["list", "--since", NAME], ["watch", "--status"], ["sync"], ["check", NAME], ["init"], ["model"]),
    *(["install", NAME], ["uninstall", NAME], ["merge-driver", NAME, NAME, NAME]),
    *(["index", "--rebuild", "--json"], ["add", "--title", NAME, "--text", "Heap."]),
]  # fmt: skip


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A vault in which everything that has a name is named to steer a terminal."""
    root = tmp_path_factory.mktemp("cloned")
    run("git", "init", "-q", root, cwd=root)
    write(root / "lessons/vault.toml", f"{json.dumps(NAME)} = 1\n".replace("\x7f", "\\u007f"))
    told = json.dumps(EVIL)
    head = f"---\ntitle: {told}\ncategories: [{told}]\ntags: [{told}]\ntype: {told}\n---\n"
    write(root / "lessons/devops/evil.md", head + f"Raise the heap {EVIL.replace(chr(27), '')}\n")
    write(root / "lessons/raw.md", f"# Heap {EVIL}\nRaise the heap: {EVIL}\n")
    write(root / f"lessons/devops/{NAME}.md", "# Heap\nRaise the heap.\n")
    write(root / f"lessons/{NAME}/heap.md", "---\ntitle: [a\n---\n")
    skill = f"---\nname: deploy\ndescription: {told}\n---\nDeploy.\n"
    write(root / f"skills/{NAME}/SKILL.md", skill)
    write(root / f"skills/b{NAME}/SKILL.md", "---\n")
    with pytest.MonkeyPatch.context() as patch:  # the fixture comes before each test's own world
        patch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
        patch.setenv("GIT_AUTHOR_NAME", NAME)
        patch.setenv("GIT_COMMITTER_NAME", "Ada Lovelace")
        for variable in ("GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"):
            patch.setenv(variable, "ada@example.org")
        commit(root, f"subject {EVIL}")
    return root


@pytest.mark.slow
@pytest.mark.parametrize("words", COMMANDS, ids=ascii)
def test_no_command_steers_the_terminal(
    hostile: Path, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(hostile)
    monkeypatch.setenv("EDITOR", "true")
    ran = CliRunner().invoke(main, words)
    for said in (ran.stdout, ran.stderr):
        assert not [ascii(char) for char in STEERS if char in said]
    if "--json" in words and ran.exit_code == 0:
        json.loads(ran.stdout)


def test_json_keeps_every_character(capsys: pytest.CaptureFixture[str]) -> None:
    value = EVIL + "\U000e0041\u200d\ud800ä\n"
    output.json([value])
    printed = capsys.readouterr().out
    assert json.loads(printed) == [value]
    assert "ä" in printed
    assert not [char for char in STEERS if char in printed]


def test_a_style_is_ours_and_its_text_is_not(capsys: pytest.CaptureFixture[str]) -> None:
    output.say("a\nb\x1b[0m", output.styled("c\x1b]0;t\x07", bold=True))
    assert capsys.readouterr().out == "a\\nb\\x1b[0mc\\x1b]0;t\\x07\n"
