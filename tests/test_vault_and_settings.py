"""Finding a vault, and whose settings count."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import lesson_text, write
from vault_index import add, config
from vault_index.errors import NoVaultError, SettingsError
from vault_index.vault import Vault, open_vault


@pytest.fixture
def three(make_vault: Callable[..., Vault]) -> dict[str, Vault]:
    return {name: make_vault(name=name) for name in ("named", "around", "default")}


def test_the_order_in_which_a_vault_is_found(
    three: dict[str, Vault], own_world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(own_world / "config.toml", f'vault = "{three["default"].root}"\n')
    monkeypatch.chdir(own_world)
    assert open_vault().root == three["default"].root
    deep = three["around"].folder / "devops" / "ci"
    deep.mkdir(parents=True)
    monkeypatch.chdir(deep)
    assert open_vault().root == three["around"].root
    monkeypatch.setenv("LESSONS_VAULT", str(three["named"].root))
    assert open_vault().root == three["named"].root
    assert open_vault(three["around"].folder).root == three["around"].root


def test_no_vault_says_what_to_do(own_world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(own_world)
    with pytest.raises(NoVaultError) as caught:
        open_vault()
    assert "lessons init" in caught.value.hint
    with pytest.raises(NoVaultError, match="no vault at"):
        open_vault(own_world / "nowhere")


def test_later_settings_win(own_world: Path, tmp_path: Path) -> None:
    vault_toml = write(tmp_path / "vault.toml", "prompt_lessons = 2\ntoken_budget = 900\n")
    write(own_world / "config.toml", 'prompt_lessons = 1\nembedder = "none"\n')
    home = {"LESSONS_HOME": str(own_world)}
    loaded = config.load(vault_toml, home)
    assert (loaded.prompt_lessons, loaded.token_budget, loaded.embedder) == (1, 900, "none")
    assert config.load(vault_toml, home | {"LESSONS_EMBEDDER": "ollama"}).embedder == "ollama"
    assert config.load(vault_toml, home, {"prompt_lessons": 3}).prompt_lessons == 3


def test_a_vault_may_not_choose_endpoints_or_models(own_world: Path, tmp_path: Path) -> None:
    text = 'ollama_host = "http://evil.example"\nembedder = "ollama"\nvault = "/"\nfloor = 0.5\n'
    loaded = config.load(write(tmp_path / "vault.toml", text), {"LESSONS_HOME": str(own_world)})
    assert loaded.floor == 0.5
    assert (loaded.embedder, loaded.ollama_host, loaded.vault) == (
        "minilm",
        "127.0.0.1:11434",
        None,
    )
    assert loaded.ignored == ("embedder", "ollama_host", "vault")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("prompt_lessons = 'three'", "prompt_lessons"),
        ("prompt_lessons = -1", "prompt_lessons"),
        ("session_sources = 'startup'", "session_sources"),
        ("floor = 'high'", "floor"),
        ("keywords = 3", "keywords"),
        ("= 3", "not TOML"),
    ],
)
def test_a_bad_setting_names_file_and_key(tmp_path: Path, text: str, said: str) -> None:
    file = write(tmp_path / "vault.toml", text + "\n")
    with pytest.raises(SettingsError, match=said) as caught:
        config.load(file, {})
    assert str(file) in caught.value.message


def test_the_users_typo_is_told(own_world: Path) -> None:
    write(own_world / "config.toml", 'embeder = "none"\n')
    with pytest.raises(SettingsError, match="embeder"):
        config.load(None, {"LESSONS_HOME": str(own_world)})
    with pytest.raises(SettingsError, match="no embedder"):
        config.load(None, {"LESSONS_EMBEDDER": "word2vec"})


def test_links_and_hidden_files_are_not_the_vaults(make_vault: Callable[..., Vault]) -> None:
    vault = make_vault({"a/one.md": lesson_text("One", "1"), ".obsidian/two.md": "x", "b.txt": "x"})
    (vault.folder / "a" / "loop").symlink_to(vault.folder)
    (vault.folder / "out.md").symlink_to("/etc/hostname")
    files, skipped = vault.files()
    assert [file.path for file in files] == ["a/one.md"]
    assert sorted(skip.path for skip in skipped) == ["a/loop", "out.md"]


def test_init_makes_a_vault_and_a_second_run_changes_nothing(tmp_path: Path) -> None:
    root = tmp_path / "new"
    made = add.init(root)
    assert (made.repository, made.vault, made.ignored) == (True, True, True)
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    again = add.init(root)
    assert (again.repository, again.vault, again.ignored) == (False, False, False)
    assert {path: path.read_bytes() for path in root.rglob("*") if path.is_file()} == before


def test_init_keeps_a_gitignore_that_is_there(tmp_path: Path) -> None:
    write(tmp_path / "repo" / ".gitignore", "node_modules")
    add.init(tmp_path / "repo")
    assert (tmp_path / "repo" / ".gitignore").read_text() == "node_modules\n.vault_index/\n"
