"""From an injection to a count: the records, the journal, the transcript, and what outlives them."""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import run
from tests.support.conversations import Conversation
from tests.support.files import commit, lesson_text
from tests.support.homes import clock_ran
from tests.support.serving import serving
from vault_index.index import reconcile
from vault_index.journal import capture
from vault_index.journal.journal import Journal
from vault_index.recall import outcome
from vault_index.recall.outcome import Tally, ledger, story
from vault_index.store import injections
from vault_index.text import failure
from vault_index.transcripts import reading
from vault_index.vault import Vault, open_vault

HEAP = "devops/heap"
TEXT = (
    "When the build dies with `heap out of memory`, set `NODE_OPTIONS=--max-old-space-size=4096`."
)
PROMPT = "our frontend build dies, please have a look"


@pytest.fixture
def team(make_vault: Callable[..., Vault], monkeypatch: pytest.MonkeyPatch) -> Vault:
    """A vault of two lessons with an index for full text."""
    monkeypatch.setenv("LESSONS_EMBEDDER", "none")
    make_vault(
        {
            "devops/heap.md": lesson_text("Raise the heap", TEXT),
            "devops/pnpm.md": lesson_text(
                "pnpm", "Install with `pnpm install`, not `npm install`."
            ),
        }
    )
    vault = open_vault(Path(os.environ["HOME"]).parent / "team")
    commit(vault.root, "Lessons")
    reconcile.sync(vault)
    return vault


def talk(vault: Vault, name: str = "build", days_ago: float = 0.1) -> Conversation:
    return Conversation(vault.root, name, began=datetime.now(UTC) - timedelta(days=days_ago))


def injected(
    vault: Vault,
    session: Conversation,
    *lessons: str,
    prompt: str = PROMPT,
    event: str = "UserPromptSubmit",
) -> None:
    """Record an injection as the hook does, at the time of the session."""
    hits = [(lesson, 0.9) for lesson in lessons or (HEAP,)]
    injections.record(vault.index_dir, event, session.id, prompt, hits, [], 0.5, 9.0, "process")
    file = vault.index_dir / injections.FILE
    *before, last = file.read_text().splitlines()
    at = session._at - timedelta(seconds=1)
    record = json.loads(last) | {"time": at.strftime("%Y-%m-%dT%H:%M:%SZ")}
    file.write_text("".join(f"{line}\n" for line in [*before, json.dumps(record)]))


def kept(vault: Vault, session: Conversation) -> Path:
    """Take a session into the journal."""
    taken = capture.capture(Journal(vault.config), session.file, reading.CLAUDE, force=True)
    assert taken.file, taken
    return taken.file


def a_session_that_takes_it(vault: Vault, name: str = "build", **when: float) -> Conversation:
    session = talk(vault, name, **when).asks(PROMPT)
    injected(vault, session)
    session.edits("ci.yml", "run: build", "NODE_OPTIONS: --max-old-space-size=4096\nrun: build")
    session.runs("npm run build", "done")
    kept(vault, session)
    return session


def test_an_injection_that_was_taken(team: Vault) -> None:
    a_session_that_takes_it(team)
    assert outcome.tally(team) == {HEAP: Tally(injected=1, taken=1)}


def test_without_the_transcript_the_journal_has_to_do(team: Vault) -> None:
    session = talk(team).asks(PROMPT)
    injected(team, session)
    session.runs("NODE_OPTIONS=--max-old-space-size=4096 npm run build", "done")
    kept(team, session)
    session.file.unlink()
    assert outcome.tally(team)[HEAP] == Tally(injected=1, taken=1)


def test_a_session_that_nobody_recorded_is_unknown(team: Vault) -> None:
    """Its transcript is there, but the user wants no record of it."""
    session = talk(team).asks(PROMPT)
    injected(team, session)
    session.runs("NODE_OPTIONS=--max-old-space-size=4096 npm run build", "done")
    assert outcome.tally(team)[HEAP] == Tally(injected=1, unknown=1)


def test_a_session_that_goes_on_is_judged_again(team: Vault) -> None:
    session = a_session_that_takes_it(team)
    assert outcome.tally(team)[HEAP].taken == 1
    session.asks("no, that is wrong: --max-old-space-size does nothing here, take it out")
    session.edits("ci.yml", "NODE_OPTIONS: --max-old-space-size=4096", "")
    kept(team, session)
    assert outcome.tally(team)[HEAP] == Tally(injected=1, contradicted=1)


def test_what_was_injected_at_the_start_of_a_session(team: Vault) -> None:
    session = talk(team)
    injected(team, session, HEAP, "devops/pnpm", prompt="", event="SessionStart")
    session.asks("get everything in place").runs("pnpm install", "done")
    kept(team, session)
    tallies = outcome.tally(team)
    assert tallies["devops/pnpm"] == Tally(injected=1, taken=1)
    assert tallies[HEAP] == Tally(injected=1, ignored=1)


def test_what_other_sessions_of_the_project_do_anyway_shows_nothing(team: Vault) -> None:
    for name in ("one", "two"):
        other = talk(team, name).asks("build it")
        kept(team, other.runs("NODE_OPTIONS=--max-old-space-size=4096 npm run build", "done"))
    a_session_that_takes_it(team)
    assert outcome.tally(team)[HEAP] == Tally(injected=1, unknown=1)


def test_sessions_that_were_given_a_lesson_make_it_no_less_visible(team: Vault) -> None:
    for name in ("one", "two", "three"):
        a_session_that_takes_it(team, name)
    assert outcome.tally(team)[HEAP] == Tally(injected=3, taken=3)


def test_open_injections_are_judged_again_by_new_rules(team: Vault) -> None:
    a_session_that_takes_it(team)
    outcome.tally(team)
    file = next((team.config.home / "outcomes").rglob(ledger.FILE))
    older = json.loads(file.read_text()) | {"version": 1, "counted": {"gone": [1, 2, 3, 4]}}
    for entry in older["open"].values():
        entry["verdicts"] = ["contradicted"]
    file.write_text(json.dumps(older))
    tallies = outcome.tally(team)
    assert tallies[HEAP] == Tally(injected=1, taken=1)
    assert tallies["gone"] == Tally(10, 1, 2, 3, 4)


def test_a_lookup_of_an_agent_is_no_injection(team: Vault) -> None:
    injections.record(team.index_dir, "LearnGet", "", "", [(HEAP, 1.0)], [], None, 1.0, "learn")
    assert outcome.tally(team) == {}


def test_what_the_hook_injected_is_no_deed_of_the_agent(team: Vault) -> None:
    session = talk(team).asks(PROMPT)
    injected(team, session)
    session.says(f"<lessons>\n{TEXT}\n</lessons>\nI look at the workflow.").runs(
        "cat ci.yml", "build"
    )
    kept(team, session)
    assert outcome.tally(team)[HEAP] == Tally(injected=1, ignored=1)


@pytest.mark.slow
def test_counts_outlive_the_index_the_journal_and_the_records(team: Vault) -> None:
    session = a_session_that_takes_it(team)
    before = outcome.tally(team)
    shutil.rmtree(team.index_dir)
    reconcile.sync(team)
    assert outcome.tally(team) == before
    run("lessons", "journal", "forget", "--session", session.id, "--yes", cwd=team.root)
    assert outcome.tally(team) == before


@pytest.mark.slow
def test_a_renamed_lesson_takes_its_counts_along(team: Vault) -> None:
    a_session_that_takes_it(team)
    assert outcome.tally(team)[HEAP].taken == 1
    run("lessons", "categories", "rename", "devops", "ops", "--write", cwd=team.root)
    reconcile.sync(team)
    a_session_that_takes_it(team, "another")  # records still have the old name
    assert outcome.tally(team)["ops/heap"].taken == 1
    assert outcome.tally(team)["devops/heap"].injected == 1


def test_old_injections_are_only_counted(team: Vault) -> None:
    clock_ran(team.config.home, since=40, last=0.1)
    a_session_that_takes_it(team, days_ago=ledger.OPEN_DAYS + 3)
    a_session_that_takes_it(team, "young")
    for _ in range(2):
        assert outcome.tally(team)[HEAP] == Tally(injected=2, taken=2)
    known = outcome.update(team)
    assert len(known.open) == 1
    assert known.counted == {HEAP: [1, 0, 0, 0, 0]}
    (team.index_dir / injections.FILE).touch()  # it is read again
    assert outcome.tally(team)[HEAP].injected == 2


def test_nothing_of_a_session_is_in_the_ledger_and_nobody_else_reads_it(team: Vault) -> None:
    a_session_that_takes_it(team)
    outcome.tally(team)
    files = [file for file in (team.config.home / "outcomes").rglob("*") if file.is_file()]
    written = "".join(file.read_text() for file in files)
    assert "frontend" not in written
    assert "NODE_OPTIONS" not in written
    for place in (team.config.home / "outcomes").rglob("*"):
        assert not stat.S_IMODE(place.stat().st_mode) & 0o077, place


def test_a_damaged_ledger_is_begun_again(team: Vault) -> None:
    a_session_that_takes_it(team)
    outcome.tally(team)
    file = next((team.config.home / "outcomes").rglob(ledger.FILE))
    file.write_bytes(b'{"version": 1, "open": [')
    assert outcome.tally(team)[HEAP].taken == 1


def test_without_time_sessions_wait(team: Vault) -> None:
    a_session_that_takes_it(team)
    assert ledger.update(team, seconds=-1).waiting == 1
    assert ledger.update(team).waiting == 0


def test_a_vault_without_an_index_or_records(make_vault: Callable[..., Vault]) -> None:
    assert outcome.tally(make_vault({})) == {}


@pytest.mark.slow
def test_status_show_and_today_say_it(team: Vault, own_world: Path) -> None:
    a_session_that_takes_it(team)
    shown = run("lessons", "show", "heap", cwd=team.root).out
    assert "injected 1 time: 1 taken, 0 ignored, 0 contradicted, 0 unknown" in shown
    entry = json.loads(run("lessons", "show", "heap", "--json", cwd=team.root).out)
    assert entry["outcome"]["taken"] == 1
    assert "outcome    injected 1 time: 1 taken" in run("lessons", "status", cwd=team.root).out
    with serving(team.root, own_world, LESSONS_EMBEDDER="none") as server:
        assert ">taken 1<" in server.ask("GET", "/page/private/today").text


def steps_of(folder: Path, *lines: dict[str, Any]) -> list[story.Step]:
    file = folder / "t.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return list(story.steps_in(reading.read_events(file, reading.CLAUDE)))


def test_a_refused_call_is_no_deed(team: Vault) -> None:
    session = talk(team).asks(PROMPT)
    session._tool(
        "Bash",
        {"command": "NODE_OPTIONS=--max-old-space-size=4096 npm run build"},
        "The user doesn't want to proceed with this tool use. The tool use was rejected. "
        "To tell you how to proceed, the user said:\nwe never raise the heap",
        failed=True,
    )
    lines = [json.loads(line) for line in session.file.read_text().splitlines()]
    kinds = [step.kind for step in steps_of(team.root, *lines)]
    assert story.REFUSED in kinds
    assert story.RAN not in kinds


BUILD = "npm run build"
DIED = "FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory"


def failed_build(vault: Vault, name: str) -> Conversation:
    """A session whose build failed, with the lesson injected at the failure."""
    session = talk(vault, name).asks(PROMPT)
    session.runs(BUILD, f"Exit code 134\n{DIED}", failed=True)
    signature = failure.read(BUILD, DIED).signature
    injected(vault, session, prompt=signature, event=injections.FAILURE)
    return session.runs("export NODE_OPTIONS=--max-old-space-size=4096", "")


def test_a_lesson_at_a_failure_that_does_not_come_again_was_taken(team: Vault) -> None:
    session = failed_build(team, "repaired").runs(BUILD, "done")
    kept(team, session)
    assert outcome.tally(team) == {HEAP: Tally(injected=1, taken=1)}


def test_the_same_failure_after_its_advice_contradicts_the_lesson(team: Vault) -> None:
    again = DIED.replace("Reached", "Near")
    session = failed_build(team, "again").runs(BUILD, f"Exit code 134\n{again}", failed=True)
    kept(team, session)
    assert outcome.tally(team) == {HEAP: Tally(injected=1, taken=1)}  # it says something else
    session.runs(BUILD, f"Exit code 134\n\x1b[31m{DIED}\x1b[0m", failed=True)
    kept(team, session)
    assert outcome.tally(team) == {HEAP: Tally(injected=1, contradicted=1, again=1)}


def test_a_lesson_at_an_edit_is_judged_by_what_comes_after_the_edit(team: Vault) -> None:
    session = talk(team).asks(PROMPT).edits("ci.yml", "run: build", "run: make")
    injected(team, session, prompt="ci.yml", event=injections.EDIT)
    session.runs("NODE_OPTIONS=--max-old-space-size=4096 npm run build", "done")
    kept(team, session)
    assert outcome.tally(team) == {HEAP: Tally(injected=1, taken=1)}


@pytest.mark.slow
def test_a_failure_that_came_again_is_known_without_a_journal(team: Vault) -> None:
    session, other = talk(team), talk(team, "other")
    signature = failure.read(BUILD, DIED).signature
    for each in (session, other):
        injected(team, each, prompt=signature, event=injections.FAILURE)
    assert outcome.tally(team) == {HEAP: Tally(injected=2, unknown=2)}
    about = injections.FAILURE, session.id, signature
    injections.record(team.index_dir, *about, [], [], None, 9.0, "watcher")
    seen = Tally(injected=2, unknown=2, again=1)
    assert outcome.tally(team) == {HEAP: seen}
    shown = run("lessons", "show", "heap", cwd=team.root).out
    assert "2 unknown; its failure came again 1 time" in shown
    shutil.rmtree(team.index_dir)
    reconcile.sync(team)
    assert outcome.tally(team) == {HEAP: seen}
