"""Where the plugin is enabled, the commands about hooks know that it brings them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import BIN, run
from tests.support.files import write
from vault_index.entrypoints import agents, doctor
from vault_index.vault import Vault

FILES = {"heap.md": "---\ntitle: Heap\n---\nour build dies with heap out of memory: raise it.\n"}


def enable(settings: Path, on: Any = True) -> Path:
    """Write what `claude plugin install` writes into the settings of its scope."""
    return write(settings, json.dumps({"enabledPlugins": {agents.NAME: on}}))


@pytest.fixture
def team(team: Vault, monkeypatch: pytest.MonkeyPatch) -> Vault:
    monkeypatch.setenv("PATH", f"{BIN}:{os.environ['PATH']}")
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    monkeypatch.chdir(team.root)
    return team


@pytest.fixture
def settings(own_world: Path) -> Path:
    """The user's settings, which enable the plugin."""
    return enable(own_world / ".claude" / "settings.json")


def test_install_adds_no_second_hooks_and_begins_to_record(team: Vault, settings: Path) -> None:
    before = settings.read_bytes()
    ran = run("lessons", "install", "claude", "--journal", cwd=team.root)
    plugin = f"plugin lessons@lessons-vault ({settings})"
    assert ran.out.startswith(
        f"{plugin} brings the hooks: none were added\nall sessions are recorded"
    )
    assert settings.read_bytes() == before
    assert plugin in run("lessons", "journal", "status", cwd=team.root).out
    ran = run("lessons", "uninstall", "claude", cwd=team.root)
    assert "sessions are no longer recorded" in ran.out
    assert f"note: {plugin} still runs them" in ran.err
    assert "claude plugin uninstall lessons@lessons-vault" in ran.err


def test_only_the_hook_before_edits_is_added(team: Vault, settings: Path) -> None:
    run("lessons", "install", "claude", "--files", cwd=team.root)
    (files,) = json.loads(settings.read_bytes())["hooks"].items()
    assert files[0] == "PreToolUse"
    assert files[1][0]["matcher"].startswith("Edit|")
    assert not [each for each in doctor.examine(None) if each.about == "hooks"]
    run("lessons", "uninstall", "claude", cwd=team.root)
    assert "hooks" not in json.loads(settings.read_bytes())


def test_doctor_says_what_the_plugin_lacks(
    team: Vault, settings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    (trouble,) = (each for each in doctor.examine(None) if each.about == "plugin")
    assert trouble.what == "lessons@lessons-vault: lessons-hook is not on the PATH"
    assert ".local/bin" in trouble.fix


@pytest.mark.parametrize(
    ("user", "shared", "local", "enables"),
    [
        (None, None, None, None),
        (True, None, None, "user"),
        (True, False, None, None),
        (False, True, None, "shared"),
        (True, False, True, "local"),
        (True, True, False, None),
        ("yes", None, None, None),
        (True, "no", 1, "user"),
    ],
)
def test_the_nearest_settings_decide(
    own_world: Path, tmp_path: Path, user: Any, shared: Any, local: Any, enables: str | None
) -> None:
    project = tmp_path / "project"
    places = {
        "user": own_world / ".claude/settings.json",
        "shared": project / ".claude/settings.json",
        "local": project / ".claude/settings.local.json",
    }
    for (name, place), on in zip(places.items(), (user, shared, local), strict=True):
        if on is not None:
            enable(places[name], on)
        else:
            write(place, "not JSON" if name == "shared" else "[]")
    assert agents.enabled_by(project) == (places[enables] if enables else None)
