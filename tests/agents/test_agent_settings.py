"""`lessons install claude` wires up the hooks; `uninstall` gives back what was there, to the byte."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import BIN, Ran, run
from tests.support.files import write

EVENTS = {"UserPromptSubmit", "SessionStart", "PostToolUseFailure", "PreToolUse", "SubagentStart"}
OTHERS: dict[str, Any] = {
    "model": "opus",
    "permissions": {"allow": ["Bash(git *)"], "deny": []},
    "hooks": {
        "UserPromptSubmit": [{"hooks": [{"type": "command", "command": "date"}]}],
        "Stop": [
            {"matcher": "", "hooks": [{"type": "command", "command": "/bin/say-lessons-hooked"}]}
        ],
    },
    "note": "Größe 🔥",
}
FORMATS = {
    "2 spaces": json.dumps(OTHERS, indent=2, ensure_ascii=False) + "\n",
    "4 spaces": json.dumps(OTHERS, indent=4, ensure_ascii=False) + "\n",
    "tabs": json.dumps(OTHERS, indent="\t", ensure_ascii=False) + "\n",
    "one line": json.dumps(OTHERS, separators=(",", ":")),
    "no last newline": json.dumps(OTHERS, indent=2),
    "escapes": json.dumps(OTHERS, indent=2) + "\n",
    "windows": json.dumps(OTHERS, indent=2).replace("\n", "\r\n") + "\r\n",
    "by hand": '{ "model" : "opus",\n\n      "hooks": { }  }\n\n',
    "empty object": "{}",
    "empty file": "",
    "blank file": "\n",
    "half a character": '{"note": "\\ud83d"}\n',
    "a number": '{"x": 1.0e5, "y": 123456789012345678901234567890}',
}


@pytest.fixture
def settings(own_world: Path) -> Path:
    """Where the user's settings of Claude Code are, or will be."""
    return own_world / ".claude" / "settings.json"


def install(project: Path, *words: str, check: bool = True) -> Ran:
    return run("lessons", "install", "claude", *words, cwd=project, check=check)


def uninstall(project: Path, *words: str, check: bool = True) -> Ran:
    return run("lessons", "uninstall", "claude", *words, cwd=project, check=check)


def load(settings: Path) -> Any:
    return json.loads(settings.read_bytes())


def ours(settings: Path) -> dict[str, list[dict[str, Any]]]:
    """Return our hooks by event."""
    found: dict[str, list[dict[str, Any]]] = {}
    for event, groups in load(settings).get("hooks", {}).items():
        for hook in (hook for group in groups for hook in group["hooks"]):
            if Path(hook["command"]).name == "lessons-hook":
                found.setdefault(event, []).append(hook)
    return found


# install


@pytest.mark.slow
def test_install_writes_the_hooks_and_says_where(project: Path, settings: Path) -> None:
    assert install(project).out == f"{settings}: hooks installed\n"
    hooks = ours(settings)
    assert hooks.keys() == EVENTS
    for event, (hook,) in hooks.items():
        assert hook.keys() == {"type", "command", "args", "timeout"}
        assert hook["type"] == "command"
        assert hook["command"] == str(BIN / "lessons-hook")  # no shell: a path may have blanks
        assert hook["args"] == []
        assert hook["timeout"] == (10 if event == "SessionStart" else 5)


def test_a_hook_before_edits_comes_only_where_it_is_asked_for(
    project: Path, settings: Path
) -> None:
    install(project)
    before = load(settings)["hooks"]["PreToolUse"]
    assert install(project, "--files").out == f"{settings}: hooks installed\n"
    subagents, files = load(settings)["hooks"]["PreToolUse"]
    assert [subagents] == before
    assert files["matcher"] == "Edit|Write|MultiEdit|NotebookEdit"
    assert files["hooks"] == subagents["hooks"]
    assert install(project, "--files").out == f"{settings}: hooks were there already\n"
    uninstall(project)
    assert not settings.exists()
    refused = run("lessons", "install", "codex", "--files", cwd=project, check=False)
    assert "codex has no hook that runs at edits alone" in refused.err


@pytest.mark.parametrize("name", ["2 spaces", "4 spaces", "tabs", "windows", "escapes"])
def test_lines_that_were_there_stay_as_they_were(project: Path, settings: Path, name: str) -> None:
    before = write(settings, FORMATS[name]).read_bytes()
    install(project)
    kept = settings.read_bytes().splitlines(keepends=True)
    lost = [line for line in before.splitlines(keepends=True) if line not in kept]
    assert len(lost) <= 2  # those that end in a comma now


# uninstall


def test_one_hook_taken_out_by_hand_comes_back_and_goes(project: Path, settings: Path) -> None:
    write(settings, FORMATS["2 spaces"])
    install(project)
    values = load(settings)
    del values["hooks"]["SessionStart"]
    write(settings, json.dumps(values, indent=2))
    assert install(project).out == f"{settings}: hooks installed\n"
    assert {event: len(hooks) for event, hooks in ours(settings).items()} == dict.fromkeys(
        EVENTS, 1
    )
    uninstall(project)
    assert load(settings) == OTHERS


# what cannot be edited


@pytest.mark.parametrize("there", [True, False], ids=["to a file", "to nothing yet"])
def test_settings_that_are_a_link_stay_one(
    project: Path, settings: Path, tmp_path: Path, there: bool
) -> None:
    target = tmp_path / "dotfiles" / "claude.json"
    if there:
        write(target, FORMATS["tabs"])
    settings.parent.mkdir()
    settings.symlink_to(target)
    install(project)
    assert settings.is_symlink()
    assert ours(target).keys() == EVENTS
    uninstall(project)
    assert settings.is_symlink()
    assert target.exists() == there
    if there:
        assert target.read_text() == FORMATS["tabs"]
