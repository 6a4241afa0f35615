"""A language model's words for a session: one call, bounded, redacted, never twice for nothing."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.commands import run
from tests.support.conversations import about_redirects, about_retries
from tests.support.files import write
from tests.support.ollama_server import OllamaServer
from tests.support.sessions import a_session
from tests.support.watchers import soon, watched
from vault_index.config import Config
from vault_index.journal import (
    events,
    excerpt,
    forget,
    overview,
    places,
    refine,
    refined,
    session_file,
)
from vault_index.journal.journal import Journal
from vault_index.journal.record import Record, Session
from vault_index.journal.take import take
from vault_index.vault import Vault, open_vault

ENDED = 1_795_183_740.0  # of the session of the tests: 2026-11-20T14:09:00Z
HOUR = 3600
NOW = ENDED + HOUR + 1
KEY = "AKIAQ4LZ7WFJX2MNB3RT"
GOOD: dict[str, Any] = {
    "request": "Keep the query string when the login page redirects.",
    "investigated": "How login.py builds the address of the redirect.",
    "learned": "The old code cut the address at the question mark.",
    "completed": "login.py keeps the query; tests/test_login.py passes.",
    "next_steps": "Deploy it.",
    "notes": "",
    "observations": [
        {
            "id": "o1.1",
            "title": "The login redirect lost everything after the question mark",
            "narrative": "login.py cut the query off. It is kept now, and the test passes.",
        }
    ],
}


@pytest.fixture
def server() -> Iterator[OllamaServer]:
    with OllamaServer() as serving:
        serving.answer = lambda _: json.dumps(GOOD)
        yield serving


@pytest.fixture
def journal(tmp_path: Path, server: OllamaServer) -> Journal:
    config = Config(
        home=tmp_path / "home",
        ollama_host=server.url,
        embedder="none",
        journal_refine="ollama:llama3.2",
    )
    return Journal(config)


def keep(journal: Journal, session: Session) -> Path:
    file = journal.folder / places.place_of(session)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(session_file.dump(session))
    return file


def read(file: Path) -> Session:
    return session_file.parse(file.read_bytes(), file)


def outcomes(journal: Journal, now: float = NOW) -> list[str]:
    return list(refine.run(journal, lambda: now, sleep=lambda _: None).values())


def another(number: int, **changes: Any) -> Session:
    """Return a session like the one of the tests, under another id and of a later day."""
    session = a_session(f"{number:08x}-0000-4000-8000-000000000001")
    return replace(session, began=f"2026-11-{number:02}T14:02:33.120Z", **changes)


def gone_on(session: Session, ended: str) -> Session:
    """Return a session with another prompt, as rules make it."""
    prompt = replace(session.records[0], id=f"{session.id[:8]}-p2", number=2, text="And now?")
    *records, summary = session.records
    summary = replace(summary, fields={**summary.fields, "completed": "All of it."})
    return replace(session, ended=ended, prompts=2, records=(*records, prompt, summary))


def test_one_call_makes_the_words_better_and_the_rule_made_ones_stay(
    journal: Journal, server: OllamaServer
) -> None:
    before = a_session()
    file = keep(journal, before)
    assert refine.due(journal, NOW) == [file]
    assert outcomes(journal) == [refine.REFINED]
    after = read(file)
    assert after.refined == "ollama:llama3.2"
    prompt, observation, summary = after.records
    assert prompt == before.records[0]
    assert observation.title == GOOD["observations"][0]["title"]
    assert observation.facts == before.records[1].facts
    assert summary.fields["learned"] == GOOD["learned"]
    assert "notes" not in summary.fields
    assert refined.session_by_rule(after).records == before.records
    assert "The redirect keeps its query" in file.read_text("utf-8")  # by rule
    assert [outcomes(journal, NOW + n * HOUR) for n in range(48)] == [[]] * 48
    assert len(server.chats) == 1
    assert {path.stat().st_mode & 0o777 for path in journal.folder.glob("refine.*")} == {0o600}


def test_what_is_not_due(journal: Journal, server: OllamaServer) -> None:
    session = a_session()
    keep(journal, session)
    assert refine.due(journal, ENDED + HOUR - 1) == []  # it may go on
    assert refine.due(Journal(replace(journal.config, journal_refine="")), NOW) == []
    changed: tuple[dict[str, Any], ...] = (
        {"parent": "3f2a91c0"},  # a subagent's is a part of its session
        {"records": session.records[:1]},  # nothing was done
        {"refined": "ollama:other"},  # of a journal that came from elsewhere
    )
    for changes in changed:
        keep(journal, replace(session, **changes))
        assert refine.due(journal, NOW) == [], changes
    assert outcomes(journal) == []
    assert not server.chats


def test_the_model_sees_redacted_excerpts_behind_our_marker(
    journal: Journal, server: OllamaServer
) -> None:
    session = a_session()
    records = [replace(record, text=f"{record.text} {KEY} " * 500) for record in session.records]
    keep(journal, replace(session, records=tuple(records)))
    outcomes(journal)
    (chat,) = server.chats
    system, prompt = (message["content"] for message in chat["messages"])
    assert prompt.startswith(f"{events.MARKER}\n")
    assert KEY not in json.dumps(chat)
    seen = prompt.partition("<excerpts>")[2].partition("</excerpts>")[0]
    assert "The redirect keeps its query" in seen
    assert len(seen) < excerpt.MAX_CHARS + 100
    assert "data" in system


def test_a_secret_in_an_answer_is_redacted(journal: Journal, server: OllamaServer) -> None:
    file = keep(journal, a_session())
    server.answer = lambda _: json.dumps({**GOOD, "notes": f"The key is {KEY}."})
    assert outcomes(journal) == [refine.REFINED]
    assert KEY not in file.read_text("utf-8")
    assert "[redacted: " in read(file).records[-1].fields["notes"]


@pytest.mark.parametrize(
    ("answer", "trouble"),
    [
        ("The session was about a redirect.", "did not answer with JSON"),
        (json.dumps({"request": "A redirect."}), "another form"),
        (json.dumps(dict.fromkeys(GOOD, "") | {"observations": []}), "says nothing"),
        (json.dumps({**GOOD, "completed": "src/auth/session.ts was changed."}), "names a file"),
        (json.dumps({**GOOD, "notes": "See logout.py."}), "names a file"),
        (json.dumps({**GOOD, "notes": "As in 3f2a91c0-o7.1."}), "cites a record"),
        (
            json.dumps({**GOOD, "observations": [{"id": "o9.9", "title": "", "narrative": ""}]}),
            "cites a record",
        ),
    ],
)
def test_an_answer_that_is_worse_than_nothing_changes_nothing(
    journal: Journal, server: OllamaServer, answer: str, trouble: str
) -> None:
    file = keep(journal, a_session())
    server.answer = lambda _: answer
    assert outcomes(journal) == [refine.FAILED]
    assert read(file) == a_session()
    assert trouble in refine.load(journal).trouble


def test_words_that_look_like_files_do_no_harm(journal: Journal, server: OllamaServer) -> None:
    file = keep(journal, a_session())
    notes = "Node.js and/or the read/write path, v1.2, e.g. p90 of 3.5 s; see ./login.py."
    server.answer = lambda _: json.dumps({**GOOD, "notes": notes})
    assert outcomes(journal) == [refine.REFINED]
    assert read(file).records[-1].fields["notes"] == notes


def test_it_is_given_up_after_three_failures_an_hour_apart(
    journal: Journal, server: OllamaServer
) -> None:
    file = keep(journal, a_session())
    server.fault = "broken"
    calls = [len(outcomes(journal, NOW + n * HOUR / 2)) for n in range(20)]
    assert calls[:5] == [1, 0, 1, 0, 1]
    assert sum(calls) == 3
    assert len(server.chats) == 3 * 4  # each is tried again three times
    assert replace(read(file), refined="") == a_session()
    assert read(file).refined == "no: ollama:llama3.2: 3 failures"
    server.fault = ""
    keep(journal, gone_on(read(file), "2026-11-21T14:00:00Z"))
    assert outcomes(journal, NOW + 100 * HOUR) == []


def test_it_is_given_up_at_the_first_refusal(journal: Journal, server: OllamaServer) -> None:
    file = keep(journal, a_session())
    server.answer = lambda _: "I'm sorry, but I can't assist with that."
    assert outcomes(journal) == [refine.REFUSED]
    assert [outcomes(journal, NOW + n * HOUR) for n in range(1, 9)] == [[]] * 8
    assert len(server.chats) == 1
    assert read(file).refined == "no: ollama:llama3.2: it declined"


@pytest.mark.parametrize("away", ["missing", "busy", "gone"])
def test_a_server_that_is_away_costs_nothing(
    journal: Journal, server: OllamaServer, away: str
) -> None:
    files = [keep(journal, another(number)) for number in (1, 2, 3)]
    asked = journal
    if away == "gone":
        asked = Journal(replace(journal.config, ollama_host="127.0.0.1:9"))
    server.fault = away
    for round in range(6):
        assert outcomes(asked, NOW + round * HOUR) == [refine.AWAY]  # the first stands for all
        assert outcomes(asked, NOW + round * HOUR + HOUR / 2) == []
    state = overview.of(asked)["refine"]
    assert (state["model"], state["calls"], state["a_day"]) == ("ollama:llama3.2", 0, 20)
    assert state["trouble"]
    server.fault = ""
    assert outcomes(journal, NOW + 6 * HOUR) == [refine.REFINED] * 3
    assert all(read(file).refined == "ollama:llama3.2" for file in files)
    assert not refine.load(journal).trouble


def test_a_day_has_its_calls(journal: Journal, server: OllamaServer) -> None:
    capped = Journal(replace(journal.config, journal_refine_a_day=2))
    files = [keep(capped, another(number)) for number in (1, 2, 3, 4, 5)]
    assert refine.due(capped, NOW) == [files[4], files[3]]  # the latest first
    assert outcomes(capped) == [refine.REFINED] * 2
    assert outcomes(capped, NOW + HOUR) == []
    assert outcomes(capped, NOW + 24 * HOUR) == [refine.REFINED] * 2
    assert len(server.chats) == 4


def test_the_allowance_of_all_models_stops_it_and_gives_up_nothing(
    journal: Journal, server: OllamaServer
) -> None:
    capped = Journal(replace(journal.config, llm_calls_a_day=1))
    files = [keep(capped, another(number)) for number in (1, 2, 3)]
    assert outcomes(capped) == [refine.REFINED, refine.AWAY]
    assert "the day's 1 calls are used up" in refine.load(capped).trouble
    assert refine.load(capped).calls == len(server.chats) == 1
    allowed = Journal(replace(journal.config, llm_calls_a_day=3))
    assert outcomes(allowed, NOW + 2 * HOUR) == [refine.REFINED] * 2
    assert all(read(file).refined == "ollama:llama3.2" for file in files)


def test_a_session_that_goes_on_keeps_its_words_and_is_due_once_more(
    journal: Journal, server: OllamaServer
) -> None:
    file = keep(journal, a_session())
    outcomes(journal)
    first = read(file)
    ended = "2026-11-20T18:00:00.000Z"
    second = refined.carried_over(first, gone_on(refined.session_by_rule(first), ended))
    assert second.refined == "ollama:llama3.2"
    observation, summary = second.records[1], second.records[-1]
    assert observation == first.records[1]
    assert summary.fields["request"] == GOOD["request"]  # a rule says of it what it said before
    assert summary.fields["completed"] == "All of it."
    keep(journal, second)
    assert outcomes(journal, NOW + 3 * HOUR) == []  # not quiet for an hour
    assert outcomes(journal, NOW + 4 * HOUR) == [refine.REFINED]
    assert read(file).records[-1].fields["completed"] == GOOD["completed"]
    keep(journal, replace(read(file), ended="2026-11-21T09:00:00.000Z"))
    assert outcomes(journal, NOW + 48 * HOUR) == []
    assert len(server.chats) == 2


def test_what_did_not_change_is_carried_over_as_it_was(
    journal: Journal, server: OllamaServer
) -> None:
    file = keep(journal, a_session())
    outcomes(journal)
    after = read(file)
    assert refined.carried_over(after, refined.session_by_rule(after)) == after
    assert refined.carried_over(after, after) == after
    assert refined.carried_over(None, a_session()) == a_session()


def test_a_transcript_that_goes_on_keeps_better_words(
    journal: Journal, server: OllamaServer, tmp_path: Path
) -> None:
    better = {"id": "o1", "title": "The login redirect lost its query", "narrative": "It is kept."}
    server.answer = lambda _: json.dumps({**GOOD, "completed": "", "observations": [better]})
    project = tmp_path / "shop"
    project.mkdir()
    talk = about_redirects(project)
    file = take(journal, talk.file, "claude", force=True).file
    assert file is not None
    rules = read(file)
    assert outcomes(journal, time.time() + HOUR) == [refine.REFINED]
    assert take(journal, talk.file, "claude", force=True).new == 0
    assert read(file).records[1].title == better["title"]
    talk.asks("How often does the uploader retry?").says("It retries five times, with a pause.")
    take(journal, talk.file, "claude", force=True)
    after = read(file)
    assert after.refined == "ollama:llama3.2"
    assert after.records[1].title == better["title"]
    assert after.records[-1].fields["learned"] == GOOD["learned"]
    assert len(after.records) > len(rules.records)
    # without the model's words it is as if no model had been asked
    other = Journal(replace(journal.config, home=tmp_path / "other"))
    fresh = take(other, talk.file, "claude", force=True).file
    assert fresh is not None
    assert refined.session_by_rule(after).records == read(fresh).records


@pytest.mark.slow
def test_a_process_that_dies_in_a_call_is_followed_by_none(
    journal: Journal, server: OllamaServer
) -> None:
    file = keep(journal, a_session())
    server.delay = 60
    code = (
        "import sys; from pathlib import Path; from vault_index.config import Config;"
        "from vault_index.journal import refine; from vault_index.journal.journal import Journal;"
        "refine.run(Journal(Config(home=Path(sys.argv[1]), ollama_host=sys.argv[2],"
        "embedder='none', journal_refine='ollama:llama3.2')), lambda: float(sys.argv[3]))"
    )
    home = str(journal.config.home)
    process = subprocess.Popen([sys.executable, "-c", code, home, server.url, str(NOW)])
    soon(lambda: server.chats)
    assert outcomes(journal) == []  # another process does it
    process.send_signal(signal.SIGKILL)
    process.wait()
    server.delay = 0
    assert [outcomes(journal, NOW + n * HOUR) for n in range(9)] == [[]] * 9
    assert len(server.chats) == 1
    assert refine.load(journal).calls == 1
    assert read(file) == a_session()
    keep(journal, gone_on(a_session(), "2026-11-20T18:00:00.000Z"))
    assert outcomes(journal, NOW + 9 * HOUR) == [refine.REFINED]


def test_a_session_that_went_on_during_the_call_loses_nothing(
    journal: Journal, server: OllamaServer
) -> None:
    file = keep(journal, a_session())

    def answer(_: dict[str, Any]) -> str:
        keep(journal, gone_on(a_session(), "2026-11-20T15:30:00.000Z"))
        return json.dumps(GOOD)

    server.answer = answer
    assert outcomes(journal) == [refine.REFINED]
    after = read(file)
    assert after.prompts == 2
    assert after.records[1].title == GOOD["observations"][0]["title"]
    assert after.records[2].text == "And now?"


def test_what_was_forgotten_during_the_call_does_not_come_back(
    journal: Journal, server: OllamaServer
) -> None:
    session = a_session()
    file = keep(journal, session)
    rest = replace(session, records=session.records[1:])

    def answer(_: dict[str, Any]) -> str:
        keep(journal, rest)
        return json.dumps(GOOD)

    server.answer = answer
    outcomes(journal)
    assert read(file) == rest


def test_a_damaged_state_stops_all_calls(journal: Journal, server: OllamaServer) -> None:
    keep(journal, a_session())
    (journal.folder / refine.STATE).write_text('{"sessions": 3')
    assert outcomes(journal) == []
    assert "remove it" in refine.load(journal).trouble
    assert not server.chats


def test_a_forgotten_session_leaves_the_state(journal: Journal, server: OllamaServer) -> None:
    session = a_session()
    keep(journal, session)
    outcomes(journal)
    forget.forget(journal, session=session.id)
    assert session.id not in (journal.folder / refine.STATE).read_text()


def records_of(count: int, text: str) -> tuple[Record, ...]:
    prompt, observation, summary = a_session().records
    middle = [
        replace(
            observation if number % 2 else prompt,
            id=f"3f2a91c0-{'o' if number % 2 else 'p'}{number}",
            text=text,
            facts=(text,) * (number % 5),
        )
        for number in range(count)
    ]
    return (*middle, observation, summary)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 400), st.text(max_size=3000))
def test_excerpts_are_bounded_whatever_a_session_holds(count: int, text: str) -> None:
    session = replace(a_session(), records=records_of(count, text))
    assert 0 < len(excerpt.of(session)) <= excerpt.MAX_CHARS


def test_long_sessions_show_their_beginning_and_more_of_their_end() -> None:
    session = replace(a_session(), records=records_of(3000, "what was said here " * 20))
    seen = excerpt.of(session)
    assert "## p0" in seen
    assert "o2999" in seen
    assert "records left out" in seen
    assert "Deploy it." in seen
    assert len(seen) > excerpt.MAX_CHARS / 2


def test_a_model_that_no_door_leads_to_is_an_error(journal: Journal) -> None:
    keep(journal, a_session())
    other = Journal(replace(journal.config, journal_refine="llama3.2"))
    with pytest.raises(Exception, match="no language model"):
        outcomes(other)


@pytest.mark.slow
@pytest.mark.parametrize("has_vault", [True, False])
def test_it_comes_by_itself_where_sessions_are_recorded(
    make_vault: Callable[..., Vault],
    own_world: Path,
    tmp_path: Path,
    server: OllamaServer,
    has_vault: bool,
) -> None:
    """By the watcher of a vault; without one by the process that takes in the next turn."""
    project = make_vault().root if has_vault else tmp_path / "shop"
    project.mkdir(exist_ok=True)
    settings = f'embedder = "none"\nollama_host = "{server.url}"\n'
    write(own_world / "config.toml", f'{settings}[journal]\nrefine = "ollama:llama3.2"\n')
    better = dict.fromkeys(GOOD, "") | {"learned": "Quills are sharp.", "observations": []}
    server.answer = lambda _: json.dumps(better)
    run("lessons", "install", "claude", "--journal", cwd=project)
    about_redirects(project, began=datetime.now(UTC) - timedelta(hours=5))
    run("lessons", "journal", "import", cwd=project)
    assert not server.chats
    if has_vault:
        with watched(open_vault(project)):
            soon(lambda: is_found(project, "quills"))
    else:
        talk = about_retries(project, began=datetime.now(UTC))
        run("lessons-hook", cwd=project, stdin=json.dumps(talk.event("Stop")))
        soon(lambda: is_found(project, "quills"))
    assert len(server.chats) == 1


def is_found(folder: Path, words: str) -> bool:
    hits = run("lessons", "journal", "search", words, "--json", cwd=folder).json["hits"]
    return any(words in hit["text"].lower() for hit in hits)
