"""`ask` through the api, with real vaults and models behind real servers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.support.files import lesson_text
from tests.support.journals import a_journal, keep, prompt, work
from tests.support.model_server import ModelServer, Response
from vault_index import api, client
from vault_index.api import codec
from vault_index.vault import Vault

HEAP = "When the platypus build dies, raise the heap of the wombat: NODE_OPTIONS."

FILES = {
    "devops/heap.md": lesson_text("Heap of the platypus", HEAP),
    "devops/cache.md": lesson_text("Cache", "The cache of the echidna is kept for a week."),
    "devops/dates.md": lesson_text("Dates", "Store dates in UTC."),
}
QUESTION = "why does the platypus build of the wombat die?"


def configure(
    home: Path, server: ModelServer, model: str = '[ask]\nmodel = "openai:m"\n', first: str = ""
) -> None:
    """Write the settings of a user, whose model is on a server."""
    url = f'[llm]\nopenai_url = "{server.url}/v1"\n'
    (home / "config.toml").write_text(f"{first}{model}{url}")


def ask(team: Vault, query: str = QUESTION, **values: Any) -> tuple[dict[str, Any], str]:
    """Ask as a client does; return the answer, and what was streamed."""
    events: list[Mapping[str, Any]] = []
    options = client.Options(event=events.append)
    answer = codec.to_json(
        client.ask(str(team.root), api.asking.ask(query=query, **values), options)
    )
    return answer, "".join(each["text"] for each in events if each["event"] == "piece")


def wants(arguments: str) -> Response:
    """Return a server's answer that calls a tool."""
    call = {
        "id": "c1",
        "type": "function",
        "function": {"name": "search_lessons", "arguments": arguments},
    }
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    return Response(body={"id": "x", "object": "chat.completion", "choices": [choice]})


def searching(server: ModelServer) -> None:
    """Let the model search for each question, and cite the first passage and a number of none."""
    server.calls = lambda _: [("search_lessons", json.dumps({"query": QUESTION}))]
    server.answer = lambda _: "Raise the heap [1], [99]."


def asked_of_journal(team: Vault, home: Path, query: str, said: str) -> dict[str, Any]:
    """Ask a model that searches the journal for the axolotl, and then says so."""
    call = '{"query": "axolotl queue", "kind": "journal"}'
    with ModelServer() as server:
        configure(home, server)
        server.judge = lambda body: wants(call) if body.get("tools") else None
        server.answer = lambda _: said
        return ask(team, query)[0]


@pytest.mark.parametrize("door", ["openai", "anthropic", "ollama"])
def test_a_conversation_sends_the_exchanges_before_and_no_passages(
    team: Vault, own_world: Path, monkeypatch: pytest.MonkeyPatch, door: str
) -> None:
    """The third request has both exchanges; at most one search each. Everything comes in pieces."""
    said = "Raise the heap [1]."
    with ModelServer() as server:
        configure(
            own_world, server, f'[ask]\nmodel = "{door}:m"\n', f'ollama_host = "{server.url}"\n'
        )
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
        searching(server)
        session = ""
        requests: list[dict[str, Any]] = []
        for query in (QUESTION, "and the wombat?", "is that all about the platypus?"):
            answer, streamed = ask(team, query, session_id=session)
            assert (answer["answer"], streamed) == (said, "Raise the heap [1], [99].")
            session = session or answer["session_id"]
            assert answer["session_id"] == session
            requests = server.chats
    assert len(requests) == 6
    messages = [each for each in requests[4]["messages"] if each["role"] != "system"]
    assert [(each["role"], each["content"]) for each in messages] == [
        ("user", QUESTION),
        ("assistant", "Raise the heap."),
        ("user", "and the wombat?"),
        ("assistant", "Raise the heap."),
        ("user", "is that all about the platypus?"),
    ]


def test_the_journal_is_searched_only_where_it_is_on_and_open(team: Vault, own_world: Path) -> None:
    with ModelServer() as server:
        configure(own_world, server)
        server.judge = lambda body: (
            wants('{"query": "heap", "kind": "journal"}') if body.get("tools") else None
        )
        answer, _ = ask(team)
        assert answer["status"] == "unknown"
        assert "journal is off" in answer["answer"]
        answer, _ = ask(team, journal=False)
        assert "not open to this caller" in answer["answer"]


def test_a_record_of_the_journal_is_a_source(team: Vault, own_world: Path) -> None:
    said = "we moved the axolotl to another queue"
    record = prompt("5e5510ac-0001", 1, said, datetime.now(UTC).isoformat())
    keep(a_journal(own_world), "5e5510ac-0001", record)
    answer = asked_of_journal(
        team, own_world, "where did we move the axolotl?", "To another queue [1]."
    )
    assert (answer["status"], answer["answer"]) == ("answered", "To another queue [1].")
    (source,) = answer["sources"]
    assert (source["kind"], source["id"], source["path"]) == ("journal", record.id, "")
    assert said in source["text"]


def test_a_question_of_the_agent_comes_with_what_the_person_said(
    team: Vault, own_world: Path
) -> None:
    id, at = "5e5510ac-0001", datetime.now(UTC).isoformat()
    asked = "Shall I move the axolotl to another queue?"
    keep(
        a_journal(own_world),
        id,
        prompt(id, 1, "look at the queue of the axolotl", at),
        work(id, 1, asked, at),
        prompt(id, 2, "no, leave it where it is", at, context=asked),
    )
    answer = asked_of_journal(team, own_world, "did we move the axolotl?", "It was left [1].")
    there = [each["text"] for each in answer["passages"] if "axolotl" in each["text"]]
    assert there
    assert all("no, leave it where it is" in text for text in there)
    assert answer["status"] == "answered"


def test_the_journal_is_searched_in_the_days_and_project_that_the_model_names(
    team: Vault, own_world: Path
) -> None:
    for id, at in (("5e5510ac-0001", "2026-11-20"), ("5e5510ad-0002", "2026-10-01")):
        moment = f"{at}T10:00:00+00:00"
        keep(a_journal(own_world), id, prompt(id, 1, f"the axolotl queue of {at}", moment))
    call = {"query": "axolotl queue", "kind": "journal", "since": "2026-11-01"}
    call["until"] = "2026-11-20"  # to the end of that day
    with ModelServer() as server:
        configure(own_world, server)
        server.judge = lambda body: wants(json.dumps(call)) if body.get("tools") else None
        server.answer = lambda _: "It was [1]."
        answer, _ = ask(team, "the axolotl?")
        assert [each["date"][:10] for each in answer["passages"]] == ["2026-11-20"]
        assert "1 older records match" in server.requests[1].body["messages"][-1]["content"]
        call["project"] = "another"
        answer, _ = ask(team, "the axolotl?")
        assert (answer["status"], answer["passages"]) == ("unknown", [])
        call |= {"project": "", "since": "2026-11-21", "until": "2026-11-22"}
        answer, _ = ask(team, "the axolotl?")
        assert len(answer["passages"]) == 2, "those days have nothing: all of the journal"
        call["since"] = "some time last week"
        answer, _ = ask(team, "the axolotl?")
    assert "no date 'some time last week'" in answer["answer"]
