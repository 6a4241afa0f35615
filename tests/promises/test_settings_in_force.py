"""Which settings are in force and who set them: `lessons status` shows it, as vault.toml says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.files import MakeVault, write
from vault_index import config
from vault_index.entrypoints.words import status
from vault_index.status import of
from vault_index.vault import open_vault


def test_each_setting_has_its_value_and_its_origin(
    make_vault: MakeVault, own_world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = make_vault().root
    toml = write(root / "lessons/vault.toml", "prompt_lessons = 2\nprompt_tokens = 500\n")
    user = write(own_world / "config.toml", "prompt_tokens = 400\nembedder = 'ollama'\n")
    monkeypatch.setenv("LESSONS_EMBEDDER", "none")
    opened = open_vault(root, token_budget=1000)
    settings = {one.name: one for one in config.settings_in_force(opened.config)}
    found = {name: (one.value, one.origin) for name, one in settings.items()}
    assert found["prompt_lessons"] == (2, str(toml))
    assert found["prompt_tokens"] == (400, str(user))
    assert found["embedder"] == ("none", "LESSONS_EMBEDDER")
    assert found["token_budget"] == (1000, "flags")
    assert found["home"] == (own_world, "LESSONS_HOME")
    assert found["watch.autostart"] == (False, "LESSONS_WATCH_AUTOSTART")
    assert found["trust"] == ("all", config.DEFAULT)
    assert next(iter(settings)) == "home"
    assert not {"unknown_keys", "origins"} & {*settings}


def test_status_shows_the_settings_in_force(make_vault: MakeVault, own_world: Path) -> None:
    root = make_vault().root
    assert "`lessons config` shows what is in force" in (root / "lessons/vault.toml").read_text()
    write(root / "lessons/vault.toml", "prompt_lessons = 2\n[keywords]\nterraform = 'devops'\n")
    write(own_world / "config.toml", "trusted_authors = ['ada@example.org']\n")
    state = of(open_vault(root))
    lines = list(status.lines(state))
    (changed,) = [line for line in lines if line.startswith("settings ")]
    assert all(name in changed for name in ("prompt_lessons", "trusted_authors", "keywords"))
    assert changed.endswith("; all: `lessons config`")
    assert "prompt_tokens" not in changed
    (one,) = [one for one in state["settings"] if one.name == "prompt_lessons"]
    assert one == config.Setting("prompt_lessons", 2, "lessons/vault.toml")
