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
def project(tmp_path: Path) -> Path:
    """A project to type commands in."""
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


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


@pytest.mark.slow
def test_what_is_installed_runs(project: Path, settings: Path) -> None:
    install(project)
    (hook,) = ours(settings)["UserPromptSubmit"]
    event = json.dumps({"hook_event_name": "UserPromptSubmit", "prompt": "x", "cwd": str(project)})
    ran = run(hook["command"], *hook["args"], cwd=project, stdin=event)
    assert (ran.code, ran.out) == (0, "")


def test_install_in_a_project(project: Path, settings: Path) -> None:
    mine = project / ".claude" / "settings.json"
    assert install(project, "--project").out == f"{mine}: hooks installed\n"
    assert ours(mine).keys() == EVENTS
    assert not settings.exists()
    uninstall(project, "--project")
    assert not mine.exists()


def test_a_project_shared_with_others_names_the_command_only(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(BIN), prepend=":")
    install(project, "--project")
    (hook,) = ours(project / ".claude" / "settings.json")["SessionStart"]
    assert hook["command"] == "lessons-hook"


def test_everything_else_stays_in_its_order(project: Path, settings: Path) -> None:
    write(settings, json.dumps(OTHERS, indent=2))
    install(project)
    values = load(settings)
    assert list(values) == list(OTHERS)
    assert values["permissions"] == OTHERS["permissions"]
    assert values["hooks"]["Stop"] == OTHERS["hooks"]["Stop"]
    assert values["hooks"]["UserPromptSubmit"][0] == OTHERS["hooks"]["UserPromptSubmit"][0]
    assert ours(settings).keys() == EVENTS


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


def test_a_second_install_changes_nothing(project: Path, settings: Path) -> None:
    write(settings, FORMATS["4 spaces"])
    install(project)
    after = settings.read_bytes()
    assert install(project).out == f"{settings}: hooks were there already\n"
    assert settings.read_bytes() == after
    uninstall(project)
    assert settings.read_text() == FORMATS["4 spaces"]


@pytest.mark.slow
def test_status_tells_where_the_hooks_are(project: Path, settings: Path) -> None:
    run("lessons", "init", cwd=project)
    install(project)
    assert f"hooks      {settings}\n" in run("lessons", "status", cwd=project).out
    uninstall(project)
    assert run("lessons", "status", "--json", cwd=project).json["hooks"]["installed"] == []


def test_the_folder_of_the_agents_own_variable(
    project: Path, settings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "elsewhere"))
    named = tmp_path / "elsewhere" / "settings.json"
    assert install(project).out == f"{named}: hooks installed\n"
    assert ours(named).keys() == EVENTS
    assert not settings.exists()
    uninstall(project)
    assert not named.exists()


# uninstall


@pytest.mark.parametrize("text", FORMATS.values(), ids=FORMATS)
def test_install_and_uninstall_give_back_the_same_bytes(
    project: Path, settings: Path, text: str
) -> None:
    before = write(settings, text).read_bytes()
    settings.chmod(0o640)
    install(project)
    assert ours(settings).keys() == EVENTS
    assert uninstall(project).out == f"{settings}: hooks removed\n"
    assert settings.read_bytes() == before
    assert settings.stat().st_mode & 0o777 == 0o640


def test_a_file_that_install_made_is_removed(project: Path, settings: Path) -> None:
    install(project)
    assert settings.stat().st_mode & 0o077 == 0  # settings may hold secrets one day
    uninstall(project)
    assert not settings.exists()
    assert uninstall(project).out == f"{settings}: there were no hooks\n"


def test_uninstall_without_install(project: Path, settings: Path) -> None:
    assert uninstall(project).out == f"{settings}: there were no hooks\n"
    assert not settings.exists()
    before = write(settings, FORMATS["by hand"]).read_bytes()
    assert uninstall(project).out == f"{settings}: there were no hooks\n"
    assert settings.read_bytes() == before


@pytest.mark.parametrize("name", ["4 spaces", "tabs", "windows", "empty file"])
def test_edits_made_in_between_survive(project: Path, settings: Path, name: str) -> None:
    write(settings, FORMATS[name])
    before = load(settings) if FORMATS[name] else {}
    install(project)
    text = settings.read_bytes().decode()
    settings.write_bytes(text.replace("{", '{"later": [1, "ü"],', 1).encode())
    assert uninstall(project).out == f"{settings}: hooks removed\n"
    assert load(settings) == {"later": [1, "ü"], **before}


def test_edits_to_a_file_that_install_made_survive(project: Path, settings: Path) -> None:
    install(project)
    write(settings, json.dumps({**load(settings), "model": "opus"}))
    uninstall(project)
    assert load(settings) == {"model": "opus"}


def test_a_hook_put_beside_ours_stays(project: Path, settings: Path) -> None:
    install(project)
    values = load(settings)
    date = {"type": "command", "command": "date"}
    values["hooks"]["SessionStart"][0]["hooks"].append(date)
    write(settings, json.dumps(values))
    uninstall(project)
    assert load(settings) == {"hooks": {"SessionStart": [{"hooks": [date]}]}}


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


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{not json", "is not JSON"),
        ('{"a": 1,}', "is not JSON"),
        ("// mine\n{}", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("[]", "is not a JSON object; it was left alone"),
        ("null", "is not a JSON object; it was left alone"),
        ('{"hooks": []}', 'its "hooks" are not what Claude Code reads'),
        ('{"hooks": {"Stop": {}}}', 'its "hooks" are not what Claude Code reads'),
        (b'{"a": "\xff"}', "is not JSON"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_broken_settings_are_left_alone(
    project: Path, settings: Path, text: str | bytes, says: str
) -> None:
    before = write(settings, text).read_bytes()
    ran = install(project, check=False)
    assert (ran.code, ran.out) == (1, "")
    error, hint = ran.err.splitlines()
    assert error.startswith(f"Error: {settings}")
    assert says in error
    assert hint.startswith("Try: correct it")
    assert settings.read_bytes() == before
    assert "Traceback" not in uninstall(project, check=False).err
    assert settings.read_bytes() == before


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
