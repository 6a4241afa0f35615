"""`lessons journal`, through the real commands, on transcripts as agents write them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.support.commands import Ran, run
from tests.support.conversations import Conversation, about_redirects, about_retries
from tests.support.terminals import at_terminal

KEYS = {"id", "kind", "session", "project", "branch", "at", "number", "title", "text", "type"}
KEYS |= {"concepts", "files", "uuids", "score"}


@pytest.fixture
def shop(tmp_path: Path, own_world: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with two sessions that an agent has kept; nothing is taken in yet."""
    monkeypatch.setenv("LESSONS_EMBEDDER", "none")
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


@pytest.mark.slow
def test_import_shows_what_it_would_take_and_takes_it_once(shop: Path, own_world: Path) -> None:
    plan = journal(shop, "import", "--dry-run")
    assert "3 sessions of 2 projects" in plan.out
    assert "nothing was taken in" in plan.out
    assert not list((own_world / "journal").rglob("*.md"))
    assert "3 sessions of 2 projects" in journal(shop, "import").out
    assert "nothing new, 3 there already" in journal(shop, "import").out
    assert "3 older" in journal(shop, "import", "--since", "2030-01-01").err


@pytest.mark.slow
def test_search_finds_by_words_file_type_and_time(imported: Path) -> None:
    answer = journal(imported, "search", "--json", "login redirect query").json
    assert set(answer) == {"hits", "older", "text_only"}
    assert set(answer["hits"][0]) >= KEYS
    assert "redirect" in answer["hits"][0]["title"]
    by_file = journal(imported, "search", "--json", "--file", "login.py").json["hits"]
    assert {hit["type"] for hit in by_file if hit["kind"] == "observation"} == {"bugfix"}
    decided = journal(imported, "search", "--json", "--type", "decision", "retries").json["hits"]
    assert all(hit["type"] == "decision" for hit in decided)
    assert "five times" in decided[0]["title"]
    assert journal(imported, "search", "--until", "2020-01-01", "retries").err.startswith("nothing")
    only_here = journal(imported, "search", "--json", "-k", "50", "retry mailer").json["hits"]
    assert {hit["project"] for hit in only_here} <= {"shop"}
    everywhere = journal(imported, "search", "--json", "--all-projects", "retry mailer").json
    assert everywhere["hits"][0]["project"] == "other"


def test_the_home_of_no_user_is_a_project_that_is_not_there(
    tmp_path: Path, own_world: Path
) -> None:
    """Python's own reader of `~name` raises for it."""
    done = journal(tmp_path, "sessions", "--project", "~nobody-of-this-name/shop", check=False)
    assert (done.code, done.err.splitlines()[0]) == (
        1,
        "Error: no project '~nobody-of-this-name/shop' in the journal",
    )


@pytest.mark.slow
def test_show_and_sessions_name_what_search_found(imported: Path) -> None:
    hit = journal(imported, "search", "--json", "--type", "bugfix", "redirect").json["hits"][0]
    shown = journal(imported, "show", hit["id"]).out
    assert "[bugfix]" in shown
    assert "$ pytest tests/test_login.py" in shown
    (record,) = journal(imported, "show", hit["id"], "--json").json["records"]
    assert record["uuids"] == hit["uuids"]
    listed = journal(imported, "sessions", "--json").json
    assert len(listed) == 2
    whole = journal(imported, "show", hit["session"][:8], "--json").json
    assert {each["kind"] for each in whole["records"]} == {"prompt", "observation", "summary"}
    gone = journal(imported, "show", "nothing", check=False)
    assert gone.code == 1
    assert gone.err.splitlines()[1].startswith("Try: ")


@pytest.mark.slow
def test_a_timeline_is_in_order_of_time_and_marks_its_anchor(imported: Path) -> None:
    hit = journal(imported, "search", "--json", "--type", "bugfix", "redirect").json["hits"][0]
    answer = journal(imported, "timeline", hit["id"], "--json").json
    assert answer["anchor"] == hit["id"]
    times = [record["at"] for record in answer["records"]]
    assert len(times) > 3
    assert times == sorted(times)
    shown = journal(imported, "timeline", hit["id"], "--before", "1", "--after", "0").out
    assert [line for line in shown.splitlines() if line.startswith("> ")]
    assert journal(imported, "timeline", "yesterday 14:00").code == 0


@pytest.mark.slow
def test_a_full_timeline_has_all_that_show_has(imported: Path) -> None:
    (hit,) = journal(imported, "search", "login", "-k", "1", "--json").json["hits"]
    depth = ("--before", "0", "--after", "0", "--json")
    (whole,) = journal(imported, "timeline", hit["id"], *depth, "--format", "full").json["records"]
    (shown,) = journal(imported, "show", hit["id"], "--json").json["records"]
    assert {**whole, **shown} == whole


@pytest.mark.slow
def test_status_shows_what_is_kept_and_recorded(imported: Path, own_world: Path) -> None:
    state = journal(imported, "status", "--json").json
    assert state["sessions"] == 3
    assert state["recorded"] == state["hooks"] == []
    assert state["projects"] == {"shop": 2, "other": 1}
    run("lessons", "install", "claude", "--journal", "--project", cwd=imported)
    state = journal(imported, "status", "--json").json
    assert state["recorded"] == [str(imported)]
    assert state["hooks"] == [str(imported / ".claude" / "settings.json")]
    file = next((own_world / "journal" / "other").rglob("*.md"))
    file.write_text("damaged")
    assert str(file) in journal(imported, "status").out


@pytest.mark.slow
def test_doctor_and_status_of_a_vault_name_what_is_wrong(imported: Path, own_world: Path) -> None:
    run("lessons", "init", cwd=imported)
    (own_world / "journal" / "recorded").write_text("*\n")
    file = next((own_world / "journal" / "other").rglob("*.md"))
    file.write_text("damaged")
    troubles = run("lessons", "status", "--check", "--json", cwd=imported, check=False).json[
        "troubles"
    ]
    ours = {
        trouble["what"]: trouble["fix"] for trouble in troubles if trouble["about"] == "journal"
    }
    assert ours.pop("sessions are recorded, and no hook says when a turn ended") == (
        "lessons install claude --journal"
    )
    (damaged,) = ours
    assert str(file) in damaged
    state = run("lessons", "status", "--json", cwd=imported).json["journal"]
    assert (state["sessions"], state["recorded"]) == (2, ["*"])
    assert "recorded: every project" in run("lessons", "status", cwd=imported).out


@pytest.mark.slow
def test_a_rebuild_makes_the_index_of_the_journal_again(imported: Path, own_world: Path) -> None:
    index = own_world / "journal" / ".vault_index"
    before = (index / "current").read_bytes()
    assert run("lessons", "index", "--rebuild", cwd=imported).out.startswith("journal: 3 sessions")
    assert (index / "current").read_bytes() != before
    shutil.rmtree(index)
    assert journal(imported, "search", "--json", "login redirect").json["hits"]


@pytest.mark.slow
def test_forget_takes_out_files_and_rows(imported: Path, own_world: Path) -> None:
    done = journal(imported, "forget", "--matching", "redirect", "--json").json
    assert done["records"] > 0
    left = [file for file in (own_world / "journal").rglob("*") if file.is_file()]
    assert not [file for file in left if b"redirect" in file.read_bytes().lower()]
    assert not [
        hit
        for hit in journal(imported, "search", "--json", "login redirect").json["hits"]
        if "redirect" in json.dumps(hit)
    ]
    assert journal(imported, "forget", check=False).code == 2


@pytest.mark.slow
@pytest.mark.parametrize("answer", ["y", "n"])
def test_init_asks_once_at_a_terminal_and_the_default_is_no(
    shop: Path, own_world: Path, answer: str
) -> None:
    code, shown = at_terminal(
        "lessons", "init", cwd=shop, typed=[("[y/N]", f"{answer}\n")], size=(50, 80)
    )
    assert code == 0
    assert str(own_world / "journal") in "".join(shown.split("\n"))
    recorded = own_world / "journal" / "recorded"
    settings = own_world / ".claude" / "settings.json"
    assert recorded.exists() == settings.exists() == (answer == "y")
    if answer == "y":
        assert recorded.read_text() == f"{shop}\n"
        assert at_terminal("lessons", "init", cwd=shop)[1].count("[y/N]") == 0


def test_the_folders_are_private(imported: Path, own_world: Path) -> None:
    journal = own_world / "journal"
    for path in [journal, *journal.rglob("*")]:
        inside = path.relative_to(journal).parts
        if inside[:1] != (".vault_index",) or len(inside) == 1:  # below it LanceDB makes its own
            assert path.stat().st_mode & 0o077 == 0, path
