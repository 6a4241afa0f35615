"""A vault is found where one expects it, and a vault someone cloned cannot set what is the user's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.commands import run
from tests.support.files import MakeVault, lesson_text, write
from vault_index import config
from vault_index.errors import NoVaultError, SettingsError
from vault_index.vault import Vault, open_vault


@pytest.fixture
def go_to(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], None]:
    """Change the current folder for this test."""

    def go(folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        monkeypatch.chdir(folder)

    return go


GoTo = Callable[[Path], None]


# which vault


@pytest.mark.parametrize("below", [".", "src/app", "lessons", "lessons/devops/ci-cd"])
def test_it_is_found_from_any_folder_inside(make_vault: MakeVault, go_to: GoTo, below: str) -> None:
    vault = make_vault()
    go_to(vault.root / below)
    assert open_vault().root == vault.root


def test_the_nearest_vault_wins(make_vault: MakeVault, go_to: GoTo) -> None:
    make_vault(name="outer")
    inner = make_vault(name="outer/libs/inner")
    go_to(inner.root / "src")
    assert open_vault().root == inner.root


def test_settings_with_a_byte_order_mark_are_read(
    make_vault: MakeVault, own_world: Path, go_to: GoTo, tmp_path: Path
) -> None:
    vault = make_vault()
    write(own_world / "config.toml", f'\ufeffvault = "{vault.root}"\nprompt_lessons = 2\n')
    write(vault.lessons_dir / "vault.toml", "\ufefffloor = 0.25\n")
    go_to(tmp_path / "nowhere")
    assert open_vault().root == vault.root
    assert (open_vault().config.prompt_lessons, open_vault().config.floor) == (2, 0.25)


def test_a_path_beats_the_environment_beats_the_folder_beats_the_default(
    make_vault: MakeVault, own_world: Path, go_to: GoTo, tmp_path: Path
) -> None:
    default, here, named, asked = (make_vault(name=name) for name in ("d", "h", "n", "a"))
    write(own_world / "config.toml", f'vault = "{default.root}"')
    environ = {"LESSONS_HOME": str(own_world)}
    go_to(tmp_path / "nowhere")
    assert open_vault(environ=environ).root == default.root
    go_to(here.root)
    assert open_vault(environ=environ).root == here.root
    environ["LESSONS_VAULT"] = str(named.root)
    assert open_vault(environ=environ).root == named.root
    assert open_vault(asked.root, environ=environ).root == asked.root


def test_a_folder_named_lessons_without_settings_is_no_vault(go_to: GoTo, tmp_path: Path) -> None:
    write(tmp_path / "app" / "lessons" / "a.md", "text")
    go_to(tmp_path / "app" / "lessons")
    with pytest.raises(NoVaultError) as raised:
        open_vault()
    assert str(tmp_path / "app" / "lessons") in raised.value.message
    assert raised.value.hint == (
        "make one with `lessons init`, or name one with --vault or LESSONS_VAULT"
    )


def test_a_named_vault_that_is_none(tmp_path: Path, own_world: Path, go_to: GoTo) -> None:
    go_to(tmp_path)
    with pytest.raises(NoVaultError) as raised:
        open_vault(tmp_path / "nothing")
    assert raised.value.message == f"no vault at {tmp_path / 'nothing'}"
    assert raised.value.hint == f"make one: lessons init {tmp_path / 'nothing'}"
    with pytest.raises(NoVaultError, match="no vault at ~nosuchuser/x"):
        open_vault("~nosuchuser/x")
    with pytest.raises(NoVaultError, match="no vault at /nowhere"):
        open_vault(environ={"LESSONS_HOME": str(own_world), "LESSONS_VAULT": "/nowhere"})


def test_a_default_vault_that_is_gone_is_named(
    tmp_path: Path, own_world: Path, go_to: GoTo
) -> None:
    write(own_world / "config.toml", 'vault = "/gone/away"')
    go_to(tmp_path)
    with pytest.raises(NoVaultError, match="none at /gone/away, the default"):
        open_vault()


# which settings


def load(own_world: Path, vault: str = "", user: str = "", **environ: str) -> config.Config:
    """Load settings from the text of both files and an environment."""
    toml = write(own_world / "vault.toml", vault)
    write(own_world / "config.toml", user)
    return config.load(toml, {"LESSONS_HOME": str(own_world), **environ})


def test_the_user_beats_the_vault(own_world: Path) -> None:
    vault = "prompt_lessons = 7\nprompt_tokens = 70\nfloor = 1\n"
    settings = load(own_world, vault, "prompt_lessons = 2")
    assert (settings.prompt_lessons, settings.prompt_tokens, settings.floor) == (2, 70, 1.0)


def test_the_environment_beats_the_user_and_flags_beat_all(own_world: Path) -> None:
    user = 'embedder = "ollama"\nollama_model = "mine"\nollama_host = "host:1"'
    assert load(own_world, user=user).embedder == "ollama"
    environ = {"LESSONS_EMBEDDER": "none", "LESSONS_OLLAMA_MODEL": "other", "OLLAMA_HOST": "host:2"}
    settings = load(own_world, "", user, **environ)
    assert settings.embedder == "none"
    assert settings.ollama_model == "other"
    assert settings.ollama_host == "host:2"
    home = {"LESSONS_HOME": str(own_world)}
    flagged = config.load(None, {**home, **environ}, {"embedder": "minilm", "ollama_model": None})
    assert (flagged.embedder, flagged.ollama_model) == ("minilm", "other")


def test_a_vault_may_not_choose_endpoints_models_or_folders(own_world: Path) -> None:
    evil = (
        'embedder = "ollama"\nollama_host = "evil.example:80"\nollama_model = "x"\nvault = "/etc"\n'
        'home = "/tmp"\nignored = []\nlater = 1\nprompt_lessons = 5\n[llm]\nopenai_url = "http://evil.example"\n'
        'calls_a_day = 9999\n[learn]\nmodel = "openai:evil"\nauto = true\n'
    )
    settings = load(own_world, evil)
    assert {each.key for each in settings.unknown_keys} == {
        *("embedder", "home", "ignored", "later", "llm.calls_a_day", "llm.openai_url"),
        *("learn.auto", "learn.model", "ollama_host", "ollama_model", "vault"),
    }
    default = config.Config(home=own_world, prompt_lessons=5, unknown_keys=settings.unknown_keys)
    assert settings == default


WRONG_VALUES = [
    ('prompt_lessons = "many"', "prompt_lessons must be a whole number, 0 or more, not 'many'"),
    ("prompt_lessons = -1", "prompt_lessons must be a whole number"),
    ("prompt_tokens = 1.5", "prompt_tokens must be a whole number"),
    (f"prompt_tokens = 1{'0' * 30}", "prompt_tokens must be a whole number"),
    ("token_budget = true", "token_budget must be a whole number"),
    ('floor = "high"', "floor must be a number"),
    ("floor = true", "floor must be a number"),
    ("floor = nan", "floor must be a number"),
    (f"floor = 1{'0' * 400}", "floor must be a number"),
    ('taxonomy = "a"', "taxonomy must be a list of strings"),
    ("session_sources = [1]", "session_sources must be a list of strings"),
    ("keywords = [1]", "keywords must be a table"),
    ("[keywords]\na = 1", "keywords must be a table"),
    ("[learn]\nsignificance = -100", "learn.significance must be a whole number"),
    ('[search]\nweights = "1"', "search.weights must be four whole numbers, not '1'; write it"),
    ("[skills]\nleast_confidence = -1.0", "skills.least_confidence must be a number, 0 or more"),
    ("watch = 3", "watch must be a table: [watch]"),
]
NOT_TOML = ["prompt_lessons = ", "a = 1\na = 2", f"a = {'9' * 5000}", f"a = {'[' * 5000}"]


@pytest.mark.parametrize(("toml", "says"), WRONG_VALUES)
def test_a_wrong_value_of_a_vault_is_ignored_and_the_rest_applies(
    own_world: Path, toml: str, says: str
) -> None:
    settings = load(own_world, vault=f"session_lessons = 1\n{toml}")
    (each,) = settings.unknown_keys
    assert str(each).startswith(f"lessons/vault.toml: ignored: {says}")
    assert len(str(each)) < 250
    default = config.Config(home=own_world, session_lessons=1, unknown_keys=settings.unknown_keys)
    assert settings == default


OF_THE_USER = [
    ('embedder = "openai"', "no embedder 'openai'"),
    ("ollama_model = 3", "ollama_model must be a string"),
    ("vault = 3", "vault must be a path"),
    ('vault = "~nosuchuser/x"', "vault must be a path"),
    ('index.shared = "~nosuchuser/x"', "index.shared must be the address of an object store"),
    ('vaults.above = ["~nosuchuser/x"]', "vaults.above must be a list of folders"),
]


@pytest.mark.parametrize(("toml", "says"), WRONG_VALUES + OF_THE_USER)
def test_a_wrong_value_of_the_user_is_named_with_its_file_and_key(
    own_world: Path, toml: str, says: str
) -> None:
    with pytest.raises(SettingsError) as raised:
        load(own_world, user=toml)
    error = f"{raised.value.message}; {raised.value.hint}"
    assert error.startswith(f"{own_world / 'config.toml'}: {says}")


@pytest.mark.parametrize("toml", NOT_TOML)
def test_settings_that_are_no_toml_are_named_with_their_file(own_world: Path, toml: str) -> None:
    with pytest.raises(SettingsError) as in_vault:
        load(own_world, vault=toml)
    assert in_vault.value.message.startswith(f"{own_world / 'vault.toml'}: not TOML")
    with pytest.raises(SettingsError) as of_user:
        load(own_world, user=toml)
    assert of_user.value.message.startswith(f"{own_world / 'config.toml'}: not TOML")


@pytest.mark.parametrize(
    ("user", "says"),
    [
        ("[ask]\nmodl = 1", "unknown setting 'ask.modl': did you mean 'ask.model'?"),
        (
            "trused_authors = []",
            "unknown setting 'trused_authors': did you mean 'trusted_authors'?",
        ),
        ('trusted_keys = ["a"]', "the setting 'trusted_keys' is gone: remove it"),
        ("[learning]\nauto = true", "unknown setting 'learning'"),
        ('home = "/tmp"', "unknown setting 'home'"),
        (f"{'x' * 5000} = 1", "unknown setting 'xxx"),
    ],
)
def test_an_unknown_setting_of_the_user_is_a_warning_with_the_nearest_name(
    own_world: Path, user: str, says: str
) -> None:
    settings = load(own_world, user=f"prompt_lessons = 2\n{user}")
    (line,) = settings.warnings()
    assert line.startswith(f"warning: {own_world / 'config.toml'}: ignored: {says}")
    assert len(line) < 400
    assert settings.prompt_lessons == 2
    assert settings.home == own_world


@pytest.mark.slow
def test_commands_go_on_with_a_warning(make_vault: MakeVault, own_world: Path) -> None:
    vault = make_vault({"heap.md": lesson_text("Heap", "Raise the heap.")})
    write(vault.lessons_dir / "vault.toml", "[learn]\nsignificance = -100\n")
    write(own_world / "config.toml", 'embedder = "none"\n[ask]\nmodl = 1\n')
    warned = (
        "warning: lessons/vault.toml: ignored: "
        "learn.significance must be a whole number, 0 or more, not -100\n"
        f"warning: {own_world}/config.toml: ignored: "
        "unknown setting 'ask.modl': did you mean 'ask.model'?\n"
    )
    for words in (["search", "raise the heap"], ["list"], ["show", "heap"], ["config"],
                  ["recall", "raise the heap"], ["index"], ["rm", "heap", "--yes"]):  # fmt: skip
        ran = run("lessons", *words, cwd=vault.root)
        assert ran.err.startswith(warned), words
        assert ran.err.count("modl") == 1, words
    ran = run("lessons", "journal", "status", cwd=own_world)
    assert "did you mean 'ask.model'?" in ran.err
    checked = run("lessons", "check", cwd=vault.root, check=False)
    assert checked.code == 1
    assert "lessons/vault.toml:2: settings: learn.significance must be" in checked.out
    troubles = run("lessons", "status", "--check", cwd=vault.root, check=False).out
    assert "learn.significance must be" in troubles
    assert "did you mean 'ask.model'?" in troubles


def test_a_wrong_environment_variable_is_named(own_world: Path) -> None:
    with pytest.raises(SettingsError, match="LESSONS_EMBEDDER: no embedder 'magic'") as raised:
        load(own_world, LESSONS_EMBEDDER="magic")
    assert raised.value.hint == "choose one of minilm, minilm+use, ollama, none"


# which files


def listed(vault: Vault) -> tuple[list[str], dict[str, str]]:
    files, skipped = vault.files()
    return [file.path for file in files], {one.path: one.reason for one in skipped}


def test_the_markdown_files_of_all_folders_sorted(make_vault: MakeVault) -> None:
    vault = make_vault(
        {"b.md": "x", "a/z.md": "x", "a/a b/ü.md": "x", "notes.txt": "x", "c.MD": "x"}
    )
    assert listed(vault) == (
        ["a/a b/ü.md", "a/z.md", "b.md"],
        {"c.MD": "no lesson: it ends in .MD, not in .md"},
    )


def test_hidden_files_and_folders_are_not_the_vaults(make_vault: MakeVault) -> None:
    vault = make_vault({"a.md": "x", ".a.md.swp.md": "x", ".obsidian/b.md": "x", ".git/c.md": "x"})
    assert listed(vault) == (["a.md"], {})
