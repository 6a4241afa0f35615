"""The settings, journal, proposals and hooks that 0.7.0 left behind go on.

`v0_7_0` has files as 0.7.0 wrote them, with `@HOME@`, `@VAULT@`, `@HOOK@` and `@ROOT@` (the vault's
first commit) for what differs between machines.
"""

from __future__ import annotations

import json
import shutil
import tomllib
from pathlib import Path

import pytest

from tests.support.commands import BIN, run
from tests.support.places import TESTS

LEFT = TESTS / "promises" / "v0_7_0"
SESSION = "9a976158-0000-4000-8000-000000000001"
TRANSCRIPT = f".claude/projects/-home-ada-shop/{SESSION}.jsonl"

pytestmark = pytest.mark.slow


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home of a user of 0.7.0 who upgrades now, with a vault `team` in it."""
    home = tmp_path / "ada"
    shutil.copytree(LEFT / "home", home)
    vault = home / "team"
    shutil.copytree(LEFT / "vault", vault)
    run("git", "init", "-q", "-b", "main", cwd=vault)
    run("git", "add", "-A", cwd=vault)
    run("git", "commit", "-q", "-m", "The first lesson", cwd=vault)
    root = run("git", "rev-parse", "HEAD", cwd=vault).out.strip()
    places = {"@HOME@": home, "@VAULT@": vault, "@HOOK@": BIN / "lessons-hook", "@ROOT@": root}
    for file in (home / folder for folder in files_of(LEFT / "home")):
        text = file.read_text("utf-8")
        for name, place in places.items():
            text = text.replace(name, str(place))
        file.write_text(text, "utf-8")
    for folder in (home / ".lessons").rglob("*"):
        folder.chmod(0o700 if folder.is_dir() else 0o600)
    (home / ".lessons").chmod(0o700)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("LESSONS_HOME", str(home / ".lessons"))
    return home


def files_of(folder: Path) -> list[Path]:
    return [file.relative_to(folder) for file in folder.rglob("*") if file.is_file()]


def test_each_setting_is_in_force_or_named(home: Path) -> None:
    team = home / "team"
    now = {each["name"]: each for each in run("lessons", "config", "--json", cwd=team).json}
    named = run("lessons", "status", "--check", cwd=team, check=False).out
    renamed = {"left_out": "exclude", "ignored": "exclude", "most": "max_entries"}
    gone = {"journal.refine", "journal.refine_a_day", "journal.prompt"}
    for file in (team / "lessons/vault.toml", home / ".lessons/config.toml"):
        for key, value in tomllib.loads(file.read_text()).items():
            table = value.items() if isinstance(value, dict) and key != "keywords" else ()
            for inner, own in table or [("", value)]:
                name = ".".join(filter(None, (key, renamed.get(inner, inner))))
                if name in gone:
                    assert f"ignored: the setting '{name}' is gone: remove it" in named
                elif file.name == "config.toml":
                    assert now[name]["value"] == own, name
                else:
                    assert now[name]["origin"] != "default", name
    assert "'journal.left_out' is 'journal.exclude' now: rename it" in named
    assert run("lessons", "check", cwd=team).code == 0  # an old name stops no commit


def test_proposals_wait_and_rejected_ones_stay_rejected(home: Path) -> None:
    team = home / "team"
    assert "Pin the runner image in CI" in run("lessons", "review", "list", cwd=team).out
    ran = run("lessons", "review", "accept", "defb606a", cwd=team)
    assert ran.out == "lessons/devops/ci-cd/pin-the-runner-image-in-ci.md\n"
    assert "the build broke over night" in (team / ran.out.strip()).read_text()
    text = "Retry a download five times, two seconds apart, before you give it up."
    ran = run("lessons", "remember", "--title", "Retry downloads", "--text", text, cwd=team)
    assert "rejected before" in ran.out


def test_a_session_that_goes_on_is_continued_in_its_file(home: Path) -> None:
    """Records of before the upgrade are found, and not taken in again."""
    folder = home / ".lessons/journal/shop/2026-11"
    last = json.loads((home / TRANSCRIPT).read_text().splitlines()[-1])
    asked = {"role": "user", "content": "Now log each retry of the uploader with its number"}
    more = {"type": "user", "uuid": "00000000-0000-4000-8000-000000000009", "message": asked}
    more |= {"parentUuid": last["uuid"], "timestamp": "2026-11-20T12:10:00.000Z"}
    with (home / TRANSCRIPT).open("a") as file:
        file.write(json.dumps({**last, **more}) + "\n")
    run("lessons", "journal", "import", "--since", "all", cwd=home)
    assert [file.name for file in folder.iterdir()] == ["20-9a976158.md"]
    text = (folder / "20-9a976158.md").read_text()
    assert [text.count(f'"id": "9a976158-p{number}"') for number in (1, 2, 3, 4)] == [1, 1, 1, 0]
    words = ("journal", "search", "--all-projects", "--since", "all", "retries fixed pause")
    assert "9a976158-o2" in run("lessons", *words, cwd=home).out


def test_hooks_are_brought_up_to_date_and_taken_out_whole(home: Path) -> None:
    settings = home / ".claude/settings.json"
    own = {"type": "command", "command": "notify-send done"}
    run("lessons", "install", "claude", "--journal", cwd=home)
    commands = [
        (event, hook["command"])
        for event, groups in json.loads(settings.read_text())["hooks"].items()
        for group in groups
        for hook in group["hooks"]
    ]
    assert len(commands) == len(set(commands))
    for agent in ("claude", "codex", "gemini", "cursor"):
        run("lessons", "uninstall", agent, cwd=home)
    assert json.loads(settings.read_text()) == {
        "model": "opus",
        "hooks": {"Stop": [{"hooks": [own]}]},
    }
    for file in (".codex/hooks.json", ".gemini/settings.json", ".cursor/hooks.json"):
        assert not (home / file).exists() or "lessons-hook" not in (home / file).read_text()
