"""Python does what the commands do: each command, and the script of the documentation."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import vault_index
from tests.support import documents
from tests.support.commands import run
from tests.support.files import MakeVault, lesson_text
from vault_index import api
from vault_index.api.question import Form


def test_every_command_is_a_question_or_command_of_the_api() -> None:
    """Any other would be a thing that only the command line can do."""
    questions = {
        "add": "edit.add_lesson", "init": "state.make_vault", "list": "lesson.select",
        "show": "lesson.show",
        "categories": "lesson.count", "edit": "edit.update_lesson", "rm": "edit.delete_lesson",
        "import": "edit.import_from",
        "search": "search.find", "ask": "asking.ask", "recall": "search.recall",
        "index": "state.index", "eval": "state.measure", "check": "share.check_files",
        "sync": "share.sync", "log": "share.log", "status": "state.report",
        "config": "state.settings", "journal": "journal.search", "propose": "learn.propose",
        "skills": "skill.build_ready",
        "review": "proposal.cards", "learn": "learn.learn", "tend": "tending.ask_model",
        "teach": "injection.teach_lesson",
        "useful": "injection.useful",
        "last": "injection.select", "new": "edit.add_lesson", "move": "edit.move_lesson",
        "vaults": "share.vaults",
    }  # fmt: skip
    for name in questions.values():
        module, _, function = name.partition(".")
        assert getattr(getattr(api, module), function).__doc__, name
    offered = run("lessons", "help", "--all", cwd=Path.cwd()).out
    commands = {*re.findall(r"^  ([a-z]+) ", offered, re.MULTILINE)}
    machine = {*"hook help install uninstall model watch mcp serve open".split()}
    assert commands - machine == set(questions)
    in_python = {
        "import": "import_transcripts", "forget": "erase",
        "build": "build_ready", "remove": "deploy",
    }  # fmt: skip
    for group in ("journal", "skills"):
        offered = run("lessons", group, "--help", cwd=Path.cwd()).out.split("Commands:")[1]
        commands = set(re.findall(r"^  ([a-z]+) ", offered, re.MULTILINE))
        functions = vars(getattr(api, group.rstrip("s"))).items()
        asked = {name for name, value in functions if isinstance(value, Form)}
        assert {in_python.get(command, command) for command in commands} <= asked


@pytest.mark.slow
def test_the_script_of_the_documentation_runs(
    make_vault: MakeVault, text_only: None, capsys: pytest.CaptureFixture[str]
) -> None:
    """It never calls for an index: `search` brings it up to date, after `add`, too."""
    vault = make_vault({"vpn.md": lesson_text("VPN", "The deploy to staging hangs without it.")})
    code = documents.page("python").split("```python\n")[1].split("```")[0]
    exec(code.replace("~/code/team", str(vault.root)), {})
    assert capsys.readouterr().out.endswith(" VPN lessons/vpn.md\n")
    assert (vault.root / "lessons/devops/deploys-need-the-vpn.md").is_file()
    hits = vault_index.search(vault, "set VPN=1 in the job", k=1, categories=["devops"])
    assert [hit.title for hit in hits] == ["Deploys need the VPN"]
    with pytest.raises(vault_index.VaultError):
        vault_index.add(vault, "Set VPN=1 in the job.", title="Deploys need the VPN", type="x")
