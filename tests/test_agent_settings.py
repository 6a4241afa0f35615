"""`lessons install claude` writes beside what is there, and `uninstall` takes exactly it out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import run, write

SETTINGS = {
    "model": "opus",
    "hooks": {
        "UserPromptSubmit": [{"hooks": [{"type": "command", "command": "echo hi"}]}],
        "PostToolUse": [{"matcher": "Edit", "hooks": [{"type": "command", "command": "fmt"}]}],
    },
    "note": "grüße 😀",
}
FORMATS = {
    "two spaces": json.dumps(SETTINGS, indent=2, ensure_ascii=False) + "\n",
    "four spaces": json.dumps(SETTINGS, indent=4) + "\n",
    "tabs": json.dumps(SETTINGS, indent="\t") + "\n",
    "one line": json.dumps(SETTINGS, separators=(",", ":")),
    "no last line end": json.dumps(SETTINGS, indent=2),
    "empty object": "{}",
    "empty file": "",
    "hand made": '{ "hooks": {},\n\n  "model": "opus" }\n',
}


@pytest.fixture
def settings(own_world: Path) -> Path:
    return own_world / ".claude" / "settings.json"


def test_install_writes_exec_form_hooks_with_a_timeout(settings: Path, own_world: Path) -> None:
    done = run("lessons", "install", "claude", cwd=own_world)
    assert str(settings) in done.out
    hooks = json.loads(settings.read_text())["hooks"]
    assert set(hooks) == {"UserPromptSubmit", "SessionStart"}
    for event in hooks.values():
        (hook,) = event[0]["hooks"]
        assert hook["type"] == "command"
        assert hook["args"] == []
        assert 3 <= hook["timeout"] <= 10
        assert Path(hook["command"]).is_file()


@pytest.mark.parametrize("name", FORMATS)
def test_uninstall_gives_back_the_same_bytes(settings: Path, own_world: Path, name: str) -> None:
    write(settings, FORMATS[name])
    settings.chmod(0o640)
    run("lessons", "install", "claude", cwd=own_world)
    assert "lessons-hook" in settings.read_text()
    run("lessons", "uninstall", "claude", cwd=own_world)
    assert settings.read_text() == FORMATS[name]
    assert settings.stat().st_mode & 0o777 == 0o640


def test_what_was_there_stays_beside_ours(settings: Path, own_world: Path) -> None:
    write(settings, FORMATS["four spaces"])
    run("lessons", "install", "claude", cwd=own_world)
    now = json.loads(settings.read_text())
    assert now["model"] == "opus"
    assert now["hooks"]["PostToolUse"] == SETTINGS["hooks"]["PostToolUse"]  # type: ignore[index]
    assert len(now["hooks"]["UserPromptSubmit"]) == 2


def test_running_either_twice_changes_nothing(settings: Path, own_world: Path) -> None:
    run("lessons", "install", "claude", cwd=own_world)
    once = settings.read_bytes()
    assert "already" in run("lessons", "install", "claude", cwd=own_world).out
    assert settings.read_bytes() == once
    run("lessons", "uninstall", "claude", cwd=own_world)
    assert not settings.exists()  # install made it
    assert "no hooks" in run("lessons", "uninstall", "claude", cwd=own_world).out


def test_edits_in_between_survive_uninstall(settings: Path, own_world: Path) -> None:
    write(settings, FORMATS["two spaces"])
    run("lessons", "install", "claude", cwd=own_world)
    values = json.loads(settings.read_text())
    values["theme"] = "dark"
    settings.write_text(json.dumps(values, indent=2))
    run("lessons", "uninstall", "claude", cwd=own_world)
    assert json.loads(settings.read_text()) == {**SETTINGS, "theme": "dark"}


@pytest.mark.parametrize("broken", ["{oops", "[]", '{"hooks": []}', '{"hooks": {"Stop": 1}}'])
def test_a_broken_file_is_left_alone(settings: Path, own_world: Path, broken: str) -> None:
    write(settings, broken)
    done = run("lessons", "install", "claude", cwd=own_world, check=False)
    assert done.code == 1
    assert str(settings) in done.err
    assert "Traceback" not in done.err
    assert settings.read_text() == broken


def test_a_link_stays_a_link(settings: Path, own_world: Path) -> None:
    real = write(own_world / "dotfiles" / "claude.json", "{}\n")
    settings.parent.mkdir()
    settings.symlink_to(real)
    run("lessons", "install", "claude", cwd=own_world)
    assert settings.is_symlink()
    assert "lessons-hook" in real.read_text()


def test_a_project_and_another_config_folder(own_world: Path, tmp_path: Path) -> None:
    run("lessons", "install", "claude", "--project", cwd=tmp_path)
    assert "lessons-hook" in (tmp_path / ".claude" / "settings.json").read_text()
    elsewhere = {"CLAUDE_CONFIG_DIR": str(tmp_path / "config")}
    run("lessons", "install", "claude", cwd=tmp_path, env=elsewhere)
    assert "lessons-hook" in (tmp_path / "config" / "settings.json").read_text()
    assert not (own_world / ".claude").exists()
