"""`lessons journal`, through the real commands, on transcripts as agents write them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.support.commands import BIN, Ran, run
from tests.support.conversations import Conversation, about_redirects, about_retries
from tests.support.files import MakeVault
from tests.support.terminals import at_terminal

KEYS = {"id", "kind", "session", "project", "branch", "at", "number", "title", "text", "type"}
KEYS |= {"concepts", "files", "uuids", "score"}


@pytest.fixture
def shop(tmp_path: Path, own_world: Path, text_only: None) -> Path:
    """A project with two sessions that an agent has kept; nothing is taken in yet."""
    folder = tmp_path / "shop"
    folder.mkdir()
    about_redirects(folder)
    about_retries(folder)
    other = tmp_path / "other"
    other.mkdir()
    Conversation(other, "else").asks("Where is the retry of the mailer?").says("In mail.py.")
    return folder


def journal(shop: Path, *words: str, check: bool = True) -> Ran:
    return run("lessons", "journal", *words, cwd=shop, check=check)


@pytest.fixture
def imported(shop: Path) -> Path:
    """The same, taken in."""
    journal(shop, "import")
    return shop


def test_doctor_and_status_of_a_vault_name_what_is_wrong(imported: Path, own_world: Path) -> None:
    run("lessons", "init", cwd=imported)
    (own_world / "journal" / "recorded").write_text("*\n")
    found = run("lessons", "status", "--check", "--json", cwd=imported, check=False).json
    ours = {each["what"]: each["fix"] for each in found["troubles"] if each["about"] == "journal"}
    what = "sessions are recorded, and no hook says when a turn ended"
    assert ours == {what: "lessons install claude --journal"}
    state = run("lessons", "status", "--json", cwd=imported).json["journal"]
    assert (state["sessions"], state["recorded"]) == (3, ["*"])
    assert "recorded: every project" in run("lessons", "status", cwd=imported).out


@pytest.mark.slow
def test_a_database_of_a_newer_version_is_no_empty_journal(imported: Path, own_world: Path) -> None:
    newer = f"import sqlite3; sqlite3.connect({str(own_world / 'state.sqlite')!r}).execute"
    run(sys.executable, "-c", f"{newer}('PRAGMA user_version = 999')", cwd=imported)
    said = run("sh", "-c", "$0 journal sessions", BIN / "lessons", cwd=imported, check=False).err
    assert "state.sqlite was written by a newer version" in said


@pytest.mark.slow
def test_a_damaged_index_of_the_journal_is_named_with_what_mends_it(
    make_vault: MakeVault, own_world: Path, imported: Path
) -> None:
    index = own_world / "journal" / ".vault_index"
    (manifest,) = index.glob("*/manifest.json")
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "schema": 999}))
    vault = make_vault(name="beside")
    checked = run("lessons", "status", "--check", "--json", cwd=vault.root, check=False).json
    fixes = [each["fix"] for each in checked["troubles"] if "newer version" in each["what"]]
    assert fixes == [f"rm -r {index}"]
    refused = journal(imported, "search", "login redirect", check=False)
    assert f"remove {index}" in refused.err
    run("sh", "-c", fixes[0], cwd=imported)
    assert journal(imported, "search", "--json", "login redirect").json["hits"]


@pytest.mark.slow
@pytest.mark.parametrize("answer", ["", "n"])
def test_whoever_begins_a_vault_is_asked_once_whether_to_record(
    shop: Path, own_world: Path, answer: str
) -> None:
    env = {"CODEX_HOME": str(own_world / ".codex")}
    proposes = [("from them? [y/N]", "\n")] if answer != "n" else []
    typed = [("[Y/n]", f"{answer}\n"), *proposes]
    code, shown = at_terminal("lessons", "init", cwd=shop, typed=typed, size=(50, 80), env=env)
    assert code == 0
    assert str(own_world) in "".join(shown.split("\n"))
    recorded = own_world / "journal" / "recorded"
    claudes = own_world / ".claude" / "settings.json"
    assert recorded.exists() == claudes.exists() == (answer != "n")
    assert "answer in all projects" in " ".join(shown.split())  # it says whose hooks these are
    if answer == "n":
        assert "no; later: lessons install claude --journal" in shown
    else:
        assert recorded.read_text() == f"{shop}\n"
        again = at_terminal("lessons", "init", cwd=shop, env=env)
        assert again[1].count("[Y/n]") == 0


def test_without_a_terminal_nothing_is_recorded_and_one_line_says_so(
    shop: Path, own_world: Path
) -> None:
    said = "note: sessions are not recorded; to record: lessons install claude --journal\n"
    assert run("lessons", "install", "claude", cwd=shop).err.count(said) == 1
    assert not (own_world / "journal" / "recorded").exists()
    assert "not recorded" not in run("lessons", "install", "gemini", cwd=shop).err
    assert "not recorded" not in run("lessons", "install", "claude", "--journal", cwd=shop).err
    assert "not recorded" not in run("lessons", "install", "claude", cwd=shop).err


def test_search_all_without_a_vault_searches_sessions(imported: Path, own_world: Path) -> None:
    """Issue 55, row 13."""
    note = f"note: sessions alone: no vault found from {imported} upwards\n"
    ran = run("lessons", "search", "--all", "retry of the mailer", cwd=imported)
    assert note in ran.err
    assert "Where is the retry of the mailer?" in ran.out
    found = run("lessons", "search", "--all", "--json", "retry of the mailer", cwd=imported).json
    assert (found["hits"], found["sessions"][0]["title"]) == (
        [],
        "Where is the retry of the mailer?",
    )
    for words, env in (
        (("search", "retry"), {}),  # it asks for lessons
        (("--vault", "nowhere", "search", "--all", "retry"), {}),
        (("search", "--all", "retry"), {"LESSONS_VAULT": "nowhere"}),
    ):
        refused = run("lessons", *words, cwd=imported, env=env, check=False)
        assert (refused.code, refused.out, "no vault" in refused.err) == (1, "", True)


def test_the_folders_are_private(imported: Path, own_world: Path) -> None:
    journal = own_world / "journal"
    for path in [journal, *journal.rglob("*")]:
        inside = path.relative_to(journal).parts
        if inside[:1] != (".vault_index",) or len(inside) == 1:  # below it LanceDB makes its own
            assert path.stat().st_mode & 0o077 == 0, path
